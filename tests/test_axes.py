"""Conformance of the axes: every registered member, and their products, do what their flags say; members of a test too."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import attnlab as al
from attnlab.axes.members import AXES
from attnlab.dynamics import attention_matrices, velocity_x, velocity_z
from attnlab.engine.plan import is_compiled


@al.kernels.register("test_linear")
class Linear:
    """P_ij = (1 + tanh(s_ij / width)) / (tokens seen): a member of this file, which every test must pick up."""

    rows_sum_to_one, is_row_local, hardens = False, True, False

    def __init__(self, width: float = 2.0):
        self.width = width

    def weights(self, scores, seen):
        return np.where(seen, 1 + np.tanh(scores / self.width), 0.0) / seen.sum(axis=-1, keepdims=True)


@al.noises.register("test_path")
class GivenPath:
    """The increments of a Brownian path that is given on the finest grid, so that coarser steps see the same path."""

    def __init__(self, path: object = None, dt: float = 1.0):
        self.path, self.dt, self.at = path, dt, 0

    def increment(self, rng, x, dt):
        if self.path is None:
            return np.zeros_like(x)
        many = round(dt / self.dt)
        self.at += many
        return self.path[self.at - many : self.at].sum(axis=0)


PARAMETERS = {"window": {"width": 2}, "given": {"table": np.tri(7, k=2, dtype=int).tolist()}, "brownian": {"kappa": 4.0}}
"""What members need that cannot be made of their name alone."""

N, D = 7, 3
rng = np.random.default_rng(5)
WEIGHTS = al.Weights(Q=rng.normal(size=(2, D, D)) / 2, K=rng.normal(size=(2, D, D)) / 2, V=rng.normal(size=(2, D, D)) / 2)
SCORES = rng.normal(size=(2, N, N)) * 2


def word(name):
    return {"name": name, **PARAMETERS[name]} if name in PARAMETERS else name


def start(geometry="euclidean", seed=0, n=N):
    x = np.random.default_rng(seed).normal(size=(n, D))
    return x / np.linalg.norm(x, axis=-1, keepdims=True) if geometry != "euclidean" else 0.7 * x


def together(**axes):
    """The equation of these words, or a skip where they do not go together, which one sentence says."""
    try:
        return al.Dynamics.of(WEIGHTS, **axes)
    except ValueError as problem:
        message, names = str(problem), [value["name"] if isinstance(value, dict) else value for value in axes.values()]
        assert message.endswith(".") and sum(f'"{name}"' in message for name in names) >= 2
        pytest.skip(message)


NAMES = {axis: list(registry) for axis, registry in AXES.items()}
"""{axis: names}, with those of this file. Other tests must not see these, so they are there only while this file is tested."""

PRODUCTS = list(itertools.product(NAMES["kernel"], NAMES["mask"], NAMES["geometry"]))
OWN = (("kernel", Linear), ("noise", GivenPath))
for axis, member in OWN:
    AXES[axis]._things.pop(member.name)


@pytest.fixture(scope="module", autouse=True)
def own_members():
    for axis, member in OWN:
        AXES[axis]._things[member.name] = member
    yield
    for axis, member in OWN:
        AXES[axis]._things.pop(member.name)


@pytest.mark.parametrize("name", NAMES["kernel"])
def test_rows_and_columns_are_as_declared(name):
    check_weights(AXES["kernel"].make(word(name)))


def check_weights(kernel):
    """Fail where the weights of a kernel are not what its flags say."""
    for mask in al.masks:
        seen = np.broadcast_to(AXES["mask"].make(word(mask)).seen(N), SCORES.shape)
        if not kernel.is_row_local and not seen.all():
            continue
        P = kernel.weights(SCORES, seen)
        assert P.shape == SCORES.shape and (P[~seen] == 0).all() and np.isfinite(P).all()
        assert kernel.may_be_negative or (P >= 0).all()
        assert (np.abs(P.sum(axis=-1) - 1) < 1e-12).all() == kernel.rows_sum_to_one
        if kernel.is_row_local:                             # a row does not change when others do
            other = SCORES.copy()
            other[..., 1:, :] += 1.0
            np.testing.assert_array_equal(kernel.weights(other, seen)[..., 0, :], P[..., 0, :])
        if kernel.hardens:
            hard = AXES["kernel"].make("hardmax").weights(SCORES, seen)
            np.testing.assert_allclose(kernel.weights(SCORES * 1e4, seen), hard, atol=1e-9)
        if kernel.has_scale:
            scaled = kernel.scaled_weights(SCORES, np.array(3.0), seen)
            np.testing.assert_allclose(scaled, kernel.weights(3.0 * SCORES, seen), rtol=1e-12)


@pytest.mark.parametrize("name, flag", [("sigmoid", "rows_sum_to_one"), ("softmax", "rows_sum_to_one"),
                                        ("sinkhorn", "is_row_local"), ("sigmoid", "hardens")])
def test_a_kernel_whose_flag_lies_fails(name, flag):
    honest = AXES["kernel"].make(name)
    liar = type("Liar", (type(honest),), {flag: not getattr(honest, flag)})()
    with pytest.raises(AssertionError):
        check_weights(liar)


def test_sinkhorn_is_doubly_stochastic():
    for size in (0.1, 1.0, 2.0):
        P = AXES["kernel"].make("sinkhorn").weights(size * SCORES, np.ones(SCORES.shape, bool))
        np.testing.assert_allclose(P.sum(axis=-1), 1, atol=1e-12)
        np.testing.assert_allclose(P.sum(axis=-2), 1, atol=1e-12)
        ratio = np.log(P) - size * SCORES                   # diag(u) e^s diag(v): log P - s is a sum of rows and columns
        ratio = ratio - ratio.mean(axis=-1, keepdims=True)
        assert np.abs(ratio - ratio.mean(axis=-2, keepdims=True)).max() < 1e-9


def test_a_sinkhorn_that_does_not_settle_is_a_status():
    run = al.simulate(al.Weights(V=np.eye(3)), start(), t_end=1.0, kernel="sinkhorn", beta=60.0, throw=False)
    assert run.status in (al.Status.NON_FINITE, al.Status.STALLED) and run.stats["member_not_finite"] == 'kernel "sinkhorn"'


def test_sigmoid_by_hand():
    x = start()
    for bias in (None, -2.0):
        dynamics = al.Dynamics.of(WEIGHTS, kernel={"name": "sigmoid", "bias": bias}, mask="causal", beta=1.5)
        P = attention_matrices(dynamics, x)
        for h, i, j in np.ndindex(P.shape):
            s = 1.5 * (WEIGHTS.Q[h] @ x[i]) @ (WEIGHTS.K[h] @ x[j])
            expected = 1 / (1 + np.exp(-(s + (-np.log(i + 1) if bias is None else bias)))) if j <= i else 0.0
            assert P[h, i, j] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("name", NAMES["mask"])
def test_masks_see_what_they_say(name):
    mask = AXES["mask"].make(word(name))
    seen = mask.seen(N)
    assert seen.shape == (N, N) and seen.dtype == bool and seen.any(axis=1).all()
    assert seen.all() == mask.sees_all and np.array_equal(seen, np.tri(N, dtype=bool)) == mask.is_causal


def test_the_window():
    band = AXES["mask"].make({"name": "window", "width": 2, "causal": True}).seen(6)
    assert [[i - j for j in range(6) if band[i, j]] for i in (0, 4)] == [[0], [2, 1, 0]]


@pytest.mark.parametrize("name", NAMES["geometry"])
def test_spaces_project_on_their_tangent(name):
    space, x = AXES["geometry"].make(name), start(name)
    v = np.random.default_rng(1).normal(size=x.shape)
    tangent = space.project(x, v)
    np.testing.assert_allclose(space.project(x, tangent), tangent, atol=1e-14)
    np.testing.assert_allclose(space.check(space.retract(x + 1e-3 * v)), space.retract(x + 1e-3 * v), atol=1e-14)
    for h in (1e-3, 1e-4):                                  # the retraction follows a tangent to second order
        assert np.abs(space.retract(x + h * tangent) - (x + h * tangent)).max() <= 20 * h * h
    assert space.is_linear == np.array_equal(tangent, v)


@pytest.mark.parametrize("axis, name", [(axis, name) for axis in ("read", "write") for name in NAMES[axis]])
def test_what_is_token_by_token_is(axis, name):
    member, x = AXES[axis].make(word(name)), start(seed=3)
    out = member(x)
    assert out.shape == x.shape and np.array_equal(out, x) == member.is_identity
    np.testing.assert_array_equal(member(x[2:4]), out[2:4])


def test_reads_by_hand():
    x = start(seed=4)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(AXES["read"].make("rms_norm")(x), np.sqrt(D) * unit, rtol=1e-14)
    np.testing.assert_allclose(AXES["read"].make("unit_norm")(1e200 * x), unit, rtol=1e-14)
    normed = AXES["read"].make("layer_norm")(x)
    np.testing.assert_allclose(normed.mean(axis=1), 0, atol=1e-14)
    np.testing.assert_allclose(normed.std(axis=1), 1, rtol=1e-14)


@pytest.mark.parametrize("kernel, mask, geometry", PRODUCTS)
def test_compiled_equals_reference_and_a_batch_a_loop(kernel, mask, geometry):
    dynamics = together(kernel=word(kernel), mask=word(mask), geometry=geometry)
    x = start(geometry)
    fast, slow = al.velocity(dynamics, x), al.velocity(dynamics, x, method="reference")
    np.testing.assert_allclose(fast, slow, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(slow, loop_velocity(dynamics, x), rtol=1e-10, atol=1e-12)
    both = np.stack([x, start(geometry, seed=9)])
    options = {"t_end": 0.4, "saves": 3, "throw": False, "max_steps": 60}             # hardmax slides, for ever
    batch = al.simulate(dynamics, both, **options)
    assert batch.stats["path"] == ("compiled" if is_compiled(dynamics) else "reference")
    for member in range(2):
        alone = al.simulate(dynamics, both[member], **options)
        np.testing.assert_array_equal(batch.states[member][: len(alone.times)], alone.states)
    if geometry == "sphere":
        norms = np.linalg.norm(batch.x, axis=-1)
        np.testing.assert_allclose(norms[np.isfinite(norms)], 1, atol=1e-12)


@pytest.mark.parametrize("mask, same", [({"name": "window", "width": N}, "full"),
                                        ({"name": "window", "width": N, "causal": True}, "causal")])
@pytest.mark.parametrize("geometry", ["euclidean", "sphere"])
def test_a_run_on_the_reference_path_is_the_compiled_run(mask, same, geometry):
    """A window as wide as the text is the mask of attnlab's own, without compiled code."""
    options = {"geometry": geometry, "t_end": 3.0, "saves": 7, "rtol": 1e-10}
    slow, fast = (al.simulate(WEIGHTS, start(geometry), mask=one, **options) for one in (mask, same))
    assert (slow.stats["path"], fast.stats["path"]) == ("reference", "compiled")
    size = np.abs(fast.x).max(axis=(-2, -1), keepdims=True)
    assert np.abs((slow.x - fast.x) / size).max() < 1e-8
    assert geometry == "sphere" or np.abs(slow.z - fast.z).max() < 1e-7 * np.abs(fast.z).max()


