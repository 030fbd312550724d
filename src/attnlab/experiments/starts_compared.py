"""Starts on the circle or sphere against cube, normal and real embeddings: what remains of the shape of the start at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.common import heads
from attnlab.experiments.datasets import table
from attnlab.experiments.record import Data, Experiment
from attnlab.experiments.spoils import changed
from attnlab.experiments.starts_compared_claims import claims
from attnlab.experiments.starts_compared_exact import LAWS, SCALE, exact_runs, pictures, plain, polygons, start_of
from attnlab.progress import Progress
from attnlab.types import Weights

TOKENS = {"full": 24, "small": 10}
FOR_LIMITS = 24
"""Tokens of the starts whose limits are certified, at both sizes: that is cheap."""

SIZES = {"full": (0.5, 1.0, 2.0, 5.0, 20.0, 80.0), "small": (1.0, 80.0)}
"""Root mean square norm of the start."""

CROSSED = {"full": ((2, 1.0), (2, 5.0), (3, 5.0)), "small": ((2, 5.0),)}
"""(d, size) of the starts of synthetic heads. The slides' cube [-5, 5]^d has the size 5 sqrt(d / 3)."""

STARTS = {"full": {"sizes": 8, "synthetic": 6, "trained": 3},
          "small": {"sizes": 3, "synthetic": 4, "trained": 3}}
GEOMETRIES = ("euclidean", "sphere")
CLOCK = np.array([0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0])
"""Saved times, in units of 1 / H where V_h = I, else of 1 / the largest real part of an eigenvalue of sum V_h, 0.3 at least."""

OWN_CLOCK = CLOCK[CLOCK <= 12.0]
LATER = 24.0
"""Own V_h: a run has ended only if the clusters at the end of OWN_CLOCK are the same sets of tokens at twice that time."""

STEPS = {"identity": 2000, "own": 800}
"""Adaptive steps that a run may take. Where leaders change without end, no number of them is enough: such runs are left out."""

STEP = 0.2
"""Runge-Kutta steps of trained heads with their own V_h, in units of the clock; twice as long ones, which go on to LATER, must
give equal clusters."""


def compute(size: str, progress: Progress, model: str = "minilm") -> dict[str, Any]:
    """Certified limits over the size of the start, all cases of heads, and what is known exactly."""
    from attnlab.engine.threads import one_blas_thread

    data = {"sizes": _sizes(size, progress.part(0.0, 0.2))}
    loaded, why = heads.trained_model(size, model)
    with one_blas_thread():                                         # on two, products this small wait longer than they compute
        rows = list(_synthetic(size, progress.part(0.2, 0.4)))
        if loaded is not None:
            rows += list(_trained(loaded, size, progress.part(0.4, 0.95)))
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    data["cases"] = table(columns, model=loaded.name if loaded is not None else "", why=why, n=TOKENS[size])
    progress(0.95, "what is known exactly")
    data |= {"polygons": polygons(), "exact": exact_runs(), "pictures": pictures(FOR_LIMITS)}
    progress(1.0)
    return data


def _sizes(size: str, progress: Progress) -> Any:
    """One head, Q = K = V = I: certified limits, with projection too; vertices, and tokens that lead themselves at t = 0."""
    from attnlab.analysis.hull import convex_hull
    from attnlab.limits import limit

    rows = []
    places = [(d, reach, law) for d in (2, 3) for reach in SIZES[size] for law in LAWS[:3]]
    for done, (d, reach, law) in enumerate(places):
        progress(done / len(places), f"certified limits, {law} of size {reach:g} in {d} dimensions")
        for rng in range(STARTS[size]["sizes"]):
            x0 = start_of(law, d, reach, rng, FOR_LIMITS)
            lead = self_lead(x0)
            clear = 4 * np.log(len(x0))
            end = limit(plain(d), x0, work=125_000.0)
            points = end.limits if end.certified else x0[:0]
            on_sphere = limit(plain(d), _unit(x0), geometry="sphere", work=125_000.0) if reach == 1.0 else None
            rows.append((d, reach, law, rng, len(convex_hull(x0).vertices), (lead >= 0).sum(), (lead > clear).sum(),
                         (lead > -clear).sum(), np.sum(np.where(leads_itself(end), lead < -clear, lead > clear)),
                         end.labels.max() + 1 if end.certified else -1,
                         len(convex_hull(points).vertices) if end.certified else -1,
                         -2 if on_sphere is None else on_sphere.labels.max() + 1 if on_sphere.certified else -1))
    names = ("d", "size", "law", "rng", "vertices", "self_led", "surely", "perhaps", "otherwise", "limits", "limit_vertices",
             "projected")
    return table(dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True)), n=FOR_LIMITS)


def self_lead(x: np.ndarray) -> np.ndarray:
    """|x_i|^2 less the largest <x_i, x_j>, j not i, of tokens x (n, d) -> (n,): token i leads itself where it is not negative."""
    products = x @ x.T
    others = np.where(np.eye(len(x), dtype=bool), -np.inf, products)
    return np.asarray(np.diag(products) - others.max(axis=1))


