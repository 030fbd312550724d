"""The text of docs/sentences.md: every number comes from what was computed, and which sentence stands is decided by them."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from attnlab.models.sentences import COSINE, TITLES

WIDTH = 128
ORDER = ("real", "embedding", "no_mlp", "no_norm", "attention_only", "no_mask", "tied", "twin", "random")
HEAD = ("stack", "mean cosine", "groups", "effective rank", "turn", "leader", "leading word", "same groups", "same order")
MANY = 9
"""Of ten sentences: what holds in so many or more is said to hold; by coin flips that has p = 0.02."""


def page(found: Sequence[Any], seeds: int, groups: int, times: int) -> str:
    """The page."""
    tied = next(one for one in found if one.tied)
    answers = [(question, says, [(one.name, *answer(one)) for one in found]) for question, says, answer in QUESTIONS]
    parts = [
        "# Ten sentences: how far is the theory from the real stack?",
        filled(f"""
            Written by `python docs/make_sentences.py`. Ten sentences go through each of three trained models: the real stack,
            the stack with pieces taken out, its idealised twin (the theory's flow with the same attention matrices, a unit of
            time a layer, no biases, feed-forward parts or norms; on the sphere of radius sqrt(d) where norms stand after
            attention), and the null: {seeds} stacks with Gaussian weights of the same sizes, which learned nothing. All start
            from the same tokens. A second null is the embedding itself: the guess that the stack does nothing at all. The
            sentences stand in the script.
        """),
        '    attnlab sentence minilm "The cat sat on the mat because it was tired."\n'
        "    attnlab dossier minilm -o dossier.html",
        "## In short", *short(found, answers),
        "## Questions and answers",
        filled("""
            One rule for all comparisons. Right: the twin agrees with the real stack better than random weights, and better
            than the trivial guess (no change at all, the untouched embedding, the usual place of the leader), each in nine of
            ten sentences or more. In part: better than random weights only. No evidence: what the theory says is true, and
            just as true of the null. The rule, the questions about how much and the one about words were settled after a
            first look at these same sentences, and none were kept back for a test; the p, of sign tests, are not corrected
            for that nor for their number. Read them as descriptions.
        """),
        table(("question", *(one.name for one in found)),
              [[question, *(f"{word}: {because}" for _, word, because in cells)] for question, _, cells in answers]),
        "![Mean cosine and effective rank over the layers](images/sentences_depth.png)",
        "![Turn of each stack from the real one](images/sentences_turn.png)",
        "## What the theory gets right", listed(answers, "right"),
        "## What it gets right in part", listed(answers, "in part"),
        "## What it does not get right", listed(answers, "not right"),
        "## What is true and shows nothing", listed(answers, "no evidence"),
        "## One layer, again and again: " + tied.name, *tied_words(tied, times),
        "![The tied layer iterated](images/sentences_tied.png)",
        "## The numbers",
        filled(f"""
            Medians over ten sentences, in brackets the range; an arrow goes from after the first layer to the end. Groups:
            tokens that a chain of cosines of {COSINE:g} or more joins, of all tokens. Effective rank: of the directions, as a
            share of the tokens. Turn: 1 - cosine of a token and itself in the real stack, mean over tokens. Leader: how
            often, after the first layer, the token that receives most attention is that of the real stack; leading word: the
            same among tokens that the model did not add itself. Same groups: adjusted Rand index of {groups} groups (average
            linkage of 1 - cosine) with those of the real stack, 0 by chance. Same order: Spearman's correlation of the
            cosines of all pairs with those of the real stack. One layer tied is layer 0, cosine, groups and rank at four
            times the depth, the rest at the depth itself.
        """),
    ]
    for one in found:
        parts += [f"### {one.name}", filled(places(one)), table(HEAD, rows(one))]
    parts += [
        "## What this does not show",
        filled("""
            Ten short sentences, chosen by us, are no sample of a language, and three small models no sample of transformers.
            The twin is one reading of the theory: a unit of time a layer, all heads of a layer at once, the matrices of each
            layer in turn; for several heads with trained weights no theorem says where it goes, so that its failures here
            contradict none. Rotary positions are left out of it. A stack without a piece that it was trained with is another
            stack: what it does is no proof of what that piece does in the whole. The null has no biases and plain norms.
            Groups depend on the scale; the order of cosines does not.
        """),
    ]
    return "\n\n".join(parts) + "\n"


# ---------------------------------------------------------------------------------------------------------------- numbers


def values(one: Any, variant: str, name: str) -> np.ndarray:
    """A number of a variant for every sentence."""
    return one.rows[one.rows["variant"] == variant].sort_values("sentence")[name].to_numpy(dtype=float)


def middle(one: Any, variant: str, name: str) -> float:
    """Its median."""
    return float(np.median(values(one, variant, name)))


def spread(array: np.ndarray, digits: int = 2) -> str:
    """A median with its range."""
    return f"{np.median(array):.{digits}f} ({array.min():.{digits}f} to {array.max():.{digits}f})"


def sign(more: np.ndarray, less: np.ndarray) -> tuple[int, float]:
    """(in how many sentences it is more, the two-sided p of that by coin flips)."""
    count = int(np.sum(more > less))
    return count, float(stats.binomtest(count, len(more)).pvalue)


def rows(one: Any) -> list[list[str]]:
    """The table of a model."""
    sizes = values(one, "real", "n")
    lines = []
    for variant in ORDER:
        if variant == "no_mask" and not one.model.config.is_causal:
            continue
        line = [{**TITLES, "embedding": "embedding"}[variant]]
        for name, share in (("cosine", 1.0), ("clusters", sizes), ("rank", sizes)):
            end = spread(values(one, variant, name) / share)
            begin = np.median(values(one, variant, f"{name}_first") / share) if variant != "embedding" else np.nan
            line.append(end if begin != begin else f"{begin:.2f} → {end}")
        if variant == "real":
            line += ["", "", "", "", ""]
        else:
            is_same = variant == "tied" and one.model.config.is_tied
            line.append("the same" if is_same else spread(values(one, variant, "turn")))
            for name in ("leader", "word_leader"):
                line.append("–" if variant == "embedding" else percent(values(one, variant, name).mean()))
            line += [f"{middle(one, variant, name):.2f}" for name in ("groups", "order")]
        lines.append(line)
    return lines


def places(one: Any) -> str:
    """What is to be known beside the table."""
    sizes, chance = values(one, "real", "n"), one.chance
    return (f"{sizes.min():.0f} to {sizes.max():.0f} tokens. In the real stack the leader is a token that the model added "
            "itself in "
            f"{percent(values(one, 'real', 'special').mean())} of the layers. Who only knows where it stood in the other nine "
            f"sentences guesses the leader right in {percent(chance['leader'])}, the leading word in "
            f"{percent(chance['word_leader'])}; "
            f"blind guesses of the word are right in {percent(chance['blind'])}. Shuffled groups agree by less than "
            f"{chance['groups']:.2f} in "
            "95 % of the shuffles (mean over sentences).")


# --------------------------------------------------------------------------------------------------------------- questions


def gather(one: Any) -> tuple[str, str]:
    """Do tokens turn towards each other?"""
    start, end, null = (values(one, *key) for key in (("embedding", "cosine"), ("real", "cosine"), ("random", "cosine")))
    count, _ = sign(end, start)
    said = (f"mean cosine {np.median(start):.2f} to {np.median(end):.2f}, up in {count} of {len(end)}; null to "
            f"{np.median(null):.2f}")
    if count < MANY:
        return "not right", said
    return ("no evidence" if sign(null, start)[0] >= MANY else "right"), said


def graded(beside_random: int, beside_trivial: int) -> str:
    """One rule for all comparisons: in how many sentences the twin is better than random weights, and than the trivial guess."""
    if beside_random < MANY:
        return "not right"
    return "right" if beside_trivial >= MANY else "in part"


def as_much_in_the_end(one: Any) -> tuple[str, str]:
    """As much as the theory has it, in the end?"""
    real = values(one, "real", "cosine")
    twin, null, nothing = (np.abs(values(one, name, "cosine") - real) for name in ("twin", "random", "embedding"))
    return _off(twin, null, nothing)


def as_much_on_the_way(one: Any) -> tuple[str, str]:
    """As much as the theory has it, mean over the layers?"""
    curves, layers = one.curves["cosine"], one.model.config.layers
    real = curves["real"][:, : layers + 1]
    twin, null, nothing = (np.abs(curve - real)[:, 1:].mean(axis=1)
                           for curve in (curves["twin"][:, : layers + 1], curves["random"][:, : layers + 1], real[:, :1]))
    return _off(twin, null, nothing)


def _off(twin: np.ndarray, null: np.ndarray, nothing: np.ndarray) -> tuple[str, str]:
    (count, p), (beside, _) = sign(null, twin), sign(nothing, twin)
    return graded(count, beside), (
        f"the twin is off by {np.median(twin):.2f}; null {np.median(null):.2f} (worse in {count} of {len(twin)}, p = {p:.2g}), "
        f"no change at all {np.median(nothing):.2f} (worse in {beside})")


def few(one: Any) -> tuple[str, str]:
    """Few groups in the end?"""
    sizes = values(one, "real", "n")
    real, twin, null = (values(one, name, "clusters") / sizes for name in ("real", "twin", "random"))
    said = f"real {percent(np.median(real))} of the tokens, twin {percent(np.median(twin))}, null {percent(np.median(null))}"
    if (np.median(real) <= 0.5) != (np.median(twin) <= 0.5):
        return "not right", said
    return ("no evidence" if (np.median(null) <= 0.5) == (np.median(real) <= 0.5) else "right"), said


def near(one: Any) -> tuple[str, str]:
    """Is each token where the twin has it?"""
    twin, null, nothing = (values(one, name, "turn") for name in ("twin", "random", "embedding"))
    (count, p), (beside, _) = sign(null, twin), sign(nothing, twin)
    said = (f"turn {np.median(twin):.2f}; nearer than the null ({np.median(null):.2f}) in {count} of {len(twin)} (p = {p:.2g}), "
            "than the "
            f"untouched embedding ({np.median(nothing):.2f}) in {beside}")
    return graded(count, beside), said


def leads_any(one: Any) -> tuple[str, str]:
    """Does the same token lead?"""
    return _leading(one, "leader")


def leads(one: Any) -> tuple[str, str]:
    """Do the same words lead?"""
    return _leading(one, "word_leader")


def _leading(one: Any, name: str) -> tuple[str, str]:
    twin, null, usual = values(one, "twin", name), values(one, "random", name), one.chance[name]
    (count, p), beside = sign(twin, null), int(np.sum(twin > usual))
    return graded(count, beside), (
        f"{percent(twin.mean())} of the layers, null {percent(null.mean())} (less in {count} of {len(twin)}, p = {p:.2g}), "
        f"usual place {percent(usual)} (less in {beside})")


def together(one: Any) -> tuple[str, str]:
    """Are the same tokens together?"""
    twin, null, nothing = (values(one, name, "order") for name in ("twin", "random", "embedding"))
    (count, p), (beside, _) = sign(twin, null), sign(twin, nothing)
    said = (f"order of cosines {np.median(twin):.2f}, null {np.median(null):.2f} (more in {count} of {len(twin)}, p = {p:.2g}), "
            "embedding "
            f"{np.median(nothing):.2f} (more in {beside}); groups {np.mean(values(one, 'twin', 'groups')):.2f}, null "
            f"{np.mean(values(one, 'random', 'groups')):.2f}, embedding {np.mean(values(one, 'embedding', 'groups')):.2f}")
    return graded(count, beside), said


Answer = Callable[[Any], tuple[str, str]]
QUESTIONS: tuple[tuple[str, str, Answer], ...] = (
    ("Do tokens turn towards each other?", "Tokens turn towards each other", gather),
    ("As much as the theory has it, in the end (mean cosine)?", "How much they do so in the end", as_much_in_the_end),
    ("The same, mean over layers?", "How much they do so on the way", as_much_on_the_way),
    ("In the end, few groups or many?", "How many groups there are in the end", few),
    ("Is each token where the theory has it?", "Where each token ends", near),
    ("Does the same token lead?", "Which token leads, those that the model adds included", leads_any),
    ("And among words?", "Which word leads", leads),
    ("Are the same tokens together?", "Which tokens are together", together),
)


def listed(answers: Sequence[Any], *words: str) -> str:
    """The questions that were answered with one of these words, with the models."""
    items = []
    for word in words:
        for _, says, cells in answers:
            models = [name for name, outcome, _ in cells if outcome == word]
            if models:
                items.append(f"{says}: {', '.join(models)}.")
    return "\n".join(filled(item, "- ", "  ") for item in items) if items else "Nothing, by these questions."


# ------------------------------------------------------------------------------------------------------------------- words


def short(found: Sequence[Any], answers: Sequence[Any]) -> list[str]:
    """The findings in a few sentences."""
    counted = Counter(word for _, _, cells in answers for _, word, _ in cells)
    total = sum(counted.values())
    items = [f"Of {total} answers ({len(answers)} questions, {len(found)} models) the theory is right in {counted['right']}, in "
             "part in "
             f"{counted['in part']} (better than random weights, not better than a trivial guess), not right in "
             f"{counted['not right']}; {counted['no evidence']} are no evidence, because weights that learned nothing do the "
             "same."]
    calm = [one for one in found if sign(values(one, "random", "cosine"), values(one, "real", "cosine"))[0] >= MANY]
    if calm:
        items.append("Trained stacks keep tokens farther apart than random ones of the same sizes: the mean cosine at the end is "
                     + ", ".join(f"{middle(one, 'real', 'cosine'):.2f} against {middle(one, 'random', 'cosine'):.2f} ({one.name})"
                                 for one in calm) + ".")
    for piece, words in (("no_mlp", "the feed-forward parts"), ("no_norm", "the norms")):
        freed = [one for one in found if sign(values(one, piece, "cosine"), values(one, "real", "cosine"))[0] >= MANY]
        others = [one for one in found if one not in freed]
        if freed:
            items.append(f"Without {words} tokens gather more: " + ", ".join(change(one, piece) for one in freed) + "."
                         + (" Not so: " + ", ".join(change(one, piece) for one in others) + "." if others else ""))
    pieces = []
    for one in found:
        turns = {name: middle(one, name, "turn") for name in ORDER[2:6]}
        pieces.append((one, min((name for name, turn in turns.items() if turn > 1e-9), key=turns.__getitem__)))
    items.append("Of the pieces, the one whose loss moves the tokens least: "
                 + ", ".join(f"{TITLES[name]} (turn {middle(one, name, 'turn'):.2f}, {one.name})" for one, name in pieces)
                 + "; the twin ends at " + ", ".join(f"{middle(one, 'twin', 'turn'):.2f}" for one in found) + ".")
    special = {name: [float(values(one, name, "special").mean()) for one in found] for name in ("real", "twin", "random")}
    rarely = "hardly ever words" if min(special["real"]) > 0.9 else "not always words"
    items.append(f"The leaders of the real stack are {rarely}: the token that receives most attention is one that the model "
                 "added "
                 "itself in " + ", ".join(f"{percent(share)} "
                                          f"({one.name})" for one, share in zip(found, special["real"], strict=True))
                 + " of the layers; in the twin in " + ", ".join(map(percent, special["twin"]))
                 + ", in the null in " + ", ".join(map(percent, special["random"])) + ".")
    return ["\n".join(filled(item, "- ", "  ") for item in items)]


def change(one: Any, piece: str) -> str:
    """The mean cosine at the end with a piece taken out, beside that of the real stack."""
    return f"{middle(one, piece, 'cosine'):.2f} instead of {middle(one, 'real', 'cosine'):.2f} ({one.name})"


def tied_words(one: Any, times: int) -> list[str]:
    """Does it cluster, into what, how fast, which tokens lead?"""
    sizes = np.array([data.sizes["token"] for data in one.tied])
    counts = np.array([float(data["clusters"].values[-1]) for data in one.tied])
    cosines = np.array([float(data["cosine"].values[-1]) for data in one.tied])
    null_steps = np.array([float(data["passed"].values[-1]) for data in one.tied_null])
    null_counts = np.array([float(data["clusters"].values[-1]) for data in one.tied_null])
    ends = Counter(str(data.attrs["outcome"]) for data in one.tied)
    halves = [first_below(data["clusters"].values / data.sizes["token"], 0.5) for data in one.tied]
    reached = [step for step in halves if step is not None]
    rates = np.array([float(data.attrs["rate"]) for data in one.tied if data.attrs["rate_high"] < 1])
    depth = one.tied[0].attrs["layers"]
    leaders = Counter(leader_word(data, -2) for data in one.tied)
    early = Counter(leader_word(data, 0) for data in one.tied)
    lead = np.array([[np.nanmax(data["received"].values[at]) * data.sizes["token"] for at in (0, -2)] for data in one.tied])
    alike = [same_words(data) for data in one.tied]
    speed = (f"half as many groups as tokens are left after {np.median(reached):.0f} layers ({min(reached)} to {max(reached)}; "
             f"{len(reached)} of "
             f"{len(halves)} reactions), {np.median(reached) / depth:.1f} times the depth of the "
             "model" if reached else "never to half")
    fitted = (f" In {len(rates)} of {len(halves)} the differences inside groups shrink exponentially (95 % interval below 1), "
              "by a "
              f"factor of {spread(rates, 3)} a layer." if len(rates) else "")
    kind = "Into symbols of a kind" if np.nanmean([pair[0] for pair in alike]) > 0.5 else "Not into symbols of a kind"
    does = "It gathers tokens" if np.median(counts / sizes) <= 0.5 else "It hardly gathers tokens"
    into = (f"all of them into one in {int(np.sum(counts == 1))} of "
            f"{len(counts)}" if np.any(counts == 1) else "never all of them into one")
    return [filled(f"""
        All {depth} layers of {one.name} are one, applied here up to {times} times. Does it cluster? {does}: from a median of
        {np.median(sizes):.0f} tokens to {np.median(counts):.0f} groups ({counts.min():.0f} to {counts.max():.0f}), {into};
        the mean cosine ends at {spread(cosines)}. How it ends:
        {', '.join(f'{word} {count}' for word, count in ends.most_common())}. How fast: {speed}.{fitted} With random weights
        there {'is' if null_counts.max() == 1 else 'are'} {null_counts.max():.0f} group{'' if null_counts.max() == 1 else 's'}
        (cosine above 0.99 after {spread(null_steps, 0)} layers), and the twin has {middle(one, 'twin', 'clusters'):.0f} at
        the depth of the model, a mean cosine of {middle(one, 'twin', 'cosine'):.2f}.
    """), filled(f"""
        Into what? {kind}: of the pairs that end in one group {percent(np.nanmean([pair[0] for pair in alike]))} are the same
        symbol, of all pairs {percent(np.mean([pair[1] for pair in alike]))}. Which tokens lead? At the first layer
        {names(early)}; after the last one {names(leaders)} (number of reactions). But where everybody would receive the same,
        the leader receives {spread(lead[:, 0], 1)} times that at first, {spread(lead[:, 1], 1)} times in the end.
    """)]


def first_below(shares: np.ndarray, level: float) -> int | None:
    """The first step from which on shares stay at or below the level."""
    above = np.flatnonzero(~(shares <= level))
    first = int(above[-1]) + 1 if len(above) else 0
    return first if first < len(shares) else None


def leader_word(data: Any, at: int) -> str:
    """The symbol that receives most attention at a step."""
    return str(data["word"].values[int(data["leader"].values[at])])


def same_words(data: Any) -> tuple[float, float]:
    """(the share of same words among pairs in one last group, among all pairs)."""
    upper = np.triu_indices(data.sizes["token"], 1)
    words, label = data["word"].values, data["label"].values[-1]
    is_same = (words[:, None] == words[None])[upper]
    is_joined = (label[:, None] == label[None])[upper]
    return float(is_same[is_joined].mean()) if is_joined.any() else float("nan"), float(is_same.mean())


def names(counted: Counter[str]) -> str:
    """Words with how often."""
    return ", ".join(f"`{word}` {count}" for word, count in counted.most_common())


def percent(share: float) -> str:
    """A share in words."""
    return f"{100 * share:.0f} %"


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(escaped(cell) for cell in line) + " |" for line in [head, ["---"] * len(head), *lines])


def escaped(text: str) -> str:
    """The text with _, < and * of the mathematics escaped outside code."""
    pieces = text.split("`")
    pieces[::2] = [piece.replace("_", r"\_").replace("<", r"\<").replace("*", r"\*") for piece in pieces[::2]]
    return "`".join(pieces)


def filled(text: str, first: str = "", other: str = "") -> str:
    """A paragraph in lines."""
    return textwrap.fill(escaped(" ".join(text.split())), WIDTH, initial_indent=first, subsequent_indent=other,
                         break_long_words=False, break_on_hyphens=False)
