"""The engine as the page uses it: recordings in pieces, the newest request wins, attention, sweeps,
and life without a worker.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from modules import open_engine, open_modules
from tab import JavaScriptError

import attnlab as al
from attnlab.analysis.clusters import cluster_labels
from attnlab.analysis.distances import diameter
from attnlab.run import limit_of_spec

CUBE = {"law": "uniform_cube", "low": -5, "high": 5}
POLYTOPE = {
    "weights": {"family": "identity"},
    "start": {**CUBE, "n": 40, "d": 3, "rng": 0},
    "solve": {"t_end": 12.0},
}


@pytest.fixture(scope="module")
def page(browser_tab, tmp_path_factory):
    return open_engine(browser_tab, tmp_path_factory.mktemp("engine"))


def z_of(spec: dict, times: np.ndarray, **options) -> np.ndarray:
    """The rescaled tokens (T, n, d) of attnlab, rtol 1e-12."""
    whole = al.Spec.from_dict(
        {**spec, "solve": {"t_end": float(times[-1]), "times": times.tolist(), "rtol": 1e-12}}
    )
    return np.asarray(getattr(al.run_spec(whole), options.get("frame", "z")))


@pytest.fixture(scope="module")
def polytope(page) -> dict:
    return page.call("record", POLYTOPE)


def frames_of(recording: dict, frame: str = "limit") -> np.ndarray:
    return np.array(recording["frames"][frame]).reshape(recording["T"], recording["n"], 3)


def test_the_clock_and_the_frames(polytope):
    assert (
        polytope["complete"]
        and polytope["status"] == "OK"
        and polytope["sentence"] == al.Status.OK.value
    )
    times, T = np.array(polytope["times"]), polytope["T"]
    assert (
        T == 480
        and times[0] == 0
        and times[-1] == 12.0
        and polytope["tau"] == 1.0
        and polytope["trusted"] == 14.0
    )
    u = times / (times + 1.0)
    assert np.allclose(np.diff(u), u[-1] / (T - 1), rtol=1e-9)
    some = np.array([0, 60, 137, 240, 400, 479])
    z, x = z_of(POLYTOPE, times[some]), z_of(POLYTOPE, times[some], frame="x")
    for k, at in enumerate(some):
        assert np.abs(frames_of(polytope)[at] - z[k]).max() < 1e-5 * np.abs(z[k]).max()
        assert np.abs(frames_of(polytope, "z")[at] - z[k]).max() < 1e-5 * np.abs(z[k]).max()
        assert np.abs(frames_of(polytope, "x")[at] - x[k]).max() < 1e-5 * np.abs(x[k]).max()
    assert np.array_equal(
        frames_of(polytope)[0], np.float32(al.resolve(al.Spec.from_dict(POLYTOPE)).x0)
    )
    assert polytope["x0"] == al.resolve(al.Spec.from_dict(POLYTOPE)).x0.tolist()


def test_leaders_groups_and_listening(polytope):
    times, n = np.array(polytope["times"]), polytope["n"]
    samples = np.arange(0, 480, polytope["every"])
    assert polytope["every"] == 4 and len(polytope["groups"]) == len(polytope["listened"]) == len(
        samples
    )
    run = al.run_spec(
        al.Spec.from_dict(
            {
                **POLYTOPE,
                "solve": {"t_end": 12.0, "times": times[samples].tolist(), "rtol": 1e-12},
                "observe": ["cluster_count"],
            }
        )
    )
    assert np.array_equal(polytope["groups"], run.observed["cluster_count"])
    assert (
        polytope["groups"][0] == 40 and polytope["count"] == run.observed["cluster_count"][-1] == 9
    )
    P = np.array([al.attention(run, at=k)[0] for k in range(len(samples))])
    leaders = np.array(polytope["leaders"]).reshape(480, n)[samples]
    assert (leaders == P.argmax(axis=-1)).mean() > 0.9995
    entropy = -(P * np.log(np.maximum(P, 1e-300))).sum(axis=-1)
    expected = np.exp(entropy).mean(axis=-1)
    assert (
        np.abs(np.array(polytope["listened"]) / expected - 1).max() < 0.05
    )  # straight lines between steps
    sizes = np.bincount(polytope["labels"])
    assert len(sizes) == 9 and (np.diff(sizes) <= 0).all()
    expected = cluster_labels(run.z[-1], 0.01 * diameter(run.z[0]))
    assert (
        len(set(zip(polytope["labels"], expected.tolist(), strict=True))) == 9
    )  # the same partition
    changed = (np.diff(np.array(polytope["leaders"]).reshape(480, n), axis=0) != 0).any(axis=1)
    assert np.array_equal(polytope["changes"], times[1:][changed])


def test_the_estimate_is_the_certified_limit(polytope):
    limit = limit_of_spec(al.Spec.from_dict(POLYTOPE))
    estimate = polytope["estimate"]
    assert limit.certified and estimate["holds"] and estimate["count"] == limit.count
    assert estimate["leaders"] == limit.leaders.tolist()
    points = np.array(estimate["points"])[estimate["labels"]]
    assert np.abs(points - limit.limits).max() < 1e-5 * np.abs(limit.limits).max()


@pytest.mark.parametrize(
    "eigenvalues", [[1.0, -0.3], [0.4, [0.7, 0.9]], [0.8, [-0.4, 1.5]], [-0.2, -1.0, -0.7]]
)
def test_the_limit_frame_is_z_where_v_grows_and_x_elsewhere(page, eigenvalues):
    spec = {
        "weights": {"family": "spectrum", "eigenvalues": eigenvalues, "basis": "random", "rng": 5},
        "start": {**CUBE, "n": 12, "rng": 3},
        "solve": {"t_end": 6.0},
    }
    recording = page.call("record", spec, {"frames": 40})
    times, growth, basis = (np.array(recording[key]) for key in ("times", "growth", "basis"))
    assert recording["every"] == 1 and recording["T"] == 40
    pairs = [value if isinstance(value, list) else [value, 0.0] for value in eigenvalues]
    assert sorted(growth) == sorted(a for a, b in pairs for _ in range(2 if b else 1))
    run_x, run_z = z_of(spec, times, frame="x"), z_of(spec, times)
    back = np.linalg.inv(basis)
    mixed = np.where(growth > 0, run_z @ back.T, run_x @ back.T) @ basis.T
    assert (
        np.abs(frames_of(recording)[..., : len(growth)] - mixed).max() < 1e-5 * np.abs(mixed).max()
    )
    assert not frames_of(recording)[..., len(growth) :].any()


def test_the_sphere_has_one_frame_and_no_estimate(page):
    spec = {
        "weights": {"family": "identity"},
        "start": {"law": "sphere", "n": 20, "d": 3, "rng": 1},
        "dynamics": {"geometry": "sphere", "beta": 4.0},
        "solve": {"t_end": 16.0},
    }
    recording = page.call("record", spec, {"frames": 60})
    assert (
        list(recording["frames"]) == ["limit"]
        and recording["tau"] == 2.0
        and recording["trusted"] == "infinity"
    )
    assert recording["estimate"] is None and "sphere" in recording["estimateWhy"]
    x = z_of(spec, np.array(recording["times"]), frame="x")
    assert np.abs(frames_of(recording) - x).max() < 1e-5


def test_a_run_that_blows_up_says_so(page):
    spec = {
        **POLYTOPE,
        "start": {"law": "normal", "n": 10, "d": 2, "scale": 0.5, "rng": 0},
        "dynamics": {"kernel": "exp_mean"},
    }
    recording = page.call("record", spec)
    assert (
        recording["status"] == "STALLED"
        and recording["sentence"] == al.Status.STALLED.value
        and recording["complete"]
    )
    assert 1 < recording["T"] < 480 and len(recording["times"]) == recording["T"]
    assert (
        len(recording["frames"]["limit"]) == 3 * 10 * recording["T"]
        and recording["estimate"] is None
    )


def test_two_heads_of_many_tokens_end_within_the_budget(page):
    heads = {
        "family": "given",
        "V": [np.eye(2).tolist(), (0.5 * np.eye(2)).tolist()],
        "Q": [np.eye(2).tolist(), (-np.eye(2)).tolist()],
    }
    spec = {
        "weights": heads,
        "start": {**CUBE, "n": 200, "d": 2, "rng": 0},
        "solve": {"t_end": 5.0},
    }
    recording = page.call("record", spec, patience=120)
    assert (
        recording["status"] == "MAX_STEPS"
        and "work" in recording["sentence"]
        and 100 < recording["T"] < 480
    )
    assert recording["evaluations"] * 2 * 200**2 < 7e8


def test_pieces_come_while_it_is_computed(page):
    spec = {**POLYTOPE, "start": {**POLYTOPE["start"], "n": 500}}
    seen = page.call(
        """async spec => {
      const one = make(), pieces = [];
      const whole = await one.record(spec, {}, r => pieces.push([r.T, r.complete, r.frames.limit.length]));
      one.destroy();
      return { pieces, T: whole.T, complete: whole.complete }; }""",
        spec,
    )
    counts = [piece[0] for piece in seen["pieces"]]
    assert (
        len(counts) >= 3
        and counts == sorted(counts)
        and 0 < counts[0] < 240
        and seen["T"] == 480
        and seen["complete"]
    )
    assert all(piece[1:] == [False, 480 * 500 * 3] for piece in seen["pieces"])


def test_pieces_join_to_the_same_recording(page):
    """A recording that came in many pieces equals one that was not looked at on the way, to the
    last bit.
    """
    assert page.call(
        """async spec => {
      const one = make(), a = await one.record(spec, {}, () => {}), b = await one.record(spec, {});
      one.destroy();
      const keys = ['times', 'leaders', 'groups', 'listened', 'labels', 'changes'];
      return keys.every(k => a[k].length === b[k].length && a[k].every((v, i) => v === b[k][i]))
        && ['limit', 'x', 'z'].every(k => a.frames[k].every((v, i) => v === b.frames[k][i]))
        && JSON.stringify(a.estimate) === JSON.stringify(b.estimate);
    }""",
        {**POLYTOPE, "start": {**POLYTOPE["start"], "n": 150}},
    )


def test_the_newest_request_wins(page):
    outcome = page.call(
        """async spec => {
      const one = make(), many = [];
      for (let n = 20; n < 26; n++) {
        many.push(one.record({ ...spec, start: { ...spec.start, n } }).then(r => r.n, e => e.message));
      }
      const seen = await Promise.all(many);
      one.destroy();
      return seen; }""",
        POLYTOPE,
    )
    assert outcome == ["superseded"] * 5 + [25]


def test_stop_is_heard_at_once_and_destroy_ends_everything(page):
    outcome = page.call(
        """async spec => {
      const one = make(), began = performance.now();
      const long = one.record({ ...spec, start: { ...spec.start, n: 1500 } }).then(() => 'done', e => e.message);
      const request = { spec, path: 'start.n', values: [300, 400], seeds: 9 };
      const sweep = one.sweep(request, () => {}).then(() => 'done', e => e.message);
      await new Promise(r => setTimeout(r, 150));
      one.stop();
      const stopped = [await long, await sweep], time = performance.now() - began;
      const after = (await one.record(spec)).T;                           // the worker is free again
      const last = one.record(spec).then(() => 'done', e => e.message);
      one.destroy();
      return { stopped, time, after, last: await last, mode: one.mode }; }""",
        POLYTOPE,
    )
    assert outcome["stopped"] == ["superseded", "superseded"] and outcome["time"] < 1000
    assert outcome["after"] == 480 and outcome["last"] == "superseded"


def test_attention_and_rows_are_those_of_attnlab(page):
    heads = {
        "family": "given",
        "V": [[[0.5, 0], [0, 0.3]], [[0.2, 0.1], [0, 0.1]]],
        "Q": [[[1, 0], [0, 1]], [[0, 1], [-1, 0.5]]],
    }
    one, back = {"family": "identity"}, {"family": "identity", "scale": -1.0}
    for weights, dynamics in (
        (one, {"beta": 0.4}),
        (heads, {"mask": "causal"}),
        (one, {"kernel": "hardmax"}),
        (back, {"kernel": "exp_mean"}),
    ):
        start = {"law": "normal", "n": 12, "d": 2, "rng": 6}
        spec = {"weights": weights, "start": start, "solve": {"t_end": 4.0}, "dynamics": dynamics}
        head = 1 if weights is heads else 0
        seen = page.call(
            """async (spec, head) => {
          const one = make(), recording = await one.record(spec), at = 200, t = recording.times[at];
          const { P, n } = await one.attention(spec, t, head), row = await one.row(spec, 7, t, head);
          const end = await one.attention(spec, 'end');
          const other = await one.attention({ ...spec, start: { ...spec.start, rng: 7 } }, 0, head);
          one.destroy();
          return { t, P: Array.from(P), n, row: Array.from(row), end: Array.from(end.P), other: Array.from(other.P) };
        }""",
            spec,
            head,
        )
        run = al.run_spec(
            al.Spec.from_dict(
                {**spec, "solve": {"t_end": 4.0, "times": [0.0, seen["t"], 4.0], "rtol": 1e-12}}
            )
        )
        assert seen["n"] == 12
        P = np.array(seen["P"]).reshape(12, 12)
        assert np.abs(P - al.attention(run, at=1)[head]).max() < 1e-4
        assert np.array_equal(P[7], seen["row"])
        assert (
            np.abs(np.array(seen["end"]).reshape(12, 12) - al.attention(run, at=2)[0]).max() < 1e-4
        )
        moved = al.run_spec(al.Spec.from_dict({**spec, "start": {**start, "rng": 7}}))
        assert (
            np.abs(np.array(seen["other"]).reshape(12, 12) - al.attention(moved, at=0)[head]).max()
            < 1e-6
        )


def test_a_sweep(page):
    spec = {
        "weights": {"family": "spectrum", "eigenvalues": [1.0, 0.5], "basis": "identity"},
        "start": {**CUBE, "n": 40, "rng": 9, "moved": {"3": [0, 0]}},
        "solve": {"t_end": 14.0},
    }
    points = page.call(
        """async spec => {
      const one = make(), points = [];
      await one.sweep({ spec, path: 'weights.eigenvalues.1', values: [0.3, 0.7, 1], seeds: 5, n: 20 }, p => points.push(p));
      one.destroy();
      return points; }""",
        spec,
    )
    assert [(point["value"], point["rng"]) for point in points] == [
        (value, rng) for value in (0.3, 0.7, 1) for rng in range(5)
    ]
    assert all(point["settled"] and point["status"] == "OK" for point in points)
    for point in points:
        changed = {
            **spec,
            "weights": {**spec["weights"], "eigenvalues": [1.0, point["value"]]},
            "start": {**CUBE, "n": 20, "rng": point["rng"]},
        }
        assert limit_of_spec(al.Spec.from_dict(changed)).count == point["count"]
    assert (
        all(point["count"] == 2 for point in points[:10])
        and np.median([point["count"] for point in points[10:]]) > 3
    )


@pytest.mark.parametrize("call, words", [
    ("one.record({ ...spec, start: { ...spec.start, n: 1e9 } })", "Refusal: start.n must be at most 2000"),
    ("one.record({ ...spec, solve: { layers: 3 } })", "Refusal: The page plays the flow itself"),
    ("one.record(null)", "Refusal: A Spec must be a table"),
    ("one.record({ weights: 3, start: [], solve: {} })", "must be a table"),
    ("one.run({ ...spec, weights: { family: 'gaussian' } })", "Refusal: The page draws the weights families"),
    ("one.run({ ...spec, dynamics: { kernel: 'soft' } })", "Refusal: dynamics.kernel must be one of"),
    ("one.sweep({ spec, path: 'solve.t_end', values: [1], seeds: 1 }, () => {})", "Refusal: A sweep changes"),
    ("one.attention(spec, 0, 3)", "Refusal: Heads are numbered 0 to 0"),
    ("one.row(spec, 99, 0)", "Refusal: Tokens are numbered 0 to 39"),
])  # fmt: skip
def test_refusals_reach_the_page_as_sentences(page, call, words):
    with pytest.raises(JavaScriptError, match=words):
        page.evaluate(
            f"(async spec => {{ const one = (window.one ??= make()); await {call};"
            f" }})({json.dumps(POLYTOPE)})"
        )


@pytest.mark.parametrize("before", [
    "delete window.Worker", "window.Worker = class { constructor() { throw new Error('forbidden') } }",
    "window.Worker = class { constructor() { setTimeout(() => this.onerror({ preventDefault() {} }), 50) } "
    "postMessage() {} terminate() {} }",
])  # fmt: skip
def test_without_a_worker_the_main_thread_computes_in_slices(tab, tmp_path, before, polytope):
    open_engine(tab, tmp_path, before)
    seen = tab.call(
        """async spec => {
      const one = make();
      let ticks = 0;
      const clock = setInterval(() => ticks++, 10);
      const recording = plain(await one.record(spec));
      const busy = await one.record({ ...spec, start: { ...spec.start, n: 200 } }, {}, () => {});
      const refused = await one.record({ ...spec, start: { ...spec.start, n: 201 } }).catch(e => e.message);
      const result = await one.run(spec);
      clearInterval(clock);
      return { recording, mode: one.mode, ticks, refused, T: result.times.length, busy: busy.T }; }""",
        POLYTOPE,
    )
    assert (
        seen["mode"] == "slices"
        and "up to 200 tokens" in seen["refused"]
        and seen["T"] == 101
        and seen["busy"] == 480
    )
    assert seen["ticks"] >= 5  # the page lived on meanwhile
    for key in ("times", "leaders", "groups", "frames", "estimate", "labels", "evaluations"):
        assert seen["recording"][key] == polytope[key]


def test_sentences_are_those_of_python(tab, tmp_path):
    open_modules(tab, tmp_path, "statuses")
    assert tab.evaluate("statuses.SENTENCES") == {status.name: status.value for status in al.Status}
