"""How many heads of a table are of each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

CLASSES = {
    "good triple": "good triples", "positive leader": "positive leading eigenvalues",
    "negative": "negative leading eigenvalues", "complex": "complex leading pairs",
}
"""What is counted, by the leading eigenvalue of V. The positive ones include the good triples."""


def shares_of(frame: pandas.DataFrame) -> dict[str, int]:
    """How many heads of the table are of each of CLASSES."""
    found = frame["verdict"].value_counts().to_dict()
    found["positive leader"] = found.get("good triple", 0) + found.get("positive", 0)
    return {name: int(found.get(name, 0)) for name in CLASSES}


def summary(frame: pandas.DataFrame) -> str:
    """The shares, each with what chance gives, and how many random heads that is from."""
    shares, total, null = shares_of(frame), len(frame), frame.attrs["null_shares"]
    parts = [f"{says} {shares[name]} ({shares[name] / total:.0%}, chance {null[name]:.0%})" for name, says in CLASSES.items()]
    chance = f"Chance: {frame.attrs['null_draws']} random heads of the same shapes."
    return f"{total} head{'s' if total != 1 else ''}: " + ", ".join(parts) + f". {chance}"
