"""compare: what changed in each head from one checkpoint to another of the same shape.

Matrices are compared exactly, from their factors. What heads do is compared on texts, text by text,
so that its intervals are over texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.analysis.attention import row_entropy
from attnlab.analysis.intervals import LEVEL, student_interval
from attnlab.analysis.significance import holm
from attnlab.models.checkpoints.forward import ATTENTION
from attnlab.models.checkpoints.head_names import name_head
from attnlab.models.checkpoints.many import batch_steps, batches, check_texts, read_texts
from attnlab.models.checkpoints.model import Model
from attnlab.models.studies.judgement import verdict
from attnlab.models.studies.spectra_table import INSTALL, MeasuredHead, measure_heads
from attnlab.progress import Progress, ProgressOption, track
from attnlab.types import Weights

if TYPE_CHECKING:
    import pandas

    from attnlab.models.checkpoints.tokens import Tokens

SHAPE = ("d", "heads", "kv_heads", "head_size", "layers")
"""What two models must share."""

MEASURED = ("attention_change", "sink_change", "entropy_change")
"""What is measured on texts: each has a mean over them, and an interval."""

SIGNED = ("sink_change", "entropy_change")
"""Changes that may go both ways. A head changed if one of them is not 0, tested over texts."""

ALPHA = 0.05

ROUNDING = 1e-9
"""Differences of attention and of entropy up to this are rounding, and relative ones of matrices."""

NAMED = 6
"""The most heads that a sentence names."""


def compare(
    a: Model,
    b: Model,
    *more: Model,
    texts: Sequence[Any] = (),
    special: bool = True,
    progress: ProgressOption = False,
) -> pandas.DataFrame:
    """Return a table of what changed in each head from model a to model b, and to each other one.

    The models are checkpoints of one shape, such as steps of a training. One row is one head. The
    heads of tied layers have one row each, as layer 0, unless texts are given.

    - model, layer, head: the model that is compared with a, and the place of the head.
    - value_change, score_change: |V_b - V_a| / |V_a| and the same for M, in the Frobenius norm.
    - write_overlap, read_overlap, query_overlap, key_overlap: the mean squared cosine of the
      principal angles between the two column spaces of W_O, and the row spaces of W_V, W_Q and W_K.
      It is 1 for the same space, and `chance_overlap` in the mean for unrelated ones.
    - lambda1_a, lambda1_b (complex), verdict_a, verdict_b: the leading eigenvalue of V, and what it
      is, as in `spectra`.

    With texts there are more columns, each NAME with NAME_low and NAME_high, its 95 % interval over
    the texts:

    - attention_change: half the sum of |P_b - P_a| in a row of attention, mean over rows. It is 0
      for the same attention, and 1 if no token receives attention in both models.
    - sink_change, entropy_change: how much more attention the first token receives in b, and how
      much larger the entropy of the rows is (in nats).
    - p: the smaller p of two paired t-tests over texts, of sink_change and entropy_change, after
      Holm's correction for all tests of the table. Differences up to 1e-9 in all texts are
      rounding, and count as 0. changed: whether p is below 0.05.

    V and M say which heads have other weights. Attention also changes in the layers after them,
    because these read another stream.

    Parameters
    ----------
    a, b, *more : Model
        The models: a is the one to which the others are compared.
    texts : sequence of str or of array (n,), optional
        Texts on which attention is compared, each one different. All models must cut them into the
        same ids.
    special : bool, optional
        Whether to add the models' own tokens at the ends of texts.
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel.

    Returns
    -------
    pandas.DataFrame
        The table. `al.models.findings` says it in sentences, and `al.plot` draws it.

    Examples
    --------
    >>> import attnlab as al
    >>> import numpy as np
    >>> other = model.without(heads=[(0, 1)])
    >>> table = al.models.compare(model, other, texts=[np.array([3, 1, 4]), np.array([1, 5, 9])])
    >>> table[table["value_change"] > 0][["layer", "head", "value_change"]].values.tolist()
    [[0.0, 1.0, 1.0]]
    """
    try:
        from attnlab.models.studies.tables import Table
    except ImportError:
        raise ValueError(INSTALL) from None

    others = (b, *more)
    for other in others:
        _check_shape(a, other)
    given = check_texts(texts, least=0)
    tokens = _same_tokens((a, *others), given, special) if given else []
    rows: list[dict[str, Any]] = []
    with track(progress, "texts") as progress:
        # texts take most of the time, where there are any
        end = 0.9 if tokens else 0.0
        changes = _measure_changes((a, *others), tokens, progress.part(0.0, end, "texts"))
        of_a = _heads(a, bool(tokens))
        for number, other in enumerate(others):
            progress.part(end, 1.0).piece(number, len(others), other.name)(0.0)
            of_b = _heads(other, bool(tokens))
            for place in of_a:
                if place not in of_b:
                    continue
                row = {"model": other.name, "layer": place[0], "head": place[1]}
                row |= _compare_matrices(of_a[place], of_b[place])
                if tokens:
                    row |= _over_texts(changes[(number, slice(None), slice(None), *place)])
                rows.append(row)
    if tokens:
        _judge(rows)
    frame = Table(rows)
    frame.attrs = {
        "kind": "comparison",
        "model": a.name,
        "texts": len(tokens),
        "chance_overlap": a.config.head_size / a.config.d,
        "is_tied": a.config.is_tied,
        "level": LEVEL,
        "alpha": ALPHA,
    }
    return frame


def _check_shape(a: Model, b: Model) -> None:
    """Refuse models of different shape, by name."""
    one, other = a.config, b.config
    different = [
        f"{name} = {getattr(one, name)} and {getattr(other, name)}"
        for name in SHAPE
        if getattr(one, name) != getattr(other, name)
    ]
    if different:
        raise ValueError(
            f"Models are compared head by head, so they must have one shape; {a.name} and {b.name}"
            f" have {', '.join(different)}. Compare checkpoints of one model."
        )


def _same_tokens(models: Sequence[Model], texts: Sequence[Any], special: bool) -> list[Tokens]:
    """Return the tokens of the texts, which must be the same in all models, two or more in each."""
    found = [read_texts(model, texts, special) for model in models]
    for number, of_text in enumerate(zip(*found, strict=True)):
        for model, tokens in zip(models, of_text, strict=True):
            if not np.array_equal(tokens.given, of_text[0].given):
                raise ValueError(
                    f"All models must cut a text into the same ids; {models[0].name} and"
                    f" {model.name} cut text {number} differently. Give arrays of ids."
                )
        if len(of_text[0].ids) < 2:
            raise ValueError(
                "A text needs at least two tokens, so that tokens can attend to each other; text"
                f" {number} has {len(of_text[0].ids)}. Leave it out."
            )
    _check_different(found[0])
    return found[0]


def _check_different(texts: Sequence[Tokens]) -> None:
    """Refuse a text that is given twice: the intervals and tests take texts as independent."""
    first: dict[bytes, int] = {}
    for number, one in enumerate(texts):
        before = first.setdefault(np.asarray(one.given).tobytes(), number)
        if before != number:
            raise ValueError(
                "Texts must differ, because the intervals and tests take them as independent; text"
                f" {number} repeats text {before}. Leave it out."
            )


def _heads(model: Model, is_every: bool) -> dict[tuple[int, int], MeasuredHead]:
    """Return the numbers of each head by its place; is_every: also for each of tied layers."""
    found = {(one.layer, one.head): one for one in measure_heads(model)}
    if model.config.is_tied and is_every:
        layers = range(model.config.layers)
        return {(layer, head): one for layer in layers for (_, head), one in found.items()}
    return found


def _compare_matrices(a: MeasuredHead, b: MeasuredHead) -> dict[str, Any]:
    """Return what changed in V and M of one head."""
    (B1, C1), (B2, C2) = _factors(a.weights), _factors(b.weights)
    Q1, K1, Q2, K2 = (
        np.asarray(matrix[0]) for matrix in (a.weights.Q, a.weights.K, b.weights.Q, b.weights.K)
    )
    return {
        "value_change": _change(B1, C1, B2, C2),
        "score_change": _change(Q1.T, K1, Q2.T, K2),
        "write_overlap": _overlap(B1, B2),
        "read_overlap": _overlap(C1.T, C2.T),
        "query_overlap": _overlap(Q1.T, Q2.T),
        "key_overlap": _overlap(K1.T, K2.T),
        "lambda1_a": a.numbers.lambda1,
        "lambda1_b": b.numbers.lambda1,
        "verdict_a": verdict(a.numbers),
        "verdict_b": verdict(b.numbers),
    }


def _factors(weights: Weights) -> tuple[np.ndarray, np.ndarray]:
    return weights.V[0][0], weights.V[1][0]


def _change(B1: np.ndarray, C1: np.ndarray, B2: np.ndarray, C2: np.ndarray) -> float:
    """|B2 C2 - B1 C1| / |B1 C1|, B (d, r) and C (r, d): no d x d matrix is formed."""
    if np.array_equal(B1, B2) and np.array_equal(C1, C2):
        return 0.0  # to the last bit
    size = _product_norm(B1, C1)
    difference = _product_norm(np.hstack([B2, -B1]), np.vstack([C2, C1]))
    return difference / size if size > 0 else float("nan")


def _product_norm(B: np.ndarray, C: np.ndarray) -> float:
    """|B C| from the triangles of B and C^T."""
    R, S = (np.asarray(np.linalg.qr(matrix, mode="r")) for matrix in (B, C.T))
    return float(np.linalg.norm(R @ S.T))


def _overlap(one: np.ndarray, other: np.ndarray) -> float:
    """Return the mean squared cosine of the principal angles between two column spaces (d, r); NaN
    if one of them is 0.
    """
    if not (one.any() and other.any()):
        return float("nan")
    U, W = np.linalg.qr(one)[0], np.linalg.qr(other)[0]
    return float(np.square(np.linalg.norm(U.T @ W)) / min(U.shape[1], W.shape[1]))


def _measure_changes(
    models: Sequence[Model], tokens: Sequence[Tokens], progress: Progress
) -> np.ndarray:
    """Return what MEASURED names, from the first model to each other one, on every text: (other
    models, 3, texts, layers, h).

    The models go through a batch of texts side by side, layer by layer. So no attention matrix is
    kept longer than its layer.
    """
    config = models[0].config
    shape = (len(models) - 1, len(MEASURED), len(tokens), config.layers, config.heads)
    found, done = np.empty(shape), 0
    for group in zip(*(batches(model, tokens) for model in models), strict=True) if tokens else ():
        stacks = (
            batch_steps(model, batch, (ATTENTION,))
            for model, batch in zip(models, group, strict=True)
        )
        first = group[0]
        for layer, (before, *after) in enumerate(zip(*stacks, strict=True)):
            for row, (number, n) in enumerate(zip(first.numbers, first.lengths, strict=True)):
                P = before.attention[row, :, :n, :n]
                for place, step in zip(found, after, strict=True):
                    place[:, number, layer] = _change_of(P, step.attention[row, :, :n, :n])
            progress((done + len(first.numbers) * (layer + 1) / config.layers) / len(tokens))
        done += len(first.numbers)
    return found


def _change_of(P: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return what MEASURED names of each head (h,), from attention P to Q (h, n, n)."""
    difference = Q - P
    return (
        np.abs(difference).sum(axis=-1).mean(axis=-1) / 2,
        difference[..., 0].mean(axis=-1),
        row_entropy(Q).mean(axis=-1) - row_entropy(P).mean(axis=-1),
    )


