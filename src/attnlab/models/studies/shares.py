"""How many heads of a table are of each kind, and how far such a share can be trusted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

CLASSES = {
    "good triple": "good triples", "positive leader": "positive leading eigenvalues",
    "negative": "negative leading eigenvalues", "complex": "complex leading pairs",
}
"""What is counted, by the leading eigenvalue of V. The positive ones include the good triples."""

NORMAL_95 = 1.959963984540054


def shares_of(frame: pandas.DataFrame) -> dict[str, int]:
    """How many heads of the table are of each of CLASSES."""
    found = frame["verdict"].value_counts().to_dict()
    found["positive leader"] = found.get("good triple", 0) + found.get("positive", 0)
    return {name: int(found.get(name, 0)) for name in CLASSES}


def interval(count: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share: what it may be when `count` of `total` independent heads are seen."""
    share, z = count / total, NORMAL_95
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def summary(frame: pandas.DataFrame) -> str:
    """The shares, each with what chance gives, and how many random heads that is from."""
    shares, total, null = shares_of(frame), len(frame), frame.attrs["null_shares"]
    parts = [f"{says} {shares[name]} ({shares[name] / total:.0%}, chance {null[name]:.0%})" for name, says in CLASSES.items()]
    chance = f"Chance: {frame.attrs['null_draws']} random heads of the same shapes."
    return f"{total} head{'s' if total != 1 else ''}: " + ", ".join(parts) + f". {chance}"
