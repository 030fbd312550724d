"""The master equation: z(t) = U(t) z(0) with stochastic U, what each cluster is made of, and what a frozen generator misses.

U(infinity) is certified for one head, from many starts; V_h = I and own V_h are compared with their frozen generators over draws.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.common import heads
from attnlab.experiments.datasets import table
from attnlab.experiments.master_equation_claims import SPOILS, claims
from attnlab.experiments.master_equation_figures import figures
from attnlab.experiments.propagators import (
    carrying,
    clusters_of,
    frozen,
    generator,
    late_difference,
    lost_attention,
    mixture_error,
    plain_propagator,
    start_of,
)  # fmt: skip
from attnlab.experiments.record import Experiment
from attnlab.experiments.value_propagators import (
    direction_count,
    foretold_tokens,
    frozen_by_products,
    frozen_by_scipy,
    frozen_values,
    plain_value_propagator,
    rightmost,
    second_order,
    seed_of_head,
)  # fmt: skip
from attnlab.progress import Progress
from attnlab.types import Weights

N, OWN_N = {"full": 30, "small": 8}, {"full": 30, "small": 6}
D = 3
SCALES = (0.1, 1.0, 3.0)
"""Factors of the starts: the cube [-1, 1]^3 for synthetic heads, an embedded piece of prose for trained ones."""

DRAWS = {"full": {"synthetic": 6, "trained": 3}, "small": {"synthetic": 1, "trained": 1}}
OWN_DRAWS = {"full": {"synthetic": 6, "trained": 3}, "small": {"synthetic": 1, "trained": 1}}
SPREAD_DRAWS = 3
"""Draws at size small where draws are compared: the largest start with one head and with 16."""

STARTS = {"full": {"square": 20, "smaller square": 20, "trained": 6}, "small": {"square": 6, "smaller square": 1, "trained": 1}}
HALF_WIDTHS = {"square": 5.0, "smaller square": 1.5}
END_DRAWS, MOST_STEPS = {"full": {"one": 20, "several": 8}, "small": {"one": 5, "several": 1}}, 3000

FACTORS = (0.05, 0.1, 0.2)
"""Small starts of V = I, by which the error of the frozen generator must grow like the square."""

SIZES_OF_TOKENS = (0.0125, 0.025, 0.05)
"""The largest first token of the small starts with own values."""

END = 25.0
"""H t of the last moment: double precision ends at about 30."""

EARLY = 1e-3
MOMENTS = np.concatenate([[0.0], np.geomspace(EARLY, END, 45)])
OWN_MOMENTS = np.concatenate([[0.0], np.geomspace(EARLY, 4.0, 33)])
"""In units of one over the spectral radius of sum_h V_h."""

RUNGE_KUTTA_STEP, BEFORE_STEPS = 0.05, 0.1
AGREED = 0.01
"""Two runs of a trained flow agree while no token differs by more than this part of the largest: one line's width in a figure."""

SHOWN = (0.5, 1.0, 2.0)
BLOCK_TOKENS, BLOCK_D, PLAIN_TIME = 6, 2, 2.0
CLOSE = 0.01


def compute(size: str, progress: Progress, model: str = "minilm") -> dict[str, Any]:
    """Certified U(infinity) of many starts; then all heads, with a frozen generator beside; then the same with own V_h."""
    from attnlab.engine.threads import one_blas_thread

    trained, why = heads.trained_model(size, model)
    progress(0.0, "one head, certified")
    data = {"plane": in_the_plane(N[size], "square"), "plane_smaller": in_the_plane(N[size], "smaller square")}
    data["certified"], data["mixtures"] = certified_starts(size, trained, progress.part(0.05, 0.25))
    data["heads"], data["errors"] = many_heads(size, trained, why, progress.part(0.25, 0.6))
    data["small_starts"] = small_starts(size)
    progress(0.6, "own values")
    with one_blas_thread():                                # matrices this small are faster on one
        data["blocks"] = blocks(size)
        data["own"], data["own_errors"] = own_values(size, trained, why, progress.part(0.62, 0.95))
        data["own_checks"], data["own_small_starts"] = own_checks(size, trained), own_small_starts(size, trained)
        data["ends"] = ends(size)
    progress(1.0)
    return data


