"""Recordings: what a page plays is the run, in coordinates in which it converges, to 2e-5 of the
box.
"""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import attnlab as al
from attnlab.dynamics import attention
from attnlab.explorer.recording import (
    EVERY,
    FRAMES,
    FRAMES_OF_MANY,
    clock_unit,
    frame_times,
    principal_axes,
    record_run,
)
from attnlab.types import FeedForward
from unpack import unpack_leaders, unpack_shares, unpack_tokens

ERROR = 2e-5
"""Of the box, which is the promise of the packing."""

OBLIQUE = np.array([[1.0, 0.4, 0.1], [-0.3, 1.0, 0.2], [0.2, -0.5, 1.0]])


def simulated(V, n=12, t_end=4.0, at_frames=True, rng=0, **options) -> al.Trajectory:
    weights = al.Weights(V=V) if not isinstance(V, al.Weights) else V
    x0 = np.random.default_rng(rng).uniform(-2, 2, (n, weights.d))
    if options.get("geometry") == "sphere":
        x0 /= np.linalg.norm(x0, axis=1, keepdims=True)
    dynamics = al.Dynamics(weights, geometry=options.get("geometry", "euclidean"))
    times = frame_times(dynamics, n, t_end) if at_frames else None
    return al.simulate(
        weights, x0, t_end=t_end, **({"times": times} if at_frames else {}), **options
    )


def growing_and_others(V: np.ndarray, run: al.Trajectory) -> np.ndarray:
    """The limit frame (T, n, d) by projections on the eigenspaces of V that grow, z there and x on
    the rest.
    """
    values, vectors = np.linalg.eig(V)
    inverse = np.linalg.inv(vectors)
    grow = ((vectors * (values.real > 1e-12)) @ inverse).real
    return run.z @ grow.T + run.x @ (np.eye(len(V)) - grow).T


