"""Three dimensions: the hull of the tokens shrinks to a polytope, and every further head takes corners away."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from attnlab.analysis.clusters import OBSERVED_SCALE
from attnlab.analysis.distances import diameter
from attnlab.analysis.hull import convex_hull
from attnlab.experiments import experiments
from attnlab.experiments.common import merging as flows
from attnlab.experiments.common.heads import HEADS, VALUES, as_shown, real_start, synthetic_heads, trained_heads, trained_model
from attnlab.experiments.common.plain_flow import z_by_scipy
from attnlab.experiments.common.portraits import outward, values_of
from attnlab.experiments.datasets import dataset_of, rows_where, run_in, table
from attnlab.experiments.record import Claim, Data, Experiment
from attnlab.experiments.spoils import changed
from attnlab.experiments.three_dimensions_figures import PICTURED, figures
from attnlab.progress import Progress
from attnlab.types import Trajectory, Weights

D, MANY = 3, max(HEADS)
SPREAD = 0.3
"""The heads "near": Q_h = K_h = I + SPREAD G_h, G_h Gaussian, so that scores are positive and heads differ a little."""

SYNTHETIC = ("near", "synthetic")
N = {"full": 40, "small": 20}
DRAWS, OWN_DRAWS = {"full": 30, "small": 6}, {"full": 8, "small": 2}
STEP, FINE = {"identity": 0.1, "own": 0.15}, {"identity": 0.05, "own": 0.15}
"""Steps in tau: for many draws, and for what is shown."""

WATCHED = 4.0
"""With the heads' own V the hull is watched up to this tau: later z = exp(-tW) x is known in the slow directions only."""

SHOWN = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0])
"""The tau of the accurate runs."""

COMPARED = 4.0


def near_heads(count: int, values: str, seed: int) -> Weights:
    """Heads with Q_h = K_h = I + SPREAD G_h; V_h = I, or I + SPREAD G'_h for values "own"."""
    G, _, other = np.moveaxis(np.random.default_rng([seed, D]).normal(size=(MANY, 3, D, D)), 1, 0)[:, :count]
    Q, V = np.eye(D) + SPREAD * G, np.eye(D) + (SPREAD * other if values == "own" else 0.0 * other)
    return Weights(Q=Q, K=Q, V=V, source=f"{count} heads near the identity, rng = {seed}, values: {values}")


def problem(family: str, count: int, values: str, seed: int, n: int) -> tuple[Weights, np.ndarray]:
    """Synthetic weights, and tokens uniform in [-5, 5]^3."""
    from attnlab.starts import uniform_cube

    weights = near_heads(count, values, seed) if family == "near" else synthetic_heads(count, D, values, rng=seed)
    return weights, uniform_cube(n, D, low=-5.0, high=5.0, rng=seed)


