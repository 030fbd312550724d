"""The master equation: z(t) = U(t) z(0) with stochastic U, what each cluster is made of, and what a frozen generator misses."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import experiments, heads
from attnlab.experiments.datasets import changed, table
from attnlab.experiments.master_equation_figures import figures
from attnlab.experiments.propagators import (
    carrying,
    clusters_of,
    compressed,
    frozen,
    generator,
    plain_propagator,
    plain_value_propagator,
    second_order,
)  # fmt: skip
from attnlab.experiments.record import Claim, Data, Experiment, Progress
from attnlab.experiments.studies import part
from attnlab.types import Weights

N = {"full": 30, "small": 12}
D, PLANES = 3, {"plane": 5.0, "plane_smaller": 1.5}
SCALES = (0.1, 1.0, 3.0)
"""Factors of the starts: the cube [-1, 1]^3 for synthetic heads, an embedded paragraph for trained ones."""

FACTORS = (0.05, 0.1, 0.2)
"""Small starts, by which the error of the frozen generator must grow like the square."""

END = 25.0
"""H t of the last moment: double precision ends at about 30."""

EARLY = 1e-3
MOMENTS = np.concatenate([[0.0], np.geomspace(EARLY, END, 45)])
SHOWN = (0.5, 1.0, 2.0)
OWN_TOKENS, OWN_D, OWN_TIME, PLAIN_TIME = 6, 2, 1.0, 2.0
CLOSE = 0.01
SLOW = 1e-3


def compute(size: str, progress: Progress, model: str = "minilm") -> dict[str, Any]:
    """One start in the plane with its certified U(infinity); then all heads, with a frozen generator beside; then own V."""
    trained, why = heads.trained_model(size, model)
    progress(0.0, "one head in the plane")
    data = {name: in_the_plane(N[size], half_width) for name, half_width in PLANES.items()}
    data["heads"], data["errors"] = many_heads(size, trained, why, part(progress, 0.2, 0.85))
    data["small_starts"] = small_starts(N[size])
    progress(0.87, "own values")
    data["own"] = own_values(trained)
    progress(1.0)
    return data


def in_the_plane(n: int, half_width: float) -> Any:
    """U(t) and p(t) of one head, V = I, M = I, from a square: by the engine, by SciPy, and U(infinity) certified."""
    import xarray

    from attnlab.engine import simulate
    from attnlab.limits import limit
    from attnlab.starts import uniform_cube

    weights, x0 = Weights(V=np.eye(2)), uniform_cube(n, 2, low=-half_width, high=half_width, rng=0)
    wide, start = carrying(weights, x0)
    run = simulate(wide, start, t_end=PLAIN_TIME, times=[0.0, *SHOWN], rtol=1e-9)
    end = limit(wide, start, budget=40.0)
    assert run.z is not None
    first = np.full(n, 1 / n)
    z, U, p = plain_propagator(weights, x0, PLAIN_TIME, first)
    pair, triple = ("token", "source"), ("time", "token", "source")
    return xarray.Dataset({
        "x0": (("token", "coordinate"), x0), "time": ("time", run.times), "U": (triple, run.z[..., 2:]),
        "z": (("time", "token", "coordinate"), run.z[..., :2]), "plain_U": (pair, U), "plain_z": (("token", "coordinate"), z),
        "plain_p": ("token", p), "U_end": (pair, end.limits[:, 2:]), "z_end": (("token", "coordinate"), end.limits[:, :2]),
        "labels": ("token", end.labels), "leaders": ("token", end.leaders),
        "slow": ("mode", np.sort(-np.linalg.eigvals(generator(weights, x0)).real)),
    }, attrs={"grade": end.grade, "error": float(end.error), "half_width": half_width})


def many_heads(size: str, trained: Any, why: str, progress: Progress) -> tuple[Any, Any]:
    """A row a case (family, H, scale) with V_h = I, and the frozen generator's errors at all MOMENTS: two Datasets."""
    import xarray

    cases = [(family, count, scale) for family in heads.FAMILIES if family == "synthetic" or trained is not None
             for count in heads.HEADS for scale in SCALES]
    rows, errors = [], []
    for done, (family, count, scale) in enumerate(cases):
        progress(done / len(cases), f"{count} heads, {family}")
        weights, x0 = _case(family, count, N[size], trained)
        row, error = _compared(weights, scale * x0)
        rows.append((family, count, scale, *row))
        errors.append(error)
    names = ("family", "heads", "scale", "row_sums", "least", "rows_apart", "clusters", "frozen_clusters", "irreducible",
             "weight", "nearest", "coefficient", "closed_coefficient", "slope", "ended")
    both = ("row", "moment")
    kept = table(dict(zip(names, zip(*rows, strict=True), strict=True)), why=why, n=N[size],
                 trained="" if trained is None else trained.name)
    return kept, xarray.Dataset({"error": (both, np.array(errors)), "tau": ("moment", MOMENTS)})


