"""The name of a head in text: L5H10 is head 10 of layer 5, both counted from 0."""

from __future__ import annotations


def name_head(layer: int, head: int) -> str:
    """Return the name of a head, such as L5H10."""
    return f"L{int(layer)}H{int(head)}"


def name_heads(layer: int, head: int | None) -> str:
    """Return the name of a head, or 'layer 5, all heads' where head is None."""
    return f"layer {int(layer)}, all heads" if head is None else name_head(layer, head)