def test_the_reference_path_ends_at_the_precision_wall():
    x0 = np.random.default_rng(0).uniform(-2, 2, (20, 2))
    runs = [al.simulate(al.Weights(V=np.eye(2)), x0, t_end=60.0, saves=61, mask=mask, throw=False)
            for mask in ("full", {"name": "window", "width": 20})]
    assert [run.status for run in runs] == [al.Status.PAST_DOUBLE_PRECISION] * 2
    assert abs(runs[0].stats["reached"] - runs[1].stats["reached"]) < 5.0


def loop_velocity(dynamics, x):
    """The equation by a double loop over tokens, with the weights of the kernel."""
    P, out = attention_matrices(dynamics, x), np.zeros_like(x)
    for i in range(len(x)):
        for h in range(dynamics.weights.heads):
            for j in range(len(x)):
                out[i] += P[h, i, j] * dynamics.weights.full_V[h] @ x[j]
        if dynamics.geometry.is_unit_sphere:
            out[i] -= (out[i] @ x[i]) * x[i]
    return out


@pytest.mark.parametrize("kernel", NAMES["kernel"])
def test_permutations_and_rotations(kernel):
    dynamics, x = al.Dynamics.of(WEIGHTS, kernel=word(kernel)), start(seed=6)
    order = np.random.default_rng(2).permutation(N)
    np.testing.assert_allclose(velocity_x(dynamics, x[order]), velocity_x(dynamics, x)[order], rtol=1e-9, atol=1e-11)
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(D, D)))[0]
    turned = al.Weights(Q=WEIGHTS.Q @ turn.T, K=WEIGHTS.K @ turn.T, V=turn @ WEIGHTS.V @ turn.T)
    there = velocity_x(dynamics.replace(weights=turned), x @ turn.T)
    np.testing.assert_allclose(there, velocity_x(dynamics, x) @ turn.T, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kernel", NAMES["kernel"])
def test_z_is_x_rescaled(kernel):
    """d/dt of e^{-tW} x, for rows that sum to 1 and for others."""
    dynamics, x, t = al.Dynamics.of(WEIGHTS, kernel=word(kernel)), start(seed=7), 0.3
    from scipy.linalg import expm

    W = WEIGHTS.total.dense()
    expected = (velocity_x(dynamics, x) - x @ W.T) @ expm(-t * W).T
    np.testing.assert_allclose(velocity_z(dynamics, x @ expm(-t * W).T, t), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("axis, name", [(axis, name) for axis in NAMES for name in NAMES[axis]])
def test_every_member_is_saved_and_loaded(axis, name, tmp_path):
    geometry = name if axis == "geometry" else "euclidean"
    options = {"stepper": "euler", "dt": 0.1} if axis == "noise" else {}
    run = al.simulate(WEIGHTS, start(geometry), t_end=0.2, saves=3, throw=False, max_steps=60, **{axis: word(name)}, **options)
    al.save(run, tmp_path / "run.nc")
    again = al.load(tmp_path / "run.nc")
    np.testing.assert_array_equal(again.states, run.states)
    assert again.dynamics.words() == run.dynamics.words() and getattr(again.dynamics, axis) == getattr(run.dynamics, axis)
    assert al.Dynamics.from_words(run.dynamics.words(), WEIGHTS).words() == run.dynamics.words()
    np.testing.assert_array_equal(al.attention(again), al.attention(run))


@pytest.mark.parametrize("kernel", [name for name in NAMES["kernel"] if name != "hardmax"])
def test_observed_order_of_fixed_steps(kernel):
    def end(**options):
        return al.simulate(WEIGHTS, start(), t_end=0.5, saves=2, kernel=word(kernel), **options).x[-1]

    truth = end(rtol=1e-12)
    for stepper, order in (("euler", 1), ("rk4", 4)):
        errors = [np.abs(end(stepper=stepper, dt=dt) - truth).max() for dt in (0.1, 0.05)]
        assert order - 0.35 < np.log2(errors[0] / errors[1]) < order + 0.6


@pytest.mark.parametrize("kernel", NAMES["kernel"])
def test_layers_are_the_recursion(kernel):
    dynamics = al.Dynamics.of(WEIGHTS, kernel=word(kernel), geometry="sphere", dt=0.2)
    x = start("sphere")
    run = al.simulate(dynamics, x, layers=3)
    for _ in range(3):
        x = x + 0.2 * sum(P @ x @ V.T for P, V in zip(attention_matrices(dynamics, x), WEIGHTS.full_V, strict=True))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(run.x[-1], x, rtol=1e-11)


# ------------------------------------------------------------------------------------------- normalisations and noise


def test_normalisations_by_hand():
    x, t = 3 * start(seed=8), 0.7
    theta = x / np.linalg.norm(x, axis=1, keepdims=True)

    def output(at):
        P = attention_matrices(al.Dynamics.of(WEIGHTS), at)
        return sum(P[h] @ at @ WEIGHTS.full_V[h].T for h in range(2))

    A = output(theta)
    unit, tangent = A / np.linalg.norm(A, axis=1, keepdims=True), lambda v: v - (v * theta).sum(axis=1, keepdims=True) * theta
    expected = {"post": tangent(A), "pre": A, "peri": unit, "ngpt": tangent(unit), "ln_scaling": tangent(A) / np.sqrt(t + 1)}
    for name, velocity in expected.items():
        dynamics = al.Dynamics.of(WEIGHTS, normalisation=name)
        at = x if dynamics.geometry.is_linear else theta
        np.testing.assert_allclose(velocity_x(dynamics, at, 0.0, t), velocity, rtol=1e-12, atol=1e-13)
        run = al.simulate(dynamics, at, t_end=0.5, saves=3)
        assert run.z is None
        again = al.Dynamics.from_words(dynamics.words(), WEIGHTS)
        assert again.normalisation == name and again.words() == dynamics.words()
        assert dynamics.replace(beta=2.0).normalisation == name
    with pytest.raises(ValueError, match=r"normalisation=\"pre\" chooses geometry by itself"):
        al.Dynamics.of(WEIGHTS, normalisation="pre", geometry="sphere")
    with pytest.raises(ValueError, match=r"normalisation=\"pre\" chooses geometry by itself"):
        al.Dynamics.of(WEIGHTS, normalisation="pre").replace(geometry="sphere")
    with pytest.raises(LookupError, match="Did you mean 'peri'"):
        al.Dynamics.of(WEIGHTS, normalisation="perri")


def test_noise_has_the_right_size_and_streams():
    still = al.Weights(V=np.zeros((2, 2)))
    x0 = np.zeros((3, 600, 2))
    noise = {"noise": {"name": "brownian", "kappa": 8.0}, "stepper": "euler", "dt": 0.25, "t_end": 1.0}
    run = al.simulate(still, x0, rng=3, times=[0.25, 1.0], **noise)
    assert run.times.tolist() == [0.25, 1.0]
    for at, t in enumerate(run.times):                      # variance 2 t / kappa, 3,600 numbers: within five deviations
        assert run.states[:, at].var() == pytest.approx(2 * t / 8, rel=5 * np.sqrt(2 / 3600))
    assert abs(np.corrcoef(run.states[0, -1].ravel(), run.states[1, -1].ravel())[0, 1]) < 0.15
    for member in range(3):
        alone = al.simulate(still, x0[member], rng=(3, member), **noise)
        np.testing.assert_array_equal(alone.states[[1, -1]], run.states[member])
    sphere = al.simulate(WEIGHTS, start("sphere"), geometry="sphere", **noise)
    np.testing.assert_allclose(np.linalg.norm(sphere.x, axis=-1), 1, atol=1e-13)


def test_the_strong_order_is_one_half_where_noise_depends_on_the_place():
    """On the sphere the noise is projected. One token, no drift: mean distance to a run with 16 times as many steps."""
    finest, fine, runs = 2.0**-9, 2.0**-5, 300
    generator = np.random.default_rng(11)
    weights, errors = al.Weights(V=np.zeros((3, 3))), {}
    x0 = np.tile([1.0, 0.0, 0.0], (runs, 1))                # tokens that do not interact: many samples at once
    path = np.sqrt(finest) * generator.standard_normal((int(1 / finest), runs, 3))
    common = {"geometry": "sphere", "stepper": "euler", "times": [1.0]}
    ends = {dt: al.simulate(weights, x0, dt=dt, noise=GivenPath(path, finest), **common).x[-1] for dt in (finest, fine, fine / 4)}
    errors = [np.linalg.norm(ends[dt] - ends[finest], axis=1).mean() for dt in (fine, fine / 4)]
    assert 0.3 < np.log2(errors[0] / errors[1]) / 2 < 0.75


def test_the_weak_order_is_one():
    """x' = x + noise for one token of 400 coordinates. Each has the variance (e^{2t} - 1) / kappa; 400,000 are measured."""
    kappa, d, gaps = 4.0, 400, []
    for dt in (0.1, 0.05):
        ends = al.simulate(al.Weights(V=np.eye(d)), np.zeros((1000, 1, d)), times=[1.0], stepper="euler", dt=dt, rng=1,
                           noise={"name": "brownian", "kappa": kappa}).x
        gaps.append((np.e**2 - 1) / kappa - ends.var())
    assert 0.8 < np.log2(gaps[0] / gaps[1]) < 1.2


# ------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("options, words", [
    ({"noise": {"name": "brownian", "kappa": 1.0}}, 'The noise "brownian" needs fixed steps'),
    ({"noise": {"name": "brownian", "kappa": 1.0}, "stepper": "rk4", "dt": 0.1}, 'needs fixed steps: stepper="euler"'),
    ({"noise": {"name": "brownian", "kappa": 1.0}, "stepper": "euler", "dt": 0.1, "times": [0.05]}, "whole multiples of dt"),
    ({"noise": {"name": "brownian", "kappa": -1.0}}, "kappa of the noise brownian must be a positive number"),
    ({"noise": {"name": "brownian", "kappa": 1.0}, "layers": 3}, "in continuous time only"),
    ({"noise": {"name": "brownian"}}, "cannot be made of"),
    ({"rng": 3}, "rng= is the seed of noise"),
    ({"kernel": "sinkhorn", "mask": "causal"}, 'The kernel "sinkhorn" needs whole columns of scores, which the mask "causal"'),
    ({"kernel": "sigmoid", "feedforward": {}}, 'those of the kernel "sigmoid" do not'),
    ({"read": "rms_norm", "feedforward": {}}, 'which the read "rms_norm" does not have'),
    ({"read": "rms_norm", "frame": "z"}, 'no rescaled frame with the read "rms_norm"'),
    ({"mask": {"name": "window", "width": -1}}, "width of the mask window must be a whole number of at least 0"),
    ({"mask": {"name": "given", "table": [[1, 0], [0, 1]]}}, "must be 7 x 7 for 7 tokens, got 2 x 2"),
    ({"mask": {"name": "given", "table": [[0, 0], [0, 1]]}}, "row 0 is empty"),
    ({"kernel": {"name": "sigmoid", "bias": "x"}}, "bias of the kernel sigmoid must be a finite number"),
    ({"kernel": {"bias": 1.0}}, "must have the key name"),
])
def test_what_makes_no_sense_is_refused_in_a_sentence(options, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        al.simulate(WEIGHTS, start(), **({"t_end": 1.0} if "layers" not in options else {}), **options)


def test_unknown_names_and_parameters_have_the_nearest():
    with pytest.raises(LookupError, match="Did you mean 'sigmoid'"):
        al.simulate(WEIGHTS, start(), t_end=1.0, kernel="sigmoyd")
    with pytest.raises(LookupError, match="Did you mean 'bias'"):
        al.simulate(WEIGHTS, start(), t_end=1.0, kernel={"name": "sigmoid", "biass": 1.0})
    with pytest.raises(TypeError, match="kernel must be the name of one"):
        al.simulate(WEIGHTS, start(), t_end=1.0, kernel=3)
    with pytest.raises(TypeError, match="got the class Linear: call it first"):
        al.simulate(WEIGHTS, start(), t_end=1.0, kernel=Linear)


def faulty(**members):
    """Register a kernel with these members in place of good ones, for the refusal that it must get."""
    good = {"rows_sum_to_one": False, "is_row_local": True, "hardens": False,
            "weights": lambda self, scores, seen: np.ones_like(scores)}
    kept = {name: value for name, value in {**good, **members}.items() if value is not ...}
    return lambda name="test_faulty": al.kernels.register(name)(type("Faulty", (), kept))


def test_a_member_must_be_whole():
    with pytest.raises(TypeError, match=r"The kernel 'test_faulty' must have the function weights"):
        faulty(weights=...)()
    with pytest.raises(TypeError, match=r"The kernel 'test_faulty' must have the flag hardens = True or False"):
        faulty(hardens=...)()
    with pytest.raises(TypeError, match=r"The flag hardens of the kernel 'test_faulty' must be True or False, got 'yes'"):
        faulty(hardens="yes")()
    for taken in ("softmax", "sinkhorn", "test_linear"):
        with pytest.raises(ValueError, match=f"The kernel '{taken}' is registered already"):
            faulty()(taken)
    assert "test_faulty" not in al.kernels


@pytest.mark.parametrize("weights, words", [
    (lambda self, scores, seen: -np.ones_like(scores), "must return weights of 0 or more, got -1"),
    (lambda self, scores, seen: np.ones(3), "must return real weights of the shape of its scores"),
    (lambda self, scores, seen: np.ones_like(scores) * 1j, "must return real weights"),
    (lambda self, scores, seen: np.full_like(scores, np.nan), None),
])
def test_bad_weights_never_look_like_a_run(weights, words, monkeypatch):
    monkeypatch.setattr(al.kernels, "_things", dict(al.kernels._things))
    faulty(weights=weights)()
    if words:
        with pytest.raises(ValueError, match=f'The kernel "test_faulty" {words}'):
            al.simulate(WEIGHTS, start(), t_end=1.0, kernel="test_faulty")
    else:
        with pytest.raises(al.RunFailed, match='The kernel "test_faulty" gave weights that are not finite'):
            al.simulate(WEIGHTS, start(), t_end=1.0, kernel="test_faulty")


def test_a_dynamics_is_taken_whole():
    dynamics = al.Dynamics.of(WEIGHTS, kernel={"name": "sigmoid", "bias": -1.0}, beta=2.0)
    with pytest.raises(TypeError, match=r"simulate takes its equation from the Dynamics: leave beta= out"):
        al.simulate(dynamics, start(), t_end=1.0, beta=3.0)
    run = al.simulate(dynamics, start(), t_end=0.3)
    np.testing.assert_array_equal(run.states, al.simulate(WEIGHTS, start(), t_end=0.3, kernel=dynamics.kernel, beta=2.0).states)
    assert al.limit(dynamics, start()).grade == "undecided" and "sigmoid" in al.limit(dynamics, start()).reason
    assert all(verdict.outcome is al.Outcome.OUT_OF_SCOPE for verdict in al.check(run))
    assert replace(dynamics, beta=1.0).kernel.bias == -1.0


def test_too_many_pairs_for_the_reference_path_are_refused(monkeypatch):
    from attnlab import capacity

    monkeypatch.setattr(capacity, "available_bytes", lambda: 10_000_000)
    with pytest.raises(ValueError, match="The pairs of 9000 tokens, on the reference path"):
        al.simulate(al.Weights(V=np.eye(2)), np.zeros((9000, 2)), t_end=1.0, saves=2, kernel="sigmoid")


def test_a_spec_names_members(polytope):
    spec = replace(polytope, dynamics={"kernel": {"name": "sigmoid", "bias": -2.0}, "mask": {"name": "window", "width": 1}})
    run = al.run_spec(al.Spec.from_toml(spec.to_toml()))
    assert run.dynamics.kernel.bias == -2.0 and run.dynamics.mask.width == 1 and run.spec.digest() == spec.digest()


# ------------------------------------------------------------------------------------------- closed forms and recipes


@pytest.mark.parametrize("beta, n, radius", [(0.5, 4, 1.0), (2.0, 5, 3.0)])
def test_orthogonal_starts_begin_as_the_closed_forms_say(beta, n, radius):
    """The rate of <theta_i, theta_j> at t = 0 for orthogonal tokens and Q = K = V = I (arXiv:2510.22026)."""
    e = np.exp(beta)
    first = {"post": 2 / (e + n - 1), "pre": 2 / (radius * (e + n - 1)), "peri": 2 / (radius * np.sqrt(e**2 + n - 1)),
             "ngpt": 2 / np.sqrt(e**2 + n - 1), "ln_scaling": 2 / (e + n - 1)}
    weights, h = al.Weights(V=np.eye(n)), 1e-5
    for name, rate in first.items():
        dynamics = al.Dynamics.of(weights, normalisation=name, beta=beta)
        x0 = np.eye(n) * (radius if dynamics.geometry.is_linear else 1.0)
        run = al.simulate(dynamics, x0, times=[0.0, h], observe=["radius"])
        theta = run.x / np.linalg.norm(run.x, axis=-1, keepdims=True)
        np.testing.assert_allclose(run.observed["radius"], np.linalg.norm(run.x, axis=-1).mean(axis=-1), rtol=1e-14)
        assert (theta[1, 0] @ theta[1, 1]) / h == pytest.approx(rate, rel=1e-3), name


def recipes():
    """The blocks of docs/extending.md about the axes, each a file of its own."""
    text = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
    part = text[text.index("## A kernel") : text.index("## A start law")]
    return re.findall(r"^```python\n(.*?)^```", part, re.DOTALL | re.MULTILINE)


def test_there_is_a_recipe_for_every_axis():
    text = "".join(recipes())
    assert all(f"al.{registry}.register(" in text for registry in
               ("kernels", "masks", "spaces", "scores", "reads", "writes", "speeds", "drifts", "noises"))


@pytest.mark.parametrize("recipe", recipes(), ids=lambda text: re.search(r'register\("(\w+)"', text)[1])
def test_each_recipe_runs_as_a_file_of_its_own(recipe, tmp_path):
    (tmp_path / "mine.py").write_text(recipe, encoding="utf-8")
    done = subprocess.run([sys.executable, "-W", "error", "mine.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_command_line_imports_a_file_first(tmp_path, polytope):
    (tmp_path / "mine.py").write_text(recipes()[0], encoding="utf-8")
    replace(polytope, dynamics={"kernel": {"name": "my_sigmoid", "bias": -1.0}}).save(tmp_path / "a.toml")

    def attnlab(*words):
        return subprocess.run([sys.executable, "-m", "attnlab", *words], cwd=tmp_path, capture_output=True, text=True,
                              timeout=120)

    done = attnlab("--import", "mine.py", "run", "a.toml", "-o", "a.nc")
    assert done.returncode == 0 and "my_sigmoid" in done.stdout, done.stderr
    assert attnlab("--import", "mine.py", "plot", "a.nc", "-o", "a.png").returncode == 0
    without = attnlab("run", "a.toml", "-o", "b.nc")
    assert without.returncode == 2 and "Unknown kernel 'my_sigmoid'" in without.stderr and "Traceback" not in without.stderr
    loaded = attnlab("plot", "a.nc", "-o", "b.png")
    assert loaded.returncode == 2 and "my_sigmoid" in loaded.stderr and "Traceback" not in loaded.stderr
    assert "there is no such file" in attnlab("--import", "none.py", "list").stderr
    (tmp_path / "taken.py").write_text("import attnlab as al\n@al.masks.register('full')\nclass A:\n    def seen(self, n): ...\n")
    assert "The mask 'full' is registered already" in attnlab("--import", "taken.py", "list").stderr
