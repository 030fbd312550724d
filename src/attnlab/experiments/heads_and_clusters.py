"""How the number of heads changes clusters: heads that disagree let nobody stand, and tokens merge."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from attnlab.analysis.clusters import OBSERVED_SCALE, cluster_count
from attnlab.analysis.distances import diameter
from attnlab.experiments import experiments
from attnlab.experiments.common import merging as flows
from attnlab.experiments.common.heads import HEADS, VALUES, Trained, in_span, real_start, synthetic_heads
from attnlab.experiments.common.plain_flow import z_by_scipy
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.heads_and_clusters_claims import COMPARED, EULER_STEP, MANY, SYNTHETIC, claims
from attnlab.experiments.heads_and_clusters_figures import figures
from attnlab.experiments.parts import Context, Part, Parts, Results, grids_of
from attnlab.experiments.record import Data, Experiment
from attnlab.experiments.spoils import changed
from attnlab.sweep.grid import Grid
from attnlab.types import Weights

D = 3
DRAWS = {"full": {10: 20, 30: 20, 100: 20, 300: 6}, "small": {10: 5, 20: 4}}
"""How many draws of weights and start for each n."""

CUBES = {"full": {10: 20, 30: 10, 100: 6, 300: 4}, "small": {5: 6, 10: 3, 20: 5}}
PIECES = {"full": {10: 10, 30: 10, 100: 6, 300: 3}, "small": {5: 2, 10: 10, 20: 3}}
"""Trained heads: random starts, and pieces of the paragraphs, for each n."""

FIRST_PIECE = {10: 90, 100: 3}
"""The first piece that is read (else 0): so that pieces of 10, 30 and 100 tokens do not overlap; those of 300 do."""

SIZES = {"full": {"few": 30, "more": 100, "many": 300}, "small": {"few": 5, "more": 10, "many": 20}}
"""What few (at most), more and many tokens are in the words of the slides."""

STEP, FINE_STEP, TEXT_STEP, OWN_STEP, FINE_OWN_STEP = 0.1, 0.05, 0.2, 0.2, 0.15
"""Steps in tau; fine ones for one or two trained heads on the cube, where a change of leader turns a token at once, and for
sixteen trained heads with their own values, which hang on it most; long ones for text, whose scores are soft at first."""

AT_MOST = 100
"""More tokens only with V_h = I and without certified limits; trained ones with one head and with all, of the cube with all."""

WORK = 625_000.0
"""Units for one certified limit. The dearest, of embedded tokens, took 28,000 of them."""

OWN_DRAWS, OWN_TRAINED = {10: 10, 20: 1, 30: 10, 100: 3}, {"full": {30: 3}, "small": {5: 1}}
"""With the heads' own values: draws by n; trained heads, of which a run costs most, have fewer starts of each kind."""

HALVED, MOST_HALVED = {"full": 5, "small": 3}, {"full": 30, "small": 10}
"""V_h = I: so many draws of each case up to so many tokens are followed by half the steps too; own values: all."""

MIXTURES = 2000
PANELS: dict[str, dict[int, tuple[float, ...]]] = {
    "full": {30: (1.0, 7.0, 15.0), 100: (1.0, 10.0, 20.0)}, "small": {10: (1.0, 3.0), 20: (1.0, 4.0)},
}
"""The times shown in the slides, by n."""

RUNS, DOING = ("narrow", "wide"), "{family}, n = {n}, {heads} heads"
PLACES = ("n", "heads", "values", "seed", "cosine", "half", "high")
"""The parts that are runs, the words for their progress, and the columns of the table of places."""


def cost(n: int, heads: int, **_: Any) -> float:
    """The work of a run."""
    return n**2 * heads


def cube(n: int, d: int, seed: int) -> np.ndarray:
    """Tokens uniform in [-5, 5]^d."""
    from attnlab.starts import uniform_cube

    return uniform_cube(n, d, low=-5.0, high=5.0, rng=seed)


def synthetic(family: str, count: int, values: str, seed: int) -> Weights:
    """Gaussian heads in three dimensions; of the family "alike" with K_h = Q_h."""
    weights = synthetic_heads(count, D, values, rng=seed)
    if family == "synthetic":
        return weights
    return Weights(Q=weights.Q, V=weights.V, K=weights.Q, source=f"{weights.source}, K = Q")