def _case(family: str, count: int, n: int, trained: Any) -> tuple[Weights, np.ndarray]:
    from attnlab.starts import uniform_cube

    if family == "synthetic":
        return heads.synthetic_heads(count, D), uniform_cube(n, D, rng=0)
    weights, x0, _ = heads.in_span(heads.trained_heads(trained, count), heads.real_start(trained, n))
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
    early = slice(1, 10)
    slope = float(np.polyfit(np.log(MOMENTS[early]), np.log(error[early]), 1)[0])
    closed = float(np.linalg.norm(second_order(weights, x0), axis=1).max() / size)
    coefficient = _extrapolated(error[1:4] / MOMENTS[1:4] ** 2, MOMENTS[1:4])
    return (float(np.abs(U.sum(axis=-1) - 1).max()), float(U.min()), apart, int(labels.max()) + 1, int(ice_labels.max()) + 1,
            int((A + np.eye(n)).min() > 0), float(U[-1].max(axis=1).min()), nearest, coefficient, closed, slope,
            float(run.times[-1] * H)), error


def _extrapolated(values: np.ndarray, at: np.ndarray) -> float:
    """The value at 0 of the straight line through some values."""
    return float(np.polyfit(at, values, 1)[1])


def small_starts(n: int) -> Any:
    """The largest error of the frozen generator over all times, for small starts of one head, V = I, M = I, in space."""
    from attnlab.starts import uniform_cube

    x0 = uniform_cube(n, D, rng=1)
    worst = [float(np.nanmax(_compared(Weights(V=np.eye(D)), factor * x0)[1])) for factor in FACTORS]
    return table({"factor": FACTORS, "worst": worst}, "start")


def own_values(trained: Any) -> Any:
    """With their own V: x(t) = G(t) x(0) with G of size n d, by SciPy, beside the engine's run; a row a case."""
    from attnlab.engine import simulate
    from attnlab.starts import uniform_cube

    rows = []
    for family in heads.FAMILIES if trained is not None else heads.FAMILIES[:1]:
        for count in heads.HEADS:
            if family == "trained":
                weights, x0 = compressed(heads.trained_heads(trained, count, "own"), heads.real_start(trained, OWN_TOKENS), OWN_D)
            else:
                weights, x0 = heads.synthetic_heads(count, OWN_D, "own"), 2 * uniform_cube(OWN_TOKENS, OWN_D, rng=2)
            run = simulate(weights, x0, t_end=OWN_TIME, saves=2, rtol=1e-10)
            G = plain_value_propagator(weights, x0, OWN_TIME)
            moved = (G @ x0.ravel()).reshape(x0.shape)
            sums = G.reshape(OWN_TOKENS, OWN_D, OWN_TOKENS, OWN_D).sum(axis=2)
            off = np.abs(sums - _exponential(OWN_TIME * weights.full_V.sum(axis=0))).max()
            rows.append((family, count, float(np.abs(moved - run.x[-1]).max() / np.abs(run.x[-1]).max()), float(off),
                         float(G.min())))
    return table(dict(zip(("family", "heads", "off", "sums_off", "least"), zip(*rows, strict=True), strict=True)))


def _exponential(matrix: np.ndarray) -> np.ndarray:
    from scipy.linalg import expm

    return np.asarray(expm(matrix))


def claims(data: Data) -> list[Claim]:
    """U is stochastic and moves the tokens; what clusters are made of; and how far a frozen generator carries."""
    return [*_exact_claims(data), *_cluster_claims(data), *_frozen_claims(data)]


def _exact_claims(data: Data) -> list[Claim]:
    plane, rows, own = data["plane"], data["heads"], data["own"]
    U, p = plane["plain_U"].values, plane["plain_p"].values
    off = np.abs(U @ plane["x0"].values - plane["z"].values[-1]).max() / np.abs(plane["x0"].values).max()
    other = np.abs(U - plane["U"].values[-1]).max()
    return [
        Claim(f"z(t) = U(t) z(0): U at t = {PLAIN_TIME:g} by SciPy's DOP853 from dU/dt = (P − I) U, applied to the first "
              "tokens, beside the run; and U beside the coordinates that tokens carry along in the engine: largest difference.",
              float(max(off, other)), "an analogy with the master equation", 0, 1e-6, "z' = (P − I) z is linear in z once P(t) "
              "is known; both integrators promise 1e-9 a step or better", "An identity, not only an analogy."),
        Claim("Probabilities stay probabilities, for any number of heads: rows of U sum to 1 and have no negative entry, and "
              "so does p with p' = (Pᵀ − I) p: largest distance of a sum from 1, or below 0.",
              float(max(rows["row_sums"].values.max(), -rows["least"].values.min(), abs(p.sum() - 1), -p.min())),
              "p is governed by a time-dependent master equation", 0, 1e-5, "(P − I) 1 = 0, and entries off the diagonal are not "
              "negative; the runs have rtol 1e-8, and U is a part in the size of the tokens"),
        Claim("With their own V_h tokens move by a matrix of blocks whose row sums are exp(t Σ V_h), for 1 to 16 heads: largest "
              "difference, of the blocks and of the tokens moved by them.",
              float(max(own["off"].values.max(), own["sums_off"].values.max())), "", 0, 1e-5, "equal tokens stay equal and "
              "follow x' = Σ V_h x; SciPy on the equation of size n d, and the engine"),
    ]


