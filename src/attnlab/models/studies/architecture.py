"""What a change of the architecture does to the tokens, with the same trained weights.

    frame = measure_architecture(model, texts)      one row per text and change
    summarize(frame)                                means over texts, and paired differences

A change keeps every matrix, bias and gain. It moves the norms, adds or removes a mask, leaves the
rotary positions out, or gives all layers the weights of the middle one. The model was not trained
for the changed architecture, so this shows what the part does to these weights, and not what a
model that is trained with the change would do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.analysis.intervals import student_interval
from attnlab.models.checkpoints.forward import enter, seen_by, steps
from attnlab.models.checkpoints.model import Model
from attnlab.models.checkpoints.record import Block, Layer, Parts
from attnlab.models.studies.sentences import measure_attention, measure_tokens

if TYPE_CHECKING:
    import pandas

TRAINED = "as trained"

NUMBERS = {
    "cosine": "mean cosine of pairs of tokens at the end",
    "rank": "effective rank of the directions at the end, over the number of tokens",
    "clusters": "clusters at the end (cosine 0.9), over the number of tokens",
    "sink": "share of the attention that the most attended token receives, mean over layers",
    "first": "share of the layers in which the first token receives most attention",
    "entropy": "entropy of attention rows over that of uniform ones, mean over layers",
}
"""{column: what it is}."""


@dataclass(frozen=True)
class Change:
    """A change: is_for(model) says where it is one; parts(parts) and seen(seen) make it."""

    is_for: Callable[[Model], bool]
    parts: Callable[[Parts], Parts] = lambda parts: parts
    seen: Callable[[np.ndarray], np.ndarray] = lambda seen: seen


def norms_before(parts: Parts) -> Parts:
    """Return a stack with the norms after each sum moved before what reads them: post-norm becomes
    pre-norm.

    Each part reads tokens normed as before, with the same gain, but the stream itself is not
    normed. The last norm becomes the final one.
    """
    blocks = _plain_blocks(parts)
    sums = [block.norm_sum for block in blocks]
    changed = [
        replace(block, norm_before=None if number == 0 else sums[number - 1], norm_sum=None)
        for number, block in enumerate(blocks)
    ]
    return _with_blocks(replace(parts, final_norm=sums[-1]), changed)


def norms_after(parts: Parts) -> Parts:
    """Return a stack with the norms before each part moved to the sum before it: pre-norm becomes
    post-norm.

    Each part reads tokens normed as before, with the same gain, but now the stream is normed. The
    first norm is that of the embedded tokens, the final one that of the last sum.
    """
    blocks = _plain_blocks(parts)
    following = [*(block.norm_before for block in blocks[1:]), parts.final_norm]
    changed = [
        replace(
            block,
            norm_before=block.norm_before if number == 0 else None,
            is_sum_normed=number == 0 and block.norm_before is not None,
            norm_sum=following[number],
        )
        for number, block in enumerate(blocks)
    ]
    return _with_blocks(replace(parts, final_norm=None), changed)


def without_rotary(parts: Parts) -> Parts:
    """Return a stack whose queries and keys do not turn with their places."""
    return replace(parts, layers=tuple(layer.change(rotary=None) for layer in parts.layers))


def with_one_layer(parts: Parts) -> Parts:
    """Return a stack in which every layer has the weights of the middle one."""
    middle = parts.layers[len(parts.layers) // 2]
    return replace(parts, layers=(middle,) * len(parts.layers))


def _plain_blocks(parts: Parts) -> list[Block]:
    blocks = [block for layer in parts.layers for block in layer.blocks]
    if any(
        block.is_beside or block.norm_output is not None or (block.norm_before and block.norm_sum)
        for block in blocks
    ):
        raise ValueError(
            "Norms can be moved if each part has one norm, before it or after its sum. Parallel"
            " and sandwich layers have other ones."
        )
    return blocks


def _with_blocks(parts: Parts, blocks: Sequence[Block]) -> Parts:
    rest = iter(blocks)
    layers = tuple(Layer(tuple(next(rest) for _ in layer.blocks)) for layer in parts.layers)
    return replace(parts, layers=layers)


CHANGES: dict[str, Change] = {
    TRAINED: Change(lambda model: True),
    "norms before each part": Change(lambda model: not model.config.is_pre_norm, norms_before),
    "norms after each sum": Change(lambda model: model.config.is_pre_norm, norms_after),
    "causal mask": Change(
        lambda model: not model.config.is_causal,
        seen=lambda seen: seen & np.tri(seen.shape[-1], dtype=bool),
    ),
    "no mask": Change(lambda model: model.config.is_causal, seen=np.ones_like),
    "no rotary positions": Change(lambda model: model.config.rotary is not None, without_rotary),
    "one layer shared": Change(lambda model: not model.config.is_tied, with_one_layer),
}
"""{name: the change}. A model gets those that change it."""


def measure_architecture(model: Model, texts: Sequence[Any]) -> pandas.DataFrame:
    """Return one row per text and change, with NUMBERS. texts: sentences, or arrays of ids."""
    import pandas

    rows = []
    for number, text in enumerate(texts):
        given = {"text": text} if isinstance(text, str) else {"ids": text}
        for name, found in _measure(model, given):
            rows.append({"text": number, "change": name, **found})
    return pandas.DataFrame(rows)


def _measure(model: Model, given: dict[str, Any]) -> Iterator[tuple[str, dict[str, float]]]:
    from attnlab.models.checkpoints.tokens import read_tokens

    tokens = read_tokens(model, given.get("text"), given.get("ids"), True)
    n = len(tokens.ids)
    x0 = enter(model.parts, tokens.given, np.float64)
    seen = seen_by(model.config, np.ones(n, dtype=bool))
    for name, change in CHANGES.items():
        if not change.is_for(model):
            continue
        done = list(steps(change.parts(model.parts), x0, change.seen(seen)))
        ends = measure_tokens(done[-1].x[None])
        looks = measure_attention(np.stack([step.attention for step in done]), change.seen(seen))
        yield (
            name,
            {
                "cosine": float(ends["cosine"][0]),
                "rank": float(ends["rank"][0]) / n,
                "clusters": float(ends["clusters"][0]) / n,
                "sink": float(looks["received"].max(axis=-1).mean()),
                "first": float((looks["leader"] == 0).mean()),
                "entropy": float(looks["entropy"].mean()),
            },
        )


def summarize(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Return one row per change and number: the mean over texts, and the mean difference from the
    trained architecture on the same texts, with its 95 % interval (Student).
    """
    import pandas

    rows = []
    trained = frame[frame["change"] == TRAINED].set_index("text")
    for name in dict.fromkeys(frame["change"]):
        own = frame[frame["change"] == name].set_index("text").loc[trained.index]
        for number in NUMBERS:
            difference = (own[number] - trained[number]).to_numpy()
            low, high = student_interval(difference)
            rows.append(
                {
                    "change": name,
                    "number": number,
                    "mean": float(own[number].mean()),
                    "difference": float(difference.mean()),
                    "low": low,
                    "high": high,
                }
            )
    return pandas.DataFrame(rows)
