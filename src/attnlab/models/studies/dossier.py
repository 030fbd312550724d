"""dossier: all studies of one trained model: spectra, flows, sentences, the tied iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.displayed import LONGEST, VERBS, Displayed, short_repr, shorten
from attnlab.engine.threads import one_blas_thread
from attnlab.models.checkpoints.head_names import name_heads
from attnlab.models.checkpoints.many import check_text, check_texts
from attnlab.models.checkpoints.model import Model
from attnlab.models.checkpoints.slices import check_index
from attnlab.models.checkpoints.tokens import read_tokens
from attnlab.models.studies.flow_steps import STEP
from attnlab.models.studies.flows import Flow, flow
from attnlab.models.studies.grades import Stacks
from attnlab.models.studies.sentences import sentence
from attnlab.models.studies.spectra_table import spectra
from attnlab.models.studies.stacks import STACKS, read_stacks
from attnlab.models.studies.tied import iterate
from attnlab.models.studies.variants import learned_nothing
from attnlab.progress import ProgressOption, track

if TYPE_CHECKING:
    import pandas
    import xarray

TEXTS = {
    "English": (
        "The cat sat on the mat because it was tired.",
        "Once upon a time there was a little girl who lived near the forest.",
        "If you mix blue paint with yellow paint, you will get green paint.",
    ),
    "chemical reactions (SMILES)": (
        "CC(=O)O.OCC>>CC(=O)OCC",
        "CC(=O)Cl.NCc1ccccc1>>CC(=O)NCc1ccccc1",
        "C=CC=C.C=CC(=O)OC>>COC(=O)C1CCC=CC1",
    ),
    "English phonemes": (
        "ðə kˈæt sˈæt ɔnðə mˈæt bɪkˈʌz ɪt wʌz tˈaɪɚd.",
        "wˈʌns əpˌɑːn ɐ tˈaɪm ðɛɹwˌʌz ɐ lˈɪɾəl ɡˈɜːl hˌuː lˈɪvd nˌɪɹ ðə fˈɔːɹɪst.",
        "ɪf juː mˈɪks blˈuː pˈeɪnt wɪð jˈɛloʊ pˈeɪnt, juː wɪl ɡɛt ɡɹˈiːn pˈeɪnt.",
    ),
}
"""The default texts: the language of which the tokenizer knows most, and loses least."""

RANDOM_TEXTS, RANDOM_TOKENS = 2, 16
WORK, SECONDS = 5e4, 20.0
"""Units of work, and a cap in seconds, for t = infinity and the verdicts of each flow. The page
must not take long: `flow` allows ten times as much work.
"""

T_END, SLOWNESS = 5.0, (1.0, 2.0, 5.0, 10.0, 20.0)
"""Flows are shown until about 5 / lambda_1 if lambda_1 < 1, but not longer than twenty times 5."""

TIMES, NULL_TIMES = 400, 100
"""How often a tied layer is applied, and a random one, which gathers tokens at once or not at
all.
"""


@dataclass(frozen=True, eq=False)
class Reading(Displayed):
    """One input of the model: a text, ids if it has no tokenizer, or x (n, d) if it has no
    embedding.
    """

    text: str | None = None
    ids: tuple[int, ...] | None = None
    x: np.ndarray | None = None
    __repr__ = short_repr
    instead = dict.fromkeys(
        VERBS,
        "al.models.sentence(model, **reading.given) returns what the model does to it. Give that.",
    )

    @property
    def given(self) -> dict[str, Any]:
        """The arguments for `sentence`, `flow` and `iterate`."""
        if self.x is not None:
            return {"ids": self.x}
        return {"ids": list(self.ids)} if self.ids is not None else {"text": self.text}

    @property
    def tokens(self) -> Any:
        """A text, ids or x, as `spectra` takes them."""
        return self.x if self.x is not None else self.text or self.ids


@dataclass(frozen=True, eq=False)
class ShownFlow(Displayed):
    """A flow, its head, and why it is shown."""

    flow: Flow
    layer: int
    head: int | None
    why: str
    __repr__ = short_repr
    instead = dict.fromkeys(VERBS, "Give its field `flow`, which is a Flow.")


@dataclass(frozen=True, eq=False)
class Dossier(Displayed):
    """All studies of a model.

    Attributes
    ----------
    model : Model
        The model.
    spectra : pandas.DataFrame
        The table of its heads.
    flows : tuple of ShownFlow
        Flows of heads and layers, each with the reason why it is there.
    sentences : tuple of xarray.Dataset
        What the layers do to each text.
    tied, tied_null : tuple of xarray.Dataset
        The iteration of the layer of a tied model, and of several random ones; else empty.
    about_texts : str
        Where the texts come from.
    rng : int
        The seed of everything random.
    stacks : Stacks or None
        The same texts beside several stacks with random weights. None if the idealised model stops
        in one of them.

    Examples
    --------
    >>> import attnlab as al
    >>> found = al.models.dossier(model, [[3, 1, 4]], work=100.0)
    >>> list(found.sentences[0].sizes)[:2]
    ['variant', 'step']
    """

    model: Model
    spectra: pandas.DataFrame
    flows: tuple[ShownFlow, ...]
    sentences: tuple[xarray.Dataset, ...]
    tied: tuple[xarray.Dataset, ...]
    tied_null: tuple[xarray.Dataset, ...]
    about_texts: str
    rng: int = 0
    stacks: Stacks | None = None

    instead = {
        "plot": (
            'al.explore(dossier, "dossier.html") writes it as a page. Plot one of its parts, such'
            " as dossier.spectra or dossier.sentences[0]."
        ),
        "movie": "Film one of its parts: dossier.flows[0].flow or dossier.sentences[0].",
        "save": (
            'al.explore(dossier, "dossier.html") writes it as a page. It holds a whole model, so'
            " save its parts, such as dossier.spectra or dossier.flows[0].flow."
        ),
        "to_xarray": (
            "It has no common axes. Give one of its parts, such as dossier.spectra or"
            " dossier.flows[0].flow."
        ),
    }

    def __repr__(self) -> str:
        parts = (
            f"{len(self.spectra)} heads, {len(self.flows)} flows, {len(self.sentences)} sentences"
        )
        return shorten(f"Dossier({self.model.name}: {parts}, rng = {self.rng})", LONGEST)


def dossier(
    model: Model,
    texts: Sequence[Any] = (),
    *,
    layer: int | None = None,
    head: int | None = None,
    rng: int = 0,
    work: float = WORK,
    budget: float = SECONDS,
    progress: ProgressOption = False,
) -> Dossier:
    """Return all studies of one model: spectra, flows, sentences and (for tied layers) the
    iteration.

    `al.explore(al.models.dossier(model), "dossier.html")` writes them as one page, and so does
    `attnlab dossier`. Every model has a dossier, also one in memory and the heads of
    `al.models.heads`.

    Parameters
    ----------
    model : Model
        The model.
    texts : sequence of str or of array, optional
        What the model reads: texts, or the ids of their tokens. For a model without an embedding:
        arrays (n, d). Without texts: a few of a language that the tokenizer knows; random ids
        without a tokenizer; random tokens without an embedding.
    layer, head : int, optional
        The head whose flow is shown. The default is the good triple with the widest gap, of that
        layer or of all.
    rng : int, optional
        The seed of everything random.
    work : float, optional
        Evaluations and events for t = infinity and the verdicts of each flow. The same work gives
        the same page.
    budget : float, optional
        Seconds after which they are left undecided as well.
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel.

    Returns
    -------
    Dossier
        Its fields are spectra (a table), flows, sentences and tied (tuples).

    Examples
    --------
    >>> import attnlab as al
    >>> found = al.models.dossier(model, [[3, 1, 4], [1, 5, 9]], work=100.0)
    >>> len(found.sentences)
    2
    """
    if layer is not None:
        layer = check_index("layer", layer, model.config.layers)
    if head is not None:
        head = check_index("head", head, model.config.heads)
    readings, about = choose_texts(model, texts, rng)
    with track(progress) as progress:
        frame = spectra(
            model,
            rng=rng,
            texts=[reading.tokens for reading in readings],
            progress=progress.part(0.0, 0.1, "spectra"),
        )
        with one_blas_thread():
            shown = []
            chosen = choose_heads(frame, layer, head)
            for number, (in_layer, of_head, why) in enumerate(chosen):
                is_one = of_head is not None
                slow = _slowness(frame, in_layer, of_head)
                part = progress.part(0.1, 0.5).piece(
                    number, len(chosen), f"flow of {name_heads(in_layer, of_head)}"
                )
                found = flow(
                    model,
                    in_layer,
                    of_head,
                    **readings[0].given,
                    rng=rng,
                    limit=is_one,
                    check=is_one,
                    work=work,
                    budget=budget,
                    t_end=T_END * slow,
                    dt=STEP * slow,
                    progress=part,
                )
                shown.append(ShownFlow(found, in_layer, of_head, why))
            read = []
            for number, reading in enumerate(readings):
                part = progress.part(0.5, 0.75).piece(number, len(readings), f"sentence {number}")
                read.append(sentence(model, **reading.given, rng=rng, progress=part))
            stacks = None
            if not any("stopped" in data.attrs for data in read):
                stacks = read_stacks(
                    model,
                    [reading.given for reading in readings],
                    known=read,
                    rng=rng,
                    progress=progress.part(0.75, 0.85, "random weights"),
                )
            tied, tied_null = [], []
            if model.config.is_tied:
                part, null_part = (
                    progress.part(0.85, 0.97, "the tied layer"),
                    progress.part(0.97, 1.0, "random weights"),
                )
                tied = [iterate(model, **readings[0].given, times=TIMES, progress=part)]
                tied_null = [
                    iterate(
                        learned_nothing(model, "random", rng + number),
                        **readings[0].given,
                        times=NULL_TIMES,
                        progress=null_part.piece(number, STACKS),
                    )
                    for number in range(STACKS)
                ]
        return Dossier(
            model,
            frame,
            tuple(shown),
            tuple(read),
            tuple(tied),
            tuple(tied_null),
            about,
            rng,
            stacks,
        )


def choose_texts(
    model: Model, texts: Sequence[Any] = (), rng: int = 0
) -> tuple[list[Reading], str]:
    """Return (the inputs, a description of their source). Refuse given texts that the model cannot
    read.
    """
    given = check_texts(texts, least=0)
    if given:
        return [_read_given(model, one, number, len(given)) for number, one in enumerate(given)], (
            "given"
        )
    if model.parts.embedding is None:
        size = (RANDOM_TEXTS, min(RANDOM_TOKENS, model.config.length))
        tokens = np.random.default_rng(rng).standard_normal((*size, model.config.d))
        return [Reading(x=x) for x in tokens], (
            f"random normal tokens (seed {rng}), because this model has no embedding"
        )
    if not model.has_tokenizer:
        generator = np.random.default_rng(rng)
        size = (RANDOM_TEXTS, min(RANDOM_TOKENS, model.config.length))
        ids = generator.integers(0, model.config.vocabulary, size=size)
        return [
            Reading(ids=tuple(int(i) for i in row)) for row in ids
        ], f"random token ids (seed {rng}) without meaning, because this model has no tokenizer"
    known = {language: _readable(model, texts_of) for language, texts_of in TEXTS.items()}
    language = min(known, key=lambda name: (not known[name][0], *known[name][1:]))
    found = known[language][0]
    if not found:
        raise ValueError(
            f"{model.name} can read none of the default sentences. Give your own sentences with"
            " --text."
        )
    return [
        Reading(text) for text in found
    ], f"{language}, the same for every model of that language"


def _read_given(model: Model, given: Any, number: int, count: int) -> Reading:
    """Return a text, ids or x as an input. Refuse what the model cannot read, with its number."""
    named = {"text": given} if isinstance(given, str) else {"ids": given}
    try:
        check_text(given)
        tokens = read_tokens(model, **named)
    except ValueError as problem:
        if count == 1:
            raise
        raise ValueError(f"Text {number} of {count}, from 0: {problem}") from None
    if isinstance(given, str):
        return Reading(given)
    if tokens.x is not None:
        return Reading(x=tokens.x)
    return Reading(ids=tuple(int(i) for i in tokens.ids))


def _readable(model: Model, texts: Sequence[str]) -> tuple[list[str], float, float]:
    """Return (the texts that are short enough for the model, the share of their tokens that it does
    not know, the share of their letters that are in no token).
    """
    found, unknown, total = [], 0, 0
    lost, letters = 0, 0
    for text in texts:
        try:
            tokens = read_tokens(model, text)
        except ValueError:
            continue
        found.append(text)
        unknown, total = unknown + tokens.unknown, total + len(tokens.ids)
        kept, written = "".join(tokens.words).lower(), text.lower().split()
        lost += sum(letter not in kept for word in written for letter in word)
        letters += sum(map(len, written))
    return found, unknown / total if total else 1.0, lost / letters if letters else 1.0


def choose_heads(
    frame: pandas.DataFrame, layer: int | None = None, head: int | None = None
) -> list[tuple[int, int | None, str]]:
    """Return (layer, head, why) of the flows to show: one inside the theorem or one that the user
    named, one outside it, and all heads of a layer together.
    """
    first = layer if layer is not None and not frame.attrs["is_tied"] else 0
    found: list[tuple[int, int | None, str]] = []
    within = frame if layer is None or frame.attrs["is_tied"] else frame[frame["layer"] == layer]
    good = within[within["verdict"] == "good triple"].sort_values("gap", ascending=False)
    if head is not None:
        found.append((layer or 0, head, "the head that you named"))
    elif len(good):
        found.append(
            (
                int(good["layer"].iloc[0]),
                int(good["head"].iloc[0]),
                (
                    f"the good triple with the widest gap, of {len(good)}: the theorem is about"
                    " such heads"
                ),
            )
        )
    others = within[within["verdict"] != "good triple"]
    beside = found[0][:2] if found else (-1, -1)
    others = others[(others["layer"] != beside[0]) | (others["head"] != beside[1])]
    if found and len(near := others[others["layer"] == found[0][0]]):
        others = near
    if len(others):
        size = others["lambda1"].abs()
        row = others.loc[size.idxmax()]
        found.append(
            (
                int(row["layer"]),
                int(row["head"]),
                (
                    f"no good triple ({row['verdict']}), the largest leading eigenvalue of those:"
                    " outside the theorem"
                ),
            )
        )
    return [
        *found,
        (first, None, "all heads of a layer together, as in the model: no theorem is known"),
    ]


def _slowness(frame: pandas.DataFrame, layer: int, head: int | None) -> float:
    """Return how many times longer than usual a flow is: tokens move like e^(lambda_1 t), and many
    trained heads are slow.
    """
    of_layer = frame[(frame["layer"] == layer) | frame.attrs["is_tied"]]
    chosen = of_layer if head is None else of_layer[of_layer["head"] == head]
    fastest = float(chosen["lambda1"].abs().max())
    return (
        next((times for times in SLOWNESS if times * fastest >= 1), SLOWNESS[-1])
        if fastest > 0
        else 1.0
    )