def _square(kind: str, n: int, draw: int) -> tuple[Weights, np.ndarray]:
    from attnlab.starts import uniform_cube

    return Weights(V=np.eye(2)), uniform_cube(n, 2, low=-HALF_WIDTHS[kind], high=HALF_WIDTHS[kind], rng=draw)


def in_the_plane(n: int, kind: str) -> Any:
    """U(t) and p(t) of one head, V = I, M = I, from a square: by the engine, by SciPy, and U(infinity) certified."""
    import xarray

    from attnlab.engine import simulate
    from attnlab.limits import limit

    weights, x0 = _square(kind, n, 0)
    wide, start = carrying(weights, x0)
    run = simulate(wide, start, t_end=PLAIN_TIME, times=[0.0, *SHOWN], rtol=1e-9)
    end = limit(wide, start, work=1e6)
    assert run.z is not None
    z, U, p = plain_propagator(weights, x0, PLAIN_TIME, np.full(n, 1 / n))
    pair, triple = ("token", "source"), ("time", "token", "source")
    return xarray.Dataset({
        "x0": (("token", "coordinate"), x0), "time": ("time", run.times), "U": (triple, run.z[..., 2:]),
        "z": (("time", "token", "coordinate"), run.z[..., :2]), "plain_U": (pair, U), "plain_p": ("token", p),
        "U_end": (pair, end.limits[:, 2:]), "z_end": (("token", "coordinate"), end.limits[:, :2]),
        "labels": ("token", end.labels), "leaders": ("token", end.leaders),
    }, attrs={"grade": str(end.grade), "half_width": HALF_WIDTHS[kind], "t": PLAIN_TIME})


def certified_starts(size: str, trained: Any, progress: Progress) -> tuple[Any, Any]:
    """U(infinity) of one head with V = I from many starts: a table of starts, and a table of all their clusters."""
    from attnlab.limits import limit

    n, starts, clusters = N[size], [], []
    cases = [(kind, draw) for kind, many in STARTS[size].items() if kind in HALF_WIDTHS or trained is not None
             for draw in range(many)]
    for done, (kind, draw) in enumerate(cases):
        progress(done / len(cases), f"certified start {draw}, {kind}")
        weights, x0 = _square(kind, n, draw) if kind in HALF_WIDTHS else _case("trained", 1, n, trained, draw)
        end = limit(*carrying(weights, x0), work=1e6)
        if end.labels.min() < 0:
            starts.append((kind, draw, str(end.grade), 0, 0, np.nan, np.nan, np.nan))
            continue
        d = x0.shape[1]
        z, U, leaders = end.limits[:, :d], end.limits[:, d:], np.unique(end.leaders)
        lost = lost_attention(weights, x0, leaders, END)
        found = [(kind, draw, U[one, one], np.exp(-gone), int(U[one].argmax() == one))
                 for one, gone in zip(leaders, lost, strict=True)]
        slow = int((-np.linalg.eigvals(generator(weights, x0)).real < 1e-3).sum())
        starts.append((kind, draw, str(end.grade), len(leaders), slow, mixture_error(U, z, x0, end.labels),
                       late_difference(weights, x0, U, z, leaders), float(np.mean([one[-1] for one in found]))))
        clusters += found
    first = ("kind", "draw", "grade", "clusters", "slow", "off", "plain_off", "leader_share")
    second = ("kind", "draw", "weight", "promised", "is_largest")
    return (table(dict(zip(first, zip(*starts, strict=True), strict=True)), "start", n=n, trained=_name(trained)),
            table(dict(zip(second, zip(*clusters, strict=True), strict=True)), "cluster"))


