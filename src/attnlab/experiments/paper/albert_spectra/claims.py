"""The claims, and the spoils that break them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import binomtest

from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, constant, replaced
from attnlab.models.checkpoints.head_names import name_head

from .experiment import GAP, XLARGE


def spectra_of(data: Any) -> np.ndarray:
    """The eigenvalues, (row, k) complex."""
    return np.asarray(data["re"].values + 1j * data["im"].values)


def distances(data: Data) -> np.ndarray:
    """How far the leading eigenvalue of each head with a reference is from it, or from the nearer
    of two.
    """
    reference, leading = data["reference"], spectra_of(data["heads"])[:, 0]
    said = reference["re"].values + 1j * np.abs(reference["im"].values)
    heads = reference["head"].values
    off = np.abs((leading.real + 1j * np.abs(leading.imag))[heads] - said)
    return np.array([off[heads == head].min() for head in np.unique(heads)])


def matched(data: Data) -> tuple[float, float]:
    """(distance of an eigenvalue of C B to its partner in the d x d matrix, modulus of one
    without): largest, relative.
    """
    worst, left = 0.0, 0.0
    for small, full in zip(spectra_of(data["heads"]), spectra_of(data["full"]), strict=False):
        full = full[np.argsort(-np.abs(full))]
        away = np.abs(small[:, None] - full[None, : len(small)])
        rows, columns = linear_sum_assignment(away)
        worst = max(worst, float(away[rows, columns].max() / np.abs(small).max()))
        left = max(left, float(np.abs(full[len(small) :]).max(initial=0.0) / np.abs(small).max()))
    return worst, left


def claims(data: Data) -> list[Claim]:
    """Against others' numbers, against the full matrix, and against chance."""
    return [*_of_reference(data), *_of_matrices(data), *_of_chance(data)]


def _of_reference(data: Data) -> list[Claim]:
    heads, reference = data["heads"], data["reference"]
    words = reference.attrs["words"]
    if not words:
        return []
    sure = reference.isel(row=reference["part_one"].values >= 0)
    differ = int((heads["part_one"].values[sure["head"].values] != sure["part_one"].values).sum())
    good = (heads["verdict"].values == "good triple").sum()
    if reference.attrs["good"] >= 0:
        differ += abs(int(good) - reference.attrs["good"])
    made = [
        Claim(
            text=(
                f"{heads.attrs['model']}: leading eigenvalues of {len(distances(data))} heads,"
                " largest distance from the reference."
            ),
            measured=float(distances(data).max()),
            published=words,
            low=0,
            high=float(reference.attrs["tolerance"]),
            because="the accuracy of the reference",
        ),
        Claim(
            text=(
                "Part (i) of a good triple: the leading eigenvalue is real, positive and alone in"
                " modulus. Heads that differ from the reference."
            ),
            measured=float(differ),
            published=words,
            low=0,
            high=0,
            because="the reference decides it for these heads",
        ),
    ]
    if reference.attrs["gap_of"] >= 0:
        head = reference.attrs["gap_of"]
        made.append(
            Claim(
                text=f"The gap (|λ₁| − |λ₂|) / |λ₁| of {name_head(0, head)}.",
                measured=float(heads["gap"].values[head]),
                published="25.9 %",
                low=GAP - 0.001,
                high=GAP + 0.001,
                because="the reference, three digits",
            )
        )
    return made


def _of_matrices(data: Data) -> list[Claim]:
    heads = data["heads"]
    values = spectra_of(heads)
    worst, left = matched(data)
    first = np.abs(values.sum(axis=1) - heads["trace"].values) / np.abs(values).sum(axis=1)
    second = np.abs((values**2).sum(axis=1) - heads["trace_of_square"].values) / (
        np.abs(values) ** 2
    ).sum(axis=1)
    d, r = heads.attrs["d"], heads.attrs["r"]
    return [
        Claim(
            text=(
                f"The {r} eigenvalues come from the {r} × {r} matrix C B of the factors, V = B C;"
                f" those of the full {d} × {d} matrix are the same: largest difference, over |λ₁|."
            ),
            measured=worst,
            published=f"{XLARGE[1]} non-zero eigenvalues a head",
            low=0,
            high=1e-8,
            because=(
                "B C and C B have the same non-zero eigenvalues; 1e-8 allows for conditions of 1e7"
                " in double precision"
            ),
        ),
        Claim(
            text=(
                f"The other {d - r} eigenvalues of the full matrix are 0: largest modulus, over"
                " |λ₁|."
            ),
            measured=left,
            published="threshold 1e-4",
            low=0,
            high=1e-8,
            because=f"the rank of V is {r} at most",
        ),
        Claim(
            text=(
                "Sum of the eigenvalues and trace of V, sum of squares and trace of V², from the"
                " full matrices of all heads: largest difference, over the sum of moduli."
            ),
            measured=float(max(first.max(), second.max())),
            low=0,
            high=1e-9,
            because="trace identities",
        ),
    ]


def _of_chance(data: Data) -> list[Claim]:
    heads, chance = data["heads"], data["chance"]
    total = heads.sizes["head"]
    good = int((heads["verdict"].values == "good triple").sum())
    expected, theirs = chance.attrs["real"] / 4, chance.attrs["real_of_xlarge"] / 2
    return [
        Claim(
            text=(
                "The number of good triples cannot be told from that of Gaussian factors of the"
                " same shape: binomial p."
            ),
            measured=float(binomtest(good, total, expected).pvalue),
            published="not compared with chance",
            low=0.01,
            high=1,
            because=(
                f"{good} in {total} heads, where chance gives {expected:.0%}; if training made good"
                " triples, p would be small"
            ),
        ),
        Claim(
            text=(
                "The published heads are no more than chance gives: binomial p of 2 positive"
                " leading eigenvalues in 16 heads of albert-xlarge-v2."
            ),
            measured=float(binomtest(2, 16, theirs).pvalue),
            published="heads 5 and 14 of 16, counted from 1",
            low=0.01,
            high=1,
            because=(
                "Gaussian heads of rank 128 in 2048 dimensions have a positive leading eigenvalue"
                f" in {theirs:.0%}, half of the real ones"
            ),
            differs=(
                "the paper names these heads as examples of the hypothesis, "
                "without what random weights would give"
            ),
        ),
        Claim(
            text="Chance is right: median |λ₁| of Gaussian heads, over |B| |C| / √(d r).",
            measured=float(np.median(chance["radius"].values)),
            low=0.8,
            high=1.2,
            because=(
                "the circular law for products of rectangular Gaussian matrices has that radius;"
                " √(1/r) is the next order"
            ),
        ),
    ]


def _square(chance: Any) -> None:
    """Chance from symmetric matrices: all eigenvalues are real, and leading ones at twice the
    deviation.
    """
    chance.attrs |= {"real": 1.0, "real_of_xlarge": 1.0}
    chance["radius"] = chance["radius"] * 2.0


spoils = {
    "heads counted from 1": replaced(
        "heads", ("re", "im", "part_one", "gap"), lambda values: np.roll(values, 1, axis=0)
    ),
    "all called good triples": constant("heads", "verdict", "good triple"),
    "full matrix in half precision": replaced(
        "full",
        "re",
        lambda values: values + 1e-3 * np.random.default_rng(0).normal(size=values.shape),
    ),
    "chance from symmetric matrices": changed("chance", _square),
}
