"""A simple leading eigenvalue in space, the others with negative real part: tokens approach two parallel planes."""

from __future__ import annotations

from typing import Any

from attnlab.experiments import experiments
from attnlab.experiments.common.portraits import CITE, film, portrait_spec, spoils
from attnlab.experiments.hyperplanes_2d import STARTS, T_END, compute_hyperplanes, hyperplane_claims, hyperplane_figures
from attnlab.experiments.record import Claim, Data, Experiment
from attnlab.progress import Progress
from attnlab.types import Spec


def specs(size: str) -> dict[str, Spec]:
    """Forty tokens in the cube, and the authors' V."""
    del size
    return {"run": portrait_spec({"family": "published", "matrix": "hyperplanes_3d_decaying"}, 40, 3, T_END)}


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The run, its limit and verdicts, other integrators, and more starts."""
    return compute_hyperplanes(specs(size)["run"], STARTS[size], progress)


def claims(data: Data) -> list[Claim]:
    """Theorem 4.2 with its proof's quantities, and what the published numerics are worth."""
    return hyperplane_claims(data, "planes", " Off most are tokens that change their leader late, along their plane.")


def figures(data: Data) -> dict[str, Any]:
    """The portrait, and the numbers behind it."""
    return hyperplane_figures(data, "hyperplanes_3d_decaying", "planes", "exp(−tV) x approach two parallel planes")


experiments.register("hyperplanes_3d_decaying")(
    Experiment(
        name="hyperplanes_3d_decaying",
        title="One leading eigenvalue, in space, the others decaying: tokens approach two parallel planes",
        cite=f"{CITE}, sections 4 and 9; the matrix is that of the authors' script",
        about="Forty tokens, uniform in a cube, and the authors' V with eigenvalues 0.991 and −0.055 ± 0.254 i. As in the "
        "plane, the leading coordinate φ₁*(z) of every token converges to the limit of the smallest or of the largest, and "
        "tokens end on two parallel planes, drawn from a side from which they are lines.\n\n"
        "Inside the planes nothing converges: distances to the leader turn at the speed 0.254 and grow like e^(0.055 t).\n\n"
        "The published picture (Euler, dt = 0.1, T = 5) has the planes right, and most tokens. But on one plane there are two "
        "leaders until t = 6, and tokens change from one to the other; a long step gets the time of the change wrong, and "
        "these tokens are off by more than a unit, along their plane. Half the step halves the error of the median token, not "
        "yet theirs.",
        compute=compute,
        claims=claims,
        figures=figures,
        movie=film,
        movie_options={"kind": "tokens", "frames": 100},
        specs=specs,
        spoils=spoils(),
    )
)
