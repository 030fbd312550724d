"""Flows with trained weights: the run is the theory's, numbers are what they claim, and the command
line says what is wrong.
"""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import xarray

import attnlab as al
import tiny_models
from attnlab.cli.flow import flow as flow_command
from attnlab.cli.say import as_options
from attnlab.models.checkpoints.forward import attention_matrix
from attnlab.models.checkpoints.token_norms import measure_radius
from attnlab.models.studies import flows
from attnlab.models.studies.flows import flow
from attnlab.registry import UnknownName
from attnlab.types import Status
from command_line import attnlab, refused

FAMILIES = ("bert", "albert", "gpt2", "llama")
IDS = [3, 1, 4, 1, 5, 9, 2]
QUICK = {"t_end": 1.0, "saves": 6, "limit": False, "check": False}


def made(family: str) -> al.models.Model:
    state, raw = getattr(tiny_models, family)()
    return al.models.load(state, config=raw)


@pytest.fixture(scope="module")
def bert():
    return made("bert")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_models.write_folder(tmp_path_factory.mktemp("models") / "tiny", *tiny_models.bert())


def by_hand(weights, x, is_causal):
    """The attention (h, n, n) of tokens x (n, d), written out."""
    scores = np.einsum("hkd,id,hke,je->hij", weights.Q, x, weights.K, x, optimize=True)
    if is_causal:
        scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
    P = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return P / P.sum(axis=-1, keepdims=True)


def test_the_smallest_group_of_coordinates_is_found_once_for_all():
    """What an engine asks at every step, for groups of hundreds of coordinates as those of a narrow
    head are.
    """
    from attnlab.engine.stages import smallest_group

    rng = np.random.default_rng(0)
    y, group = (
        rng.normal(size=(40, 8)) * 10.0 ** rng.integers(-9, 9, size=(40, 1)),
        rng.integers(0, 6, size=40),
    )
    y[group == 2] = 0.0
    sizes = [np.abs(y[group == name]).max() for name in range(6)]
    assert smallest_group(y, group, np.full(40, 7.0)) == min(size for size in sizes if size > 0)
    assert smallest_group(np.zeros((3, 8)), np.zeros(3, dtype=np.int64), np.ones(3)) == np.inf


# --------------------------------------------------------------------------------------------------
# the run


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("head", [None, 1])
def test_the_flow_is_the_theorys(family, head):
    model = made(family)
    found = flow(model, 1, head, ids=IDS, **QUICK)
    weights, is_causal = model.weights(1, head), model.config.is_causal
    run = al.simulate(
        weights,
        found.run.x[0],
        t_end=1.0,
        saves=6,
        rtol=1e-11,
        mask="causal" if is_causal else "full",
    )
    np.testing.assert_allclose(found.run.x, run.x, rtol=0, atol=1e-4 * np.abs(run.x).max())
    received = np.stack([by_hand(weights, x, is_causal).mean(axis=(0, 1)) for x in found.run.x])
    np.testing.assert_allclose(found.data["received"].values, received, atol=1e-9)
    np.testing.assert_array_equal(found.data["leader"].values, received.argmax(axis=1))
    for at, x in enumerate(found.run.x):
        P = by_hand(weights, x, is_causal)
        order = -np.sort(-np.abs(np.linalg.eigvals(P.mean(axis=0))))
        np.testing.assert_allclose(found.data["mean_eigenvalue"].values[at], order, atol=1e-6)
        members = found.data["label"].values[-1]
    for one in found.clusters:
        looks = (
            by_hand(weights, found.run.x[-1], is_causal)
            .mean(axis=0)[list(one.members)]
            .mean(axis=0)
        )
        assert one.leader == int(looks.argmax()) and one.share == pytest.approx(
            looks.max(), abs=1e-6
        )
        assert len({members[i] for i in one.members}) == 1
    np.testing.assert_allclose(
        found.data["log_norm"], np.log(np.linalg.norm(found.run.x, axis=-1)).mean(axis=1)
    )


def test_a_text_starts_where_it_enters_the_layer(bert):
    for layer in (0, 1):
        found = flow(bert, layer, ids=IDS, **QUICK)
        np.testing.assert_allclose(
            found.run.x[0], bert.hidden_states(IDS)[layer], rtol=1e-13, atol=1e-13
        )
        assert (
            found.words == tuple(f"#{i}" for i in IDS)
            and f"enters layer {layer}" in found.data.attrs["start"]
        )