def many_heads(size: str, trained: Any, why: str, progress: Progress) -> tuple[Any, Any]:
    """A row a case (family, H, scale, draw) with V_h = I, and the frozen generator's errors at all MOMENTS: two Datasets."""
    import xarray

    cases = [(family, count, scale, draw) for family in heads.FAMILIES if family == "synthetic" or trained is not None
             for count in heads.HEADS for scale in SCALES for draw in range(_draws(size, family, count, scale))]
    rows, errors = [], []
    for done, (family, count, scale, draw) in enumerate(cases):
        progress(done / len(cases), f"{count} heads, {family}")
        weights, x0 = _case(family, count, N[size], trained, draw)
        row, error = _compared(weights, scale * x0)
        rows.append((family, count, scale, draw, *row))
        errors.append(error)
    names = ("family", "heads", "scale", "draw", "row_sums", "least", "rows_apart", "clusters", "frozen_clusters", "irreducible",
             "weight", "nearest", "coefficient", "closed_coefficient", "slope", "ended")
    kept = table(dict(zip(names, zip(*rows, strict=True), strict=True)), why=why, n=N[size], trained=_name(trained))
    return kept, xarray.Dataset({"error": (("row", "moment"), np.array(errors)), "tau": ("moment", MOMENTS)})


def _name(trained: Any) -> str:
    return "" if trained is None else str(trained.name)


def _draws(size: str, family: str, count: int, scale: float) -> int:
    is_compared = count in (min(heads.HEADS), max(heads.HEADS)) and scale == max(SCALES)
    return max(DRAWS[size][family], SPREAD_DRAWS if is_compared else 0)


def _case(family: str, count: int, n: int, trained: Any, draw: int) -> tuple[Weights, np.ndarray]:
    from attnlab.starts import uniform_cube

    if family == "synthetic":
        return heads.synthetic_heads(count, D, rng=draw), uniform_cube(n, D, rng=draw)
    weights, x0, _ = heads.in_span(heads.trained_heads(trained, count), heads.real_start(trained, n, draw))
    return weights, x0


def _compared(weights: Weights, x0: np.ndarray) -> tuple[tuple[float, ...], np.ndarray]:
    """The numbers of a row, and the error of the frozen generator relative to the largest first token."""
    from attnlab.engine import simulate

    (n, d), H = x0.shape, weights.heads
    run = simulate(*carrying(weights, x0), t_end=END / H, times=MOMENTS / H, rtol=1e-8, throw=False)
    assert run.z is not None
    z, U, size = run.z[..., :d], run.z[..., d:], float(np.linalg.norm(x0, axis=1).max())
    A = generator(weights, x0)
    ice = frozen(A, x0, MOMENTS)
    error = np.full(len(MOMENTS), np.nan)
    error[: len(z)] = np.linalg.norm(z - ice[: len(z)], axis=-1).max(axis=1) / size
    labels, ice_labels = clusters_of(z[-1], x0, CLOSE), clusters_of(frozen(A, x0, [1e15])[0], x0, CLOSE)
    apart = max(float(np.ptp(U[-1][labels == k], axis=0).max()) for k in range(labels.max() + 1))
    nearest = max(float(np.linalg.norm(x0 - one, axis=1).min()) for one in z[-1]) / size
    closed = float(np.linalg.norm(second_order(weights, x0), axis=1).max() / size) / H**2
    coefficient, slope = start_of(error, MOMENTS)
    return (float(np.abs(U.sum(axis=-1) - 1).max()), float(U.min()), apart, int(labels.max()) + 1, int(ice_labels.max()) + 1,
            int((A + np.eye(n)).min() > 0), float(U[-1].max(axis=1).min()), nearest, coefficient, closed, slope,
            float(run.times[-1] * H)), error