def leads_itself(end: Any) -> np.ndarray:
    """Which tokens lead themselves in a limit (n,); all False where it is not certified."""
    return np.asarray(end.leaders == np.arange(len(end.leaders))) & end.certified


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _synthetic(size: str, progress: Progress) -> Iterator[dict[str, Any]]:
    """Every case with Gaussian heads; heads and start are drawn anew for each rng."""
    for done, (d, reach) in enumerate(CROSSED[size]):
        for count in heads.HEADS:
            progress((done + count / 17) / len(CROSSED[size]), f"synthetic heads: {count}, d = {d}, size {reach:g}")
            for values in heads.VALUES:
                for rng in range(STARTS[size]["synthetic"]):
                    weights = heads.synthetic_heads(count, d, values, rng=rng)
                    rate = rate_of(weights, values)
                    for law in LAWS[:3]:
                        x0 = start_of(law, d, reach, rng, TOKENS[size])
                        for geometry in GEOMETRIES:
                            yield {**_names("synthetic", d, reach, count, values, law, rng, geometry),
                                   **_case(weights, x0, reach, values, geometry, rate)}


def _trained(model: Any, size: str, progress: Progress) -> Iterator[dict[str, Any]]:
    """Every case with the heads of a model, from pieces of embedded text, and from the other laws of the same size.

    Not the normal law under projection: that is the start on the sphere, number by number.
    """
    pieces = [heads.real_start(model, TOKENS[size], piece) for piece in range(STARTS[size]["trained"])]
    d, reach = model.config.d, float(np.sqrt((np.array(pieces) ** 2).sum(axis=-1).mean()))
    for done, count in enumerate(heads.HEADS):
        for values in heads.VALUES:
            weights = heads.trained_heads(model, count, values)
            rate = rate_of(weights, values)
            progress((done + (values == "own") / 4) / len(heads.HEADS), f"trained heads: {count}, values: {values}")
            for rng, piece in enumerate(pieces):
                for law in LAWS:
                    x0 = piece if law == "real" else start_of(law, d, reach, rng, TOKENS[size])
                    for geometry in GEOMETRIES[:1] if law == "normal" else GEOMETRIES:
                        yield {**_names("trained", d, reach, count, values, law, rng, geometry),
                               **_case(weights, x0, reach, values, geometry, rate)}


def _names(*values: Any) -> dict[str, Any]:
    return dict(zip(("family", "d", "size", "heads", "values", "law", "rng", "geometry"), values, strict=True))


def _case(weights: Weights, x0: np.ndarray, reach: float, values: str, geometry: str, rate: float) -> dict[str, Any]:
    """The numbers of one run: clusters, when they were the last ones, vertices, diameters, and whether the run has ended."""
    from attnlab.analysis.clusters import cluster_count
    from attnlab.analysis.distances import diameter

    clock = CLOCK if values == "identity" else OWN_CLOCK
    is_stepped = values == "own" and weights.is_factored
    times = clock if values == "identity" or is_stepped else np.append(clock, LATER)
    run = _simulated(weights, x0, reach, values, geometry, rate, times)
    every = run.scaled_x()[0]
    states, others = every[:len(clock)], list(every[len(clock):])
    if is_stepped:
        ends = np.array([0.0, clock[-1], LATER])
        others += list(_simulated(weights, x0, reach, values, geometry, rate, ends, 2 * STEP).scaled_x()[0][1:])
    sizes = np.linalg.norm(states, axis=-1).max(axis=-1)
    last = int(cluster_count(states[-1], SCALE * sizes[-1]))
    since = len(states) - 1                                         # clusters merge: one looks back from the end
    while since and cluster_count(states[since - 1], SCALE * sizes[since - 1]) == last:
        since -= 1
    # as many by chance would not be enough
    is_ok = run.is_ok and all(np.array_equal(_labels(states[-1]), _labels(other)) for other in others)
    shrinks = geometry == "euclidean" and values == "identity"
    return {
        "clusters": last, "merged": float(clock[since]),
        "diameter": float(diameter(states[-1]) / (2 * sizes[-1])), "first_diameter": float(diameter(states[0]) / (2 * sizes[0])),
        "vertices": _vertices(states[0]), "last_vertices": _vertices(states[-1]),
        "hull": float(diameter(run.z[-1]) / diameter(run.z[0])) if shrinks else np.nan,
        "reached": float(clock[len(states) - 1]), "is_ok": int(is_ok), "growth": _growth(weights),
    }


def _labels(x: np.ndarray) -> np.ndarray:
    """The cluster of each token (n,)."""
    from attnlab.analysis.clusters import cluster_labels

    return cluster_labels(x, SCALE * np.linalg.norm(x, axis=-1).max())


def _vertices(x: np.ndarray) -> int:
    """The vertices of the hull of the tokens; -1 where d is too large to list hulls."""
    from attnlab.analysis.hull import convex_hull

    return len(convex_hull(x).vertices) if x.shape[1] <= 3 else -1


def rate_of(weights: Weights, values: str) -> float:
    """The unit of the clock: H where V_h = I, else the largest real part of an eigenvalue of sum V_h, 0.3 at least."""
    return float(weights.heads) if values == "identity" else max(0.3, _growth(weights))


