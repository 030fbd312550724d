"""Damage: of bytes, as disks and networks do it, and of structures, as people do it who want to
know what happens.
"""

from __future__ import annotations

import contextlib
import copy
import random
from typing import Any

SPLICES = (b"\x00", b"\xff", b"\n", b'"', b"[", b"]", b"{", b"}", b"=", b",", b"-", b".", b"e", b"0", b"9", b"nan", b"inf",
           b"\xed\xa0\x80", b"\xef\xbb\xbf", b"true", b"null", b"'''", b"\\u0000", b"#", b"[[", b"1e999", b"0x")  # fmt: skip
"""Pieces that mean something to a reader of TOML, JSON or UTF-8."""

DEEP = 3000
"""Levels of nesting, more than any recursion survives."""


def hostile_values() -> list[Any]:
    """Values that a table can hold and that nobody meant; sizes are tiny, or beyond any machine."""
    deep: Any = 1
    for _ in range(DEEP):
        deep = [deep]
    return [None, True, False, "", "banana", "x" * 300, "\x00", "\u202e", "../../etc/passwd", "/dev/zero", "$x$", "[/]",
            0, 1, -1, 2, 3, 7, 0.5, -0.0, 1e-300, 1e300, 1.7e308, -1.7e308, float("nan"), float("inf"), float("-inf"),
            2**31, 2**63, 10**9, 10**12, 10**18, 10**30, -(10**12), [], {}, [[]], [1, 2, 3], ["a"], {"a": 1}, [[1, 2], [3]],
            deep]  # fmt: skip


def damage_bytes(data: bytes, rng: random.Random, times: int = 3) -> bytes:
    """The data with one to `times` pieces changed, lost, repeated, exchanged or put in; never the
    data itself.
    """
    changed = bytearray(data)
    for _ in range(rng.randint(1, times)):
        _damage_once(changed, rng)
    return bytes(changed) if bytes(changed) != data else data + b"\x00"


def _damage_once(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data)) if data else 0
    length = min(rng.choice((1, 1, 2, 4, 8, 64, 512)), len(data) - at)
    how = rng.randrange(8)
    if how == 0 and data:
        data[at] ^= 1 << rng.randrange(8)
    elif how == 1:
        data[at : at + length] = rng.randbytes(length)
    elif how == 2:
        data[at : at + length] = bytes(length)
    elif how == 3:
        del data[at : at + length]
    elif how == 4:
        data[at:at] = rng.choice(SPLICES)
    elif how == 5:
        data[at:at] = data[at : at + length]
    elif how == 6:
        other = rng.randrange(len(data)) if data else 0
        piece = bytes(data[other : other + length])
        data[at : at + len(piece)] = piece
    else:
        del data[rng.choice((at, len(data) // 2, max(len(data) - 1, 0))) :]


def damage_table(table: dict[str, Any], rng: random.Random, times: int = 2) -> dict[str, Any]:
    """A nested table with one to `times` entries replaced, lost, renamed, exchanged, wrapped or
    added.
    """
    changed: dict[str, Any] = copy.deepcopy(table)
    for _ in range(rng.randint(1, times)):
        _damage_entry(changed, rng)
    return changed


def _damage_entry(table: dict[str, Any], rng: random.Random) -> None:
    places = list(_places(table))
    if not places:
        table["banana"] = rng.choice(hostile_values())
        return
    holder, key = rng.choice(places)
    how = rng.randrange(10)
    value = holder[key]
    if how >= 8 and isinstance(value, int | float) and not isinstance(value, bool):
        holder[key] = rng.choice(
            (
                -value,
                value + 1,
                2 * value,
                value / 3,
                10.0 * value,
                1e3 * value,
                1e-3 * value,
                1e9 * value,
            )
        )
    elif how <= 2:
        holder[key] = rng.choice(hostile_values())
    elif how == 3:
        del holder[key]
    elif how == 4 and isinstance(holder, dict):
        holder[rng.choice((key + "s", key.upper(), "", "banana", key[:-1]))] = holder.pop(key)
    elif how == 5:
        other, name = rng.choice(places)
        with contextlib.suppress(RecursionError):  # one of them may be the deep one
            holder[key], other[name] = copy.deepcopy(other[name]), copy.deepcopy(holder[key])
    elif how == 6:
        holder[key] = rng.choice(([holder[key]], {"value": holder[key]}, str(holder[key])[:3000]))
    elif isinstance(holder, dict):
        holder[rng.choice(("banana", "rng", "d", "dt", "n", "__class__"))] = rng.choice(
            hostile_values()
        )
    else:
        holder.insert(key, rng.choice(hostile_values()))


def _places(table: Any, level: int = 0) -> Any:
    """(holder, key) of every entry, of the first few levels."""
    entries = (
        table.items()
        if isinstance(table, dict)
        else enumerate(table)
        if isinstance(table, list)
        else ()
    )
    for key, value in entries:
        yield table, key
        if level < 6:
            yield from _places(value, level + 1)
