"""attnlab dossier: one page, everything inside it, and what it says is what was computed."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.explorer.embed import dossier_payloads, embed_viewers
from attnlab.models.studies import dossier as module
from attnlab.models.studies.dossier import (
    Dossier,
    choose_heads,
    choose_texts,
    dossier,
)
from attnlab.models.studies.dossier_findings import findings
from attnlab.render.dossier import dossier_page
from command_line import attnlab, refused
from embedded_viewers import check_viewers
from html_pages import Seen
from tiny_models import TOKENIZER


def made(family: str) -> al.models.Model:
    state, raw = getattr(tiny_models, family)()
    return al.models.load(state, config=raw)


@pytest.fixture(
    scope="module",
    params=["bert", *(pytest.param(name, marks=pytest.mark.slow) for name in ("albert", "llama"))],
)
def found(request) -> Dossier:
    return dossier(made(request.param), work=12_500.0)


@pytest.fixture(scope="module")
def page(found) -> str:
    return dossier_page(found)


def test_work_decides_the_flows(found):
    poor = dossier(found.model, work=1.0)
    rich, said = (
        ["the work of 1 eval" in one.flow.no_limit for one in some.flows] for some in (found, poor)
    )
    assert any(said) and not any(rich)


def test_the_page_needs_nothing_but_itself(page):
    seen = Seen(page)
    assert seen.open == [] and not {"script", "link", "iframe", "object", "video"} & set(seen.tags)
    assert all(target.startswith(("data:image/png;base64,", "#")) for target in seen.targets)
    assert {target[1:] for target in seen.targets if target.startswith("#")} <= set(seen.ids)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    assert "url(" not in style and "@import" not in style
    assert "://" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", page)


@pytest.mark.parametrize(
    "found",
    ["bert", *(pytest.param(name, marks=pytest.mark.slow) for name in ("albert", "llama"))],
    indirect=True,
)
def test_viewers_stand_behind_the_pictures(found, page):
    viewers = dossier_payloads(found)
    live = dossier_page(found, None, viewers, embed_viewers(viewers))
    assert list(check_viewers(live)) == ["flow_0", "sentence_0"] and check_viewers(page) == {}
    assert live.count("<img ") == page.count("<img ")  # the still pictures stay
    seen = Seen(live)
    assert (
        seen.open == []
        and seen.tags.count("script") == 3
        and not {"link", "iframe", "object", "video"} & set(seen.tags)
    )
    plain = re.sub(
        r'<div class="attnlab-place" data-attnlab="\w+">(.*?</figure>)</div>',
        r"\1",
        live,
        flags=re.DOTALL,
    )
    plain = plain.split('<script type="application/json"')[0]
    # Nothing else differs. Two drawings of one flow may differ in the last bit of a few pixels, so
    # their bytes are not compared.
    assert without_pixels(plain.split("</head>")[1]) == without_pixels(
        page.split("</head>")[1].split("</body>")[0]
    )


def without_pixels(text: str) -> str:
    return re.sub(r"base64,[A-Za-z0-9+/=]+", "", text).strip()


def test_every_part_is_there(found, page):
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    for word in (
        "In short",
        "Heads",
        "Flows",
        "Sentences",
        "learned nothing",
        "idealised model",
        "random token ids",
        "seed 0",
    ):
        assert word in text
    assert ("The tied layer, iterated" in text) == found.model.config.is_tied == bool(found.tied)
    assert page.count("<img ") == 2 + len(found.flows) + len(found.sentences) + len(found.tied)
    assert text.count("Sentence 1") == 1 and len(found.sentences) == 2
    assert "nan" not in text.lower().replace("nanmedian", "").split()


def test_what_it_says_is_what_was_computed(found, page):
    text = html.unescape(page)
    data = found.sentences[0]
    layers = found.model.config.layers
    assert (
        f"to {np.median([float(one['cosine'].sel(variant='real')[layers]) for one in found.sentences]):.2f}"
        in text
    )
    for variant in ("no_mlp", "twin", "random"):
        assert f"{float(data['turn'].sel(variant=variant)[layers]):.2f}, " in text
    good = int((found.spectra["verdict"] == "good triple").sum())
    assert f"{good} of {len(found.spectra)} heads" in text
    received = data["received"].sel(variant="real").values[0]
    best = int(received.argmax())
    assert f"{data['word'].values[best]} {received[best]:.0%}" in text


def test_shares_say_the_number_of_draws_and_whether_special_tokens_count(found, page):
    told = {one.question: one for one in findings(found)}
    assert told["How many heads are inside the theorem?"].null.endswith("of 200 random heads")
    leaders = told["Do the same words lead (receive most attention)?"].model
    assert leaders.endswith("of the layers after the first (special tokens left out)")
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    assert "chance (200 random heads)" in text and "special tokens counted" in text
    assert (found.spectra["norms"] == "measured").all()


def test_heads_are_chosen_for_a_reason(found):
    frame = found.spectra
    chosen = choose_heads(frame)
    good = frame[frame["verdict"] == "good triple"]
    if len(good):
        layer, head, _ = chosen[0]
        row = frame[(frame["layer"] == layer) & (frame["head"] == head)].iloc[0]
        assert row["verdict"] == "good triple" and row["gap"] == good["gap"].max()
    assert chosen[-1][1] is None and len({one[:2] for one in chosen}) == len(chosen)
    asked = choose_heads(frame, 0, 2)
    assert asked[0][:2] == (0, 2) and all(one[:2] != (0, 2) for one in asked[1:])
    if not found.model.config.is_tied:
        assert all(layer == 1 for layer, _, _ in choose_heads(frame, 1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny model with a tokenizer of six words."""
    folder = tiny_models.write_folder(tmp_path_factory.mktemp("model"), *tiny_models.bert())
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    return folder


