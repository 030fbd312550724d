"""The eigenvalues of attention matrices along the flow, of one head and of the sum over heads: how many survive?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.datasets import changed, rows_where, table
from attnlab.experiments.heads import FAMILIES, HEADS, VALUES, in_span, real_start, synthetic_heads, trained_heads, trained_model
from attnlab.experiments.markov_classes import growth, outermost_count
from attnlab.experiments.plain_flow import by_scipy
from attnlab.experiments.record import Claim, Data, Experiment, Progress
from attnlab.experiments.studies import part
from attnlab.experiments.surviving_eigenvalues import DRAW_TOKENS, KINDS, attention_at, drawn, draws, moduli, outermost
from attnlab.types import Weights

TOKENS = {"full": (30, 100, 300), "small": (12, 20, 30)}
SYNTHETIC_D = 8
MOMENTS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""In the natural time |lambda_1| t of sum V_h, which is Ht for V_h = I; double precision would end near 30."""

STEPS = {1000: 0.1, 50_000: 0.25, 10**9: 0.5}
"""Steps of order 4 in natural time, for up to so many numbers n d: adaptive steps look for each change of leader, for minutes."""

RESOLVED = 1.0
"""The natural time up to which runs with V_h of their own must not hang on the step."""

DECIDED = 18.5
"""A matrix is called decided when in every row all weights but one are below e^-18.5 = 1e-8 of it."""

SHOWN_TIMES = np.linspace(0.0, 8.0, 41)
REFERENCE_END = 1.0

PERRON = "a single non-zero eigenvalue, the Perron value, survives"


def compute(size: str, progress: Progress, model: str = "minilm") -> dict[str, Any]:
    """The cases of the table, many single heads with their certified limits, spectra to draw, and one by SciPy."""
    from attnlab.engine.threads import one_blas_thread

    progress(0.0, "loading weights")
    trained, why = trained_model(size, model)
    with one_blas_thread():                                # matrices this small are faster on one
        data = {"cases": cases(size, trained, part(progress, 0.0, 0.7)), "draws": draws(size, trained, part(progress, 0.7, 0.9)),
                "shown": shown(size, trained)}
        progress(0.95, "integrating again, by other means")
        data["reference"] = reference(size)
    for one in data.values():
        one.attrs |= {"model": trained.name if trained is not None else "", "why": why}
    progress(1.0)
    return data


def system(family: str, values: str, heads: int, n: int, trained: Any) -> tuple[Weights, np.ndarray]:
    """Weights and first tokens: the cube [-5, 5]^d for synthetic heads, embedded text for trained ones; V_h = I in the span."""
    if family == "synthetic":
        weights = synthetic_heads(heads, SYNTHETIC_D, values)
        x0 = np.random.default_rng(n).uniform(-5.0, 5.0, (n, SYNTHETIC_D))
    else:
        weights, x0 = trained_heads(trained, heads, values), real_start(trained, n)
    return in_span(weights, x0)[:2] if values == "identity" else (weights, x0)


def followed(weights: Weights, x0: np.ndarray, moments: Any, step: float) -> Any:
    """The run at natural times `moments`, by steps of order 4."""
    from attnlab.engine import simulate

    rate = float(np.abs(weights.total.eigenvalues).max())
    times = np.asarray(moments) / rate
    frame = "x" if weights.is_factored else "z"
    return simulate(weights, x0, t_end=float(times[-1]), times=times, stepper="rk4", dt=step / rate, frame=frame, throw=False)


def step_for(x0: np.ndarray) -> float:
    """The step for such tokens."""
    return next(step for most, step in STEPS.items() if x0.size <= most)


def cases(size: str, trained: Any, progress: Progress) -> Any:
    """A row for each family, values, number of tokens, number of heads and moment."""
    families = FAMILIES if trained is not None else FAMILIES[:1]
    wanted = [(family, values, n, heads) for n in TOKENS[size] for heads in HEADS for family in families for values in VALUES]
    work = np.cumsum([n**2 * heads for _, _, n, heads in wanted])
    rows: list[dict[str, Any]] = []
    for done, (family, values, n, heads) in zip(work / work[-1], wanted, strict=True):
        weights, x0 = system(family, values, heads, n, trained)
        step = step_for(x0)
        run = followed(weights, x0, MOMENTS, step)
        is_cheap = n == min(TOKENS[size]) and not weights.is_factored or n < max(TOKENS[size]) and family == "synthetic"
        finer = followed(weights, x0, MOMENTS, step / 2) if is_cheap else None
        for at in range(len(run.times)):
            row = {"family": family, "values": values, "n": n, "heads": heads, "moment": MOMENTS[at], "t": run.times[at]}
            rows.append({**row, **_numbers(attention_at(run, at), at == len(MOMENTS) - 1),
                         "change": _change(run, finer, at)})
        progress(done, f"{family}, V_h {values}, n = {n}, {heads} heads")
    return table({name: [row[name] for row in rows] for name in rows[0]})


