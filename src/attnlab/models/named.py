"""The trained models that Specs name: the weights family `model` and the start law `text` find this
file by its name.

    weights = head_weights("minilm", layer=5, head=10)
    x0 = text_tokens("minilm", text="The cat sat on the mat", layer=5)

Nothing is downloaded, and nothing in a file is executed. A model is read once, and again when its
files have changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.models.catalog import catalog
from attnlab.models.catalog.hub import HUB
from attnlab.models.catalog.sources import load
from attnlab.models.checkpoints.model import Model
from attnlab.models.checkpoints.record import BadModel
from attnlab.models.checkpoints.slices import check_index
from attnlab.models.checkpoints.token_norms import entering
from attnlab.models.checkpoints.tokens import read_tokens
from attnlab.starts import as_generator, whole_number
from attnlab.types import Weights

MOST_KEPT = 2
"""The most models that are kept in memory. Most Specs name one, for the weights and for the
text.
"""


def find_model(name: Any) -> Model:
    """Return the model of this name, as `load` finds it, without a download. Raises ValueError or
    LookupError.

    name: a name of the catalog, the folder or file of a checkpoint, or hf:owner/name[@revision] if
    that is in the hub's cache.
    """
    if not isinstance(name, str) or not name.strip():
        raise ValueError(
            "A trained model must be a name that `attnlab models` lists, a folder or"
            f" hf:owner/name, got {name!r}."
        )
    try:
        return _read(name, _stamps(name))
    except OSError as problem:  # a Spec that names a missing file is a wrong Spec
        said = f"{problem.strerror}: {problem.filename}." if problem.strerror else str(problem)
        raise BadModel(f"The model {name[:80]!r} cannot be read. {said}") from None


def head_weights(
    name: Any, layer: Any, head: int | Sequence[int] | None, fold_norm: Any, d: Any = None
) -> Weights:
    """Return the matrices of heads of a layer, as `Model.weights` does. If d is given, it is
    checked.
    """
    _check_yes_or_no("fold_norm", fold_norm)
    model = find_model(name)
    _check_width(model, d)
    return model.weights(layer, head, fold_norm)


def text_tokens(
    name: Any,
    *,
    text: Any = None,
    ids: Any = None,
    layer: Any = 0,
    special: Any = True,
    fold_norm: Any = True,
    n: Any = None,
    d: Any = None,
    piece: Any = None,
    rng: Any = None,
) -> np.ndarray:
    """Return the tokens (tokens, d) that the attention of a layer reads, for a text or ids; see the
    start law `text`.
    """
    _check_yes_or_no("special", special)
    _check_yes_or_no("fold_norm", fold_norm)
    if text is not None and not isinstance(text, str):
        raise ValueError(f"text must be a sentence, got {type(text).__name__}.")
    if (text is None) == (ids is None):
        raise ValueError("The start law text needs either the key 'text' or the key 'ids'.")
    if piece is not None and n is None:
        raise ValueError(
            f"piece = {piece!r} is the number of a piece of n tokens: give n too, or leave piece"
            " out."
        )
    model = find_model(name)
    _check_width(model, d)
    number = check_index("layer", layer, model.config.layers)
    tokens = (
        read_tokens(model, text, ids, special)
        if n is None
        else read_tokens(
            model, ids=_piece(model, text, ids, special, whole_number("n", n, least=2), piece, rng)
        )
    )
    return entering(model, number, tokens.given, fold_norm)


def _piece(
    model: Model, text: str | None, ids: Any, special: bool, n: int, piece: Any, rng: Any
) -> np.ndarray:
    """Return the ids (n,) of one piece of a text; without `piece`, rng chooses it."""
    if text is not None and special:
        raise ValueError(
            f"n = {n} cuts the text into pieces of its own tokens: set special = false, or leave n"
            " out."
        )
    every = np.asarray(ids if text is None else model.tokens(text, special=False)[0])
    count = len(every) // n if every.ndim == 1 else 0
    if count == 0:
        raise ValueError(
            f"The text must have at least n = {n} tokens, but has {every.size}. Choose a smaller n."
        )
    number = (
        int(as_generator(rng).integers(count))
        if piece is None
        else whole_number("piece", piece, least=0)
    )
    if number >= count:
        raise ValueError(
            f"piece must be 0 to {count - 1}: the {len(every)} tokens make {count} pieces of {n}."
            f" Got {number}."
        )
    return every[n * number : n * (number + 1)]


def _check_width(model: Model, d: Any) -> None:
    if d is not None and whole_number("d", d) != model.config.d:
        raise ValueError(
            f"The tokens of {model.name} have d = {model.config.d}, but d = {d}. Leave d out."
        )


def _check_yes_or_no(key: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false, got {value!r}.")


@lru_cache(maxsize=MOST_KEPT)
def _read(name: str, stamps: tuple[Any, ...]) -> Model:
    """Return the model. `stamps` give a new entry in the cache if files on disk have changed."""
    del stamps
    return load(name, offline=True)


def _stamps(name: str) -> tuple[Any, ...]:
    """Return name, size and time of the files of a model on disk. Files in the hub's cache are
    named by their content.
    """
    if name.startswith(HUB):
        return ()
    path = Path(name)
    if not path.exists() and "/" not in name and "\\" not in name:
        path = Path(catalog.folder_of(name))
    files = sorted(path.iterdir()) if path.is_dir() else [path, path.with_name("tokenizer.bin")]
    found = [(file, file.stat()) for file in files if file.is_file()]
    return tuple((str(file), stat.st_size, stat.st_mtime_ns) for file, stat in found)
