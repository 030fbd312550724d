"""A real sentence as the start of the flow: at which word its tokens gather, and whether that could
be predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray

from attnlab.analysis.clusters import cluster_labels
from attnlab.analysis.directions import unit
from attnlab.analysis.growth import fastest_modes, growth_rate
from attnlab.analysis.plain_flow import flow_by_scipy
from attnlab.analysis.span import in_span
from attnlab.dynamics import attention
from attnlab.engine import simulate
from attnlab.experiments.common.halved import Halved
from attnlab.experiments.common.heads import HEADS, VALUES, Trained
from attnlab.experiments.common.paragraphs import PARAGRAPHS
from attnlab.experiments.datasets import table, table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results
from attnlab.limits import limit
from attnlab.models import sentence
from attnlab.models.checkpoints.record import NotFetched
from attnlab.models.checkpoints.tokens import read_tokens
from attnlab.sweep.grid import Grid
from attnlab.types import Trajectory, Weights

SENTENCES = (
    "The cat sat on the mat because it was tired.",
    "A king without a crown is still a king to his people.",
    "Water boils at one hundred degrees at the level of the sea.",
    "She sold the old house and moved to a small town by the river.",
    "Who reads the last page of a book before the first?",
)

IDS = (len(SENTENCES) + 1, 10)
"""At size small: so many rows of so many random ids, which stand for sentences."""

FUNCTION_WORDS = frozenset(
    """a an and as at because before but by down for from he her his i if in into is it its my of on one
    or our she so still than that the their them then they this to was we where who with without would you your""".split()
)

T, STEP = 20.0, 0.05
"""The end and the steps in natural time: τ = Ht for V = I, τ = λt for own values."""

CLUSTER = 0.05
"""Tokens whose directions are nearer than this are of one cluster."""

SHOWN = 0
"""The text that is drawn."""

LEADING = ("norm", "score", "received")
"""What might tell the leader at the start: |x|, the score <Mx, x> of a token with itself, the
attention it receives.
"""


def kind_of(word: str, is_special: bool) -> str:
    """What sort of token it is; ids of a model without a tokenizer have none."""
    if is_special:
        return "special"
    if word.startswith("#") and word[1:].isdigit():
        return "id"
    if not any(letter.isalnum() for letter in word):
        return "mark"
    return "function" if word.lower() in FUNCTION_WORDS else "content"


class Texts(Trained):
    """The model, what it reads, the embedded tokens of each text, and the leaders in the model
    itself.
    """

    def __init__(self, size: str, model: str = "minilm"):
        super().__init__(size, model)
        if self.model is None:
            raise NotFetched(self.why)  # without a model there are no tokens
        self.texts = read_texts(self.model)
        self.starts = [np.asarray(self.model.hidden_states(one.ids)[0]) for one in self.texts]
        self.stack = [stack_leaders(self.model, one) for one in self.texts]


def measure_text(context: Context, values: str, heads: int, text: int) -> dict[str, Any]:
    """The row of one text with these heads, and the directions at the end."""
    texts = context.shared
    row, end = gathering(texts.heads(heads, values), texts.starts[text], values)
    return {"row": {"n": len(end), **texts.stack[text], **row}, "end": end}


def reference(context: Context) -> Any:
    """The text that is drawn with four heads, by SciPy and by the engine."""
    weights, x0, _ = in_span(context.shared.heads(4, "identity"), context.shared.starts[SHOWN])
    ours = simulate(weights, x0, times=[0.0, 0.5], t_end=0.5, rtol=1e-9).x[-1]
    return table(
        {"scipy": flow_by_scipy(weights, x0, 0.5).ravel(), "engine": ours.ravel()}, "entry"
    )


def assemble(results: Results) -> dict[str, Any]:
    """One row per text, kind of values and number of heads; the tokens of all texts; the plane that
    is drawn; a check.
    """
    shared = results.shared
    ends = [
        one["end"]
        for case, one in results.found["rows"]
        if case["text"] == SHOWN and case["values"] == "identity"
    ]
    return {
        "rows": table_of_rows(
            results.rows("rows", "row"),
            model=shared.name,
            has_words=int(shared.model.tokenizer_file is not None),
        ),
        "tokens": token_table(shared.texts, shared.starts),
        "plane": plane_of(shared.starts[SHOWN], ends),
        "reference": results.values("reference")[0],
    }


def token_table(texts: Sequence[Any], starts: Sequence[np.ndarray]) -> Any:
    """A row for each token of all texts, one text after the other."""
    words = [word for one in texts for word in one.words]
    special = np.concatenate([one.is_special for one in texts])
    return table(
        {
            "text": np.repeat(np.arange(len(texts)), [len(x) for x in starts]),
            "word": words,
            "kind": [
                kind_of(word, bool(is_special))
                for word, is_special in zip(words, special, strict=True)
            ],
        },
        "token",
    )


def plane_of(x0: np.ndarray, ends: Sequence[np.ndarray]) -> Any:
    """Directions at the start and at the end for every number of heads, on the principal axes of
    the start.
    """
    start = unit(x0)
    axes = np.linalg.svd(start - start.mean(axis=0), full_matrices=False)[2][:2]
    flat = np.stack([(end - start.mean(axis=0)) @ axes.T for end in ends])
    variables: dict[str, Any] = {
        "start": (("token", "axis"), (start - start.mean(axis=0)) @ axes.T),
        "end": (("heads", "token", "axis"), flat),
    }
    return xarray.Dataset(variables, coords={"heads": list(HEADS)}, attrs={"d": x0.shape[1]})


def read_texts(model: Any) -> list[Any]:
    """The sentences and the paragraph as tokens, special ones with them; rows of ids where there is
    no tokenizer.
    """
    if model.tokenizer_file is None:
        many, n = IDS
        rows = np.random.default_rng(1).integers(0, model.config.vocabulary, (many, n))
        return [read_tokens(model, ids=ids) for ids in rows]
    return [read_tokens(model, text) for text in (*SENTENCES, PARAGRAPHS[0])]


def stack_leaders(model: Any, tokens: Any) -> dict[str, int]:
    """The token that receives most attention in the first and in the last layer of the model
    itself.
    """
    leader = sentence(model, ids=tokens.ids, only=["real"])["leader"].values[0]
    leader = leader[np.isfinite(leader)].astype(int)
    return {"stack_first": int(leader[0]), "stack_last": int(leader[-1])}


def flow(weights: Weights, x0: np.ndarray, step: float) -> Trajectory:
    """The run to T with steps of that natural time."""
    growth = growth_rate(weights, "real")
    return simulate(
        weights,
        x0,
        times=np.array([0.0, T]) / growth,
        t_end=T / growth,
        stepper="rk4",
        dt=step / growth,
        frame="x",
        throw=False,
    )


def gathered_at(run: Trajectory) -> tuple[np.ndarray, np.ndarray, int]:
    """(directions at the end (n, d), labels, the leader of the largest cluster)."""
    end = unit(run.scaled_x()[0][-1])
    labels = cluster_labels(end, CLUSTER)
    looks = (
        attention(run, at=-1).mean(axis=0)[labels == np.argmax(np.bincount(labels))].mean(axis=0)
    )
    return end, labels, int(looks.argmax())


def gathering(weights: Weights, x0: np.ndarray, values: str) -> tuple[dict[str, Any], np.ndarray]:
    """Describe the largest final cluster: its position, its leader, that leader's start; and the
    directions at the end.
    """
    small, y0, basis = in_span(weights, x0) if values == "identity" else (weights, x0, None)
    is_halved = values == "identity"
    runs = Halved.follow(
        lambda step: flow(small, y0, step), 2 * STEP if is_halved else STEP, when=is_halved
    )
    run = runs.best
    end, labels, leader = gathered_at(run)
    members = labels == np.argmax(np.bincount(labels))
    centre, start = unit(end[members].mean(axis=0)), unit(y0)
    near, P = start @ centre, attention(run, at=-1)
    scores = np.mean(
        [
            np.sum((x0 @ Q.T) * (x0 @ K.T), axis=1)
            for Q, K in zip(weights.Q, weights.K, strict=True)
        ],
        axis=0,
    )
    standing = dict(
        zip(
            LEADING,
            (np.linalg.norm(x0, axis=1), scores, attention(run, at=0).mean(axis=(0, 1))),
            strict=True,
        )
    )
    found = {
        "clusters": int(labels.max()) + 1,
        "members": int(members.sum()),
        "leader": leader,
        "share": float(P.mean(axis=0)[members, leader].mean()),
        "nearest": int(near.argmax()),
        "cosine": float(near.max()),
        "to_mean": float(unit(start.mean(axis=0)) @ centre),
        "to_mode": np.nan,
        "modes": 0,
        **{
            f"rank_{name}": 1 + int(np.sum(numbers > numbers[leader]))
            for name, numbers in standing.items()
        },
    }
    if values == "identity":
        assert basis is not None
        _, other_labels, other_leader = gathered_at(runs.coarse)
        found |= {
            "steps_agree": int(other_leader == leader and np.array_equal(labels, other_labels)),
            "limit_agrees": limit_agrees(small, y0, leader),
        }
        return found, end @ basis.T
    modes = fastest_modes(weights, P, labels, 6 / T)
    return (
        found
        | {
            "to_mode": float(np.linalg.norm(modes.T @ centre)),
            "modes": modes.shape[1],
            "steps_agree": -1,
            "limit_agrees": -1,
        },
        end,
    )


def limit_agrees(weights: Weights, x0: np.ndarray, leader: int) -> int:
    """Whether the certified limit of one head has that leader too: 1, 0, or -1 where there is no
    certificate.
    """
    end = limit(weights, x0, work=1.25e6) if weights.heads == 1 else None
    return (
        -1
        if end is None or end.grade != "exact"
        else int(np.bincount(end.leaders).argmax() == leader)
    )


compute = Parts(
    {
        "rows": Part(
            measure_text,
            Grid({"values": VALUES, "heads": HEADS, "text": range(len(SENTENCES) + 1)}),
            "V {values}, {heads} heads, text {text}",
            0.99,
            lambda heads, values, **_: heads * (1 + 9 * (values == "own")),
        ),
        "reference": Part(reference, share=0.01),
    },
    prepare=Texts,
    assemble=assemble,
)
