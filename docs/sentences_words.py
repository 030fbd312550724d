"""The text of docs/sentences.md: every number comes from what was computed, and which sentence stands is decided by them."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from attnlab.models.sentences import COSINE, TITLES

WIDTH = 128
NULLS = ("random", "untrained")
ORDER = ("real", "embedding", "no_mlp", "no_norm", "attention_only", "no_mask", "tied", "twin", *NULLS)
PIECES = {"no_mlp": "the feed-forward parts", "no_norm": "the norms", "attention_only": "both", "no_mask": "the mask"}
HEAD = ("stack", "mean cosine", "groups", "effective rank", "turn", "leader", "leading word", "same groups", "same order")
WORDS = ("right", "in part", "no evidence", "not right")
MANY = 9
"""Of ten sentences: what holds in so many or more is said to hold; by coin flips that has p = 0.02."""

TIED = 1e-9
"""Numbers nearer than this are the same."""

FAR = 0.3
"""A turn from which on the page of a model (`attnlab dossier`) calls tokens far from where the theory has them."""

ALIKE = 0.02
"""Turns that differ by less are as good as the same."""

INERT = 0.05
"""A stack that turns its tokens by less than this from where they start does next to nothing."""


def page(found: Sequence[Any], seeds: int, groups: int, times: int) -> str:
    """The page."""
    tied = next(one for one in found if one.tied)
    first, fresh = ([answered(each) for each in sets] for sets in (found, [one.fresh for one in found]))
    tests = len(corrected(first[0]))
    parts = [
        "# Ten sentences, and ten fresh ones: how far is the theory from the real stack?",
        filled("""
            Written by `python docs/make_sentences.py`. Sentences go through three trained models, and beside each through
            other stacks that read the same embedded tokens:
        """),
        "\n".join(filled(item, "- ", "  ") for item in stack_words(found, seeds)),
        "To see for yourself:",
        '    attnlab sentence minilm "The cat sat on the mat because it was tired."\n'
        "    attnlab dossier minilm -o dossier.html",
        "## In short", "\n".join(filled(item, "- ", "  ") for item in short(found, first, fresh)),
        "## Questions and answers",
        filled(f"""
            One rule for all comparisons. The twin's agreement with the real stack is compared with that of both nulls and of
            a trivial guess: that nothing changes, or, for leaders, the place where the leader stands in most of the other
            sentences. Better means better in {MANY} of ten sentences or more; a tie is not better. Right: better than all
            three. In part: better than both nulls, but not than the trivial guess, or still far off (a turn of {FAR:g} or
            more). No evidence: better than the trivial guess, or in full agreement, but at least one null, which is named,
            does as well. Not right: all else. The first question is about the real stack itself: is its mean cosine above
            that of the embedding, and farther above it than that of the nulls? The fourth is answered with few or many (up
            to half as many groups as tokens, or more), and a null does as well if its answer is that of the real stack.
        """),
        filled("""
            The questions and the first rule were settled after a first look at the first ten sentences, and the second null
            and its place in the rule came after a review of that, so grades on these ten are descriptions. The fresh
            sentences are the test: they and the rule were fixed before any result on them was seen, and they were not
            exchanged. But two corners of the rule were mended after that, for both sets: full agreement, which nothing can
            better, was called not right, and better but far off was called right.
        """ + f" {unmended_words(found, first, fresh)}"),
        table(("question", *(name for one in found for name in (one.name, "fresh sentences"))),
              [[f"{at + 1}. {question}",
                *(cell for a, b in zip(first, fresh, strict=True) for cell in (said(a[at]), said(b[at])))]
               for at, (question, _) in enumerate(QUESTIONS)]),
        "![Mean cosine and effective rank over the layers](images/sentences_depth.png)",
        "![Turn of each stack from the real one](images/sentences_turn.png)",
        "## What the grades are made of",
        filled(f"""
            The first ten sentences. Medians over sentences, for leaders means; of the nulls, the mean over {seeds} stacks
            first. After the colon: in how many of ten sentences the twin (in the first row the real stack) is better, and p:
            of the sign test, two-sided, ties dropped, after Holm for the {tests} tests of a model on ten sentences
            ({2 * tests * len(found)} in all). So p is small also where the twin is worse. By itself 10 of 10 has p = 0.002
            and {MANY} of 10, enough for the rule, 0.021; after Holm the least p of {MANY} of 10 is
            {least_p([*first, *fresh]):.2g} here. The stacks of a null are the same for all sentences, so p speaks about
            other sentences, not about other stacks. A control of
            question 5: the twin's turn from its own tokens in the real stack, and from the other tokens of the sentence, is
            {', '.join(control_words(one) for one in found)}; on fresh sentences {', '.join(control_words(one.fresh) for one in
            found)}. Where the two are the same, the twin knows nothing about which token is where.
        """),
    ]
    for one, answers in zip(found, first, strict=True):
        parts += [f"**{one.name}**", answer_table(answers)]
    parts += ["## The same, fresh sentences"]
    for one, answers in zip(found, fresh, strict=True):
        parts += [f"**{one.name}**", answer_table(answers)]
    parts += [
        "## One layer, again and again: " + tied.name, *tied_words(tied, times, seeds),
        "![The tied layer iterated](images/sentences_tied.png)",
        "## The numbers",
        filled(f"""
            The first ten sentences: medians, in brackets the range, where there is one to two digits; an arrow goes from
            after the first layer to the end. Of the nulls, each number is the mean over {seeds} stacks. Groups: tokens that a
            chain of cosines of {COSINE:g} or more joins, of all tokens. Effective rank: of the directions, as a share of the
            tokens. Turn: 1 - cosine of a token and itself in the real stack, mean over tokens. Leader: how often, after the
            first layer, the token that receives most attention is that of the real stack; leading word: the same among
            tokens that the model did not add itself. Same groups: adjusted Rand index of {groups} groups (average linkage of
            1 - cosine) with those of the real stack, 0 by chance. Same order: Spearman's correlation of the cosines of all
            pairs with those of the real stack. One layer tied is layer 0, cosine, groups and rank at four times the depth,
            the rest at the depth itself.
        """),
    ]
    for one in found:
        parts += [f"### {one.name}", filled(places(one)), table(HEAD, rows(one))]
    parts += [
        "## What this does not show",
        filled(f"""
            Twenty short sentences, chosen by us, are no sample of a language, and three small models no sample of
            transformers. The fresh sentences are of the same kind as the first, by the same hand: they test whether grades
            hold for more of the same. {seeds} stacks are few, and both nulls read the trained embedding, have no biases and
            plain norms; where the two differ, what weights that learned nothing do is a matter of their size. Untrained is
            one size for all matrices, as the config has it; some trainings draw output matrices smaller.
        """),
        filled("""
            The twin is one reading of the theory: a unit of time a layer, all heads of a layer at once, the matrices of each
            layer in turn; for several heads with trained weights no theorem says where it goes, so that its failures here
            contradict none. Grades depend on that reading: an earlier version of this page let the twin of stories15m start
            from much longer tokens, where it hardly moved, and so was called right about how much tokens gather. The twin
            has no biases, rotary positions or final norm; the real stack's last step has its final norm where the model has
            one. A stack without a piece that it was trained with is another stack: what it does is no proof of what that
            piece does in the whole. Groups depend on the scale; the order of cosines does not.
        """),
    ]
    return "\n\n".join(parts) + "\n"


def stack_words(found: Sequence[Any], seeds: int) -> list[str]:
    """What the stacks are."""
    post, pre = ([one for one in found if one.config.is_pre_norm == is_pre] for is_pre in (False, True))
    norms = ", ".join(f"{middle(one, 'real', 'norm_first'):.1f} in {one.name}, where sqrt(d) is {np.sqrt(one.config.d):.1f}"
                      for one in post)
    sizes = ", ".join(f"{one.sizes[0]:.3f} ({one.name})" for one in found)
    initial = sorted({f"{one.sizes[1]:g}" for one in found})
    return [
        "The real stack, and the real stack with pieces taken out.",
        "The idealised twin: the theory's flow with the same attention matrices, a unit of time a layer, without biases and "
        f"feed-forward parts. In models with norms after attention ({listed(post)}) it starts from the same directions, put "
        f"on the sphere of radius sqrt(d), and stays there; the tokens' own norms are smaller (mean {norms}), so only "
        f"directions are compared. In models with norms before it ({listed(pre)}) it starts from the same tokens, and "
        "x' = sum over heads of P_h(u) V_h u, u the normed x: the norm stays, the sphere does not.",
        f"Two nulls, {seeds} stacks each, Gaussian matrices that learned nothing, after the model's own embedding. Random "
        f"weights have the size of each trained matrix (median root mean square {sizes}); untrained weights that before "
        f"training (standard deviation {', '.join(initial)}, the config's or, where it says nothing, the usual one).",
        "The embedding, untouched: the guess that the stack does nothing at all.",
    ]


# ------------------------------------------------------------------------------------------------------------- statistics


@dataclass(frozen=True)
class Sign:
    """In how many sentences something is better, worse, the same, and the two-sided p of that by coin flips without ties."""

    wins: int
    losses: int
    ties: int
    p: float

    @property
    def is_better(self) -> bool:
        """Whether in so many sentences that it is said to be so."""
        return self.wins >= MANY


def sign(more: np.ndarray, less: np.ndarray) -> Sign:
    """The sign test of more > less over sentences."""
    difference = np.asarray(more, dtype=float) - np.asarray(less, dtype=float)
    wins, losses = int(np.sum(difference > TIED)), int(np.sum(difference < -TIED))
    p = float(stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
    return Sign(wins, losses, len(difference) - wins - losses, p)


def holm(ps: Sequence[float]) -> np.ndarray:
    """The p of several tests, corrected for their number by Holm's steps."""
    given = np.asarray(ps, dtype=float)
    order = np.argsort(given, kind="stable")
    result = np.empty(len(given))
    result[order] = np.minimum(np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1)), 1.0)
    return result