VALUES = {
    "one dimension": np.array([[1.0]]), "identity": np.eye(3), "planes": np.diag([1.0, -0.3, -0.5]),
    "late": np.diag([1.0, 0.9, -0.5]),
    "collapse": -np.eye(2), "oblique": OBLIQUE @ np.diag([1.0, 0.5, -0.4]) @ np.linalg.inv(OBLIQUE),
    "decaying pair": np.array([[1.0, 0, 0], [0, -0.2, 0.5], [0, -0.5, -0.2]]),
    "growing pair": np.array([[0.5, 1.0], [-1.0, 0.5]]),
    "zero": np.diag([1.0, 0.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_frames_are_the_limit_frame(name):
    V = VALUES[name]
    run = simulated(V)
    recording = record_run(run)
    expected = growing_and_others(V, run)
    found = unpack_tokens(recording)
    box = np.ptp(expected, axis=(0, 1))
    np.testing.assert_array_less(
        np.abs(found[..., : run.d] - expected).max(axis=(0, 1)), ERROR * box + 1e-12
    )
    assert np.all(found[..., run.d :] == 0) and recording["d"] == recording["dimension"] == run.d
    np.testing.assert_allclose(recording["times"], run.times, rtol=1e-6)
    np.testing.assert_array_equal(recording["x0"], run.x[0])
    json.dumps(recording, allow_nan=False)


@pytest.mark.parametrize(
    "options", [{}, {"mask": "causal"}, {"kernel": "hardmax"}, {"geometry": "sphere", "beta": 4.0}]
)
def test_leaders_and_series(options):
    run = simulated(np.eye(2), **options)
    recording = record_run(run)
    P = np.stack([attention(run, at)[0] for at in range(len(run.times))])
    leaders = unpack_leaders(recording)
    np.testing.assert_array_equal(leaders, P.argmax(axis=-1))
    np.testing.assert_allclose(unpack_shares(recording), P.max(axis=-1), atol=0.5 / 255 + 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(np.where(P > 0, P * np.log(P), 0.0), axis=-1)
    np.testing.assert_allclose(
        recording["listened"], np.exp(entropy).mean(axis=-1)[::EVERY], rtol=1e-6
    )
    changed = [k for k in range(1, len(leaders)) if np.any(leaders[k] != leaders[k - 1])]
    np.testing.assert_allclose(recording["changes"], run.times[changed], rtol=1e-6)


def test_leaders_of_heads_that_disagree_are_open():
    weights = al.Weights(
        Q=np.stack([np.eye(2), np.diag([1.0, -0.3])]),
        K=np.eye(2),
        V=np.stack([np.eye(2), 0.1 * np.eye(2)]),
    )
    run = simulated(weights, t_end=1.0)
    P = np.stack([attention(run, at) for at in range(len(run.times))])  # (T, h, n, n)
    chosen = P.argmax(axis=-1)
    expected = np.where(chosen[:, 0] == chosen[:, 1], chosen[:, 0], -1)
    recording = record_run(run)
    np.testing.assert_array_equal(unpack_leaders(recording), expected)
    largest = np.where(expected < 0, 0.0, P.max(axis=-1).mean(axis=1))
    np.testing.assert_allclose(unpack_shares(recording), largest, atol=0.5 / 255 + 1e-12)
    assert (expected == -1).any() and (expected >= 0).any()


def test_groups_are_those_of_the_observable():
    run = simulated(np.diag([1.0, 0.9, -0.5]), n=20, t_end=12.0, observe=["cluster_count"])
    recording = record_run(run)
    np.testing.assert_array_equal(recording["groups"], run.observed["cluster_count"][::EVERY])
    sizes = np.bincount(recording["labels"])
    assert recording["count"] == run.observed["cluster_count"][-1] == len(sizes) and np.all(
        np.diff(sizes) <= 0
    )


def test_the_clock_is_equal_steps_of_u():
    dynamics = al.Dynamics(al.Weights(V=np.diag([2.0, -1.0])))
    times = frame_times(dynamics, 10, 12.0)
    assert (
        len(times) == FRAMES
        and times[0] == 0.0
        and times[-1] == 12.0
        and clock_unit(dynamics, 12.0) == 0.5
    )
    np.testing.assert_allclose(
        np.diff(times / (times + 0.5)), 1 / (FRAMES - 1) * 12 / 12.5, rtol=1e-9
    )
    assert len(frame_times(dynamics, 301, 12.0)) == FRAMES_OF_MANY
    for still in (
        al.Dynamics(al.Weights(V=-np.eye(2))),
        al.Dynamics(al.Weights(V=np.eye(2)), geometry="sphere"),
    ):
        assert clock_unit(still, 40.0) == 5.0


def test_between_saved_times_tokens_are_interpolated():
    dense, coarse = simulated(np.eye(2)), simulated(np.eye(2), at_frames=False)
    found, truth = unpack_tokens(record_run(coarse)), unpack_tokens(record_run(dense))
    assert found.shape == truth.shape
    assert np.abs(found - truth).max() < 2e-3 * np.ptp(
        truth
    )  # 101 saved times, monotone cubics between them
    np.testing.assert_array_equal(found[0], truth[0])


def test_layers_keep_their_layers():
    weights = al.Weights(V=np.diag([0.5, -0.3]))
    x0 = np.random.default_rng(0).uniform(-2, 2, (8, 2))
    run = al.simulate(weights, x0, layers=12, dt=0.5)
    recording = record_run(run)
    assert (
        recording["T"] == 13
        and recording["layers"] == {"dt": 0.5}
        and recording["times"] == [0.5 * k for k in range(13)]
    )
    expected = np.stack([run.z[..., 0], run.x[..., 1]], axis=-1)
    np.testing.assert_allclose(
        unpack_tokens(recording)[..., :2], expected, atol=ERROR * np.ptp(expected)
    )


def test_the_feed_forward_variant_is_shown_in_z():
    run = simulated(np.eye(2), t_end=1.0, at_frames=False, feedforward=FeedForward())
    found = unpack_tokens(record_run(run))
    np.testing.assert_allclose(found[[0, -1], :, :2], run.z[[0, -1]], atol=ERROR * np.ptp(run.z))


def test_many_dimensions_are_projected_on_three():
    run = simulated(np.diag([1.0, 0.9, 0.5, -0.2, -0.4, -1.0]), n=15)
    recording = record_run(run)
    tokens = np.concatenate([run.z[..., :3], run.x[..., 3:]], axis=-1)
    flat = tokens.reshape(-1, 6) - tokens.reshape(-1, 6).mean(axis=0)
    variances = np.sort(np.linalg.eigvalsh(flat.T @ flat))[::-1]
    assert recording["axes"] == [
        f"{share:.0%} of the variance" for share in variances[:3] / variances.sum()
    ]
    assert (
        recording["d"] == 3
        and recording["dimension"] == 6
        and "x0" not in recording
        and recording["growth"] == [1.0] * 3
    )
    found = unpack_tokens(recording)
    np.testing.assert_allclose(
        np.sort(np.var(found.reshape(-1, 3), axis=0))[::-1] * len(flat), variances[:3], rtol=1e-3
    )
    # a projection keeps distances up to what is left out
    apart = [np.linalg.norm(x[-1][:, None] - x[-1][None], axis=-1) for x in (found, tokens)]
    assert (
        np.all(apart[0] <= apart[1] + 1e-3)
        and np.corrcoef(apart[0].ravel(), apart[1].ravel())[0, 1] > 0.9
    )


def test_principal_axes_of_few_tokens():
    axes, shares, centre = principal_axes(np.array([[[1.0, 2.0, 0.0, 0.0], [3.0, 2.0, 0.0, 0.0]]]))
    np.testing.assert_allclose(axes[:, 0], [1, 0, 0, 0])
    np.testing.assert_allclose(shares, [1, 0, 0], atol=1e-15)
    np.testing.assert_allclose(centre, [2, 2, 0, 0])


def test_directions():
    run = simulated(np.diag([1.0, 0.5, 0.2, 0.1]), n=6)
    found = unpack_tokens(record_run(run, directions=True, words=list("abcdef")))
    x = run.x / np.linalg.norm(run.x, axis=-1, keepdims=True)
    axes, _, centre = principal_axes(x)
    np.testing.assert_allclose(found, (x - centre) @ axes, atol=1e-4)


def test_a_run_that_stopped_early_says_so():
    run = al.simulate(
        al.Weights(V=np.eye(2)),
        [[1.0, 0.5], [0.3, -1.0]],
        t_end=50.0,
        kernel="exp_mean",
        throw=False,
    )
    recording = record_run(run)
    assert (
        recording["status"] == run.status.name != "OK" and recording["sentence"] == run.status.value
    )


@pytest.mark.parametrize("spoil, says", [
    (lambda run: (dataclasses.replace(run, times=run.times[:0], states=run.states[:0], log_scale=run.log_scale[:0]), None),
     "at least one saved time"),
    (lambda run: (run, ["one"]), "one per token, 12, got 1"),
    (lambda run: (simulated(np.eye(1), n=2001, t_end=1e-6, at_frames=False, saves=2), None), "at most 2000 tokens"),
])  # fmt: skip
def test_what_cannot_be_recorded_is_a_sentence(spoil, says):
    run, words = spoil(simulated(np.eye(2), at_frames=False))
    with pytest.raises(ValueError, match=says):
        record_run(run, words=words)


def test_a_batch_is_refused():
    run = al.simulate(
        al.Weights(V=np.eye(2)), np.random.default_rng(0).normal(size=(2, 4, 2)), t_end=1.0
    )
    with pytest.raises(ValueError, match="Choose a member"):
        record_run(run)


def test_a_recording_is_small():
    """A simpler packing of 240 frames of 500 tokens took 221 KB, and of 480 frames of 80 tokens 36
    KB.
    """
    for n, most in ((80, 36_000), (500, 221_000)):
        recording = record_run(simulated(np.eye(3), n=n, t_end=12.0))
        assert (
            len(recording["tokens"]["bytes"]) + len(recording["leaders"]) + len(recording["shares"])
            < most
        )


@pytest.mark.parametrize("shape", [(4, 5, 7), (2, 3, 40), (1, 2, 30), (3, 4, 5)])
def test_the_axes_are_those_of_a_singular_value_decomposition(shape):
    tokens = np.random.default_rng(3).normal(size=shape)
    axes, shares, centre = principal_axes(tokens)
    flat = tokens.reshape(-1, shape[-1])
    sizes, rows = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)[1:]
    there = np.flatnonzero(sizes[:3] > 1e-9)
    np.testing.assert_allclose(shares[there], (sizes**2 / (sizes**2).sum())[there], atol=1e-12)
    np.testing.assert_allclose(
        np.abs(np.sum(axes[:, there] * rows[there].T, axis=0)), 1.0, atol=1e-9
    )
    assert (np.delete(shares, there) == 0).all() and (np.delete(axes, there, axis=1) == 0).all()
    np.testing.assert_allclose(centre, flat.mean(axis=0))


def test_tokens_that_stand_still_have_no_axes():
    axes, shares, _ = principal_axes(np.ones((3, 4, 5)))
    assert (axes == 0).all() and (shares == 0).all()


def test_members_that_a_page_does_not_compute_are_recorded_under_their_names(tmp_path):
    sigmoid = {"name": "sigmoid", "bias": -2.0}
    x0 = np.random.default_rng(0).normal(size=(6, 2))
    record = record_run(
        al.simulate(
            al.Weights(V=np.eye(2)),
            x0,
            t_end=0.5,
            kernel=sigmoid,
            mask={"name": "window", "width": 2},
        )
    )
    assert record["equation"] == "kernel sigmoid(bias=-2.0), mask window(width=2)"
    assert "equation" not in record_run(
        al.simulate(al.Weights(V=np.eye(2)), x0, t_end=0.5, mask="causal")
    )
    spec = al.Spec(
        weights={"family": "identity"},
        start={"law": "normal", "n": 5, "d": 2},
        solve={"t_end": 1.0},
        dynamics={"normalisation": "peri"},
    )
    page = al.explore(spec, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "normalisation peri" in page and '"recording":{' in page
