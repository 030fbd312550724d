"""Describe a flow in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.models.studies.flow_end import FlowEnd
from attnlab.models.studies.flows import Flow

if TYPE_CHECKING:
    import xarray

    from attnlab.types import Limit

MOST_CLUSTERS, MOST_WORDS = 8, 8


def say_flow(found: Flow) -> list[str]:
    """Describe a flow: its clusters and leader, the eigenvalues of P, how it was solved, and its
    limit.
    """
    data = found.data
    n, heads = data.sizes["token"], data.sizes["head"]
    times, clusters = data["time"].values, data["clusters"].values
    second = second_moduli(data)
    sentences = [] if found.run.is_ok else [found.status]
    sentences.append(
        f"{n} tokens go from {clusters[0]:.0f} cluster{_s(clusters[0])} and mean cosine"
        f" {data['cosine'].values[0]:.2f} to {clusters[-1]:.0f} cluster{_s(clusters[-1])} and"
        f" {data['cosine'].values[-1]:.2f} at t = {times[-1]:g}; {_leading(found)}."
    )
    what = "P" if heads == 1 else f"the mean of the {heads} matrices P"
    radius = (
        f"; the spectral radius of their sum is {data['radius'].values[-1]:.10g}, the number of"
        " heads"
    )
    sentences.append(
        f"The second modulus of {what} goes from {second[0]:.3g} to"
        f" {second[-1]:.3g}{radius if heads > 1 else ''}."
    )
    sentences.append(_solver(found))
    if found.limit is not None:
        sentences.append(_limit(found, found.limit))
    elif found.no_limit != "not asked for":
        sentences.append(f"No certified limit: {found.no_limit}")
    if found.no_check and found.no_check != "not asked for":
        sentences.append(f"No verdicts: {found.no_check}.")
    return sentences


def _leading(found: Flow) -> str:
    """Describe which token leads at the end, and since when."""
    leader, times = found.data["leader"].values, found.data["time"].values
    others = np.flatnonzero(leader != leader[-1])
    since = "at all times" if len(others) == 0 else f"since t = {times[others[-1] + 1]:.3g}"
    return (
        f"{quote_word(found.words[int(leader[-1])])} receives most attention in the end "
        f"({found.data['received'].values[-1].max():.0%}), {since}"
    )


def _solver(found: Flow) -> str:
    evaluations = int(found.run.stats["evaluations"])
    text = f"Solved with {found.data.attrs['solved']}: {evaluations} evaluations"
    if "apart" not in found.data:
        return f"{text}."
    apart, doubt = found.data["apart"].values[-1], found.in_doubt
    text += (
        f". With steps twice as long directions differ by {np.median(apart):.2g} at the end"
        f" (median), at most {np.max(apart):.2g}"
    )
    named = f" ({list_words([found.words[i] for i in doubt])})" if len(doubt) else ""
    return (
        f"{text}: {len(doubt)} token{_s(len(doubt))}{named} {'is' if len(doubt) == 1 else 'are'} in"
        " doubt."
    )


def _limit(found: Flow, limit: Limit) -> str:
    end = found.end
    if end is None:
        return f"As t goes to infinity: {limit.reason}"
    last = float(found.run.times[-1])
    short = (
        f" The run itself is shorter: it ends at lambda_1 t = {last * end.rate.real:.3g}, so what"
        " its clusters are there is not the end."
        if last < end.decided
        else ""
    )
    return f"{say_end(end, found.words)}{short}"


def say_end(end: FlowEnd, words: Sequence[str]) -> str:
    """Describe the certified end of a flow: which tokens end together, who leads, and until
    when.
    """
    n, rate = sum(map(len, end.groups)), end.rate
    until = (
        "for ever"
        if end.horizon is None
        else f"up to lambda_1 t = {end.horizon * rate.real:.4g} (t = {end.horizon:.4g}, a horizon)"
    )
    turning = " that rotates" if end.rotates else ""
    if len(end.groups) == 1:
        what = f"all {n} tokens end together, as one group{turning}"
    else:
        named = [f"{list_words([words[i] for i in group])}" for group in end.groups[:MOST_CLUSTERS]]
        more = "; ..." if len(end.groups) > MOST_CLUSTERS else ""
        rotating = ", and groups of two or more rotate" if end.rotates else ""
        what = f"{n} tokens end in {len(end.groups)} groups{rotating}: {'; '.join(named)}{more}"
    return (
        f"Certified {until} (grade {end.grade}, from lambda_1 t = {end.decided * rate.real:.3g}"
        f" on): {what}. {_who_leads(end, words)} Rescaled tokens are known along"
        f" {_directions(end)}, to {end.error:.1g} of the largest."
    )


def _who_leads(end: FlowEnd, words: Sequence[str]) -> str:
    if end.rotates:
        assert end.period is not None
        return (
            f"The leading eigenvalues of V are a pair, {end.rate.real:.3g} ±"
            f" {abs(end.rate.imag):.3g}i, so tokens take the lead in turn, once round in lambda_1 t"
            f" = {end.period * end.rate.real:.3g}, and none is the final leader."
        )
    known = list(dict.fromkeys(one for one in end.leaders if one is not None))
    if not known:
        return "Which token leads is open."
    named = list_words([words[i] for i in known])
    text = f"{'The leader is' if len(known) == 1 else 'The leaders are'} {named}."
    return text if None not in end.leaders else f"{text} Leaders of the other groups are open."


def _directions(end: FlowEnd) -> str:
    known = end.points.shape[1]
    if known == end.growing:
        return "the one growing direction" if known == 1 else f"all {known} growing directions"
    return f"{known} of the {end.growing} growing directions"


def second_moduli(data: xarray.Dataset) -> np.ndarray:
    """The second largest modulus among the eigenvalues of P, or of the mean of all P, (T,)."""
    return data["mean_eigenvalue"].values[:, 1]


def quote_word(word: str) -> str:
    """Return a word in quotation marks, without the blanks around it."""
    return f"'{word.strip() or word}'"


def list_words(words: Any) -> str:
    """Return words in a line, the first MOST_WORDS of them."""
    words = [str(word).strip() or repr(str(word)) for word in words]
    return ", ".join(words[:MOST_WORDS]) + (
        f", ... ({len(words)})" if len(words) > MOST_WORDS else ""
    )


def _s(count: float) -> str:
    return "" if count == 1 else "s"
