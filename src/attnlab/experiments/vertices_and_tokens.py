"""Limiting structure against the number of tokens: hull vertices, tokens that lead themselves, certified limits, four laws."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.common.heads import Trained
from attnlab.experiments.common.plain_flow import z_by_scipy
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.final_leaders import counted, final_leaders
from attnlab.experiments.head_clusters import SEVERAL_HEADS, table_of_heads
from attnlab.experiments.parts import Context, Part, Parts, Results, grids_of
from attnlab.experiments.random_polytopes import LAWS, draw_points, expected_self_leaders, expected_vertices, self_leaders
from attnlab.experiments.record import Experiment
from attnlab.experiments.spoils import changed
from attnlab.experiments.vertices_and_tokens_claims import SLIDES, SOLID, claims
from attnlab.experiments.vertices_and_tokens_figures import figures
from attnlab.sweep.grid import Grid

COUNTS = {"full": (10, 30, 100, 300, 1000, 3000), "small": (10, 30, 100)}
SCALES = (0.1, 0.5, 1.0, 2.0, 5.0, 20.0)
STARTS = {"full": {10: 24, 30: 24, 100: 8, 300: 3}, "small": {10: 14, 30: 14}}
SHOWN = {"full": SCALES, "small": (0.1, 1.0, 2.0, SLIDES, 20.0)}
LARGE = [*((law, 2, 1000, scale, 3) for scale in (SLIDES, 20.0) for law in LAWS), *((law, 2, 1000, 0.5, 3) for law in SOLID),
         ("cube", 2, 3000, SLIDES, 5), ("normal", 2, 3000, SLIDES, 3), ("ball", 2, 3000, SLIDES, 1), ("ball", 2, 3000, 20.0, 2),
         ("sphere", 2, 3000, 20.0, 1)]
SPACE = [(law, 3, n, SLIDES, starts) for n, starts in ((10, 12), (30, 12), (100, 4), (300, 3), (1000, 3)) for law in LAWS]
FURTHER = {"full": [*LARGE, *SPACE],
           "small": [("cube", 2, 100, SLIDES, 4), ("ball", 2, 100, 20.0, 4),
                     *(("sphere", 2, 100, scale, 4) for scale in (2.0, SLIDES, 20.0)),
                     *((law, 3, 10, SLIDES, 2) for law in LAWS)]}
"""(law, d, n, scale, number of starts) beyond the table of all n of STARTS and all scales SHOWN in the plane."""

ASKED: dict[str, list[tuple[Any, ...]]] = {
    "full": [*((LAWS, 2, n, (1.0, SLIDES), starts) for n, starts in ((10, 6), (30, 6), (100, 2))),
             *((LAWS, 2, n, SLIDES, starts) for n, starts in ((300, 3), (1000, 1))), ("cube", 2, 3000, SLIDES, 1)],
    "small": [(LAWS, 2, 10, SLIDES, 1)]}
"""(laws, d, n, scales, number of starts) for which al.limit is asked, all in the plane and all in the table of limits."""

START = "law, d, n, scale, start"
WORK, SECONDS = 7.5e6, 600.0
"""Units and seconds for one certificate: far more than any takes. Seconds are a cap that a busy machine does not reach either."""

DRAWS = {"full": 300, "small": 45}
LATER = 2.0


def hull_grids(size: str) -> list[Grid]:
    """The cells of the first hulls, in which DRAWS starts are counted."""
    return [Grid({"law": LAWS, "d": (2, 3) if n <= 1000 else (2,), "n": [n]}, exclude=[{"law": "sphere", "d": 3}])
            for n in COUNTS[size]]


def limit_grids(size: str) -> list[Grid]:
    """The starts whose limits are counted: the table, then those further."""
    table_of_all = [(LAWS, 2, n, SHOWN[size], starts) for n, starts in STARTS[size].items()]
    return grids_of(START, [*table_of_all, *FURTHER[size]])


def drawn(law: str, n: int, d: int, start: int) -> np.ndarray:
    """The tokens of one start, at scale 1; laws have numbers of their own, so that their starts are independent."""
    return draw_points(law, n, d, np.random.default_rng([LAWS.index(law), n, d, start]))


def measure_hulls(context: Context, law: str, d: int, n: int) -> dict[str, float]:
    """Mean numbers of vertices and of tokens that lead themselves at t = 0, with standard errors and exact expectations."""
    from attnlab.analysis.hull import convex_hull

    found = []
    for draw in range(DRAWS[context.size] if law != "sphere" else 1):
        x = drawn(law, n, d, draw)
        vertices = convex_hull(x).vertices
        found.append((len(vertices), len(self_leaders(x, vertices))))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    return {"vertices": mean[0], "leaders": mean[1], "vertices_error": error[0], "leaders_error": error[1],
            "expected_vertices": expected_vertices(law, d, n), "expected_leaders": expected_self_leaders(law, d, n)}


def measure_limits(_: Context, law: str, d: int, n: int, scale: float, start: int) -> dict[str, Any]:
    """How many tokens lead themselves at first, how many limits there are, and when that is final; and who leads whom."""
    x = scale * drawn(law, n, d, start)
    final, t = final_leaders(x)
    farthest = int((x @ x.mean(axis=0)).argmax())
    is_farthest = final is not None and bool((final == farthest).all())
    row = {"leaders": len(self_leaders(x)), "limits": counted(final), "decided": t, "is_farthest": int(is_farthest)}
    return {"row": row, "final": final}


def certify(_: Context, law: str, d: int, n: int, scale: float, start: int) -> dict[str, Any]:
    """What al.limit certifies of a start; `others` is for `assemble`."""
    from attnlab.analysis.hull import directions, support
    from attnlab.limits import limit
    from attnlab.types import Weights

    x = scale * drawn(law, n, d, start)
    end, outward, error = limit(Weights(V=np.eye(2)), x, work=WORK, budget=SECONDS), np.nan, np.nan
    if end.grade == "exact":
        size_of_x, sides = float(np.abs(x).max()), directions(64, 2)
        outward = float((support(end.points @ end.basis.T, sides) - support(x, sides)).max()) / size_of_x
        error = float(end.error) / size_of_x
    row = {"limits": np.nan if end.count is None else end.count, "grade": str(end.grade), "others": np.nan, "outward": outward,
           "error": error}
    return {"row": row, "final": end.leaders}


def assemble(results: Results) -> dict[str, Any]:
    """The five tables; others: tokens to which al.limit gives another leader than the run of the same start does."""
    observed = {tuple(case.values()): one["final"] for case, one in results.found["limits"]}
    for case, one in results.found["certified"]:
        leaders = observed[tuple(case.values())]
        if one["row"]["grade"] == "exact" and leaders is not None:
            one["row"]["others"] = float((one["final"] != leaders).sum())
    return {"hulls": table_of_rows(results.rows("hulls"), draws=DRAWS[results.size]),
            "limits": table_of_rows(results.rows("limits", "row")), "certified": table_of_rows(results.rows("certified", "row")),
            "reference": results.values("reference")[0], "heads": table_of_heads(results)}


def reference(_: Context) -> Any:
    """Tokens z at t = 2 by the engine and by SciPy's DOP853, from a start of ten tokens in the square."""
    import xarray

    from attnlab.engine import simulate
    from attnlab.types import Weights

    x = SLIDES * draw_points("cube", 10, 2, np.random.default_rng([10, 2, 0]))
    weights = Weights(V=np.eye(2))
    run = simulate(weights, x, t_end=LATER, saves=2, rtol=1e-9)
    assert run.z is not None
    axes = ("token", "coordinate")
    return xarray.Dataset({"ours": (axes, run.z[-1]), "plain": (axes, z_by_scipy(weights, x, LATER)), "x0": (axes, x)})