def _over_texts(changes: np.ndarray) -> dict[str, Any]:
    """Return the changes (3, texts) of one head with intervals over texts, and the p of the signed
    ones.
    """
    row: dict[str, Any] = {}
    for name, given in zip(MEASURED, changes, strict=True):
        row[name] = float(given.mean())
        low, high = student_interval(given)
        if name not in SIGNED:
            low, high = (float(np.clip(end, 0.0, 1.0)) for end in (low, high))
        row[f"{name}_low"], row[f"{name}_high"] = low, high
    row["p"] = [_paired_p(changes[MEASURED.index(name)]) for name in SIGNED]
    return row


def _paired_p(differences: np.ndarray) -> float:
    """Return the two-sided p of a mean of 0: a t-test, NaN for fewer than two texts. Differences
    of the size of rounding are none.
    """
    from scipy.special import stdtr

    m = len(differences)
    if m < 2:
        return float("nan")
    if np.abs(differences).max() <= ROUNDING:
        return 1.0
    spread = float(differences.std(ddof=1))
    if spread == 0:
        return 0.0
    return float(2 * stdtr(m - 1, -abs(differences.mean()) / spread * np.sqrt(m)))


def _judge(rows: list[dict[str, Any]]) -> None:
    """Correct the p of all rows for their number, and say which heads changed."""
    each = np.array([p for row in rows for p in row["p"]])
    there = np.isfinite(each)
    each[there] = holm(each[there])
    for row, ps in zip(rows, each.reshape(len(rows), len(SIGNED)), strict=True):
        row["p"] = float(ps.min())
        row["changed"] = bool(row["p"] < ALPHA)


