"""The claims of attention_eigenvalues: the proposition on the sum, what survives for one head, and
what for several.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.intervals import bootstrap_interval
from attnlab.experiments.common.claims import in_words, of_rule
from attnlab.experiments.common.heads import FAMILIES, HEADS, VALUES, as_shown
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import constant, scaled, shifted, together

from .experiment import END, REFERENCE_END

RESOLVED = 1.0
"""The natural time up to which runs with V_h of their own must not depend on the step."""
PERRON = "a single non-zero eigenvalue, the Perron value, survives"


def claims(data: Data) -> list[Claim]:
    """The proposition on the sum, what survives for one head, and what for several."""
    return [*_of_radius(data), *_of_one_head(data), *_of_sums(data), *_of_numerics(data)]


def _of_radius(data: Data) -> list[Claim]:
    every = data["cases"]
    proposition = (
        "proposition: the spectral radius of a sum of H row-stochastic matrices is H, with"
        " eigenvector 1"
    )
    return [
        Claim(
            text=(
                "CONFIRMED: the spectral radius of the sum over heads is H: largest |ρ / H − 1|"
                f" over {every.sizes['row']} sums."
            ),
            measured=float(np.abs(every["radius"].values - 1).max()),
            published=proposition,
            low=0,
            high=1e-10,
            because=(
                "row sums are H, so H is an eigenvalue; the largest row sum of moduli bounds all"
                " others"
            ),
        ),
        Claim(
            text="CONFIRMED: the vector of ones is its eigenvector: largest |row sum / H − 1|.",
            measured=float(every["rows"].values.max()),
            published=proposition,
            low=0,
            high=1e-12,
            because="softmax; n rounding errors of 1e-16",
        ),
    ]


def _of_one_head(data: Data) -> list[Claim]:
    every = select(data["draws"], is_known=1)
    synthetic, one, two, trained = (
        select(every, kind=kind)["survivors"].values
        for kind in (("polytope", "random head"), "one side", "two sides", "trained head")
    )
    several, total = int((synthetic > 1).sum()), len(synthetic)
    here = as_shown("trained", data["draws"].attrs["model"])
    off = np.abs(every["effective"].values - every["effective_expected"].values)
    words = f"{every.sizes['draw']} single heads with a certified limit"
    said = "a single non-zero eigenvalue, the Perron value 1, survives"
    counted = np.stack([every[name].values for name in ("survivors", "limits", "leaders", "rank")])
    return [
        Claim(
            text=(
                "REFINED: as many eigenvalues of P survive as tokens lead themselves, as there are"
                " clusters at infinity, and as P has rank: heads where two of these numbers"
                f" differ, of {words}."
            ),
            measured=float(np.any(counted != every["selfish"].values, axis=0).sum()),
            published=said,
            low=0,
            high=0,
            because=(
                "P tends to a Boolean P*, token i to leader; each leader that leads itself brings"
                " an eigenvalue 1, and tokens with one limit have, in the end, one leader"
            ),
            differs="One eigenvalue is what is left where there is one leader.",
        ),
        Claim(
            text=(
                "The rest goes to 0, without chains: tokens whose leader follows another token, in"
                " all certified limits."
            ),
            measured=float(every["chains"].values.sum()),
            low=0,
            high=0,
            because=(
                "if i followed j and j followed k, all would have one limit u, and ⟨Mᵀu, x_j − x_k⟩"
                " two signs; so P* P* = P*"
            ),
        ),
        Claim(
            text="All other eigenvalues are gone by then: the largest modulus.",
            measured=float(every["largest_other"].values.max()),
            published=said,
            low=0,
            high=1e-12,
            because=(
                "the certificate: gaps of 50 and more, so P is e^-50 from P*, whose eigenvalue 0 is"
                " not defective"
            ),
        ),
        Claim(
            text=(
                f"Does not carry over as a rule to synthetic heads, V = I: share of {total} with Q"
                " = K = I or Gaussian Q and K with more than one survivor, lower end of its 95 %"
                " interval."
            ),
            **of_rule(several, total, "share of heads with more than one survivor", "heads"),
            published=said,
            because=(
                "a rule would have none, and one half would already be no exception; the polytope"
                " theorem lets every vertex lead"
            ),
            differs=(
                ""
                if not len(trained)
                else (
                    f"The slides show one head of a model. Of {len(trained)} {here} heads with V ="
                    f" I {(trained == 1).sum()} keep one, the others up to {trained.max()}."
                )
            ),
        ),
        Claim(
            text=(
                "Holds where one leader is certain, a good triple with all tokens on one side:"
                " largest number of survivors."
            ),
            measured=float(one.max(initial=0)),
            published=said,
            low=1,
            high=1,
            because="scores from the same side are ranked alike at the rate e^{2 λ₁ t}: one leader",
        ),
        Claim(
            text="With tokens on both sides at most two survive: largest number.",
            measured=float(two.max(initial=0)),
            published=said,
            low=1,
            high=2,
            because="one leader a side (theorem of the three hyperplanes)",
        ),
        Claim(
            text=(
                "The effective rank exp(entropy) of the last P is that of the sizes of the groups:"
                " largest difference."
            ),
            measured=float(off.max()),
            low=0,
            high=1e-9,
            because="P* has one singular value √m for each leader of m tokens, and no other",
        ),
    ]


def _of_sums(data: Data) -> list[Claim]:
    """The last moments of the cases, where every row of every head is Boolean."""
    last, most = select(data["cases"], moment=END), max(HEADS)
    ends = select(last, is_decided=1)
    many, of_many = select(ends, heads=most), select(last, heads=most)
    one, several = select(ends, heads=1, values="identity"), select(ends, heads=HEADS[2:])
    more = ends["survivors"].values - ends["fewest"].values
    differ = ends["survivors"].values != ends["classes"].values
    words = f"{ends.sizes['row']} of {last.sizes['row']} sums whose rows are Boolean at the end"
    alone = many["survivors"].values == 1
    return [
        Claim(
            text=(
                "The number of eigenvalues of modulus H is that of closed classes, periods"
                " counted, of the graph that joins each token to its leaders in all heads:"
                f" exceptions among {words}."
            ),
            measured=float(differ.sum()),
            low=0,
            high=0,
            because=(
                "Perron and Frobenius for reducible matrices; the graph is found without"
                " eigenvalues"
            ),
        ),
        Claim(
            text="A sum has no more of them than the poorest of its heads: largest excess.",
            measured=float(more.max()) if len(more) else np.nan,
            low=-np.inf,
            high=0,
            because="a class that is closed for all heads contains a closed class of each",
        ),
        Claim(
            text=(
                f"CONFIRMED as a rule, for modulus H: share of sums of {most} heads whose rows are"
                f" Boolean ({len(alone)} of {of_many.sizes['row']}) with one such eigenvalue, lower"
                " end of the 95 % interval."
            ),
            **of_rule(
                int(alone.sum()), len(alone), "share of sums with one such eigenvalue", "sums"
            ),
            published=PERRON,
            because=(
                "a rule is read as more than half; two would need two sets of tokens, each closed"
                " for all heads at once. Rows that still mix tokens are left out: they have one by"
                " Perron alone"
            ),
            differs=(
                f"Exceptions: {_kept_by(many)}. Fewer heads keep more: of {several.sizes['row']}"
                f" Boolean sums of {HEADS[2]} to {most} heads {_kept_by(several)}; one head with V"
                f" = I up to {int(one['survivors'].values.max(initial=0))}. The share is over both"
                f" families and values; {as_shown('trained', last.attrs['model'])} sums share their"
                " heads, and synthetic ones with V_h = I and own V_h their scores."
            ),
        ),
        *_of_second(last),
    ]


def _kept_by(ends: Any) -> str:
    """How many sums keep more than one eigenvalue of modulus H, and which."""
    kept = ends.isel(row=ends["survivors"].values > 1)
    columns = (kept[name].values for name in ("family", "values", "n", "heads"))
    model = ends.attrs["model"]
    kinds = sorted(
        {
            f"{as_shown(family, model)}, {'V_h = I' if values == 'identity' else 'own V_h'}, n ="
            f" {n}, H = {heads}"
            for family, values, n, heads in zip(*columns, strict=True)
        }
    )
    return f"{kept.sizes['row']} keep more ({'; '.join(kinds)})" if kinds else "none keeps more"


def by_group(last: Any, column: str, **wanted: Any) -> list[np.ndarray]:
    """The values of a column that may go into one mean: all synthetic draws, which are independent,
    and the pieces of text of each number of tokens by themselves, since those of different numbers
    overlap; a stand-in is not a trained model.
    """
    every = select(last, **wanted)
    trained = select(every, family="trained")
    numbers = np.unique(trained["n"].values)[: None if last.attrs["is_trained"] else 0]
    return [
        select(every, family="synthetic")[column].values,
        *(select(trained, n=n)[column].values for n in numbers),
    ]


def _of_second(last: Any) -> list[Claim]:
    """The second eigenvalue of a sum of all heads: beside one head, unrelated maps, and own V_h
    beside V_h = I.
    """
    H = max(HEADS)
    one, identity, own = (
        by_group(last, "second", heads=heads, values=values)
        for heads, values in ((1, "identity"), (H, "identity"), (H, "own"))
    )
    dealt = by_group(last, "unrelated", heads=H, values="own")
    closer, kept, beyond = (
        [bootstrap_interval(first - second) for first, second in zip(*both, strict=True)]
        for both in ((one, identity), (own, identity), (own, dealt))
    )
    tops = [bootstrap_interval(values)[1] for values in identity]
    of_own = select(last, heads=H, values="own")
    groups = f"mean over {len(one[0])} synthetic draws"
    if len(one) > 1:
        groups += (
            f", and over {', '.join(str(len(part)) for part in one[1:])} pieces of text of each n"
            f" for {last.attrs['model']}"
        )
    said = {values: _second_words(last, values) for values in VALUES}
    return [
        Claim(
            text=(
                "CONFIRMED, more heads, larger gap, V_h = I: |λ₂| of one head less |λ₂| / H of"
                f" {H}, {groups}: smallest lower end of the 95 % intervals."
            ),
            measured=float(min(low for low, _ in closer)),
            published=PERRON,
            low=1e-9,
            high=1,
            because="sums of equal heads have the spectrum of one, times H: 0",
            differs=said["identity"],
        ),
        Claim(
            text=(
                f"CONFIRMED nearly, V_h = I and {H} heads: |λ₂| / H is less than 1 / √H, {groups}:"
                " largest upper end of the 95 % intervals."
            ),
            measured=float(max(tops)),
            published=PERRON,
            low=0,
            high=1 / np.sqrt(H),
            because=(
                "the sum of H unrelated random maps of many tokens: entries of variance H / n about"
                " their mean, so a disc of radius √H (circular law); tokens that share leaders do"
                " better"
            ),
            differs=said["identity"],
        ),
        Claim(
            text=(
                f"Not so for the heads' own V_h: |λ₂| / H of {H} heads with own V_h less that with"
                f" V_h = I, same scores and start, {groups}: smallest lower end of the 95 %"
                " intervals."
            ),
            measured=float(min(low for low, _ in kept)),
            published=PERRON,
            low=1e-9,
            high=1,
            because="if V did not matter, 0",
            differs=(
                f"{said['own']}; 95 % intervals of the mean difference to rows dealt again, in the"
                f" order above: {'; '.join(map(in_words, beyond))}; rank"
                f" {int(of_own['rank'].values.min())} to {int(of_own['rank'].values.max())};"
                f" {int((of_own['is_decided'].values == 0).sum())} of {of_own.sizes['row']} are not"
                " Boolean yet, and late ones depend on the step. The slides have V_h = I."
            ),
        ),
    ]


def _second_words(last: Any, values: str) -> str:
    """|lambda_2| / H of sums of all heads in words: by family, with what unrelated heads of the same rows would
    have.
    """
    H = max(HEADS)
    parts = []
    for family in FAMILIES:
        rows = select(last, heads=H, values=values, family=family)
        if rows.sizes["row"]:
            sizes = np.sort(rows["second"].values)
            parts.append(
                f"{as_shown(family, last.attrs['model'])} {sizes[0]:.2g} to {sizes[-1]:.2g}, median"
                f" {np.median(sizes):.2g} (with rows dealt again in each head"
                f" {np.median(rows['unrelated'].values):.2g})"
            )
    return f"|λ₂| / {H}: {'; '.join(parts)}"


def _of_numerics(data: Data) -> list[Claim]:
    reference, every = data["reference"], data["cases"]
    off = float(np.abs(reference["ours"].values - reference["theirs"].values).max())
    tried = np.isfinite(every["change"].values)
    settled = (every["values"].values == "identity") | (every["moment"].values <= RESOLVED)
    here = as_shown("trained", every.attrs["model"])
    change, late = every["change"].values[tried & settled], every["change"].values[tried & ~settled]
    return [
        Claim(
            text=(
                f"Moduli of the eigenvalues of a sum of two heads at Ht = {REFERENCE_END:g} are"
                " those along SciPy's DOP853 run: largest difference."
            ),
            measured=off,
            low=0,
            high=1e-6,
            because="tolerances 1e-9 and 1e-11, and what a change of leader makes of them",
        ),
        Claim(
            text=(
                "The table does not depend on its steps for V_h = I, nor for other V_h in their"
                " first unit of natural time: largest change of |λ₂| / H when steps are halved."
            ),
            measured=float(change.max()),
            published="no error is given",
            low=0,
            high=0.05,
            because="a twentieth is what can be read off the picture",
            differs=(
                "Tried with the first draw of each case, for synthetic heads with all but the"
                f" largest n, and for {here} heads with V_h = I and the smallest n only. With V_h"
                " of their own tokens go on changing their leaders when a pair or a negative"
                " eigenvalue leads ΣV_h: late matrices are then samples that no step resolves, and"
                f" |λ₂| / H moves by up to {late.max():.1g}. What is said of sums holds for each of"
                " them."
            ),
        ),
    ]


SEVERAL = {"heads": HEADS[1:]}
spoils = {
    "rows that do not sum to 1": together(
        scaled("cases", "radius", 0.99), shifted("cases", "rows", 0.01)
    ),
    "an eigenvalue counted twice": together(
        shifted("cases", "survivors", 1, where=SEVERAL),
        constant("cases", "second", 1.0, where=SEVERAL),
    ),
    "a single eigenvalue that is not 0": constant("cases", "second", 0.0, where=SEVERAL),
    "runs that miss their limits": together(
        shifted("draws", "survivors", 1),
        shifted("draws", "largest_other", 1e-3),
        scaled("draws", "effective", 1.01),
    ),
    "followers of followers": together(
        shifted("draws", "chains", 1), constant("draws", "survivors", 1)
    ),
    "a run that stops early": scaled("reference", "ours", 1 - 1e-3),
    "steps too long": shifted("cases", "change", 0.1),
}
