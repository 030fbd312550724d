"""The sizes of the tiled kernel's blocks and buffers, apart from its compiled code."""

ROWS = 16
PANEL = 12
TILE = 240


def panels(count: int) -> int:
    """How many panels of twelve hold `count` columns."""
    return -(-count // PANEL)


def work_size(r: int) -> int:
    """The length of the `work` array for r value coordinates: a score tile, the sums, and one scratch row."""
    return ROWS * (TILE + PANEL * panels(r) + 1)
