"""The tokenizers inside GGUF files: against double loops, the library `tokenizers` with the
original's own file, and llama2.c with the real pieces of Llama 2.
"""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest

import attnlab as al
import tiny_gguf
from attnlab.models import BadModel
from attnlab.models.catalog import catalog
from attnlab.models.checkpoints.gguf_pieces import BYTES, GgufPieces
from attnlab.models.checkpoints.gguf_tokens import tokenizer_of, why_no_tokenizer
from attnlab.models.checkpoints.joining import join_neighbours

pytest.importorskip("gguf")


def write_with(folder, tokenizer):
    """A tiny Llama with that tokenizer."""
    _, state, raw = tiny_gguf.checkpoints()["llama"]
    config = al.models.load(state, config=raw).config
    path = folder / "t.gguf"
    return tiny_gguf.write(path, "llama", state, config, eps=1e-5, tokenizer=tokenizer)


def read_fields(folder, tokenizer):
    """The fields of that tokenizer, through a file."""
    from attnlab.models.checkpoints.gguf_file import GgufFile

    return GgufFile(write_with(folder, tokenizer)).fields


def test_the_tokenizer_inside_cuts_texts(tmp_path):
    pytest.importorskip("tokenizers")
    m = al.models.load(write_with(tmp_path, tiny_gguf.BYTE_LEVEL))
    assert m.has_tokenizer
    ids, words = m.tokens("the cat")
    assert words == ["<s>", "the", "Ġcat"] and ids.tolist() == [0, 9, 14]
    assert m.tokens("the cat", special=False)[1] == ["the", "Ġcat"]
    assert m.tokens("</s>", special=False)[0].tolist() == [1]  # a control token is one token


def test_a_tokenizer_of_another_kind_needs_to_be_given():
    with pytest.raises(BadModel, match="Give tokenizer="):
        tokenizer_of({"tokenizer.ggml.model": "llama"})


def test_words_are_cut_as_each_kind_cuts_them():
    """gpt-2 keeps numbers whole, smollm and qwen2 cut them into digits."""
    tokenizers = pytest.importorskip("tokenizers")
    fields = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": tiny_gguf.TOKENS,
        "tokenizer.ggml.merges": tiny_gguf.MERGES,
    }
    cut = {
        kind: tokenizers.Tokenizer.from_str(
            tokenizer_of({**fields, "tokenizer.ggml.pre": kind})
        ).pre_tokenizer.pre_tokenize_str("it's 123 cats\n\n ok")
        for kind in ("gpt-2", "smollm", "qwen2")
    }
    words = {kind: [word for word, _ in parts] for kind, parts in cut.items()}
    assert words["gpt-2"] == ["it", "'s", "Ġ123", "Ġcats", "ĊĊ", "Ġok"]
    assert words["smollm"] == ["it", "'s", "Ġ", "1", "2", "3", "Ġcats", "ĊĊ", "Ġok"]
    assert words["qwen2"] == ["it", "'s", "Ġ", "1", "2", "3", "Ġcats", "ĊĊ", "Ġok"]


LETTERS = "abcdé漢\u2581🙂"
OTHERS = "xyz\n\t 0߷"