def test_special_tokens_can_be_left_out(tmp_path):
    from tiny_models import TOKENIZER

    folder = tiny_models.write_folder(tmp_path / "reader", *tiny_models.bert())
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    model = al.models.load(folder)
    assert flow(model, text="The cat sat", **QUICK).words == ("[CLS]", "the", "cat", "sat", "[SEP]")
    assert flow(model, text="The cat sat", special=False, **QUICK).words == ("the", "cat", "sat")


@pytest.mark.parametrize("family", ["gpt2", "llama", "gpt_neox"])
def test_before_a_norm_what_attention_reads_has_length_root_d(family):
    model = made(family)
    x0, state = flow(model, 1, ids=IDS, **QUICK).run.x[0], model.hidden_states(IDS)[1]
    norm = model.parts.layers[1].attention_block.norm_before
    state = state - state.mean(axis=-1, keepdims=True) if norm.kind == "layer" else state
    np.testing.assert_allclose(
        x0, state / np.sqrt((state**2).mean(axis=-1, keepdims=True) + norm.eps)
    )
    # and so attention at t = 0 is that of the model, but for the bias of the norm and those of
    # queries and keys
    bare = replace(model.parts.layers[1].attention, query_bias=None, key_bias=None)
    P = attention_matrix(bare, x0 * np.asarray(norm.gain, float), np.tri(len(IDS), dtype=bool))
    if model.config.rope_theta is None:
        np.testing.assert_allclose(
            flow(model, 1, ids=IDS, **QUICK).data["received"].values[0],
            P.mean(axis=(0, 1)),
            atol=1e-9,
        )


def test_steps_longer_than_the_run_are_cut_so_that_two_runs_differ(bert):
    found = flow(bert, ids=IDS, dt=100.0, **QUICK)
    assert found.run.stats["steps"] == 2 and found.data["apart"].values[-1].max() > 0
    with pytest.raises(ValueError, match="finite time"):
        flow(bert, ids=IDS, **{**QUICK, "t_end": np.inf, "dt": 0.1})


def test_random_starts(bert):
    sphere = flow(bert, n=5, rng=3, **QUICK)
    radius, source = measure_radius(bert, 0)
    np.testing.assert_allclose(np.linalg.norm(sphere.run.x[0], axis=-1), radius)
    assert abs(radius / np.sqrt(12) - 1) > 0.02 and source in sphere.data.attrs["start"]
    other = flow(bert, 1, n=5, rng=3, **QUICK).run.x[0]  # each layer has its own
    np.testing.assert_allclose(np.linalg.norm(other, axis=-1), measure_radius(bert, 1)[0])
    np.testing.assert_array_equal(
        sphere.run.x, flow(bert, start="sphere", n=5, rng=3, **QUICK).run.x
    )
    assert not np.array_equal(sphere.run.x[0], flow(bert, n=5, rng=4, **QUICK).run.x[0])
    cube = flow(bert, start="cube", n=200, t_end=1e-9, saves=2, limit=False, check=False).run.x[0]
    assert 4.9 < np.abs(cube).max() <= 5.0 and abs(cube.mean()) < 0.3
    assert flow(bert, **QUICK).run.n == 30


def test_steps_of_one_length_are_compared_with_longer_ones(bert):
    exact = flow(bert, 0, 0, ids=IDS, dt=0, rtol=1e-11, **QUICK)
    found = flow(bert, 0, 0, ids=IDS, dt=0.05, **QUICK)
    assert (
        "apart" not in exact.data
        and len(exact.in_doubt) == 0
        and "adaptive" in exact.data.attrs["solved"]
    )
    assert (
        found.run.solve.dt == 0.05
        and found.run.stats["steps"] == 20
        and found.data["apart"].shape == (6, 7)
    )

    def directions(run):
        return run.x / np.linalg.norm(run.x, axis=-1, keepdims=True)

    coarse = al.simulate(
        bert.weights(0, 0), exact.run.x[0], t_end=1.0, saves=6, stepper="rk4", dt=0.1, frame="x"
    )
    apart = np.linalg.norm(directions(found.run) - directions(coarse), axis=-1)
    np.testing.assert_allclose(found.data["apart"], apart, atol=1e-12)
    error = np.linalg.norm(directions(found.run) - directions(exact.run), axis=-1)
    assert 0 < error.max() < apart.max() < 1e-2


