"""What a certificate of several heads was computed from, kept with the Limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.limits.heads.attempt import HeadsAttempt
from attnlab.limits.state import State


def heads_state(
    problem: Any, three: Sequence[HeadsAttempt], begin: float, digest: str, way: str
) -> State:
    """The State of three certified attempts, the original first; `begin` is the time at which they
    start, way the name of the check.
    """
    frozen = [one.frozen for one in three if one.frozen is not None]
    return State(
        way,
        {
            "begin": float(begin),
            "start_digest": digest,
            "same_as": problem.same_as,
            "t": np.array([one.t for one in frozen]),
            "leader": np.stack([one.leader for one in frozen]),
            "tokens": np.stack([one.parts for one in frozen]),
            "tolerance": np.array([one.tolerance for one in three]),
            "start_size": np.stack([one.start_size for one in three if one.start_size is not None]),
            "mixed_size": np.stack([one.mixed_size for one in three if one.mixed_size is not None]),
        },
    )
