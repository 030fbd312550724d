"""The axes of the equation: one folder per axis, one file per member. A member is a class of functions and flags.

    u = read(x)                                        what attention sees of a token
    s_ij = beta scores(Q_h u_i, K_h u_j)               how two tokens are compared
    P^h = kernel.weights(s^h, mask.seen(n))            how scores become attention
    x_i' = space.project(x_i, speed(t) write(sum_h sum_j P^h_ij V_h u_j))        and noise

Code asks a member for a flag, never for its name. So a new member is one file: a user's own, or one in these folders.
"""

from __future__ import annotations

from attnlab.axes.kernels import kernels
from attnlab.axes.masks import masks
from attnlab.axes.noises import noises
from attnlab.axes.reads import reads
from attnlab.axes.scores import scores
from attnlab.axes.spaces import spaces
from attnlab.axes.speeds import speeds
from attnlab.axes.writes import writes

AXES = {"scores": scores, "kernel": kernels, "mask": masks, "geometry": spaces, "read": reads, "write": writes,
        "speed": speeds, "noise": noises}
"""{keyword of simulate, and key of a Spec: its registry}."""

USUAL = {name: registry.default for name, registry in AXES.items() if name not in ("kernel", "mask", "geometry")}
"""{axis: word} of the axes that are named only where they are not as usual."""