@pytest.mark.parametrize(
    ("options", "stepper", "dt"),
    [
        ({"stepper": "adaptive"}, "adaptive", None),
        ({"stepper": "rk4"}, "rk4", 0.01),
        ({"stepper": "euler", "dt": 0.1}, "euler", 0.1),
        ({"dt": 0.05}, "rk4", 0.05),
        ({"dt": 0}, "adaptive", None),
    ],
)
def test_the_stepper_can_be_chosen(bert, options, stepper, dt):
    found = flow(bert, 0, 0, n=4, t_end=0.5, saves=3, limit=False, check=False, **options)
    assert (found.run.solve.stepper, found.run.solve.dt) == (stepper, dt)
    assert found.data.attrs["solved"].startswith(
        "adaptive" if stepper == "adaptive" else f"steps of {dt:g}"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stepper": "adaptive", "dt": 0.1}, "chooses its own steps"),
        ({"stepper": "rk4", "dt": 0}, "steps of some length"),
        ({"stepper": "rk5"}, "Did you mean 'rk4'"),
    ],
)
def test_steppers_that_make_no_sense_are_refused(bert, options, words):
    with pytest.raises((ValueError, UnknownName), match=words):
        flow(bert, 0, 0, n=4, t_end=0.5, **options)


def test_messages_name_only_arguments_that_flow_has(bert):
    arguments = set(inspect.signature(flow).parameters)
    seen = set()
    fixed = [{"stepper": name, "dt": 0.25} for name in ("euler", "rk4")]
    for options in (*fixed, {"rtol": 1e-3}, {"t_end": 0.1}, {"t_end": 50.0}):
        found = flow(
            bert,
            0,
            0,
            **({"n": 6, "t_end": 2.0, "saves": 9, "budget": 1.0, "check": True} | options),
        )
        sentences = [
            found.no_limit,
            found.no_check,
            found.status,
            *(one.unmet for one in found.verdicts),
        ]
        seen |= {
            name for text in sentences for name in re.findall(r"\b([a-z_]+) ?= ?[\"\d.]", text)
        }
    assert seen - {"t"} and seen - {"t"} <= arguments, seen


def test_the_command_line_spells_advice_as_its_own_options():
    words = (
        'use stepper="adaptive" instead of "rk4"; t_end = 8.4 would decide; use rtol=1e-08 instead'
        " of 1e-06; t = 5"
    )
    said = as_options(words, flow_command)
    assert (
        said
        == 'use --stepper adaptive instead of "rk4"; --t-end 8.4 would decide; use --rtol 1e-08'
        " instead of 1e-06; t = 5"
    )


def test_a_token_that_depends_on_the_steps_is_in_doubt(bert):
    found = flow(bert, 0, 0, ids=IDS, dt=0.05, **QUICK)
    apart = found.data["apart"].values.copy()
    apart[-1, 2], apart[0, 4] = 0.3, 0.3
    found.data["apart"] = (("time", "token"), apart)
    assert found.in_doubt.tolist() == [2]


def test_a_run_that_stops_early_is_kept_as_far_as_it_got(bert):
    found = flow(
        bert, 0, 0, ids=IDS, t_end=50.0, saves=501, dt=0, max_steps=20, limit=False, check=False
    )
    assert found.run.status is Status.MAX_STEPS and found.data.attrs["status"] == "MAX_STEPS"
    assert (
        1 < found.data.sizes["time"] < 501
        and "stopped at t = " in found.status
        and "of 50" in found.status
    )
    full = flow(bert, 0, 0, ids=IDS, **QUICK)
    assert full.status == Status.OK.value


# --------------------------------------------------------------------------------------------------
# the numbers


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_eigenvalues_of_attention(family):
    model = made(family)
    found = flow(model, 0, ids=IDS, **QUICK)
    data, weights = found.data, model.weights(0)
    for at in (0, -1):
        P = by_hand(weights, found.run.x[at], model.config.is_causal)
        expected = [sorted(np.abs(np.linalg.eigvals(one)), reverse=True) for one in P]
        np.testing.assert_allclose(data["eigenvalue"].values[at], expected, atol=1e-7)
        singular = np.linalg.svd(P[0], compute_uv=False)
        share = singular / singular.sum()
        np.testing.assert_allclose(
            data["attention_rank"].values[at, 0], np.exp(-np.sum(share * np.log(share)))
        )
    for name in ("eigenvalue", "mean_eigenvalue"):
        assert (np.diff(data[name].values, axis=-1) <= 0).all()
    np.testing.assert_allclose(data["eigenvalue"].values[..., 0], 1.0, atol=1e-12)
    np.testing.assert_allclose(data["radius"], model.config.heads, atol=1e-11)


