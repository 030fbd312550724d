"""The benchmark's own arithmetic, and that every peer computes what we compute."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import attnlab as al
from places import ROOT

FOLDER = ROOT / "bench"


@pytest.fixture
def bench(monkeypatch):
    """Imports a file of bench/ by its name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield lambda name: __import__(name)
    for name in ("table", "timing", "peers", "trained", "limits"):
        sys.modules.pop(name, None)


def test_a_row_says_which_goals_it_missed_and_which_were_not_measured(bench):
    Row = bench("table").Row
    row = Row(
        "work",
        {"attnlab": 1.0},
        {"torch": 2.5, "NumPy": 20.0},
        {"torch": 3.0, "NumPy": 12.0, "JAX": 2.0},
    )
    assert row.missed == {"torch": 3.0} and row.verdict == "MISSED: 3x torch; not measured: JAX"
    assert Row("work", {}, {"a": 1.3, "b": 1.1}, {"best": 1.2}).missed == {
        "best": 1.2
    }  # the fastest peer counts
    assert (
        Row("work", {}, {"a": 1.3}, {"best": 1.2}).verdict == "met"
        and Row("work", {}).verdict == "reported"
    )


def test_the_smallest_time_counts_and_everyone_is_called(bench):
    calls = {"a": 0, "b": 0}

    def call(name):
        calls[name] += 1

    best = bench("timing").fastest(
        {name: lambda name=name: call(name) for name in calls}, seconds=0.0, rounds=2
    )
    assert min(calls.values()) > 2 and all(0.0 < value < 1e-2 for value in best.values())


def test_an_inaccurate_contender_stops_the_bench(bench):
    contenders = {
        "attnlab": lambda: np.ones(3),
        "other": lambda: np.ones(3) * 1.01,
        "missing": None,
    }
    with pytest.raises(AssertionError, match="other is 0.01 from the truth"):
        bench("table").compare("work", contenders, np.ones(3), 1e-3, {})