def _mixture_error(plane: Any) -> float:
    """How far rows of U(infinity) of one cluster are apart, or U(infinity) z(0) from the limits, relative to the largest "
    "token.
    """
    U, labels, x0 = plane["U_end"].values, plane["labels"].values, plane["x0"].values
    if labels.min() < 0:
        return float("nan")
    apart = max(float(np.ptp(U[labels == k], axis=0).max()) for k in range(labels.max() + 1))
    return max(apart, float(np.abs(U @ x0 - plane["z_end"].values).max() / np.abs(x0).max()))


def _cluster_claims(data: Data) -> list[Claim]:
    plane, rows = data["plane"], data["heads"]
    U, labels = plane["U_end"].values, plane["labels"].values
    off = max(_mixture_error(data[name]) for name in PLANES)
    leaders = plane["leaders"].values
    elsewhere = {int(label) for label in labels[U.argmax(axis=1) != leaders]}
    shares = ", ".join(f"{U[leader, leader]:.3f}" for leader in np.unique(leaders))
    spread = {str(family): _weights(rows, str(family)) for family in np.unique(rows["family"].values)}
    return [
        Claim(f"Cluster locations are determined by the first tokens: the certified U(∞) has {labels.max() + 1} different "
              "rows, one a cluster (from [−5, 5]²), and U(∞) z(0) are the limits: largest difference in a cluster, or of a "
              "limit.",
              off, "", 0, 1e-6,
              "tokens of one cluster have one limit, also of what they carry; certified within 1e-8 of the largest"),
        Claim("In one start of one head (from [−5, 5]²) the rows of U(∞) put their largest weight on the token that leads the "
              f"cluster: clusters, of {labels.max() + 1}, that do not.",
              float(len(elsewhere)), "with paragraphs and 16 heads: a cluster sits near one of the initial vectors", 0, 0,
              "of the leader l, U_ll' ≥ −(1 − P_ll) U_ll: who attends to itself but for ∫(1 − P_ll) dt < ln 2 keeps more than "
              "half of its weight, and its cluster has its row", f"One start, so no rate. The leaders' weights are {shares}: not "
              "all are next to 1. This is about weights, not about the distance to a first vector."),
        Claim(f"With {max(heads.HEADS)} heads the weights are more spread than with one: largest weight of a first token, in the "
              f"row where it is smallest, over that with one head (scale {max(SCALES):g}), the largest quotient of the families.",
              max(many / one for one, many in spread.values()), "with paragraphs and 16 heads: a cluster sits near one of the "
              "initial vectors", 0.0, 1.0,
              "heads with different scores have different leaders, and P is their mean: no row of it can be a unit vector "
              "unless all heads agree; 1 would be no change", "One draw a cell, no interval: " + "; ".join(
                  f"{family} {one:.2f} with one head, {many:.2f} with {max(heads.HEADS)}" for family, (one, many) in
                  spread.items()) + ". Only weights are compared: the distance of a cluster to the nearest first vector does not "
              "follow them, see the figure."),
    ]


def _weights(rows: Any, family: str) -> tuple[float, float]:
    """The column weight of a family at the largest scale, for one head and for the most heads."""
    fit = (rows["family"].values == family) & (rows["scale"].values == max(SCALES))
    one, many = (float(rows["weight"].values[fit & (rows["heads"].values == count)][0]) for count in (1, max(heads.HEADS)))
    return one, many


