"""What a Limit says in words."""

from __future__ import annotations

import numpy as np

from attnlab.limits.allowance import Allowance
from attnlab.limits.problem import Problem
from attnlab.limits.quotient import Quotient
from attnlab.limits.replicas import Decision
from attnlab.limits.symmetry import Symmetry
from attnlab.worded import Worded


class Obstacle(Worded):
    """What stands in the way of a certificate. A member equals its word, which `limit.reason` has
    in brackets.
    """

    TIE = "tie", "the scores of two tokens touch without crossing, so the row is tied between them"
    SLIDE = (
        "slide",
        (
            "the row slides: whichever of the two it listens to, the other becomes better, and it"
            " stays mixed"
        ),
    )
    CYCLE = "cycle", "tokens listen to each other in a cycle, for which there is no closed form"
    REPLICAS_DISAGREE = (
        "replicas disagree",
        (
            "starts perturbed by 1e-11 end in different limits: the data sit on, or within rounding"
            " of, an edge between two limits (a symmetry, a bounded token)"
        ),
    )
    CLOSE_LIMITS = "close limits", "two leaders whose limits cannot be told apart within the error"
    NOT_BOOLEAN = (
        "not boolean",
        "the row still divides its attention, and the tokens have left the range of the arithmetic",
    )
    STALLED = "stalled", "the integrator's step fell to rounding level"
    NO_CLASSES = (
        "no classes",
        (
            "some token that leads has other leaders than its own leaders have, and the tokens have"
            " left the range of the arithmetic"
        ),
    )
    NO_LIMIT = (
        "no limit",
        (
            "with these leaders some rescaled token has no limit: a token leads itself in heads whose"
            " V_h together grow faster than the sum of all V_h, of which some is negative"
        ),
    )
    BETWEEN_CLASSES = (
        "between classes",
        (
            "the heads of some token choose different classes, or other tokens of one class than the"
            " class itself; where V_h do not commute, its z converges along the fastest direction"
            " only"
        ),
    )
    HORIZON = "horizon", "leaders may still change at lambda_1 t = 600, where offsets underflow"
    GROWTH = (
        "growth",
        "leaders may still change when the tokens have left the range of the arithmetic",
    )
    PAIRS = (
        "pairs",
        (
            "leaders may still change, and the pairs of tokens to be watched are too many for the"
            " memory"
        ),
    )
    NOT_RESOLVED = (
        "not resolved",
        (
            "tokens gather, but their common limit along the leading direction is not known well"
            " enough"
        ),
    )
    TURNING = (
        "turning",
        (
            "tokens gather in one group, whose leaders rotate so fast beside their growth that its"
            " width is not bounded for long"
        ),
    )
    GROUPS = (
        "groups",
        (
            "tokens are in several groups, and it is not shown that each goes on listening to"
            " itself only"
        ),
    )
    WORK = (
        "work",
        (
            "the work of {work:.6g} evaluations and events{shared} was used up first;"
            " work={twice_work:.3g} gives twice as much"
        ),
    )
    BUDGET = (
        "budget",
        (
            "the time limit of {seconds:g} s ended it first; budget={twice_seconds:g} gives twice"
            " as long"
        ),
    )


SHARED = ", which three attempts share,"
"""What happens to the work of a limit in R^d; the integrations on the sphere take what they need,
one after the other.
"""


SYMMETRIC = (
    "The data have an exact symmetry ({count} signed permutations of the coordinates), which was"
    " kept by the arithmetic. The answer holds for exactly these data and is unstable: perturbed"
    " tokens end elsewhere."
)

SYMMETRIC_OPEN = (
    "The data have an exact symmetry ({count} signed permutations of coordinates); keeping it did"
    " not help either."
)


def proved_symmetric(found: Quotient, symmetry: Symmetry, limits: int) -> str:
    """What was certified about exactly symmetric data."""
    assert found.leaders is not None
    tied = int((found.leaders < 0).sum())
    between = (
        f"; {tied} token{'s' if tied > 1 else ''} tied between mirror images of a leader for ever"
        if tied
        else ""
    )
    return (
        f"Certified at t = {found.t:.4g}: {limits} different limits{between}, and no gap that the"
        f" symmetry does not close ever closes. {SYMMETRIC.format(count=len(symmetry.elements))}"
    )


def sentence(kind: str, allowance: Allowance, shared: str = "") -> str:
    """What stands in the way, with what was allowed. shared: how the work is divided, a clause that
    follows it.
    """
    work, seconds = allowance.work, allowance.seconds
    text: str = Obstacle.of(kind).value
    return text.format(
        work=work,
        seconds=seconds,
        twice_work=2.0 * work,
        twice_seconds=2.0 * seconds,
        shared=shared,
    )


def obstacle(decision: Decision, names: list[int], allowance: Allowance) -> str:
    """Why it is undecided, with row and pair; names[i] is the user's number of different token
    i.
    """
    original = decision.original
    where = ""
    if decision.row >= 0:
        where = f" Open: the leader of token {names[decision.row]}."
        if decision.column >= 0 and original.leaders is not None:
            leader, rival = names[original.leaders[decision.row]], names[decision.column]
            where = (
                f" Open: whether token {names[decision.row]} follows token {leader} or token"
                f" {rival}."
            )
    why = sentence(decision.kind, allowance, SHARED)
    if decision.after:
        why = (
            f"{sentence(decision.after, allowance, SHARED)}. {decision.digits} digits may decide,"
            f" but {why}"
        )
    return f"Undecided ({decision.kind}) at t = {original.t:.4g}: {why}.{where}"


def not_groups(kind: str, allowance: Allowance) -> str:
    """A further sentence where groups were looked for as well; "" where they were not."""
    return f" No groups are certified either ({kind}): {sentence(kind, allowance)}." if kind else ""


def proved(decision: Decision, problem: Problem, count: int, n: int) -> str:
    """What was certified, in a sentence or two."""
    one = decision.original
    changes = f" after {len(one.events)} changes of leader" if one.events else ""
    what = (
        f"Certified at t = {one.t:.4g}{changes}: {n} tokens follow {count}"
        f" leader{'s' if count > 1 else ''}, and no gap between a row's leader and another token"
        " ever closes again. Two perturbed replicas, computed otherwise, agree"
    )
    if decision.grade == "group":
        what += (
            " on labels and points, up to who leads inside a group that has merged below rounding"
        )
    what += "."
    if one.is_glued and (problem.is_complex or np.abs(problem.rates).max() > problem.fastest):
        what += (
            " Merged tokens are assumed to stay merged: along eigenvalues that are complex, or"
            " larger in modulus than the leading one, this is not proved."
        )
    if problem.is_complex:
        what += " Complex eigenvalues: oscillating terms counted at their worst."
    return " ".join([what, *problem.notes])
