"""The open questions about an equation that no statement covers, and the nearest known results."""

from __future__ import annotations

from collections.abc import Iterator

from attnlab.analysis.spectra import good_triple_margins, identity_margins
from attnlab.theory.hypotheses import CLEAR
from attnlab.types import Dynamics


def openings(dynamics: Dynamics) -> list[str]:
    """Return one or two sentences for each feature of this equation that the theorems do not
    cover.
    """
    return [*_outside_the_paper(dynamics), *_of_the_heads(dynamics)]


def _outside_the_paper(dynamics: Dynamics) -> Iterator[str]:
    if not dynamics.kernel.is_softmax:
        yield (
            f"The weights are {dynamics.kernel.name}, not softmax. Nothing here is a theorem of the"
            " paper; tokens still move by V times an average of tokens where rows of the attention"
            " matrix add up to 1."
        )
    if not dynamics.geometry.is_linear:
        yield (
            "Tokens on the sphere. Other papers treat it: one cluster from almost every start for V"
            " = Q^T K = I in d >= 3 (arXiv:2312.10794). `limit` proves it for V = cI from the time"
            " on when all tokens are in one open half-sphere."
        )
    if dynamics.mask.is_causal:
        yield (
            "A causal mask. The paper has none; the first token moves alone, x_1(t) = e^(tV) x_1,"
            " and every token only depends on those before it. `limit` certifies masked runs all"
            " the same."
        )
    if dynamics.feedforward.acts_on_z:
        yield (
            "A feed-forward part. Open (section 12): for ReLU with W = I the hyperplanes were seen"
            " to persist, for tanh or random W all tokens were seen to collapse; single draws."
            " feedforward_hyperplanes collects evidence."
        )
    elif not dynamics.feedforward.is_none:
        yield (
            f'The drift "{dynamics.feedforward.name}" moves tokens besides attention. No theorem'
            " here is about such an equation. A simulation shows where the tokens go."
        )
    if dynamics.is_layers:
        yield (
            "Layers, not continuous time. Convex hulls shrink for every step when V = cI; the"
            " theorems about t = infinity are of the flow, which layers follow up to an error of"
            " the order of dt."
        )


def _of_the_heads(dynamics: Dynamics) -> Iterator[str]:
    weights = dynamics.weights
    if weights.heads > 1:
        yield (
            f"{weights.heads} heads. Open (section 12): whether tokens cluster and the attention"
            " matrices converge. several_heads asks it for d = 1, and win_in_every_head says what"
            " limits are like where V_h = v_h I, v_h > 0: `limit` certifies them start by start."
            " Heads with equal scores are one head with the sum of their V."
        )
        return
    margins = good_triple_margins(weights)
    if identity_margins(weights)["distance"] <= CLEAR:
        return  # V = cI has its own theorems
    if margins["imaginary"] > CLEAR:
        yield (
            "A complex leading pair of V. Open: nothing is proved, and the authors expect no"
            " clusters. In z the rotation is taken out, and `limit` certifies limits of z for some"
            " of these; others slide for ever, and stay undecided."
        )
    elif margins["real"] < -CLEAR:
        yield (
            "The leading eigenvalue of V, largest in modulus, is negative, and V is not -cI. Open:"
            " nothing is proved. Coordinates of positive eigenvalues, if there are any, still obey"
            " coordinate_extremes, and `limit` may decide."
        )
    elif margins["real"] > CLEAR and dynamics.beta * margins["score"] <= 0.0:
        yield (
            "<Q phi_1, K phi_1> is not positive: tokens far out along phi_1 look to the other side,"
            " or nowhere. Open; three_hyperplanes needs it positive. `limit` may decide."
        )