def small_starts(size: str) -> Any:
    """The largest error of the frozen generator over all times, for small starts of one head, V = I, M = I, in space."""
    from attnlab.starts import uniform_cube

    rows = [(draw, factor, float(np.nanmax(_compared(Weights(V=np.eye(D)), factor * uniform_cube(N[size], D, rng=draw))[1])))
            for draw in range(6 if size == "full" else 3) for factor in FACTORS]
    return table(dict(zip(("draw", "factor", "worst"), zip(*rows, strict=True), strict=True)), "start", n=N[size])


def blocks(size: str) -> Any:
    """With their own V: x(t) = G(t) x(0) with G of size n d, by SciPy, beside the engine's run; a row a case, synthetic."""
    from scipy.linalg import expm

    from attnlab.engine import simulate
    from attnlab.starts import uniform_cube

    rows = []
    for draw in range(3 if size == "full" else 1):
        for count in heads.HEADS:
            weights = heads.synthetic_heads(count, BLOCK_D, "own", rng=draw)
            x0 = 2 * uniform_cube(BLOCK_TOKENS, BLOCK_D, rng=draw)
            run = simulate(weights, x0, t_end=1.0, saves=2, rtol=1e-10)
            G = plain_value_propagator(weights, x0, 1.0)
            moved = (G @ x0.ravel()).reshape(x0.shape)
            sums = G.reshape(BLOCK_TOKENS, BLOCK_D, BLOCK_TOKENS, BLOCK_D).sum(axis=2)
            off = np.abs(sums - expm(weights.full_V.sum(axis=0))).max()
            rows.append((count, draw, float(np.abs(moved - run.x[-1]).max() / np.abs(run.x[-1]).max()), float(off)))
    return table(dict(zip(("heads", "draw", "off", "sums_off"), zip(*rows, strict=True), strict=True)))


def _own_case(family: str, count: int, n: int, trained: Any, draw: int) -> tuple[Weights, np.ndarray, float]:
    """(weights, tokens, spectral radius of sum_h V_h) with own values, in all their dimensions."""
    from attnlab.starts import uniform_cube

    if family == "synthetic":
        weights, x0 = heads.synthetic_heads(count, D, "own", rng=draw), uniform_cube(n, D, rng=draw)
    else:
        weights, x0 = heads.trained_heads(trained, count, "own"), heads.real_start(trained, n, draw)
    return weights, x0, float(np.abs(np.linalg.eigvals(weights.full_V.sum(axis=0))).max())


def _own_flow(weights: Weights, x0: np.ndarray, times: np.ndarray, radius: float,
              step: float | None = RUNGE_KUTTA_STEP) -> np.ndarray:
    """x (time, n, d) with own values, NaN after the run has stopped: adaptive in few dimensions, by steps of Runge and Kutta in
    many, where leaders change all the time; but the first moments, between the first steps, are adaptive there, too.

    step None: adaptive throughout.
    """
    from attnlab.engine import simulate

    x = np.full((len(times), *x0.shape), np.nan)
    options: dict[str, Any] = {"rtol": 1e-9, "max_steps": MOST_STEPS}
    many = len(times)
    if weights.d > D and step is not None:
        many = int((times * radius < BEFORE_STEPS).sum())
        fixed = simulate(weights, x0, t_end=times[-1], times=times, throw=False, stepper="rk4", dt=step / radius, frame="x").x
        x[: len(fixed)] = fixed
    if many > 1:
        found = simulate(weights, x0, t_end=times[many - 1], times=times[:many], throw=False, **options).x
        x[: len(found)] = found
    return x


