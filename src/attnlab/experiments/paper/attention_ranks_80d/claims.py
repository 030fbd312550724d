"""The claims, and the spoils that break them."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.common.claims import of_verdicts
from attnlab.experiments.datasets import limit_in
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, computed, contradicted, scaled

from .experiment import LAST, REFERENCE, STEPS, final_attention


def ranks_of(matrices: np.ndarray) -> np.ndarray:
    """Numerical ranks; 0 where a matrix is not decided."""
    return np.array([np.linalg.matrix_rank(P) if np.isfinite(P).all() else 0 for P in matrices])


def claims(data: Data) -> list[Claim]:
    """What is known of λ₁, of the ends of both dynamics, and of the published script."""
    shown, script, limit = data["attention"], data["script"], limit_in(data)
    growth, n, d, T = shown["eigenvalues"].values, *(shown.attrs[name] for name in ("n", "d", "T"))
    reach, coupled, alone = (shown[name].values for name in ("reach", "coupled", "alone"))
    centre = (np.sqrt(d - 1) + np.sqrt(d)) ** 2
    width = (np.sqrt(d - 1) + np.sqrt(d)) * (1 / np.sqrt(d - 1) + 1 / np.sqrt(d)) ** (1 / 3)
    in_run = shown["is_certificate"].values == 0
    last = np.flatnonzero(in_run)[-1]
    sides = np.sign(shown["leading_coordinate"].values)
    extremes = np.where(sides > 0, (s := shown["leading_coordinate"].values).argmax(), s.argmin())
    places = [int(np.abs(reach - at).argmin()) for at in REFERENCE]
    sizes, ranks = script["size"].values, script["rank"].values
    h = growth[0] * script.attrs["dt"]
    factor = (
        1 + h + h**2 / 2 + h**3 / 6 + h**4 / 24
    )  # of a mode in one step of Runge and Kutta's method
    stages = 6 * (factor - 1) * sizes[0] * script.attrs["largest_entry"]
    overflow = (np.log(np.finfo(float).max) - np.log(stages)) / np.log(factor)
    return [
        Claim(
            text="λ₁ T is beyond what exp can hold in double precision.",
            measured=float(growth[0] * T),
            published="T = 11, λ₁ not given",
            low=float(np.log(np.finfo(float).max)),
            high=np.inf,
            because="e^709.8 is the largest double",
            differs=(
                "A script with exp(tV), as the others of the paper have it, "
                "would overflow; attnlab carries the exponent apart."
            ),
        ),
        Claim(
            text="λ₁ is that of a random matrix: 3 λ₁, centred and scaled as Johnstone does.",
            measured=float((3 * growth[0] - centre) / width),
            low=-5.0,
            high=4.0,
            because="entries of variance 1/3; the Tracy-Widom law has 99.9 % of its mass there",
        ),
        Claim(
            text=(
                "At t = 0 the attention matrix has full rank: n less its numerical rank, the larger"
                " of both."
            ),
            measured=float(n - min(ranks_of(coupled[:1])[0], ranks_of(alone[:1])[0])),
            low=0,
            high=0,
            because=(
                "exp⟨x, y⟩ is a strictly positive definite kernel; tokens are far apart in 80"
                " dimensions, so rounding does not hide it"
            ),
        ),
        Claim(
            text=(
                "The theorem of the three hyperplanes is supported by the run and its certified"
                " limit."
            ),
            published="a theorem (section 4)",
            because="1 is SUPPORTED",
            **of_verdicts(data["verdicts"], "three_hyperplanes"),
        ),
        Claim(
            text=(
                "The certified end has one leader on either side of φ₁ = 0, or one in all: number"
                " of leaders."
            ),
            measured=float(len(set(limit.leaders.tolist())) if limit.certified else np.nan),
            published="a few columns",
            low=1,
            high=2,
            because=(
                "of two that follow themselves on one side the one with the larger φ₁ takes over"
                " the other, at the rate e^{2 λ₁ t}"
            ),
        ),
        Claim(
            text="It is decided within the reach of double precision: λ₁ t of the certificate.",
            measured=float(limit.t * growth[0]),
            published="T: λ₁ t = 1100",
            low=0,
            high=LAST,
            because="differences inside a cluster are right up to λ₁ t = 28",
            differs="98 % of the published time shows a matrix that no longer changes.",
        ),
        Claim(
            text=(
                "At the end of the run attention is the certified Boolean matrix: largest |P - P*|."
            ),
            measured=float(np.abs(coupled[last] - final_attention(limit.leaders)).max()),
            low=0,
            high=float(n * np.exp(-50.0)),
            because="the certificate has all score gaps above 50 from then on",
        ),
        Claim(
            text=(
                "Without coupling every row ends at the token with the largest or smallest φ₁ of"
                " the start: rows that do not."
            ),
            measured=float(np.sum(alone[-1].argmax(axis=1) != extremes)),
            low=0,
            high=0,
            because="x = e^{tV} x(0); the other modes are behind by e^{-(λ₁-λ₂)T}",
        ),
        Claim(
            text=(
                "The coupled matrices up to λ₁ t = 4 agree with SciPy's DOP853: largest difference"
                " of a weight."
            ),
            measured=float(np.abs(coupled[places] - data["reference"]["P"].values).max()),
            low=0,
            high=1e-6,
            because="tolerances 1e-9 and 1e-10 on x, scores of the order of 1000",
        ),
        Claim(
            text=(
                "The published script does not solve its own equation: growth of φ₁ in a step of"
                " 0.1, over e^{λ₁ dt}."
            ),
            measured=float(sizes[1] / sizes[0] / np.exp(h)),
            published="Runge-Kutta, dt = 0.1",
            low=0,
            high=0.5,
            because=(
                "1 + h + h²/2 + h³/6 + h⁴/24 is less than half of e^h for h = λ₁ dt above 5, and"
                " here it is about 10"
            ),
            differs=(
                "λ₁ dt is 10, far outside the range where the method is accurate; and the tokens do"
                " not attend to each other."
            ),
        ),
        Claim(
            text=(
                "Its matrices end in values that are not numbers: first step with one, less that at"
                " which x leaves double precision."
            ),
            measured=float(
                (np.flatnonzero(ranks < 0)[0] if (ranks < 0).any() else STEPS) - overflow
            ),
            low=1,
            high=2,
            because=(
                "log max double over the logarithm of the growth factor (the sum of four stages is"
                " six times the step), rounded up, and the matrix of the next step is made of it"
            ),
        ),
    ]


def _blurred(shown: Any) -> None:
    """Attention mixed with that of the second token, which gets the larger part."""
    for name in ("coupled", "alone"):
        P = shown[name].values
        P[:] = 0.4 * P + 0.6 * P[:, [1], :]
        P[0, 0] = P[0, 1]


spoils = {
    "theorem contradicted": contradicted,
    "eigenvalues of half of B": scaled("attention", "eigenvalues", 1 / 4),
    "attention blurred": changed("attention", _blurred),
    "every token leads itself, decided late": computed(
        "limit", leaders=lambda limit: np.arange(limit.sizes["token"]), t=lambda limit: 40.0
    ),
    "script that grows as it should": computed(
        "script",
        size=lambda script: script["size"].values[0] * np.exp(0.5 * np.arange(STEPS)),
        rank=lambda script: np.maximum(script["rank"].values, 2),
    ),
}
