"""sentence: run a text through the real stack and its variants, layer by layer, into one labelled
Dataset.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from attnlab.analysis.attention import attention_rank, effective_rank, row_entropy
from attnlab.analysis.clusters import cluster_labels
from attnlab.models.checkpoints.forward import enter, seen_by
from attnlab.models.checkpoints.many import check_text
from attnlab.models.checkpoints.model import Model, is_many
from attnlab.models.checkpoints.slices import check_index
from attnlab.models.checkpoints.tokens import Tokens, read_tokens
from attnlab.models.studies.idealised import Unfinished, start
from attnlab.models.studies.variants import TIMES_DEPTH, Options, variants
from attnlab.progress import Progress, ProgressOption, track

if TYPE_CHECKING:
    import xarray

COSINE = 0.9
"""Tokens whose directions have at least this cosine form one cluster, also through a chain of such
pairs.
"""

TITLES = {
    "real": "real stack",
    "no_mlp": "no feed-forward",
    "no_norm": "no norms",
    "attention_only": "attention only",
    "no_mask": "no mask",
    "tied": "one layer tied",
    "twin": "idealised model",
    "random": "random weights",
    "untrained": "untrained weights",
}
"""Titles of variants in tables and figures. Other variants use their names."""

COSTS = {"twin": 12.0, "tied": float(TIMES_DEPTH), "random": 3.0, "untrained": 3.0}
"""How much longer a variant takes than the real stack, roughly, for the progress bar."""


def sentence(
    model: Model,
    text: str | Sequence[Any] | None = None,
    *,
    ids: Any = None,
    special: bool = True,
    only: Sequence[str] | None = None,
    cosine: float = COSINE,
    tied_layer: int = 0,
    rng: int = 0,
    progress: ProgressOption = None,
) -> xarray.Dataset:
    """Return what each layer does to the tokens of a text, in the real stack and in its variants.

    The variables have the axes variant and step. Step 0 is the embedding, and step k is after k
    layers::

        x (.., token, coordinate)       the stream            label (.., token), clusters   groups of tokens, and their number
        cosine, cosine_low              of pairs: mean, 5 % quantile                        rank, norm   effective rank, mean
        norm distance                        |X - X_real| / |X_real| at the same step turn                            mean of 1
        - cos between a token and itself in the real stream received (.., token), leader the share
          of attention that each
        token receives, and which token gets most attends (.., token)             the token to which each one gives most
        attention, mean over heads attends_share (.., token)       the share of its attention that this token gets entropy,
        attention_rank         of rows over that of uniform ones, and numerical rank; means over
                               heads

    Attention at step k is that of layer k, which reads the tokens of step k, so the last step has
    none. Special tokens count. Values are NaN beyond the depth of a variant ("tied" has four times
    the depth of the others) and where numbers overflow. The attributes of a variable say what it
    is, `al.plot(data)` draws it, and `al.models.table(data)` is a table of it.

    Parameters
    ----------
    model : Model
        The model.
    text, ids : str, or array (n,), or list of them, optional
        A sentence, or the ids of tokens for a model without a tokenizer. A list of sentences or of
        arrays gives each variable one more axis in front, `text`. Tokens beyond the end of a
        sentence are NaN, and their words are empty. If the idealised model stops early in one of
        them, the coordinate `stopped` (text) says where, like the attribute of that name for one
        sentence.
    special : bool, optional
        Whether to add the model's own tokens ([CLS], <s>) at the ends. The attribute `special`
        keeps it.
    only : sequence of str, optional
        The names of variants. The default is all of them. "real" is always there and comes first.
    cosine : float, optional
        Tokens whose directions have this cosine or more are in one cluster (single linkage).
    tied_layer : int, optional
        The layer that the variant "tied" repeats.
    rng : int, optional
        The seed of the random weights.
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel.

    Returns
    -------
    xarray.Dataset
        The variables.

    Examples
    --------
    >>> import attnlab as al
    >>> data = al.models.sentence(model, ids=[3, 1, 4, 1, 5], only=["real"])
    >>> data.sizes["step"] == model.config.layers + 1, data.sizes["token"]
    (True, 5)
    """
    import xarray

    from attnlab.engine.threads import one_blas_thread

    if is_many(text) or is_many(ids):
        named = {"special": special, "only": only, "cosine": cosine}
        named |= {"tied_layer": tied_layer, "rng": rng}
        with track(progress, "sentences") as progress:
            return _sentences(model, text, ids, progress, named)
    tokens = read_tokens(model, cast("str | None", text), ids, special)
    names = _choose_variants(only)
    if not -1 < cosine < 1:
        raise ValueError(f"cosine must be between -1 and 1, got {cosine!r}.")
    options = Options(check_index("layer", tied_layer, model.config.layers), rng)
    x0 = enter(model.parts, tokens.given, np.float64)
    seen = seen_by(model.config, np.ones(len(tokens.ids), dtype=bool))
    found, stopped = {}, {}
    costs = np.array([COSTS.get(name, 1.0) for name in names])
    ends = np.cumsum(costs) / costs.sum()
    with (
        track(progress, "reading") as progress,
        one_blas_thread(),
    ):  # for small products threads only wait
        for name, first, last in zip(names, [0.0, *ends[:-1]], ends, strict=True):
            part = progress.part(first, last, TITLES.get(name, name))
            found[name], stopped[name] = _numbers(model, x0, seen, name, options, cosine, part)
    depth = max(len(numbers["x"]) for numbers in found.values())
    data = xarray.Dataset(
        {
            variable: (
                (("variant", "step", *axes)),
                _stack([found[name][variable] for name in names], depth),
            )
            for variable, axes in AXES.items()
        },
        coords={
            "variant": names,
            "step": np.arange(depth),
            "word": ("token", list(tokens.words)),
            "is_special": ("token", tokens.is_special.astype(np.int8)),
            "id": ("token", tokens.ids),
        },
        attrs=_attributes(model, tokens, special, cosine, options),
    )
    if any(stopped.values()):
        data.attrs["stopped"] = " ".join(filter(None, stopped.values()))
    _compare(data)
    describe(data)
    return data


def _sentences(
    model: Model, texts: Any, ids: Any, progress: Progress, options: dict[str, Any]
) -> xarray.Dataset:
    """Return the sentences of a list in one Dataset, with the axis `text` in front."""
    if texts is not None and ids is not None:
        raise ValueError("Give texts or ids, one of the two.")
    given, found = list(ids if texts is None else texts), []
    for number, one in enumerate(given):
        part = progress.piece(number, len(given), f"sentence {number + 1} of {len(given)}")
        named = {"text": one} if isinstance(one, str) else {"ids": one}
        try:
            check_text(one)
            found.append(sentence(model, **named, progress=part, **options))
        except ValueError as problem:
            if len(given) == 1:
                raise
            raise ValueError(f"Text {number} of {len(given)}, from 0: {problem}") from None
    return join_sentences(found)


def join_sentences(found: Sequence[xarray.Dataset]) -> xarray.Dataset:
    """Return one Dataset of several sentences through the same variants: values are NaN, and words
    empty, beyond the end of each.
    """
    import xarray

    lengths = [data.sizes["token"] for data in found]
    n, first = max(lengths), found[0]

    def joined(name: str, fill: Any) -> Any:
        variable = first[name]
        sizes = [n if axis == "token" else first.sizes[axis] for axis in variable.dims]
        values = np.full((len(found), *sizes), fill, dtype=np.array(fill).dtype)
        for row, data in zip(values, found, strict=True):
            place = tuple(
                slice(data.sizes["token"] if axis == "token" else None) for axis in variable.dims
            )
            row[place] = data[name].values
        return ("text", *variable.dims), values, variable.attrs

    stopped = [str(data.attrs.get("stopped", "")) for data in found]
    words = [[*map(str, data["word"].values), *[""] * (n - data.sizes["token"])] for data in found]
    attributes = {
        name: value
        for name, value in first.attrs.items()
        if name not in ("text", "unknown", "stopped")
    }
    return xarray.Dataset(
        {str(name): joined(str(name), np.nan) for name in first.data_vars},
        coords={
            "variant": first["variant"].values,
            "step": first["step"],
            "content": ("text", [str(data.attrs["text"]) for data in found]),
            "length": ("text", lengths),
            "unknown": ("text", [int(data.attrs["unknown"]) for data in found]),
            **({"stopped": ("text", stopped)} if any(stopped) else {}),
            "word": (("text", "token"), np.array(words)),
            "is_special": joined("is_special", np.int8(0)),
            "id": joined("id", np.int64(-1)),
        },
        attrs=attributes | {"kind": "sentences"},
    )


def one_sentence(data: xarray.Dataset, number: int) -> xarray.Dataset:
    """Return one of several sentences, as `sentence` returns it for one text."""
    count = data.sizes["text"]
    if not 0 <= number < count:
        raise ValueError(
            f"member must be the number of one of the texts, 0 to {count - 1}, got {number}."
        )
    one = data.isel(text=number)
    length = int(one["length"])
    named = one.isel(token=slice(length)).assign_attrs(
        kind="sentence", text=str(one["content"].values), unknown=int(one["unknown"])
    )
    if "stopped" in named.coords and (stopped := str(named["stopped"].values)):
        named.attrs["stopped"] = stopped
    return named.drop_vars(["content", "length", "unknown", "stopped"], errors="ignore")


MEANINGS = {
    "x": "tokens",
    "cosine": "mean cosine of pairs of tokens",
    "cosine_low": "5 % quantile of the cosines of pairs",
    "cosine_least": "cosine of the two tokens that differ most",
    "clusters": "number of clusters of directions",
    "label": "number of the cluster of each token",
    "rank": "effective rank of the directions",
    "norm": "mean norm of tokens",
    "received": (
        "share of all attention that a token receives in the layer that reads it, mean over heads"
    ),
    "leader": "number of the token that receives most of it, special tokens included",
    "attends": "number of the token that each token gives most attention to, mean over heads",
    "attends_share": "share of the attention of each token that goes there, mean over heads",
    "entropy": "entropy of attention rows, 1 is uniform",
    "attention_rank": "numerical rank of attention matrices, mean over heads",
    "distance": "distance from the real stream over its size",
    "turn": "mean of 1 - cosine of a token and itself in the real stack",
    "change": "how far the layer moved the tokens, over their size",
    "turning": "how far it turned their directions",
    "spread": "distance of directions from the middle of their last group, root mean square",
    "plane": "directions on the three principal axes of all steps together",
    "explained": "share of their variance that each axis shows",
    "step": "layers done",
    "point": "number of the point in which each token ends",
    "passed": "layers until the mean cosine stays above the level",
    "passed_by_all": "layers until the cosine of every pair stays above the level",
}
"""Descriptions of the variables of `sentence` and `iterate`, for readers of the file."""


def describe(data: xarray.Dataset) -> None:
    """Write a description into every variable."""
    for name in (*data.data_vars, "step"):
        data[name].attrs |= {"long_name": MEANINGS[str(name)], "units": "1"}


AXES: dict[str, tuple[str, ...]] = {
    "x": ("token", "coordinate"),
    "cosine": (),
    "cosine_low": (),
    "clusters": (),
    "label": ("token",),
    "rank": (),
    "norm": (),
    "received": ("token",),
    "leader": (),
    "attends": ("token",),
    "attends_share": ("token",),
    "entropy": (),
    "attention_rank": (),
}


def _numbers(
    model: Model,
    x0: np.ndarray,
    seen: np.ndarray,
    name: str,
    options: Options,
    cosine: float,
    progress: Progress,
) -> tuple[dict[str, np.ndarray], str]:
    """Return the variables of one variant, (steps, ...), and where it stops early, or "". The
    attention of a step is that of the next layer; the last has none.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        progress(0.0)
        done, stopped = [], ""
        try:
            for step in variants[name](model, x0, seen, options):
                done.append(step)
                progress(len(done) / (model.config.layers * (TIMES_DEPTH if name == "tied" else 1)))
        except Unfinished as problem:  # the other stacks still say something
            stopped = str(problem)
        x = np.stack(
            [_idealised_start(model, x0) if name == "twin" else x0, *(step.x for step in done)]
        )  # (steps, n, d)
        attention = (
            np.stack([step.attention for step in done])  # (layers, h, n, n)
            if done
            else np.empty((0, model.config.heads, len(x0), len(x0)))
        )
        x = np.where(np.isfinite(x).all(axis=(1, 2), keepdims=True), x, np.nan)
        numbers = measure_tokens(x, cosine)
        numbers |= measure_attention(
            attention, seen if name not in ("no_mask",) else np.ones_like(seen)
        )
    return {"x": x, **numbers}, stopped