def run_grids(size: str, is_wide: bool) -> list[Grid]:
    """All runs; wide ones are followed in NumPy, so that two may go at once."""
    found: list[tuple[Any, ...]] = [
        (family, values, "cube", n, HEADS, draws if values == "identity" else min(draws, OWN_DRAWS[n])) for family in SYNTHETIC
        for values in VALUES for n, draws in DRAWS[size].items() if values == "identity" or n <= AT_MOST]
    for start, many in (("cube", CUBES[size]), ("paragraph", PIECES[size])):
        found += [("trained", "identity", start, n, HEADS if n <= AT_MOST else (MANY,) if start == "cube" else (1, MANY), draws)
                  for n, draws in many.items()]
        found += [("trained", "own", start, n, HEADS, draws) for n, draws in OWN_TRAINED[size].items()]
    return grids_of("family, values, start, n, heads, seed", [
        one for one in found if is_wide == (one[:2] == ("trained", "identity") and one[3] >= flows.WIDE)], first=1)


def assemble(results: Results) -> dict[str, Any]:
    """Every run with its clusters; where clusters of paragraphs are; the slides' Euler steps; and what is known exactly."""
    data = {"euler": table_of_rows(results.rows("euler")), "checks": results.values("checks")[0]}
    data["cases"] = table_of_rows([row for part in RUNS for row in results.rows(part, "row")], axes={"counts": ("tau",)},
                                  model=results.shared.name, why=results.why)
    data["cases"].attrs.update(SIZES[results.size])
    places = [row for part in RUNS for row in results.rows(part, "places")]
    if places:
        data["places"] = table_of_rows([{name: row[name] for name in PLACES} for row in places], "cluster",
                                       model=results.shared.name)
    return data


def measure_run(context: Context, **case: Any) -> dict[str, Any]:
    """{"row": its numbers, "places": where clusters of a paragraph are}; by half the steps where they were taken too.

    halved: the number of clusters by half the steps less that by whole ones; apart: how far tokens are apart then, at the end and
    over the first diameter; NaN where only whole ones were taken. counts: the number of clusters over time.
    """
    family, values, start, n, count, seed = case.values()
    (weights, x0), size = problem(context.shared, **case), context.size
    step, halved, apart = step_of(family, values, start, count), np.nan, np.nan
    flow = flows.follow(weights, x0, values, step, until_single=True)
    if values == "own" or (n <= MOST_HALVED[size] and seed <= HALVED[size]):
        whole, flow = flow, flows.follow(weights, x0, values, step / 2, until_single=True)
        if whole.is_complete and flow.is_complete:
            halved = len(flow.centres) - len(whole.centres)
            last = min(len(flow.shapes), len(whole.shapes)) - 1
            off = np.linalg.norm(flow.shapes[last] - whole.shapes[last], axis=1).max()
            apart = float(off / diameter(flow.shapes[0]))
    counts = flows.counts_over_time(flow) if values == "identity" else flows.count_at_end(flow)
    is_simple = family in SYNTHETIC and values == "identity"
    kept, inner = flows.held(flow) if is_simple or (values == "identity" and count == MANY) else (np.nan, 0)
    row = {
        "count": len(flow.centres), "movement": flows.movement(flow), "is_complete": int(flow.is_complete),
        "merging": flows.last_merging(counts) if values == "identity" else np.nan,
        "reached": float(flow.tau[-1]), "kept": kept, "inner": inner, "halved": halved, "apart": apart,
        "gap": _gap(weights) if family == "alike" and count == 1 else np.nan,
        "certified": _certified(weights, x0) if is_simple and count == 1 and n <= AT_MOST else 0, "counts": counts,
    }
    return {"row": row, "places": _places(flow) if start == "paragraph" else []}


def step_of(family: str, values: str, start: str, count: int) -> float:
    """The step in tau of a run."""
    if values == "own":
        return FINE_OWN_STEP if family == "trained" and count == MANY else OWN_STEP
    if start == "paragraph":
        return TEXT_STEP
    return FINE_STEP if family == "trained" and count <= 2 else STEP


def problem(shared: Trained, family: str, values: str, start: str, n: int, heads: int, seed: int) -> tuple[Weights, np.ndarray]:
    """The weights and the first tokens of a run; of a paragraph the seed-th piece of n tokens that is read."""
    if family in SYNTHETIC:
        return synthetic(family, heads, values, seed), cube(n, D, seed)
    weights = shared.heads(heads, values)
    if start == "cube":
        return weights, cube(n, weights.d, seed)
    return weights, real_start(shared.model, n, FIRST_PIECE.get(n, 0) + seed - 1)


def _gap(weights: Weights) -> float:
    """How far a real positive leading eigenvalue of V is ahead of the others, over itself; 0 where another one leads."""
    values = np.linalg.eigvals(weights.full_V[0])
    first = values[np.argmax(values.real)]
    rest = np.delete(values.real, np.argmax(values.real))
    return float((first.real - rest.max()) / first.real) if first.imag == 0 and first.real >= np.abs(values).max() else 0.0


def _certified(weights: Weights, x0: np.ndarray) -> int:
    """The number of limits of one head, certified; 0 where WORK does not decide it."""
    from attnlab.limits import limit

    end = limit(weights, x0, work=WORK)
    return end.count or 0