def _numbers(P: np.ndarray, is_last: bool) -> dict[str, Any]:
    """The numbers of attention matrices P (h, n, n); those of every single head at the last moment only."""
    from attnlab.analysis.attention import attention_rank, effective_rank, is_boolean_row

    heads, S = len(P), P.sum(axis=0)
    sizes = moduli(S)
    of_heads = [outermost(moduli(one)) for one in P] if is_last else [0]
    return {
        "radius": sizes[0] / heads, "second": sizes[1] / heads, "survivors": outermost(sizes, heads), "growth": growth(S, heads),
        "rows": np.abs(S.sum(axis=1) / heads - 1).max(), "rank": int(attention_rank(S)), "effective": float(effective_rank(S)),
        "is_decided": int(is_boolean_row(P, DECIDED).all()), "classes": outermost_count(S / heads), "fewest": min(of_heads),
    }


def _change(run: Any, finer: Any, at: int) -> float:
    """How far |lambda_2| / H moves when steps are halved; NaN where that was not tried."""
    if finer is None:
        return float("nan")
    P, again = attention_at(run, at), attention_at(finer, at)
    return float(abs(moduli(P.sum(axis=0))[1] - moduli(again.sum(axis=0))[1]) / len(P))


def shown(size: str, trained: Any) -> Any:
    """Moduli over time (case, time, order), over the number of heads: one polytope, one head, and the sum of sixteen."""
    import xarray

    n = DRAW_TOKENS
    family = "trained" if trained is not None else "synthetic"
    systems = [drawn("polytope", 3, trained), *(system(family, "identity", heads, n, trained) for heads in (1, max(HEADS)))]
    found = []
    for weights, x0 in systems:
        run = followed(weights, x0, SHOWN_TIMES, step_for(x0))
        found.append([moduli(attention_at(run, at).sum(axis=0)) / weights.heads for at in range(len(run.times))])
    return xarray.Dataset({"modulus": (("case", "time", "order"), np.array(found)), "moment": ("time", SHOWN_TIMES)},
                          attrs={"family": family, "n": n})


def reference(size: str) -> Any:
    """Eigenvalues of the sum of two heads at REFERENCE_END by our run, and by SciPy's DOP853 with a plain right-hand side."""
    from scipy.special import softmax

    from attnlab.engine import simulate

    weights, x0 = system("synthetic", "identity", 2, min(TOKENS[size]), None)
    M = [Q.T @ K for Q, K in zip(weights.Q, weights.K, strict=True)]

    def total(x: np.ndarray) -> np.ndarray:
        return np.asarray(sum(softmax(x @ one @ x.T, axis=1) for one in M))

    end = REFERENCE_END / 2
    theirs = by_scipy(weights, x0, end)
    ours = attention_at(simulate(weights, x0, t_end=end, times=[0.0, end], rtol=1e-9), -1).sum(axis=0)
    return table({"ours": moduli(ours), "theirs": moduli(total(theirs))}, "order")


def chosen(data: Any, **wanted: Any) -> Any:
    """The rows of a table with these entries."""
    return data.isel({data[next(iter(wanted))].dims[0]: rows_where(data, **wanted)})


def known(data: Data, *kinds: str) -> Any:
    """The draws of some kinds (of all, where none is named) whose limit is certified and was reached."""
    every = data["draws"]
    keep = every["is_known"].values == 1
    return every.isel(draw=keep & np.isin(every["kind"].values, kinds or list(KINDS)))


def claims(data: Data) -> list[Claim]:
    """The proposition on the sum, what survives for one head, and what for several."""
    return [*_of_radius(data), *_of_one_head(data), *_of_sums(data), *_of_numerics(data)]


