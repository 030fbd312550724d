"""Fair times: contenders take turns, each sample is long enough for the clock, and the smallest
sample counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

PAUSE = 0.12
"""Seconds between contenders: OpenBLAS's threads spin for a while after a product, and slow down
the next contender. Sixteen heads after a bare product took us 29 ms with 0.04 s between them, and
15.5 ms with 0.1 s, or with OpenBLAS told not to spin.
"""

SHORTEST = 2e-3
"""A sample repeats its call until it has taken about this long."""


WARM_AGAIN = 0.05
"""Calls shorter than this many seconds are made once before the clock starts: after a pause caches
are cold, threads asleep.
"""

MOST_A_ROUND = 12
"""A fast contender is sampled this often while a slow one is sampled once: on a shared machine a
minimum needs many samples.
"""


def fastest(
    contenders: Mapping[str, Callable[[], object]], seconds: float = 8.0, rounds: int = 3
) -> dict[str, float]:
    """The smallest time of one call of each contender, all interleaved: at least `rounds` rounds,
    more while `seconds` last.
    """
    loops, guess = {}, {}
    for name, call in contenders.items():
        call()  # compiled, cached and warm before the clock starts
        began = time.perf_counter()
        call()
        guess[name] = max(time.perf_counter() - began, 1e-9)
        loops[name] = max(1, int(SHORTEST / guess[name]))
    slowest = max(guess[name] * loops[name] for name in contenders)
    often = {
        name: min(MOST_A_ROUND, max(1, int(slowest / (guess[name] * loops[name]))))
        for name in contenders
    }
    best = dict.fromkeys(contenders, float("inf"))
    began, done = time.perf_counter(), 0
    while done < rounds or time.perf_counter() - began < seconds:
        for turn in range(max(often.values())):
            for name, call in contenders.items():
                if turn >= often[name]:
                    continue
                time.sleep(PAUSE)
                if guess[name] < WARM_AGAIN:
                    call()
                start = time.perf_counter()
                for _ in range(loops[name]):
                    call()
                best[name] = min(best[name], (time.perf_counter() - start) / loops[name])
        done += 1
    return best
