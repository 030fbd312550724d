"""Trained heads and sentences as views of a page: the flow of a head in continuous time, and stacks
layer by layer.

A page with several views has a button for each. Stacks of one sentence share their axes and their
box, so the picture does not jump when the reader changes from the real stack to the idealised one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.explorer.packing import pack_leaders, pack_shares, pack_tokens
from attnlab.explorer.payload import make_payload, spec_of_run
from attnlab.explorer.presets import Preset
from attnlab.explorer.recording import (
    MOST_TOKENS,
    name_axes,
    principal_axes,
    rank_groups,
    record_run,
)
from attnlab.models.studies.judgement import verdict
from attnlab.models.studies.sentences import TITLES
from attnlab.progress import ProgressOption, track
from attnlab.types import Spec, Trajectory

COMPARED = ("real", "twin")
"""The variants of a sentence whose directions decide the axes of all variants."""

VERDICTS = {
    "good triple": (
        "Theorem 4.2",
        (
            "positive and simple, and its direction attends to itself. If this head alone moves the"
            " tokens, they end on at most three parallel hyperplanes."
        ),
    ),
    "positive": (
        "open",
        (
            "positive, but not simple, or its direction does not attend to itself. The theorem on"
            " hyperplanes needs both."
        ),
    ),
    "negative": ("open", "negative. The theorem on hyperplanes needs a positive one."),
    "complex": (
        "open",
        "one of a complex pair, so the tokens turn while they grow. The theorems need a real one.",
    ),
    "zero": ("open", "this head writes nothing."),
}
"""{kind of leading eigenvalue, of models/studies/judgement.py: (the theorem, what it means)}."""


@dataclass(frozen=True)
class View:
    """One picture of a page: a name for its button, what to watch, the recording, and the theory:
    (where, sentence).
    """

    id: str
    name: str
    watch: str
    spec: Spec
    recording: Mapping[str, Any]
    says: tuple[str, str]


def is_flow(source: Any) -> bool:
    """Whether a source is a Flow of al.models.flow. The check does not load the models."""
    return isinstance(getattr(source, "run", None), Trajectory) and hasattr(source, "words")


def is_sentence(source: Any) -> bool:
    """Whether a source is the Dataset of al.models.sentence."""
    return getattr(source, "attrs", {}).get("kind") == "sentence" and hasattr(source, "data_vars")


def is_dossier(source: Any) -> bool:
    """Whether a source is what al.models.dossier returns."""
    return hasattr(source, "sentences") and hasattr(source, "about_texts")


def is_trained(source: Any) -> bool:
    """Whether a source is a Flow, a sentence, or a list of them."""
    several = source if isinstance(source, list | tuple) else [source]
    return bool(several) and all(is_flow(one) or is_sentence(one) for one in several)


def name_source(source: Any) -> str:
    """Return the name of a page about Flows and sentences: the model, and the head if there is only
    one.
    """
    several = source if isinstance(source, list | tuple) else [source]
    if len(several) == 1 and is_flow(several[0]):
        return str(several[0].name)
    return str((several[0].data if is_flow(several[0]) else several[0]).attrs["model"])


def model_payload(
    source: Any, *, progress: ProgressOption = False, **options: Any
) -> dict[str, Any]:
    """Return the record of a page that shows a Flow, a sentence, or a list of them; options are
    those of make_payload.

    progress: False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
    cancel.
    """
    views: list[View] = []
    several = source if isinstance(source, list | tuple) else [source]
    with track(progress, "recording") as progress:
        for number, one in enumerate(several):
            part = progress.piece(number, len(several))
            views += [flow_view(one, progress=part)] if is_flow(one) else sentence_views(one)
    for number, view in enumerate(views):
        if view.id in [other.id for other in views[:number]]:
            raise ValueError(f"Two of the sources are {view.name}. Give each source once.")
    first = views[0]
    presets = [Preset(view.id, view.name, view.watch, view.spec) for view in views]
    says = [
        {"spec": view.spec.to_dict(), "cite": view.says[0], "says": view.says[1]}
        for view in views
        if view.says[1]
    ]
    if len(views) == 1:
        options = {
            **options,
            "hide": [*options.get("hide", ()), "presets"],
        }  # nothing to choose from
    payload = make_payload(first.spec, presets=presets, preset=presets[0], says=says, **options)
    for record, view in zip(payload["presets"], views, strict=True):
        record["recording"] = view.recording
    return payload


# --------------------------------------------------------------------------------------------------
# flow


def flow_view(flow: Any, progress: ProgressOption = False) -> View:
    """Return the view of a Flow: directions of its tokens in continuous time, with words.

    progress: False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
    cancel.
    """
    run, facts = flow.run, flow.data.attrs
    recording = record_run(run, words=flow.words, directions=True, progress=progress)
    is_one = facts["head"] >= 0
    short = f"L{facts['layer']}H{facts['head']}" if is_one else f"layer {facts['layer']}"
    who = (
        f"one head of {facts['model']}, {short}"
        if is_one
        else f"all heads of {short} of {facts['model']}"
    )
    watch = (
        f"The equation with the weights of {who}, and nothing else of the model. The {run.n} tokens"
        f" start from {facts['start']}. Shown are directions x/|x| in three of {run.d} dimensions."
    )
    given = (
        f", text={facts['text']!r}{'' if facts['special'] else ', special=False'}"
        if facts.get("text")
        else ", ids=..."
    )
    code = (
        f"import attnlab as al\n\nmodel = al.models.load({facts['model']!r})\nflow ="
        f" al.models.flow(model, {facts['layer']}, {facts['head'] if is_one else None}{given},"
        f" t_end={run.solve.t_end:g})\nal.explore(flow)\n"
    )
    spec = _name_spec(spec_of_run(run), flow.name)
    return View(
        short.replace(" ", "_"),
        f"{short} alone" if is_one else f"{short}, all heads",
        watch,
        spec,
        {
            **recording,
            "heads": run.dynamics.weights.heads,
            "numbers": f"{flow.name}, d = {run.d}, n = {run.n}",
            "ending": _end_of_flow(flow),
            "python": code,
        },
        _theory_of_flow(flow),
    )


def _end_of_flow(flow: Any) -> dict[str, str]:
    """Describe what is known about t = infinity. Its points have too many dimensions for a
    picture.
    """
    if flow.limit is not None and flow.limit.certified and flow.limit.count is not None:
        noun = "limit" if flow.limit.count == 1 else "limits"
        return {
            "kind": "certified",
            "mark": f"{flow.limit.count} {noun}, certified",
            "text": (
                f"in the directions that grow. Decided at t = {flow.limit.t:.4g}. The picture shows"
                " the run, not the limit."
            ),
        }
    why = (
        "no certificate was asked for."
        if flow.no_limit == "not asked for"
        else flow.no_limit or "no direction grows."
    )
    why = re.sub(r"^Undecided( \([^()]*\))?( at t = \S+)?: ", "", why)
    first = re.split(r"(?<=[.!?]) ", why, maxsplit=1)[0]  # the rest is numerics
    return {
        "kind": "open",
        "mark": "Open",
        "text": (
            f"{first} The run ends at t = {float(flow.run.times[-1]):.4g} in "
            f"{_count(int(flow.data['clusters'].values[-1]), 'group')} of directions."
        ),
    }


def _theory_of_flow(flow: Any) -> tuple[str, str]:
    """Return the theorem about the head, and a sentence."""
    if len(flow.heads) != 1:
        return (
            "open",
            f"{len(flow.heads)} heads move the tokens together. The theorems are about one head.",
        )
    value, kind = flow.heads[0].numbers.lambda1, verdict(flow.heads[0].numbers)
    leads = f"The leading eigenvalue of V is {value.real:.3g}" + (
        f" ± {abs(value.imag):.3g}i" if kind == "complex" else ""
    )
    cite, meaning = VERDICTS[kind]
    return cite, f"{leads}: {meaning}"


# --------------------------------------------------------------------------------------------------
# sentences


def sentence_views(data: Any) -> list[View]:
    """Return a view of each stack of a sentence: the directions of its tokens after each layer, on
    shared axes.
    """
    from attnlab.engine.threads import one_blas_thread

    words = [str(word) for word in data["word"].values]
    if len(words) > MOST_TOKENS:
        raise ValueError(
            f"A recording shows at most {MOST_TOKENS} tokens, and this sentence has {len(words)}."
        )
    names = [str(name) for name in data["variant"].values]
    found = {name: _directions(data["x"].sel(variant=name).values) for name in names}
    found = {
        name: unit for name, unit in found.items() if len(unit) > 1
    }  # others overflow in their first layer
    with one_blas_thread():
        axes, shares, centre = principal_axes(
            np.concatenate([found[name] for name in COMPARED if name in found])
        )
    drawn = {name: (unit - centre) @ axes for name, unit in found.items()}  # {name: (steps, n, 3)}
    compared = np.concatenate([drawn[name] for name in COMPARED if name in drawn])
    box = {
        "centre": [0.0] * 3,
        "half": np.maximum(np.abs(compared).max(axis=(0, 1)), 1e-6).tolist(),
    }
    about = {"words": words, "axes": name_axes(shares), "box": box}
    return [_stack_view(data, name, tokens, about) for name, tokens in drawn.items()]


def _directions(x: np.ndarray) -> np.ndarray:
    """Return x / |x| of tokens (steps, n, d), up to the last step at which all numbers are
    finite.
    """
    bad = np.flatnonzero(~np.isfinite(x).all(axis=(1, 2)))
    x = x[: bad[0]] if len(bad) else x
    lengths = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.asarray(x / np.where(lengths > 0, lengths, 1.0))


def _stack_view(data: Any, name: str, tokens: np.ndarray, about: Mapping[str, Any]) -> View:
    """Return the view of one stack, whose directions are `tokens` (steps, n, 3)."""
    facts, own = data.attrs, data.sel(variant=name)
    last, n = len(tokens) - 1, tokens.shape[1]
    labels, title = (
        rank_groups(own["label"].values[last].astype(int)),
        TITLES.get(name, name.replace("_", " ")),
    )
    leaders = (
        own["attends"].values[: last + 1] if "attends" in own else np.full((last + 1, n), np.nan)
    )
    leaders = np.where(np.isfinite(leaders), leaders, -1.0).astype(
        int
    )  # -1: no layer reads the last tokens
    shares = (
        {"shares": pack_shares(np.nan_to_num(own["attends_share"].values[: last + 1]))}
        if "attends_share" in own
        else {}
    )
    changes = [step for step in range(1, last) if (leaders[step] != leaders[step - 1]).any()]
    entropy = own["entropy"].values[: last + 1]
    seen = np.arange(1, n + 1) if facts["is_causal"] and name != "no_mask" else np.full(n, n)
    listened = np.where(
        np.isfinite(entropy), np.exp(entropy * np.log(seen).mean()), 0.0
    )  # 0: not known
    is_flow, is_sphere = name == "twin", not facts["is_pre_norm"]
    count = int(labels.max()) + 1
    recording = {
        "version": 1,
        "n": n,
        "T": last + 1,
        "tau": 1.0,
        "until": float(last),
        "times": [float(step) for step in range(last + 1)],
        "tokens": pack_tokens(tokens),
        "leaders": pack_leaders(leaders),
        **shares,
        "every": 1,
        "groups": own["clusters"].values[: last + 1].tolist(),
        "listened": listened.tolist(),
        "labels": labels.tolist(),
        "count": count,
        "changes": [float(step) for step in changes],
        "d": 3,
        "dimension": data.sizes["coordinate"],
        "geometry": "euclidean",
        "basis": np.eye(3).tolist(),
        "growth": [0.0] * 3,
        "turn": [0.0] * 3,
        "status": "OK",
        "sentence": "",
        "trusted": None,
        "steps": 0,
        "evaluations": 0,
        "heads": int(facts["heads"]),
        "numbers": (
            f"{facts['model']}, {_count(last, 'layer')}, {_count(int(facts['heads']), 'head')}, "
            f"d = {data.sizes['coordinate']}, n = {n}"
        ),
        "ending": {
            "kind": "end",
            "mark": f"{_count(count, 'group')} of {n} tokens",
            "text": (
                f"after {_count(last, 'layer')}, at cosine {facts['cosine_scale']:g}. "
                + _end_of_stack(data, name, last)
            ),
        },
        "python": _code_of_sentence(facts),
        **about,
        **({} if is_flow else {"equation": "x ← layer(x)"}),
    }
    equation = {"geometry": "sphere"} if is_flow and is_sphere else {}
    spec = Spec(
        weights={"family": "given", "d": data.sizes["coordinate"]},
        start={"law": "given", "n": n, "d": data.sizes["coordinate"]},
        solve={"t_end": float(last)} if is_flow else {"layers": last, "dt": 1.0},
        dynamics=equation,
    )
    return View(
        name,
        title[0].upper() + title[1:],
        _watch_stack(data, name),
        _name_spec(spec, f"{facts['model']}, {title}"),
        recording,
        _theory_of_stack(name),
    )


def _watch_stack(data: Any, name: str) -> str:
    """Describe what to watch, in a few sentences."""
    facts = data.attrs
    text = f"“{facts['text']}”" if facts["text"] else f"{data.sizes['token']} tokens"
    if name == "real":
        return (
            f"{text} through all {facts['layers']} layers of {facts['model']}. The picture shows"
            " the direction of each token after each layer; between two layers it is interpolated."
        )
    if name == "twin":
        where = (
            ""
            if facts["is_pre_norm"]
            else ", on a sphere, because the norms of the model keep its tokens on one"
        )
        return (
            "The same tokens in the theory’s flow with the same Q, K and V: no biases, no"
            f" feed-forward layers, one unit of time per layer{where}; between two layers it is"
            " interpolated. If you change to the real stack and back, time and axes stay."
        )
    return (
        f"{text} through {TITLES.get(name, name.replace('_', ' '))} of {facts['model']}. The axes"
        " are those of the real stack."
    )


def _end_of_stack(data: Any, name: str, last: int) -> str:
    cosine = data["cosine"].sel(variant=name).values
    text = f"The mean cosine of two tokens goes from {cosine[0]:.2f} to {cosine[last]:.2f}."
    turn = float(data["turn"].sel(variant=name).values[last])
    if name == "real" or not np.isfinite(turn):
        return text
    return (
        f"{text} A token is turned by {turn:.2f} from itself in the real stack (0 is the same"
        " direction, 1 is unrelated)."
    )


def _theory_of_stack(name: str) -> tuple[str, str]:
    if name == "twin":
        return (
            "no theorem",
            (
                "The theorems are about one head that stays the same. Here many heads act together,"
                " and each layer has its own heads. So the result is an observation."
            ),
        )
    return (
        "no theorem",
        (
            "The theorems are about attention alone. A layer also has norms, biases and a"
            " feed-forward part."
        ),
    )


def _code_of_sentence(facts: Mapping[str, Any]) -> str:
    given = f"text={facts['text']!r}" if facts["text"] else "ids=..."
    special = "" if facts["special"] else ", special=False"
    return (
        f"import attnlab as al\n\nmodel = al.models.load({facts['model']!r})\n"
        f'data = al.models.sentence(model, {given}{special}, only=["twin"])\nal.explore(data)\n'
    )


def _name_spec(spec: Spec, name: str) -> Spec:
    """Return the Spec with a name in its weights if needed. Without it, matrices that are not
    written out look alike.
    """
    if spec.weights.get("family") == "model":  # it names its model, layer and head, and can be run
        return spec
    return Spec(
        weights={**spec.weights, "source": name},
        start=spec.start,
        solve=spec.solve,
        dynamics=spec.dynamics,
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
