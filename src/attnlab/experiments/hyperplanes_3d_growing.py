"""A simple leading eigenvalue in space, the others growing too: two planes at first, and two points in the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.common.portraits import CITE, drawn_from, film, portrait_spec, spoils, values_of
from attnlab.experiments.hyperplanes_2d import STARTS, T_END, compute_hyperplanes, hyperplane_claims, hyperplane_figures
from attnlab.experiments.record import Claim, Data, Experiment
from attnlab.progress import Progress
from attnlab.types import Spec


def specs(size: str) -> dict[str, Spec]:
    """Forty tokens in the cube, and the authors' V."""
    del size
    return {"run": portrait_spec({"family": "published", "matrix": "hyperplanes_3d_growing"}, 40, 3, T_END)}


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The run, its limit and verdicts, other integrators, and more starts."""
    return compute_hyperplanes(specs(size)["run"], STARTS[size], progress)


def claims(data: Data) -> list[Claim]:
    """Theorem 4.2, and that the planes are not the end."""
    run, limit = drawn_from(data)
    found = hyperplane_claims(data, "planes")
    assert run.z is not None
    points = len(values_of(limit.limits)) if limit.basis.shape[1] == run.d else float("nan")
    in_time = np.linalg.norm(run.z[int(np.argmin(np.abs(run.times - 5.0)))] - limit.limits, axis=1)
    found[1] = Claim(text="Here all eigenvalues of V grow, so the whole of z converges, and tokens end at two points, one in "
                     "either plane: number of limit points.", measured=float(points), published="planes are shown", low=2,
                     high=2, because="conjecture 4.3 with k = d = 3 allows three, and a third would be a token with φ₁* = 0 "
                     "for ever, presumably exceptional", differs="The published picture ends at T = 5, when a token is still "
                     f"{in_time.max():.2g} from its limit ({np.median(in_time):.2g} in the median): inside the planes tokens "
                     "move like e^(−0.099 t), so the planes are a stage, and not the end.")
    return found


def figures(data: Data) -> dict[str, Any]:
    """The portrait, and the numbers behind it."""
    return hyperplane_figures(data, "hyperplanes_3d_growing", "planes", "exp(−tV) x approach two planes, and in them two points",
                              "  Hollow: the two limit points.")


experiments.register("hyperplanes_3d_growing")(
    Experiment(
        name="hyperplanes_3d_growing",
        title="One leading eigenvalue, the others growing: two planes at first, in the end two points",
        cite=f"{CITE}, sections 4 and 9; the matrix is that of the authors' script",
        about="Forty tokens, uniform in a cube, and the authors' V with eigenvalues 1.078 and 0.099 ± 0.082 i. The theorem "
        "gives two planes, and by T = 5, where the published picture ends, tokens have reached them.\n\n"
        "But here the other eigenvalues have positive real part as well: inside the planes distances to the leader shrink like "
        "e^(−0.099 t). The certified limit consists of two points, which is what the paper's own codimension conjecture says "
        "for k = 3. It takes until t = 50 to see it.",
        compute=compute,
        claims=claims,
        figures=figures,
        movie=film,
        movie_options={"kind": "tokens", "frames": 100},
        specs=specs,
        spoils=spoils(),
    )
)