@pytest.mark.parametrize("maker", ["numpy_field", "torch_field", "jax_field"])
@pytest.mark.parametrize(
    ("kernel", "causal"), [("softmax", False), ("softmax", True), ("exp_mean", False)]
)
def test_peers_compute_the_same_field(bench, maker, kernel, causal):
    rng = np.random.default_rng(0)
    x, Q, V = rng.normal(size=(7, 3)), rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 3, 3))
    call = getattr(bench("peers"), maker)(x, np.swapaxes(Q, 1, 2), V, kernel, causal)
    if call is None:
        pytest.skip(f"{maker}: the library is not installed")
    weights = al.Weights(Q=Q, K=np.stack([np.eye(3)] * 2), V=V)
    truth = al.velocity(
        weights, x, method="reference", kernel=kernel, mask="causal" if causal else "full"
    )
    np.testing.assert_allclose(call(), truth, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("maker", ["scipy_run", "diffrax_run"])
@pytest.mark.parametrize("frame", ["x", "z", "sphere"])
def test_peers_solve_the_same_equation(bench, maker, frame):
    x0, V, times = (
        np.random.default_rng(1).normal(size=(5, 2)),
        np.array([[0.5, 0.2], [-0.3, 0.4]]),
        np.linspace(0, 1, 3),
    )
    x0 = x0 / np.linalg.norm(x0, axis=1, keepdims=True)
    call = getattr(bench("peers"), maker)(x0, V, 2.0, times, 1e-9, frame)
    if call is None:
        pytest.skip(f"{maker}: the library is not installed")
    run = al.simulate(
        al.Weights(V=V),
        x0,
        times=times,
        beta=2.0,
        geometry="sphere" if frame == "sphere" else "euclidean",
    )
    np.testing.assert_allclose(call(), run.z if frame == "z" else run.x, rtol=1e-6, atol=1e-7)


def test_a_row_that_may_take_a_given_time(bench):
    Row = bench("table").Row
    late, in_time = (
        Row("work", {"attnlab": 0.31}, allowed=0.3),
        Row("work", {"attnlab": 0.3}, allowed=0.3),
    )
    assert late.verdict == "MISSED: 0.3 s" and late.missed == {"attnlab": 0.3}
    assert in_time.verdict == "met" and in_time.missed == {}


def test_the_page_of_performance_takes_a_record_of_the_start_up_alone(
    bench, from_docs, monkeypatch, tmp_path
):
    Row, page = bench("table").Row, from_docs("make_performance")
    row = Row(
        "attnlab --help", {"attnlab": 0.1234}, allowed=0.3, more={"processor": 1.5}, part="startup"
    )
    before = (
        "a\n<!-- table -->\nb\n<!-- end table -->\nc\n<!-- start-up -->\nd\n<!-- end start-up"
        " -->\ne\n"
    )
    (tmp_path / "performance.md").write_text(before)
    record = {"machine": "a machine", "load": 0.5, "rows": [row.record()]}
    (tmp_path / "bench.json").write_text(json.dumps(record))
    monkeypatch.setattr(page, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["make_performance.py", str(tmp_path / "bench.json")])
    page.main()
    text = (tmp_path / "performance.md").read_text()
    assert text.startswith(
        "a\n<!-- table -->\nb\n<!-- end table -->\nc\n<!-- start-up -->\na machine, load before"
        " 0.5.\n"
    )
    assert (
        "| attnlab --help | 123 ms | 1.5 s | 0.3 s | met |" in text
        and "\nd\n" not in text
        and text.endswith("\ne\n")
    )


def test_limits_have_a_table_of_their_own_with_goals(bench, from_docs):
    Row, page = bench("table").Row, from_docs("make_performance")
    more = {"processor": 1.5, "grade": "exact", "events": 7}
    rows = [
        Row(f"limit, {name}", {"attnlab": 4.0}, allowed=allowed, more=more, part="limits").record()
        for name, allowed in (("small", None), ("fast", 5.0), ("slow", 3.0))
    ]
    text = page.limits_table({"machine": "a machine", "load": 0.5}, rows)
    assert "| small | 4 s | 1.5 s | exact | 7 | — | reported |" in text
    assert "| fast | 4 s | 1.5 s | exact | 7 | 5 s | met |" in text
    assert "| slow | 4 s | 1.5 s | exact | 7 | 3 s | MISSED: 3 s |" in text


def test_every_kind_of_limit_is_computed(bench, monkeypatch):
    """Small cases of the same kinds: several heads, and a proof."""
    limits = bench("limits")
    kinds = [case for case in limits.CASES if case.M is not None or case.proof]
    assert len(kinds) == 2
    goals = {case.allowed for case in limits.CASES}
    assert {3.0, 30.0, 120.0} <= goals
    monkeypatch.setattr(limits, "CASES", [case._replace(n=5, repeats=0) for case in kinds])
    several, proved = limits.limits()
    assert several.more["grade"] != "undecided" and proved.more["grade"] == "proved"


def test_a_sweep_is_measured_in_a_process_of_its_own(bench):
    found = bench("sweep").measure("integration", n=3, t_end=1.0, cells=20)
    assert found["cells"] == 20 and found["processor"] > 0.0 and found["wall"] > 0.0


def test_the_peer_of_trained_models_computes_the_same_states(bench, monkeypatch):
    trained = bench("trained")
    for name, value in {"D": 24, "HEADS": 3, "LAYERS": 2, "HIDDEN": 40, "WORDS": 30}.items():
        monkeypatch.setattr(trained, name, value)
    sizes = {"hidden_size": 24, "num_attention_heads": 3, "num_hidden_layers": 2, "vocab_size": 30}
    config = {**trained.CONFIG, **sizes, "intermediate_size": 40}
    tensors, ids = trained.state(), np.arange(9)
    call = trained.torch_states(tensors, ids)
    if call is None:
        pytest.skip("torch is not installed")
    ours = al.models.load(tensors, config=config).hidden_states(ids)
    np.testing.assert_allclose(call(), ours, rtol=1e-12, atol=1e-12)
