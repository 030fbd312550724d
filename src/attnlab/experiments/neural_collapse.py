"""Neural collapse of tokens: clusters become points at a known rate (NC1), but nothing makes a simplex of them (NC2).

The runs are in neural_collapse_runs.py, what is claimed of them in neural_collapse_claims.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.common import heads as slides
from attnlab.experiments.neural_collapse_claims import claims
from attnlab.experiments.neural_collapse_runs import TAUS, cases_of, group_rows, plane_limits
from attnlab.experiments.record import Data, Experiment
from attnlab.experiments.spoils import changed
from attnlab.progress import Progress


def compute(size: str, progress: Progress, model: str = "minilm") -> dict[str, Any]:
    """A row for every family, start, kind of values and number of heads, many starts each; and limits in the plane."""
    from attnlab.engine.threads import one_blas_thread

    trained, why = slides.trained_model(size, model)
    cases, rows = cases_of(size, trained), []
    with one_blas_thread():
        for done, case in enumerate(cases):
            family, start, values, count, _ = case
            progress(0.95 * done / len(cases), f"{family}, {start}, V {values}, {count} heads")
            rows += group_rows(case, size, trained)
        data = {"cases": gathered(rows), "plane": plane_limits(size, progress.part(0.95, 1.0))}
    data["cases"].attrs.update(why=why, model="" if trained is None else trained.name)
    return data


def gathered(rows: list[dict[str, Any]]) -> Any:
    """The rows as one Dataset; entries that are arrays are curves over τ."""
    import xarray

    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return xarray.Dataset({name: (("row", "tau") if column.ndim == 2 else "row", column) for name, column in columns.items()},
                          coords={"tau": TAUS})


def figures(data: Data) -> dict[str, Any]:
    """Curves of NC1 and NC2; how many clusters there are, and NC2 in the end beside chance."""
    from attnlab.experiments.neural_collapse_figures import draw_curves, draw_simplex

    return {"neural_collapse": draw_curves(data), "neural_collapse_simplex": draw_simplex(data)}


def _relabelled(cases: Any) -> None:
    """Every NC1 by shuffled labels."""
    for name in ("rate", "scatter_rate"):
        cases[name] = cases[name] * 0.0
    cases["shuffled_p"] = cases["shuffled_p"] * 0.0 + 0.5


def _all_fall(cases: Any) -> None:
    """NC1 falls like e^(-2.5 τ) everywhere, and by the loops it is something else."""
    cases["rate"] = cases["rate"] * 0.0 - 2.5
    cases["loop"] = cases["loop"] * 1.1


def _more_clusters(cases: Any) -> None:
    """The more heads, the more clusters, with own values always three; and coarse runs have others."""
    cases["clusters"] = cases["clusters"] * 0 + cases["heads"] // 4 + 2
    cases["clusters"] = cases["clusters"].where(cases["values"] == "identity", 3)
    cases["step_pairs"] = cases["step_pairs"] + 1


def _askew(cases: Any) -> None:
    """Two clusters at a right angle, lengths of any kind, and limits that are not those of the runs."""
    cases["angles"], cases["norms"] = cases["angles"] + 1.0, cases["norms"] + 0.1
    cases["limit_gap"] = cases["limit_gap"] + 0.1


def _pulled(cases: Any) -> None:
    """Clusters that go to the corners of a simplex, as fast as they become points."""
    for name in ("place_angles", "place_norms"):
        cases[name] = cases[name] * 0.0
    cases["angle_rate"] = cases["angle_rate"] * 0.0 - 1.0


def _simplex(limits: Any) -> None:
    """The means of all clusters at the corners of a simplex, even where there is none."""
    limits["angles"] = limits["angles"] * 0.0


experiments.register("neural_collapse")(
    Experiment(
        name="neural_collapse",
        title="Neural collapse of tokens: clusters become points, but no simplex",
        cite="Sugolov, Aubry, MAT1510 project, University of Toronto, November 2023 (slides), the question of neural collapse; "
        "NC1 and NC2 of Papyan, Han, Donoho, PNAS 117 (2020)",
        about="When a classifier is trained long enough, the features of a class become one point (NC1), and the points of all "
        "classes the corners of a regular simplex (NC2). The slides see tokens cluster under attention and ask whether that is "
        "the same. Here NC1 and NC2 are followed with the final clusters as classes, clusters of one token left out, for 1 to "
        "16 heads, synthetic and of a trained model (one head with V = I: another with every start; else the first ones), with "
        "V = I as in the slides and with the heads' own values, from tokens uniform in [-5, 5]^d and, for the trained model, "
        "from embedded pieces of text. For one head with V = I the clusters are those of the certified limit; for more heads "
        "they are those of the run at its end, the same with a coarser run and with its last attention held fixed for "
        "ever.\n\n"
        "Half of it is the same. Clusters become points at a rate that is known exactly. But no simplex comes of them. Beside "
        "chance, that is as many tokens drawn from the same start, the clusters of one head are somewhat farther from a simplex "
        "by their angles and no nearer by their lengths, and those of several heads are much farther: a cluster whose heads look "
        "at different others ends on the line between them, with two heads in the middle. There NC1 is of no use: it falls more "
        "slowly than clusters shrink, and with two heads not at all. Two clusters are a simplex for free. With M = I in the "
        "plane clusters are nearer to one than chance, but there a simplex of more than three is impossible.\n\n"
        "Often there is nothing to compare: with 8 or 16 heads nearly always a single cluster is left, a collapse of all classes "
        "into one. With own values directions are followed, and all runs that can be decided end in one or two; in the others "
        "attention mostly does not come to rest, and what clusters there are depends on the step. (There chance means "
        "random directions in the span that is left.) The other two parts of neural collapse, NC3 and NC4, are about a "
        "classifier, and here is none. At size small a tiny random model stands in for the trained one.",
        compute=compute,
        claims=claims,
        figures=figures,
        spoils={
            "labels shuffled": changed("cases", _relabelled),
            "NC1 falls too fast": changed("cases", _all_fall),
            "more clusters with more heads": changed("cases", _more_clusters),
            "clusters askew": changed("cases", _askew),
            "clusters pulled to a simplex": changed("cases", _pulled),
            "a simplex in the plane": changed("plane", _simplex),
        },
    )
)
