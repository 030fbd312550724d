"""Where the tokens of trained heads end, by the certified limit, beside random heads.

    row = measure_end(model.weights(0, 3), x0, "full")      one head, one start
    end_of(row)                                             one of ENDS
    compare_ends(trained, random)                           shares, intervals, a test over pairs

A random head belongs to one trained head. It has Gaussian factors of the same shapes and Frobenius
norms, starts from the same tokens and has the same mask. So the heads are compared in pairs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from attnlab.analysis.intervals import wilson_interval
from attnlab.analysis.significance import Sign, block_test, holm, sign_test
from attnlab.displayed import Displayed, short_repr
from attnlab.models.checkpoints.model import Model
from attnlab.models.checkpoints.token_norms import entering
from attnlab.models.studies.flow_end import leading_eigenvalue
from attnlab.models.studies.null import draw_like
from attnlab.types import Weights

WORK, BUDGET = 4e5, 3600.0
"""The work that one limit may take, which does not depend on the machine; the seconds are never
reached.
"""

ENDS = {
    "all together": (
        "all tokens have one limit for ever; leaders are certified too, or need not be (grade"
        " group)"
    ),
    "two or more": "several limits for ever",
    "two or more, for a time": (
        "several groups up to a horizon, after which an eigenvalue of larger modulus than the leading"
        " one, or one close to it, may bring them together"
    ),
    "together, rotating": (
        "the leading eigenvalues are a pair: one group, whose leader changes for ever; up to a"
        " horizon, under the causal mask for ever"
    ),
    "groups, rotating": "several such groups",
    "nothing grows": "no eigenvalue of V has a positive real part, so there are no limits of z",
    "undecided": "nothing is certified; the reason names the obstacle",
}
"""{where the tokens of a head end: what that means}."""


TOGETHER = ("all together", "together, rotating")
"""The ends in one group."""

ROTATING = ("together, rotating", "groups, rotating")
"""The ends without a final leader."""


@dataclass(frozen=True)
class HeadEnd(Displayed):
    """The certified end of the tokens of one head. seconds: of processor time.

    lambda1: real and imaginary part of the leading eigenvalue of V, that of largest real part.
    has_leaders: whether the limit says which token each token follows. horizon: lambda_1 times the
    time up to which it holds, None for ever. groups: the sizes of the groups, the largest first.
    obstacle: the word that stands in the way of an undecided limit.
    """

    grade: str
    count: int | None
    lambda1: tuple[float, float]
    horizon: float | None
    nothing_grows: bool
    has_leaders: bool
    groups: tuple[int, ...]
    obstacle: str
    reason: str
    seconds: float
    __repr__ = short_repr

    @property
    def record(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return asdict(self) | {"groups": list(self.groups), "lambda1": list(self.lambda1)}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> HeadEnd:
        """Return the HeadEnd of a `record`."""
        return cls(**{**record, **{name: tuple(record[name]) for name in ("groups", "lambda1")}})


def measure_end(weights: Weights, x0: np.ndarray, mask: str, work: float = WORK) -> HeadEnd:
    """Return where the tokens x0 (n, d) end under one head, with mask "full" or "causal"."""
    from attnlab.limits import limit

    began = time.process_time()
    found = limit(weights, x0, mask=mask, work=work, budget=BUDGET)
    rate = leading_eigenvalue(weights)
    is_open = str(found.grade) == "undecided"
    labels = np.asarray(found.labels)
    return HeadEnd(
        grade=str(found.grade),
        count=None if is_open else found.count,
        lambda1=(rate.real, rate.imag),
        horizon=None if found.horizon is None else rate.real * found.horizon,
        nothing_grows=found.basis.shape[1] == 0 and "nothing grows" in found.reason,
        has_leaders=not is_open and bool((np.asarray(found.leaders) >= 0).all()),
        groups=()
        if (labels < 0).any()
        else tuple(sorted(map(int, np.bincount(labels)), reverse=True)),
        obstacle=obstacle_of(found.reason) if is_open else "",
        reason=found.reason if is_open else "",
        seconds=round(time.process_time() - began, 2),
    )


def obstacle_of(reason: str) -> str:
    """Return the obstacles that the reason of an undecided limit names: for leaders, then for
    groups.
    """
    words = [
        part.split("(", 1)[1].split(")", 1)[0]
        for part in (reason, reason.partition("No groups are certified either")[2])
        if "(" in part
    ]
    return ", ".join(dict.fromkeys(words))


def end_of(row: HeadEnd) -> str:
    """Return where the tokens end: one of ENDS."""
    if row.grade == "undecided":
        return "nothing grows" if row.nothing_grows else "undecided"
    several = row.horizon is not None or max(row.groups, default=1) > 1
    rotates = row.lambda1[1] != 0.0 and several
    if row.horizon is None and not rotates:
        return "all together" if row.count == 1 else "two or more"
    if not rotates:
        return "two or more, for a time"
    return "together, rotating" if row.count == 1 else "groups, rotating"


def is_answered(row: HeadEnd) -> bool:
    """Return whether the limit is exact, a group, or a group up to a horizon."""
    return row.grade != "undecided"


@dataclass(frozen=True, eq=False)
class Start(Displayed):
    """The first tokens of the heads of a model: the ids of a piece of text, or given ids."""

    ids: tuple[int, ...]
    __repr__ = short_repr

    def tokens(self, model: Model, layer: int) -> np.ndarray:
        """Return what the attention of the layer reads of them, (n, d)."""
        return entering(model, layer, np.array(self.ids))


def heads_of(model: Model) -> Iterator[tuple[int, int]]:
    """Yield (layer, head) of each head with its own weights."""
    for layer in range(1 if model.config.is_tied else model.config.layers):
        for head in range(model.config.heads):
            yield layer, head


def measure_head(
    model: Model,
    layer: int,
    head: int,
    start: Start,
    *,
    mask: str | None = None,
    rng: int | None = None,
    work: float = WORK,
) -> HeadEnd:
    """Return where the tokens of one head end; rng: of a random head like it.

    mask: "full" or "causal"; by default that of the model.
    """
    weights = model.weights(layer, head)
    if rng is not None:
        weights = draw_like(weights, rng=np.random.default_rng([rng, layer, head]))
    mask = ("causal" if model.config.is_causal else "full") if mask is None else mask
    return measure_end(weights, start.tokens(model, layer), mask, work)


@dataclass(frozen=True, eq=False)
class Compared(Displayed):
    """One end among trained heads and among the random heads like them.

    count of total, low and high are of the trained heads (Wilson, 95 %, heads taken as
    independent); the same with random_ for random ones. sign: the exact test over pairs, ties left
    out. p: that of `sign`, corrected by Holm for the number of ends. block_p, corrected_block_p: the
    same for exchanges of whole blocks of pairs, such as layers.
    """

    end: str
    count: int
    total: int
    low: float
    high: float
    random_count: int
    random_total: int
    random_low: float
    random_high: float
    sign: Sign
    p: float
    block_p: float
    corrected_block_p: float
    __repr__ = short_repr


def compare_ends(
    trained: Sequence[HeadEnd],
    random: Sequence[HeadEnd],
    ends: Sequence[str] = tuple(ENDS),
    blocks: Sequence[Any] | None = None,
) -> list[Compared]:
    """Compare trained heads with the random head of each, row by row, for each end.

    blocks: what each pair belongs to, such as its layer; by default each pair is a block.
    """
    if len(trained) != len(random):
        raise ValueError(
            f"Each trained head needs one random head: got {len(trained)} and {len(random)}."
        )
    one, other = [end_of(row) for row in trained], [end_of(row) for row in random]
    signs = [
        sign_test([float(name == end) for name in one], [float(name == end) for name in other])
        for end in ends
    ]
    ps = [
        block_test(
            [int(a == end) - int(b == end) for a, b in zip(one, other, strict=True)],
            range(len(one)) if blocks is None else blocks,
        )
        for end in ends
    ]
    found = []
    for end, sign, p, block_p, corrected in zip(
        ends, signs, holm([one.p for one in signs]), ps, holm(ps), strict=True
    ):
        a, b, total = one.count(end), other.count(end), len(one)
        found.append(
            Compared(
                end,
                a,
                total,
                *wilson_interval(a, total),
                b,
                total,
                *wilson_interval(b, total),
                sign,
                float(p),
                block_p,
                float(corrected),
            )
        )
    return found
