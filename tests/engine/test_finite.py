"""Status OK means finite numbers: whatever the equation, the stepper and the size of the numbers,
and a stopped run is cut.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import attnlab as al
from attnlab import Status
from attnlab.analysis import observables
from attnlab.engine import plan


def assert_finite_where_good(run):
    """What was promised: a member is finite up to its last good time and NaN after it; one that is
    OK is finite throughout.
    """
    count = len(run.times)
    statuses = np.ravel(np.asarray(run.status, dtype=object))
    members = len(statuses)
    arrays = {"states": run.states, "log_scale": run.log_scale, **run.observed}
    for name, values in arrays.items():
        assert values.shape[: len(run.batch) + 1] == (*run.batch, count), name
        finite = (
            np.isfinite(values)
            .all(axis=tuple(range(len(run.batch) + 1, values.ndim)))
            .reshape(members, count)
        )
        for member, status in enumerate(statuses):
            if status is Status.OK or not run.batch:
                assert finite[member].all(), (name, status)
            # no holes: what is not finite is the tail, where the states are NaN too
            assert (np.diff(finite[member].astype(int)) <= 0).all(), (name, status)
    if Status.OK in statuses.tolist():
        assert count == len(run.solve.times)
    assert (np.ravel(run.stats["reached"]) <= run.solve.t_end).all()


# ------------------------------------------------------------------------------------------- what
# was seen


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("is_large", [False, True])
def test_a_dense_output_that_overflows_ends_the_run(seed, is_large, monkeypatch):
    """With rtol = 1 steps on the sphere are accepted whose interpolation is NaN. (Such an rtol is
    refused, but not here.)
    """
    monkeypatch.setattr(plan, "MOST_PAIRS", 0 if is_large else plan.MOST_PAIRS)
    monkeypatch.setattr("attnlab.engine.options.LARGEST_TOLERANCE", 10.0)
    x0 = np.random.default_rng(seed).standard_normal((20, 3))
    x0 /= np.linalg.norm(x0, axis=1, keepdims=True)
    run = al.simulate(
        al.Weights(V=np.eye(3)), x0, t_end=20.0, geometry="sphere", rtol=1.0, throw=False
    )
    assert run.status is Status.NON_FINITE and 0 < len(run.times) < 101
    assert run.stats["reached"] == run.times[-1]
    assert_finite_where_good(run)
    both = np.stack([x0, x0[:1] * np.ones((20, 1))])
    batch = al.simulate(
        al.Weights(V=np.eye(3)), both, t_end=20.0, geometry="sphere", rtol=1.0, throw=False
    )
    assert batch.status.tolist() == [Status.NON_FINITE, Status.OK]  # equal tokens stand still
    good = len(run.times)
    assert (
        np.array_equal(batch.states[0, :good], run.states)
        and np.isnan(batch.states[0, good:]).all()
    )
    assert_finite_where_good(batch)


OBLIQUE = np.array(
    [[1.0, 1.0], [0.0, 0.5]]
)  # a token (x, y) has the coordinates x + 2y and sqrt(5) y


def test_tokens_whose_eigen_coordinates_overflow_are_refused_with_the_number():
    x0 = np.array([[1e308, -1e308], [1e308, 1.2e308], [-1e308, 1e307]])
    with pytest.raises(
        ValueError,
        match=r"x0 must be small enough .* largest entry is 1\.2e\+308\. Scale the tokens down\.",
    ):
        al.simulate(al.Weights(V=OBLIQUE), x0, t_end=1.0)


@pytest.mark.parametrize("V", [np.eye(2), OBLIQUE, -np.eye(2)])
@pytest.mark.parametrize(
    "options",
    [{}, {"frame": "z"}, {"layers": 3}, {"stepper": "rk4", "dt": 0.1}, {"feedforward": {}}],
)
def test_tokens_of_1e308_give_numbers_or_a_reason(V, options):
    x0 = np.array([[1e308, -1e308], [1e308, 1.2e308], [-1e308, 1e307]])
    for tokens in (x0, x0 / 1e4):
        try:
            run = al.simulate(
                al.Weights(V=V),
                tokens,
                throw=False,
                **({} if "layers" in options else {"t_end": 1.0}),
                **options,
            )
        except ValueError as problem:
            assert "Scale the tokens down" in str(problem)
        else:
            assert_finite_where_good(run)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rtol": 1.0}, "rtol must be at most 0.1: coarser steps do not follow the flow; got 1."),
        ({"rtol": 0.5}, "rtol must be at most 0.1: coarser steps do not follow the flow; got 0.5."),
        (
            {"atol": 0.4},
            (
                "atol must be at most 0.1 of the largest first token, 0.2 here: coarser steps do"
                " not follow the flow"
            ),
        ),
        ({"atol": 1e300}, "got 1e+300"),
    ],
)
def test_tolerances_that_follow_nothing_are_refused(options, words):
    x0 = np.array([[2.0, 0.0], [1.0, 1.0]])
    with pytest.raises(ValueError) as caught:
        al.simulate(al.Weights(V=np.eye(2)), np.stack([x0, 3 * x0, 0 * x0]), t_end=1.0, **options)
    assert words in str(caught.value)


def test_the_largest_tolerances_are_taken():
    x0 = np.array([[2.0, 0.0], [1.0, 1.0]])
    assert al.simulate(al.Weights(V=np.eye(2)), x0, t_end=1.0, rtol=0.1, atol=0.2).is_ok


# -------------------------------------------------------------------------------------------
# observables


def test_an_observable_that_overflows_ends_the_run_before_it():
    """V = I, one token of length 1: the energy exp(e^2t) / 2 leaves double precision where e^2t =
    log(2 * 1.797e308).
    """
    end = 0.5 * np.log(np.log(1.797e308) + np.log(2.0))
    weights, times = al.Weights(V=np.eye(2)), np.linspace(0.0, 5.0, 501)
    with pytest.raises(
        al.RunFailed, match="The observable energy is not finite from there on"
    ) as caught:
        al.simulate(weights, [[1.0, 0.0]], times=times, observe=["diameter", "energy"])
    run = caught.value.run
    assert run.status is Status.NON_FINITE and len(run.times) == np.sum(times < end)
    assert_finite_where_good(run)
    batch = al.simulate(
        weights, [[[1.0, 0.0]], [[1e-9, 0.0]]], times=times, observe=["energy"], throw=False
    )
    assert batch.status.tolist() == [Status.NON_FINITE, Status.OK]
    assert np.array_equal(batch.observed["energy"][0, : len(run.times)], run.observed["energy"])
    assert (
        np.isnan(batch.observed["energy"][0, len(run.times) :]).all()
        and np.isnan(batch.states[0, len(run.times) :]).all()
    )
    assert_finite_where_good(batch)


@pytest.fixture
def own():
    """Registers observables of this test's own, for its time."""
    names = []

    def register(name, function):
        observables.register(name)(function)
        names.append(name)

    yield register
    for name in names:
        del observables._things[name]


