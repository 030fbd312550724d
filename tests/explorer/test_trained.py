"""Recordings of trained heads and sentences: what a page holds of a Flow and of the Dataset of a
sentence.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
from pathlib import Path

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.explorer import explore
from attnlab.explorer.trained import sentence_views
from command_line import attnlab, refused
from unpack import unpack_leaders, unpack_shares, unpack_tokens

IDS = [3, 1, 4, 1, 5]
HOSTILE = "</script><script>alert(1)</script>"


def made(family: str) -> al.models.Model:
    state, raw = getattr(tiny_models, family)()
    return al.models.load(state, config=raw)


@pytest.fixture(scope="module")
def model() -> al.models.Model:
    return made("bert")


@pytest.fixture(scope="module")
def flow(model):
    return al.models.flow(model, 1, 2, ids=IDS, t_end=2.0, limit=False, check=False)


@pytest.fixture(scope="module")
def data(model):
    return al.models.sentence(model, ids=IDS, only=["twin"])


def payload_of(path: Path) -> dict:
    found = re.search(
        r'<script type="application/json" id="attnlab-payload">(.*?)</script>',
        path.read_text("utf-8"),
        re.DOTALL,
    )
    return json.loads(found[1])


def shown(folder: Path, source, **options) -> dict:
    return payload_of(explore(source, folder / "page.html", **options))


def views(payload: dict) -> dict[str, dict]:
    return {preset["id"]: preset for preset in payload["presets"]}


# --------------------------------------------------------------------------------------------------
# a flow


def test_a_flow(tmp_path, flow):
    payload = shown(tmp_path, flow)
    (view,) = payload["presets"]
    recording = view["recording"]
    assert (
        payload["state"]["preset"] == view["id"] == "L1H2" and "presets" in payload["hide"]
    )  # a switch of one is none
    assert payload["title"] == flow.name and "recording" not in payload
    assert (
        recording["words"] == list(flow.words)
        and recording["dimension"] == 12
        and recording["d"] == 3
    )
    assert "until" not in recording and recording["times"][-1] == 2.0
    assert recording["ending"]["kind"] == "open" and "t = 2" in recording["ending"]["text"]
    assert payload["says"][0]["spec"] == view["spec"] == payload["state"]["spec"]


def test_the_axes_of_a_flow_are_those_of_its_directions(tmp_path, flow):
    recording = shown(tmp_path, flow)["presets"][0]["recording"]
    x = flow.run.x / np.linalg.norm(flow.run.x, axis=-1, keepdims=True)
    flat = x.reshape(-1, x.shape[-1]) - x.reshape(-1, x.shape[-1]).mean(axis=0)
    shares = np.linalg.svd(flat, compute_uv=False) ** 2 / np.sum(flat**2)
    assert recording["axes"] == [f"{share:.0%} of the variance" for share in shares[:3]]
    ends = unpack_tokens(recording)[-1]
    between = np.linalg.norm(ends[:, None] - ends[None], axis=-1)
    assert (
        between <= np.linalg.norm(x[-1][:, None] - x[-1][None], axis=-1) + 1e-4
    ).all()  # a projection shortens


@pytest.mark.parametrize(
    "kind, words",
    [
        ("good triple", "three parallel hyperplanes"),
        ("complex", "complex pair"),
        ("negative", "negative"),
        ("positive", "positive"),
    ],
)
def test_what_theory_says_about_a_head(tmp_path, model, monkeypatch, flow, kind, words):
    monkeypatch.setattr("attnlab.explorer.trained.verdict", lambda numbers: kind)
    said = shown(tmp_path, flow)["says"][0]
    assert words in said["says"] and (said["cite"] == "Theorem 4.2") == (kind == "good triple")


def test_a_certified_limit_is_said_in_words(tmp_path, flow):
    certified = dataclasses.replace(
        flow, limit=types.SimpleNamespace(count=2, t=3.25, certified=True)
    )
    ending = shown(tmp_path, certified)["presets"][0]["recording"]["ending"]
    assert (
        ending["kind"] == "certified"
        and ending["mark"] == "2 limits, certified"
        and "t = 3.25" in ending["text"]
    )


def test_a_reason_is_cut_after_its_first_sentence(tmp_path, flow):
    said = "Undecided (not covered): V has no basis of eigenvectors. Its rank is 32 in d = 384."
    why = dataclasses.replace(flow, no_limit=said)
    text = shown(tmp_path, why)["presets"][0]["recording"]["ending"]["text"]
    assert text.startswith("V has no basis of eigenvectors. The run ends at t = 2 in ")


def test_all_heads_of_a_layer(tmp_path, model):
    found = al.models.flow(model, 0, ids=IDS, t_end=1.0, limit=False)
    payload = shown(tmp_path, found)
    assert (
        payload["presets"][0]["recording"]["heads"] == 3 and "3 heads" in payload["says"][0]["says"]
    )


# --------------------------------------------------------------------------------------------------
# a sentence


def test_a_sentence_layer_by_layer(tmp_path, model, data):
    found = views(shown(tmp_path, data))
    assert list(found) == ["real", "twin"] and found["real"]["name"] == "Real stack"
    for name, view in found.items():
        recording = view["recording"]
        assert (
            recording["times"] == [0.0, 1.0, 2.0]
            and recording["until"] == 2.0
            and recording["T"] == 3
        )
        assert recording["groups"] == data["clusters"].sel(variant=name).values.tolist()
        assert (
            recording["box"] == found["real"]["recording"]["box"]
            and recording["axes"] == found["real"]["recording"]["axes"]
        )
    attends = unpack_leaders(found["real"]["recording"])
    np.testing.assert_array_equal(attends[:2], model.attention(IDS).mean(axis=1).argmax(axis=-1))
    shares = unpack_shares(found["real"]["recording"])
    np.testing.assert_allclose(
        shares[:2], model.attention(IDS).mean(axis=1).max(axis=-1), atol=0.5 / 255 + 1e-6
    )
    assert (attends[2] == -1).all()  # no layer reads the last tokens


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_both_stacks_are_drawn_on_the_same_axes(family):
    """Differences between the stacks in the picture are those of the directions, projected on one
    set of orthonormal axes.
    """
    data = al.models.sentence(made(family), ids=IDS, only=["twin"])
    drawn = {view.id: unpack_tokens(view.recording) for view in sentence_views(data)}
    x = {name: data["x"].sel(variant=name).values for name in drawn}
    unit = {
        name: values / np.linalg.norm(values, axis=-1, keepdims=True) for name, values in x.items()
    }
    flat = np.concatenate([unit["real"], unit["twin"]]).reshape(-1, 12)
    axes = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)[2][:3]
    wanted = (unit["real"] - unit["twin"]) @ axes.T
    signs = np.sign(
        np.sum(wanted * (drawn["real"] - drawn["twin"]), axis=(0, 1))
    )  # an axis may point the other way
    np.testing.assert_allclose(
        drawn["real"] - drawn["twin"], wanted * np.where(signs == 0, 1, signs), atol=3e-4
    )


def test_a_stack_that_overflows_ends_early(data):
    spoiled = data.copy(deep=True)
    spoiled["x"].values[1, 2] = np.nan
    spoiled["label"].values[1, 2] = np.nan
    recordings = {view.id: view.recording for view in sentence_views(spoiled)}
    assert recordings["real"]["until"] == 2.0 and recordings["twin"]["until"] == 1.0


def test_an_older_sentence_knows_no_leaders(data):
    recording = sentence_views(data.drop_vars(["attends", "attends_share"]))[0].recording
    assert (unpack_leaders(recording) == -1).all() and "shares" not in recording


def test_a_head_beside_the_sentence(tmp_path, flow, data):
    payload = shown(tmp_path, [flow, data])
    assert list(views(payload)) == ["L1H2", "real", "twin"] and "presets" not in payload["hide"]
    assert (
        len({json.dumps(view["spec"]) for view in payload["presets"]}) == 3
    )  # what is said belongs to one of them
    with pytest.raises(ValueError, match="Give each source once"):
        explore([flow, flow], tmp_path / "page.html")


def test_saved_flows_and_sentences(tmp_path, flow, data):
    for name, source, first in (("flow", flow, "L1H2"), ("sentence", data, "real")):
        al.save(source, tmp_path / f"{name}.nc")
        payload = shown(tmp_path, tmp_path / f"{name}.nc")
        assert payload["state"]["preset"] == first and payload["title"] == name


def test_words_of_strangers_stay_words(tmp_path, data, flow):
    changed = data.assign_coords(word=("token", [HOSTILE, "\x1b[2J", "b", "\u202ec", "d"]))
    changed.attrs["text"] = changed.attrs["model"] = HOSTILE
    text = explore(changed, tmp_path / "page.html").read_text("utf-8")
    assert (
        text.count("<script") == 3
        and text.count("</script>") == 3
        and "alert(1)</script>" not in text
    )
    assert payload_of(tmp_path / "page.html")["presets"][0]["recording"]["words"][0] == HOSTILE


# --------------------------------------------------------------------------------------------------
# the command line


@pytest.fixture
def folder(workplace):
    tiny_models.write_folder(workplace / "tiny", *tiny_models.bert())
    return workplace


def test_the_command(folder):
    result = attnlab(
        "explore",
        "--model",
        "tiny",
        "--ids",
        "3,1,4",
        "--layer",
        "1",
        "--head",
        "2",
        "--t-end",
        "1",
        "-o",
        "page.html",
        "--no-open",
    )
    assert "Open page.html" in result.stdout
    assert list(views(payload_of(folder / "page.html"))) == ["L1H2", "real", "twin"]
    attnlab("explore", "--model", "tiny", "--ids", "3,1,4", "-o", "page.html", "--no-open")
    assert list(views(payload_of(folder / "page.html"))) == ["real", "twin"]


@pytest.mark.parametrize("options, words", [
    (("--model", "tiny"), "Give either --text"), (("--model", "tiny", "--ids", "1,2", "--text", "a"), "or --ids"),
    (("--model", "tiny", "--ids", "1,2", "--head", "1"), "Give --layer too"), (("--text", "a cat"), "needs --model"),
    (("--layer", "0"), "needs --model"), (("polytope", "--model", "tiny", "--ids", "1,2"), "Give one of the two"),
    (("--model", "tiny", "--text", "a cat"), "has no tokenizer"), (("--model", "tiny", "--ids", "1,x"), "whole numbers"),
    (("--model", "tiny", "--ids", "1,2", "--layer", "9"), "layer"), (("--model", "minilmm", "--ids", "1,2"), "minilm"),
])  # fmt: skip
def test_what_does_not_go_together_is_said(folder, options, words):
    assert words in refused("explore", *options, "-o", "page.html")
    assert not (folder / "page.html").exists()


def test_a_model_that_is_not_fetched(workplace, monkeypatch):
    monkeypatch.setenv("ATTNLAB_MODELS", str(workplace / "empty"))
    said = refused("explore", "--model", "minilm", "--text", "a cat", "-o", "page.html")
    assert "attnlab fetch minilm" in said and not (workplace / "page.html").exists()
