"""al.models.heads: a model of one layer from the matrices of its heads alone.

(The file is not heads.py because a package cannot have a submodule and a function of one name.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.checks import positive
from attnlab.models.checkpoints.files import InMemory
from attnlab.models.checkpoints.model import Model
from attnlab.models.checkpoints.reading import is_finite
from attnlab.models.checkpoints.record import (
    ANY_LENGTH,
    Attention,
    Block,
    Config,
    Layer,
    Norm,
    Parts,
)

MOST_NAME = 200


def heads(
    Q: Any,
    K: Any,
    V: Any,
    O: Any = None,  # noqa: E741  the letter of the mathematics
    *,
    scale: float | None = None,
    norm: str | None = None,
    gain: Any = None,
    causal: bool = False,
    name: str = "given heads",
    names: Sequence[str] = (),
) -> Model:
    """Return a Model of one layer with these heads, and without embedding or feed-forward part.

    `spectra`, `flow`, `sentence` and the dossier take it like every model. Its input is the stream
    x (n, d). Head h reads x_i as W_Q[h] x_i, W_K[h] x_i and W_V[h] x_i, and writes W_O[h].

    Parameters
    ----------
    Q, K : array (h, head size, d)
        The matrices of queries and keys. One head may be 2-D. Equally many heads may share each
        key and value: then K and V have fewer heads than Q.
    V : array (h, value size, d)
        The matrices of values. Without O: the maps from stream to stream, (h, d, d).
    O : array (h, d, value size), optional
        The matrices of outputs.
    scale : float, optional
        Scores are <Q x, K y> times this. The default is 1 / sqrt(head size).
    norm : str, optional
        The norm that the tokens pass before attention reads them: "layer" or "rms". The default is
        none.
    gain : array (d,), optional
        The gain of that norm. The default is 1.
    causal : bool, optional
        Whether a token sees only itself and earlier ones.
    name : str, optional
        A name for the model.
    names : sequence of str, optional
        A name for each head. `spectra` has them as a column.

    Returns
    -------
    Model
        The model.

    Examples
    --------
    >>> import attnlab as al, numpy as np
    >>> Q, K, V = np.random.default_rng(0).normal(size=(3, 2, 4, 6))    # two heads of size 4, d = 6
    >>> m = al.models.heads(Q, K, V, np.swapaxes(V, 1, 2))
    >>> m.weights(0, 1).M.shape, len(al.models.spectra(m, null=5))
    ((1, 6, 6), 2)
    """
    query, key, value = (_read(letter, one) for letter, one in zip("QKV", (Q, K, V), strict=True))
    d, count = query.shape[2], len(query)
    output = np.broadcast_to(np.eye(d), (count, d, d)) if O is None else _read("O", O)
    if O is None and value.shape[1:] != (d, d):
        raise ValueError(
            f"Without O, V must be maps from stream to stream, (h, {d}, {d}). Got"
            f" {_shape(value)}. Give O, or V with d = {d}."
        )
    sizes = {
        f"K must be (heads, {query.shape[1]}, {d}), as Q is": key.shape[1:] == query.shape[1:],
        f"V must be (heads, size, {d})": value.shape[2] == d,
        f"K and V must have equally many heads, and Q a multiple of them ({count})": len(key)
        == len(value)
        and count % len(key) == 0,
        f"O must be ({count}, {d}, {value.shape[1]}), as Q and V say": output.shape
        == (count, d, value.shape[1]),
        f"The head size must be at most d = {d}": query.shape[1] <= d,
    }
    for rule, holds in sizes.items():
        if not holds:
            raise ValueError(
                f"{rule}. Got Q {_shape(query)}, K {_shape(key)}, V {_shape(value)}, O"
                f" {_shape(output)}. Matrices act on column vectors: the width d comes last in Q, K"
                " and V, and in the middle in O. If yours act on rows, swap their last two axes."
            )
    if len(names) not in (0, count):
        raise ValueError(f"names must have one name for each of {count} heads, got {len(names)}.")
    size = query.shape[1]
    attention = Attention(
        query, key, value, output, scale=size**-0.5 if scale is None else positive("scale", scale)
    )
    config = Config(
        family="given heads",
        d=d,
        heads=count,
        kv_heads=len(key),
        head_size=size,
        layers=1,
        hidden=0,
        vocabulary=0,
        length=ANY_LENGTH,
        is_pre_norm=True,
        is_causal=bool(causal),
    )
    layer = Layer((Block(attention, norm_before=_norm_of(norm, gain, d)),))
    return Model(
        name[:MOST_NAME],
        Parts(config, None, (layer,)),
        {},
        "given matrices",
        head_names=tuple(str(one)[:MOST_NAME] for one in names),
    )


def _read(letter: str, value: Any) -> np.ndarray:
    """Return the matrices of heads (h, rows, columns), of numpy or torch."""
    array = np.asarray(InMemory({letter: value})[letter], dtype=float)
    array = array[None] if array.ndim == 2 else array
    if array.ndim != 3 or array.size == 0:
        raise ValueError(
            f"{letter} must be one matrix per head, (heads, rows, columns), or one matrix. Got shape"
            f" {array.shape}."
        )
    if not is_finite(array):
        raise ValueError(f"{letter} must hold finite numbers, but holds NaN or infinite ones.")
    return array


def _norm_of(kind: str | None, gain: Any, d: int) -> Norm | None:
    if kind not in (None, "layer", "rms"):
        raise ValueError(f'norm must be "layer", "rms" or None, got {kind!r}.')
    if kind is None and gain is not None:
        raise ValueError('gain belongs to a norm: give norm="layer" or norm="rms" too.')
    if kind is None:
        return None
    values = np.ones(d) if gain is None else np.asarray(gain, dtype=float)
    if values.shape != (d,) or not np.isfinite(values).all():
        raise ValueError(f"gain must be {d} finite numbers, (d,). Got shape {values.shape}.")
    return Norm(kind, values, None, 1e-5)


def _shape(array: np.ndarray) -> str:
    return " x ".join(map(str, array.shape))