def _more_vertices(rows: Any) -> None:
    """One vertex more, and one self-leader more, in every mean."""
    for name in ("vertices", "leaders"):
        rows[name] = rows[name] + 1.0


def _shifted(rows: Any) -> None:
    rows["expected_vertices"] = rows["expected_vertices"] * 1.2


def _all_lead(rows: Any) -> None:
    """Every self-leader is a limit at once, whatever the scale: no softmax."""
    rows["limits"] = ("row", rows["leaders"].values.astype(float))


def _one_for_all(rows: Any) -> None:
    """One cluster always."""
    rows["limits"] = ("row", np.ones(rows.sizes["row"]))
    rows["is_farthest"] = ("row", np.zeros(rows.sizes["row"], int))


def _undecided(rows: Any) -> None:
    counts = rows["limits"].values.copy()
    counts[::9] = np.nan
    rows["limits"] = ("row", counts)


def _other_leader(rows: Any) -> None:
    rows["others"] = rows["others"] + 1.0


def _outside(rows: Any) -> None:
    rows["outward"] = rows["outward"] + 1e-3


def _kicked(pair: Any) -> None:
    pair["ours"] = pair["ours"] * (1 + 1e-4)


def _escaped(rows: Any) -> None:
    rows["outward"] = rows["outward"] + 1e-3


