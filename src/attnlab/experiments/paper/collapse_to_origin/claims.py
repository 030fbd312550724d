"""The claims, and the spoils that break them."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.common.claims import of_verdicts
from attnlab.experiments.datasets import run_in
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import computed, contradicted, replaced, scaled, shifted, together


def claims(data: Data) -> list[Claim]:
    """The theorem of section 8, and the rate, which the paper does not give."""
    over_time = data["over_time"]
    t, square = over_time["time"].values, over_time["mean_square"].values
    n, rank = over_time.attrs["n"], over_time.attrs["rank"]
    late = t >= t[-1] / 10
    slope = np.polyfit(np.log(t[late]), np.log(square[late]) / 2, 1)[0]
    run, other = run_in(data), data["independent"]
    places = np.searchsorted(run.times, other["time"].values)
    apart = np.abs(run.x[places] - other["x"].values).max(axis=(1, 2)) / np.abs(other["x"].values).max(axis=(1, 2))
    uniform = n * max(over_time["attention_high"].values[-1] - 1 / n, 1 / n - over_time["attention_low"].values[-1])
    rises = np.diff(over_time["log_energy"].values).max()
    return [
        Claim(text="The theorem that all tokens tend to 0 is supported by the run, with its error.",
              published="a theorem (section 8)", because="1 is SUPPORTED",
              **of_verdicts(data["verdicts"], "collapse_to_origin")),
        Claim(text="The tokens shrink like t^(-1/2): slope of log(root mean square) against log t in the last decade.",
              measured=float(slope), published="no rate given", low=-0.52, high=-0.48,
              because="the covariance obeys dC/dt = -2 C² once the mean is gone, so |x|² = r/(2t)"),
        Claim(text="The constant too: 2t/r times the mean square norm at the end, r the rank of the centred start.",
              measured=float(2 * t[-1] / rank * square[-1]), published="no rate given", low=0.95, high=1.01,
              because="C(t) = C(0) (1 + 2t C(0))⁻¹ is below 1/(2t), and reaches it from below"),
        Claim(text="Attention becomes uniform like 1/t: t times the largest |n P_ij − 1| at the end.",
              measured=float(t[-1] * uniform), published="P tends to 1/n", low=0, high=0.52 * n,
              because="√(2t) x tends to a centred configuration with covariance I, whose largest square norm is n; so scores "
              "are at most n/(2t), and n P_ij − 1 tends to a score"),
        Claim(text="The run is where scipy's DOP853 puts it with a plain NumPy right-hand side: largest difference over the "
              "largest token, at four times.", measured=float(apart.max()), low=0, high=1e-6,
              because="both ask for 1e-10 a step or better"),
        Claim(text="The energy Σ exp<x_i, x_j> never rises: the largest rise of its logarithm between two saved times.",
              measured=float(rises), published="non-increasing", low=-np.inf, high=1e-9,
              because="section 8; 1e-9 is ten times the tolerance of the integrator"),
    ]


def _larger(run: Any) -> Any:
    """All tokens are larger by a thousandth after the start."""
    return run["states"] * np.where(np.arange(run.sizes["time"]) > 0, 1.001, 1.0)[:, None, None]


spoils = {
    "tokens stop before 0": together(shifted("over_time", "mean_square", 0.05), scaled("over_time", "attention_high", 4)),
    "tokens are elsewhere": computed("run", states=_larger),
    "energy rises once": replaced("over_time", "log_energy", lambda energy: energy + np.append(0 * energy[1:], 1e-6)),
    "theorem contradicted": contradicted,
}
