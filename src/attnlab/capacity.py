"""Measure the free memory, and refuse work that needs more. Imports nothing from attnlab."""

from __future__ import annotations

import os
from pathlib import Path

BYTES_A_NUMBER = 8
ALWAYS_FITS = 100_000_000
"""Up to this many bytes there is no check: measuring the free memory takes longer than a short
run.
"""

UNKNOWN = 2**47
"""If the system does not report free memory: the address space of a process."""


class TooLarge(ValueError):
    """Raised when something needs more memory than is available. The message has both numbers and
    says what to reduce.
    """


def available_bytes() -> int:
    """Return the bytes that this process may still use: the minimum of free memory, container limit
    and process limit.
    """
    found = [
        free
        for free in (_free_memory(), _left_of_container(), _left_of_process())
        if free is not None
    ]
    return max(0, min(found, default=UNKNOWN))


def check_memory(what: str, numbers: int, advice: str) -> None:
    """Refuse `what`, a plural such as "1000000 tokens in dimension 3", if its `numbers` (doubles)
    do not fit in memory.
    """
    needed = BYTES_A_NUMBER * int(numbers)
    if needed <= ALWAYS_FITS:
        return
    available = available_bytes()
    if needed > available:
        raise TooLarge(
            f"{what} need {_gigabytes(needed)} GB of memory, but {_gigabytes(available)} GB are"
            f" available. {advice}"
        )


def _gigabytes(count: int) -> str:
    return f"{min(count, 10**300) / 1e9:.3g}"


def _free_memory() -> int | None:
    """Return the memory that is free without swapping; all memory if the machine does not report
    it.
    """
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _left_of_container() -> int | None:
    """Return the memory that the limit of a container leaves, from the first version of control
    groups that reports it.
    """
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            numbers = [int((Path("/sys/fs/cgroup") / name).read_text()) for name in (limit, used)]
        except (OSError, ValueError):  # there is none, or "max": no limit
            continue
        return numbers[0] - numbers[1]
    return None


def _left_of_process() -> int | None:
    """Return the part of the address space that `ulimit -v` leaves."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return None
        return limit - os.sysconf("SC_PAGE_SIZE") * int(
            Path("/proc/self/statm").read_text().split()[0]
        )
    except (ImportError, OSError, ValueError):
        return None
