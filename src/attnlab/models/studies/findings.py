"""findings: the results of `sentence`, `iterate`, `flow`, `spectra`, `survey`, `compare` and
`dossier` in sentences.

for line in al.models.findings(al.models.sentence(model, "The cat sat on the mat.")):
    print(line)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.models.studies.comparisons import say_comparison
from attnlab.models.studies.dossier import Dossier
from attnlab.models.studies.dossier_findings import say_dossier
from attnlab.models.studies.flow_findings import say_flow
from attnlab.models.studies.flows import Flow
from attnlab.models.studies.sentences import (
    TITLES,
    name_leaders,
    one_sentence,
    special_words,
)
from attnlab.models.studies.shares import summary
from attnlab.models.studies.surveys import say_survey

if TYPE_CHECKING:
    import xarray


INSTEAD = {
    "intervals": "the table of a survey. Give the survey: findings(data) instead of"
    " findings(al.models.intervals(data)).",
    "table": "a table of it. Give the result itself: findings(data) instead of"
    " findings(al.models.table(data)).",
    "texts": "the stream of several texts. Give al.models.survey(model, texts).",
    "tokens": "the tokens of several texts. Give al.models.survey(model, texts).",
}
"""{last word of a kind of result without findings: what it is, and what to give}."""


def findings(data: Any) -> list[str]:
    """Describe a result of al.models in sentences. `attnlab sentence` and `attnlab flow` print the
    same ones.

    Parameters
    ----------
    data : xarray.Dataset, Flow, pandas.DataFrame or Dossier
        The result of `sentence`, `iterate`, `flow`, `spectra`, `survey`, `compare` or `dossier`.

    Returns
    -------
    list of str
        The sentences.

    Examples
    --------
    >>> import attnlab as al
    >>> len(al.models.findings(al.models.iterate(model, ids=[3, 1, 4], times=5)))
    1
    """
    if isinstance(data, Flow):
        return say_flow(data)
    if isinstance(data, Dossier):
        return say_dossier(data)
    facts = getattr(data, "attrs", {})
    if facts.get("kind") == "sentence":
        return say_sentence(data)
    if facts.get("kind") == "iteration":
        return [str(facts["answer"])]
    if facts.get("kind") == "sentences":
        return [
            f"Text {number}: {line}"
            for number in range(data.sizes["text"])
            for line in say_sentence(one_sentence(data, number))
        ]
    if facts.get("kind") == "survey" and hasattr(data, "data_vars"):
        return say_survey(data)
    if facts.get("kind") == "comparison":
        return say_comparison(data)
    if "null_shares" in facts:
        return [summary(data)]
    instead = INSTEAD.get(str(facts.get("kind", "")).split(" ")[-1])
    if instead:
        raise TypeError(f"findings reads what a study returns, and not {instead}")
    raise TypeError(
        "findings reads what al.models.sentence, iterate, flow, spectra, survey or compare returns;"
        " got"
        f" {type(data).__name__}."
    )


def say_sentence(data: xarray.Dataset) -> list[str]:
    """Describe the result of `sentence`: the real stack, the nulls, the idealised model, and which
    tokens lead.
    """
    facts, last, n = data.attrs, data.attrs["layers"], data.sizes["token"]

    def at(variant: str, name: str, step: int = last) -> float:
        return float(data[name].sel(variant=variant).values[step])

    def state(variant: str) -> str:
        count = at(variant, "clusters")
        return (
            f"mean cosine {at(variant, 'cosine'):.2f}, {count:.0f}"
            f" cluster{'s' if count != 1 else ''}"
            if np.isfinite(count)
            else "numbers that overflow"
        )

    there = list(map(str, data["variant"].values))
    before, after = at("real", "clusters", 0), at("real", "clusters")
    verdict = (
        "nothing can be said about groups"
        if not np.isfinite(after)
        else "they become one cluster"
        if after == 1 < before
        else (
            "they stay one cluster"
            if after == 1
            else (
                "some of them join"
                if after < before
                else "some groups split"
                if after > before
                else "no groups join"
            )
        )
    )
    found = [
        f"The real stack takes {n} tokens from mean cosine {at('real', 'cosine', 0):.2f}, "
        f"{at('real', 'clusters', 0):.0f} clusters, to {state('real')}: {verdict}."
    ]
    if "random" in there:
        found.append(f"Random weights of the trained sizes end with {state('random')}.")
    if "untrained" in there:
        found.append(f"Untrained weights end with {state('untrained')}.")
    if facts.get("stopped"):
        found.append(f"{facts['stopped']} So it has no numbers from there on.")
    elif "twin" in there:
        beside = f" (random weights: {at('random', 'turn'):.2f})" if "random" in there else ""
        found.append(
            f"The idealised model ends with {state('twin')}, turned by {at('twin', 'turn'):.2f}"
            f" from the real tokens{beside}."
        )
    compared = [
        name
        for name, step in ends_of(data)
        if step == last and name not in ("real", "random", "untrained")
    ]
    others = {name: at(name, "turn") for name in compared}
    others = {name: turn for name, turn in others.items() if np.isfinite(turn)}
    if len(others) > 1 and min(others.values()) < max(others.values()):
        nearest, farthest = (
            min(others, key=lambda name: others[name]),
            max(others, key=lambda name: others[name]),
        )
        found.append(
            f"Nearest to the real stack: {TITLES.get(nearest, nearest)} (turn"
            f" {others[nearest]:.2f}); farthest: {TITLES.get(farthest, farthest)}"
            f" ({others[farthest]:.2f})."
        )
    leader = [row[0].rsplit(" ", 1)[0] for row in name_leaders(data, count=1)]
    if leader:
        counted = special_words(data, is_counted=True)
        found.append(f"{_most(leader)}{f' ({counted})' if counted else ''}{_own_leader(data)}.")
    if facts["unknown"]:
        found.insert(
            0,
            f"{facts['unknown']} of {n} tokens are characters or words that the tokenizer does not"
            " know: it reads them all alike.",
        )
    return found


def _most(leaders: list[str]) -> str:
    """Say which of the leaders, one per layer, leads most often; none if each leads once."""
    first = max(dict.fromkeys(leaders), key=leaders.count)
    if leaders.count(first) == 1 < len(leaders):
        return "no token leads in more than one layer"
    return f"{first} leads in {leaders.count(first)} of {len(leaders)} layers"


def _own_leader(data: xarray.Dataset) -> str:
    """Say which token of the text itself leads, if the model added other tokens."""
    if not data["is_special"].values.any():
        return ""
    own = [row[0].rsplit(" ", 1)[0] for row in name_leaders(data, count=1, special=False) if row]
    return f"; among the text's own tokens {_most(own)}" if own else ""


def ends_of(data: xarray.Dataset) -> list[tuple[str, int]]:
    """Return each variant with the step at which it is read: the end of the real stack; a tied
    layer also at its own end.
    """
    last = data.attrs["layers"]
    found = []
    for name in map(str, data["variant"].values):
        if name == "no_mask" and not data.attrs["is_causal"]:
            continue  # the model has no mask
        if not (name == "tied" and data.attrs["is_tied"]):
            found.append((name, last))
        if name == "tied":
            found.append((name, data.sizes["step"] - 1))
    return found