def graded(beside_nulls: Mapping[str, Sign], beside_trivial: Sign, is_full: bool = False,
           is_far: bool = False) -> tuple[str, tuple[str, ...]]:
    """(the word, the nulls that do as well): one rule for all comparisons of the twin.

    is_full: it agrees so well that nothing could be better;  is_far: it is far off, however much better than others
    """
    same = tuple(null for null, test in beside_nulls.items() if not test.is_better)
    if same:
        return ("no evidence" if beside_trivial.is_better or is_full else "not right"), same
    return ("right" if beside_trivial.is_better and not is_far else "in part"), same


def graded_statement(is_true: bool, nulls_do_it: Mapping[str, bool]) -> tuple[str, tuple[str, ...]]:
    """(the word, the nulls that do the same), for what is true or not of the real stack."""
    if not is_true:
        return "not right", ()
    same = tuple(null for null, does in nulls_do_it.items() if does)
    return ("no evidence" if same else "right"), same


# ---------------------------------------------------------------------------------------------------------------- numbers


def seeded(one: Any, variant: str, name: str) -> np.ndarray:
    """A number of a variant, (sentences, seeds)."""
    rows = one.rows[one.rows["variant"] == variant]
    return rows.pivot(index="sentence", columns="seed", values=name).sort_index().to_numpy(dtype=float)


