"""A key of a config.json that changes what the original computes is computed here too, or it is
refused and named.

Every key of the config of every model_type gets other plausible values, and so does every key that
the original's code reads. The weights stay where their shapes permit.
"""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
import pytest

import attnlab as al

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from changed_keys import changed, config_of, keys_of, other_values  # noqa: E402
from checkpoints import CHECKPOINTS  # noqa: E402
from double import in_double  # noqa: E402
from test_parity import inputs, original, worst  # noqa: E402

pytestmark = pytest.mark.parity

MODELS = {CHECKPOINTS[name][0]: name for name in reversed(CHECKPOINTS)}
"""The first checkpoint of each class of transformers."""

MORE = [
    "gemma2 without cap",
    "phi normed",
    "phi3 narrow",
    "opt post-norm",
    "esm1",
    "modernbert biases",
    "bloom normed",
]
"""Further ones, whose keys meet other parts of the code."""


def test_every_model_type_is_tried():
    tried = {config_of(name)[1]["model_type"] for name in MODELS.values()}
    types = {kind for name in al.models.families for kind in al.models.families[name].model_types}
    assert types - tried == {"hooked_transformer", "torch_encoder"}  # those of other libraries


def states_of(model: Any, given: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The hidden states of the original; "esm" drops the tokens with id 7."""
    return original(model, given, mask)[0]


def distance(ours: np.ndarray, theirs: np.ndarray, mask: np.ndarray) -> float:
    if ours.shape != theirs.shape:
        return float("inf")
    pairs = [(slice(text, text + 1), slice(None), slice(n)) for text, n in enumerate(mask.sum(1))]
    return max(worst(ours[pair], theirs[pair]) for pair in pairs)


def names_it(message: str, key: str, value: Any) -> bool:
    """Whether a refusal names the key, or one inside it."""
    inner = [str(one) for one in value] if isinstance(value, dict) else []
    return any(name in message for name in (key, *inner))


def verdict(key: str, value: Any, kind: str, raw: dict[str, Any], base: Any) -> str:
    """One of: nothing (the original ignores or refuses it), followed, refused; or what is wrong."""
    model, given, mask, before = base
    new = {**raw, key: value}
    try:
        with in_double():
            other = changed(kind, new, dict(model.named_parameters()))
            if other.main_input_name != "input_ids":  # the key may change their number
                given, mask = inputs(other)
            theirs = states_of(other, given, mask)
    except Exception:  # whatever the original raises: it does not compute this value
        return "nothing"
    moved = distance(theirs, before, mask)
    try:
        ours = al.models.load(other.state_dict(), config=new)
        states = ours.hidden_states(
            given if ours.parts.embedding is not None else theirs[:, 0], mask
        )
    except al.models.BadModel as error:
        if moved < 1e-12 or names_it(str(error), key, value):
            return "refused"
        return f"{key} = {value!r} is refused without its name: {error}"
    except ValueError as error:  # a text that is longer than the model has places for
        return "refused" if "places" in str(error) else f"{key} = {value!r}: {error}"
    off = distance(states, theirs, mask)
    if not off < 1e-10:
        return f"{key} = {value!r} instead of {raw.get(key)!r}: wrong by {off:.1e}, the original moves by {moved:.1e}"
    return "followed" if moved > 1e-12 else "nothing"


@pytest.mark.parametrize("name", [*sorted(MODELS.values()), *MORE])
def test_a_changed_key_is_followed_or_refused(name, capsys):
    logging.disable(logging.CRITICAL)
    found: list[str] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with in_double():
                kind, raw = config_of(name)
                model = changed(kind, raw)
                given, mask = inputs(model)
                if given.ndim == 2:
                    given[1, [2, 3, 6]] = 7  # the mask of ESM
                base = (model, given, mask, states_of(model, given, mask))
            aliases = model.config.attribute_map
            for key in keys_of(kind, raw):
                old = raw.get(key, raw.get(aliases.get(key, "")))
                for value in other_values(key, old, model.config.num_hidden_layers):
                    if value != old or type(value) is not type(old):
                        found.append(verdict(key, value, kind, raw, base))
    finally:
        logging.disable(logging.NOTSET)
    counts = {word: found.count(word) for word in ("followed", "refused", "nothing")}
    with capsys.disabled():
        print(f"\n  {name}: {counts}", end="")
    assert not [one for one in found if one not in counts]
    assert counts["followed"] > 5 and len(found) > 50


@pytest.mark.parametrize(
    "name, key, value",
    [("llama", "rms_norm_eps", 0.3), ("bert", "hidden_act", "relu"), ("t5", "d_kv", 6)],
)
def test_a_key_that_nobody_reads_is_found(name, key, value, monkeypatch):
    """A reader that drops a key is wrong, or refuses without a name: else the test could not fail."""
    load = al.models.load
    with in_double():
        kind, raw = config_of(name)
        model = changed(kind, raw)
        given, mask = inputs(model)
        base = (model, given, mask, states_of(model, given, mask))
    assert verdict(key, value, kind, raw, base) == "followed"
    monkeypatch.setattr(
        al.models, "load", lambda state, config: load(state, config={**config, key: raw[key]})
    )
    found = verdict(key, value, kind, raw, base)
    assert "wrong by" in found or "refused without its name" in found