def _idealised_start(model: Model, x0: np.ndarray) -> np.ndarray:
    y, radius = start(model, x0)
    return y * radius


def measure_tokens(x: np.ndarray, cosine: float = COSINE) -> dict[str, np.ndarray]:
    """Return the numbers of tokens x (steps, n, d), each (steps, ...): cosines, clusters, ranks and
    norms.
    """
    norms = np.linalg.norm(x, axis=-1)
    unit = x / norms[..., None]
    upper = np.triu_indices(x.shape[1], 1)
    cosines = (unit @ np.swapaxes(unit, -1, -2))[:, upper[0], upper[1]]  # (steps, pairs)
    is_there = np.isfinite(unit).all(axis=(1, 2))
    labels = np.full(x.shape[:2], np.nan)
    labels[is_there] = cluster_labels(
        unit[is_there], np.sqrt(2 - 2 * cosine)
    )  # |u - v|^2 = 2 - 2 cos
    low = np.full(len(x), np.nan)
    low[is_there] = np.quantile(cosines[is_there], 0.05, axis=1)
    return {
        "cosine": cosines.mean(axis=1),
        "cosine_low": low,
        "clusters": labels.max(axis=1) + 1,
        "label": labels,
        "rank": effective_rank(unit),
        "norm": norms.mean(axis=1),
    }


