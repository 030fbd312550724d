"""Count the heads of each kind in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

CLASSES = {
    "good triple": "good triples",
    "positive leader": "positive leading eigenvalues",
    "negative": "negative leading eigenvalues",
    "complex": "complex leading pairs",
}
"""The kinds of heads that are counted, by the leading eigenvalue of V. The positive ones include
the good triples.
"""


def shares_of(frame: pandas.DataFrame) -> dict[str, int]:
    """Return the number of heads of each of CLASSES."""
    found = frame["verdict"].value_counts().to_dict()
    found["positive leader"] = found.get("good triple", 0) + found.get("positive", 0)
    return {name: int(found.get(name, 0)) for name in CLASSES}


def summary(frame: pandas.DataFrame) -> str:
    """Describe the shares, each with its chance level, and the number of random heads behind
    that.
    """
    shares, total, null = shares_of(frame), len(frame), frame.attrs["null_shares"]
    parts = [
        f"{says} {shares[name]} ({shares[name] / total:.0%}, chance {null[name]:.0%})"
        for name, says in CLASSES.items()
    ]
    chance = f"Chance: {frame.attrs['null_draws']} random heads of the same shapes."
    return f"{total} head{'s' if total != 1 else ''}: " + ", ".join(parts) + f". {chance}"