def _of_radius(data: Data) -> list[Claim]:
    every = data["cases"]
    proposition = "proposition: the spectral radius of a sum of H row-stochastic matrices is H, with eigenvector 1"
    return [
        Claim(f"CONFIRMED: the spectral radius of the sum over heads is H: largest |ρ / H − 1| over {every.sizes['row']} sums.",
              float(np.abs(every["radius"].values - 1).max()), proposition, 0, 1e-10,
              "row sums are H, so H is an eigenvalue; the largest row sum of moduli bounds all others"),
        Claim("CONFIRMED: the vector of ones is its eigenvector: largest |row sum / H − 1|.", float(every["rows"].values.max()),
              proposition, 0, 1e-12, "softmax; n rounding errors of 1e-16"),
    ]


def _of_one_head(data: Data) -> list[Claim]:
    from attnlab.models.shares import interval

    every, polytope = known(data), known(data, "polytope", "random head")
    several, total = int((polytope["survivors"].values > 1).sum()), polytope.sizes["draw"]
    one, two = known(data, "one side")["survivors"].values, known(data, "two sides")["survivors"].values
    trained = known(data, "trained head")["survivors"].values
    off = np.abs(every["effective"].values - every["effective_expected"].values)
    words = f"{every.sizes['draw']} single heads with a certified limit"
    said = "a single non-zero eigenvalue, the Perron value 1, survives"
    counted = np.stack([every[name].values for name in ("survivors", "limits", "leaders", "rank")])
    return [
        Claim("REFINED: as many eigenvalues of P survive as tokens lead themselves, as there are clusters at infinity, and as "
              f"P has rank: heads where two of these numbers differ, of {words}.",
              float(np.any(counted != every["selfish"].values, axis=0).sum()), said, 0, 0,
              "P tends to a Boolean P*, token i to leader; each leader that leads itself brings an eigenvalue 1, and tokens with "
              "one limit have, in the end, one leader",
              "One eigenvalue is what is left where there is one leader."),
        Claim("The rest goes to 0, without chains: tokens whose leader follows somebody else, in all certified limits.",
              float(every["chains"].values.sum()), "", 0, 0,
              "if i followed j and j followed k, all would have one limit u, and ⟨Mᵀu, x_j − x_k⟩ two signs; so P* P* = P*"),
        Claim("All other eigenvalues are gone by then: the largest modulus.", float(every["largest_other"].values.max()), said,
              0, 1e-12, "the certificate: gaps of 50 and more, so P is e^-50 from P*, whose eigenvalue 0 is not defective"),
        Claim(f"Does not carry over as a rule to synthetic heads, V = I: share of {total} with Q = K = I or Gaussian Q and K "
              "with more than one survivor, lower end of its 95 % interval.", float(interval(several, total)[0]), said, 0.5, 1,
              "a rule would have none, and one half would already be no exception; the polytope theorem lets every vertex lead",
              f"The slides show one trained head. Of {len(trained)} trained heads with V = I here {int((trained == 1).sum())} "
              f"keep one, the others up to {int(trained.max(initial=0))}." if len(trained) else ""),
        Claim("Holds where one leader is certain, a good triple with all tokens on one side: largest number of "
              "survivors.", float(one.max(initial=0)), said, 1, 1,
              "scores from the same side are ranked alike at the rate e^{2 λ₁ t}: one leader"),
        Claim("With tokens on both sides at most two survive: largest number.", float(two.max(initial=0)), said, 1, 2,
              "one leader a side (theorem of the three hyperplanes)"),
        Claim("The effective rank exp(entropy) of the last P is that of the sizes of the groups: largest difference.",
              float(off.max()), "", 0, 1e-9, "P* has one singular value √m for each leader of m tokens, and no other"),
    ]


def decided_sums(data: Data) -> Any:
    """The last moments of the cases, where every row of every head has made up its mind."""
    return chosen(data["cases"], moment=MOMENTS[-1], is_decided=1)


def _of_sums(data: Data) -> list[Claim]:
    ends, last = decided_sums(data), chosen(data["cases"], moment=MOMENTS[-1])
    one, most, two = chosen(ends, heads=1, values="identity"), max(HEADS), _kept_by_few(ends)
    many, of_many = chosen(ends, heads=most), chosen(last, heads=most)
    more = ends["survivors"].values - ends["fewest"].values
    differ = ends["survivors"].values != ends["classes"].values
    words = f"{ends.sizes['row']} of {last.sizes['row']} cases whose rows are Boolean at the end"
    return [
        Claim("The number of eigenvalues of modulus H is that of closed classes of the graph of who follows whom in any head, "
              f"periods counted: exceptions among {words}.", float(differ.sum()), "", 0, 0,
              "Perron and Frobenius for reducible matrices; the graph is found without eigenvalues"),
        Claim("A sum has no more of them than the poorest of its heads: largest excess.",
              float(more.max()) if len(more) else np.nan, "", -np.inf, 0,
              "a class that is closed for all heads contains a closed class of each"),
        *_of_many_heads(of_many),
        Claim(f"Most eigenvalues of modulus H in a sum of {most} heads whose rows are Boolean, {many.sizes['row']} of "
              f"{of_many.sizes['row']} cases, one draw each.", float(many["survivors"].values.max(initial=0)), PERRON, 1, 1,
              "two would need two sets of tokens, each closed for all heads at once: not excluded, but not seen here; cases that "
              "are not Boolean are left out, since rows that still mix tokens have one by Perron alone",
              f"Fewer heads can keep more: {'; '.join(two) or 'none of 4 or 8 here'}. One head with V = I keeps up to "
              f"{int(one['survivors'].values.max(initial=0))}."),
    ]