def _places(flow: flows.Shapes) -> list[dict[str, Any]]:
    """For each cluster: the cosine to the nearest first token, and what random mixtures of the tokens have there."""
    tokens = flow.shapes[0]
    chance = flows.nearest_cosine(flows.random_mixtures(tokens, MIXTURES), tokens)
    return [{"cosine": float(cosine), "half": float(np.median(chance)), "high": float(np.quantile(chance, 0.95))}
            for cosine in flows.nearest_cosine(flow.centres, tokens)]


def panels(size: str) -> Grid:
    """What the slides show: 16 heads, V_h = I, the cube."""
    return Grid({"family": (*SYNTHETIC, "trained"), "n": tuple(PANELS[size])})


def compare_euler(context: Context, family: str, n: int) -> list[dict[str, Any]]:
    """What the slides computed: Euler steps of x beside the flow as far as double precision goes, a row for each time."""
    times, found = PANELS[context.size][n], []
    weights, start, _ = in_span(*problem(context.shared, family, "identity", "cube", n, MANY, 1))
    flow = flows.follow(weights, start, "identity", step_of(family, "identity", "cube", MANY))
    scale = OBSERVED_SCALE * float(diameter(start))
    steps = euler_steps(weights, start, round(max(times) / EULER_STEP))
    for t in times:
        k = round(t / EULER_STEP)
        at = int(np.argmin(np.abs(flow.tau - MANY * t)))
        z = steps[k] / (1 + EULER_STEP * MANY) ** k
        found.append({
            "t": t, "tau": MANY * t, "euler": int(cluster_count(z, scale)),
            "flow": int(cluster_count(flow.shapes[at], scale)) if MANY * t <= flows.END else -1,
            "off": float(np.linalg.norm(z - flow.shapes[at], axis=1).max() / diameter(start)),
            "growth": float(np.abs(steps[k]).max() / np.abs(steps[k - 1]).max()),
        })
    return found


def euler_steps(weights: Weights, x0: np.ndarray, count: int) -> np.ndarray:
    """x (count + 1, n, d) by x + dt sum_h P_h x, in plain NumPy."""
    from scipy.special import softmax

    x = [x0]
    for _ in range(count):
        x.append(x[-1] + EULER_STEP * sum(softmax(x[-1] @ M @ x[-1].T, axis=1) @ x[-1] for M in weights.M))
    return np.array(x)


def checks(_: Context) -> Any:
    """Equal heads against one head; SciPy on a plain right-hand side; and where double precision ends."""
    import xarray

    from attnlab.engine import simulate

    one, x0 = synthetic("alike", 1, "identity", 1), cube(10, D, 1)
    equal = Weights(Q=np.repeat(one.Q, MANY, 0), K=np.repeat(one.K, MANY, 0), V=np.repeat(one.V, MANY, 0), source="equal heads")
    first = simulate(one, x0, t_end=10.0, saves=41, rtol=1e-9, frame="z").z
    second = simulate(equal, x0, t_end=10.0 / MANY, saves=41, rtol=1e-9, frame="z").z
    assert first is not None and second is not None
    walls, off = [], []
    for family, count in (("synthetic", MANY), ("alike", 4)):
        weights, start = synthetic(family, count, "identity", 2), cube(10, D, 2)
        theirs = z_by_scipy(weights, start, COMPARED, rtol=1e-8)
        for flow in (flows.follow(weights, start, "identity", STEP), flows.with_summed_heads(weights, start, STEP, True)):
            if flow.tau[-1] >= COMPARED:
                at = int(np.searchsorted(flow.tau, COMPARED))
                off.append(float(np.linalg.norm(flow.shapes[at] - theirs, axis=1).max() / diameter(start)))
        long = simulate(weights, start, t_end=80 / count, saves=321, stepper="rk4", dt=0.25 / count, frame="z", throw=False)
        walls.append(float(long.times[-1] * count) if not long.is_ok else np.inf)
    return xarray.Dataset({"one": (("time", "token", "coordinate"), first), "equal": (("time", "token", "coordinate"), second),
                           "off": ("compared", np.array(off)), "wall": ("run", np.array(walls))})


def _one_more(cases: Any) -> None:
    """One cluster too many wherever there is one head, three where it has its own values."""
    one = cases["heads"].values == 1
    cases["count"] = ("row", cases["count"].values + one + 2 * (one & (cases["values"].values == "own")))


def _reversed_heads(cases: Any) -> None:
    """Heads counted backwards."""
    order = {count: HEADS[-1 - k] for k, count in enumerate(HEADS)}
    cases["heads"] = ("row", np.array([order[int(count)] for count in cases["heads"].values]))


def _inside(cases: Any) -> None:
    """A cluster inside the hull wherever there is one head."""
    cases["inner"] = ("row", (cases["heads"].values == 1).astype(int))