def own_values(size: str, trained: Any, why: str, progress: Progress) -> tuple[Any, Any]:
    """A row a case (family, H, scale, draw) with own V_h: the frozen expansion against the flow; and its errors over time."""
    import xarray

    cases = [(family, count, scale, draw) for family in heads.FAMILIES if family == "synthetic" or trained is not None
             for count in heads.HEADS for scale in SCALES for draw in range(OWN_DRAWS[size][family])]
    rows, errors = [], []
    for done, (family, count, scale, draw) in enumerate(cases):
        progress(done / len(cases), f"{count} heads with own values, {family}")
        weights, x0, radius = _own_case(family, count, OWN_N[size], trained, draw)
        row, error = _own_compared(weights, scale * x0, radius, family == "trained")
        rows.append((family, count, scale, draw, *row))
        errors.append(error)
    names = ("family", "heads", "scale", "draw", "coefficient", "closed_coefficient", "slope", "directions", "frozen_directions",
             "foretold", "excess", "trusted")
    return (table(dict(zip(names, zip(*rows, strict=True), strict=True)), why=why, n=OWN_N[size], trained=_name(trained)),
            xarray.Dataset({"error": (("row", "moment"), np.array(errors)), "tau": ("moment", OWN_MOMENTS)}))


def _own_compared(weights: Weights, x0: np.ndarray, radius: float, twice: bool) -> tuple[tuple[float, ...], np.ndarray]:
    """The numbers of a row, and the error relative to the largest token of the two, while the flow itself is known.

    twice: that is as long as a second run with steps twice as long agrees; else as long as the adaptive run goes.
    """
    times = OWN_MOMENTS / radius
    x, ice = _own_flow(weights, x0, times, radius), frozen_values(weights, x0, times)
    largest = np.fmax(np.linalg.norm(x, axis=-1).max(axis=1), np.linalg.norm(ice, axis=-1).max(axis=1))
    is_late = OWN_MOMENTS >= BEFORE_STEPS
    is_known = np.isfinite(x).all(axis=(1, 2))
    if twice:
        other = _own_flow(weights, x0, np.append(0.0, times[is_late]), radius, 2 * RUNGE_KUTTA_STEP)[1:]
        is_known[is_late] &= np.linalg.norm(other - x[is_late], axis=-1).max(axis=1) <= AGREED * largest[is_late]
    last = int(np.argmin(is_known)) - 1 if not is_known.all() else len(times) - 1
    error = np.linalg.norm(x - ice, axis=-1).max(axis=1) / largest
    error[last + 1:] = np.nan
    closed = np.linalg.norm(second_order(weights, x0), axis=1).max() / np.linalg.norm(x0, axis=1).max() / radius**2
    coefficient, slope = start_of(error * largest / largest[0], OWN_MOMENTS)
    return (coefficient, float(closed), slope, direction_count(x[last]), direction_count(ice[last]),
            *_foretold(weights, x0, radius), float(OWN_MOMENTS[last])), error


def _foretold(weights: Weights, x0: np.ndarray, radius: float) -> tuple[int, float]:
    """(directions of the rightmost eigenvector of A, how far its eigenvalue is to the right of those of sum_h V_h)."""
    value, vector = rightmost(weights, x0)
    excess = value.real - np.linalg.eigvals(weights.full_V.sum(axis=0)).real.max()
    return direction_count(foretold_tokens(vector)), float(excess / radius)


def own_checks(size: str, trained: Any) -> Any:
    """exp(tA) x0 from large starts at t radius = 4: by Krylov, by SciPy's expm_multiply and, of one head, by products."""
    rows = []
    for family in heads.FAMILIES if trained is not None else heads.FAMILIES[:1]:
        for count in heads.HEADS:
            weights, x0, radius = _own_case(family, count, OWN_N[size], trained, 0)
            x0, t = max(SCALES) * x0, OWN_MOMENTS[-1] / radius
            ice, other = frozen_values(weights, x0, np.array([t]))[0], frozen_by_scipy(weights, x0, t)
            products = frozen_by_products(weights, x0, t) if count == 1 else other
            rows.append((family, count, *(float(np.abs(one - ice).max() / np.abs(ice).max()) for one in (other, products))))
    return table(dict(zip(("family", "heads", "off", "products_off"), zip(*rows, strict=True), strict=True)))