def values(one: Any, variant: str, name: str) -> np.ndarray:
    """A number of a variant for every sentence, the mean over seeds."""
    return seeded(one, variant, name).mean(axis=1)


def middle(one: Any, variant: str, name: str) -> float:
    """Its median."""
    return float(np.median(values(one, variant, name)))


def off(one: Any, variant: str) -> np.ndarray:
    """How far the mean cosine at the end is from that of the real stack, for every sentence; of a null the mean of its stacks."""
    return np.abs(seeded(one, variant, "cosine") - seeded(one, "real", "cosine")).mean(axis=1)


def off_on_the_way(one: Any, variant: str) -> np.ndarray:
    """The same, mean over the layers; "embedding": as it starts."""
    curves = one.curves["cosine"]
    real = curves["real"]                                                       # (sentences, 1, steps)
    curve = real[..., :1] if variant == "embedding" else curves[variant]
    return np.abs(curve - real)[..., 1:].mean(axis=(1, 2))


def spread(array: np.ndarray, digits: int = 2) -> str:
    """A median with its range, where there is one to these digits."""
    middle, low, high = (f"{value:.{digits}f}" for value in (np.median(array), array.min(), array.max()))
    return middle if low == high else f"{middle} ({low} to {high})"


def inert(one: Any) -> list[str]:
    """The pieces without which the stack does next to nothing, because tokens stay where they start."""
    return [piece for piece in PIECES if piece in set(one.rows["variant"]) and middle(one, piece, "moved") < INERT]