def test_texts_are_those_the_tokenizer_knows_best(folder, monkeypatch):
    model = al.models.load(folder)
    known = {"nonsense": ("xyz qrs tuv", "abc def"), "words": ("the cat sat", "the cat")}
    monkeypatch.setattr(module, "TEXTS", known)
    readings, about = choose_texts(model)
    assert [one.text for one in readings] == ["the cat sat", "the cat"] and about.startswith(
        "words"
    )
    monkeypatch.setattr(module, "TEXTS", {"long": ("the cat " * 50,)})
    with pytest.raises(ValueError, match="can read none of the default sentences.*--text"):
        choose_texts(model)


@pytest.fixture(scope="module")
def of_heads() -> Dossier:
    """A dossier of heads that belong to no family: no embedding, one layer, in memory only."""
    draw = np.random.default_rng(0).standard_normal
    Q, K, V, O = (draw(shape) / 3 for shape in [(2, 3, 6)] * 3 + [(2, 6, 3)])
    x = [draw((5, 6)), draw((3, 6))]
    return al.models.dossier(al.models.heads(Q, K, V, O), x, head=1, rng=4, work=200.0)


def test_heads_alone_have_a_dossier(of_heads, tmp_path):
    assert [data.sizes["token"] for data in of_heads.sentences] == [5, 3]
    assert [(one.layer, one.head) for one in of_heads.flows][0] == (0, 1)
    said = al.models.findings(of_heads)
    assert len(said) == len(findings(of_heads)) and "nan" not in " ".join(said).lower()
    assert "one layer" in said[-1]  # no layer after the first: nothing to compare
    path = al.explore(of_heads, tmp_path / "heads.html")
    text = path.read_text(encoding="utf-8")
    assert list(check_viewers(text)) == ["flow_0", "sentence_0"] and Seen(text).open == []
    assert "1 layer, 2 heads" in text
    assert "no norm at attention" in text and "norms before" not in text


def test_what_makes_it_again_fits_the_model(of_heads, folder):
    shown = dossier_page(of_heads).rsplit("<pre>", 1)[1]
    assert "attnlab " not in shown  # no command can read a model in memory
    assert "al.models.dossier(m, texts, rng=4)" in shown
    there = dossier(al.models.load(folder), ["the cat sat"], work=100.0)
    shown = html.unescape(dossier_page(there).rsplit("<pre>", 1)[1])
    assert f"attnlab dossier {folder} --text 'the cat sat'" in shown


def test_texts_may_be_ids(folder):
    model = al.models.load(folder)
    readings, about = choose_texts(model, ["the cat sat", [3, 1, 4]])
    assert about == "given" and [one.given for one in readings] == [
        {"text": "the cat sat"},
        {"ids": [3, 1, 4]},
    ]
    for wrong, says in (
        (None, "texts must be a list"),
        ("the cat", "texts must be a list"),
        ([[3]], "at least two tokens"),
        ([np.zeros((3, 5))], "whole numbers"),
    ):
        with pytest.raises((TypeError, ValueError), match=says):
            choose_texts(model, wrong)


def test_the_command_writes_a_page_whole_or_not_at_all(folder, tmp_path, monkeypatch):
    path = tmp_path / "a.html"
    said = attnlab(
        "dossier",
        folder,
        "-o",
        path,
        "--text",
        "The cat <sat> & the cat",
        "--text",
        "the cat sat",
        "--layer",
        1,
        "--head",
        2,
    )
    assert str(path) in said.stdout.replace("\n", "")
    text = path.read_text(encoding="utf-8")
    assert (
        "The cat &lt;sat&gt; &amp; the cat" in text and "<sat>" not in text and "L1H2</h3>" in text
    )
    assert Seen(text).open == []

    assert "exists already" in refused("dossier", folder, "-o", path)
    before = path.read_bytes()
    import attnlab.render.dossier as render

    def fails(*args, **options):
        raise ValueError("no drawing today.")

    monkeypatch.setattr(render, "picture", fails)
    assert "no drawing today" in refused(
        "dossier", folder, "-o", path, "--force", "--text", "the cat"
    )
    assert path.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == ["a.html"]


def test_bad_input_is_refused_before_the_work(folder, tmp_path):
    path = tmp_path / "a.html"
    assert "must end in .html" in refused("dossier", folder, "-o", tmp_path / "a.pdf")
    assert "There is no folder" in refused("dossier", folder, "-o", tmp_path / "nowhere" / "a.html")
    assert "sentence is empty" in refused("dossier", folder, "-o", path, "--text", " ")
    assert "There is no layer 7" in refused("dossier", folder, "-o", path, "--layer", 7)
    assert "There is no head 7" in refused("dossier", folder, "-o", path, "--head", 7)
    bare = tiny_models.write_folder(tmp_path / "bare", *tiny_models.bert())
    assert "has no tokenizer" in refused("dossier", bare, "-o", path, "--text", "a text")
    assert not path.exists()
