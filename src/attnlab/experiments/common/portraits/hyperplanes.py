"""A simple leading eigenvalue: tokens approach two parallel lines or planes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray

from attnlab.analysis.clusters import cluster_count
from attnlab.analysis.spectra import leading
from attnlab.engine import simulate
from attnlab.experiments.common.portraits import claims as shared
from attnlab.experiments.common.portraits import run as portraits
from attnlab.experiments.common.portraits.numbers import (
    draw_approach,
    draw_euler,
    draw_law,
    draw_levels,
    draw_two_counts,
)
from attnlab.experiments.common.portraits.panels import draw_portrait, make_portrait
from attnlab.experiments.parts import Context, Part, Parts
from attnlab.experiments.record import Claim, Data
from attnlab.render.style import house_style, new_figure, title
from attnlab.run import resolve
from attnlab.starts import uniform_cube
from attnlab.types import Spec, Weights

STARTS = {"full": 100, "small": 10}
RESULTS = ("three_hyperplanes", "coordinate_extremes", "codimension")
T_END = 14.0
RESOLUTION = 0.01
"""Values of φ₁* within this part of their first spread make one hyperplane."""


@dataclass(frozen=True)
class Hyperplanes:
    """The portrait of n tokens with a published V whose leading eigenvalue is simple; the matrix
    has the name of the portrait.

    noun: "lines" or "planes". what: goes on "tokens z = ". words: added to the note of the figure.
    remark: on the error of the published scheme.
    """

    name: str
    n: int
    d: int
    noun: str
    what: str
    words: str = ""
    remark: str = ""

    def specs(self, size: str) -> dict[str, Spec]:
        """The run."""
        del size
        return {
            "run": portraits.portrait_spec(
                {"family": "published", "matrix": self.name}, self.n, self.d, T_END
            )
        }

    @property
    def compute(self) -> Parts:
        """The run with its limit, verdicts and other integrators, and more starts."""
        spec = self.specs("full")["run"]

        def measure_starts(context: Context) -> dict[str, Any]:
            return {
                "starts": leading_values(
                    resolve(spec).dynamics.weights, self.n, STARTS[context.size]
                )
            }

        return Parts(
            {
                "run": portraits.run_part(spec, RESULTS, later=np.arange(12.0, 61.0, 2.0).tolist()),
                "starts": Part(measure_starts, doing="more starts", share=0.4),
            }
        )

    def claims(self, data: Data) -> list[Claim]:
        """Theorem 4.2 with the quantities of its proof, and what the published numerics are
        worth.
        """
        run, limit = portraits.drawn_from(data)
        z = portraits.rescaled(run)
        weights = run.dynamics.weights
        first, (slower, dual) = leading(weights), others(weights)
        speed = first.value.real
        values, levels = z @ first.psi, limit.limits @ first.psi  # (T, n), (n,)
        spread = float(np.ptp(values[0]))
        outward = max(np.diff(values.max(axis=1)).max(), -np.diff(values.min(axis=1)).min())
        both, one = counted(data, "points"), counted(data, "one_sided")
        drift = "drift apart" if slower < 0 else "come together"
        return [
            shared.supported(
                data,
                "three_hyperplanes",
                "The theorem of at most three hyperplanes holds",
                "theorem 4.2",
            ),
            Claim(
                text=(
                    "φ₁*(z) has two limits, one of each sign: the tokens approach two parallel"
                    f" {self.noun}. Number of levels."
                ),
                measured=(
                    float(len(portraits.values_of(levels[:, None])))
                    if levels.min() < 0 < levels.max()
                    else float("nan")
                ),
                published=f"at most three; {self.noun} of either side are seen",
                low=2,
                high=2,
                because=(
                    "levels lie in {0, a, b} by the theorem, and a token at 0 for ever is"
                    " presumably exceptional"
                ),
            ),
            Claim(
                text=(
                    "The largest φ₁*(z) never rises and the smallest never falls: largest step"
                    " outward between two saved times, over the first spread."
                ),
                measured=float(outward / spread),
                published="a lemma of section 9",
                low=-np.inf,
                high=1e-8,
                because="section 9; 1e-8 is a hundred times the tolerance of the integrator",
            ),
            shared.followers_approach(
                run,
                limit,
                first.psi[None],
                -speed,
                "In φ₁* tokens approach their leader like e^(−λ₁ t)",
                "no rate given",
            ),
            shared.followers_approach(
                run,
                limit,
                dual,
                -slower,
                f"Inside the {self.noun} tokens {drift} like e^(−Re λ₂ t)",
                "nothing is claimed inside the hyperplanes",
            ),
            Claim(
                text=(
                    f"Random starts (rng 1, 2, ...) have two {self.noun}: share of {len(both)}"
                    " starts at T = 14."
                ),
                measured=float(np.mean(both == 2)),
                published="at most three",
                low=0.88,
                high=1,
                because=(
                    "24 of 24 were counted independently for the three matrices: 0.88 or more with"
                    " 95 %"
                ),
            ),
            Claim(
                text=(
                    f"Starts on one side, all φ₁* > 0, have a single one: share of {len(one)}"
                    " starts at T = 14."
                ),
                measured=float(np.mean(one == 1)),
                low=1,
                high=1,
                because=(
                    "the smallest φ₁* never falls, so 0 and negative levels are out of reach, and"
                    " with positive φ₁* all tokens come to prefer the largest"
                ),
            ),
            shared.reaches_limit(data),
            shared.agrees(data),
            shared.first_order(data, self.remark),
        ]

    def figures(self, data: Data) -> dict[str, Any]:
        """The portrait, and the numbers behind it."""
        run, limit = portraits.drawn_from(data)
        weights = run.dynamics.weights
        first, (slower, dual) = leading(weights), others(weights)
        values, ends = portraits.rescaled(run) @ first.psi, limit.limits @ first.psi
        levels = portraits.values_of(ends[:, None])[:, 0]
        later = limit.z - limit.z[:, limit.leaders]
        sets = "Dashes: the lines" if run.d == 2 else "Panes: the planes"
        is_free = limit.basis.shape[1] == 1
        free = (
            "; along them z is free, and drawn as at the start in the panel t\u00a0=\u00a0∞"
            if is_free
            else ""
        )
        with house_style():
            picture = make_portrait(run, limit, normal=first.psi)
            main = draw_portrait(
                picture,
                portraits.PANELS,
                headline=f"One leading eigenvalue: {run.n} tokens z = {self.what}",
                note=(
                    f"Colour: where a token ends.  {sets} φ₁* = const, certified{free}.  Ring:"
                    f" leader.{self.words}  Last panel: thick, the extremes, which are monotone;"
                    " numbers, tokens at each level."
                ),
                beside=lambda axes: draw_levels(
                    axes, run.times, values, picture.groups, levels, ends
                ),
            )
            numbers = new_figure(7.8, 6.4)
            (above, beside), (left, right) = numbers.subplots(2, 2)
            speed = first.value.real
            draw_approach(
                above,
                run.times,
                np.abs(values - ends),
                picture.groups,
                -speed,
                limit.t,
                f"e^(−{speed:.3g} t)",
                f"Distance to the {self.noun}, in φ₁*",
            )
            above.set_box_aspect(None)
            draw_law(
                beside,
                limit.times,
                np.abs(later @ dual.T).max(axis=(1, 2)),
                -slower,
                max(limit.t, 2.0),
                f"e^({-slower:.3g} t)".replace("-", "−"),
                f"Distance to the leader inside the {self.noun}",
            )
            draw_euler(left, data)
            counts = {
                "in the cube": counted(data, "points"),
                "on one side of φ₁* = 0": counted(data, "one_sided"),
            }
            draw_two_counts(right, counts, self.noun)
            title(
                numbers,
                f"{self.noun.capitalize()} in {'the plane' if run.d == 2 else 'space'}: how fast,"
                " how well, how many",
                f"Tokens near the {self.noun} at the speed of λ₁; inside them, distances change at"
                " the speed of λ₂ (dotted: theory). Below: the published scheme at T = 5, and"
                f" {len(counts['in the cube'])} other starts of either kind.",
            )
        return {self.name: main, f"{self.name}_numbers": numbers}


def leading_values(weights: Weights, n: int, count: int) -> Any:
    """φ₁* of the tokens at T = 14 over their first spread, for starts in the cube (rng 1, 2, ...),
    and moved to one side of 0.
    """
    first = leading(weights)
    cube = np.stack(
        [uniform_cube(n, weights.d, low=-5.0, high=5.0, rng=seed) for seed in range(1, count + 1)]
    )
    nearest = (cube @ first.psi).min(axis=1)[:, None, None]
    found = {}
    for name, tokens in {"points": cube, "one_sided": cube + (0.5 - nearest) * first.phi}.items():
        z = simulate(weights, tokens, t_end=T_END, times=[0.0, T_END], rtol=1e-9).z
        assert z is not None
        values = z @ first.psi  # (start, 2, token)
        found[name] = (
            ("start", "token", "in_F"),
            (values[:, 1] / np.ptp(values[:, 0], axis=1, keepdims=True))[..., None],
        )
    return xarray.Dataset({**found, "rng": ("start", np.arange(1, count + 1))})


def counted(data: Data, name: str) -> np.ndarray:
    """The number of hyperplanes of every start."""
    return np.asarray(cluster_count(data["starts"][name].values, RESOLUTION))


def others(weights: Weights) -> tuple[float, np.ndarray]:
    """(Re λ₂, the dual eigenvector φ₂* (1, d)): the direction inside the hyperplanes that counts
    most in z.
    """
    values, right = np.linalg.eig(weights.full_V[0])
    second = int(np.argsort(-np.abs(values))[1])
    return float(values[second].real), np.linalg.inv(right)[second : second + 1]