def rows(one: Any) -> list[list[str]]:
    """The table of a model."""
    sizes = values(one, "real", "n")
    lines = []
    for variant in ORDER:
        if variant == "no_mask" and not one.config.is_causal:
            continue
        line = [{**TITLES, "embedding": "embedding"}[variant] + (" (inert)" if variant in inert(one) else "")]
        for name, share in (("cosine", 1.0), ("clusters", sizes), ("rank", sizes)):
            end = spread(values(one, variant, name) / share)
            begin = np.median(values(one, variant, f"{name}_first") / share) if variant != "embedding" else np.nan
            line.append(end if begin != begin else f"{begin:.2f} → {end}")
        if variant == "real":
            line += ["", "", "", "", ""]
        else:
            is_same = variant == "tied" and one.config.is_tied
            line.append("the same" if is_same else spread(values(one, variant, "turn")))
            for name in ("leader", "word_leader"):
                line.append("–" if variant == "embedding" else percent(values(one, variant, name).mean()))
            line += [f"{middle(one, variant, name):.2f}" for name in ("groups", "order")]
        lines.append(line)
    return lines


def places(one: Any) -> str:
    """What is to be known beside the table."""
    sizes, chance = values(one, "real", "n"), one.chance
    words = (f"{sizes.min():.0f} to {sizes.max():.0f} tokens. In the real stack the leader is a token that the model added "
             f"itself in {percent(values(one, 'real', 'special').mean())} of the layers. Who only knows where it stood in the "
             f"other nine sentences guesses the leader right in {percent(chance['leader'].mean())}, the leading word in "
             f"{percent(chance['word_leader'].mean())}; blind guesses of the word are right in {percent(chance['blind'])}. "
             f"Shuffled groups agree by less than {chance['groups']:.2f} in 95 % of the shuffles (mean over sentences).")
    if pieces := inert(one):
        words += (f" Inert: tokens enter with norms of {middle(one, 'real', 'norm_first'):.1f}, and where no norm makes them "
                  "longer the layers hardly read them, so that in the end they have turned by "
                  + " and ".join(f"{middle(one, piece, 'moved'):.3f} ({TITLES[piece]})" for piece in pieces)
                  + " from the embedding: these rows say what the embedding says, and nothing about what norms do.")
    if one.config.is_causal:
        words += (" Under a causal mask the first token is seen by all: it leads in any stack whose attention is nearly uniform, "
                  "so agreeing about the leader is easy here.")
    return words


# --------------------------------------------------------------------------------------------------------------- questions


@dataclass(eq=False)
class Answer:
    """The word, the nulls that do as well, what the theory has in words, and beside it the nulls and the trivial guess."""

    word: str
    same: tuple[str, ...]
    theory: str
    beside: dict[str, tuple[str, Sign | None]]
    p: dict[str, float] = field(default_factory=dict)                           # corrected


Put = Callable[[np.ndarray], str]


def median_put(array: np.ndarray) -> str:
    """A median in words."""
    return f"{np.median(array):.2f}"


def mean_put(array: np.ndarray) -> str:
    """A mean share in words."""
    return percent(float(array.mean()))


def compared(twin: np.ndarray, nulls: Mapping[str, np.ndarray], trivial: np.ndarray, is_more: bool, put: Put,
             far: float = np.inf) -> Answer:
    """The twin beside the nulls and the trivial guess.

    is_more: whether more is better, and 1 the most, or less, and 0 the least;  far: from which median on the twin is far off
    """
    def test(other: np.ndarray) -> Sign:
        return sign(twin, other) if is_more else sign(other, twin)

    tests = {null: test(array) for null, array in nulls.items()}
    best = np.ones(len(twin)) if is_more else np.zeros(len(twin))
    is_full = int(np.sum(np.abs(twin - best) <= TIED)) >= MANY
    word, same = graded(tests, test(trivial), is_full, is_far=float(np.median(twin)) >= far)
    return Answer(word, same, put(twin), {null: (put(nulls[null]), tests[null]) for null in nulls}
                  | {"trivial": (put(trivial), test(trivial))})


