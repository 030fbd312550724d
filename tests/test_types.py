"""The records: what a Spec keeps, what Weights refuse, and how the frames of a Trajectory belong
together.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from attnlab import (
    Dynamics,
    FeedForward,
    NoRescaledFrame,
    Solve,
    Spec,
    Status,
    Trajectory,
    Weights,
    simulate,
)

# --------------------------------------------------------------------------------------------------
# Spec

words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=8)
numbers = st.one_of(
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    words,
)


def nested(inner):
    return st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3)


values = st.recursive(numbers, nested, max_leaves=6)
tables = st.dictionaries(words, values, max_size=4)
specs = st.builds(
    Spec,
    weights=tables,
    start=tables,
    solve=tables,
    dynamics=tables,
    observe=st.lists(words, max_size=3),
)


@given(specs)
def test_a_spec_survives_toml_and_json(spec):
    assert Spec.from_toml(spec.to_toml()) == spec
    assert Spec.from_json(spec.to_json()) == spec
    assert Spec.from_toml(spec.to_toml()).digest() == spec.digest()


@pytest.mark.parametrize("name", ["a.toml", "a.json"])
def test_a_spec_survives_a_file(polytope, tmp_path, name):
    polytope.save(tmp_path / name)
    assert Spec.load(tmp_path / name) == polytope
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_arrays_become_lists():
    spec = Spec(
        weights={"V": np.eye(2)},
        start={"n": np.int64(3), "on": np.bool_(True)},
        solve={"times": (0, 1)},
    )
    assert spec.weights == {"V": [[1.0, 0.0], [0.0, 1.0]]}
    assert spec.start == {"n": 3, "on": True} and type(spec.start["on"]) is bool
    assert spec.solve == {"times": [0, 1]}


def test_the_digest_is_what_it_was():
    """The name of a run must not change between versions: computed here from a canonical text
    written by hand.
    """
    text = (
        '{"observe":["energy"],"solve":{"t_end":10},'
        '"start":{"d":3,"high":0.1,"law":"uniform_cube","n":40},"weights":{"family":"identity"}}'
    )
    start = {"law": "uniform_cube", "n": 40, "d": 3, "high": 0.1}
    spec = Spec(
        weights={"family": "identity"}, start=start, solve={"t_end": 10.0}, observe=["energy"]
    )
    assert spec.digest() == hashlib.sha256(text.encode()).hexdigest()[:16] == "f606d5874de5306c"


def test_five_and_five_point_zero_are_one_run(polytope):
    def with_end(t_end):
        return Spec(weights=polytope.weights, start=polytope.start, solve={"t_end": t_end}).digest()

    assert with_end(5) == with_end(5.0) == with_end(np.float64(5))
    assert len({with_end(5), with_end(5.5), with_end("5"), with_end(6)}) == 4


def test_the_order_of_keys_is_no_difference():
    one = Spec(weights={"a": 1, "b": 2}, start={}, solve={})
    other = Spec(weights={"b": 2, "a": 1}, start={}, solve={})
    assert one.digest() == other.digest()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"weights": {}, "start": {}, "solve": {}, "solver": {}}, "unknown key 'solver'"),
        (
            {"weights": {}, "solve": {}},
            "needs the sections weights, start and solve; start is missing",
        ),
        (
            {"weights": {}, "start": {"low": float("nan")}, "solve": {}},
            "Spec.start.low must be finite, got nan",
        ),
        (
            {"weights": {"V": [[1, float("inf")]]}, "start": {}, "solve": {}},
            r"Spec.weights.V\[0\]\[1\] must be finite, got inf",
        ),
    ],
)
def test_a_wrong_spec_is_a_sentence(data, sentence):
    with pytest.raises(ValueError, match=sentence):
        Spec.from_dict(data)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"weights": 3, "start": {}, "solve": {}}, "Spec.weights must be a table, got int"),
        (
            {"weights": {"a": None}, "start": {}, "solve": {}},
            "Spec.weights.a must be a number, a word, .* got NoneType",
        ),
        (
            {"weights": {"a": {1: 2}}, "start": {}, "solve": {}},
            "Spec.weights.a must have words as keys, got 1",
        ),
        (
            {"weights": {}, "start": {}, "solve": {}, "observe": "energy"},
            "Spec.observe must be a list of names",
        ),
    ],
)
def test_a_spec_of_the_wrong_type_is_a_sentence(data, sentence):
    with pytest.raises(TypeError, match=sentence):
        Spec.from_dict(data)


@pytest.mark.parametrize(
    ("name", "text", "error", "sentence"),
    [
        ("no.toml", None, FileNotFoundError, "There is no Spec at"),
        ("bad.toml", b"[weights\n", ValueError, "bad.toml is not valid TOML"),
        ("bad.json", b"{", ValueError, "bad.json is not valid JSON"),
        ("bytes.toml", b"\xff\xfe\x00", ValueError, "is not a text file"),
        ("part.toml", b"[weights]\n", ValueError, "part.toml: A Spec needs the sections"),
        (
            "number.toml",
            b"weights = 1\nstart = 2\nsolve = 3\n",
            TypeError,
            "number.toml: Spec.weights must be a table",
        ),
    ],
)
def test_a_file_that_holds_no_spec_is_a_sentence(tmp_path, name, text, error, sentence):
    if text is not None:
        (tmp_path / name).write_bytes(text)
    with pytest.raises(error, match=sentence):
        Spec.load(tmp_path / name)


def test_json_has_no_nan(polytope):
    json.loads(polytope.to_json(), parse_constant=pytest.fail)


# -------------------------------------------------------------------------------------------------
# Weights


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({}, "Weights needs V"),
        ({"V": (np.eye(2),)}, r"pair \(B, C\) with V = B C, got 1 items"),
        (
            {"V": (np.ones((3, 1)), np.ones((2, 3)))},
            r"\(h, d, r\) and \(h, r, d\), got \(1, 3, 1\) and \(1, 2, 3\)",
        ),
        (
            {"V": np.ones((2, 3))},
            r"V must be square, \(d, d\) or \(h, d, d\), got shape \(1, 2, 3\)",
        ),
        ({"V": np.ones(3)}, r"V must have 2 or 3 axes, got shape \(3,\)"),
        ({"V": np.ones((0, 0))}, "V must not be empty"),
        ({"V": [[1.0, np.nan], [0.0, 1.0]]}, r"V must be finite, but entry \(0, 1\) is nan"),
        ({"V": [["a"]]}, "V must be an array of real numbers, got list"),
        (
            {"V": np.eye(2), "Q": np.ones((1, 2))},
            r"Q and K must have the same shape \(k, d\) or \(h, k, d\)",
        ),
        ({"V": np.eye(2), "Q": np.eye(3), "K": np.eye(3)}, "Q has d = 3, V has d = 2"),
        (
            {"V": np.ones((3, 2, 2)), "Q": np.ones((2, 1, 2)), "K": np.ones((2, 1, 2))},
            "Q has 2, K has 2, V has 3",
        ),
    ],
)
def test_weights_of_the_wrong_shape_are_a_sentence(parts, sentence):
    with pytest.raises(ValueError, match=sentence):
        Weights(**parts)


def test_weights_always_have_heads():
    w = Weights(V=2 * np.eye(3))
    assert w.Q.shape == w.K.shape == w.V.shape == (1, 3, 3)
    assert (w.heads, w.d, w.is_factored) == (1, 3, False)
    np.testing.assert_array_equal(w.M, np.eye(3)[None])


def test_factors_are_the_product():
    rng = np.random.default_rng(0)
    B, C = rng.standard_normal((2, 5, 1)), rng.standard_normal((2, 1, 5))
    w = Weights(V=(B, C))
    assert (w.heads, w.d, w.is_factored) == (2, 5, True)
    np.testing.assert_array_equal(w.full_V, B @ C)
    assert w.total.is_factored
    np.testing.assert_allclose(w.total.dense(), (B @ C).sum(axis=0), atol=1e-15)


def test_weights_are_a_copy_that_cannot_be_written():
    V = np.eye(2)
    w = Weights(V=V)
    V[0, 0] = 7
    assert w.V[0, 0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        w.V[0, 0, 0] = 7


def test_feedforward_refuses_what_is_no_array():
    with pytest.raises(ValueError, match="FeedForward.bias must have 1 axes"):
        FeedForward(bias=[[1.0]])


# ----------------------------------------------------------------------------------------------
# Trajectory

MIXED = np.array([[1.2, 0.3, 0.0], [0.1, 0.4, -0.2], [0.0, 0.5, -0.9]])


def trajectory(V, frame, *, times=(0.0, 0.4, 1.5), log_scale=0.0, batch=(), **dynamics):
    times = np.asarray(times)
    weights = Weights(V=V)
    states = np.random.default_rng(1).standard_normal((*batch, len(times), 4, weights.d))
    scale = np.broadcast_to(np.asarray(log_scale, dtype=float), (*batch, len(times)))
    status = np.full(batch, Status.OK, dtype=object) if batch else Status.OK
    return Trajectory(
        Dynamics(weights, **dynamics), Solve(times[-1], times), times, states, frame, scale, status
    )


def moved(run, matrix_at):
    """matrix_at(t) applied to every token of every saved state, by a plain loop."""
    out = np.empty_like(run.states)
    for i, t in enumerate(run.times):
        out[..., i, :, :] = np.einsum("ab,...nb->...na", matrix_at(t), run.states[..., i, :, :])
    return out


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("scale", [0.0, 0.7])
def test_x_and_z_are_two_views(batch, scale):
    V, factor = MIXED, np.exp(scale)
    run = trajectory(V, "x", batch=batch, log_scale=scale)
    np.testing.assert_allclose(run.x, factor * run.states, rtol=1e-14)
    np.testing.assert_allclose(
        run.z, factor * moved(run, lambda t: expm(-t * V)), rtol=1e-11, atol=1e-12
    )
    run = trajectory(V, "z", batch=batch, log_scale=scale)
    np.testing.assert_allclose(run.z, factor * run.states, rtol=1e-14)
    np.testing.assert_allclose(
        run.x, factor * moved(run, lambda t: expm(t * V)), rtol=1e-11, atol=1e-12
    )
    # eigen-coordinates: one real eigenvalue 0.7 and the pair -0.2 +- 1.3 i, in an oblique basis
    basis = np.random.default_rng(8).standard_normal((3, 3))
    blocks = np.array([[0.7, 0.0, 0.0], [0.0, -0.2, 1.3], [0.0, -1.3, -0.2]])
    run = trajectory(basis @ blocks @ np.linalg.inv(basis), "x", batch=batch, log_scale=scale)
    run = dataclasses.replace(
        run, basis=basis, growth=np.array([0.7, -0.2, -0.2]), turn=np.array([0.0, 1.3, 0.0])
    )
    np.testing.assert_allclose(run.x, factor * moved(run, lambda t: basis), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(
        run.z, factor * moved(run, lambda t: basis @ expm(-t * blocks)), rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize("frame", ["x", "z"])
def test_factored_and_full_weights_give_the_same_views(frame):
    rng = np.random.default_rng(5)
    B, C = rng.standard_normal((6, 2)), rng.standard_normal((2, 6))
    thin, full = trajectory((B, C), frame), trajectory(B @ C, frame)
    np.testing.assert_allclose(thin.x, full.x, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(thin.z, full.z, rtol=1e-9, atol=1e-10)


def test_layers_are_unwound_by_powers():
    dt = 0.5
    run = trajectory(MIXED, "x", times=dt * np.array([0, 1, 4]), dt=dt)
    R = np.eye(3) + dt * MIXED
    np.testing.assert_allclose(
        run.z,
        moved(run, lambda t: np.linalg.matrix_power(np.linalg.inv(R), round(t / dt))),
        rtol=1e-12,
    )


def test_layers_that_turn_tokens_over_are_unwound_by_powers():
    """In eigen-coordinates: 1 + dt lambda is 1.25, -0.5 and -0.9, and 0.9 +- 0.65 i. The sign
    changes with every layer.
    """
    blocks = np.zeros((5, 5))
    blocks[[0, 1, 2], [0, 1, 2]], blocks[3:, 3:] = [0.5, -3.0, -3.8], [[-0.2, 1.3], [-1.3, -0.2]]
    basis = np.eye(5) + 0.3 * np.random.default_rng(8).normal(size=(5, 5))
    V, x0 = basis @ blocks @ np.linalg.inv(basis), np.random.default_rng(0).normal(size=(4, 5))
    run = simulate(Weights(V=V), x0, layers=5, dt=0.5)
    assert run.basis is not None and run.frame == "x"
    back = np.linalg.inv(np.eye(5) + 0.5 * V)
    for k, z in enumerate(run.z):
        expected = run.x[k] @ np.linalg.matrix_power(back, k).T
        np.testing.assert_allclose(z, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_singular_layers_have_no_z():
    run = trajectory(-np.eye(2), "x", times=[0.0, 1.0], dt=1.0)
    with pytest.raises(ValueError, match="needs R = I .* to be invertible"):
        _ = run.z


def test_there_is_no_z_on_the_sphere():
    run = trajectory(np.eye(2), "x", geometry="sphere")
    assert run.z is None
    with pytest.raises(
        NoRescaledFrame,
        match=r"^There is no rescaled frame on the sphere: tokens stay bounded\. Use run\.x\.$",
    ):
        _ = run.rescaled


def test_the_missing_frame_names_the_member():
    run = trajectory(np.eye(2), "x", read="rms_norm")
    assert run.z is None
    with pytest.raises(
        NoRescaledFrame, match='no rescaled frame with the read "rms_norm". Use run.x.'
    ):
        _ = run.rescaled


def test_rescaled_is_z():
    run = trajectory(np.eye(2), "x")
    assert run.rescaled is run.z


def test_x_beyond_double_precision_is_a_sentence_and_a_scaled_pair():
    run = trajectory(np.eye(2), "z", times=[0.0, 100.0, 1000.0])
    with pytest.raises(
        OverflowError,
        match=r"x exceeds .* double precision from t = 1000 on. Use run.z, or run.scaled_x\(\)",
    ):
        _ = run.x
    y, s = run.scaled_x()
    np.testing.assert_allclose(y, run.states)
    np.testing.assert_allclose(s, run.times)


def test_a_trajectory_says_what_it_is():
    run = trajectory(np.eye(2), "x", batch=(2,))
    assert (run.n, run.d, run.batch, run.is_ok) == (4, 2, (2,), True)
    assert "2 of 2 OK" in repr(run)
    assert "Status.OK" in repr(trajectory(np.eye(2), "x"))


def test_every_status_is_a_sentence():
    for status in Status:
        assert status.value.endswith(".") and " " in status.value
