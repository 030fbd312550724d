"""Any scores at all: V = I or diag(1, 1, -0.5), Q^T K with independent uniform entries, by the signs of its symmetric part."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.common.studies import study
from attnlab.experiments.datasets import limit_in, run_in
from attnlab.experiments.record import Claim, Data, Experiment
from attnlab.experiments.spoils import changed
from attnlab.progress import Progress
from attnlab.types import Spec, Weights

N, REACH = 25, 5.0
"""Tokens of a draw, and half the side of the square (or cube) that they start in."""

DRAWS = {"full": (200, 120, 50), "small": (24, 20, 10)}
"""With V = I, paranormal, and with V = I and the start in these SIZES."""

SIZES = {"full": (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0), "small": (0.2, 1.0, 5.0)}
WORK = {"full": 25_000.0, "small": 6_250.0}
"""Units for one limit in F, about a second: more do not help where leaders inside a group still change."""

TIMES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 18.0)
TIMES_IN_F = (0.0, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
SCALE = 0.05
"""Groups of a run at its last time are counted at this distance, 1 % of REACH."""

CLASSES = ("positive definite", "indefinite", "negative definite")
EXPECTED = (23 / 144, 98 / 144, 23 / 144)
"""Of sym(M), M 2 x 2 with uniform entries: a, d > 0 and s^2 < ad with s triangular, so (1/4) E[2 sqrt(ad) - ad] = 23/144."""

COUNTED = {"positive definite": {2: 2, 3: 1}, "indefinite": {2: 12}, "negative definite": {1: 5}}
"""{class: {limits: runs}} of 20 seeds, n = 25, T = 18: the sample that ours is compared with. The paper shows one draw each."""

VALUES = {2: np.eye(2), 3: np.diag([1.0, 1.0, -0.5])}


def scores_of(draw: int, d: int) -> np.ndarray:
    """M = Q^T K of a draw."""
    return np.random.default_rng([draw, 1]).uniform(-1.0, 1.0, (d, d))


def start_of(draw: int, d: int, size: float = REACH) -> np.ndarray:
    """The first tokens, as the law uniform_cube draws them."""
    return np.random.default_rng(draw).uniform(-1.0, 1.0, (N, d)) * size


def class_of(scores: np.ndarray) -> str:
    """The signs of the symmetric part of the block in F, the first two coordinates."""
    values = np.linalg.eigvalsh(scores[:2, :2] + scores[:2, :2].T)
    return CLASSES[0] if values[0] > 0 else CLASSES[2] if values[1] < 0 else CLASSES[1]


def first_of(kind: str, d: int) -> int:
    """The first draw of a class: the one that is drawn."""
    return next(draw for draw in range(1000) if class_of(scores_of(draw, d)) == kind)


def specs(size: str) -> dict[str, Spec]:
    """The six runs of the pictures: of each class the first draw."""
    del size
    made, solve = {}, {"t_end": 10.0, "times": np.linspace(0.0, 10.0, 201).tolist(), "measure_error": True}
    for d, before in ((2, ""), (3, "paranormal_")):
        for kind in CLASSES:
            draw = first_of(kind, d)
            start = {"law": "uniform_cube", "n": N, "d": d, "low": -REACH, "high": REACH, "rng": draw}
            weights = {"family": "given", "Q": np.eye(d), "K": scores_of(draw, d), "V": VALUES[d]}
            made[before + kind.replace(" ", "_")] = Spec(weights=weights, start=start, solve=solve)
    return made


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The draws with V = I and their limits, the same at other sizes of the start, the paranormal ones, and the pictures."""
    identity, paranormal, sized = DRAWS[size]
    data: dict[str, Any] = {"draws": _ensemble(2, identity, progress.part(0.0, 0.3), TIMES, 500_000.0)}
    data["scipy"] = _by_scipy(identity // 8)
    data["sizes"] = _sizes(SIZES[size], sized, progress.part(0.3, 0.55))
    data["paranormal"] = _ensemble(3, paranormal, progress.part(0.55, 0.9), TIMES_IN_F, WORK[size])
    for number, (name, spec) in enumerate(specs(size).items()):
        progress(0.9 + number / 60, "pictures")
        data |= study(spec, name=name, names=["generic_scores", "hull_shrinks"], work=WORK[size])
    progress(1.0)
    return data


def _ensemble(d: int, draws: int, progress: Progress, times: tuple[float, ...], work: float) -> Any:
    """Runs and limits of the draws: z in F at the saved times, certified limits, or the end of the run where there is none."""
    import xarray

    from attnlab.engine import simulate
    from attnlab.limits import limit

    rows = []
    for draw in range(draws):
        progress(draw / draws, "draws with V = I" if d == 2 else "paranormal draws")
        weights, x0 = Weights(Q=np.eye(d), K=scores_of(draw, d), V=VALUES[d]), start_of(draw, d)
        run = simulate(weights, x0, t_end=times[-1], times=times, rtol=1e-11, throw=False, max_steps=20_000)
        assert run.z is not None
        z = np.full((len(times), N, 2), np.nan)
        z[: len(run.times)] = run.z[..., :2]
        end = limit(weights, x0, work=work)
        points, labels = (end.limits[:, :2], end.labels) if end.certified else ended(run.z[-1][:, :2])
        rows.append((z, weights.M[0], points, labels, np.int8(end.certified), end.error if end.certified else np.nan))
    axes = {"z": ("time", "token", "coordinate"), "scores": ("row", "column"), "limit": ("token", "coordinate"),
            "label": ("token",), "is_decided": (), "error": ()}
    columns = {name: (("draw", *axes[name]), np.array([row[k] for row in rows])) for k, name in enumerate(axes)}
    return xarray.Dataset(columns, coords={"time": np.array(times)}, attrs={"n": N, "size": REACH, "d": d})


def ended(tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(centres (n, 2), labels (n,)) of the groups at SCALE: what a run that was not decided ended with."""
    from attnlab.analysis.clusters import cluster_centres, cluster_labels

    labels = cluster_labels(tokens, SCALE)
    return cluster_centres(tokens, labels)[labels], labels


def _sizes(sizes: tuple[float, ...], draws: int, progress: Progress) -> Any:
    """The limits of the first draws, V = I, with the same start larger and smaller."""
    import xarray

    from attnlab.limits import limit

    points, labels = np.full((len(sizes), draws, N, 2), np.nan), np.full((len(sizes), draws, N), -1)
    for row, reach in enumerate(sizes):
        for draw in range(draws):
            progress((row + draw / draws) / len(sizes), f"start of size {reach:g}")
            end = limit(Weights(Q=np.eye(2), K=scores_of(draw, 2), V=np.eye(2)), start_of(draw, 2, reach), work=500_000.0)
            points[row, draw], labels[row, draw] = end.limits, end.labels
    mean = np.array([start_of(draw, 2, 1.0).mean(axis=0) for draw in range(draws)])
    return xarray.Dataset(
        {"limit": (("size", "draw", "token", "coordinate"), points), "label": (("size", "draw", "token"), labels),
         "mean": (("draw", "coordinate"), mean)}, coords={"size": np.array(sizes)},
    )


def _by_scipy(draws: int, t_end: float = 8.0) -> Any:
    """z at t_end of the first draws by SciPy's DOP853, on the equation written out in NumPy."""
    import xarray
    from scipy.integrate import solve_ivp

    ends = []
    for draw in range(draws):
        M = scores_of(draw, 2)

        def velocity(t: float, flat: np.ndarray, M: np.ndarray = M) -> np.ndarray:
            x = flat.reshape(N, 2)
            P = np.exp((s := x @ M @ x.T) - s.max(axis=1, keepdims=True))
            return np.ravel(P / P.sum(axis=1, keepdims=True) @ x)

        solved = solve_ivp(velocity, (0.0, t_end), start_of(draw, 2).ravel(), method="DOP853", rtol=1e-11, atol=1e-12)
        ends.append(np.exp(-t_end) * solved.y[:, -1].reshape(N, 2))
    return xarray.Dataset({"z": (("draw", "token", "coordinate"), np.array(ends))}, attrs={"t": t_end})


def classes_of(draws: Any) -> np.ndarray:
    """The class of each draw of an ensemble."""
    return np.array([class_of(M) for M in draws["scores"].values])


def counts_of(draws: Any) -> np.ndarray:
    """The number of limits of each draw."""
    return np.asarray(draws["label"].values.max(axis=-1) + 1)


def off_boundary(draws: Any) -> float:
    """How far a limit is from the boundary of the polytope of its draw, or from 0, at worst and over the size of the start."""
    from attnlab.theory.statements.polytope_times_subspace import from_boundary

    return max(from_boundary(points)[0] for points in draws["limit"].values) / REACH


def off_planes(draws: Any, ends: np.ndarray) -> float:
    """How far one of the points u that each draw ends in is behind another in the direction M^T u, at worst, over the size."""
    worst = 0.0
    for scores, points in zip(draws["scores"].values[:, :2, :2], ends, strict=True):
        normals = points @ scores
        beyond = (normals @ points.T).max(axis=1) - np.sum(normals * points, axis=1)
        worst = max(worst, float((beyond / np.linalg.norm(normals, axis=1)).max()))
    return worst / REACH


def agreement(draws: Any) -> float:
    """Fisher's p for the usual number of limits of each class, ours against the counted sample: the smallest of the three."""
    from scipy.stats import fisher_exact

    kinds, counts, chances = classes_of(draws), counts_of(draws), []
    for kind, usual in zip(CLASSES, (2, 2, 1), strict=True):
        ours, theirs = counts[kinds == kind], COUNTED[kind]
        table = np.array([[(ours == usual).sum(), (ours != usual).sum()], [theirs[usual], sum(theirs.values()) - theirs[usual]]])
        chances.append(float(fisher_exact(table).pvalue))
    return min(chances)


def claims(data: Data) -> list[Claim]:
    """What holds for any scores, with its reason; then the counts, and what the size of the start does."""
    return [*_of_any_scores(data), *_of_counts(data)]


def _of_any_scores(data: Data) -> list[Claim]:
    draws, inside = data["draws"], data["paranormal"]
    kinds, counts = classes_of(draws), counts_of(draws)
    angles = np.linspace(0.0, 2 * np.pi, 360, endpoint=False)
    reach = (draws["z"].values @ np.stack([np.cos(angles), np.sin(angles)])).max(axis=2)            # (draw, time, angle)
    checked = data["scipy"]
    same = np.abs(checked["z"].values - draws["z"].sel(time=checked.attrs["t"]).values[: checked.sizes["draw"]]).max()
    negative = kinds == CLASSES[2]
    away = (np.linalg.norm(draws["limit"].values, axis=-1).min(axis=-1) / draws["error"].values)[negative]
    most = max(counts[negative].max(initial=0), counts_of(inside)[classes_of(inside) == CLASSES[2]].max(initial=0))
    open_ones = int((inside["is_decided"].values == 0).sum())
    return [
        Claim(text="V = I: the hull of z never grows, whatever the scores: largest rise of its support function, over the "
              f"size of the start, in {len(kinds)} draws.", measured=float(np.diff(reach, axis=1).max() / REACH),
              published="proved, for Q^T K > 0", low=-np.inf, high=1e-8,
              because="z' = Σ P (z_j − z) points inwards for any M; 1e-8 is a thousand tolerances of the integrator"),
        Claim(text=f"Every limit is on the boundary of the polytope that the limits span, or 0, in {len(kinds)} draws with V = "
              f"I, and in F in {inside.sizes['draw']} with V = diag(1, 1, −0.5): largest distance, over the size of the start.",
              measured=max(off_boundary(draws), off_boundary(inside)), published="conjectured for generic Q^T K", low=0,
              high=1e-6, because=f"the conjecture; limits are certified to 1e-8, but for {open_ones} draws in F, taken at the "
              f"end of their run. With V = I the polytope has an inside in {int((counts > 2).sum())} draws, else the claim is "
              "trivial and the next one counts"),
        Claim(text="V = I: at T = 18 every token u is the farthest of all in the direction Mᵀu: what it lacks, at worst, over "
              "the size of the start.", measured=off_planes(draws, draws["z"].values[:, -1]),
              published="the set S, defined for Q^T K > 0", low=0, high=1e-5,
              because="Boolean attention is z' = v(z) − z, v(z) the farthest token in the direction Mᵀz, at rest iff u = v(u), "
              "for any M; if it is Boolean from t = 5 on, e^-13 = 2e-6 of the way is left"),
        Claim(text="V = diag(1, 1, −0.5): the same for the limits in F, with the block M_FF.",
              measured=off_planes(inside, inside["limit"].values), published="the set S, with π_F A", low=0, high=1e-3,
              because="as before, since the part in G grows more slowly; of runs to t = 10, e^-8 is left",
              differs="the published S is made with π_F A, which is not what the flow has"),
        Claim(text="sym(M) negative definite (in F: that of M_FF): the largest number of limits of a draw.",
              measured=float(most), published="1 in 5 of 5 runs", low=1, high=1,
              because="two limits u, w at rest give (u − w)ᵀM(u − w) ≥ 0, which is negative unless u = w"),
        Claim(text="V = I: that one limit is not 0: its norm over its error, at least.",
              measured=float(np.nanmin(away, initial=np.inf)), published="not said", low=10, high=np.inf,
              because="0 is unstable: there attention is even and the mean of x grows like e^t; a null set of starts ends in 0",
              differs="in a picture of the whole start a limit at 1 % of its size looks like 0"),
        Claim(text="The runs are right: largest difference at t = 8 from SciPy's DOP853 on plain NumPy, over the size of the "
              "start.", measured=float(same / REACH), low=0, high=1e-7,
              because="two integrators with a tolerance of 1e-11; 1e-7 allows for magnified errors"),
    ]


def _of_counts(data: Data) -> list[Claim]:
    from attnlab.analysis.clusters import cluster_count

    draws, sizes = data["draws"], data["sizes"]
    kinds, counts = classes_of(draws), counts_of(draws)
    exact = np.array(EXPECTED)
    deviation = np.abs([(kinds == kind).mean() for kind in CLASSES] - exact) / np.sqrt(exact * (1 - exact) / len(kinds))
    at_end = cluster_count(draws["z"].values[:, -1], SCALE)
    indefinite = counts[kinds == CLASSES[1]]
    least = float(sizes["size"].values[0])
    mean = sizes["mean"].values * least
    from_mean = np.linalg.norm(sizes["limit"].values[0].mean(axis=1) - mean, axis=-1) / np.linalg.norm(mean, axis=-1)
    theory = least**2 * (np.log(1 / (np.sqrt(2 / 3 / N) * least**2)) / 3 + 2)
    return [
        Claim(text="The classes of sym(M) come up as they must: largest deviation of a share, in binomial standard deviations.",
              measured=float(deviation.max()), published="3, 12 and 5 of 20: positive definite, indefinite, negative definite",
              low=0, high=3.5, because="exact shares 23/144, 98/144, 23/144: definite iff s² < ad, s = (b + c)/2 triangular; "
              "3.5 is p = 0.0005"),
        Claim(text="Our counts fit an independent sample of 20 runs: Fisher's p for 2, 2 and 1 limits (positive definite, "
              "indefinite, negative definite), the smallest of the three.", measured=agreement(draws),
              published="2, 2, 3; 2 in 12 of 12; 1 in 5 of 5", low=0.01, high=1,
              because="samples of one law have p below 0.01 in one of three tests at most 3 times in 100",
              differs=f"{int((indefinite != 2).sum())} of {len(indefinite)} indefinite draws do not have two limits: 12 runs "
              "are too few to see that 2 is no law"),
        Claim(text=f"Counted at T = 18 at distance {SCALE:g}, as that sample was, the number is the certified one: draws where "
              "not.", measured=float((at_end != counts).sum()), published="counted at T = 18", low=0, high=0,
              because="a certificate is a proof: the run must end there"),
        Claim(text=f"With the start in [−{least:g}, {least:g}]² every draw has one limit, whatever the class: the largest "
              "number.", measured=float(sizes["label"].values[0].max() + 1), published="not said", low=1, high=1,
              because="scores are below 0.16: attention is even until x = e^t mean + small offsets, and then Mᵀ mean ranks the "
              "tokens alike for all", differs="the number of clusters depends on the size of the start, not only on the class "
              "of sym(M)"),
        Claim(text="And that limit is near the mean of the start: median distance, over the norm of the mean.",
              measured=float(np.median(from_mean)), published="not said", low=0, high=float(theory),
              because="drift (L²/3) |M| until scores are of size 1, then an offset of |M| |x|² at most: L² (ln(1/(|mean| L)) / "
              "3 + 2) with |M| near 1"),
    ]


def figures(data: Data) -> dict[str, Any]:
    """Three draws and the counts, for V = I and in F; and what the size of the start does."""
    return {
        "generic_scores": _rows(data, "draws", "", "V = I, any scores: tokens still end on a polytope"),
        "generic_scores_paranormal": _rows(data, "paranormal", "paranormal_", "V = diag(1, 1, −0.5), any scores: the part in F"),
        "generic_scores_start_size": _size_figure(data["sizes"]),
    }


def _rows(data: Data, name: str, before: str, headline: str) -> Any:
    """The first draw of each class, and below it the counts of all."""
    from attnlab.render.draws import draw_counts, draw_shrinking
    from attnlab.render.style import house_style, new_figure, set_layout, title

    draws = data[name]
    kinds, counts = classes_of(draws), counts_of(draws)
    open_ones = int((draws["is_decided"].values == 0).sum())
    block = "$M_{FF}$" if before else "M"
    with house_style():
        figure = new_figure(9.6, 6.5)
        set_layout(figure, wspace=0.04, hspace=0.03)
        panels = figure.subplots(2, 3, height_ratios=[1.75, 1])
        for (top, below), kind in zip(panels.T, CLASSES, strict=True):
            shown = before + kind.replace(" ", "_")
            run, end, draw = run_in(data, shown), limit_in(data, f"{shown}_limit", shown), first_of(kind, draws.attrs["d"])
            assert run.z is not None
            points, labels = (end.limits[:, :2], end.labels) if end.certified else ended(run.z[-1][:, :2])
            draw_shrinking(top, run.times, run.z[..., :2], points, labels, run.dynamics.weights.M[0][:2, :2], 1.12 * REACH)
            count = int(labels.max()) + 1
            found = f"{count} limits" if count > 1 else f"1 limit, at {np.linalg.norm(points[0]):.2f} from 0"
            top.set_title(f"sym({block}) {kind}\n(draw {draw}: {found})", fontsize=9.5)
            draw_counts(below, counts[kinds == kind], max(6, int(counts.max())), None if before else COUNTED[kind])
        panels[1, 0].set_ylabel("share of draws")
        said = f", {open_ones} not certified and counted at the end of their run" if open_ones else ""
        said += "" if before else "; other sample: 20 runs counted independently"
        title(figure, f"{headline} · n = {N}",
              f"Above: the first draw of each class, entries of M uniform in [−1, 1]. Rings: limits u, their polytope shaded; "
              f"dotted: the lines ⟨{block}ᵀu, ·⟩ = const., which must bound it; grey: hulls at t = 0, ½, 1, 1½, 2. Below: "
              f"{len(counts)} draws{said}.")
    return figure


def _size_figure(sizes: Any) -> Any:
    """How often there is a single limit, and where it is, against the size of the start."""
    from attnlab.render.draws import start_size_figure

    reach, counts = sizes["size"].values, sizes["label"].values.max(axis=-1) + 1
    kinds = np.array([class_of(scores_of(draw, 2)) for draw in range(counts.shape[1])])
    norms = np.linalg.norm(sizes["limit"].values[:, kinds == CLASSES[2]].mean(axis=2), axis=-1) / reach[:, None]
    mean = float(np.median(np.linalg.norm(sizes["mean"].values[kinds == CLASSES[2]], axis=-1)))
    return start_size_figure(reach, {kind: counts[:, kinds == kind] for kind in CLASSES}, norms, mean, REACH)


def _half_way(draws: Any) -> None:
    """A token of every draw that stops between the limits."""
    for name, at in (("limit", np.s_[:]), ("z", np.s_[:, -1])):
        points = draws[name].values.copy()
        points[at][:, 0] = points[at].mean(axis=1)
        draws[name] = (draws[name].dims, points)


def _split(draws: Any) -> None:
    """One group of every draw counted as two."""
    labels = draws["label"].values.copy()
    labels[..., 0] = labels.max(axis=-1) + 1
    draws["label"] = (draws["label"].dims, labels)


def _grown(draws: Any) -> None:
    """Hulls that grow again at the end."""
    draws["z"] = draws["z"] * np.where(draws["time"] >= 6.0, 1.02, 1.0)[:, None, None]


def _of_the_theorem(draws: Any) -> None:
    """Scores M M^T, positive definite, as the theorem asks for."""
    scores = draws["scores"].values
    draws["scores"] = (draws["scores"].dims, scores @ np.swapaxes(scores, 1, 2))


def _to_origin(draws: Any) -> None:
    """Limits that are 0 to rounding."""
    draws["limit"] = draws["limit"] * 1e-12


def _two_ends(sizes: Any) -> None:
    """Small starts with a second limit, and all limits twice as far from 0."""
    _split(sizes)
    sizes["limit"] = sizes["limit"] * 2.0


experiments.register("generic_scores")(
    Experiment(
        name="generic_scores",
        title="Generic Qᵀ K: polytopes without symmetry or sign",
        cite="Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465, section 12, open problem on generic Q^T K",
        about="The polytope theorem asks for Q^T K symmetric and positive definite. Here its entries are uniform in [−1, 1], "
        "tokens in [−5, 5]². The paper conjectures that the conclusion persists, and shows one draw. It does in all of ours, and "
        "there is a reason, if not a proof: the hull shrinks for any scores, a vertex of the limit hull can only be held by a "
        "token that attends to itself, and the places from which a vertex is attended to form a convex cone with the vertex in "
        "it: straight there.\n\nThe number of limits depends on the symmetric part. Two limits u, w need (u − w)ᵀM(u − w) ≥ 0, "
        "so if it is negative definite there is exactly one: tokens turn to those opposite, the hull closes in on 0, and when "
        "tokens are so small that attention is even, their mean grows like e^t and takes all of them along. In z that is one "
        "point near 0, not 0. Indefinite: mostly two. Positive definite: one to five.\n\n"
        "Published counts are few, and the number depends on the size of the start as well: with tokens in [−0.2, 0.2]² there is "
        "one limit in every class. With V = diag(1, 1, −0.5) all of this holds in the plane F, with the block M_FF. There a few "
        "draws have no certificate, as leaders inside a group still change when time is up: these are counted at the end of "
        "their run. Draw k has scores from rng [k, 1] and tokens from rng k.",
        compute=compute,
        claims=claims,
        figures=figures,
        specs=specs,
        spoils={
            "a token stops between the limits": changed("draws", _half_way),
            "the same in F": changed("paranormal", _half_way),
            "one group counted as two": changed("draws", _split),
            "hulls grow again": changed("draws", _grown),
            "scores made positive definite": changed("draws", _of_the_theorem),
            "limits drawn to 0": changed("draws", _to_origin),
            "small starts have two limits": changed("sizes", _two_ends),
        },
    )
)