def _growth(weights: Weights) -> float:
    """The largest real part of an eigenvalue of sum V_h."""
    return float(weights.total.eigenvalues.real.max())


def _simulated(weights: Weights, x0: np.ndarray, reach: float, values: str, geometry: str, rate: float,
               clock: np.ndarray, step: float = STEP) -> Any:
    """The run at the times of the clock: on the sphere the size of the start is in beta."""
    from attnlab.engine import simulate

    options: dict[str, Any] = {"rtol": 1e-7, "max_steps": STEPS[values], "throw": False}
    if geometry == "sphere":
        x0, options = _unit(x0), options | {"geometry": "sphere", "beta": reach**2}
    if values == "identity":
        weights, x0, _ = heads.in_span(weights, x0)
    elif weights.is_factored:                                       # changes of leaders stop adaptive steps there
        weights, x0 = heads.in_reach(weights, x0)
        options |= {"stepper": "rk4", "dt": step / rate, "frame": "x" if geometry == "euclidean" else "auto"}
    return simulate(weights, x0, times=clock / rate, t_end=float(clock[-1] / rate), **options)


def figures(data: Data) -> dict[str, Any]:
    """Starts and limits in the plane, limits over the size; then clusters over the number of heads."""
    from attnlab.experiments.starts_compared_figures import over_heads, over_size
    from attnlab.render.style import house_style

    with house_style():
        return {"starts_compared": over_size(data), "starts_compared_heads": over_heads(data)}


def _all_kept(sizes: Any) -> None:
    """As many limits as tokens, at every size; and with projection two."""
    sizes["limits"] = ("row", np.full(sizes.sizes["row"], sizes.attrs["n"]))
    sizes["projected"] = sizes["projected"] + 1
    sizes["vertices"] = sizes["vertices"] - 1
    sizes["otherwise"] = sizes.attrs["n"] - sizes["perhaps"]


def _broken_polygon(found: Any) -> None:
    """A polygon that turns to one point in the end."""
    found["low"] = found["low"] * np.exp(-1e-3 * found["time"])
    found["limits"] = ("polygon", np.ones(found.sizes["polygon"], int))


def _other_tokens(exact: Any) -> None:
    """Runs that are off by a ten-thousandth."""
    for name in ("sixteen", "ours"):
        exact[name] = exact[name] * 1.0001


def _no_difference(cases: Any) -> None:
    """Three clusters, whatever the heads, as far apart as at the start; but two from the normal law."""
    cases["clusters"] = ("row", np.where(cases["law"].values == "normal", 2, 3))
    cases["diameter"] = cases["first_diameter"]
    cases["hull"] = cases["hull"] * 0 + 1.01


def _text_is_special(cases: Any) -> None:
    """Every token of a text stays by itself."""
    cases["clusters"] = ("row", np.where(cases["law"].values == "real", cases.attrs["n"], cases["clusters"].values))


experiments.register("starts_compared")(
    Experiment(
        name="starts_compared",
        title="Circle, cube, normal or real embeddings: what remains of the start",
        cite="Sugolov, Aubry, MAT1510 project, University of Toronto, November 2023 (slides), starts on the unit circle; "
        "projection to the sphere after Geshkovski et al., arXiv:2312.10794",
        about="The slides start tokens uniformly in the cube [-5, 5]^d or from embedded text; the unit circle is left as a "
        "question. It changes two things at once, shape and size; here circle (sphere), cube, normal law and real embeddings "
        "have the same second moment, and the size is varied by itself.\n\nOne head with Q = K = V = I: on the circle all "
        "tokens are vertices of the hull at first. From a large start almost all stay as separate limits, from the unit circle "
        "a few do, from a small one a single limit is left; a large start keeps the tokens that already lead "
        "themselves, but for near ties: all on the circle, few in the cube. Equally spaced tokens keep their symmetry and never "
        "merge. With projection to the sphere all meet in one point.\n\nWith several different heads and V_h = I one cluster is "
        "left from most starts, real embeddings included. One head with a Gaussian V of its own leaves almost all tokens apart "
        "where no direction of V grows. Where one does, some runs have one cluster and others more than twenty; whether that is "
        "more than with V = I in the mean is open. With several such V_h most runs reach no end, since leaders change again and "
        "again. With trained V_h and up to eight heads one cluster is left as a rule, from three pieces of text and from three "
        "starts of each other law alike. With sixteen it is not: on the sphere two pieces of text of three and one start of six "
        "of the other laws end in two clusters, and without projection sixteen heads are not resolved by our steps. A run "
        "has ended if its clusters are the same at twice the time, and where steps are fixed with twice the step; the others are "
        "counted and left out of the means.",
        compute=compute,
        claims=claims,
        figures=figures,
        spoils={
            "every token is kept": changed("sizes", _all_kept),
            "a polygon that collapses": changed("polygons", _broken_polygon),
            "tokens are elsewhere": changed("exact", _other_tokens),
            "heads make no difference": changed("cases", _no_difference),
            "text is another start": changed("cases", _text_is_special),
        },
    )
)
