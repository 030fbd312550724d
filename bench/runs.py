"""Whole runs through al.simulate against diffrax and SciPy: one start, and 256 at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import peers
from table import Row, compare

import attnlab as al

RTOL = 1e-8
ACCURACY = 20 * RTOL
"""What everybody must keep, in z, relative to the largest token. The truth is a run of ours at rtol
1e-13 (tests compare such runs with another method in 80-bit arithmetic). A peer with a larger error
at 1e-8 is given the first smaller rtol that is enough.
"""

PEER_RTOL = (1e-8, 3e-9, 1e-9, 3e-10, 1e-10, 1e-11)

FULL = np.array(
    [
        [0.18608476, 0.34391026, 0.13905949],
        [0.35244288, 0.6694859, 0.39992145],
        [0.46685606, 0.17094454, 0.42092308],
    ]
)
"""A published matrix with a real leading eigenvalue and a complex pair (hyperplanes in R^3)."""

TIMES = np.linspace(0.0, 5.0, 51)


def rows() -> Iterator[Row]:
    goals = {"diffrax": 3.0}
    x0 = np.random.default_rng(0).uniform(-5, 5, (40, 3))
    yield run("V = I", x0, np.eye(3), goals={**goals, "SciPy": 12.0})
    yield run(
        "256 starts, V = I",
        np.random.default_rng(1).uniform(-5, 5, (256, 40, 3)),
        np.eye(3),
        goals={"diffrax": 8.0},
    )
    sphere = np.random.default_rng(2).normal(size=(64, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    yield run("sphere, beta = 9", sphere, np.eye(3), beta=9.0, geometry="sphere", goals=goals)
    yield run("full V", x0, FULL, goals=goals)


def run(
    name: str,
    x0: np.ndarray,
    V: np.ndarray,
    beta: float = 1.0,
    geometry: str = "euclidean",
    goals: dict | None = None,
) -> Row:
    weights = al.Weights(V=V)

    def ours(rtol: float = RTOL) -> al.Trajectory:
        return al.simulate(weights, x0, rtol=rtol, times=TIMES, beta=beta, geometry=geometry)

    def seen(run: al.Trajectory) -> np.ndarray:
        return run.states if geometry == "sphere" else run.z

    truth = seen(ours(1e-13))
    contenders, views, used = {"attnlab": ours}, {"attnlab": seen}, {}
    for peer, make in (("diffrax", peers.diffrax_run), ("SciPy", peers.scipy_run)):
        if peer == "SciPy" and x0.ndim == 3:
            continue
        for frame in ("sphere",) if geometry == "sphere" else ("z", "x"):
            label = f"{peer} in x" if frame == "x" else peer
            views[label] = _from_x(V) if frame == "x" else np.asarray
            contenders[label], used[label] = _accurate_enough(
                make, x0, V, beta, frame, truth, views[label]
            )
    n, d = x0.shape[-2:]
    what = f"run, n = {n}, d = {d}, T = 5, 51 times, {name}"
    row = compare(what, contenders, truth, ACCURACY, goals or {}, seconds=10.0, views=views)
    row.more["rtol"] = used
    return row


def _accurate_enough(make, x0, V, beta, frame, truth, view):
    """(the peer's call, its rtol): the largest rtol of PEER_RTOL with an error within ACCURACY."""
    for rtol in PEER_RTOL:
        call = make(x0, V, beta, TIMES, rtol, frame)
        if call is None or np.abs(view(call()) - truth).max() <= ACCURACY * np.abs(truth).max():
            return call, rtol
    return None, None


def _from_x(V: np.ndarray):
    """z of what a peer solved for in x; not timed, as our own z is not."""
    from scipy.linalg import expm

    back = np.stack([expm(-t * V) for t in TIMES])
    return lambda x: np.einsum("tab,...tnb->...tna", back, x)
