"""Specs that name a trained model: the family `model`, the start law `text`, and the Spec that a
flow carries.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models import named
from attnlab.models.catalog import catalog
from attnlab.models.checkpoints.record import NotFetched
from attnlab.models.studies.flows import flow, starts
from attnlab.registry import UnknownName
from attnlab.run import limit_of_spec
from attnlab.starts import start_laws
from attnlab.weights import weights_families
from command_line import attnlab, refused
from places import DOCS
from tiny_models import TOKENIZER

IDS = [3, 1, 4, 1, 5, 9, 2]
QUICK = {"t_end": 1.0, "saves": 6, "limit": False, "check": False}
FAMILIES = ("bert", "albert", "gpt2", "llama", "gpt_neox")
SENTENCE = "The cat sat the cat"


def write_model(folder, family="bert"):
    """The folder of a tiny model that reads six words."""
    tiny_models.write_folder(folder, *getattr(tiny_models, family)())
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("trained") / "reader")


@pytest.fixture(scope="module")
def loaded(folder):
    return al.models.load(str(folder))


def spec_of(folder, **changed):
    """A Spec of a head and a sentence; changed: {section: keys}."""
    tables = {
        "weights": {"family": "model", "name": str(folder), "layer": 1, "head": 0},
        "start": {"law": "text", "model": str(folder), "text": SENTENCE, "layer": 1},
        "solve": {"t_end": 1.0, "saves": 3},
    }
    return al.Spec(
        **{section: {**table, **changed.get(section, {})} for section, table in tables.items()}
    )


def is_equal(one, other):
    """Whether two Weights are the same to the last bit, factors and words too."""
    pairs = zip((one.Q, one.K, *one.V), (other.Q, other.K, *other.V), strict=True)
    return one.source == other.source and all(np.array_equal(a, b) for a, b in pairs)


# --------------------------------------------------------------------------------------------------
# the weights


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("fold_norm", [True, False])
def test_the_family_has_the_matrices_of_the_model(tmp_path, family, fold_norm):
    folder = tiny_models.write_folder(tmp_path / family, *getattr(tiny_models, family)())
    model, draw = al.models.load(folder), weights_families["model"]
    for layer in (0, 1):
        for head in (None, 0, 2):
            assert is_equal(
                draw(str(folder), layer, head, fold_norm=fold_norm),
                model.weights(layer, head, fold_norm),
            )
    some = draw(str(folder), 1, [2, 0], fold_norm=fold_norm)
    every = model.weights(1, None, fold_norm)
    np.testing.assert_array_equal(some.full_V, every.full_V[[2, 0]])
    np.testing.assert_array_equal(some.M, every.M[[2, 0]])
    assert (
        some.source.startswith(f"{family} L1H2 L1H0")
        and draw(str(folder)).heads == model.config.heads
    )


@pytest.mark.parametrize(("keys", "words"), [
    ({"layer": 2}, "layers are 0 to 1"), ({"head": 3}, "heads are 0 to 2"), ({"head": []}, "a list of different ones"),
    ({"head": [1, 1]}, "a list of different ones"), ({"head": [0, 7]}, "heads are 0 to 2"), ({"head": True}, "no head True"),
    ({"head": "first"}, "must be a whole number"), ({"fold_norm": 1}, "must be true or false"),
    ({"d": 5}, "have d = 12, but d = 5"), ({"name": 7}, "must be a name"), ({"name": " "}, "must be a name"),
    ({"name": "not/there"}, "no folder 'not/there'"),
    ({"name": "/dev/null"}, "cannot be read"), ({"name": "hf:../x"}, "hf:owner/name"), ({"name": "a/\0b"}, "no folder"),
    ({"name": "x/" + 300 * "y"}, "cannot be read"),
])  # fmt: skip
def test_weights_that_make_no_sense_are_refused(folder, keys, words):
    with pytest.raises(ValueError, match=words):
        al.resolve(spec_of(folder, weights=keys))


def test_a_folder_that_changes_is_read_again(tmp_path):
    folder = write_model(tmp_path / "reader")
    before = al.resolve(spec_of(folder)).dynamics.weights
    assert named.find_model(str(folder)) is named.find_model(str(folder))
    state, raw = tiny_models.bert()
    tiny_models.write_folder(folder, {name: 2 * array for name, array in state.items()}, raw)
    os.utime(
        folder / "model.safetensors", (1e9, 1e9)
    )  # another time, however coarse the clock of the disk is
    after = al.resolve(spec_of(folder)).dynamics.weights
    np.testing.assert_array_equal(after.Q, 2 * before.Q)


# --------------------------------------------------------------------------------------------------
# the text


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_is_what_the_layer_reads(tmp_path, family):
    folder = write_model(tmp_path / family, family)
    model = al.models.load(folder)
    ids, _ = model.tokens(SENTENCE)
    for layer in (0, 1):
        x = start_laws["text"](model=str(folder), text=SENTENCE, layer=layer)
        state = model.hidden_states(ids)[layer]
        if (
            model.config.is_pre_norm
        ):  # without gain and bias: mean 0 for a LayerNorm, and mean square 1
            norm = model.parts.layers[layer].attention_block.norm_before
            state = state - state.mean(axis=-1, keepdims=True) if norm.kind == "layer" else state
            state = state / np.sqrt((state**2).mean(axis=-1, keepdims=True) + norm.eps)
        np.testing.assert_allclose(x, state, rtol=1e-13, atol=1e-13)
        np.testing.assert_array_equal(
            start_laws["text"](model=str(folder), ids=ids.tolist(), layer=layer), x
        )
    bare = start_laws["text"](model=str(folder), text=SENTENCE, special=False)
    np.testing.assert_array_equal(bare, start_laws["text"](model=str(folder), ids=[3, 4, 5, 3, 4]))
    if model.config.is_pre_norm:
        whole = start_laws["text"](model=str(folder), text=SENTENCE, layer=1, fold_norm=False)
        gain = np.asarray(norm.gain, float)
        np.testing.assert_allclose(
            whole, x * gain + (0 if norm.bias is None else norm.bias), rtol=1e-12, atol=1e-12
        )


def test_pieces_do_not_overlap_and_a_batch_draws_them(folder):
    text, long = (
        start_laws["text"],
        " ".join(["the cat sat"] * 6),
    )  # 18 tokens: more than the model has places for
    keys = {"model": str(folder), "text": long, "special": False, "n": 4}
    pieces = [text(**keys, piece=piece) for piece in range(4)]
    ids = ([3, 4, 5] * 6)[:16]
    for piece, found in enumerate(pieces):
        np.testing.assert_array_equal(
            found, text(model=str(folder), ids=ids[4 * piece : 4 * piece + 4])
        )
    resolved = al.resolve(spec_of(folder, start={**keys, "layer": 0, "batch": 12, "rng": 1}))
    which = [
        next(k for k, piece in enumerate(pieces) if np.array_equal(piece, member))
        for member in resolved.x0
    ]
    assert len(set(which)) > 1 and resolved.x0.shape == (12, 4, 12)
    run = al.run_spec(spec_of(folder, start={**keys, "batch": 3}))
    assert run.is_ok and run.states.shape == (3, 3, 4, 12)
    np.testing.assert_allclose(run.x[:, 0], al.resolve(run.spec).x0, rtol=0, atol=1e-13)
    for member, x0 in zip(run.states, al.resolve(run.spec).x0, strict=True):
        np.testing.assert_array_equal(
            al.simulate(run.dynamics.weights, x0, t_end=1.0, saves=3).states, member
        )


@pytest.mark.parametrize(("keys", "words"), [
    ({"text": " "}, "empty"), ({"text": 5}, "must be a sentence, got int"), ({"ids": IDS}, "needs either the key"),
    ({"layer": 2}, "layers are 0 to 1"), ({"special": 1}, "must be true or false"), ({"fold_norm": 0}, "fold_norm must be true"),
    ({"text": " ".join(["cat"] * 12)}, "10 tokens"), ({"n": 2}, "set special = false"), ({"piece": 0}, "give n too"),
    ({"n": 9, "special": False}, "at least n = 9 tokens"), ({"n": 2, "special": False, "piece": 2}, "piece must be 0 to 1"),
    ({"n": 1, "special": False}, "n must be"), ({"d": 3}, "have d = 12, but d = 3"), ({"model": "not/there"}, "no folder"),
    ({"text": "the \ud800"}, "UTF-8|half of one"),
])  # fmt: skip
def test_texts_that_make_no_sense_are_refused(folder, keys, words):
    with pytest.raises(ValueError, match=words):
        al.resolve(spec_of(folder, start=keys))


def test_a_sentence_may_end_like_the_name_of_a_file(folder, tmp_path):
    spec = spec_of(folder, start={"text": "the cat sat on x.csv"})
    spec.save(tmp_path / "a.toml")
    again = al.Spec.load(tmp_path / "a.toml")
    assert again == spec and not again.files and not again.unread_files
    assert al.resolve(again).x0.shape == (9, 12)  # [CLS] the cat sat on x . csv [SEP]


def test_weights_and_text_go_with_other_families_and_laws(folder):
    other = al.resolve(
        al.Spec({"family": "model", "name": str(folder)}, {"law": "sphere", "n": 4}, {"t_end": 1})
    )
    assert other.x0.shape == (4, 12) and other.dynamics.weights.heads == 3
    plain = al.resolve(
        al.Spec(
            {"family": "identity"},
            {"law": "text", "model": str(folder), "text": SENTENCE},
            {"t_end": 1},
        )
    )
    assert plain.dynamics.weights.d == 12 and plain.x0.shape == (7, 12)
    moved = al.resolve(spec_of(folder, start={"moved": {"2": [0.5] * 12}})).x0
    assert (moved[2] == 0.5).all() and np.array_equal(
        moved[[0, 1, 3]], al.resolve(spec_of(folder)).x0[[0, 1, 3]]
    )
    with pytest.raises(ValueError, match="12, but d = 3"):
        al.resolve(spec_of(folder, start={"d": 3}))


# --------------------------------------------------------------------------------------------------
# what has not been fetched


def test_a_model_that_is_not_fetched_is_one_sentence(workplace):
    spec_of("minilm").save(workplace / "a.toml")
    assert "`attnlab fetch minilm` downloads it" in refused("run", "a.toml")
    assert not (workplace / "a.nc").exists()
    with pytest.raises(NotFetched, match="attnlab fetch minilm"):
        al.resolve(spec_of("minilm"))
    with pytest.raises(UnknownName, match="Did you mean 'minilm'"):
        al.resolve(spec_of("minilmm"))


def test_a_spec_downloads_nothing(monkeypatch):
    library = pytest.importorskip("huggingface_hub")
    asked = []

    def answer(repository, **options):
        asked.append(options["local_files_only"])
        raise library.errors.LocalEntryNotFoundError("not here")

    monkeypatch.setattr(library, "snapshot_download", answer)
    with pytest.raises(ValueError, match="`attnlab fetch hf:owner/name@v2` downloads it"):
        al.resolve(spec_of("hf:owner/name@v2"))
    assert asked == [True]


def test_a_model_of_the_hubs_cache_can_be_named(monkeypatch, folder):
    library = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(library, "snapshot_download", lambda repository, **options: str(folder))
    named._read.cache_clear()
    found = flow(al.models.load("hf:owner/name"), 1, 0, ids=IDS, **QUICK)
    assert found.run.spec.weights["name"] == "hf:owner/name"
    np.testing.assert_array_equal(al.run_spec(found.run.spec).states, found.run.states)
    named._read.cache_clear()


def test_a_missing_library_is_a_sentence(folder):
    start = {"law": "text", "model": str(folder), "text": "a cat"}
    code = (
        "import sys; sys.modules['tokenizers'] = None; import attnlab as al\n"
        f"al.resolve(al.Spec({{'family': 'identity'}}, {start!r}, {{'t_end': 1}}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (
        "MissingLibrary: Cutting a text into tokens needs the library tokenizers: pip install"
        in done.stderr
    )


def test_a_spec_without_them_does_not_load_the_models(polytope):
    code = (
        "import sys, attnlab as al\nfrom attnlab.starts import start_laws\nfrom attnlab.weights"
        f" import weights_families\nal.resolve(al.Spec.from_json({polytope.to_json()!r}));"
        " list(start_laws); list(weights_families)\nprint([name for name in sys.modules if"
        " name.startswith('attnlab.models')])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_a_saved_run_is_loaded_without_its_model(tmp_path, monkeypatch):
    folder = write_model(tmp_path / "reader")
    run = al.run_spec(spec_of(folder))
    al.save(run, tmp_path / "run.nc")
    named._read.cache_clear()
    monkeypatch.setattr(named, "load", lambda *_, **__: pytest.fail("a model was read"))
    again = al.load(tmp_path / "run.nc")
    assert again.spec == run.spec and np.array_equal(again.states, run.states)
    assert is_equal(again.dynamics.weights, run.dynamics.weights)
    al.plot(again)
    al.explore(again, tmp_path / "page.html")


# --------------------------------------------------------------------------------------------------
# the flow


def test_random_starts_of_a_flow_are_the_shared_laws():
    """The same bits as the laws that flow had of its own."""
    n, d, seed = 6, 12, 4
    x = np.random.default_rng(seed).normal(size=(n, d))
    np.testing.assert_array_equal(
        starts["sphere"](seed, n, d), x * np.sqrt(d) / np.linalg.norm(x, axis=-1, keepdims=True)
    )
    np.testing.assert_array_equal(starts["normal"](seed, n, d), x)
    np.testing.assert_array_equal(
        starts["cube"](seed, n, d), np.random.default_rng(seed).uniform(-5.0, 5.0, (n, d))
    )
    assert {one.law for one in starts.values()} <= set(start_laws)


@pytest.mark.parametrize("head", [None, 1])
@pytest.mark.parametrize(
    "start",
    [
        {"ids": IDS},
        {"text": SENTENCE},
        {"text": SENTENCE, "special": False, "dt": 0.05},
        {"n": 5, "rng": 3},
        {"start": "normal", "n": 4, "dt": 0},
        {"start": "cube", "n": 4, "stepper": "euler"},
        {"n": 4, "t_end": 1.5, "dt": 7.0},
    ],
)
def test_the_spec_of_a_flow_gives_its_run_again(folder, loaded, head, start):
    found = flow(loaded, 1, head, **{**QUICK, **start})
    again = al.run_spec(al.Spec.from_toml(found.run.spec.to_toml()))
    for name in ("times", "states", "log_scale"):
        assert np.array_equal(getattr(again, name), getattr(found.run, name)), name
    assert (
        is_equal(again.dynamics.weights, found.run.dynamics.weights)
        and again.status is found.run.status
    )
    assert (
        again.stats["evaluations"] == found.run.stats["evaluations"]
        and again.spec == found.run.spec
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_flows_of_every_family_have_their_spec(tmp_path, family):
    model = al.models.load(write_model(tmp_path / family, family))
    found = flow(model, 1, 0, text=SENTENCE, **QUICK)
    again = al.run_spec(found.run.spec)
    np.testing.assert_array_equal(again.states, found.run.states)
    assert again.dynamics.mask == ("causal" if model.config.is_causal else "full")


def test_a_flow_that_stops_early_has_its_spec(loaded):
    found = flow(
        loaded, 0, 0, ids=IDS, t_end=50.0, saves=501, dt=0, max_steps=20, limit=False, check=False
    )
    again = al.run_spec(found.run.spec, throw=False)
    assert again.status is found.run.status and np.array_equal(again.states, found.run.states)


def test_a_model_in_memory_has_no_spec():
    state, raw = tiny_models.bert()
    found = flow(al.models.load(state, config=raw), 0, 0, ids=IDS, **QUICK)
    assert found.run.spec is None


def test_a_saved_flow_keeps_its_spec(loaded, tmp_path):
    found = flow(loaded, 0, 0, ids=IDS, **QUICK)
    al.save(found, tmp_path / "flow.nc")
    assert al.load(tmp_path / "flow.nc").run.spec == found.run.spec


@pytest.mark.parametrize(("head", "is_answered"), [(0, True), (1, False), (2, True)])
def test_the_limit_of_a_spec_is_that_of_the_flow(loaded, head, is_answered):
    """Heads 0 and 2 of this tiny model are answered; head 1 takes more work than is allowed
    here.
    """
    found = flow(loaded, 0, head, ids=IDS, t_end=1.0, saves=6, check=False, work=2e4, budget=100.0)
    again = limit_of_spec(found.run.spec, work=2e4, budget=100.0)
    assert (again.grade != "undecided") == is_answered and again.spec == found.run.spec
    if is_answered:
        assert np.array_equal(again.labels, found.limit.labels) and np.array_equal(
            again.leaders, found.limit.leaders
        )
        atol = (
            again.error + found.limit.error + 1e-13 * np.abs(again.points).max()
        )  # a run gives its first tokens to rounding
        np.testing.assert_allclose(again.points, found.limit.points, rtol=0, atol=atol)
        assert found.limit.spec == found.run.spec and again.error < 1e-7
    else:
        assert found.limit is None and found.no_limit == again.reason and "(work)" in again.reason


def test_the_limit_of_several_heads_is_undecided_in_a_sentence(folder, workplace):
    spec_of(folder, weights={"head": [0, 2]}).save("heads.toml")
    said = attnlab("limit", "heads.toml", code=1).stdout
    assert "2 heads with different scores" in " ".join(said.replace("│", " ").split())


def test_verify_resolves_the_spec_of_a_limit(tmp_path):
    folder = write_model(tmp_path / "reader")
    found = limit_of_spec(
        spec_of(folder, weights={"layer": 0}, start={"layer": 0}), work=2e4, budget=100.0
    )
    assert found.certified
    al.save(found, tmp_path / "limit.nc")
    assert [
        check.holds for check in al.verify(tmp_path / "limit.nc").checks if check.name == "Spec"
    ] == [True]
    (folder / "config.json").unlink()
    gone = al.verify(tmp_path / "limit.nc")
    assert gone.holds and any("which cannot be read here" in one for one in gone.not_checked)


# --------------------------------------------------------------------------------------------------
# the command line


def test_flow_writes_a_spec_that_the_other_verbs_take(folder, workplace):
    attnlab(
        "flow",
        folder,
        "--layer",
        1,
        "--head",
        1,
        "--text",
        SENTENCE,
        "--t-end",
        1,
        "--saves",
        6,
        "--no-limit",
        "--no-check",
        "--spec",
        "head.toml",
    )
    spec = al.Spec.load("head.toml")
    assert (
        spec.weights == {"family": "model", "name": str(folder), "layer": 1, "head": 1}
        and spec.start["text"] == SENTENCE
    )
    attnlab("run", "head.toml", "-o", "head.nc", "--figure", "head.png")
    run = al.load("head.nc")
    assert run.is_ok and run.spec == spec and run.states.shape == (6, 7, 12)
    attnlab("explore", "head.toml", "-o", "head.html", "--work", 1e4, "--no-open")
    assert (workplace / "head.html").stat().st_size > 100_000
    record = json.loads(attnlab("limit", "head.toml", "--json", "--work", 2e4).stdout)
    assert len(record["labels"]) == 7
    assert "must end in .toml or .json" in refused("flow", folder, "--spec", "head.txt")
    assert "exists already" in refused("flow", folder, "--spec", "head.toml")


def test_the_page_of_a_flow_has_a_spec_that_runs(folder, loaded, tmp_path):
    from attnlab.explorer.trained import flow_view

    found = flow(loaded, 1, 0, text=SENTENCE, **QUICK)
    assert flow_view(found).spec == found.run.spec
    in_memory = flow(
        al.models.load(tiny_models.bert()[0], config=tiny_models.bert()[1]), 1, 0, ids=IDS, **QUICK
    )
    assert flow_view(in_memory).spec.weights["source"] == "in-memory model L1H0"


def test_the_front_end_of_a_notebook_cannot_open_a_model(folder, monkeypatch):
    from attnlab.explorer.incoming import read_spec

    monkeypatch.setattr(named, "load", lambda *_, **__: pytest.fail("a model was read"))
    text, cube = spec_of(folder).start, {"law": "uniform_cube", "n": 4, "d": 2}
    refusals = (
        (spec_of(folder).weights, cube, "draws the families"),
        ({"family": "identity"}, text, "draws the start laws"),
    )
    for weights, start, words in refusals:
        with pytest.raises(ValueError, match=words):
            read_spec({"weights": weights, "start": start, "solve": {"t_end": 1.0}})


def test_tokens_that_a_page_cannot_draw_are_written_into_it(folder):
    from attnlab.explorer.payload import live_spec

    spec = spec_of(folder, start={"moved": {"0": [1.0, 2.0]}})
    x0 = np.array([[1.0, 2.0], [3.0, 4.0]])
    live, why_not = live_spec(spec, al.Dynamics.of(al.Weights(V=np.eye(2))), x0)
    assert (
        why_not == ""
        and live.start == {"law": "given", "x": x0.tolist()}
        and live.weights["family"] == "given"
    )


def test_figures_say_the_seed_only_where_something_is_drawn(folder):
    from attnlab.render.about import describe_seed

    assert describe_seed(spec_of(folder)) == ""
    keys = {"n": 2, "special": False, "rng": 5}
    assert describe_seed(spec_of(folder, start=keys)) == "seed\u00a05"
    assert describe_seed(spec_of(folder, start={**keys, "piece": 0})) == ""


def test_the_page_about_models_has_a_spec_that_runs(workplace, monkeypatch):
    folder = tiny_models.write_folder(workplace / "model", *tiny_models.bert(layers=6, heads=12))
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    monkeypatch.setattr(catalog, "folder_of", lambda name: folder)
    section = (
        (DOCS / "models.md").read_text().split("## A trained head as a Spec")[1].split("\n## ")[0]
    )
    (workplace / "head.toml").write_text(re.search(r"```toml\n(.*?)```", section, re.DOTALL)[1])
    lines = [
        line.split("attnlab ")[1]
        for line in section.splitlines()
        if line.startswith("    attnlab ")
    ]
    more = {
        "run": [],
        "limit": ["--work", "2e4"],
        "explore": ["--work", "2e4"],
        "flow": ["--force", "--no-limit", "--no-check"],
    }
    for line in lines:
        verb, *words = shlex.split(line)
        attnlab(
            verb, *words, *more[verb], code=int(verb == "limit")
        )  # nothing grows in this head: undecided
    assert (
        len(lines) == 4
        and al.load("head.nc").states.shape == (101, 9, 12)
        and (workplace / "head.html").is_file()
    )
    again = al.Spec.load("head.toml")
    assert (
        again.weights == al.load("head.nc").spec.weights
        and again.start["text"] == al.load("head.nc").spec.start["text"]
    )


def test_a_head_of_minilm():
    if not catalog.is_cached("minilm"):
        pytest.skip("minilm has not been fetched")
    text = "The cat sat on the mat."
    found = flow(
        al.models.load("minilm"), 5, 10, text=text, t_end=0.2, saves=3, limit=False, check=False
    )
    assert found.run.spec.weights == {"family": "model", "name": "minilm", "layer": 5, "head": 10}
    again = al.run_spec(found.run.spec)
    np.testing.assert_array_equal(again.states, found.run.states)