def of_all(one: Any, measure: Callable[[Any, str], np.ndarray]) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """A number of the twin, of the nulls, of the embedding."""
    return measure(one, "twin"), {null: measure(one, null) for null in NULLS}, measure(one, "embedding")


def gather(one: Any) -> Answer:
    """Do tokens turn towards each other?"""
    start, end = values(one, "embedding", "cosine"), values(one, "real", "cosine")
    nulls = {null: values(one, null, "cosine") for null in NULLS}
    up, beside = sign(end, start), {null: sign(end, nulls[null]) for null in NULLS}
    does = {null: sign(nulls[null], start).is_better and not beside[null].is_better for null in NULLS}
    word, same = graded_statement(up.is_better, does)
    return Answer(word, same, f"up, to {middle(one, 'twin', 'cosine'):.2f}; real stack {np.median(end):.2f}",
                  {null: (median_put(nulls[null]), beside[null]) for null in NULLS} | {"trivial": (median_put(start), up)})


def few(one: Any) -> Answer:
    """Few groups in the end?"""
    sizes = values(one, "real", "n")
    shares = {name: values(one, name, "clusters") / sizes for name in ("real", "twin", *NULLS, "embedding")}
    agree = {name: int(np.sum((share <= 0.5) == (shares["real"] <= 0.5))) for name, share in shares.items()}

    def put(name: str) -> str:
        return f"{percent(np.median(shares[name]))} of the tokens: agrees in {agree[name]}"

    word, same = graded_statement(agree["twin"] >= MANY, {null: agree[null] >= MANY for null in NULLS})
    return Answer(word, same, f"{put('twin')}; real stack {percent(np.median(shares['real']))}",
                  {null: (put(null), None) for null in NULLS} | {"trivial": (put("embedding"), None)})


def as_much_in_the_end(one: Any) -> Answer:
    """How far off is the mean cosine at the end?"""
    return compared(*of_all(one, off), is_more=False, put=median_put)


def as_much_on_the_way(one: Any) -> Answer:
    """How far off is it, mean over the layers?"""
    return compared(*of_all(one, off_on_the_way), is_more=False, put=median_put)


def near(one: Any) -> Answer:
    """Is each token where the twin has it?"""
    return compared(*of_all(one, lambda one, name: values(one, name, "turn")), is_more=False, put=median_put, far=FAR)


def together(one: Any) -> Answer:
    """Are the same tokens together?"""
    return compared(*of_all(one, lambda one, name: values(one, name, "order")), is_more=True, put=median_put)


def leads_any(one: Any) -> Answer:
    """Does the same token lead?"""
    return _leading(one, "leader")


def leads(one: Any) -> Answer:
    """Do the same words lead?"""
    return _leading(one, "word_leader")


def _leading(one: Any, name: str) -> Answer:
    nulls = {null: values(one, null, name) for null in NULLS}
    return compared(values(one, "twin", name), nulls, one.chance[name], is_more=True, put=mean_put)


QUESTIONS: tuple[tuple[str, Callable[[Any], Answer]], ...] = (
    ("Do tokens turn towards each other (mean cosine)?", gather),
    ("As much as the theory has it, in the end (error of the mean cosine)?", as_much_in_the_end),
    ("The same, mean over layers?", as_much_on_the_way),
    ("In the end, few groups or many?", few),
    ("Is each token where the theory has it (turn)?", near),
    ("Does the same token lead (share of layers)?", leads_any),
    ("And among words?", leads),
    ("Are the same tokens together (order of cosines)?", together),
)


def answered(one: Any) -> list[Answer]:
    """All questions to one model, with the p of all their tests corrected together."""
    answers = [answer(one) for _, answer in QUESTIONS]
    for (answer, name), p in corrected(answers).items():
        answer.p[name] = p
    return answers


def corrected(answers: Sequence[Answer]) -> dict[tuple[Answer, str], float]:
    """The p of every test behind these answers, after Holm."""
    tests = {(answer, name): test.p for answer in answers for name, (_, test) in answer.beside.items() if test is not None}
    return dict(zip(tests, (float(p) for p in holm(list(tests.values()))), strict=True))


