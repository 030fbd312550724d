"""A Prediction, and the Predictions of one start: a list that also says what is open."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import numpy as np

from attnlab.store.bundles import bundle, split
from attnlab.store.packing import Arrays, Kind, Labelled, Packed, Words, kinds, text
from attnlab.store.plain import plain_value
from attnlab.store.trees import decode, encode, make_record
from attnlab.verdicts import Hypothesis, Prediction, Predictions

TEXTS = {
    "theorem": "name of the statement",
    "kind": "theorem, conjecture or estimate",
    "limit": "what it says about the limit",
}
APPLIES = {True: "applies", False: "does not apply", None: "may apply"}


def pack(prediction: Prediction) -> Packed:
    """Everything in a prediction."""
    variables = {
        name: text(getattr(prediction, name), long_name=about) for name, about in TEXTS.items()
    }
    variables["applies"] = text(
        APPLIES[prediction.applies], long_name="whether its hypotheses hold"
    )
    tree, arrays = encode(
        {"hypotheses": prediction.hypotheses, "data": dict(prediction.data)}, "prediction"
    )
    return Packed(variables | arrays, {"content": json.dumps(tree)})


def unpack(arrays: Arrays, words: Words) -> Prediction:
    """The prediction of arrays and words."""
    tree = decode(json.loads(words["content"]), arrays)
    if not isinstance(tree["hypotheses"], tuple) or not all(
        isinstance(one, Hypothesis) for one in tree["hypotheses"]
    ):
        raise ValueError("hypotheses of a prediction must be hypotheses.")
    if not isinstance(tree["data"], dict):
        raise ValueError("data of a prediction must be a table.")
    applies = {word: value for value, word in APPLIES.items()}[str(arrays["applies"].item())]
    return make_record(
        "Prediction",
        {**{name: str(arrays[name].item()) for name in TEXTS}, "applies": applies, **tree},
    )


def label(prediction: Prediction) -> Labelled:
    """The fields of a prediction, without hypotheses and data."""
    return Labelled(
        {
            name: variable
            for name, variable in pack(prediction).variables.items()
            if name in (*TEXTS, "applies")
        }
    )


def tabulate(prediction: Prediction) -> dict[str, np.ndarray]:
    """One row."""
    return {
        name: np.atleast_1d(variable.values)
        for name, variable in label(prediction).variables.items()
    }


def pack_all(predictions: Predictions) -> Packed:
    """All predictions, and what is open."""
    packed = [pack(one) for one in predictions]
    variables, layout = bundle([one.variables for one in packed], "prediction")
    content = {
        "layout": layout,
        "words": [dict(one.words) for one in packed],
        "openings": list(predictions.openings),
    }
    return Packed(variables, {"content": json.dumps(content)})


def unpack_all(arrays: Arrays, words: Words) -> Predictions:
    """The predictions again."""
    content = json.loads(words["content"])
    if not all(isinstance(one, str) for one in content["openings"]):
        raise ValueError("What is open must be sentences.")
    members = zip(split(arrays, content["layout"]), content["words"], strict=True)
    return Predictions([unpack(member, one) for member, one in members], content["openings"])


def label_all(predictions: Predictions) -> Labelled:
    """The fields of all predictions along one axis."""
    variables, _ = bundle([label(one).variables for one in predictions], "prediction")
    return Labelled(variables, {"openings": "\n".join(predictions.openings)})


def tabulate_all(predictions: Predictions) -> dict[str, np.ndarray]:
    """One row per prediction."""
    return {name: variable.values for name, variable in label_all(predictions).variables.items()}


def _samples() -> Mapping[str, Prediction]:
    holds, is_open = (
        Hypothesis("V = I", 1.0, "1", True),
        Hypothesis("x0 in general position", math.nan, "", None, "no tokens"),
    )
    one = Prediction(
        "polytope",
        "theorem",
        None,
        (holds, is_open),
        "a polytope",
        {"corners": np.eye(3), "count": 4},
    )
    return {"open": one, "no": Prediction("codimension", "conjecture", False, (), "")}


def _samples_all() -> Mapping[str, Predictions]:
    return {"two": Predictions(_samples().values(), ("several heads",)), "none": Predictions([])}


kinds.register("prediction")(
    Kind(
        title="a prediction",
        is_one=lambda thing: isinstance(thing, Prediction),
        pack=pack,
        unpack=unpack,
        label=label,
        samples=_samples,
        axis="prediction",
        tabulate=tabulate,
        record=plain_value,
    )
)
kinds.register("predictions")(
    Kind(
        title="predictions",
        is_one=lambda thing: isinstance(thing, Predictions),
        pack=pack_all,
        unpack=unpack_all,
        label=label_all,
        samples=_samples_all,
        tabulate=tabulate_all,
        record=lambda predictions: [plain_value(one) for one in predictions],
    )
)
