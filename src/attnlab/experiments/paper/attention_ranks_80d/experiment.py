"""d = 80, V = B Bᵀ: attention with a leading eigenvalue of 100, coupled and, as in the published
script, not coupled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray
from scipy.special import softmax

from attnlab.analysis.plain_flow import flow_by_scipy
from attnlab.dynamics import attention
from attnlab.dynamics.attention import attention_matrices
from attnlab.experiments.common.studies import study
from attnlab.experiments.datasets import limit_in, run_in, table
from attnlab.progress import Progress
from attnlab.types import Spec

SIZES = {"full": (40, 80, 11.0), "small": (16, 12, 80.0)}
"""n, d, T. The reduced system has a smaller λ₁, and a T for which λ₁ T is about 1100 all the
same.
"""

STEPS = 110
"""Steps of the published script: T = 11 and dt = 0.1."""

LAST = 28.0
"""λ₁ t up to which double precision tells the tokens of a cluster apart (the rule of thumb says 28,
it may last until 36).
"""

SHOWN = (0.0, 2.0, 4.0, 6.0, 12.0)
"""λ₁ t of the heat maps, before the last one at T."""

REFERENCE = (2.0, 3.0, 4.0)
"""λ₁ t at which the run is compared with another integrator."""


def draw(size: str) -> tuple[np.ndarray, np.ndarray]:
    """V = B Bᵀ, the entries of B uniform on [-1, 1], and tokens with coordinates uniform on [-1,
    1]; rng = 0.
    """
    n, d, _ = SIZES[size]
    generator = np.random.default_rng(0)
    B = generator.uniform(-1, 1, (d, d))
    return B @ B.T, generator.uniform(-1, 1, (n, d))


def specs(size: str) -> dict[str, Spec]:
    """The coupled run until λ₁ t = LAST; what comes later is in its certified limit."""
    V, x0 = draw(size)
    leading = np.linalg.eigvalsh(V)[-1]
    times = np.unique([0.0, *np.geomspace(0.5, LAST, 56), *SHOWN, *REFERENCE]) / leading
    return {
        "run": Spec(
            weights={"family": "given", "V": V.tolist()},
            start={"law": "given", "x": x0.tolist()},
            solve={"t_end": float(times[-1]), "times": times.tolist(), "rtol": 1e-9},
        )
    }


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The coupled run, its limit, the attention matrices of both dynamics, and the published script
    step by step.
    """
    V, x0 = draw(size)
    T = SIZES[size][2]
    data = study(specs(size)["run"], progress.part(0.0, 0.85), names=["three_hyperplanes"])
    run, limit = run_in(data), limit_in(data)
    growth, modes = np.linalg.eigh(V)
    late = np.geomspace(LAST * 1.2, growth[-1] * T, 16)
    both = np.concatenate([run.times * growth[-1], late])  # λ₁ t
    coupled = [attention(run, at=k)[0] for k in range(len(run.times))] + [
        final_attention(limit.leaders)
    ] * len(late)
    alone = [
        attention_matrices(
            run.dynamics,
            ((x0 @ modes) * np.exp((growth - growth[-1]) * s / growth[-1])) @ modes.T,
            s,
        )[0]
        for s in both
    ]
    data["attention"] = xarray.Dataset(
        {
            "coupled": (("at", "row", "column"), np.stack(coupled)),
            "alone": (("at", "row", "column"), np.stack(alone)),
            "reach": ("at", both),
            "is_certificate": ("at", (both > LAST * 1.1).astype(np.int8)),
            "eigenvalues": ("mode", growth[::-1].copy()),
            "leading_coordinate": ("row", x0 @ modes[:, -1]),
        },
        attrs={"T": T, "n": len(x0), "d": len(V)},
    )
    progress(0.87, "the published script")
    data["script"] = published_script(V, x0, T / STEPS)
    progress(0.93, "another integrator")
    tokens = flow_by_scipy(run.dynamics.weights, x0, np.array(REFERENCE) / growth[-1], rtol=1e-10)
    data["reference"] = xarray.Dataset(
        {"P": (("at", "row", "column"), softmax(tokens @ tokens.transpose(0, 2, 1), axis=2))}
    )
    return data


def final_attention(leaders: np.ndarray) -> np.ndarray:
    """P* from certified leaders; NaN where a row is not decided."""
    return np.where(leaders[:, None] >= 0, np.eye(len(leaders))[leaders], np.nan)


def plain_attention(x: np.ndarray) -> np.ndarray:
    """P as the published script computes it, 1 / Σ_k exp⟨x_i, x_k - x_j⟩, in plain double
    precision.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return 1 / np.exp(np.einsum("id,kjd->ikj", x, x[:, None] - x[None])).sum(axis=1)


def published_script(V: np.ndarray, x: np.ndarray, dt: float) -> Any:
    """What lowrank-attention.py does: dx/dt = V x without attention, by Runge-Kutta; the ranks it
    prints, -1: not a number.
    """
    leading = np.linalg.eigh(V)[1][:, -1]
    ranks, sizes = [], []
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(STEPS):
            P = plain_attention(x)
            ranks.append(int(np.linalg.matrix_rank(P)) if np.isfinite(P).all() else -1)
            sizes.append(np.abs(x @ leading).max())
            k1 = dt * x @ V
            k2 = dt * (x + 0.5 * k1) @ V
            k3 = dt * (x + 0.5 * k2) @ V
            k4 = dt * (x + k3) @ V
            x = x + (k1 + 2 * k2 + 2 * k3 + k4) / 6
    return table(
        {"rank": ranks, "size": sizes}, "step", dt=dt, largest_entry=float(np.abs(leading).max())
    )