def _slow_merging(cases: Any) -> None:
    """As if times were kept in t and taken for the clock."""
    cases["merging"] = cases["merging"] * cases["heads"]


def _fewer_for_more(cases: Any) -> None:
    """The numbers of clusters of trained heads, falling with n."""
    falling = np.where(cases["n"].values == cases["n"].values.min(), 2, 1)
    cases["count"] = ("row", np.where(cases["family"].values == "trained", falling, cases["count"].values))


def _let_go(cases: Any) -> None:
    """Corners give half of their attention away."""
    cases["kept"] = 0.5 * cases["kept"]


def _other_by_half_steps(cases: Any) -> None:
    """Half the steps find one cluster more in every run."""
    cases["halved"] = cases["halved"] + 1


def _exact_steps(steps: Any) -> None:
    """Growth as the flow has it."""
    steps["growth"] = ("row", np.full(steps.sizes["row"], np.exp(EULER_STEP * MANY)))


def _other_numbers(found: Any) -> None:
    """Equal heads that drift, runs that are off, and no end of double precision."""
    found["equal"] = found["equal"] * 1.001
    found["off"] = found["off"] + 0.02
    found["wall"] = found["wall"] * 10


def _other_places(data: Data) -> Data:
    """Clusters of one head anywhere, those of several at first tokens."""
    if "places" not in data:
        return data

    def change(places: Any) -> None:
        one = places["heads"].values == 1
        places["cosine"] = ("cluster", np.where(one, 0.0, 1.0))

    return changed("places", change)(data)


experiments.register("heads_and_clusters")(
    Experiment(
        name="heads_and_clusters",
        title="More heads, fewer clusters: what 1 to 16 heads make of tokens",
        cite="Sugolov, Aubry, MAT1510 project, University of Toronto, November 2023 (slides), the flow with 16 heads",
        about="The slides let tokens flow under sixteen heads at once, x' = Σ P_h x, from a cube and from embedded "
        "paragraphs, and say: few tokens form one cluster, more tokens several that merge slowly, still more tokens clusters "
        "that look stable; and the cluster of a paragraph sits near one of its first tokens. Here are 1 to 16 heads, Gaussian "
        "ones and those of a trained model, with V = I as in the slides and with the heads' own values, several draws each.\n\n"
        "With V = I a token can stand still at the rim only if it attends to itself in every head. One head: many do, and "
        "there are several clusters, more of them with more tokens; they are the limits. Sixteen heads that disagree: hardly "
        "anybody does. Few tokens end in one cluster, as the slides say. A hundred do too, and merge early, not slowly. Three "
        "hundred random tokens may keep two clusters under trained heads, and these are stable, as the slides say: their corners "
        "attend to themselves alone in all sixteen heads. Pieces of text end in one cluster at every length, and so do Gaussian "
        "heads. If keys equal queries heads disagree less, one to three clusters stay, and merging is slow: a token that one of "
        "sixteen heads pulls away leaves sixteen times slower than by the clock τ = Ht. Several heads also have clusters inside "
        "the hull, at means of other clusters. With the heads' own values numbers of clusters need not come to rest and some "
        "hang on the step; halved steps say how many.\n\n"
        "A paragraph's cluster is near a first token with one head; with sixteen it is about as far as a random mixture of the "
        "tokens. The slides step by dt = 0.1, which is 1.6 on the clock of sixteen heads, and show times far beyond what "
        "double precision can order. At t = 1 and with a hundred tokens such steps leave several clusters where the flow has "
        "one or two already: some of what merges slowly in the slides is their scheme. At size small a tiny random model "
        "stands in for the trained one.",
        compute=Parts(
            {
                "narrow": Part(measure_run, partial(run_grids, is_wide=False), DOING, 0.3, cost),
                "wide": Part(measure_run, partial(run_grids, is_wide=True), DOING, 0.6, cost, at_once=2),
                "euler": Part(compare_euler, panels, "Euler steps, {family}, n = {n}", share=0.07),
                "checks": Part(checks, share=0.03),
            },
            prepare=Trained, leave_out=Trained.without, assemble=assemble,
        ),
        claims=claims,
        figures=figures,
        spoils={
            "one cluster too many": changed("cases", _one_more),
            "heads counted backwards": changed("cases", _reversed_heads),
            "one head with clusters inside": changed("cases", _inside),
            "mergings at the times of the slides": changed("cases", _slow_merging),
            "trained clusters do not grow in number": changed("cases", _fewer_for_more),
            "corners that are not held": changed("cases", _let_go),
            "numbers that hang on the step": changed("cases", _other_by_half_steps),
            "Euler steps grow like the flow": changed("euler", _exact_steps),
            "other numbers in the checks": changed("checks", _other_numbers),
            "clusters of paragraphs elsewhere": _other_places,
        },
    )
)