def _frozen_claims(data: Data) -> list[Claim]:
    plane, rows, small = data["plane"], data["heads"], data["small_starts"]
    quotient = rows["coefficient"].values / rows["closed_coefficient"].values
    growth = np.polyfit(np.log(small["factor"].values), np.log(small["worst"].values), 1)[0]
    wrong = (rows["clusters"].values > 1) & (rows["frozen_clusters"].values == 1)
    slow = int((plane["slow"].values < SLOW).sum())
    return [
        Claim("exp(tA) z(0) with the frozen A = P(0) − I is right to first order: farthest slope from 2 of its error in time, "
              "logarithmically, over all heads, families and starts.", float(np.abs(rows["slope"].values - 2).max()),
              "expansion in eigenvectors of A", 0, 0.1, "the second derivatives differ by P'(0) z(0), so the error is t²/2 of "
              "that"),
        Claim("Its coefficient is |P'(0) z(0)| / 2 from the closed form of the softmax's derivative: farthest quotient from 1.",
              float(np.abs(quotient - 1).max()), "", 0, 0.05, "Taylor; extrapolated to t = 0 from three times below 2/1000"),
        Claim("For small starts the frozen expansion carries for all times: exponent of its largest relative error in the size "
              "of the "
              "start.", float(growth), "expansion in eigenvectors of A", 1.6, 2.0, "size² times a logarithm: P − 1/n grows "
              "like size² e^t while tokens approach like e^(−t), until t = ln(√n / size²), about 7 here: an exponent of 2 − "
              "2/7",
              "So for small starts of one head."),
        Claim("The frozen expansion always ends in one cluster: largest number of its clusters, where P(0) is positive.",
              float(rows["frozen_clusters"].values[rows["irreducible"].values == 1].max()), "only the Perron eigenvalue "
              "survives", 1, 1,
              "Perron: the eigenvalue 0 of P − I is simple where P has no zero entry"),
        Claim("The flow does not: number of cases with several clusters where the frozen expansion has one.", float(wrong.sum()),
              "only the Perron eigenvalue survives", 1, np.inf, "one head with scores that have decided keeps every self-leader",
              "Does not carry over, as a prediction of the limit, to large starts of few heads; with 16 heads one cluster is "
              "seen here, too (one draw a cell)."),
        Claim(f"What survives of the analogy is slow modes: eigenvalues of P(0) − I within {SLOW:g} of 0, less the number of "
              "certified limits (one head, plane, [−5, 5]²).", float(slow - plane["labels"].values.max() - 1), "", -1, 1,
              "P(0) of a large start is nearly Boolean, and has one eigenvalue near 1 a self-leader; a pair that is close may "
              "count once or twice"),
    ]


def _leaking(rows: Any) -> None:
    """Rows of U lose a thousandth, and some entries are negative."""
    rows["row_sums"], rows["least"] = rows["row_sums"] + 1e-3, rows["least"] - 1e-3


def _always_one(rows: Any) -> None:
    """One cluster, and the more heads the more of one token."""
    rows["clusters"] = ("row", np.ones(rows.sizes["row"], int))
    rows["weight"] = ("row", rows["heads"].values / max(heads.HEADS))


def _late(rows: Any) -> None:
    """The frozen expansion with an error of first order, and several clusters."""
    rows["slope"], rows["coefficient"] = rows["slope"] - 1, rows["coefficient"] * 1.5
    rows["frozen_clusters"] = rows["frozen_clusters"] + 1


def _kicked(plane: Any) -> None:
    plane["plain_U"], plane["plain_p"] = plane["plain_U"] * 1.001, plane["plain_p"] * 1.001


def _mixed(plane: Any) -> None:
    """Rows of U(infinity) exchanged among the tokens, and no slow mode."""
    plane["U_end"] = (plane["U_end"].dims, np.roll(plane["U_end"].values, 1, axis=0))
    plane["slow"] = plane["slow"] + 1.0


def _straight(small: Any) -> None:
    small["worst"] = np.sqrt(small["worst"])


def _turned(own: Any) -> None:
    own["sums_off"] = own["sums_off"] + 1e-3


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
        "t → ∞ the rows of one cluster become equal, so that a cluster is a fixed mixture of first tokens. In the one "
        "large start of one head that is shown, the leader has the largest weight in each cluster, nearly all or about half of "
        "it; with 16 heads the largest weight is smaller, in the one draw of each family.\n\nA master equation "
        "with constant rates is solved by eigenvectors: exp(tA) z(0) with A = P(0) − I. Its error grows like t² at first. For "
        "small starts it stays small for ever; for large starts the expansion foretells one cluster, since only the Perron "
        "eigenvalue survives, where the flow keeps several. The right reading is slow modes: P(0) has about as many "
        "eigenvalues next to 1 as there are clusters in the end.",
        compute=compute,
        claims=claims,
        figures=figures,
        spoils={
            "U leaks": changed("heads", _leaking),
            "one cluster, one token": changed("heads", _always_one),
            "frozen expansion too bad": changed("heads", _late),
            "U by SciPy kicked": changed("plane", _kicked),
            "rows of U exchanged": changed("plane", _mixed),
            "error linear in the start": changed("small_starts", _straight),
            "blocks turned": changed("own", _turned),
        },
    )
)
