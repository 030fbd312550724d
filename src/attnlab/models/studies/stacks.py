"""Sentences through the real stack, the idealised model and several stacks that learned nothing, as
the tables that `grades` judges.

    one = read_stacks(model, [{"text": "The cat sat."}, {"text": "Dogs bark."}])
    for question, answer in zip(QUESTIONS, answers_of(one)): print(question, answer)

Each null has STACKS stacks. With fewer than six "better than all of them" would be a coin flip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.models.checkpoints.model import Model
from attnlab.models.studies.agreement import (
    agree_by_chance,
    compare_embedding,
    compare_stacks,
    groups,
    word_leaders,
)
from attnlab.models.studies.grades import NULLS, Stacks
from attnlab.models.studies.sentences import sentence
from attnlab.models.studies.variants import learned_nothing
from attnlab.progress import ProgressOption, track

if TYPE_CHECKING:
    import xarray

STACKS = 6
"""Stacks of each null."""

NULLS_SHARE = 0.6
"""The share of the nulls in the work, roughly, for the progress bar."""


def read_stacks(
    model: Model,
    readings: Sequence[Mapping[str, Any]],
    *,
    known: Sequence[xarray.Dataset] = (),
    rng: int = 0,
    progress: ProgressOption = False,
) -> Stacks:
    """Return the Stacks of some sentences in one model.

    readings: the arguments of `sentence` for each one. known: what `sentence` returned for them, if
    it was called before, with the variants "real" and "twin". rng: the seed of the first stack of
    each null; the others have the seeds after it. progress: False, True (a bar), a function
    f(fraction, doing), or an al.Progress, which can also cancel.
    """
    rows, curves, places, layers = [], [], [], model.config.layers
    with track(progress, "the idealised model") as progress:
        found = list(known)
        for number, reading in enumerate(readings[len(found) :], len(found)):
            part = progress.part(0.0, 1 - NULLS_SHARE).piece(number, len(readings), "sentences")
            found.append(sentence(model, **reading, only=["twin"], progress=part))
        true = [data.isel(variant=0) for data in found]
        for number, (data, real) in enumerate(zip(found, true, strict=True)):
            at = {"sentence_number": number}
            rows.append(
                {**at, "variant": "embedding", "seed": 0, **compare_embedding(real, layers)}
            )
            for variant in map(str, data["variant"].values):
                if variant not in NULLS:
                    part_of = data.sel(variant=variant)
                    more = stack_rows(part_of, real, layers, {**at, "variant": variant, "seed": 0})
                    rows.append(more[0])
                    curves += more[1]
            places.append({**at, **places_of(real, layers)})
        inner = progress.part(1 - NULLS_SHARE, 1.0)
        for number, (null, seed) in enumerate((null, k) for null in NULLS for k in range(STACKS)):
            inner(number / (len(NULLS) * STACKS), "stacks that learned nothing")
            stack = learned_nothing(model, null, rng + seed)
            for at_number, (reading, real) in enumerate(zip(readings, true, strict=True)):
                place = {"sentence_number": at_number, "variant": null, "seed": seed}
                part_of = sentence(stack, **reading, only=["real"]).isel(variant=0)
                more = stack_rows(part_of, real, layers, place)
                rows.append(more[0])
                curves += more[1]
    return as_stacks(rows, curves, guesses(places))


def as_stacks(rows: Sequence[Any], curves: Sequence[Any], chance: Sequence[Any]) -> Stacks:
    """Return the Stacks of rows."""
    import pandas

    return Stacks(*(pandas.DataFrame(list(table)) for table in (rows, curves, chance)))


def stack_rows(
    one: Any, real: Any, layers: int, place: Mapping[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return (the row, the curve) of a sentence in one stack, beside the real one. place: the keys
    that each row begins with.
    """
    curve = [{**place, **point} for point in curve_of(one, layers)]
    return {**place, **compare_stacks(one, real, layers)}, curve


def curve_of(one: Any, layers: int) -> list[dict[str, Any]]:
    """Return mean cosine and effective rank over tokens, step by step, to the depth of the model."""
    cosine, rank = one["cosine"].values, one["rank"].values / one.sizes["token"]
    return [
        {"step": step, "cosine": float(cosine[step]), "rank": float(rank[step])}
        for step in range(layers + 1)
    ]


def places_of(real: Any, layers: int) -> dict[str, Any]:
    """Return what a guess knows of a sentence in the real stack: who leads where, and its groups."""
    own = int((1 - real["is_special"].values).sum())
    return {
        "n": real.sizes["token"],
        "leader": real["leader"].values[:layers].astype(int).tolist(),
        "word_leader": word_leaders(real, layers).tolist(),
        "blind": 1 / own if own else np.nan,
        "labels": groups(real["x"].values[layers]).tolist(),
    }


def guesses(places: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what a guess reaches in each sentence. A single sentence, or a single layer, leaves a
    blind guess.
    """
    if len(places) > 1 and len(places[0]["leader"]) > 1:
        found = agree_by_chance(places)
    else:
        found = [{"leader": 1 / row["n"], "word_leader": row["blind"]} for row in places]
    return [
        {"sentence_number": row["sentence_number"], "blind": row["blind"], **chance}
        for row, chance in zip(places, found, strict=True)
    ]