def own_small_starts(size: str, trained: Any) -> Any:
    """The frozen expansion's error at t radius = 1 from starts whose largest token is small, with own values."""
    rows = []
    for family in heads.FAMILIES if trained is not None else heads.FAMILIES[:1]:
        for count in (min(heads.HEADS), max(heads.HEADS)):
            for draw in range(3 if size == "full" else 1):
                weights, x0, radius = _own_case(family, count, OWN_N[size], trained, draw)
                x0 = x0 / np.linalg.norm(x0, axis=1).max()
                for length in SIZES_OF_TOKENS:
                    times = np.array([0.0, 1.0]) / radius
                    x, ice = _own_flow(weights, length * x0, times, radius, None), frozen_values(weights, length * x0, times)
                    rows.append((family, count, draw, length, float(np.linalg.norm(x - ice, axis=-1).max() / length)))
    return table(dict(zip(("family", "heads", "draw", "length", "error"), zip(*rows, strict=True), strict=True)))


def ends(size: str) -> Any:
    """Directions of tokens late, from large starts with own synthetic values: one head that is a good triple, any other head,
    several heads; other draws than elsewhere. A row a draw.
    """
    one, several = (range(END_DRAWS[size][name]) for name in ("one", "several"))
    counts = heads.HEADS[1:] if size == "full" else heads.HEADS[-1:]
    cases = [(1, draw, is_good) for is_good in (1, 0) for draw in one]
    cases += [(count, draw, 0) for count in counts for draw in several]
    rows = []
    for count, draw, is_good in cases:
        seed = seed_of_head(draw + 1, D, is_good == 1) if count == 1 else 100 + draw
        weights, x0, radius = _own_case("synthetic", count, OWN_N[size], None, seed)
        x0 = max(SCALES) * x0
        late = _own_flow(weights, x0, np.array([0.0, END]) / radius, radius)[-1]
        rows.append((count, draw, is_good, int(np.isfinite(late).all()), direction_count(late),
                     direction_count(frozen_by_scipy(weights, x0, END / radius)), *_foretold(weights, x0, radius)))
    names = ("heads", "draw", "is_good", "ended", "directions", "frozen_directions", "foretold", "excess")
    return table(dict(zip(names, zip(*rows, strict=True), strict=True)))


experiments.register("master_equation")(
    Experiment(
        name="master_equation",
        title="The master equation: which first tokens make a cluster, and what freezing P misses",
        cite="Sugolov, Aubry, MAT1510 project, University of Toronto, November 2023 (slides), future work: the master equation "
        "and its expansion in eigenvectors",
        about="With V = I the rescaled tokens obey z' = (P(t) − I) z. So z(t) = U(t) z(0), where the rows of U(t) are "
        "probabilities: row i says how much of each first token is in token i by now. The transposed equation p' = (Pᵀ − I) p "
        "is a master equation, that of a random walk whose rates change with time. The slides name this analogy as future "
        "work.\n\nU is had exactly: each token carries a coordinate of its own, which attention moves but does not look at. As "
        "t → ∞ the rows of one cluster become equal, so that a cluster is a fixed mixture of first tokens; for one head this is "
        "certified from many starts, squares and prose. The leader l keeps at least exp(−∫(1 − P_ll) dt) of its weight, which "
        "often explains why its weight is the largest. With 16 synthetic heads weights are more spread; with 16 trained heads, "
        "three pieces of prose do not say so.\n\nA master equation with constant "
        "rates is solved by eigenvectors: exp(tA) z(0) with A = P(0) − I, and with own value matrices exp(tA) x(0) with "
        "A = Σ P_h(0) ⊗ V_h. The error grows like t² at first, by a coefficient in closed form. From small starts it stays "
        "small; from large ones the expansion foretells one cluster, or with own values one direction, where the flow may keep "
        "several. With own values even the frozen equation need not end that way, since two negative eigenvalues of P and V may "
        "have the largest product. In these starts P(0) has no more slow modes than there are clusters, often fewer; but that is "
        "no law: tokens that attend to each other alone may average themselves away from what they attend to.",
        compute=compute,
        claims=claims,
        figures=figures,
        spoils=SPOILS,
    )
)