def pieces_at_random(rng, equal_scores=False):
    """A vocabulary as SentencePiece makes one: ends, bytes, letters, and pieces of known pieces."""
    tokens, kinds = ["<unk>", "<s>", "</s>", *BYTES], [2, 3, 3] + 256 * [6]
    scores = 259 * [0.0]
    known = list(LETTERS)
    while len(known) < 60:
        piece = rng.choice(known) + rng.choice(known)
        if piece not in known and len(piece) < 7:
            known.append(piece)
    rng.shuffle(known)
    tokens += known
    kinds += len(known) * [1]
    scores += [float(rng.randint(-4, 0)) if equal_scores else -float(i) for i in range(len(known))]
    return {
        "model": "llama",
        "pre": "default",
        "tokens": tokens,
        "scores": scores,
        "token_type": kinds,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def cut_slowly(tokenizer, text, adds_space=True):
    """The definition: of all neighbours that make a piece join the two with the best score, the
    leftmost of equal ones, until there are none.
    """
    score = dict(zip(tokenizer["tokens"][259:], tokenizer["scores"][259:], strict=True))
    number = {token: i for i, token in enumerate(tokenizer["tokens"])}
    parts = list((" " + text if adds_space and text else text).replace(" ", "\u2581"))
    while True:
        best = None
        for i in range(len(parts) - 1):
            pair = parts[i] + parts[i + 1]
            if pair in score and (best is None or score[pair] > score[best[1]]):
                best = (i, pair)
        if best is None:
            break
        parts[best[0] : best[0] + 2] = [best[1]]
    ids = []
    for part in parts:
        if part in number:
            ids.append(number[part])
        else:
            ids += [3 + byte for byte in part.encode()]
    return ids


@pytest.mark.parametrize("equal_scores", [False, True])
@pytest.mark.parametrize("adds_space", [True, False])
def test_pieces_are_joined_by_their_scores(adds_space, equal_scores, tmp_path):
    rng = random.Random(3)
    tokenizer = pieces_at_random(rng, equal_scores) | {"add_space_prefix": adds_space}
    cut = tokenizer_of(read_fields(tmp_path, tokenizer))
    assert isinstance(cut, GgufPieces)
    cut = pickle.loads(pickle.dumps(cut))
    joined, known = 0, [*tokenizer["tokens"][259:], *OTHERS]
    for _ in range(300):
        text = "".join(rng.choice(known) for _ in range(rng.randint(0, 12)))
        ids, words = cut(text, special=False)
        assert ids == cut_slowly(tokenizer, text, adds_space)
        assert words == [tokenizer["tokens"][number] for number in ids]
        assert cut(text)[0] == [1, *ids]
        joined += sum(len(word) > 2 and word not in BYTES for word in words)
    assert joined > 500


def test_a_long_text_is_cut_in_time():
    letters = 40_000 * ["a"]
    assert join_neighbours(letters, {"aa": -1.0, "aaaa": -2.0}) == 10_000 * ["aaaa"]
    assert join_neighbours([], {"a": 0.0}) == []


def test_tokens_that_are_kept_whole(tmp_path):
    """As llama.cpp does: longest first, and a space begins what comes after one."""
    tokenizer = pieces_at_random(random.Random(0))
    tokenizer["tokens"] += ["<tool>", "<tool><tool>", "ab ab"]
    tokenizer["scores"] += 3 * [0.0]
    tokenizer["token_type"] += [4, 3, 4]
    cut = tokenizer_of(read_fields(tmp_path, tokenizer))
    one, two, words = (tokenizer["tokens"].index(x) for x in ("<tool>", "<tool><tool>", "ab ab"))

    def plain(text):
        return cut_slowly(tokenizer, text)

    a, b = plain("a"), plain("b")
    assert cut("a<tool>b", special=False)[0] == [*a, one, *b]
    assert cut("<tool><tool><tool>b", special=False)[0] == [two, one, *b]
    assert cut("ab ab", special=False)[0] == [words]
    assert cut("a</s>b", special=False)[0] == [*a, 2, *b]
    assert cut("")[0] == [1] and cut("", special=False)[0] == []
    ends = tokenizer | {"add_bos_token": False, "add_eos_token": True}
    assert tokenizer_of(read_fields(tmp_path, ends))("a")[0] == [*a, 2]
    with pytest.raises(BadModel, match=r"half of one, U\+D800"):
        cut("a\ud800")


def test_the_real_pieces_of_llama_2_give_the_ids_of_llama2c(tmp_path):
    if not catalog.is_cached("stories15m"):
        pytest.skip("stories15m has not been fetched: attnlab fetch stories15m")
    theirs = al.models.load("stories15m").tokenizer
    pieces = [piece.decode("utf-8").replace(" ", "\u2581") for piece in theirs.pieces]
    tokenizer = {
        "model": "llama",
        "tokens": ["<unk>", "<s>", "</s>", *BYTES, *pieces[259:]],
        "scores": list(theirs.scores),
        "token_type": [2, 3, 3] + 256 * [6] + (len(pieces) - 259) * [1],
        "bos_token_id": 1,
    }
    ours = tokenizer_of({f"tokenizer.ggml.{key}": value for key, value in tokenizer.items()})
    rng = random.Random(1)
    texts = [
        "Once upon a time, there was a little girl named Lily.",
        "naïve café, ΑΒΓ and 漢字 — 🙂\u0000\u07f7",
        "  two   spaces\tand\nlines  ",
        "word " * 300,
        *("".join(chr(rng.randint(1, 0x2FF)) for _ in range(60)) for _ in range(40)),
    ]
    for text in texts:
        assert ours(text)[0] == theirs(text)[0]
        assert ours(text, special=False)[0] == theirs(text, special=False)[0]


WITHOUT = {
    "scores": "tokenizer.ggml.scores must have one number per token",
    "token_type": "tokenizer.ggml.token_type must have one number per token",
    "tokens": "tokenizer.ggml.tokens must be a list of texts",
}


@pytest.mark.parametrize("key", WITHOUT)
def test_what_a_tokenizer_of_pieces_lacks_is_named(key):
    fields = pieces_at_random(random.Random(0))
    del fields[key]
    assert WITHOUT[key] in why_no_tokenizer(
        {f"tokenizer.ggml.{name}": value for name, value in fields.items()}
    )


def test_a_tokenizer_of_pieces_that_does_more_is_refused():
    fields = {
        f"tokenizer.ggml.{name}": value
        for name, value in pieces_at_random(random.Random(0)).items()
    }
    assert why_no_tokenizer(fields) is None
    for more, culprit in (
        ({"tokenizer.ggml.remove_extra_whitespaces": True}, "remove_extra_whitespaces"),
        ({"tokenizer.ggml.precompiled_charsmap": [1, 2]}, "precompiled_charsmap"),
        ({"tokenizer.ggml.tokens": ["a"] * 319}, "no pieces for single bytes"),
        ({"tokenizer.ggml.scores": ["a"] * 319}, "scores must have one number per token"),
        ({"tokenizer.ggml.scores": 3.0}, "scores must have one number per token"),
        ({"tokenizer.ggml.token_type": "x"}, "token_type must have one whole number per token"),
    ):
        assert culprit in why_no_tokenizer(fields | more)
    neutral = {"tokenizer.ggml.remove_extra_whitespaces": False}
    assert why_no_tokenizer(fields | neutral | {"tokenizer.ggml.precompiled_charsmap": []}) is None


def test_llama_3_keeps_three_digits_and_whole_words_together(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tiny_gguf.BYTE_LEVEL | {"pre": "llama-bpe", "merges": tiny_gguf.MERGES[:1]}
    fields = read_fields(tmp_path, tokenizer)
    library = tokenizers.Tokenizer.from_str(tokenizer_of(fields))
    words = [word for word, _ in library.pre_tokenizer.pre_tokenize_str("IT'S 12345 cats\n\n ok")]
    assert words == ["IT", "'S", "Ġ", "123", "45", "Ġcats", "ĊĊ", "Ġok"]
    # " the" and " cat" are tokens, though the pairs that make them are missing
    assert library.encode("the cat").tokens == ["<s>", "the", "Ġcat"]
    silent = {key: fields[key] for key in fields if key != "tokenizer.ggml.add_bos_token"}
    library = tokenizers.Tokenizer.from_str(tokenizer_of(silent))
    assert library.encode("the").tokens == ["<s>", "the"]  # also where the file does not say it
    plain = silent | {"tokenizer.ggml.pre": "gpt-2"}
    assert tokenizers.Tokenizer.from_str(tokenizer_of(plain)).encode("the").tokens[0] != "<s>"


def test_a_kind_that_is_not_known_is_named(tmp_path):
    for changes, culprit in (
        ({"pre": "default"}, "cut as 'default' says"),
        ({"pre": "tekken"}, "cut as 'tekken' says"),
        ({"model": "rwkv"}, "the kind 'rwkv' is not read here"),
    ):
        m = al.models.load(write_with(tmp_path, tiny_gguf.BYTE_LEVEL | changes))
        assert not m.has_tokenizer
        with pytest.raises(ValueError, match=culprit):
            m.tokens("the cat")


WORDS = "the cat sat ##s ##at c a e i o n v f [ ] . , ! ' - ##i ##ve ##e 漢 字".split()
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]


def as_converted(tokens, controls=5):
    """The tokens as the converter writes them: a mark before the beginnings of words."""
    return [
        token if number < controls else token[2:] if token.startswith("##") else "\u2581" + token
        for number, token in enumerate(tokens)
    ]


def bert_fields(tokens, **changes):
    return {
        "model": "bert",
        "tokens": as_converted(tokens),
        "token_type": 5 * [3] + (len(tokens) - 5) * [1],
        "bos_token_id": tokens.index("[CLS]"),
        "seperator_token_id": tokens.index("[SEP]"),
        "unknown_token_id": tokens.index("[UNK]"),
        **changes,
    }


TEXTS = [
    "The cats sat.",
    "a naïve café!",
    "漢字 c-a [MASK] [x]",
    "",
    "don't  \n sat\tcat the",
    "ÇÉ\u0301🙂",
]


@pytest.mark.parametrize("text", TEXTS)
def test_wordpieces_of_bert_are_the_original_s(text, tmp_path):
    """The original is the library's own BERT with the vocabulary as BERT writes it."""
    tokenizers = pytest.importorskip("tokenizers")
    original = tokenizers.BertWordPieceTokenizer(
        {token: i for i, token in enumerate(BERT)}, lowercase=True
    )
    original.add_special_tokens(BERT[:5])
    library = tokenizers.Tokenizer.from_str(tokenizer_of(read_fields(tmp_path, bert_fields(BERT))))
    for special in (True, False):
        ours, theirs = (one.encode(text, add_special_tokens=special) for one in (library, original))
        assert ours.ids == theirs.ids and ours.tokens == theirs.tokens
    ends = bert_fields(BERT, add_bos_token=False, add_sep_token=False)
    library = tokenizers.Tokenizer.from_str(tokenizer_of(read_fields(tmp_path, ends)))
    assert library.encode(text).ids == original.encode(text, add_special_tokens=False).ids


def test_a_vocabulary_of_bert_with_capitals_does_not_say_how_texts_are_read():
    for own in ("Cat", "café"):
        fields = {f"tokenizer.ggml.{k}": v for k, v in bert_fields([*BERT, own]).items()}
        assert f"such as {own!r}" in why_no_tokenizer(fields)
    fields = {f"tokenizer.ggml.{k}": v for k, v in bert_fields(BERT).items()}
    assert why_no_tokenizer(fields) is None
    del fields["tokenizer.ggml.seperator_token_id"]
    assert why_no_tokenizer(fields) is None  # it has the usual name
    fields["tokenizer.ggml.tokens"] = [token.replace("SEP", "X") for token in as_converted(BERT)]
    assert "no token [SEP]" in why_no_tokenizer(fields)


@pytest.mark.parametrize("text", TEXTS)
def test_wordpieces_of_minilm_through_a_gguf_file_are_its_own(text):
    if not catalog.is_cached("minilm"):
        pytest.skip("minilm has not been fetched: attnlab fetch minilm")
    tokenizers = pytest.importorskip("tokenizers")
    theirs = al.models.load("minilm")
    words = (catalog.folder_of("minilm") / "vocab.txt").read_text(encoding="utf-8").splitlines()
    special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    tokens = [
        word if word in special else word[2:] if word.startswith("##") else "\u2581" + word
        for word in words
    ]
    fields = {
        "model": "bert",
        "tokens": tokens,
        "token_type": [3 if word in special else 1 for word in words],
    }
    ours = tokenizers.Tokenizer.from_str(
        tokenizer_of({f"tokenizer.ggml.{key}": value for key, value in fields.items()})
    )
    assert ours.encode(text).ids == theirs.tokens(text)[0].tolist()


def test_a_tokenizer_json_inside_the_file_comes_first():
    inside = {"tokenizer.huggingface.json": "{}", "tokenizer.ggml.model": "rwkv"}
    assert why_no_tokenizer(inside) is None and tokenizer_of(inside) == "{}"


JUNK = [True, -1, 10**12, 3.5, float("nan"), "x", "", [], ["a"], ["a", "b c"], np.arange(5)]
JUNK += [np.full(count, value) for count in (24, 319) for value in (4, 4.0, float("nan"))]
OPTIONAL = ("add_bos_token", "add_space_prefix", "eos_token_id", "precompiled_charsmap", "pre")


@pytest.mark.parametrize("kind", ["llama", "gpt2", "llama-bpe", "bert"])
def test_damaged_fields_are_refused_in_words(kind):
    """Each key with each piece of junk, and pairs of them: a sentence, or a tokenizer."""
    sound = {
        "llama": pieces_at_random(random.Random(0)),
        "gpt2": tiny_gguf.BYTE_LEVEL,
        "llama-bpe": tiny_gguf.BYTE_LEVEL | {"pre": "llama-bpe"},
        "bert": bert_fields(BERT),
    }[kind]
    rng, refused = random.Random(1), 0
    keys = [*sound, *OPTIONAL]
    cases = [{key: value} for key in keys for value in JUNK]
    cases += [{rng.choice(keys): rng.choice(JUNK) for _ in range(3)} for _ in range(200)]
    for changes in cases:
        fields = {f"tokenizer.ggml.{key}": value for key, value in (sound | changes).items()}
        reason = why_no_tokenizer(fields)
        refused += reason is not None
        if reason is None:
            found = tokenizer_of(fields)
            assert isinstance(found, str) or len(found("ab 漢")[0]) == len(found("ab 漢")[1])
        else:
            assert reason.endswith(".") and "\n" not in reason
    assert refused > 100