def _kept_by_few(ends: Any) -> list[str]:
    """The sums of 4 heads or more that keep more than one eigenvalue."""
    kept = ends.isel(row=(ends["survivors"].values > 1) & (ends["heads"].values >= 4))
    columns = (kept[name].values for name in ("survivors", "heads", "family", "n"))
    return [f"{count} with {heads} {family} heads and n = {n}" for count, heads, family, n in zip(*columns, strict=True)]


def _of_many_heads(last: Any) -> list[Claim]:
    """The second eigenvalue of a sum of all heads, for V_h = I and for V_h of the heads."""
    H = max(HEADS)
    identity, own = (chosen(last, values=values) for values in VALUES)
    undecided = [int((one["is_decided"].values == 0).sum()) for one in (identity, own)]
    sizes, synthetic = np.sort(identity["second"].values), chosen(own, family="synthetic")["second"].values
    trained = chosen(own, family="trained")["second"].values
    ranges = [f"{name} {part.min():.2g} to {part.max():.2g}" for name, part in (("synthetic", synthetic), ("trained", trained))
              if len(part)]
    return [
        Claim(f"CONFIRMED nearly for V_h = I and {H} heads: largest |λ₂| / H at the end, {len(sizes)} cases, one draw each.",
              float(sizes[-1]), PERRON, 0, 1 / H + 1e-9,
              f"a head with one leader for all tokens adds nothing to λ₂, any other at most 1: so 1 / {H} is one head that "
              "does not follow the others",
              f"Not zero in each: {sizes[-1]:.3g}, the next {sizes[-2]:.1g}; rank up to {int(identity['rank'].values.max())}. "
              f"{undecided[0]} of these are not Boolean yet."),
        Claim(f"Not so for the heads' own V_h: smallest |λ₂| / H of {H} synthetic heads at the end, {len(synthetic)} cases, one "
              "draw each.", float(synthetic.min()), PERRON, 1 / H, 1,
              f"above 1 / {H} at least two heads have several leaders, see the claim for V_h = I; a single eigenvalue that is "
              "not 0 would leave 0",
              f"|λ₂| / H: {', '.join(ranges)}; rank {int(own['rank'].values.min())} to {int(own['rank'].values.max())}; "
              f"{undecided[1]} of {own.sizes['row']} are not Boolean yet, and late "
              "ones hang on the step. The slides have V_h = I."),
    ]


def _of_numerics(data: Data) -> list[Claim]:
    reference, every = data["reference"], data["cases"]
    off = float(np.abs(reference["ours"].values - reference["theirs"].values).max())
    tried = np.isfinite(every["change"].values)
    settled = (every["values"].values == "identity") | (every["moment"].values <= RESOLVED)
    change, late = every["change"].values[tried & settled], every["change"].values[tried & ~settled]
    return [
        Claim(f"Moduli of the eigenvalues of a sum of two heads at Ht = {REFERENCE_END:g} are those along SciPy's DOP853 run: "
              "largest difference.", off, "", 0, 1e-6, "tolerances 1e-9 and 1e-11, and what a change of leader makes of them"),
        Claim("The table does not hang on its steps for V_h = I, nor for other V_h in their first unit of natural time: largest "
              "change of |λ₂| / H when steps are halved.", float(change.max()), "no error is given", 0, 0.05,
              "a twentieth is what can be read off the picture",
              "Tried for synthetic heads with all but the largest n, and for trained heads with V_h = I and the smallest n only. "
              "With V_h of their own tokens go on changing their leaders when a pair or a negative eigenvalue leads ΣV_h: late "
              f"matrices are then samples that no step resolves, and |λ₂| / H moves by up to {late.max():.1g}. What is said of "
              "sums holds for each of them."),
    ]


