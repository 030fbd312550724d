"""What the tables and figures of docs/limits.md say of many records: counts, means, slopes, and Markdown."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from limits_cases import POLYTOPES, Record, expected_own
from scipy.stats import beta as beta_law

WIDTH = 130


def clopper_pearson(hits: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """The exact interval for a probability."""
    tail = (1.0 - level) / 2.0
    low = 0.0 if hits == 0 else float(beta_law.ppf(tail, hits, trials - hits + 1))
    high = 1.0 if hits == trials else float(beta_law.ppf(1.0 - tail, hits + 1, trials - hits))
    return low, high


def grades(rows: Iterable[Record]) -> str:
    """How many answers were exact / group / undecided."""
    found = Counter(row["grade"] for row in rows)
    return " / ".join(str(found[grade]) for grade in ("exact", "group", "undecided"))


def column(rows: Iterable[Record], name: str) -> np.ndarray:
    """One number of every certified answer."""
    return np.array([row[name] for row in rows if row["grade"] != "undecided"], dtype=float)


def spread(values: Any, form: str = ".3g") -> str:
    """Median and range."""
    values = np.asarray(values, dtype=float)
    return f"{np.median(values):{form}} ({values.min():{form}} – {values.max():{form}})" if values.size else "–"


def counted(rows: Iterable[Record]) -> str:
    """The counts and how often each was found."""
    found = Counter(row["count"] for row in rows if row["count"] is not None)
    return ", ".join(f"**{count}** in {times}" for count, times in sorted(found.items())) or "–"


def mean_error(values: np.ndarray) -> tuple[float, float]:
    """(mean, its standard error)."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def expected_slope(sizes: list[int], d: int) -> float:
    """b of a + b ln n through the expected numbers of self-leading Gaussian tokens from n = 50 on."""
    sizes = [n for n in sizes if n >= 50]
    return float(np.polyfit(np.log(sizes), [expected_own(n, d) for n in sizes], 1)[0])


def slope(rows: dict[str, list[Record]], d: int, law: str, name: str, least: int) -> tuple[float, float]:
    """(b, its standard error) of a + b ln n, fitted to the means from n = least on, weighted by their standard errors."""
    sizes = [n for n in POLYTOPES if n >= least and f"polytope/{d}/{law}/{n}" in rows]
    if len(sizes) < 3:
        return float("nan"), float("nan")
    means, errors = np.array([mean_error(column(rows[f"polytope/{d}/{law}/{n}"], name)) for n in sizes]).T
    weights = 1.0 / np.maximum(errors, 0.1) ** 2
    A = np.column_stack([np.ones(len(sizes)), np.log(sizes)])
    covariance = np.linalg.inv((A.T * weights) @ A)
    return float((covariance @ (A.T * weights) @ means)[1]), float(np.sqrt(covariance[1, 1]))


def table(head: list[str], body: list[list[Any]]) -> str:
    """A table of the page."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def paragraph(text: str) -> str:
    """Text in lines of the page's width."""
    return "\n\n".join(textwrap.fill(" ".join(part.split()), WIDTH, break_long_words=False, break_on_hyphens=False)
                       for part in text.strip().split("\n\n"))
