"""A proved limit: every step that encloses the tokens, and their end, checked with MPFR and exact
rationals.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import gmpy2
import numpy as np

from attnlab.axes.together import plain_axes
from attnlab.engine.threads import one_blas_thread
from attnlab.limits.verification import ways
from attnlab.limits.verification.enclosed_end import check_gaps, check_leak, enclose_points
from attnlab.limits.verification.enclosed_error import UP, ErrorSet, Followed, enclose, lengths
from attnlab.limits.verification.enclosed_flow import Checked, Flow, check_numbers, distance
from attnlab.limits.verification.enclosed_flow import Step as FlowStep
from attnlab.limits.verification.enclosed_numbers import as_fraction, upwards
from attnlab.limits.verification.enclosed_spectrum import Eigen, enclose_spectrum
from attnlab.limits.verification.record import Failed, require
from attnlab.limits.verification.start import check_digest
from attnlab.limits.verification.steps import Step
from attnlab.progress import Progress
from attnlab.types import Limit

NOT_CHECKED = (
    "Changes of leader, and z at the times asked for: they are those of the limit without proof.",
)
SHAPES = {
    "rates": ("d",),
    "rates_off": ("d",),
    "vectors": ("d", "d"),
    "h": ("steps",),
    "coefficients": ("steps", "order", "m", "d"),
    "coefficients_rest": ("rest", "steps", "order", "m", "d"),
    "leader": ("steps", "m"),
    "pieces": ("steps",),
    "defect": ("steps", "m"),
    "tube": ("steps", "m"),
    "radius": ("steps", "m"),
    "end": ("m", "d"),
    "end_rest": ("rest", "m", "d"),
    "end_radius": ("m",),
    "leaders": ("m",),
    "number": ("n",),
    "margin": (),
    "mu": (),
    "leak": (),
}
SIZES = (1e-60, 1e60)
"""Of the tokens that are not 0: norms of their errors take squares in doubles."""

WHOLE = ("leader", "pieces", "leaders", "number")


class Proved:
    """A Limit with the steps that prove it."""

    def __init__(self, limit: Limit):
        self.limit = limit
        self.numbers: dict[str, float] = {}

    def value(self, name: str) -> np.ndarray:
        """An array of the proof."""
        return self.limit.state.values[name]

    @property
    def end(self) -> np.ndarray:
        """The parts (parts, m, d) whose sum is the end."""
        return np.concatenate([self.value("end")[None], self.value("end_rest")])

    @cached_property
    def tokens(self) -> np.ndarray:
        """The first of each set of equal tokens, (m,), in their order."""
        number = self.value("number")
        return np.array([int(np.argmax(number == one)) for one in range(int(number.max()) + 1)])

    @cached_property
    def flow(self) -> Flow:
        """The equation of the different tokens, with exact scores."""
        dynamics, number = self.limit.dynamics, self.value("number")
        weights = dynamics.weights
        Q, K = as_fraction(weights.Q[0].astype(float)), as_fraction(weights.K[0].astype(float))
        M = np.asarray(Q.T @ K * gmpy2.mpq(float(dynamics.beta)))
        m = len(self.tokens)
        seen = np.tri(m, dtype=bool) if dynamics.mask.is_causal else np.ones((m, m), dtype=bool)
        return Flow(
            weights.full_V[0].astype(float),
            M,
            seen,
            np.bincount(number),
            self.limit.x0[self.tokens],
        )

    @cached_property
    def eigen(self) -> Eigen:
        """V in eigen-coordinates."""
        names = ("rates", "rates_off", "vectors")
        return enclose_spectrum(self.flow.V, *(self.value(name) for name in names))

    def check_equation(self) -> str:
        """The equation is one of those that the proof is about, and the arrays have the shapes that
        belong to it.
        """
        dynamics, x0 = self.limit.dynamics, self.limit.x0
        weights = dynamics.weights
        require(
            dynamics.geometry.is_linear
            and dynamics.kernel.is_softmax
            and dynamics.feedforward.is_none
            and dynamics.dt is None
            and all(plain_axes(dynamics).values())
            and (dynamics.mask.sees_all or dynamics.mask.is_causal)
            and weights.heads == 1
            and not weights.is_factored,
            "The proof is about softmax attention of one head in R^d in continuous time, and this"
            " is another equation.",
        )
        size = np.abs(x0).max(axis=1)
        require(
            (size == 0.0) | ((size >= SIZES[0]) & (size <= SIZES[1])),
            "Tokens are so small or large that squares of their errors would underflow.",
        )
        sizes = {
            "n": len(x0),
            "d": x0.shape[1],
            "m": len(self.value("end")),
            "steps": len(np.atleast_1d(self.value("h"))),
        }
        require(
            self.value("coefficients").ndim == 4,
            "The coefficients must have the axes (step, order, token, coordinate).",
        )
        sizes["order"] = self.value("coefficients").shape[1]
        sizes["rest"] = len(np.atleast_1d(self.value("end_rest")))
        require(
            sizes["steps"] >= 1 and sizes["order"] >= 2,
            "There is no step, or a polynomial has no slope.",
        )
        for name, axes in SHAPES.items():
            array, shape = self.value(name), tuple(sizes[axis] for axis in axes)
            require(
                array.shape == shape,
                f"{name} of the proof must have the shape {shape}, got {array.shape}.",
            )
            require(
                array.dtype.kind in ("iu" if name in WHOLE else "f"),
                f"{name} of the proof has another kind of numbers.",
            )
            require(np.isfinite(array).all(), f"{name} of the proof must be finite.")
        number = self.value("number")
        require(
            (number >= 0).all() and len(np.unique(number)) == sizes["m"] == number.max() + 1,
            "The tokens are not numbered by the different ones.",
        )
        require(
            (number == np.arange(len(x0))).all() or not dynamics.mask.is_causal,
            "Under the causal mask equal tokens need not stay equal.",
        )
        require((x0 == x0[self.tokens[number]]).all(), "Tokens are taken as equal that are not.")
        for name in ("leader", "leaders"):
            leader = self.value(name)
            require(
                (leader >= 0).all() and (leader < sizes["m"]).all(),
                f"{name} of the proof is no token.",
            )
            require(
                self.flow.seen[np.arange(sizes["m"]), leader],
                f"{name} of the proof is a token that the row does not see.",
            )
        return (
            f"{sizes['m']} different tokens in {sizes['d']} coordinates, {sizes['steps']} steps of"
            f" order {sizes['order'] - 1}."
        )

    def check_start(self) -> str:
        """The first polynomial begins at the first tokens."""
        said = check_digest(self.limit)
        require(
            (self.value("coefficients")[0, 0] == self.flow.start).all()
            and (self.value("coefficients_rest")[:, 0, 0] == 0.0).all(),
            "The first step does not begin at the first tokens.",
        )
        return said

    def check_steps(self, progress: Progress | None = None) -> str:
        """Defect and error bound of every step; a step begins where the one before it ends, up to
        what is charged.
        """
        m, d = self.flow.start.shape
        parts = np.concatenate([self.value("coefficients")[None], self.value("coefficients_rest")])
        before, end = ErrorSet(np.eye(m * d), np.zeros(m * d)), np.zeros(m)
        largest_defect = largest_radius = 0.0
        count = len(self.value("h"))
        for k in range(count):
            if progress is not None:
                progress(k / count, "verifying the steps of the proof")
                progress.raise_if_cancelled()
            step = FlowStep(
                float(self.value("h")[k]),
                self.value("coefficients")[k],
                self.value("leader")[k],
                int(self.value("pieces")[k]),
                self.value("defect")[k],
                self.value("tube")[k],
                self.value("radius")[k],
                parts[1:, k],
            )
            following = parts[:, k + 1, 0] if k + 1 < count else self.end
            try:
                check_numbers(step)
                followed = Followed(self.flow, step)
                largest_defect = max(
                    largest_defect,
                    Checked(
                        self.flow, step, followed.top, followed.bounded_scores()
                    ).check_defect(),
                )
                with one_blas_thread():
                    G, rest = followed.follow(before)
                end = lengths((np.abs(G) @ before.sizes).reshape(m, d)) + rest
                largest_radius = max(largest_radius, float((end / step.radius).max()))
                require(
                    end <= step.radius,
                    f"The radius at the end of a step is stored as {step.radius.max():.3g} at most,"
                    f" and the error bound is up to {largest_radius:.3g} times as large.",
                )
                with upwards():
                    jump = distance(step, following).astype(float) * UP
                before = enclose(G, before.sizes, rest + jump)
                end = (end + jump) * UP
            except Failed as problem:
                raise Failed(f"Step {k} of {count}: {problem}") from None
        require(
            end <= self.value("end_radius"),
            "The radius at the end is smaller than what the last step gives.",
        )
        self.numbers["steps"], self.numbers["largest defect"] = float(count), largest_defect
        return (
            f"{count} steps; the defects found are at most {largest_defect:.3g} of the bounds that"
            f" are stored, the radii at most {largest_radius:.3g}."
        )

    def check_end(self) -> str:
        """From the end on, no row changes its leader."""
        leader, end, radius = self.value("leaders"), self.end, self.value("end_radius")
        require((radius >= 0.0).all(), "A radius must not be negative.")
        require((leader[leader] == leader), "A leader in the end does not lead itself.")
        margin, mu, leak = (float(self.value(name)) for name in ("margin", "mu", "leak"))
        require(leak >= 0.0, "The leak must not be negative.")
        check_leak(self.flow, self.eigen, end, radius, margin, mu, leak)
        count = check_gaps(self.flow, self.eigen, end, radius, leader, margin, mu, leak)
        self.numbers["margin"] = margin
        return (
            f"all {count} gaps stay above G e^(mu s), G = {margin:.4g}, mu = {mu:.3g}; "
            f"softmax moves no leader by more than {leak:.2g}."
        )

    def check_limit(self) -> str:
        """Labels, leaders, points and error are what the enclosure shows."""
        limit, number, leaders = self.limit, self.value("number"), self.value("leaders")
        require(
            limit.grade == "proved" and limit.horizon is None,
            "A proof has the grade proved, and no horizon.",
        )
        eigen, grows = self.eigen, self.value("rates") > 0.0
        require(
            limit.basis.shape == (len(grows), grows.sum())
            and (limit.basis == self.value("vectors")[:, grows]),
            "The basis of F is not made of the eigenvectors that grow.",
        )
        require(
            limit.points.shape == (len(number), grows.sum()) and np.isfinite(limit.points).all(),
            "There must be one point per token.",
        )
        low, high = enclose_points(
            eigen,
            self.value("h"),
            self.end,
            self.value("end_radius"),
            leaders,
            float(self.value("leak")),
        )
        points, error = (
            as_fraction(limit.points),
            gmpy2.mpq(float(limit.error)) if np.isfinite(limit.error) else gmpy2.mpq(0),
        )
        inside = (as_fraction(low[number]) >= points - error) & (
            as_fraction(high[number]) <= points + error
        )
        require(
            inside,
            f"The error is given as {limit.error:.3g}, and the enclosure of a point is not"
            " within it.",
        )
        low_exact, high_exact = as_fraction(low[number]), as_fraction(high[number])
        apart = np.maximum(high_exact - points, points - low_exact)
        in_space = (
            apart @ abs(eigen.right[:, grows]).T
            + np.maximum(abs(low_exact), abs(high_exact)) @ eigen.right_off[:, grows].T
        )
        require(
            in_space <= error,
            f"The error is given as {limit.error:.3g}, and a limit in R^d is not within it.",
        )
        wanted = self.tokens[leaders][number]
        require(
            limit.leaders.shape == wanted.shape and (limit.leaders == wanted),
            "The leaders are not those of the proof.",
        )
        _, first, labels = np.unique(wanted, return_index=True, return_inverse=True)
        labels = np.argsort(np.argsort(first))[labels.ravel()]
        require(
            limit.labels.shape == labels.shape and (limit.labels == labels),
            "The labels are not those of the proof.",
        )
        for one in np.unique(leaders):
            for other in np.unique(leaders):
                require(
                    one == other or ((low[one] > high[other]) | (high[one] < low[other])).any(),
                    "Two limits cannot be told apart, and have different labels.",
                )
        t = float(as_fraction(self.value("h")).sum())
        require(abs(limit.t - t) <= 1e-12 * t, "The time of the decision is not that of the proof.")
        require(limit.places is None, "Places in R^d are for equations in which nothing grows.")
        return (
            f"labels, leaders, {len(np.unique(leaders))} different limits and their error"
            f" {limit.error:.2g} follow."
        )


@ways.register("proof")
def verify(limit: Limit) -> Iterator[Step]:
    """The steps of the check of a proved limit."""
    found = Proved(limit)
    yield Step("equation", found.check_equation, found.numbers, NOT_CHECKED)
    yield Step("start", found.check_start)
    yield Step("what the limit says", found.check_limit)
    yield Step("end", found.check_end)
    yield Step("steps", found.check_steps, is_long=True)
