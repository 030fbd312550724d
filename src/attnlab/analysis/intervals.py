"""95 % intervals for what repeated runs give: of a share (Wilson) and of a mean (Student)."""

from __future__ import annotations

import math

import numpy as np

LEVEL = 0.95


def wilson_interval(count: int, total: int, level: float = LEVEL) -> tuple[float, float]:
    """(low, high) of the share count / total of independent yes-or-no answers; (NaN, NaN) for none at all.

    Wilson's score interval (1927): all shares p with |count / total - p| <= z sqrt(p (1 - p) / total). It stays in [0, 1], and
    has a width also where all answers agree.
    """
    if not 0 <= count <= total:
        raise ValueError(f"count must be from 0 to total = {total}, got {count}.")
    if total == 0:
        return float("nan"), float("nan")
    z = _normal_quantile(level)
    share, weight = count / total, z * z / total
    middle = (share + weight / 2) / (1 + weight)
    reach = z / (1 + weight) * math.sqrt(share * (1 - share) / total + weight / (4 * total))
    return (0.0 if count == 0 else middle - reach), (1.0 if count == total else middle + reach)


def student_interval(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """(low, high) of the mean of independent values (m,), by Student's quantile; (NaN, NaN) for fewer than two values.

    Values that are not finite are left out.
    """
    from scipy.special import stdtrit

    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    m = len(values)
    if m < 2:
        return float("nan"), float("nan")
    mean = float(values.mean())
    reach = float(stdtrit(m - 1, (1 + level) / 2)) * float(values.std(ddof=1)) / math.sqrt(m)
    return mean - reach, mean + reach


def _normal_quantile(level: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + level) / 2)