def say_comparison(frame: pandas.DataFrame) -> list[str]:
    """Describe a comparison: how much V and M changed, which heads attend differently, and which
    have another verdict.
    """
    facts, found = frame.attrs, []
    for name, part in each_model(frame):
        found.append(
            f"From {facts['model']} to {name}: V changed by {part['value_change'].median():.0%} and"
            f" M by {part['score_change'].median():.0%} in the median of {len(part)} heads."
        )
        found.append(_say_which(part))
        found += _say_most(part, facts["chance_overlap"])
        moved = part[part["verdict_a"] != part["verdict_b"]]
        found.append(f"{len(moved)} of {len(part)} heads have another kind of leading eigenvalue.")
        if facts["texts"]:
            found.append(_say_attention(part, facts["texts"]))
    return found


def each_model(frame: pandas.DataFrame) -> list[tuple[str, pandas.DataFrame]]:
    """Return the name and the rows of each model of a comparison. Models of one name stay apart:
    the second is called NAME (2).
    """
    place = ["model", "layer", "head"]
    number = frame.groupby(place, sort=False).cumcount().rename("number")
    return [
        (f"{name} ({again + 1})" if again else str(name), part)
        for (name, again), part in frame.groupby([frame["model"], number], sort=False)
    ]


def most_changed(part: pandas.DataFrame, count: int) -> pandas.DataFrame:
    """Return the rows of the heads that changed most, the first one most: by attention if there are
    texts, else by V and M. NaN is the largest change: V or M was 0.
    """
    names = ["attention_change"] if "attention_change" in part else ["value_change", "score_change"]
    change = part[names].fillna(np.inf).max(axis=1)
    return part.loc[change.sort_values(ascending=False, kind="stable").index[:count]]