def test_clusters_and_their_leaders():
    """Planted: V = I and two antipodal pairs, so two clusters; in each the longer token is attended
    to.
    """
    d = 4
    weights = al.Weights(V=np.eye(d), Q=np.eye(d), K=np.eye(d))
    x0 = np.array(
        [
            [3.0, 0.1, 0, 0],
            [2.0, -0.1, 0, 0],
            [-2.0, 0, 0.1, 0],
            [-4.0, 0, -0.1, 0],
            [-1.0, 0, 0.1, 0],
        ]
    )
    run = al.simulate(weights, x0, t_end=1.0, saves=3)
    data = flows.measure_flow(run, list("abcde"))
    found = flows.Flow(run, data, tuple("abcde"))
    first, second = found.clusters
    assert (first.members, first.leader, second.members, second.leader) == ((2, 3, 4), 3, (0, 1), 0)
    assert first.share > 0.99 and first.cosine > 0.99 and second.nearest in (0, 1)
    assert data["clusters"].values.tolist() == [2, 2, 2] and data["cosine"].values[-1] < 0


def test_the_heads_that_took_part_are_measured(bert):
    found = flow(bert, 1, 2, ids=IDS, **QUICK)
    (one,) = found.heads
    values = np.linalg.eigvals(bert.weights(1, 2).full_V[0])
    assert (one.layer, one.head) == (1, 2)
    np.testing.assert_allclose(abs(one.numbers.lambda1), np.abs(values).max())
    assert [one.head for one in flow(bert, 1, ids=IDS, **QUICK).heads] == [0, 1, 2]


def test_limit_and_verdicts_or_why_not(bert):
    several = flow(bert, ids=IDS, t_end=1.0, saves=6)
    assert (
        several.limit is None
        and "one head" in several.no_limit
        and several.verdicts == ()
        and "one head" in several.no_check
    )
    one = flow(bert, 0, 0, ids=[3, 1, 4], t_end=1.0, saves=6, budget=5)
    assert [verdict.theorem for verdict in one.verdicts] == list(
        flows.RESULTS
    ) and one.no_check == ""
    assert (one.limit is None) == bool(one.no_limit)
    unasked = flow(bert, 0, 0, ids=IDS, **QUICK)
    assert unasked.no_limit == unasked.no_check == "not asked for" and unasked.verdicts == ()


def test_large_checks_wait_until_they_are_asked_for():
    weights = al.Weights(
        Q=np.ones((64, 768)), K=np.ones((64, 768)), V=(np.ones((768, 64)), np.ones((64, 768)))
    )
    assert flows._why_no_check(weights, 30, None) == "" == flows._why_no_check(weights, 128, True)
    assert "128 tokens" in flows._why_no_check(weights, 128, None)


def test_the_papers_name_of_a_head_is_for_its_model_only(bert):
    assert flow(bert, 0, 0, ids=IDS, **QUICK).data.attrs["paper"] == ""

    class Large:
        class config:
            family, d, heads = "albert", 2048, 16

    assert flows._paper(Large, 4) == "paper: head 5" and flows._paper(Large, None) == ""


def test_progress_is_told(bert):
    told = []
    flow(
        bert,
        0,
        0,
        ids=IDS,
        t_end=1.0,
        saves=6,
        budget=5,
        progress=lambda fraction, at: told.append((fraction, at)),
    )
    fractions = [fraction for fraction, _ in told]
    assert (
        fractions == sorted(fractions)
        and fractions[0] == 0
        and fractions[-1] == 1
        and "simulating" in told[0][1]
    )


# --------------------------------------------------------------------------------------------------
# bad input