def control_words(one: Any) -> str:
    """How far the twin's tokens are from their own and from other tokens of the real stack."""
    return f"{middle(one, 'twin', 'turn'):.3f} and {middle(one, 'twin', 'turn_others'):.3f} ({one.name})"


def least_p(sets: Sequence[Sequence[Answer]]) -> float:
    """The least corrected p of what is better, or worse, in just so many sentences that the rule holds."""
    return min((answer.p[name] for answers in sets for answer in answers for name, (_, test) in answer.beside.items()
                if test is not None and test.ties == 0 and MANY in (test.wins, test.losses)), default=float("nan"))


def said(answer: Answer) -> str:
    """The grade, with the nulls that do as well where that decides."""
    if answer.word != "no evidence":
        return answer.word
    return f"no evidence: {'both nulls do' if len(answer.same) == len(NULLS) else TITLES[answer.same[0]] + ' do'} as well"


def unmended_words(found: Sequence[Any], first: Sequence[Sequence[Answer]], fresh: Sequence[Sequence[Answer]]) -> str:
    """What the rule said before its corners were mended."""
    items: dict[str, list[str]] = {}
    for which, sets in (("first", first), ("fresh", fresh)):
        for one, answers in zip(found, sets, strict=True):
            for number, answer in enumerate(answers, 1):
                tests = {name: test for name, (_, test) in answer.beside.items() if test is not None}
                if len(tests) < len(NULLS) + 1 or number == 1:
                    continue
                word, _ = graded({null: tests[null] for null in NULLS}, tests["trivial"])
                if word != answer.word:
                    items.setdefault(f"{one.name}, question {number}: {word} is now {answer.word}", []).append(which)
    changed, total = sum(map(len, items.values())), sum(map(len, [*first, *fresh]))
    listed_ones = "; ".join(f"{words}, {' and '.join(sets)}" for words, sets in items.items())
    return f"That changed {changed} of {total} grades ({listed_ones})." if items else "No grade changed."


def answer_table(answers: Sequence[Answer]) -> str:
    """What the grades are made of."""
    def cell(answer: Answer, name: str) -> str:
        number, test = answer.beside[name]
        if test is None:
            return number
        ties = f", {test.ties} tie{'s' if test.ties > 1 else ''}" if test.ties else ""
        return f"{number}: {test.wins} of {test.wins + test.losses + test.ties}{ties}, p = {answer.p[name]:.2g}"

    head = ("question", "grade", "theory", *(TITLES[null] for null in NULLS), "trivial guess")
    return table(head, [[f"{number}. {question}", said(answer), answer.theory,
                         *(cell(answer, name) for name in (*NULLS, "trivial"))]
                        for number, ((question, _), answer) in enumerate(zip(QUESTIONS, answers, strict=True), 1)])


# ------------------------------------------------------------------------------------------------------------------- words


def short(found: Sequence[Any], first: Sequence[Sequence[Answer]], fresh: Sequence[Sequence[Answer]]) -> list[str]:
    """The findings in a few sentences."""
    counts, again = (Counter(answer.word for answers in sets for answer in answers) for sets in (first, fresh))
    pairs = [(a.word, b.word) for one, other in zip(first, fresh, strict=True) for a, b in zip(one, other, strict=True)]
    same = sum(a == b for a, b in pairs)
    items = [f"Of {len(pairs)} grades ({len(QUESTIONS)} questions, {len(found)} models), on the first ten sentences and on the "
             "fresh ones: " + ", ".join(f"{word} {counts[word]} and {again[word]}" for word in WORDS)
             + f". {same} of {len(pairs)} are the same on both. " + kept_words(found, first, fresh)]
    for null, words in (("random", "random weights, of the sizes that training gave"), ("untrained", "untrained weights")):
        items.append(f"Beside {words}, the tokens of the real stack end (mean cosine) " + beside_words(found, "real", null, (
            "closer together", "farther apart", "neither closer nor farther")) + ".")
    for piece in ("no_mlp", "no_norm"):
        items.append(f"Without {PIECES[piece]} tokens gather " + beside_words(found, piece, "real", ("more", "less", "as much"))
                     + "." + inert_words(found, piece))
    items.append("The piece whose loss moves the tokens least: " + "; ".join(least_words(one) for one in found) + ".")
    special = {name: [float(values(one, name, "special").mean()) for one in found] for name in ("real", "twin", *NULLS)}
    rarely = "hardly ever words" if min(special["real"]) > 0.9 else "not always words"
    items.append(f"The leaders of the real stack are {rarely}: the token that receives most attention is one that the model "
                 "added itself in " + ", ".join(f"{percent(share)} ({one.name})"
                                                for one, share in zip(found, special["real"], strict=True))
                 + " of the layers; in the twin in " + ", ".join(map(percent, special["twin"]))
                 + "; with random weights in " + ", ".join(map(percent, special["random"]))
                 + ", with untrained ones in " + ", ".join(map(percent, special["untrained"])) + ".")
    return items