def figures(data: Data) -> dict[str, Any]:
    """Moduli over time and what is left of them; gap and rank against the number of heads; single heads one by one."""
    from attnlab.experiments.attention_eigenvalues_figures import gap_and_rank, over_time, single_heads

    return {"attention_eigenvalues": over_time(data), "attention_gap_and_rank": gap_and_rank(data),
            "attention_survivors": single_heads(data)}


def _leaky(every: Any) -> None:
    """Rows that sum to 0.99, as a softmax with a mask that forgets to divide."""
    for name in ("radius", "growth"):
        every[name] = every[name] * 0.99
    every["rows"] = every["rows"] + 0.01


def _lost(every: Any) -> None:
    """One eigenvalue of modulus H more than there are, in all sums."""
    every["survivors"] = every["survivors"] + (every["heads"].values >= 2)
    every["second"] = every["second"].where(every["heads"] < 2, 1.0)


def _gapped(every: Any) -> None:
    """All eigenvalues but one are gone in all sums."""
    every["second"] = every["second"].where(every["heads"] < 2, 0.0)


def _unfollowed(every: Any) -> None:
    """The run ends elsewhere than the limit: one survivor more, and a leader that is not gone."""
    every["survivors"] = every["survivors"] + 1
    every["largest_other"] = every["largest_other"] + 1e-3
    every["effective"] = every["effective"] * 1.01


def _chained(every: Any) -> None:
    """Followers of followers, and one leader for all."""
    every["chains"] = every["chains"] + 1
    every["survivors"] = ("draw", np.ones(every.sizes["draw"], dtype=int))


def _late(reference: Any) -> None:
    """Our run stops a thousandth too early."""
    reference["ours"] = reference["ours"] * (1 - 1e-3)


def _coarse(every: Any) -> None:
    """Steps so long that half of them tell another story."""
    every["change"] = every["change"] + 0.1


def systems_shown(data: Data) -> Iterator[tuple[str, np.ndarray]]:
    """(what it is, moduli (time, order)) of the panels over time."""
    one, family = data["shown"], str(data["shown"].attrs["family"])
    names = ("one head, Q = K = V = I, d = 2", f"one {family} head, V = I", f"sum of {max(HEADS)} {family} heads, V_h = I")
    yield from zip(names, one["modulus"].values, strict=True)


experiments.register("attention_eigenvalues")(
    Experiment(
        name="attention_eigenvalues",
        title="Eigenvalues of attention along the flow: how many survive is how many lead",
        cite="Sugolov, Aubry, MAT1510 project, University of Toronto, November 2023 (slides), eigenvalues of the attention "
        "matrix and of the sum over heads along the run",
        about="The rows of an attention matrix P sum to 1, so 1 is an eigenvalue and no other is larger; of the sum over H heads "
        "it is H. The slides prove this, follow the eigenvalues along a run with a trained head, and see a single one "
        "survive.\n\n"
        "Here are 1 to 16 heads, synthetic and trained, with V = I as in the slides and with the heads' own V, for 30, 100 and "
        "300 tokens. The proposition holds to rounding. What survives is another question, and it has an exact answer: attention "
        "becomes Boolean, every token listens to one leader, and each leader that listens to itself keeps one eigenvalue 1. So "
        "counting eigenvalues is counting clusters. With one head and V = I there are often several, up to one for each vertex "
        "of a polytope. A sum of heads keeps at modulus H only what all heads agree on. With sixteen heads and V_h = I, the "
        "slides' case, they are nearly right: one eigenvalue of modulus H, the next below H / 100 000 in five cases of six, and "
        "H / 16, what one head can leave, in one. Fewer heads can keep more: two survive among 300 tokens with 4 or 8 heads. "
        "With own V_h sixteen heads keep one of modulus H too, but the second is at 0.2 to 0.4 H. Each case is one draw, and "
        "half of those with sixteen heads are not Boolean yet at the last moment.",
        compute=compute,
        claims=claims,
        figures=figures,
        spoils={
            "rows that do not sum to 1": changed("cases", _leaky),
            "an eigenvalue counted twice": changed("cases", _lost),
            "a single eigenvalue that is not 0": changed("cases", _gapped),
            "runs that miss their limits": changed("draws", _unfollowed),
            "followers of followers": changed("draws", _chained),
            "a run that stops early": changed("reference", _late),
            "steps too long": changed("cases", _coarse),
        },
    )
)
