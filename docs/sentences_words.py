"""The text of docs/sentences.md: every number comes from what was computed, and which sentence stands is decided by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sentences_grades import (
    FAR,
    MANY,
    NULLS,
    PIECES,
    QUESTIONS,
    TIED,
    WORDS,
    Answer,
    answered,
    corrected,
    graded,
    inert,
    least_p,
    middle,
    near,
    said,
    sign,
    values,
)
from sentences_text import filled, listed, names, percent, spread, table

from attnlab.models.studies.sentences import COSINE, TITLES

ORDER = ("real", "embedding", "no_mlp", "no_norm", "attention_only", "no_mask", "tied", "twin", *NULLS)
HEAD = ("stack", "mean cosine", "groups", "effective rank", "turn", "leader", "leading word", "same groups", "same order")
ALIKE = 0.02
"""Turns that differ by less are as good as the same."""


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
            One rule for all comparisons. The idealised model's agreement with the real stack is compared with that of both
            nulls and of
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
            first. After the colon: in how many of ten sentences the idealised model (in the first row the real stack) is
            better, and p:
            of the sign test, two-sided, ties dropped, after Holm for the {tests} tests of a model on ten sentences
            ({2 * tests * len(found)} in all). So p is small also where the idealised model is worse. By itself 10 of 10 has p
            = 0.002
            and {MANY} of 10, enough for the rule, 0.021; after Holm the least p of {MANY} of 10 is
            {least_p([*first, *fresh]):.2g} here. The stacks of a null are the same for all sentences, so p speaks about
            other sentences, not about other stacks. A control of
            question 5: the idealised model's turn from its own tokens in the real stack, and from the other tokens of the
            sentence, is
            {', '.join(control_words(one) for one in found)}; on fresh sentences {', '.join(control_words(one.fresh) for one in
            found)}. Where the two are the same, the idealised model knows nothing about which token is where.
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
            first layer, the token that receives most attention is that of the real stack, special tokens ([CLS], <s>) included;
            leading word: the same with special tokens left out. Same groups: adjusted Rand index of {groups} groups
            (average linkage of
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
            The idealised model is one reading of the theory: a unit of time a layer, all heads of a layer at once, the
            matrices of each
            layer in turn; for several heads with trained weights no theorem says where it goes, so that its failures here
            contradict none. Grades depend on that reading: an earlier version of this page let the idealised model of
            stories15m start
            from much longer tokens, where it hardly moved, and so was called right about how much tokens gather. The idealised
            model
            has no biases, rotary positions or final norm; the real stack's last step has its final norm where the model has
            one. A stack without a piece that it was trained with is another stack: what it does is no proof of what that
            piece does in the whole. Groups depend on the scale; the order of cosines does not.
        """),
    ]
    return "\n\n".join(parts) + "\n"


def stack_words(found: Sequence[Any], seeds: int) -> list[str]:
    """What the stacks are."""
    post, pre = ([one for one in found if one.config.is_pre_norm == is_pre] for is_pre in (False, True))
    norms = ", ".join(f"{middle(one, 'real', 'norm_first'):.1f} in {one.name}" for one in post)
    sizes = ", ".join(f"{one.sizes[0]:.3f} ({one.name})" for one in found)
    initial = sorted({f"{one.sizes[1]:g}" for one in found})
    return [
        "The real stack, and the real stack with pieces taken out.",
        "The idealised model: the theory's flow with the same attention matrices, one unit of time per layer, without biases and "
        f"feed-forward parts. In models with norms after attention ({listed(post)}) it starts from the same directions and stays "
        "on a sphere. The radius in each layer is the root mean square norm of the tokens that this layer reads in the model "
        f"(mean norm at the start: {norms}), so that scores have their trained size. Only directions are compared. "
        f"In models with norms before it ({listed(pre)}) it starts from the same tokens, and x' = sum over heads of "
        "P_h(u) V_h u, u the normed x: the norm stays, the sphere does not.",
        f"Two nulls, {seeds} stacks each, Gaussian matrices that learned nothing, after the model's own embedding. Random "
        f"weights have the size of each trained matrix (median root mean square {sizes}); untrained weights that before "
        f"training (standard deviation {', '.join(initial)}, the config's or, where it says nothing, the usual one).",
        "The embedding, untouched: the guess that the stack does nothing at all.",
    ]


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
             f"other nine sentences guesses the leader right in {percent(chance['leader'].mean())} (special tokens count), the "
             f"leading word in {percent(chance['word_leader'].mean())} (left out); blind guesses of the word are "
             f"right in {percent(chance['blind'])}. "
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


def control_words(one: Any) -> str:
    """How far the idealised model's tokens are from their own and from other tokens of the real stack."""
    return f"{middle(one, 'twin', 'turn'):.3f} and {middle(one, 'twin', 'turn_others'):.3f} ({one.name})"


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
                 + " of the layers; in the idealised model in " + ", ".join(map(percent, special["twin"]))
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
    """Of the question where tokens are: whether the idealised model is as near to the other tokens of the real stack."""
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
        {learned_words(one)} The idealised model has {middle(one, 'twin', 'clusters'):.0f} group at the depth of the model, a
        mean cosine of
        {middle(one, 'twin', 'cosine'):.2f}.
    """), filled(f"""
        Into what? {kind}: of the pairs that end in one group {percent(np.nanmean([pair[0] for pair in alike]))} are the same
        symbol, of all pairs {percent(np.mean([pair[1] for pair in alike]))}. Which tokens lead, special tokens (`^`, `$`)
        included? At the first layer {names(early)}; after the last one {names(leaders)} (number of reactions). But where
        everybody would receive the same, the leader receives {spread(lead[:, 0], 1)} times that at first,
        {spread(lead[:, 1], 1)} times in the end.
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
