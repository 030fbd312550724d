"""The value matrices of the authors' own scripts (borjanG/2023-transformers)."""

from __future__ import annotations

import numpy as np

from attnlab.registry import unknown_name
from attnlab.starts import whole_number
from attnlab.types import Weights
from attnlab.weights import family, square_dimension

MATRICES = {
    # two hyperplanes in the plane: eigenvalues 1.348, -0.068
    "hyperplanes_2d": [[0.64709742, 0.81911926], [0.61210449, 0.63263484]],
    # the other eigenvalues have negative real part: 0.991, -0.055 +- 0.254 i
    "hyperplanes_3d_decaying": [
        [0.2362413, 0.0599536, 0.40506019],
        [0.81321448, 0.49948705, 0.33754772],
        [0.2160645, 0.38505272, 0.14588075],
    ],
    # the other eigenvalues have positive real part: 1.078, 0.099 +- 0.082 i
    "hyperplanes_3d_growing": [
        [0.18608476, 0.34391026, 0.13905949],
        [0.35244288, 0.6694859, 0.39992145],
        [0.46685606, 0.17094454, 0.42092308],
    ],
    # symmetric, two positive eigenvalues: 1.963, 0.253, -0.222
    "codimension": [
        [0.92761287, 0.94333073, 0.3827744],
        [0.94333073, 0.59991396, 0.47825472],
        [0.3827744, 0.47825472, 0.46668605],
    ],
}


@family("published", promises=("is_spd_scores",), example={"matrix": "polytope_times_line"})
def published(matrix: str, d: int | None = None) -> Weights:
    """V of a figure of the paper, named by what the figure shows; Q = K = I.

    matrix : hyperplanes_2d, hyperplanes_3d_decaying, hyperplanes_3d_growing, codimension, or
    polytope_times_line, which is diag(1, ..., 1, -0.5) in any dimension d >= 2 (default 3). For the
    others d is checked, if given.
    """
    if matrix == "polytope_times_line":
        diagonal = np.ones(square_dimension(whole_number("d", 3 if d is None else d, least=2)))
        diagonal[-1] = -0.5
        return Weights(V=np.diag(diagonal))
    if matrix not in MATRICES:
        raise unknown_name("published matrix", matrix, (*MATRICES, "polytope_times_line"))
    V = np.array(MATRICES[matrix])
    if d is not None and d != len(V):
        raise ValueError(
            f"The published matrix {matrix} acts on dimension {len(V)}, but d = {d}. Set d ="
            f" {len(V)} in the start."
        )
    return Weights(V=V)
