"""al.models.spectra: a table of the heads of a model. Each number has its quantile among random
heads.

(The file is not spectra.py because a package cannot have a submodule and a function of one name,
and the function is public.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from attnlab.displayed import VERBS, Displayed, short_repr
from attnlab.models.checkpoints.many import check_texts
from attnlab.models.checkpoints.record import Config
from attnlab.models.checkpoints.slices import check_index
from attnlab.models.checkpoints.token_norms import (
    ASSUMED,
    FROM_GAINS,
    MEASURED,
    expected_squares,
    measure_squares,
)
from attnlab.models.studies.head_numbers import HeadNumbers, head_numbers, reduce_head
from attnlab.models.studies.judgement import is_positive, is_real, is_simple, theorem_of, verdict
from attnlab.models.studies.null import STATISTICS, Null, in_parallel, null_of
from attnlab.progress import Progress, ProgressOption, as_progress, track
from attnlab.types import Weights

if TYPE_CHECKING:
    import pandas

INSTALL = "A table of heads needs pandas: pip install 'attnlab[models]'."

NUMBERS = (
    "lambda1",
    "lambda2",
    "gap",
    "condition",
    "score",
    "score_value",
    "positive",
    "negative",
    "zero",
    "positive_share",
    "effective_beta",
    "attractive",
    "repulsive",
    "rotational",
    "attractive_weight",
    "repulsive_weight",
    "rotational_weight",
    "non_normality",
    "token_norm",
)
"""The numbers of `HeadNumbers` that become columns. The quantile follows those of STATISTICS."""


class HasHeads(Protocol):
    """The part of a Model that is needed here."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def config(self) -> Config:
        """Its shape."""

    def weights(
        self, layer: int, head: int | None = None, fold_norm: bool = True, offset: int = 0
    ) -> Weights:
        """Return the matrices of a layer, or of one of its heads, with V as factors."""


@dataclass(frozen=True, eq=False)
class MeasuredHead(Displayed):
    """A head of a model, its place, and its numbers."""

    layer: int
    head: int
    weights: Weights  # of this head alone
    numbers: HeadNumbers
    norms: str = ASSUMED  # the source of numbers.token_norm
    __repr__ = short_repr
    instead = dict.fromkeys(
        VERBS,
        "al.models.spectra(model, layer, head) returns the same numbers as a table. Give that.",
    ) | {"movie": "Film a flow of the head: al.movie(al.models.flow(model, layer, head), path)."}


def spectra(
    model: HasHeads,
    layer: int | None = None,
    head: int | None = None,
    null: int = 200,
    rng: int | np.random.Generator = 0,
    fold_norm: bool = True,
    offset: int = 0,
    *,
    texts: Sequence[Any] = (),
    progress: ProgressOption = False,
) -> pandas.DataFrame:
    """Return a table with one row per head: the leading eigenvalues of its V, the theorem that
    applies, and how unusual it is.

    The rows are those of all layers, or of one. The heads of tied layers have one row each, as
    layer 0. The columns are:

    - layer, head, used_in_layers: the place of the head, and the number of layers that use it (1,
      unless layers are tied).
    - lambda1, lambda2 (complex), gap: the leading eigenvalues of V = W_O W_V, by modulus.
    - is_real, is_positive, is_simple: of lambda1. Positive means real and positive, and simple
      means alone in modulus.
    - verdict: "good triple", "positive", "negative", "complex" or "zero" (a head that writes
      nothing).
    - applies, why_not: the theorem that applies to Q, K and V, or "none" and what fails first. Only
      the matrices are judged, not other heads, norms, biases, the feed-forward part or the mask.
    - the numbers of `HeadNumbers`, which explains them. NAME_quantile is the share of Gaussian
      heads with a smaller NAME (in modulus).
    - name: the name of the head, if `heads` was given names.
    - norms: the source of token_norm and effective_beta: "from the gains" and biases of a norm,
      "measured" on texts, or "taken as sqrt(d)" for matrices without a model.

    `.attrs` has the facts of the model, and under "null_shares" the frequency of each verdict among
    Gaussian heads.

    Parameters
    ----------
    model : Model
        A model, or anything else with `config` and `weights`.
    layer, head : int, optional
        The layer and the head. The default is all of them.
    null : int, optional
        The number of Gaussian heads of the same shapes and Frobenius norms. All heads of one shape
        share them.
    rng : int or numpy.random.Generator, optional
        The seed of the Gaussian heads.
    fold_norm, offset : optional
        As in `Model.weights`.
    texts : sequence of str or of array (n,), optional
        Texts or ids on which norms are measured. Special tokens count. The layers of a tied model
        are averaged.
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel.

    Returns
    -------
    pandas.DataFrame
        The table. In files (`to_csv`, `to_parquet`) and in `describe` a complex column is two,
        lambda1_real and lambda1_imaginary; `attnlab spectra --csv` writes the same columns.

    Examples
    --------
    >>> import attnlab as al
    >>> table = al.models.spectra(model, layer=0, null=10)
    >>> len(table) == model.config.heads, table["verdict"].isin(["good triple", "positive", "negative", "complex"]).all()
    (True, np.True_)
    """
    try:
        from attnlab.models.studies.tables import Table
    except ImportError:
        raise ValueError(INSTALL) from None

    config, rows = model.config, []
    names = getattr(model, "head_names", ())
    nulls: dict[tuple[int, int, int], Null] = {}
    source = ""
    with track(progress, "heads") as progress:
        for measured in measure_heads(
            model, layer, head, fold_norm=fold_norm, offset=offset, texts=texts, progress=progress
        ):
            B, C = _factors(measured.weights)
            shape = (measured.weights.d, B.shape[1], measured.weights.Q.shape[1])
            if shape not in nulls:
                progress(progress.fraction, "random heads, for comparison")
                nulls[shape] = null_of(*shape, draws=null, rng=rng)
            row = _row(measured, nulls[shape], config.layers if config.is_tied else 1)
            rows.append(row | ({"name": names[measured.head]} if names else {}))
            source = source or measured.weights.source
    frame = Table(rows)
    frame.attrs = {
        "model": model.name,
        "family": config.family,
        "d": config.d,
        "heads": config.heads,
        "head_size": config.head_size,
        "layers": config.layers,
        "is_tied": config.is_tied,
        "is_pre_norm": config.is_pre_norm,
        "is_causal": config.is_causal,
        "source": source,
        "offset": offset,
        "null_draws": null,
        "null_shares": dict(next(iter(nulls.values())).shares),
    }
    return frame