def kept_words(found: Sequence[Any], first: Sequence[Sequence[Answer]], fresh: Sequence[Sequence[Answer]]) -> str:
    """What is right, or right in part, both times; and what was so once only."""
    both, once = [], []
    for one, answers, again in zip(found, first, fresh, strict=True):
        for number, (a, b) in enumerate(zip(answers, again, strict=True)):
            good = [answer.word in ("right", "in part") for answer in (a, b)]
            if any(good):
                which = a.word if a.word == b.word else f"{a.word}, fresh {b.word}"
                words = f"“{QUESTIONS[number][0]}” ({one.name}: {which}{exchanged_words(one, number)})"
                (both if all(good) else once).append(words)
    kept = f"Right or in part both times: {'; '.join(both)}." if both else "Nothing is right or in part both times."
    return kept + (f" Once only: {'; '.join(once)}." if once else "")


def exchanged_words(one: Any, number: int) -> str:
    """Of the question where tokens are: whether the twin is as near to the other tokens of the real stack."""
    if QUESTIONS[number][1] is not near:
        return ""
    own, others = middle(one, "twin", "turn"), middle(one, "twin", "turn_others")
    if others - own >= ALIKE:
        return f"; {own:.2f}, and {others:.2f} from other tokens"
    return (f"; but the turn is {own:.2f} from its own token and {others:.2f} from the others: a direction that all share, and "
            "not where each token is")


def beside_words(found: Sequence[Any], variant: str, other: str, words: tuple[str, str, str]) -> str:
    """In which models the mean cosine at the end is above that of another stack, in which below, in which neither."""
    sets: dict[str, list[str]] = {word: [] for word in words}
    for one in found:
        more, less = values(one, variant, "cosine"), values(one, other, "cosine")
        word = words[0] if sign(more, less).is_better else words[1] if sign(less, more).is_better else words[2]
        sets[word].append(f"{one.name} ({np.median(more):.2f} against {np.median(less):.2f})")
    return "; ".join(f"{word} in {', '.join(models)}" for word, models in sets.items() if models)


def inert_words(found: Sequence[Any], piece: str) -> str:
    """Where taking a piece out leaves a stack that does nothing."""
    models = [one.name for one in found if piece in inert(one)]
    return f" In {', '.join(models)} that stack is inert, tokens stay where they start (see below): no finding." if models else ""


def least_words(one: Any) -> str:
    """Which piece moves the tokens least when taken out, if one does in nine of ten sentences, beside the embedding."""
    turns = {piece: values(one, piece, "turn") for piece in PIECES if piece != "no_mask" or one.config.is_causal}
    start = values(one, "embedding", "turn")
    least = min(turns, key=lambda piece: float(np.median(turns[piece])))
    wins = int(np.sum(np.all([turns[piece] - turns[least] > TIED for piece in turns if piece != least], axis=0)))
    if wins < MANY:
        return f"none in {one.name} (the first by its median, {TITLES[least]}, is least in {wins} of {len(start)})"
    beside = sign(start, turns[least])
    tail = "" if beside.is_better else ", so that it says no more than a stack that does nothing"
    return (f"{TITLES[least]} in {one.name} (turn {np.median(turns[least]):.2f}, least in {wins} of {len(start)}; the untouched "
            f"embedding {np.median(start):.2f}, farther in {beside.wins}{tail})")