def test_an_observable_of_whole_numbers_or_of_another_shape_is_left_as_it_is(own):
    own("whole", lambda run: np.arange(len(run.times)))
    own("single", lambda run: np.array(np.inf))
    run = al.simulate(
        al.Weights(V=np.eye(2)), [[1.0, 0.0]], t_end=1.0, saves=5, observe=["whole", "single"]
    )
    assert (
        run.is_ok and run.observed["whole"].dtype.kind == "i" and run.observed["single"].shape == ()
    )


def test_an_observable_that_is_never_finite_leaves_nothing(own):
    own("nothing", lambda run: np.full(len(run.times), np.nan))
    run = al.simulate(
        al.Weights(V=np.eye(2)), [[1.0, 0.0]], t_end=1.0, saves=5, observe=["nothing"], throw=False
    )
    assert run.status is Status.NON_FINITE and len(run.times) == 0 and run.stats["reached"] == 0.0


# -------------------------------------------------------------------------------------------
# anything


sizes = st.sampled_from(
    [1e-300, 1e-150, 1e-20, 1e-3, 1.0, 1.0, 1.0, 30.0, 1e6, 1e100, 1e160, 1e300]
)


@st.composite
def calls(draw):
    """(weights, x0, options) of a run of few tokens: any equation, any stepper, any size of
    anything.
    """
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, h = draw(st.integers(1, 7)), draw(st.integers(1, 2))
    d, k = draw(st.sampled_from([(1, 1), (3, 2)]))  # few: each is compiled for itself
    geometry = draw(st.sampled_from(["euclidean", "euclidean", "sphere"]))
    V = rng.standard_normal((h, d, d)) * draw(sizes)
    score = draw(sizes)
    weights = al.Weights(
        Q=score * rng.standard_normal((h, k, d)), K=rng.standard_normal((h, k, d)), V=V
    )
    batch = draw(st.sampled_from([(), (), (3,)]))
    x0 = rng.standard_normal((*batch, n, d))
    if geometry == "sphere":
        x0 = x0 / np.linalg.norm(x0, axis=-1, keepdims=True)
    else:
        x0 = x0 / np.abs(x0).max() * draw(sizes | st.just(1e308))
    options = {
        "geometry": geometry,
        "kernel": draw(st.sampled_from(["softmax", "exp_mean", "hardmax"])),
        "mask": draw(st.sampled_from(["full", "causal"])),
        "beta": draw(st.sampled_from([1.0, -1.0, 0.0, 1e6, 1e300])),
    }
    clock = draw(st.sampled_from(["adaptive", "adaptive", "euler", "rk4", "layers"]))
    span = draw(st.sampled_from([1e-6, 1.0, 30.0, 1e4]))
    saved = {"saves": draw(st.integers(2, 40))} if draw(st.booleans()) else {}
    if clock == "layers":
        options |= {
            "layers": draw(st.integers(1, 60)),
            "dt": draw(st.sampled_from([0.1, 1.0, 1e200])),
            **saved,
        }
    else:
        options |= {"t_end": span, "stepper": clock, "max_steps": 300, **saved}
        if clock != "adaptive":
            options["dt"] = span / draw(st.sampled_from([1, 7.5, 60]))
        options["rtol"] = draw(st.sampled_from([1e-10, 1e-4, 0.1]))
        if geometry == "euclidean":
            options["frame"] = draw(st.sampled_from(["auto", "x", "z"]))
        if (
            geometry == "euclidean"
            and options["kernel"] != "exp_mean"
            and options["frame"] != "x"
            and draw(st.booleans())
        ):
            sigma = draw(st.sampled_from(["relu", "tanh", "identity"]))
            options["feedforward"] = {"sigma": sigma, "bias": rng.standard_normal(d)}
    if draw(st.booleans()):
        options["observe"] = draw(
            st.lists(
                st.sampled_from(["attention_entropy", "attention_rank", "energy"]), unique=True
            )
        )
    return weights, x0, options