def compute(size: str, progress: Progress, model: str = "minilm") -> dict[str, Any]:
    """Accurate runs that are shown, many draws, certified polytopes of one head, trained heads, and SciPy."""
    loaded, why = trained_model(size, model)
    progress(0.0, "runs that are shown")
    data = {**_shown(N[size]), "checks": _check(N[size] // 2)}
    progress(0.2, "certified polytopes")
    data["polytopes"] = _polytopes(DRAWS[size], N[size])
    progress(0.35, "many draws")
    rows = []
    for family, values in itertools.product(SYNTHETIC, VALUES):
        for count in HEADS:
            for seed in range(1, (DRAWS if values == "identity" else OWN_DRAWS)[size] + 1):
                flow = flows.follow(*problem(family, count, values, seed, N[size]), values, STEP[values])
                about = {"family": family, "values": values, "heads": count, "seed": seed}
                rows.append({**about, **_ends(flow, values, flow.shapes)})
        progress(0.35 + 0.1 * (1 + SYNTHETIC.index(family) * 2 + VALUES.index(values)), f"{family}, {values}")
    if loaded is not None:
        trained, data["trained"] = _trained(loaded, N[size])
        rows += trained
    data["cases"] = table({name: [row[name] for row in rows] for name in rows[0]}, n=N[size], why=why,
                          model=model if loaded is not None else "")
    progress(1.0)
    return data


def _shown(n: int) -> dict[str, Any]:
    """Accurate runs of heads near the identity, V_h = I: z at the tau that are shown, for each H; and the run to be filmed."""
    import xarray

    from attnlab.engine import simulate

    runs, ends = {}, []
    for count in HEADS:
        weights, x0 = problem("near", count, "identity", 1, n)
        runs[count] = simulate(weights, x0, times=SHOWN / count, t_end=SHOWN[-1] / count, rtol=1e-9, frame="z").z
        flow = flows.follow(weights, x0, "identity", FINE["identity"])
        ends.append(flow.labels)
    weights, x0 = problem("near", 4, "identity", 1, n)
    film = simulate(weights, x0, t_end=2.0, saves=101, rtol=1e-8, frame="z")
    shown = xarray.Dataset({"z": (("head_count", "tau", "token", "coordinate"), np.stack([runs[count] for count in HEADS])),
                            "labels": (("head_count", "token"), np.stack(ends)), "tau": ("tau", SHOWN)})
    return {"shown": shown, "film": dataset_of(film)}


def _ends(flow: flows.Shapes, values: str, space: np.ndarray) -> dict[str, Any]:
    """The numbers of a run seen in space (T, n, 3): corners, volume, who keeps them, how far a hull leaves the one before."""
    labels, is_whole = flow.labels, space is flow.shapes
    centres = np.array([space[-1][labels == k].mean(axis=0) for k in range(labels.max() + 1)])
    scale = OBSERVED_SCALE * float(diameter(space[0]))
    corners = int(flows.outer(centres, scale).sum()) if len(centres) > 1 else 1
    leaves = np.nan
    if values == "own" and is_whole:
        assert flow.run is not None and flow.run.z is not None
        leaves = outward(flow.run.z[flow.tau <= WATCHED])
    elif not is_whole and values == "identity":
        leaves = outward(space)
    return {"clusters": len(centres), "corners": corners, "movement": flows.movement(flow),
            "kept": flows.held(flow)[0] if values == "identity" and is_whole else np.nan,
            "volume": convex_hull(space[-1]).volume / convex_hull(space[0]).volume, "outward": leaves}


def _polytopes(draws: int, n: int) -> Any:
    """One head near the identity, certified: corners, edges, facets of the limit polytope; how far limits are from S."""
    from attnlab.limits import limit
    from attnlab.theory.statements.polytope import residuals, special_points

    found = []
    for seed in range(1, draws + 1):
        weights, x0 = problem("near", 1, "identity", seed, n)
        end = limit(weights, x0, work=250_000.0)
        if not end.certified:
            continue
        points, M = values_of(end.limits), weights.M[0]
        hull = convex_hull(points)
        size = float(np.abs(points).max())
        found.append({"seed": seed, "limits": len(points), "rank": hull.rank, "V": len(hull.vertices), "E": len(hull.edges),
                      "F": facets(points) if hull.rank == D else 0, "S": len(special_points(points[hull.vertices], M)),
                      "residual": float(residuals(points, M, 1e-9 * size).max() / size)})
    return table({name: [row[name] for row in found] for name in found[0]}, "draw", draws=draws)


def facets(points: np.ndarray) -> int:
    """The triangles that bound the hull of points (m, 3), by trying all triples: those with all points on one side."""
    count = 0
    for triple in itertools.combinations(range(len(points)), 3):
        a, b, c = points[list(triple)]
        normal = np.cross(b - a, c - a)
        heights = np.delete((points - a) @ normal, triple)
        count += bool((heights > 0).all() or (heights < 0).all())
    return count


def _trained(model: Any, n: int) -> tuple[list[dict[str, Any]], Any]:
    """Trained heads on a paragraph, all in their own d, seen in the three principal components of the first tokens."""
    import xarray

    rows, kept = [], []
    share = 0.0
    for values, count in itertools.product(VALUES, HEADS):
        flow = flows.follow(trained_heads(model, count, values), real_start(model, n), values, FINE[values])
        first = flow.shapes[0]
        _, sizes, axes = np.linalg.svd(first - first.mean(axis=0), full_matrices=False)
        share = float((sizes[:D] ** 2).sum() / (sizes**2).sum())
        space = flow.shapes @ axes[:D].T
        rows.append({"family": "trained", "values": values, "heads": count, "seed": 1, **_ends(flow, values, space)})
        if values == "identity":
            kept.append((space[[int(np.argmin(np.abs(flow.tau - tau))) for tau in PICTURED]], flow.labels))
    shown = xarray.Dataset({"z": (("head_count", "panel", "token", "coordinate"), np.stack([z for z, _ in kept])),
                            "labels": (("head_count", "token"), np.stack([labels for _, labels in kept]))},
                           attrs={"share": share, "d": int(model.config.d), "model": str(model.name)})
    return rows, shown


def _check(n: int) -> Any:
    """Four heads near the identity at tau = COMPARED, by the runs and by SciPy's DOP853."""
    import xarray

    from attnlab.engine import simulate

    weights, x0 = problem("near", 4, "identity", 1, n)
    run = simulate(weights, x0, t_end=COMPARED / 4, saves=2, rtol=1e-10, frame="z").z

    assert run is not None
    axes = ("token", "coordinate")
    return xarray.Dataset({"run": (axes, run[-1]), "exact": (axes, z_by_scipy(weights, x0, COMPARED))})


def chosen(data: Data, **where: Any) -> dict[str, np.ndarray]:
    """The columns of the cases with these entries."""
    cases, keep = data["cases"], rows_where(data["cases"], **where)
    return {str(name): cases[name].values[keep] for name in cases.data_vars}


def upper_end(sample: np.ndarray) -> float:
    """The upper end of the 95 % bootstrap interval of the mean."""
    picked = np.random.default_rng(0).integers(0, len(sample), (4000, len(sample)))
    return float(np.quantile(sample[picked].mean(axis=1), 0.975))


def claims(data: Data) -> list[Claim]:
    """The hull and the polytope of one head, and what several heads leave of it."""
    shown, test, found = data["shown"], data["checks"], data["polytopes"]
    solid = found["rank"].values == D
    V, E, F = (found[name].values[solid] for name in "VEF")
    near = {count: chosen(data, family="near", values="identity", heads=count) for count in HEADS}
    fewer = near[MANY]["corners"].astype(float) - near[1]["corners"]
    smaller = near[MANY]["volume"] - near[1]["volume"]
    still = chosen(data, values="identity", family=SYNTHETIC)
    at_rest = still["movement"] < flows.AT_REST
    formula = float(np.abs(V - E + F - 2).max()) if solid.any() else np.nan
    known = dict(zip(found["seed"].values.tolist(), found["V"].values.tolist(), strict=True))
    both = zip(near[1]["seed"].tolist(), near[1]["corners"], strict=True)
    counted = [corners != known[seed] for seed, corners in both if seed in known]
    several = chosen(data, family="near", values="identity", heads=HEADS[1:])
    inside = (several["clusters"] > several["corners"]) & (several["movement"] < flows.AT_REST)
    grown = chosen(data, values="own", family="near")["outward"]
    result = [
        Claim(text="V_h = I, 1 to 16 heads: the hull of z never grows: the farthest that a token leaves the hull of the time "
              "before, over the first diameter.", measured=max(outward(z) for z in shown["z"].values), published="not mentioned",
              low=-np.inf, high=1e-7, because="the proposition on the hull holds for several heads with V_h = I; a hundred "
              "times the tolerance of the runs"),
        Claim(text=f"One head: Euler's formula for {int(solid.sum())} certified limit polytopes, largest |V − E + F − 2|; "
              "corners by Qhull, edges by common facets, facets by trying all triples.", measured=formula, low=0, high=0,
              because="Euler's polyhedron formula"),
        Claim(text="One head: every certified limit lies in the set S of the polytope theorem: largest distance from the plane "
              "that must bound the polytope there, over its size.", measured=float(found["residual"].values.max()), low=-np.inf,
              high=1e-7, because="theorem: uᵀMu = max uᵀMv over the corners v; limits are certified within 1e-8 of their size"),
        Claim(text=f"One head: the corners that are seen at τ = {flows.END:g} are as many as those of the certified polytope: "
              f"draws where not, of {len(counted)}.", measured=float(np.sum(counted)), low=0, high=0,
              because="the certificate of t = ∞"),
        Claim(text=f"{MANY} heads near the identity leave fewer corners than one: mean difference, upper end of the 95 % "
              "interval.", measured=upper_end(fewer), published="no comparison", low=-np.inf, high=0,
              because="a corner stands only if its token leads itself in every head, and each further head is one more "
              "condition", differs=f"{near[1]['corners'].mean():.2g} corners with one head, {near[MANY]['corners'].mean():.2g} "
              f"with {MANY}."),
        Claim(text=f"Their polytope is smaller: its volume over that of the first hull, with {MANY} heads less with one, mean, "
              "upper end of the 95 % interval.", measured=upper_end(smaller), published="no comparison", low=-np.inf, high=0,
              because="the hull shrinks for as long as a corner is pulled away by any head",
              differs=f"{near[1]['volume'].mean():.2g} of the first volume with one head, {near[MANY]['volume'].mean():.2g} "
              f"with {MANY}."),
        Claim(text=f"A corner keeps its attention in every head: least share over corners and heads of {int(at_rest.sum())} "
              "runs at rest.", measured=float(still["kept"][at_rest].min()), low=0.99, high=1 + 1e-12,
              because="a corner that gives a share of a head away moves inwards"),
        Claim(text="Several heads near the identity: there are clusters at rest that are no corners: share of the runs.",
              measured=float(inside.mean()), published="not mentioned", low=0.5 / len(inside), high=1,
              because="a token whose heads choose different corners comes to rest at their mean; with one head nobody does",
              differs=f"With one head: {int(np.sum(near[1]['clusters'] > near[1]['corners']))} of {len(near[1]['seed'])} runs."),
        Claim(text="With the heads' own V the hull need not shrink: share of the runs near the identity in which a token z = "
              f"exp(−tW) x leaves the hull of the time before by more than 1 % of the first diameter, up to τ = {WATCHED:g}.",
              measured=float(np.mean(grown > 0.01)), low=0.5 / len(grown), high=1,
              because="the proposition needs V_h = c_h I; with other maps a follower is not drawn along a straight line"),
        Claim(text=f"The run with four heads agrees with SciPy's DOP853 at τ = {COMPARED:g}: largest difference over the "
              "largest token.", measured=float(np.abs(test["run"] - test["exact"]).max() / np.abs(test["exact"]).max()), low=0,
              high=1e-6, because="both have the tolerance 1e-10; the rest is room for what a change of leader makes of it"),
    ]
    trained = chosen(data, family="trained", values="identity")["outward"]
    if len(trained):
        facts = data["trained"].attrs
        result.append(Claim(text=f"{as_shown('Trained', facts['model'])} heads, V_h = I, seen in three principal components of "
                            f"{facts['d']} dimensions: the hull of what is seen never grows either, over the first diameter.",
                            measured=float(trained.max()), low=-np.inf, high=1e-6,
                            because="a linear image of hulls that lie in each other; Runge and Kutta's steps of 0.05 in τ keep "
                            "weights that sum to 1, and those of saturated attention positive"))
    return result


def film(data: Data) -> Trajectory:
    """Four heads near the identity, to be filmed."""
    return run_in(data, "film")


def _swollen(shown: Any) -> None:
    """From the fourth tau on the tokens drift outwards."""
    z = shown["z"].values.copy()
    z[:, 4:] *= np.linspace(1.05, 2.0, z.shape[1] - 4)[:, None, None]
    shown["z"] = (shown["z"].dims, z)


def _missing(found: Any) -> None:
    """An edge too few, and limits off their planes."""
    found["E"] = found["E"] - 1
    found["residual"] = found["residual"] + 1e-3


def _backwards(cases: Any) -> None:
    """Heads counted backwards, for V_h = I and the synthetic ones."""
    order = {count: HEADS[-1 - k] for k, count in enumerate(HEADS)}
    cases["heads"] = ("row", np.array([order[int(count)] for count in cases["heads"].values]))


def _leaky(cases: Any) -> None:
    """Corners that look elsewhere, and hulls that grow where they must not and shrink where they need not."""
    cases["kept"] = cases["kept"] * 0.5
    cases["clusters"] = cases["corners"]
    cases["outward"] = ("row", np.where(cases["values"].values == "own", 0.0, 0.1))


def _noisy(test: Any) -> None:
    """Tokens off by a thousandth."""
    test["run"] = test["run"] * 1.001


experiments.register("three_dimensions")(
    Experiment(
        name="three_dimensions",
        title="Three dimensions: a polytope, and the corners that several heads take away",
        cite="Sugolov, Aubry, MAT1510 project, University of Toronto, November 2023 (slides), three dimensions as an outlook; "
        "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465, section 3 (polytopes)",
        about="The slides end with three dimensions as something to look at. Here tokens start in a cube of R³ and flow under "
        "1, 2, 4, 8 or 16 heads with V = I. What is drawn is z = exp(−τ) x with the clock τ = Ht, and its convex hull, which "
        "never grows whatever the number of heads.\n\n"
        "One head with positive scores: the hull ends as a polytope with a leader at each corner. The end is certified, its "
        "corners, edges and facets obey Euler's formula, and all limits lie in the finite set of the theorem. Further heads, "
        "each a little different (Q = K = I plus a random matrix), take corners away: a corner stays only where its token "
        "leads itself in every head. Tokens whose heads choose different corners end between them, where one head puts "
        "nobody.\n\n"
        "With the heads' own value matrices nothing of this is left: the cloud is stretched and turned, and its hull may grow. "
        "Trained heads live in hundreds of dimensions; they flow there, and what is shown are the three principal components "
        "of the first tokens. At size small a tiny random model stands in for them.",
        compute=compute,
        claims=claims,
        figures=figures,
        movie=film,
        movie_options={"kind": "tokens", "frames": 100},
        spoils={
            "tokens drift outwards": changed("shown", _swollen),
            "an edge too few": changed("polytopes", _missing),
            "heads counted backwards": changed("cases", _backwards),
            "corners look elsewhere": changed("cases", _leaky),
            "tokens off by a thousandth": changed("checks", _noisy),
        },
    )
)
