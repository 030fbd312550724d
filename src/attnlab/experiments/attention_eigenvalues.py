"""The eigenvalues of attention matrices along the flow, of one head and of the sum over heads: how many survive?"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.attention_eigenvalues_claims import END, REFERENCE_END, claims
from attnlab.experiments.common.heads import (
    HEADS,
    VALUES,
    as_shown,
    in_span,
    real_start,
    synthetic_heads,
    trained_heads,
    trained_model,
)
from attnlab.experiments.common.plain_flow import by_scipy
from attnlab.experiments.datasets import table
from attnlab.experiments.markov_classes import outermost_count, unrelated
from attnlab.experiments.record import Data, Experiment
from attnlab.experiments.spoils import changed
from attnlab.experiments.surviving_eigenvalues import DRAW_TOKENS, attention_at, drawn, draws, moduli, outermost
from attnlab.progress import Progress
from attnlab.types import Weights

REPEATS = {"full": {30: 8, 100: 5, 300: 3}, "small": {12: 2, 30: 6}}
"""{number of tokens: draws}, heads and starts anew for synthetic ones, pieces of text that do not overlap for trained ones."""

SYNTHETIC_D = 8
MOMENTS = (0.0, 0.5, 1.0, 2.0, 4.0, END)
"""In the natural time |lambda_1| t of sum V_h, which is Ht for V_h = I; double precision would end near 30."""

STEPS = {1000: 0.1, 50_000: 0.25, 10**9: 0.5}
"""Steps of order 4 in natural time, for up to so many numbers n d: adaptive steps look for each change of leader, for minutes."""

DECIDED = 18.5
"""A matrix is called decided when in every row all weights but one are below e^-18.5 = 1e-8 of it."""

SHOWN_TIMES = np.linspace(0.0, END, 41)


def compute(size: str, progress: Progress, model: str = "minilm") -> dict[str, Any]:
    """The cases of the table, many single heads with their certified limits, spectra to draw, and one by SciPy."""
    from attnlab.engine.threads import one_blas_thread

    progress(0.0, "loading weights")
    trained, why = trained_model(size, model)
    with one_blas_thread():                                # matrices this small are faster on one
        data = {"cases": cases(size, trained, progress.part(0.0, 0.7)), "draws": draws(size, trained, progress.part(0.7, 0.9)),
                "shown": shown(size, trained)}
        progress(0.95, "integrating again, by other means")
        data["reference"] = reference(size)
    for one in data.values():
        # a stand-in has no words, and its heads are not trained: nothing is claimed of them that not all heads must do
        one.attrs |= {"model": trained.name if trained is not None else "", "why": why,
                      "is_trained": int(trained is not None and trained.tokenizer_file is not None)}
    progress(1.0)
    return data


def starts(n: int, draw: int, trained: Any) -> dict[str, np.ndarray]:
    """The first tokens by family: the cube [-5, 5]^d for synthetic heads, a piece of embedded text for trained ones."""
    found = {"synthetic": np.random.default_rng([n, draw]).uniform(-5.0, 5.0, (n, SYNTHETIC_D))}
    return found | ({"trained": real_start(trained, n, draw)} if trained is not None else {})


def system(family: str, values: str, heads: int, x0: np.ndarray, draw: int, trained: Any) -> tuple[Weights, np.ndarray]:
    """Weights and first tokens, for V_h = I in their span; synthetic heads are others for each draw and number of tokens."""
    if family == "synthetic":
        weights = synthetic_heads(heads, SYNTHETIC_D, values, rng=1000 * draw + len(x0))
    else:
        weights = trained_heads(trained, heads, values)
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
    """A row for each family, values, number of tokens, draw, number of heads and moment."""
    places = [(n, draw) for n, many in REPEATS[size].items() for draw in range(many)]
    work = np.cumsum([n**2 for n, _ in places]) / sum(n**2 for n, _ in places)
    rows: list[dict[str, Any]] = []
    with ThreadPoolExecutor(2) as two:                     # eigenvalues of one run while the next one is integrated
        for done, (n, draw) in zip(work, places, strict=True):
            of_family = starts(n, draw, trained)
            wanted = [(family, values, heads) for heads in HEADS for family in of_family for values in VALUES]
            futures = [two.submit(_case, size, *one, draw, of_family[one[0]], trained) for one in wanted]
            rows += [row for future in futures for row in future.result()]
            progress(done, f"n = {n}, draw {draw + 1}")
    return table({name: [row[name] for row in rows] for name in rows[0]})


def _case(size: str, family: str, values: str, heads: int, draw: int, start: np.ndarray, trained: Any) -> list[dict[str, Any]]:
    """The rows of one run; the first draw has all moments and, where that is cheap, a run with half the step."""
    weights, x0 = system(family, values, heads, start, draw, trained)
    n, moments = len(start), MOMENTS if draw == 0 else (MOMENTS[0], MOMENTS[-1])
    step, largest = step_for(x0), max(REPEATS[size])
    run = followed(weights, x0, moments, step)
    is_cheap = n == min(REPEATS[size]) and not weights.is_factored or n < largest and family == "synthetic"
    finer = followed(weights, x0, moments, step / 2) if is_cheap and draw == 0 else None
    return [{"family": family, "values": values, "n": n, "draw": draw, "heads": heads, "moment": moments[at], "t": run.times[at],
             **_numbers(attention_at(run, at), at == len(moments) - 1), "change": _change(run, finer, at)}
            for at in range(len(run.times))]


def _numbers(P: np.ndarray, is_last: bool) -> dict[str, Any]:
    """The numbers of attention matrices P (h, n, n); those of every single head at the last moment only."""
    from attnlab.analysis.attention import attention_rank, effective_rank, is_boolean_row

    heads, S = len(P), P.sum(axis=0)
    sizes = moduli(S)
    of_heads = [outermost(moduli(one)) for one in P] if is_last else [0]
    return {
        "radius": sizes[0] / heads, "second": sizes[1] / heads, "survivors": outermost(sizes, heads),
        "rows": np.abs(S.sum(axis=1) / heads - 1).max(), "rank": int(attention_rank(S)), "effective": float(effective_rank(S)),
        "is_decided": int(is_boolean_row(P, DECIDED).all()), "fewest": min(of_heads),
        "classes": outermost_count(S / heads) if is_last else 0, "unrelated": unrelated(P) if is_last else np.nan,
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
    x0 = starts(n, 0, trained)[family]
    systems = [drawn("polytope", 3, trained), *(system(family, "identity", heads, x0, 0, trained) for heads in (1, max(HEADS)))]
    found = []
    for weights, first in systems:
        run = followed(weights, first, SHOWN_TIMES, step_for(first))
        found.append([moduli(attention_at(run, at).sum(axis=0)) / weights.heads for at in range(len(run.times))])
    return xarray.Dataset({"modulus": (("case", "time", "order"), np.array(found)), "moment": ("time", SHOWN_TIMES)},
                          attrs={"family": family, "n": n})


def reference(size: str) -> Any:
    """Eigenvalues of the sum of two heads at REFERENCE_END by our run, and by SciPy's DOP853 with a plain right-hand side."""
    from scipy.special import softmax

    from attnlab.engine import simulate

    n = min(REPEATS[size])
    weights, x0 = system("synthetic", "identity", 2, starts(n, 0, None)["synthetic"], 0, None)
    M = [Q.T @ K for Q, K in zip(weights.Q, weights.K, strict=True)]

    def total(x: np.ndarray) -> np.ndarray:
        return np.asarray(sum(softmax(x @ one @ x.T, axis=1) for one in M))

    end = REFERENCE_END / 2
    theirs = by_scipy(weights, x0, end)
    ours = attention_at(simulate(weights, x0, t_end=end, times=[0.0, end], rtol=1e-9), -1).sum(axis=0)
    return table({"ours": moduli(ours), "theirs": moduli(total(theirs))}, "order")