def measure_attention(attention: np.ndarray, seen: np.ndarray) -> dict[str, np.ndarray]:
    """Return the numbers of the attention (layers, h, n, n) of a stack, each (layers, ...)."""
    received = attention.mean(axis=(1, 2))  # (layers, n)
    is_there = np.isfinite(received).all(axis=1)
    leader = np.full(len(received), np.nan)
    leader[is_there] = np.argmax(received[is_there], axis=1)
    attends = np.full(received.shape, np.nan)
    attends[is_there] = np.argmax(attention[is_there].mean(axis=1), axis=-1)
    share = np.full(received.shape, np.nan)
    share[is_there] = np.max(attention[is_there].mean(axis=1), axis=-1)
    largest = np.log(seen.sum(axis=-1)).mean()  # of uniform rows
    return {
        "received": received,
        "leader": leader,
        "attends": attends,
        "attends_share": share,
        "entropy": row_entropy(attention).mean(axis=(1, 2)) / largest,
        "attention_rank": attention_rank(attention).mean(axis=1),
    }


def _stack(arrays: Sequence[np.ndarray], depth: int) -> np.ndarray:
    """Stack arrays (steps, ...) of unequal length into one (variants, depth, ...), filled with
    NaN.
    """
    result = np.full((len(arrays), depth, *arrays[0].shape[1:]), np.nan)
    for row, array in zip(result, arrays, strict=True):
        row[: len(array)] = array
    return result


