"""table: a result of `al.models` as one tidy table. The command line writes the same columns."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.models.studies.flow_findings import second_moduli
from attnlab.models.studies.flows import Flow
from attnlab.models.studies.sentences import one_sentence
from attnlab.models.studies.spectra_table import INSTALL
from attnlab.models.studies.surveys import intervals

if TYPE_CHECKING:
    import pandas
    import xarray

OF_SENTENCE = (
    "cosine",
    "cosine_low",
    "clusters",
    "rank",
    "norm",
    "distance",
    "turn",
    "entropy",
    "attention_rank",
    "leader",
)
OF_ITERATION = (
    "cosine",
    "cosine_least",
    "clusters",
    "rank",
    "norm",
    "change",
    "turning",
    "spread",
    "entropy",
    "leader",
)
OF_FLOW = ("clusters", "cosine", "cosine_low", "rank", "log_norm", "radius")
"""Variables with one number for each row of a table."""

ROUNDING = 1e-12
"""A modulus of an eigenvalue this close to 1 counts as 1."""


def table(result: Any) -> pandas.DataFrame:
    """Return a result of `al.models` as one tidy table, the one that `--csv` writes.

    The rows and columns depend on the result:

    - `sentence`: one row per variant and step. The columns are the numbers of `sentence` that have
      no axis of tokens, read_by_layer (the layer that reads the tokens of this step; missing at the
      end of the stack), and leader_word, the token that receives most of its attention. Of a list
      of sentences there are also text, the number of the sentence, and content.
    - `iterate`: one row per step, with the numbers of `iterate` and leader_word.
    - `flow`: one row per saved time. second_modulus, gap: of the eigenvalues of P, or of the mean
      over heads. attention_rank: mean over heads. leader, leader_word, leader_share: the token that
      receives most attention.
    - `survey`: the table of `intervals`.
    - `spectra`, `compare` and `intervals` return tables already. They stay as they are.

    `al.save(result, "a.csv")` and `al.save(result, "a.parquet")` write the same table.

    Parameters
    ----------
    result : Dataset, Flow or DataFrame
        What a function of `al.models` returns.

    Returns
    -------
    pandas.DataFrame
        The table.

    Raises
    ------
    TypeError
        The result has no table. The message says what to do instead.

    Examples
    --------
    >>> import attnlab as al
    >>> data = al.models.sentence(model, ids=[3, 1, 4, 1, 5], only=["real"])
    >>> table = al.models.table(data)
    >>> len(table) == model.config.layers + 1, table["leader_word"].iloc[0] in data["word"].values
    (True, True)
    """
    make = _maker(result)
    if make is None:
        raise TypeError(no_table(result))
    if find_spec("pandas") is None:
        raise ValueError(INSTALL)
    return make(result)


def has_table(result: Any) -> bool:
    """Whether `table` makes a table of this result."""
    return _maker(result) is not None


def no_table(result: Any) -> str:
    """Say that a result has no table, and what to do instead."""
    kind = _kind(result)
    if kind in ("texts", "tokens"):
        return (
            f"There is no table of the {'stream' if kind == 'texts' else 'tokens'} of several"
            " texts. al.models.survey(model, texts) measures the texts: give that."
        )
    return (
        "table reads what al.models.sentence, iterate, flow, survey, spectra or compare returns; got"
        f" {type(result).__name__}."
    )


def _kind(result: Any) -> str:
    attributes = getattr(result, "attrs", {})
    return str(attributes.get("kind", "")) if hasattr(result, "data_vars") else ""


def _maker(result: Any) -> Callable[[Any], pandas.DataFrame] | None:
    if isinstance(result, Flow):
        return _of_flow
    if hasattr(result, "columns") and hasattr(result, "attrs"):
        return lambda frame: frame
    return MAKERS.get(_kind(result))


def _of_sentence(data: xarray.Dataset) -> pandas.DataFrame:
    import pandas

    from attnlab.models.studies.tables import Table

    frame = data[list(OF_SENTENCE)].to_dataframe().reset_index().dropna(subset=["cosine"])
    is_read = np.isfinite(frame["entropy"])  # attention at a step is that of the layer that reads
    layers = frame["step"].astype("Int64")
    frame["read_by_layer"] = layers.where(is_read, pandas.NA)
    frame["leader_word"] = _words_at(data, frame["leader"])
    found = Table(frame.reset_index(drop=True))
    found.attrs = _facts(data)
    return found


def _of_sentences(data: xarray.Dataset) -> pandas.DataFrame:
    import pandas

    from attnlab.models.studies.tables import Table

    parts = []
    for number in range(data.sizes["text"]):
        one = one_sentence(data, number)
        part = _of_sentence(one)
        part.insert(0, "text", number)
        part.insert(1, "content", str(one.attrs["text"]))
        parts.append(part)
    found = Table(pandas.concat(parts, ignore_index=True))
    found.attrs = _facts(data)
    return found


def _of_iteration(data: xarray.Dataset) -> pandas.DataFrame:
    from attnlab.models.studies.tables import Table

    names = [name for name in OF_ITERATION if name in data]  # no attention where it overflows
    found = Table({"step": data["step"].values} | {name: data[name].values for name in names})
    if "leader" in found:
        found["leader_word"] = _words_at(data, found["leader"])
    found.attrs = _facts(data)
    return found


def _of_flow(flow: Flow) -> pandas.DataFrame:
    from attnlab.models.studies.tables import Table

    data = flow.data
    second = second_moduli(data)
    found = Table(
        {
            "time": data["time"].values,
            **{name: data[name].values for name in OF_FLOW},
            "second_modulus": second,
            "gap": np.where(second > 1 - ROUNDING, 0.0, 1 - second),
            "attention_rank": data["attention_rank"].values.mean(axis=1),
            "leader": data["leader"].values,
            "leader_word": data["word"].values[data["leader"].values],
            "leader_share": data["received"].values.max(axis=1),
        }
    )
    found.attrs = _facts(data)
    return found


MAKERS: dict[str, Callable[[Any], Any]] = {
    "sentence": _of_sentence,
    "sentences": _of_sentences,
    "iteration": _of_iteration,
    "survey": intervals,
}
"""{kind of Dataset: what makes its table}."""


def _words_at(data: xarray.Dataset, leaders: Any) -> list[str]:
    """Return the word of each leader; "" where there is none."""
    words = [str(one).strip() for one in data["word"].values]
    return ["" if np.isnan(leader) else words[int(leader)] for leader in leaders]


def _facts(data: xarray.Dataset) -> dict[str, Any]:
    """Return the attributes of a table: those of the data, and its own kind."""
    return {**data.attrs, "kind": f"{data.attrs.get('kind', 'flow')} table"}
