"""The idealised model of a stack: the flow of the theory with the matrices of layer l between the
times l and l + 1.

Post-norm models return their tokens to a surface after every layer, so their idealised model lives
on a sphere. Its radius in each layer is the root mean square norm of the tokens that the layer
reads in the model: x = radius y with y on the unit sphere, so scores are radius^2 times those of y.
(With gains of 1 it would be sqrt(d). In minilm it is 9 to 12 where sqrt(d) is 20.)

Pre-norm models add to a free stream, and attention reads its normed tokens. Their idealised model
starts from the same tokens and does the same in continuous time: x' = sum_h P_h(u) V_h u, u = x
without its mean (LayerNorm) over its root mean square. If it read x itself, it would stand still
where the embedding is small. If it started from longer tokens, it would be slow.

Biases, feed-forward parts and rotary positions are left out; gains are inside the matrices; a
causal mask stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

import numpy as np

from attnlab.dynamics import attention
from attnlab.models.checkpoints.forward import Step, in_precision, layer_step, seen_by, steps
from attnlab.models.checkpoints.model import Model
from attnlab.types import Dynamics, RunFailed, RunInterrupted, Solve, Status, Trajectory

READS = {"layer": "layer_norm", "rms": "rms_norm"}
"""{kind of a norm: the read of attention}."""

TOLERANCE = 1e-6
"""The relative tolerance. The stacks for comparison differ by tens of per cent."""


WHY = {
    Status.MAX_STEPS: (
        f"It needs more than {Solve.max_steps:,} steps, because its tokens grow or turn too fast."
    ),
    Status.STALLED: (
        "Its steps fall to rounding level: it blows up, or switches faster than double precision"
        " resolves."
    ),
    Status.NON_FINITE: "A token leaves the range of double precision.",
}
"""The reasons, without advice: the reader of a sentence cannot choose the steps."""


class Unfinished(ValueError):
    """The idealised model does not reach the end of a layer. The message says where it stops."""


def idealised_steps(model: Model, x0: np.ndarray) -> Iterator[Step]:
    """Yield the tokens (n, d) at the times 1, 2, ..., layers, and the attention (h, n, n) one unit
    before each.
    """
    seen = seen_by(model.config, np.ones(len(x0), dtype=bool))
    read = (step.x for step in steps(model.parts, x0, seen))
    return _follow(model, range(model.config.layers), x0, read)


def repeat_idealised(model: Model, x0: np.ndarray, layer: int, times: int) -> Iterator[Step]:
    """Yield the same with one layer `times` times. The radii are those of the repeated layer."""
    return _follow(model, repeat(layer, times), x0, _repeated(model, x0, layer))


def _repeated(model: Model, x: np.ndarray, layer: int) -> Iterator[np.ndarray]:
    """Yield the stream (n, d) after each application of one layer of the model, without end."""
    again = in_precision(model.parts.layers[layer], x.dtype)
    seen = seen_by(model.config, np.ones(len(x), dtype=bool))
    while True:
        x, _ = layer_step(again, x, seen)
        yield x


def _follow(
    model: Model, layers: Iterable[int], x0: np.ndarray, streams: Iterable[np.ndarray]
) -> Iterator[Step]:
    """Yield the idealised Step of each layer. streams: the model's own stream after each layer,
    which a post-norm model needs for the radii.
    """
    if model.config.is_pre_norm:
        x = x0
        for number in layers:
            step = _step_pre_norm(model, number, x)
            yield step
            x = step.x
        return
    y, radius = start(model, x0)
    for number, stream in zip(layers, streams, strict=False):  # streams may go on for ever
        run, after = between(model, number, y, radius), rms_norm(stream)
        yield Step(run.x[-1] * after, _attention(run))
        y, radius = run.x[-1], after


def start(model: Model, x0: np.ndarray) -> tuple[np.ndarray, float]:
    """Return (y, radius): for a post-norm model the first tokens are radius * y, y on the unit
    sphere; else x0 itself.
    """
    if model.config.is_pre_norm:
        return x0, 1.0
    return x0 / np.linalg.norm(x0, axis=-1, keepdims=True), rms_norm(x0)


def rms_norm(x: np.ndarray) -> float:
    """Return the root mean square norm of tokens x (n, d)."""
    return math.sqrt(float(np.square(x).sum(axis=-1).mean()))


def _step_pre_norm(model: Model, number: int, x0: np.ndarray) -> Step:
    """Compute one unit of time for a pre-norm model: attention and values read the normed
    stream.
    """
    from attnlab.engine import simulate

    norm = model.parts.layers[number].attention_block.norm_before
    read: dict[str, Any] = (
        {} if norm is None else {"read": {"name": READS[norm.kind], "eps": norm.eps}}
    )
    dynamics = Dynamics.of(
        model.weights(number), mask="causal" if model.config.is_causal else "full", **read
    )
    run = _solve(number, 1.0, lambda: simulate(dynamics, x0, t_end=1.0, saves=2, rtol=TOLERANCE))
    return Step(run.x[-1], _attention(run))


def between(
    model: Model, number: int, y: np.ndarray, radius: float, t_end: float = 1.0, **options: Any
) -> Trajectory:
    """Simulate tokens radius y, y on the unit sphere, with the matrices of one layer. options:
    those of simulate.
    """
    from attnlab.engine import simulate

    dynamics = Dynamics.of(
        model.weights(number),
        mask="causal" if model.config.is_causal else "full",
        geometry="sphere",
        beta=radius**2,
    )
    return _solve(
        number,
        t_end,
        lambda: simulate(dynamics, y, t_end=t_end, rtol=TOLERANCE, **{"saves": 2, **options}),
    )


def _solve(number: int, t_end: float, solve: Callable[[], Trajectory]) -> Trajectory:
    """Return the run of `solve`. Raise Unfinished, which names the layer, if it does not reach its
    end.
    """
    try:
        return solve()
    except RunInterrupted:
        raise KeyboardInterrupt from None
    except RunFailed as problem:
        run = problem.run
        why = WHY.get(run.status, run.status.value)
        raise Unfinished(
            f"The idealised model stops in layer {number} at t = {run.stats['reached']:.4g} of"
            f" {t_end:g}. {why}"
        ) from None


def _attention(run: Trajectory) -> np.ndarray:
    return attention(run, at=0)