@pytest.mark.parametrize(("options", "words"), [
    ({"text": ""}, "empty"), ({"ids": [3]}, "at least two tokens"), ({"ids": [1, 99]}, "0 to 18"),
    ({"ids": [1] * 11}, "10 tokens"),
    ({"ids": IDS, "start": "sphere"}, "one of them"), ({"ids": IDS, "n": 4}, "one of them"), ({"n": 1}, "2 or more"),
    ({"text": "a", "ids": IDS}, "one of the two"), ({"cosine": 1.0}, "cosine"), ({"rng": -1}, "seed"),
    ({"dt": -1.0}, "dt must be"),
    ({"layer": 2}, "layers are 0 to 1"), ({"head": 3}, "heads are 0 to 2"), ({"t_end": -1.0}, "t_end"), ({"saves": 1}, "saves"),
    ({"budget": 0.0, "head": 0}, "budget"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(bert, options, words):
    with pytest.raises(ValueError, match=words):
        flow(bert, **{"n": None, "t_end": 0.1, "saves": 2, **options})


def test_an_unknown_start_has_its_nearest_name(bert):
    with pytest.raises(UnknownName, match="Did you mean 'sphere'"):
        flow(bert, start="spere")


# --------------------------------------------------------------------------------------------------
# the figure


@pytest.mark.parametrize(
    "options",
    [
        {"head": 0, "ids": IDS},
        {"ids": IDS},
        {"n": 60, "start": "cube"},
        {"head": 1, "n": 2},
        {"head": 1, "n": 2, "saves": 2},
    ],
)
def test_figures(bert, options, tmp_path):
    from attnlab.render.flow_figure import draw_flow

    found = flow(bert, **{**QUICK, **options})
    figure = draw_flow(found)
    figure.savefig(tmp_path / "flow.png")
    assert (tmp_path / "flow.png").stat().st_size > 20_000
    plane, space = figure.axes[:2]
    share = f"({100 * float(found.data['explained'][0]):.0f} %)"
    assert share in plane.get_xlabel() and share in space.get_xlabel()
    np.testing.assert_allclose(
        np.concatenate([c.get_offsets() for c in plane.collections if c.get_label() == "end"]),
        found.data["plane"].values[-1, :, :2],
    )
    rows = [label.get_text() for label in figure.axes[5].get_yticklabels()]
    assert rows == list(found.words) if found.run.n <= 44 else 0 < len(rows) < 44
    words = {text.get_text() for text in plane.texts}
    assert (
        set(found.words) <= words
        if found.run.n <= 20
        else found.words[int(found.data["leader"][-1])] in words
    )


def test_clusters_have_colours_and_leaders_rings(bert):
    from attnlab.render.flow_figure import look_of

    d = 4
    weights = al.Weights(V=np.eye(d))
    x0 = np.array(
        [
            [3.0, 0.1, 0, 0],
            [2.0, -0.1, 0, 0],
            [-2.0, 0, 0.1, 0],
            [-4.0, 0, -0.1, 0],
            [-1.0, 0, 0.1, 0],
            [0, 0, 0, 2.0],
        ]
    )
    run = al.simulate(weights, x0, t_end=0.2, saves=3)
    look = look_of(flows.Flow(run, flows.measure_flow(run, list("abcdef")), tuple("abcdef")))
    assert look.groups == 2 and {0, 3} <= set(look.leaders.tolist())
    assert (look.colours[2] == look.colours[3]).all() and (look.colours[0] == look.colours[1]).all()
    assert len({tuple(look.colours[i]) for i in (0, 2, 5)}) == 3


# --------------------------------------------------------------------------------------------------
# the command line


def test_the_verb(folder, tmp_path):
    files = {name: tmp_path / f"flow.{name}" for name in ("png", "nc", "csv")}
    said = attnlab(
        "flow",
        folder,
        "--head",
        0,
        "--ids",
        "3,1,4,1",
        "--t-end",
        1,
        "--saves",
        11,
        "--budget",
        5,
        "-o",
        files["png"],
        "--nc",
        files["nc"],
        "--csv",
        files["csv"],
    ).stdout
    for word in (
        "eigenvalues of V",
        "clusters at t = 1",
        "receives most attention",
        "second modulus",
        "three_hyperplanes",
        "'#",
    ):
        assert word in said
    with xarray.open_dataset(files["nc"]) as data:
        assert (
            data.sizes["time"] == 11
            and data["word"].values.tolist() == ["#3", "#1", "#4", "#1"]
            and data.attrs["head"] == 0
        )
    lines = files["csv"].read_text().splitlines()
    assert (
        len(lines) == 12
        and lines[0].startswith("time,clusters,cosine")
        and files["png"].stat().st_size > 20_000
    )
    assert "exists already" in refused("flow", folder, "--csv", files["csv"])


def test_all_heads_as_json(folder):
    record = json.loads(
        attnlab(
            "flow", folder, "--start", "normal", "--n", 5, "--t-end", 0.5, "--saves", 3, "--json"
        ).stdout
    )
    assert len(record["heads"]) == 3 and len(record["times"]) == 3 and len(record["words"]) == 5
    assert record["times"][-1]["radius"] == pytest.approx(3.0, abs=1e-12)
    found = flow(
        al.models.load(folder), start="normal", n=5, t_end=0.5, saves=3, limit=False, check=False
    )
    for at, row in enumerate(record["times"]):
        P = by_hand(found.run.dynamics.weights, found.run.x[at], is_causal=False)
        moduli = np.sort(np.abs(np.linalg.eigvals(P.mean(axis=0))))
        assert row["second_modulus"] == pytest.approx(moduli[-2], abs=1e-6)
        shares = [np.linalg.svd(one)[1] / np.linalg.svd(one)[1].sum() for one in P]
        ranks = [np.exp(-np.sum(share * np.log(share))) for share in shares]
        assert row["attention_rank"] == pytest.approx(np.mean(ranks), rel=1e-6)
    assert record["limit"] is None and "one head" in record["no_limit"]
    assert (
        sum(one["tokens"] for one in record["clusters"]) == 5
        and record["verdicts"] == []
        and "one head" in record["no_check"]
    )


def test_a_run_that_stops_early_says_so(folder, monkeypatch):
    monkeypatch.setattr(flows.flow, "__kwdefaults__", {**flows.flow.__kwdefaults__, "max_steps": 3})
    said = attnlab(
        "flow",
        folder,
        "--head",
        0,
        "--ids",
        "3,1,4,1",
        "--t-end",
        50,
        "--saves",
        501,
        "--no-limit",
        "--no-check",
    ).stdout
    assert "It stopped at t = " in said and "max_steps" in said


@pytest.mark.parametrize(("arguments", "words"), [
    (("--text", ""), "tokenizer"), (("--text", "a cat"), "--ids"), (("--ids", "1,x"), "whole numbers"),
    (("--ids", ","), "two token ids"),
    (("--ids", "4"), "at least two tokens"), (("--ids", "1,2,3,4,5,6,7,8,9,1,2"), "10 tokens"), (("--ids", "1,77"), "0 to 18"),
    (("--layer", 5), "layers are 0 to 1"), (("--head", 9), "heads are 0 to 2"), (("--head", -1), "heads are 0 to 2"),
    (("--text", "a", "--ids", "1,2"), "not both"), (("--text", "a", "--start", "cube"), "Give either it"),
    (("--ids", "1,2", "--n", 4), "Give either it"), (("--n", 1), "at least 2"), (("--start", "spere"), "sphere"),
    (("--csv", "flow.txt"), ".csv"), (("--nc", "flow.csv"), ".nc"), (("-o", "flow.gif"), "movie"), (("--t-end", 0), "t_end"),
    (("--cosine", 2), "cosine"), (("--dt", -1), "dt"), (("--rng", -4), "seed"),
])  # fmt: skip
def test_the_command_line_refuses_in_a_sentence(folder, arguments, words):
    assert words in refused("flow", folder, *arguments)


def test_an_empty_sentence_and_a_long_one(monkeypatch, folder):
    """A model with a tokenizer of one word a letter."""
    letters = {letter: number for number, letter in enumerate("abcdefghijklmnopqrs")}
    model = al.models.load(folder)
    monkeypatch.setattr("attnlab.models.catalog.sources.load", lambda name: model)
    object.__setattr__(model, "tokenizer_file", folder / "tokenizer.json")
    model.__dict__["tokenizer"] = lambda text, special=True: (
        [letters[c] for c in text if c in letters],
        [c for c in text if c in letters],
    )
    assert "empty" in refused("flow", "tiny", "--text", "  ")
    assert "places for 10 tokens" in refused("flow", "tiny", "--text", "abcdefghijkl")
    assert "at least two tokens" in refused("flow", "tiny", "--text", "a")
    assert "finds nothing" in refused("flow", "tiny", "--text", "!!!")
    said = attnlab(
        "flow", "tiny", "--text", "cab", "--t-end", 1, "--saves", 6, "--no-limit", "--no-check"
    ).stdout
    assert "'cab'" in said and "No verdicts" not in said