def _compare(data: xarray.Dataset) -> None:
    """Add the distance of each variant from the real stream at the same step."""
    x, true = data["x"].values, data["x"].values[0]
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.linalg.norm(x - true, axis=(2, 3)) / np.linalg.norm(true, axis=(1, 2))
        angle = (x * true).sum(axis=-1) / (
            np.linalg.norm(x, axis=-1) * np.linalg.norm(true, axis=-1)
        )
    data["distance"] = (("variant", "step"), apart)
    data["turn"] = (("variant", "step"), 1 - angle.mean(axis=-1))


def _choose_variants(only: Sequence[str] | None) -> list[str]:
    """Return the names of variants in the order of their definition, "real" first."""
    for name in only or ():
        variants[name]  # raises with the nearest name
    return [name for name in variants.in_order() if only is None or name in only or name == "real"]


def _attributes(
    model: Model, tokens: Tokens, special: bool, cosine: float, options: Options
) -> dict[str, Any]:
    config = model.config
    return {
        "kind": "sentence",
        "model": model.name,
        "source": model.source,
        "family": config.family,
        "layers": config.layers,
        "heads": config.heads,
        "is_causal": int(config.is_causal),
        "is_pre_norm": int(config.is_pre_norm),
        "is_tied": int(config.is_tied),
        "text": tokens.text,
        "special": int(special),
        "unknown": tokens.unknown,
        "cosine_scale": cosine,
        "tied_layer": options.tied_layer,
        "rng": options.rng,
        "about_variants": json.dumps(
            {name: (variants[name].__doc__ or "").strip() for name in _choose_variants(None)}
        ),
    }


def token_names(data: xarray.Dataset) -> list[str]:
    """Return the words of the text in quotation marks, repeated words with their place (from 0);
    the model's own unquoted.
    """
    words = [str(word).strip() or "_" for word in data["word"].values]
    quoted = [
        word if is_special or word.startswith("#") else f"'{word}'"
        for word, is_special in zip(words, data["is_special"].values, strict=True)
    ]
    return [
        f"{one} ({number})" if quoted.count(one) > 1 else one for number, one in enumerate(quoted)
    ]


def special_words(data: xarray.Dataset, is_counted: bool) -> str:
    """Say whether the tokens that the model adds count: "[CLS] and [SEP] left out"; "" if it adds
    none.
    """
    added = dict.fromkeys(
        str(word)
        for word, is_special in zip(data["word"].values, data["is_special"].values, strict=True)
        if is_special
    )
    if not added:
        return ""
    return " and ".join(added) + (
        " left out" if not is_counted else " count" if len(added) > 1 else " counts"
    )


def name_leaders(
    data: xarray.Dataset, variant: str = "real", count: int = 3, special: bool = True
) -> list[list[str]]:
    """Return per layer the words that receive most attention, with shares. special=False leaves out
    the model's own tokens.
    """
    received = data["received"].sel(variant=variant).values
    allowed = np.flatnonzero(special | (data["is_special"].values == 0))
    words = token_names(data)
    rows = received[np.isfinite(received).all(axis=1)]
    return [
        [
            f"{words[j]} {row[j]:.0%}"
            for j in allowed[np.argsort(-row[allowed], kind="stable")][:count]
        ]
        for row in rows
    ]