def figures(data: Data) -> dict[str, Any]:
    """Moduli over time and what is left of them; gap and rank against the number of heads; single heads one by one."""
    from attnlab.experiments.attention_eigenvalues_figures import gap_and_rank, over_time, single_heads

    return {"attention_eigenvalues": over_time(data), "attention_gap_and_rank": gap_and_rank(data),
            "attention_survivors": single_heads(data)}


def _leaky(every: Any) -> None:
    """Rows that sum to 0.99, as a softmax with a mask that forgets to divide."""
    every["radius"] = every["radius"] * 0.99
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
    one = data["shown"]
    family = as_shown(str(one.attrs["family"]), one.attrs["model"])
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
        "slides' case, they are nearly right: one eigenvalue of modulus H, and the next is close to nothing in most draws, else "
        "about H / 16, what one head that disagrees can leave. Fewer heads keep more: with four, two of modulus H are not rare. "
        "With own V_h sixteen heads keep one of modulus H too, but the second is not gone: with synthetic heads it is what heads "
        "without relation would leave, at most about H / √H, and with trained ones more.\n\n"
        "Each case is drawn three to eight times, synthetic heads and starts anew, trained heads from other pieces of text; "
        "means come with 95 % intervals. More than half of the sums of sixteen heads are not Boolean yet at the last moment, and "
        "late ones with own V_h hang on the step.",
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
