"""V = -I: every token tends to 0, attention to the uniform one, and not exponentially but like
t^(-1/2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

from attnlab.analysis.energy import log_pair_sum
from attnlab.analysis.plain_flow import flow_by_scipy
from attnlab.dynamics import attention
from attnlab.experiments.common.claims import of_verdicts
from attnlab.experiments.common.studies import study
from attnlab.experiments.datasets import run_in
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import computed, contradicted, replaced, scaled, shifted, together
from attnlab.progress import Progress
from attnlab.render.style import (
    HULL,
    INK,
    LINES,
    NOTE,
    PALETTE,
    dress_flat,
    house_style,
    new_figure,
    title,
)
from attnlab.types import Spec

TIMES = {"full": 4000.0, "small": 400.0}


def specs(size: str) -> dict[str, Spec]:
    """Twelve tokens in R^3, until the law shows."""
    times = [0.0, *np.geomspace(0.01, TIMES[size], 161).tolist()]
    return {
        "run": Spec(
            weights={"family": "identity", "scale": -1.0},
            start={"law": "normal", "n": 12, "d": 3, "rng": 4},
            solve={"t_end": TIMES[size], "times": times, "rtol": 1e-10, "measure_error": True},
        )
    }


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The run, its limit and the verdicts, and the numbers of the figure over time."""
    data = study(specs(size)["run"], progress, names=["collapse_to_origin"])
    run = run_in(data)
    P = np.stack([attention(run, at=k)[0] for k in range(len(run.times))])  # (T, n, n)
    data["over_time"] = xarray.Dataset(
        {
            "mean_square": ("time", (run.x**2).sum(axis=2).mean(axis=1)),
            "centre": ("time", np.linalg.norm(run.x.mean(axis=1), axis=-1)),
            "log_energy": ("time", log_pair_sum(run.x)),
            "attention_low": ("time", P.min(axis=(1, 2))),
            "attention_high": ("time", P.max(axis=(1, 2))),
        },
        coords={"time": run.times},
        attrs={"n": run.n, "rank": int(np.linalg.matrix_rank(run.x[0] - run.x[0].mean(axis=0)))},
    )
    times = run.times[[40, 80, 120, 161]]
    tokens = flow_by_scipy(run.dynamics.weights, run.x[0], times, rtol=1e-11, atol=1e-13)
    data["independent"] = xarray.Dataset(
        {"x": (("time", "token", "coordinate"), tokens)}, {"time": times}
    )
    return data


def claims(data: Data) -> list[Claim]:
    """The theorem of section 8, and the rate, which the paper does not give."""
    over_time = data["over_time"]
    t, square = over_time["time"].values, over_time["mean_square"].values
    n, rank = over_time.attrs["n"], over_time.attrs["rank"]
    late = t >= t[-1] / 10
    slope = np.polyfit(np.log(t[late]), np.log(square[late]) / 2, 1)[0]
    run, other = run_in(data), data["independent"]
    places = np.searchsorted(run.times, other["time"].values)
    apart = np.abs(run.x[places] - other["x"].values).max(axis=(1, 2)) / np.abs(
        other["x"].values
    ).max(axis=(1, 2))
    uniform = n * max(
        over_time["attention_high"].values[-1] - 1 / n,
        1 / n - over_time["attention_low"].values[-1],
    )
    rises = np.diff(over_time["log_energy"].values).max()
    return [
        Claim(
            text="The theorem that all tokens tend to 0 is supported by the run, with its error.",
            published="a theorem (section 8)",
            because="1 is SUPPORTED",
            **of_verdicts(data["verdicts"], "collapse_to_origin"),
        ),
        Claim(
            text=(
                "The tokens shrink like t^(-1/2): slope of log(root mean square) against log t in"
                " the last decade."
            ),
            measured=float(slope),
            published="no rate given",
            low=-0.52,
            high=-0.48,
            because="the covariance obeys dC/dt = -2 C² once the mean is gone, so |x|² = r/(2t)",
        ),
        Claim(
            text=(
                "The constant too: 2t/r times the mean square norm at the end, r the rank of the"
                " centred start."
            ),
            measured=float(2 * t[-1] / rank * square[-1]),
            published="no rate given",
            low=0.95,
            high=1.01,
            because="C(t) = C(0) (1 + 2t C(0))⁻¹ is below 1/(2t), and reaches it from below",
        ),
        Claim(
            text="Attention becomes uniform like 1/t: t times the largest |n P_ij − 1| at the end.",
            measured=float(t[-1] * uniform),
            published="P tends to 1/n",
            low=0,
            high=0.52 * n,
            because=(
                "√(2t) x tends to a centred configuration with covariance I, whose largest square"
                " norm is n; so scores are at most n/(2t), and n P_ij − 1 tends to a score"
            ),
        ),
        Claim(
            text=(
                "The run is where scipy's DOP853 puts it with a plain NumPy right-hand side:"
                " largest difference over the largest token, at four times."
            ),
            measured=float(apart.max()),
            low=0,
            high=1e-6,
            because="both have a tolerance of 1e-10 per step or better",
        ),
        Claim(
            text=(
                "The energy Σ exp<x_i, x_j> never rises: the largest rise of its logarithm between"
                " two saved times."
            ),
            measured=float(rises),
            published="non-increasing",
            low=-np.inf,
            high=1e-9,
            because="section 8; 1e-9 is ten times the tolerance of the integrator",
        ),
    ]


