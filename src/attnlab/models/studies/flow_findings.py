"""Describe a flow in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

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
    if limit.count is None:
        return f"As t goes to infinity: {limit.reason}"
    groups = [np.flatnonzero(limit.labels == label) for label in range(limit.count)]
    leaders = sorted({int(one) for one in limit.leaders if one >= 0})
    parts = [
        list_words([found.words[i] for i in group])
        for group in sorted(groups, key=lambda group: -len(group))
    ]
    led = f"; leaders: {list_words([found.words[i] for i in leaders])}" if leaders else ""
    more = "; ..." if len(parts) > MOST_CLUSTERS else ""
    when = (
        "as t goes to infinity"
        if limit.horizon is None
        else f"up to t = {limit.horizon:.4g}, a horizon"
    )
    turns = (
        " No leader is the last: they rotate."
        if "rotating" in str(limit.stats.get("kind", ""))
        else ""
    )
    known, grows = limit.basis.shape[1], int(limit.stats.get("growing", limit.basis.shape[1]))
    directions = (
        f"the {grows} growing directions"
        if known == grows
        else f"{known} of the {grows} growing directions"
    )
    return (
        f"Certified ({limit.grade}): {when}, {limit.count} limit{_s(limit.count)} of the rescaled"
        f" tokens in {directions}: {'; '.join(parts[:MOST_CLUSTERS])}{more}{led}.{turns}"
    )


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
