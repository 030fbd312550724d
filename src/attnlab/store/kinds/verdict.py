"""A Verdict. A list of them lies along the axis `verdict`, and the list of lists of a batch along
`member` and `verdict`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.store.packing import Arrays, Kind, Labelled, Packed, Words, kinds, number, text
from attnlab.store.plain import plain_value
from attnlab.store.trees import decode, encode, make_record
from attnlab.verdicts import Hypothesis, Outcome, Verdict

TEXTS = {
    "theorem": "name of the statement",
    "kind": "theorem, conjecture or estimate",
    "evidence": "what was measured, in words",
    "unmet": "what fails, or what would decide",
}
NUMBERS = {
    "measured": "the number that must be at most the bound",
    "bound": "the bound",
    "resolution": "smallest violation that shows",
    "error": "how far the measured number may be off",
    "run_error": "error of the run, relative to its largest token",
}


def pack(verdict: Verdict) -> Packed:
    """Everything in a verdict."""
    variables = {
        name: text(getattr(verdict, name), long_name=about) for name, about in TEXTS.items()
    }
    variables["outcome"] = text(
        verdict.outcome.name, long_name="SUPPORTED, CONTRADICTED, OUT_OF_SCOPE or UNDECIDED"
    )
    types = {}
    for name, about in NUMBERS.items():
        value = getattr(verdict, name)
        types[name] = type(value).__name__
        variables[name] = number(float(value), long_name=about, units="1")
    tree, arrays = encode(
        {"hypotheses": verdict.hypotheses, "details": dict(verdict.details)}, "verdict"
    )
    return Packed(variables | arrays, {"content": json.dumps({"tree": tree, "types": types})})


def unpack(arrays: Arrays, words: Words) -> Verdict:
    """The verdict of arrays and words."""
    content = json.loads(words["content"])
    tree = decode(content["tree"], arrays)
    values: dict[str, Any] = {name: str(arrays[name].item()) for name in TEXTS}
    for name in NUMBERS:
        if arrays[name].shape != () or arrays[name].dtype != float:
            raise ValueError(f"{name} of a verdict must be a number.")
        makers = {"float": float, "int": int, "float64": np.float64, "bool": bool}
        values[name] = makers[content["types"][name]](arrays[name].item())
    hypotheses = tree["hypotheses"]
    if not isinstance(hypotheses, tuple) or not all(
        isinstance(one, Hypothesis) for one in hypotheses
    ):
        raise ValueError("hypotheses of a verdict must be hypotheses.")
    if not isinstance(tree["details"], dict):
        raise ValueError("details of a verdict must be a table.")
    values["outcome"] = Outcome[str(arrays["outcome"].item())]
    return make_record("Verdict", {**values, "hypotheses": hypotheses, "details": tree["details"]})


def label(verdict: Verdict) -> Labelled:
    """The fields of a verdict, without hypotheses and details."""
    names = (*TEXTS, "outcome", *NUMBERS)
    return Labelled(
        {name: variable for name, variable in pack(verdict).variables.items() if name in names}
    )


def verdict_columns(verdicts: Sequence[Verdict]) -> dict[str, np.ndarray]:
    """The fields of several verdicts as columns, without hypotheses and details."""
    columns = {
        name: np.array([str(getattr(one, name)) for one in verdicts], dtype=str) for name in TEXTS
    }
    columns["outcome"] = np.array([one.outcome.name for one in verdicts], dtype=str)
    return columns | {
        name: np.array([float(getattr(one, name)) for one in verdicts], dtype=float)
        for name in NUMBERS
    }


def _samples() -> Mapping[str, Verdict]:
    hypothesis = Hypothesis("V = I", 1.0, "1", True)
    details = {
        "hull": np.arange(6.0).reshape(3, 2),
        "pair": (1, "a"),
        "each": {"x": np.float64(0.1), 3: None},
        "at": 1 + 2j,
        "names": np.array(["one", "three"]),
    }
    one = Verdict(
        "polytope",
        "theorem",
        Outcome.SUPPORTED,
        0.25,
        1.0,
        0.01,
        math.inf,
        "measured by hand",
        hypotheses=(hypothesis,),
        details=details,
        run_error=1e-9,
    )
    other = Verdict(
        "codimension",
        "conjecture",
        Outcome.UNDECIDED,
        math.nan,
        0.0,
        0.1,
        0.0,
        "nothing",
        unmet="a longer run",
    )
    return {"supported": one, "undecided": other}


kinds.register("verdict")(
    Kind(
        title="a verdict",
        is_one=lambda thing: isinstance(thing, Verdict),
        pack=pack,
        unpack=unpack,
        label=label,
        samples=_samples,
        axis="verdict",
        tabulate=lambda verdict: verdict_columns([verdict]),
        record=plain_value,
    )
)