def _larger(run: Any) -> Any:
    """All tokens are larger by a thousandth after the start."""
    return run["states"] * np.where(np.arange(run.sizes["time"]) > 0, 1.001, 1.0)[:, None, None]


spoils = {
    "tokens stop before 0": together(
        shifted("over_time", "mean_square", 0.05), scaled("over_time", "attention_high", 4)
    ),
    "tokens are elsewhere": computed("run", states=_larger),
    "energy rises once": replaced(
        "over_time", "log_energy", lambda energy: energy + np.append(0 * energy[1:], 1e-6)
    ),
    "theorem contradicted": contradicted,
}


def figures(data: Data) -> dict[str, Any]:
    """Norms and their law, the energy, and the range of the attention weights."""
    over_time, run = data["over_time"], run_in(data)
    t, n, rank = over_time["time"].values[1:], over_time.attrs["n"], over_time.attrs["rank"]
    norms = np.linalg.norm(run.x, axis=-1)[1:]
    with house_style():
        figure = new_figure(9.6, 3.5)
        left, middle, right = figure.subplots(1, 3, width_ratios=[1.5, 1, 1])
        left.loglog(t, norms, color=PALETTE[0], alpha=0.35, linewidth=0.9)
        left.loglog(
            t,
            np.sqrt(over_time["mean_square"].values[1:]),
            color=PALETTE[0],
            linewidth=2.2,
            label="root mean square",
        )
        centre = over_time["centre"].values[1:]
        left.loglog(
            t, centre, color=PALETTE[1], linewidth=1.4, linestyle=LINES[1], label="centre of mass"
        )
        law = t > 1.0
        left.loglog(
            t[law],
            np.sqrt(rank / (2 * t[law])),
            color=INK,
            linewidth=1.0,
            linestyle=LINES[2],
            label="√(r / 2t), the law",
        )
        left.set(xlabel="t", title="Norms of the tokens x", xlim=(t[0], t[-1]), ylim=(1e-5, None))
        left.legend(frameon=False, fontsize=8, loc="lower left")
        middle.semilogx(t, over_time["log_energy"].values[1:], color=PALETTE[2], linewidth=1.8)
        middle.axhline(2 * np.log(n), color=HULL, linewidth=0.9, linestyle=LINES[1])
        middle.text(
            t[-1],
            2 * np.log(n) + 0.08,
            "all tokens at 0",
            fontsize=8,
            color=NOTE,
            va="bottom",
            ha="right",
        )
        middle.set(xlabel="t", title="Energy: log Σ exp⟨xᵢ, xⱼ⟩")
        right.fill_between(
            t,
            over_time["attention_low"].values[1:],
            over_time["attention_high"].values[1:],
            color=PALETTE[3],
            alpha=0.35,
            linewidth=0,
        )
        right.axhline(1 / n, color=INK, linewidth=1.0, linestyle=LINES[2])
        right.text(t[-1], 1 / n, "1/n ", fontsize=8, ha="right", va="bottom")
        right.set(xlabel="t", title="Range of attention weights", xscale="log", ylim=(0, None))
        for axes in (left, middle, right):
            dress_flat(axes)
        title(
            figure,
            f"V = −I: all tokens tend to 0, slowly · n = {run.n}, d = {run.d}",
            "Thin lines: single tokens. The centre of mass goes first; then the covariance obeys"
            " dC/dt = −2C², so norms fall like t to the power −1/2, and not exponentially.",
        )
        return {"collapse_to_origin": figure}
