"""The claims of real_sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binomtest

from attnlab.analysis.intervals import wilson_interval
from attnlab.experiments.common.claims import in_words, relative_difference
from attnlab.experiments.common.heads import HEADS, VALUES
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, constant, scaled, shifted, together

SAID = (
    "with paragraphs, when a cluster forms it sits near one of the initial vectors (16 heads of"
    " albert-xlarge-v2)"
)
BOUND = "exact binomial bound, one-sided; the paragraph is left out, since it repeats a sentence"


def rows_of(data: Data, values: str, heads: int) -> Any:
    """The rows of one case, one per text."""
    return select(data["rows"], values=values, heads=heads)


def apart(rows: Any) -> Any:
    """The rows without the paragraph, the last text, which repeats the first sentence; rows of ids
    all differ.
    """
    texts = rows["text"].values
    return rows.isel(row=texts < texts.max()) if rows.attrs["has_words"] else rows


def at_a_word(rows: Any) -> np.ndarray:
    """Where the largest cluster is nearer to some token than to the mean direction of the text."""
    return np.asarray(rows["cosine"].values > rows["to_mean"].values)


def ranked_high(rows: Any, name: str) -> np.ndarray:
    """Where the leader was in the upper half of its text at the start."""
    return np.asarray(rows[f"rank_{name}"].values <= rows["n"].values / 2)


def share(is_so: np.ndarray) -> str:
    """A count and the 95 % interval of the share."""
    count, total = int(is_so.sum()), len(is_so)
    return f"{count} of {total} ({in_words(wilson_interval(count, total), '.0%')})"


def least_share(is_so: np.ndarray) -> float:
    """The share that is exceeded with a confidence of 95 %, texts being independent."""
    return float(
        binomtest(int(is_so.sum()), len(is_so), alternative="greater").proportion_ci(0.95).low
    )


def kinds_at(data: Data, rows: Any, column: str = "leader") -> list[str]:
    """Of which kind the tokens in a column are."""
    return [
        str(select(data["tokens"], text=text)["kind"].values[token])
        for text, token in zip(rows["text"].values, rows[column].values, strict=True)
    ]


def claims(data: Data) -> list[Claim]:
    """Where clusters are, which tokens lead them, and whether that could be predicted."""
    rows = data["rows"]
    return [
        *_of_places(data),
        *_of_leaders(data),
        *_of_numerics(data),
        *(_of_words(data) if rows.attrs["has_words"] else []),
    ]


def _of_places(data: Data) -> list[Claim]:
    rows = data["rows"]
    identity, own = (select(rows, values=values) for values in VALUES)
    one, several = rows_of(data, "identity", 1), identity["heads"].values >= 4
    same = one["nearest"].values == one["leader"].values
    alone = apart(one)
    counts = "; ".join(
        f"{heads}: {share(at_a_word(rows_of(data, 'identity', heads)))}" for heads in HEADS
    )
    made = [
        Claim(
            text=(
                "So for one head, V = I: the first vector that is nearest to the largest cluster is"
                " that of the token which leads it. Share of texts, its lower 95 % bound."
            ),
            measured=least_share(alone["nearest"].values == alone["leader"].values),
            published=SAID,
            low=float(1 / one["n"].values.min()),
            high=1,
            because=f"{BOUND}; chance gives one of n tokens, 1 / n at most this",
            differs=(
                f"In {int(same.sum())} of {len(same)} texts, the paragraph with them. Cosine "
                f"{one['cosine'].values.min():.2f} to {one['cosine'].values.max():.2f}."
            ),
        ),
    ]
    for heads in (4, 8):
        case = rows_of(data, "identity", heads)
        made.append(
            Claim(
                text=(
                    f"Does not carry over to {heads} heads, V = I: share of texts whose largest"
                    " cluster is nearer to the mean direction of the text than to any token, its"
                    " lower 95 % bound."
                ),
                measured=least_share(~at_a_word(apart(case))),
                published=SAID,
                low=0.5,
                high=1,
                because=(
                    f"{BOUND}; one half is where neither is nearer as a rule; heads that follow"
                    " different tokens put the cluster between them"
                ),
                differs=(
                    f"Cosine with the nearest token {case['cosine'].values.min():.2f} to"
                    f" {case['cosine'].values.max():.2f}. Texts nearer to a token, all of them, by"
                    f" the number of heads: {counts}."
                ),
            )
        )
    return [
        *made,
        Claim(
            text=(
                "With their own values clusters are where the values push: least part of the"
                " direction of the largest cluster in the fastest modes of the sum of V_h over the"
                " heads, 1 being all."
            ),
            measured=float(own["to_mode"].values.min()),
            published=SAID,
            low=0.9,
            high=1 + 1e-9,
            because=(
                "tokens of a cluster c obey x_c' = Σ_h V_h x_c′, c′ the cluster that head h looks"
                " at; other modes are e⁻⁶ by then"
            ),
            differs=(
                "Not so for own values, which the slides do not have: the largest cosine with a"
                f" token is {own['cosine'].values.max():.2f}; these modes are"
                f" {int(own['modes'].values.max())} of {int(data['plane'].attrs['d'])} dimensions"
                " at most."
            ),
        ),
        Claim(
            text=(
                "More than one cluster is not seen with 4 heads or more and V = I: of"
                f" {int(several.sum())} runs, those with more."
            ),
            measured=float(np.sum(identity["clusters"].values[several] > 1)),
            published="few tokens: one cluster",
            low=0,
            high=0,
            because=(
                "a token that some head looks at from everywhere is "
                "a class that all share, and tokens with one closed class meet"
            ),
            differs=(
                "Runs share texts and heads. With one head"
                f" {int(np.sum(one['clusters'].values > 1))} of {one.sizes['row']} texts end in"
                " more than one."
            ),
        ),
    ]


def _of_leaders(data: Data) -> list[Claim]:
    one, rows = rows_of(data, "identity", 1), data["rows"]
    own = select(rows, values="own")
    ranks = ", ".join(
        f"{rank} of {n}" for rank, n in zip(one["rank_score"].values, one["n"].values, strict=True)
    )
    many, longest = one.sizes["row"], int(np.sum(one["rank_norm"].values == 1))
    return [
        Claim(
            text=(
                f"One head, V = I: of {many} texts, those whose leader is in the upper half by ⟨Mx,"
                " x⟩, its score with itself at the start."
            ),
            measured=float(ranked_high(one, "score").sum()),
            low=many // 2 + 1,
            high=many,
            because=(
                "more than half; no p-value, since texts are few and this is one of three guesses"
            ),
            differs=(
                f"Ranks: {ranks}. The other guesses: by attention received"
                f" {int(ranked_high(one, 'received').sum())} of {many}, by |x|"
                f" {int(ranked_high(one, 'norm').sum())} of {many}."
            ),
        ),
        Claim(
            text=(
                f"That the longest token leads is no rule, one head, V = I: of {many} texts, those"
                " in which it does."
            ),
            measured=float(longest),
            low=0,
            high=many // 2,
            because="a rule would have more than half of them",
        ),
        Claim(
            text=(
                "With own values it is no rule that the leader is the token to which the model"
                f" attends most in its last layer: of {own.sizes['row']} runs, those in which"
                " it is."
            ),
            measured=float(np.sum(own["leader"].values == own["stack_last"].values)),
            low=0,
            high=own.sizes["row"] // 2,
            because="a rule would have more than half of them",
            differs=(
                f"Random tokens would coincide in {np.sum(1 / own['n'].values):.1f} in the mean."
            ),
        ),
    ]


def _of_numerics(data: Data) -> list[Claim]:
    reference, rows = data["reference"], data["rows"]
    one, identity = rows_of(data, "identity", 1), select(rows, values="identity")
    return [
        Claim(
            text="The certified limit of one head has the same leader: texts in which it has not.",
            measured=float(
                np.sum(one["limit_agrees"].values == 0) + np.all(one["limit_agrees"].values == -1)
            ),
            low=0,
            high=0,
            because="a certificate, from another computation",
        ),
        Claim(
            text=(
                "Steps twice as long make the same clusters and leaders, V = I: runs in which they"
                " do not."
            ),
            measured=float(np.sum(identity["steps_agree"].values != 1)),
            low=0,
            high=0,
            because="a second computation",
        ),
        Claim(
            text=(
                "Four heads agree with SciPy's DOP853 on a plain right-hand side at τ = 2: largest"
                " difference, relative."
            ),
            measured=relative_difference(reference["engine"], reference["scipy"]),
            low=0,
            high=1e-6,
            because="tolerances 1e-9 and 1e-11",
        ),
    ]


def _of_words(data: Data) -> list[Claim]:
    """What needs words: the token that the model adds."""
    many, texts = rows_of(data, "identity", max(HEADS)), rows_of(data, "identity", 1).sizes["row"]
    added = np.array([kind == "special" for kind in kinds_at(data, many)])
    there = added & at_a_word(many) & (many["nearest"].values == many["leader"].values)
    stack = int(np.sum(many["leader"].values == many["stack_first"].values))
    heard = np.all(
        [ranked_high(rows_of(data, "identity", heads), "received") for heads in (4, 8, 16)], axis=0
    )
    cosines = many["cosine"].values[there] if there.any() else np.zeros(1)
    return [
        Claim(
            text=(
                f"So for 16 heads, V = I: of {texts} texts, those whose largest cluster is nearest"
                " to its leader, a token that the model added, and nearer to it than to the mean"
                " of the text."
            ),
            measured=float(there.sum()),
            published=SAID,
            low=texts // 2 + 1,
            high=texts,
            because=(
                "more than half; no p-value, since [CLS] starts every "
                "text with the same vector: one observation rather than many"
            ),
            differs=(
                f"Cosine {cosines.min():.2f} to {cosines.max():.2f}. The paragraph, the slides'"
                f" kind of start, is {'one of them' if there[-1] else 'not one of them'}. In"
                f" {stack} the leader is the token to which the model attends most in its first"
                " layer; most of the heads are of that layer."
            ),
        ),
        Claim(
            text=(
                f"4, 8 and 16 heads, V = I: of {texts} texts, those whose leader was in the upper"
                " half by attention received at the start, for each number of heads."
            ),
            measured=float(heard.sum()),
            low=texts // 2 + 1,
            high=texts,
            because=(
                "more than half; no p-value: heads are nested, and texts share [CLS] and a sentence"
            ),
        ),
    ]


spoils = {
    "other tokens lead": changed(
        "rows",
        lambda rows: rows.assign(  # those that score and receive least, and the longest
            leader=(rows["leader"] + rows["n"] // 2) % rows["n"],
            rank_score=rows["n"],
            rank_received=rows["n"],
            rank_norm=rows["rank_norm"] * 0 + 1,
        ),
    ),
    "two clusters, each at a token": together(
        constant("rows", "cosine", 1.0),
        scaled("rows", "to_mode", 0.1),
        shifted("rows", "clusters", 1),
    ),
    "leaders of the stack": changed("rows", lambda rows: rows.assign(leader=rows["stack_last"])),
    "other steps, other leaders": constant("rows", ("steps_agree", "limit_agrees"), 0),
    "scipy ends elsewhere": scaled("reference", "scipy", 1.001),
}