def measure_heads(
    model: HasHeads,
    layer: int | None = None,
    head: int | None = None,
    *,
    fold_norm: bool = True,
    offset: int = 0,
    texts: Sequence[Any] = (),
    progress: Progress | None = None,
) -> Iterator[MeasuredHead]:
    """Return the numbers of each head of a model, of all layers or of one; for tied layers those of
    layer 0, once.
    """
    config = model.config
    layers = (
        list(range(config.layers))
        if layer is None
        else [check_index("layer", layer, config.layers)]
    )
    if config.is_tied:
        layers = [0]
    if head is not None:
        head = check_index("head", head, config.heads)

    squares, norms = _token_squares(model, texts, fold_norm)
    progress = as_progress(progress)
    for done, number in enumerate(layers):
        part = progress.piece(done, len(layers), f"heads of layer {number}")
        part(0.0)
        weights = model.weights(number, head, fold_norm=fold_norm, offset=offset)
        parts = [_one_head(weights, h) for h in range(weights.heads)]
        square = float(squares.mean() if config.is_tied else squares[number])
        found = in_parallel(partial(_numbers, token_square=square), parts, part)
        names = range(weights.heads) if head is None else [head]
        yield from (
            MeasuredHead(number, *of_head, norms)
            for of_head in zip(names, parts, found, strict=True)
        )


def _token_squares(model: Any, texts: Sequence[Any], fold_norm: bool) -> tuple[np.ndarray, str]:
    """Return (|x|^2 of the tokens that each layer reads (layers,), its source)."""
    texts = check_texts(texts, least=0)
    if not hasattr(model, "parts"):  # matrices alone, such as planted ones
        return np.full(model.config.layers, float(model.config.d)), ASSUMED
    if texts:
        return measure_squares(model, texts, fold_norm), MEASURED
    squares = expected_squares(model.parts, fold_norm)
    if model.parts.embedding is None and np.isnan(squares).all():  # no norm says anything
        return np.full(model.config.layers, float(model.config.d)), ASSUMED
    return squares, FROM_GAINS


def _one_head(weights: Weights, h: int) -> Weights:
    B, C = (
        weights.V
        if isinstance(weights.V, tuple)
        else (weights.V, np.broadcast_to(np.eye(weights.d), weights.V.shape))
    )
    return Weights(Q=weights.Q[h], K=weights.K[h], V=(B[h], C[h]), source=weights.source)


def _factors(weights: Weights) -> tuple[np.ndarray, np.ndarray]:
    return weights.V[0][0], weights.V[1][0]


def _numbers(weights: Weights, token_square: float) -> HeadNumbers:
    return head_numbers(reduce_head(weights.Q[0], weights.K[0], *_factors(weights), token_square))


def _row(measured: MeasuredHead, null: Null, used_in_layers: int) -> dict[str, Any]:
    numbers = measured.numbers
    applies, why_not = theorem_of(numbers, measured.weights)
    row: dict[str, Any] = {
        "layer": measured.layer,
        "head": measured.head,
        "used_in_layers": used_in_layers,
        "verdict": verdict(numbers),
        "is_real": is_real(numbers),
        "is_positive": is_positive(numbers),
        "is_simple": is_simple(numbers),
        "applies": applies,
        "why_not": why_not,
    }
    for name in NUMBERS:
        row[name] = getattr(numbers, name)
        if name in STATISTICS:
            row[f"{name}_quantile"] = null.quantile(name, numbers)
    row["norms"] = measured.norms
    return row


def leading_good_triple(model: HasHeads) -> tuple[int, int, float]:
    """Return (layer, head, eigenvalue) of the good triple of a model with the largest eigenvalue.

    Layers that share their weights count once. ValueError where the model has no good triple.
    """
    layers = range(1 if model.config.is_tied else model.config.layers)
    good = [
        (one.numbers.lambda1.real, layer, one.head)
        for layer in layers
        for one in measure_heads(model, layer)
        if verdict(one.numbers) == "good triple"
    ]
    if not good:
        raise ValueError(f"{model.name} has no good triple. Choose another model.")
    value, layer, head = max(good)
    return layer, head, float(value)