def has_other_matrices(part: pandas.DataFrame) -> pandas.Series:
    """Return in which heads V or M changed by more than rounding. NaN is a change: V or M was 0."""
    return ~((part["value_change"] <= ROUNDING) & (part["score_change"] <= ROUNDING))


def _say_which(part: pandas.DataFrame) -> str:
    """Say which heads have another V or M."""
    other = part[has_other_matrices(part)]
    if len(other):
        return f"V or M changed in {len(other)} of {len(part)} heads{_names(other)}."
    same = "V and M are the same in all heads"
    if "attention_change" in part and part["attention_change"].max() > ROUNDING:
        return (
            f"{same}. So biases, norms, feed-forward parts or the embedding changed, because the"
            " attention is not the same."
        )
    return f"{same}."


def _names(heads: pandas.DataFrame) -> str:
    """Return ": L0H1, L2H0" for a few heads, and nothing for none or many."""
    if not 0 < len(heads) <= NAMED:
        return ""
    return ": " + ", ".join(
        name_head(layer, head) for layer, head in zip(heads["layer"], heads["head"], strict=True)
    )


def _say_most(part: pandas.DataFrame, chance: float) -> list[str]:
    """Say in which head V changed most, and in which M."""
    found = []
    for letter, name, does, space in (
        ("V", "value_change", "writes", "write_overlap"),
        ("M", "score_change", "reads for queries", "query_overlap"),
    ):
        most = part.loc[part[name].fillna(-1.0).idxmax()]
        if not most[name] > ROUNDING:
            continue
        overlap = (
            f"The spaces that it {does} overlap by {most[space]:.2f} (chance: {chance:.2f})."
            if np.isfinite(most[space])
            else f"In one of the two it {does.split()[0]} nothing."
        )
        found.append(
            f"{letter} changed most in {name_head(most['layer'], most['head'])}: {most[name]:.0%}."
            f" {overlap}"
        )
    return found


def _say_attention(part: pandas.DataFrame, texts: int) -> str:
    """Say how many heads attend differently, and which one most."""
    most = part.loc[part["attention_change"].idxmax()]
    low, high = most["attention_change_low"], most["attention_change_high"]
    within = f" (95 %: {low:.0%} to {high:.0%})" if np.isfinite(low) else ""
    tested = (
        f"{int(part['changed'].sum())} of {len(part)} heads give the first token another share, or"
        f" have another entropy, over {texts} texts (Holm, 5 %){_names(part[part['changed']])}."
        if texts > 1
        else "One text tests nothing: give more."
    )
    if not most["attention_change"] > ROUNDING:
        return f"{tested} The attention is the same in all heads."
    return (
        f"{tested} Attention moved most in {name_head(most['layer'], most['head'])}:"
        f" {most['attention_change']:.0%}{within}."
    )
