"""survey: what every head does on many texts, and `intervals`: the same as a table, with intervals
over texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.analysis.attention import row_entropy
from attnlab.analysis.intervals import LEVEL, student_interval
from attnlab.models.checkpoints.forward import ATTENTION
from attnlab.models.checkpoints.head_names import name_head
from attnlab.models.checkpoints.many import batch_steps, batches, read_texts, token_coordinates
from attnlab.models.checkpoints.model import Model
from attnlab.models.studies.sentences import COSINE, measure_tokens
from attnlab.models.studies.spectra_table import INSTALL
from attnlab.progress import ProgressOption, track

if TYPE_CHECKING:
    import pandas
    import xarray

    from attnlab.models.checkpoints.tokens import Tokens

HEAD, LAYER, STEP = ("text", "layer", "head"), ("text", "layer"), ("text", "step")

NUMBERS: dict[str, tuple[tuple[str, ...], str]] = {
    "sink": (HEAD, "share of the attention of a head that the first token receives"),
    "special_share": (HEAD, "share that the tokens added by the model receive"),
    "entropy": (HEAD, "entropy of attention rows, 1 is uniform"),
    "leader_share": (HEAD, "share that the token with most attention receives"),
    "own_leader_share": (HEAD, "the same among the text's own tokens"),
    "leader_is_special": (HEAD, "1 where a token added by the model receives most attention"),
    "uniform_sink": (LAYER, "share of the first token if all attention were uniform"),
    "layer_leader_is_special": (LAYER, "the same as leader_is_special for the mean over heads"),
    "cosine": (STEP, "mean cosine of pairs of tokens"),
    "clusters": (STEP, "number of clusters of directions"),
    "own_clusters": (STEP, "number of clusters of the text's own tokens"),
    "rank": (STEP, "effective rank of the directions"),
}
"""The numbers of a text: their axes, and what they say. `intervals` has a row for each."""

OTHERS = {
    "received": ((*HEAD, "token"), "share of the attention of a head that each token receives"),
    "leader": (HEAD, "number of the token that receives most of it"),
    "own_leader": (HEAD, "the same among the text's own tokens"),
}

SHARES = tuple(name for name in NUMBERS if "sink" in name or "share" in name or "special" in name)
"""Numbers between 0 and 1. So are their intervals."""


def survey(
    model: Model,
    texts: Sequence[Any],
    *,
    special: bool = True,
    cosine: float = COSINE,
    progress: ProgressOption = False,
) -> xarray.Dataset:
    """Return what every head does on every text: sinks, entropies, leaders and clusters.

    All of it comes from one pass, and attention matrices are not kept. `intervals` makes a table of
    it, with means and intervals over the texts. `findings` says it in sentences, and `attnlab
    survey` prints it.

    Tokens that the model adds itself ([CLS], <s>) count, except in variables whose names begin with
    `own`. Without such tokens `special_share` is 0. Each variable says in `long_name` what it is::

        received (text, layer, head, token)              the share of attention that each token gets
        sink, special_share, entropy (text, layer, head)
        leader, leader_share, leader_is_special, own_leader, own_leader_share (text, layer, head)
        uniform_sink, layer_leader_is_special (text, layer)
        cosine, clusters, own_clusters, rank (text, step)  of the tokens; step 0 is the embedding

    Parameters
    ----------
    model : Model
        The model.
    texts : sequence of str or of array (n,)
        The texts, or the ids of their tokens: at least two tokens each. For a model without an
        embedding: arrays (n, d).
    special : bool, optional
        Whether to add the model's own tokens at the ends.
    cosine : float, optional
        Tokens whose directions have this cosine or more are in one cluster (single linkage).
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel.

    Returns
    -------
    xarray.Dataset
        The variables. Coordinates: `content` and `length` (text), `id`, `word` and `is_special`
        (text, token).

    Examples
    --------
    >>> import attnlab as al
    >>> import numpy as np
    >>> data = al.models.survey(model, [np.array([3, 1, 4, 1]), np.array([1, 5, 9])])
    >>> data["sink"].dims
    ('text', 'layer', 'head')
    >>> bool(np.allclose(data["received"].sum("token"), 1))
    True
    """
    import xarray

    if not -1 < cosine < 1:
        raise ValueError(f"cosine must be between -1 and 1, got {cosine!r}.")
    config, tokens = model.config, read_texts(model, texts, special)
    _check_lengths(tokens)
    sizes = {
        "text": len(tokens),
        "layer": config.layers,
        "head": config.heads,
        "step": config.layers + 1,
        "token": max(len(one.ids) for one in tokens),
    }
    wanted = {**OTHERS, **NUMBERS}
    found = {
        name: np.full([sizes[axis] for axis in axes], np.nan) for name, (axes, _) in wanted.items()
    }
    done = 0
    with track(progress, "texts") as progress:
        for batch in batches(model, tokens):
            for number, length, x in zip(batch.numbers, batch.lengths, batch.x, strict=True):
                _measure_step(found, number, 0, x[:length], tokens[number].is_special, cosine)
            for layer, step in enumerate(batch_steps(model, batch, (ATTENTION,))):
                window = model.parts.layers[layer].attention.window
                for row, (number, n) in enumerate(zip(batch.numbers, batch.lengths, strict=True)):
                    is_special = tokens[number].is_special
                    seen = batch.seen[row, :n, :n] & _is_near(n, window)
                    _measure_heads(
                        found, number, layer, step.attention[row, :, :n, :n], seen, is_special
                    )
                    _measure_step(found, number, layer + 1, step.x[row, :n], is_special, cosine)
                progress((done + len(batch.numbers) * (layer + 1) / config.layers) / len(tokens))
            done += len(batch.numbers)
    return xarray.Dataset(
        {
            name: (axes, found[name], {"long_name": says, "units": "1"})
            for name, (axes, says) in wanted.items()
        },
        coords=token_coordinates(tokens),
        attrs={
            "kind": "survey",
            "model": model.name,
            "family": config.family,
            "layers": config.layers,
            "heads": config.heads,
            "is_causal": int(config.is_causal),
            "special": int(special),
            "cosine_scale": cosine,
        },
    )


def _check_lengths(tokens: Sequence[Tokens]) -> None:
    for number, one in enumerate(tokens):
        if len(one.ids) < 2:
            raise ValueError(
                "A text needs at least two tokens, so that tokens can attend to each other; text"
                f" {number} has {len(one.ids)} ({', '.join(one.words)}). Leave it out."
            )


def _is_near(n: int, window: int | None) -> np.ndarray:
    """Return which tokens are within the window of each other, (n, n)."""
    places = np.arange(n)
    return np.abs(places - places[:, None]) < (n if window is None else window)


def _measure_heads(
    found: dict[str, np.ndarray],
    text: int,
    layer: int,
    attention: np.ndarray,
    seen: np.ndarray,
    is_special: np.ndarray,
) -> None:
    """Write the numbers of one layer, from its attention (h, n, n) on a text alone."""
    at, n = (text, layer), len(seen)
    received = attention.mean(axis=1)  # (h, n)
    found["received"][at][:, :n] = received
    found["sink"][at] = received[:, 0]
    found["special_share"][at] = received[:, is_special].sum(axis=1)
    found["entropy"][at] = row_entropy(attention).mean(axis=1) / np.log(seen.sum(axis=1)).mean()
    leader = received.argmax(axis=1)
    found["leader"][at], found["leader_share"][at] = leader, received.max(axis=1)
    found["leader_is_special"][at] = is_special[leader]
    own = np.flatnonzero(~is_special)
    if len(own):
        found["own_leader"][at] = own[received[:, own].argmax(axis=1)]
        found["own_leader_share"][at] = received[:, own].max(axis=1)
    found["uniform_sink"][at] = (seen[:, 0] / seen.sum(axis=1)).mean()
    found["layer_leader_is_special"][at] = is_special[received.mean(axis=0).argmax()]


def _measure_step(
    found: dict[str, np.ndarray],
    text: int,
    step: int,
    x: np.ndarray,
    is_special: np.ndarray,
    cosine: float,
) -> None:
    """Write the numbers of the tokens x (n, d) of one text after a step."""
    if not np.isfinite(x).all():
        return
    numbers = measure_tokens(x[None], cosine)
    for name in ("cosine", "clusters", "rank"):
        found[name][text, step] = numbers[name][0]
    own = x[~is_special]
    if len(own) > 1:
        numbers = measure_tokens(own[None], cosine)
    found["own_clusters"][text, step] = numbers["clusters"][0] if len(own) > 1 else len(own)


def intervals(data: xarray.Dataset, level: float = LEVEL) -> pandas.DataFrame:
    """Return a table of a survey: the mean of each number over the texts, with its interval.

    One row is one number of one head, or of one layer. The interval is Student's for the mean over
    texts like these, as if they were drawn independently. One text alone has no interval.

    Parameters
    ----------
    data : xarray.Dataset
        What `survey` returns.
    level : float, optional
        The probability that an interval contains the mean.

    Returns
    -------
    pandas.DataFrame
        The columns are number (its name), layer, head (missing where a number belongs to a whole
        layer), mean, low, high and texts (how many have it). For cosine, clusters, own_clusters and
        rank the row of a layer is about the tokens that it reads, and layer = number of layers is
        the end of the stack.

    Examples
    --------
    >>> import attnlab as al
    >>> import numpy as np
    >>> data = al.models.survey(model, [np.array([3, 1, 4, 1]), np.array([1, 5, 9])])
    >>> list(al.models.intervals(data).columns)
    ['number', 'layer', 'head', 'mean', 'low', 'high', 'texts']
    """
    try:
        import pandas

        from attnlab.models.studies.tables import Table
    except ImportError:
        raise ValueError(INSTALL) from None

    if getattr(data, "attrs", {}).get("kind") != "survey":
        raise TypeError(
            "intervals reads what al.models.survey returns; got"
            f" {getattr(data, 'attrs', {}).get('kind') or type(data).__name__}."
        )
    rows = []
    for name, (axes, _) in NUMBERS.items():
        values = data[name].values  # (texts, layers) or (texts, layers, h)
        for place in np.ndindex(values.shape[1:]):
            given = values[(slice(None), *place)]
            head = place[1] if axes == HEAD else None
            rows.append((name, place[0], head, *interval_over_texts(name, given, level)))
    frame = Table(rows, columns=["number", "layer", "head", "mean", "low", "high", "texts"])
    frame["head"] = pandas.array(frame["head"].tolist(), dtype="Int64")
    frame.attrs = {**data.attrs, "kind": "intervals", "texts": data.sizes["text"], "level": level}
    return frame


def interval_over_texts(
    name: str, values: np.ndarray, level: float
) -> tuple[float, float, float, int]:
    """Return mean, low, high and the number of texts, of a number with one value per text."""
    there = values[np.isfinite(values)]
    low, high = student_interval(there, level)
    if name in SHARES:
        low, high = (float(np.clip(end, 0.0, 1.0)) for end in (low, high))
    return float(there.mean()) if len(there) else float("nan"), low, high, len(there)


def say_survey(data: xarray.Dataset) -> list[str]:
    """Describe a survey: sinks, special tokens and clusters."""
    texts, heads, layers = data.sizes["text"], data.attrs["heads"], data.attrs["layers"]
    sink, uniform = data["sink"].values, data["uniform_sink"].values[..., None]
    mean, low, high, _ = interval_over_texts("sink", sink.mean(axis=(1, 2)), LEVEL)
    by_head = sink.mean(axis=0)
    layer, head = divmod(int(by_head.argmax()), heads)
    _, low_head, high_head, _ = interval_over_texts("sink", sink[:, layer, head], LEVEL)
    count = int((by_head > 0.5).sum())
    over = f"over {texts} text{'s' if texts != 1 else ''}"
    found = [
        f"The first token receives {mean:.0%} of the attention{_within(low, high)}, mean {over}"
        f" and all heads; uniform attention would give it {uniform.mean():.0%}.",
        f"It receives more than half in {count} of {heads * layers} heads, and most in"
        f" {name_head(layer, head)}: {by_head[layer, head]:.0%}{_within(low_head, high_head)}.",
    ]
    if data["is_special"].values.any():
        mean, low, high, _ = interval_over_texts(
            "special_share", data["special_share"].values.mean(axis=(1, 2)), LEVEL
        )
        leads = float(data["layer_leader_is_special"].values.mean())
        found.append(
            f"The tokens that the model added receive {mean:.0%}{_within(low, high)}, and one of"
            f" them leads in {leads:.0%} of the layers."
        )
    first, last = data["clusters"].values[:, 0], data["clusters"].values[:, -1]
    if np.isfinite(last).any():
        _, low, high, _ = interval_over_texts("clusters", last - first, LEVEL)
        change = float(np.nanmean(last - first))
        found.append(
            f"The tokens go from {np.nanmean(first):.1f} to {np.nanmean(last):.1f} clusters at"
            f" cosine {data.attrs['cosine_scale']:g}, a change of {change:+.1f}"
            f"{_within(low, high, '+.1f')}."
        )
    repeated = texts - len(set(_as_bytes(data)))
    if repeated:
        found.append(
            f"{repeated} of the {texts} texts repeat{'s' if repeated == 1 else ''} another one. The"
            " intervals count each text, so they are too narrow. Give each text once."
        )
    return found


def _as_bytes(data: xarray.Dataset) -> list[bytes]:
    """Return each text as bytes, equal for equal texts. A text of vectors is known by its
    attention.
    """
    ids, received = data["id"].values, data["received"].values.round(9)
    return [one.tobytes() + other.tobytes() for one, other in zip(ids, received, strict=True)]


def _within(low: float, high: float, form: str = ".0%") -> str:
    """Return " (95 %: low to high)", or nothing where there is no interval."""
    return f" (95 %: {low:{form}} to {high:{form}})" if np.isfinite(low) else ""