def run_it(call, is_large):
    weights, x0, options = call
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "MOST_PAIRS", 0 if is_large else plan.MOST_PAIRS)
        try:
            with np.errstate(all="ignore"):
                run = al.simulate(weights, x0, throw=False, **options)
        except ValueError as problem:
            assert str(problem)
            return
    assert_finite_where_good(run)
    for name in ("x", "z"):
        try:
            with np.errstate(all="ignore"):
                values = getattr(run, name)
        except (ArithmeticError, ValueError):
            continue  # a sentence instead of numbers
        if values is not None:
            assert np.array_equal(np.isfinite(values), np.isfinite(run.states)), name


quick = settings(
    max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@quick
@given(calls())
def test_no_run_is_ok_with_a_number_that_is_not_finite(call):
    run_it(call, is_large=False)


@settings(quick, max_examples=30)
@given(calls())
def test_no_large_run_is_ok_with_a_number_that_is_not_finite(call):
    run_it(call, is_large=True)


@pytest.mark.parametrize("name", ["cluster_count", "cluster_count_all"])
def test_clusters_of_tokens_whose_distance_overflows_are_unknown_and_keep_the_run(name):
    x0 = 1e155 * np.random.default_rng(0).normal(size=(6, 2))
    run = al.simulate(al.Weights(V=np.eye(2)), x0, t_end=1.0, saves=3, observe=[name], throw=False)
    assert run.status is al.Status.NON_FINITE and run.stats["not_finite"] == name