experiments.register("vertices_and_tokens")(
    Experiment(
        name="vertices_and_tokens",
        title="How many clusters for how many tokens? Hull vertices, self-leaders and limits",
        cite="Sugolov, Aubry, MAT1510 project, University of Toronto, November 2023 (slides), future work: limiting structure "
        "against the number of tokens and the first law; Renyi and Sulanke 1963 and Efron 1965 for random hulls",
        about="One head with V = I and M = I: tokens end at a few limits. How many are there for n tokens? The slides saw one "
        "cluster for few tokens, several that slowly merge for more, and apparently stable ones for many, with 16 heads in "
        "many dimensions. Here n goes from 10 to 3000, for four laws of the start and six scales.\n\nThree numbers are "
        "compared: the vertices of the first hull, for which random-polytope theory has exact integrals; the tokens that lead "
        "themselves at t = 0, ⟨x_i, x_j⟩ ≤ |x_i|² for all j, for which there is such an integral too; and the limits, from "
        "runs whose leaders are final by a criterion on the gaps of scores. For a part of the starts in the plane, at the scales "
        "1 and 5, certified limits were asked for as well: all four laws up to n = 1000, the square up to n = 3000. They give "
        "every token the same leader; all else rests on the criterion. Up to n = 1000 every cell has three starts or more, at "
        "n = 3000 the square has five, the normal law three, the disc one or two, the circle one, whose number the criterion may "
        "leave open.\n\nWhat counts is "
        "the scale of the start as much as n. A large start is hardmax from the beginning: self-leaders stand still, so limits "
        "are as many as they: four to six in the square, whatever n; about n^(1/3) in the disc, √(ln n) for the normal law. On "
        "the circle all tokens lead themselves, but neighbours take each other over, and about √(n · scale) are left. A small "
        "start is averaged first, and one token, the farthest along the mean, takes all.",
        compute=Parts(
            {
                "hulls": Part(measure_hulls, hull_grids, "hulls, n = {n}", share=0.1),
                "limits": Part(measure_limits, limit_grids, "limits of {n} tokens", share=0.4),
                "certified": Part(certify, lambda size: grids_of(START, ASKED[size]), "certified limits of {n} tokens", 0.35,
                                  lambda n, **_: n**2),
                "reference": Part(reference, share=0.02),
                "heads": SEVERAL_HEADS,
            },
            prepare=Trained, leave_out=Trained.without, assemble=assemble,
        ),
        claims=claims,
        figures=figures,
        spoils={
            "one vertex more": changed("hulls", _more_vertices),
            "another exact expectation": changed("hulls", _shifted),
            "every self-leader a limit": changed("limits", _all_lead),
            "one cluster always": changed("limits", _one_for_all),
            "starts left open": changed("limits", _undecided),
            "one token certified to follow another": changed("certified", _other_leader),
            "certified limits outside the hull": changed("certified", _outside),
            "run kicked": changed("reference", _kicked),
            "tokens outside the hull": changed("heads", _escaped),
        },
    )
)