def tied_words(one: Any, times: int, seeds: int) -> list[str]:
    """Does it cluster, into what, how fast, which tokens lead?"""
    sizes = np.array([data.sizes["token"] for data in one.tied])
    counts = np.array([float(data["clusters"].values[-1]) for data in one.tied])
    cosines = np.array([float(data["cosine"].values[-1]) for data in one.tied])
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
             f"{len(reached)} of {len(halves)} reactions), {np.median(reached) / depth:.1f} times the depth of the "
             "model" if reached else "never to half")
    fitted = (f" In {len(rates)} of {len(halves)} the differences inside groups shrink exponentially (95 % interval below 1), "
              f"by a factor of {spread(rates, 3)} a layer." if len(rates) else "")
    kind = "Into symbols of a kind" if np.nanmean([pair[0] for pair in alike]) > 0.5 else "Not into symbols of a kind"
    does = "It gathers tokens" if np.median(counts / sizes) <= 0.5 else "It hardly gathers tokens"
    into = (f"all of them into one in {int(np.sum(counts == 1))} of "
            f"{len(counts)}" if np.any(counts == 1) else "never all of them into one")
    return [filled(f"""
        All {depth} layers of {one.name} are one, applied here up to {times} times. Does it cluster? {does}: from a median of
        {np.median(sizes):.0f} tokens to {np.median(counts):.0f} groups ({counts.min():.0f} to {counts.max():.0f}), {into};
        the mean cosine ends at {spread(cosines)}. How it ends:
        {', '.join(f'{word} {count}' for word, count in ends.most_common())}. How fast: {speed}.{fitted}
    """), filled(f"""
        Layers that learned nothing ({seeds} of each null): {'; '.join(null_words(one, null) for null in NULLS)}.
        {learned_words(one)} The twin has {middle(one, 'twin', 'clusters'):.0f} group at the depth of the model, a mean cosine of
        {middle(one, 'twin', 'cosine'):.2f}.
    """), filled(f"""
        Into what? {kind}: of the pairs that end in one group {percent(np.nanmean([pair[0] for pair in alike]))} are the same
        symbol, of all pairs {percent(np.mean([pair[1] for pair in alike]))}. Which tokens lead? At the first layer
        {names(early)}; after the last one {names(leaders)} (number of reactions). But where everybody would receive the same,
        the leader receives {spread(lead[:, 0], 1)} times that at first, {spread(lead[:, 1], 1)} times in the end.
    """)]


def learned_words(one: Any) -> str:
    """What of the iteration a layer that learned nothing does too."""
    counts = np.array([float(data["clusters"].values[-1]) for data in one.tied])
    do_all = [null for null in NULLS if all(float(data["clusters"].values[-1]) == 1 for data in one.tied_null[null])]
    if np.median(counts) > 1 and len(do_all) == len(NULLS):
        return (f"So that a tied layer gathers its tokens is no sign of learning; that {one.name}'s own still has several groups "
                f"after {one.tied[0].attrs['times']} layers in {int(np.sum(counts > 1))} of {len(counts)} reactions is what no "
                "null does.")
    return f"All tokens in one group, always: {', '.join(TITLES[null] for null in do_all) or 'in neither null'}."


def null_words(one: Any, null: str) -> str:
    """What tied layers of a null do, over all seeds and sentences."""
    steps = np.array([float(data["passed"].values[-1]) for data in one.tied_null[null]])
    counts = np.array([float(data["clusters"].values[-1]) for data in one.tied_null[null]])
    cosines = np.array([float(data["cosine"].values[-1]) for data in one.tied_null[null]])
    last, level = one.tied_null[null][0].attrs["times"], float(one.tied_null[null][0]["level"].values[-1])
    there = np.isfinite(steps)
    passed = (f"above {level:g} after {spread(steps[there], 0)} layers" + (
        "" if there.all() else f" in {there.sum()} of {len(there)}")) if there.any() else f"never above {level:g}"
    ends = f"{spread(counts, 0)} group{'' if counts.max() == 1 else 's'}"
    return f"{TITLES[null]}, followed for {last} layers, end in {ends}, mean cosine {spread(cosines)} ({passed})"


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


def listed(found: Sequence[Any]) -> str:
    """Names of models."""
    return ", ".join(one.name for one in found)
