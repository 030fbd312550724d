"""V = I in space: tokens tend to the vertices of a polytope."""

from __future__ import annotations

from typing import Any

from attnlab.experiments import experiments
from attnlab.experiments.common.portraits import CITE, film, portrait_spec, spoils
from attnlab.experiments.polytope_2d import claims, compute_polytope, polytope_figures
from attnlab.experiments.record import Data, Experiment
from attnlab.progress import Progress
from attnlab.types import Spec

STARTS = {"full": 100, "small": 10}


def specs(size: str) -> dict[str, Spec]:
    """Forty tokens in the cube, long enough for every token to be near its vertex."""
    del size
    return {"run": portrait_spec({"family": "identity"}, 40, 3, 12.0)}


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The run, its limit and verdicts, other integrators, the set S, and more starts."""
    return compute_polytope(specs(size)["run"], STARTS[size], progress)


def figures(data: Data) -> dict[str, Any]:
    """The portrait, and the numbers behind it."""
    return polytope_figures(data, "polytope_3d", "polytope")


experiments.register("polytope_3d")(
    Experiment(
        name="polytope_3d",
        title="V = I in space: tokens end at the vertices of a polytope",
        cite=f"{CITE}, sections 3 and 8",
        about="Forty tokens, uniform in a cube, with V = I: the best known picture of the paper, at its times t = 0, 1, 2, 5, "
        "and beside it the end, which is certified. The convex hull of the rescaled tokens shrinks to a polytope. At each of "
        "its vertices sits a leader, a token that attends to itself; the others follow one of them and arrive like e^(−t).\n\n"
        "Crosses are the further points that the theorem allows as limits: the points u of the polytope, 0 among them, in which "
        "the largest of ⟨u, v⟩ over its vertices v is ⟨u, u⟩. No token of a random start ends at one of them.\n\n"
        "The published picture steps with forward Euler, dt = 0.1. That is accurate enough here: the hull shrinks under Euler "
        "steps as well, and half the step makes half the error.",
        compute=compute,
        claims=claims,
        figures=figures,
        movie=film,
        movie_options={"kind": "tokens", "frames": 100},
        specs=specs,
        spoils=spoils(),
    )
)
