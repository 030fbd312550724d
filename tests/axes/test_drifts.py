"""The axis of drifts: the feed-forward variant as a member, and fields of a user's own, in every
space, clock and file.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import attnlab as al
from attnlab.axes.members import AXES
from attnlab.dynamics import attention_matrices, velocity_x, velocity_z


class Swirl:
    """x_i' += strength cos(t) J x_i, J a rotation of the first two coordinates: a field that
    depends on time.
    """

    def __init__(self, strength: float = 0.5):
        self.strength = strength

    def __call__(self, x, t):
        out = np.zeros_like(x)
        out[..., 0], out[..., 1] = -x[..., 1], x[..., 0]
        return self.strength * np.cos(t) * out


class MyRelu:
    """The feed-forward variant written once more, without compiled code."""

    acts_on_z = True

    def __init__(self, W: object = None):
        self.W = None if W is None else np.array(W)

    def __call__(self, velocity, t):
        active = np.where(velocity > 0, velocity, 0.0)
        return active if self.W is None else active @ self.W.T


@pytest.fixture(scope="module", autouse=True)
def own_members():
    for name, member in (("test_swirl", Swirl), ("test_relu", MyRelu)):
        al.drifts.register(name)(member)
    yield
    for name in ("test_swirl", "test_relu"):
        AXES["feedforward"]._things.pop(name)


N, D = 6, 3
rng = np.random.default_rng(11)
WEIGHTS = al.Weights(
    Q=rng.normal(size=(D, D)) / 2, K=rng.normal(size=(D, D)) / 2, V=rng.normal(size=(D, D)) / 2
)
X0 = rng.normal(size=(N, D))
ON_SPHERE = X0 / np.linalg.norm(X0, axis=1, keepdims=True)
MATRIX = rng.normal(size=(D, D))


@pytest.mark.parametrize("geometry, x", [("euclidean", X0), ("sphere", ON_SPHERE)])
def test_a_field_is_added_before_the_projection(geometry, x):
    dynamics, t = (
        al.Dynamics.of(
            WEIGHTS, feedforward={"name": "test_swirl", "strength": 2.0}, geometry=geometry
        ),
        0.7,
    )
    P = attention_matrices(dynamics, x)[0]
    for i in range(N):
        rate = sum(P[i, j] * WEIGHTS.V[0] @ x[j] for j in range(N)) + 2 * np.cos(t) * np.array(
            [-x[i, 1], x[i, 0], 0.0]
        )
        if geometry == "sphere":
            rate = rate - (rate @ x[i]) * x[i]
        np.testing.assert_allclose(al.velocity(dynamics, x, t=t)[i], rate, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"geometry": "sphere"},
        {"kernel": "hardmax", "stepper": "rk4", "dt": 0.05},
        {"read": "rms_norm"},
        {"noise": {"name": "brownian", "kappa": 9.0}, "stepper": "euler", "dt": 0.05},
    ],
)
def test_a_batch_is_a_loop_and_a_file_holds_it(options, tmp_path):
    x = (
        np.stack([X0, 2 * X0[::-1]])
        if options.get("geometry") != "sphere"
        else np.stack([ON_SPHERE, ON_SPHERE[::-1]])
    )
    batch = al.simulate(WEIGHTS, x, t_end=0.5, saves=3, feedforward="test_swirl", **options)
    assert batch.stats["path"] == "reference" and batch.z is None
    for i in range(2):
        seed = {"rng": (0, i)} if "noise" in options else {}
        alone = al.simulate(
            WEIGHTS, x[i], t_end=0.5, saves=3, feedforward=Swirl(), **options, **seed
        )
        np.testing.assert_array_equal(alone.states, batch.states[i])
    al.save(batch, tmp_path / "run.nc")
    again = al.load(tmp_path / "run.nc")
    np.testing.assert_array_equal(again.states, batch.states)
    assert (
        again.dynamics.words() == batch.dynamics.words() and again.dynamics.feedforward == Swirl()
    )


def test_the_error_of_a_run_with_a_field_is_measured():
    run = al.simulate(
        WEIGHTS, X0, t_end=1.0, saves=2, feedforward="test_swirl", rtol=1e-6, measure_error=True
    )
    truth = al.simulate(WEIGHTS, X0, t_end=1.0, saves=2, feedforward="test_swirl", rtol=1e-12)
    assert (
        np.abs(run.x - truth.x).max() <= 2 * run.error * np.abs(truth.x).max() + 1e-12
        and run.error < 1e-5
    )


def test_layers_with_a_field_are_the_recursion():
    run, x = (
        al.simulate(
            WEIGHTS,
            ON_SPHERE,
            layers=4,
            dt=0.2,
            geometry="sphere",
            feedforward="test_swirl",
            measure_error=True,
        ),
        ON_SPHERE,
    )
    for k in range(4):
        P = attention_matrices(run.dynamics, x)[0]
        x = x + 0.2 * (P @ x @ WEIGHTS.V[0].T + Swirl()(x, 0.2 * k))
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(run.x[-1], x, rtol=1e-12)
    assert run.error < 1e-12


def test_the_feedforward_variant_is_the_same_on_both_paths():
    options = {"t_end": 1.0, "saves": 5, "rtol": 1e-10}
    for W in (None, MATRIX):
        fast = al.simulate(WEIGHTS, X0, feedforward=al.FeedForward(W=W), **options)
        slow = al.simulate(WEIGHTS, X0, feedforward=MyRelu(W), **options)
        assert (fast.stats["path"], slow.stats["path"], slow.frame) == (
            "compiled",
            "reference",
            "z",
        )
        np.testing.assert_allclose(slow.z, fast.z, rtol=1e-8, atol=1e-8)
        given = np.random.default_rng(1).normal(size=X0.shape)
        np.testing.assert_allclose(
            velocity_z(slow.dynamics, given, 0.3), velocity_z(fast.dynamics, given, 0.3), rtol=1e-13
        )


def test_all_forms_of_the_feedforward_variant_are_one():
    part = al.FeedForward(W=MATRIX, sigma="tanh", bias=np.ones(D))
    table = {"W": MATRIX, "sigma": "tanh", "bias": np.ones(D)}
    dynamics = al.Dynamics.of(WEIGHTS, feedforward=part)
    for given in (
        table,
        {"name": "feedforward", **table},
        dynamics.feedforward,
        dynamics.words()["feedforward"],
    ):
        assert al.Dynamics.of(WEIGHTS, feedforward=given).words() == dynamics.words()
    assert dynamics.feedforward == "feedforward" and dynamics.feedforward is part
    assert (
        al.Dynamics.of(WEIGHTS).feedforward.is_none
        and al.Dynamics.of(WEIGHTS, feedforward=None).feedforward == "none"
    )
    assert dynamics.replace(feedforward="none").is_value_linear and dynamics.is_value_linear
    with pytest.raises(
        ValueError, match=r"FeedForward.W must have shape \(3, 3\) to match V, got \(2, 2\)"
    ):
        al.Dynamics.of(WEIGHTS, feedforward={"name": "feedforward", "W": np.eye(2)})


def test_a_spec_may_name_a_drift(tmp_path):
    spec = al.Spec(
        weights={"family": "identity"},
        start={"law": "normal", "n": 4, "d": 2},
        dynamics={"feedforward": {"name": "test_swirl", "strength": 1.5}},
        solve={"t_end": 0.5, "saves": 2},
    )
    spec.save(tmp_path / "a.toml")
    run = al.run_spec(al.Spec.load(tmp_path / "a.toml"))
    assert run.dynamics.feedforward == Swirl(1.5) and run.stats["path"] == "reference"


def test_what_is_about_the_flow_alone_says_so():
    dynamics = al.Dynamics.of(al.Weights(V=np.eye(D)), feedforward="test_swirl")
    assert not dynamics.is_value_linear
    with pytest.raises(ValueError, match='There is no rescaled frame with the drift "test_swirl"'):
        al.simulate(dynamics, X0, t_end=1.0, frame="z")
    with pytest.raises(ValueError, match='There is no rescaled frame with the drift "test_swirl"'):
        velocity_z(dynamics, X0, 0.0)
    with pytest.raises(ValueError, match="feed-forward variant is an equation for z"):
        velocity_x(al.Dynamics.of(WEIGHTS, feedforward="test_relu"), X0)
    limit = al.limit(dynamics, X0)
    assert not limit.certified and 'feedforward="test_swirl"' in limit.reason
    at_rest = al.limit(dynamics.replace(weights=al.Weights(V=np.zeros((D, D)))), X0)
    assert not at_rest.certified  # V = 0, and yet the tokens move
    said = al.predict(dynamics, X0)
    assert not any(one.applies for one in said) and any(
        "test_swirl" in words for words in said.openings
    )
    with_part = al.predict(al.Dynamics.of(al.Weights(V=np.eye(D)), feedforward="test_relu"), X0)
    assert not any(
        one.applies for one in with_part
    )  # a part of one's own is not the ReLU of the paper


@pytest.mark.parametrize(
    "other, words",
    [
        ({"geometry": "sphere"}, "sphere"),
        ({"kernel": "sigmoid"}, "sigmoid"),
        ({"dt": 1.0}, "layers"),
        ({"read": "rms_norm"}, "rms_norm"),
        ({"noise": {"name": "brownian", "kappa": 1.0}}, "brownian"),
    ],
)
def test_a_part_in_the_equation_of_z_is_refused_where_there_is_no_z(other, words):
    for part in (al.FeedForward(), MyRelu()):
        with pytest.raises(ValueError, match="feed-forward variant") as caught:
            al.Dynamics.of(WEIGHTS, feedforward=part, **other)
        assert words in str(caught.value)


def test_a_drift_of_another_shape_is_a_sentence():
    @al.drifts.register("test_wrong")
    class Wrong:
        def __call__(self, x, t):
            return x[:, :1]

    try:
        with pytest.raises(ValueError, match=r'The drift "test_wrong" must return .* \(6, 3\)'):
            al.simulate(WEIGHTS, X0, t_end=1.0, feedforward="test_wrong")
    finally:
        AXES["feedforward"]._things.pop("test_wrong")


def test_pages_and_words_name_a_drift(tmp_path):
    run = al.simulate(WEIGHTS, X0, t_end=0.5, saves=3, feedforward="test_swirl")
    al.explore(run, tmp_path / "page.html")
    assert "test_swirl" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "test_swirl" in run.dynamics._repr_html_()
    assert dataclasses.replace(run.dynamics).feedforward == run.dynamics.feedforward
