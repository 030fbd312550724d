"""A feed-forward part after the attention: ReLU, tanh, ReLU with a random W. What approaches hyperplanes, and what collapses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.datasets import dataset_of, run_in, table_of_rows
from attnlab.experiments.intervals import share_interval
from attnlab.experiments.parts import Context, Part, Parts, Results
from attnlab.experiments.record import Claim, Data, Experiment
from attnlab.experiments.spoils import changed
from attnlab.sweep.grid import Grid
from attnlab.types import FeedForward, Spec, Trajectory, Weights

DRAWS = {"full": 100, "small": 8}
N = 20
UNTIL = 5.0
"""lambda_1 T: what tends to a hyperplane is within e^-5, less than 1 %, of it. Later the kinks of the ReLU make it too stiff."""
MAX_STEPS = 1500
PLANE, NEAR_ZERO = 0.01, 0.1
"""On three hyperplanes: within 1 % of the first diameter. Collapsed to 0: all tokens within a tenth of the first size of 0."""
ROWS = {"relu": "ReLU, W = I", "tanh": "tanh, W = I", "random": "ReLU, W random"}
LAWS = {"cube": (-5.0, 5.0), "positive": (0.0, 5.0), "small": (-0.2, 0.2)}
CASES = (("plane", "cube"), ("plane", "positive"), ("plane", "small"), ("space", "cube"), ("family", "cube"), ("family", "small"))
SETTINGS = {"plane": "published V, d = 2", "space": "published V, d = 3", "family": "random good triples, d = 3"}
PUBLISHED = {"plane": "hyperplanes_2d", "space": "hyperplanes_3d_growing"}


def value_matrix(setting: str, draw: int) -> np.ndarray:
    """V of a good triple: one of the paper's, or that of a random one."""
    from attnlab.weights import weights_families

    weights = (weights_families["good_triple"](d=3, rng=draw) if setting == "family"
               else weights_families["published"](matrix=PUBLISHED[setting]))
    return np.asarray(weights.full_V[0])


def drawn(setting: str, law: str, draw: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(V, tokens (n, d), random W) of a draw, each from its own seed; W has entries U(-1, 1)."""
    V = value_matrix(setting, draw)
    rng = np.random.default_rng([16, draw])
    d = len(V)
    return V, rng.uniform(*LAWS[law], (N, d)), rng.uniform(-1, 1, (d, d))


def layer(row: str, W: np.ndarray) -> FeedForward:
    """The feed-forward part of a row of the picture."""
    return FeedForward(W=W if row == "random" else None, sigma="tanh" if row == "tanh" else "relu")


def leading_rate(V: np.ndarray) -> float:
    """lambda_1."""
    return float(np.linalg.eigvals(V).real.max())


def specs(size: str) -> dict[str, Spec]:
    """The three runs of the picture."""
    V, x0, W = drawn("plane", "cube", 0)
    end = UNTIL / leading_rate(V)
    extra: dict[str, dict[str, Any]] = {"relu": {"sigma": "relu"}, "tanh": {"sigma": "tanh"},
                                        "random": {"sigma": "relu", "W": W.tolist()}}
    return {row: Spec(weights={"family": "published", "matrix": PUBLISHED["plane"]}, start={"law": "given", "x": x0.tolist()},
                      dynamics={"feedforward": extra[row]},
                      solve={"t_end": end, "times": np.linspace(0, end, 61).tolist(), "measure_error": True}) for row in ROWS}


def run_shown(context: Context) -> dict[str, Any]:
    """The three runs of the picture, and the same by another program."""
    import xarray

    from attnlab.run import run_spec

    V, x0, W = drawn("plane", "cube", 0)
    runs = {row: run_spec(spec) for row, spec in specs(context.size).items()}
    times = runs["relu"].times
    context.progress(0.5, "the same by another program")
    others = np.stack([independent(V, x0, layer(row, W), times) for row in ROWS])
    return {**{row: dataset_of(run) for row, run in runs.items()},
            "independent": xarray.Dataset({"z": (("row", "time", "token", "coordinate"), others)},
                                          coords={"row": list(ROWS), "time": times})}


def measure_draw(_: Context, setting: str, law: str, draw: int) -> list[dict[str, Any]]:
    """What the run of each row of the picture did."""
    from attnlab.engine import simulate

    V, x0, W = drawn(setting, law, draw)
    lines = []
    for row in ROWS:
        run = simulate(Weights(V=V), x0, t_end=UNTIL / leading_rate(V), saves=41, feedforward=layer(row, W), rtol=1e-6,
                       max_steps=MAX_STEPS, throw=False)
        lines.append({"setting": setting, "law": law, "row": row, "draw": draw, **measured(run, W if row == "random" else None)})
    return lines


def assemble(results: Results) -> dict[str, Any]:
    """The runs of the picture, and a table of many draws."""
    lines = [line for some in results.values("draws") for line in some]
    return {**results.values("shown")[0], "draws": table_of_rows(lines, "line", kind="draws")}


def growth(V: np.ndarray) -> Callable[[float], np.ndarray]:
    """t -> e^{tV} by the eigenvectors of V."""
    values, vectors = np.linalg.eig(V)
    inverse = np.linalg.inv(vectors)
    return lambda t: np.real((vectors * np.exp(t * values)) @ inverse)


def velocity(V: np.ndarray, grown: np.ndarray, part_after: FeedForward, z: np.ndarray) -> np.ndarray:
    """z' (n, d) written out: W sigma(V sum_j P_ij (z_j - z_i)), P the softmax of <x_i, x_j>, x = e^{tV} z, grown = e^{tV}."""
    x = z @ grown.T
    scores = x @ x.T
    P = np.exp(scores - scores.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    pulled = (P @ z - z) @ V.T
    bent = np.tanh(pulled) if part_after.sigma == "tanh" else np.maximum(pulled, 0.0)
    return bent if part_after.W is None else np.asarray(bent @ part_after.W.T)


def independent(V: np.ndarray, x0: np.ndarray, part_after: FeedForward, times: np.ndarray) -> np.ndarray:
    """z (T, n, d) by SciPy's DOP853 on the velocity written out."""
    from scipy.integrate import solve_ivp

    from attnlab.engine.threads import one_blas_thread

    grow = growth(V)
    with one_blas_thread():
        found = solve_ivp(lambda t, flat: velocity(V, grow(t), part_after, flat.reshape(x0.shape)).ravel(),
                          (0.0, float(times[-1])), x0.ravel(), method="DOP853", rtol=1e-9, atol=1e-11, t_eval=times)
    return np.asarray(found.y.T.reshape(-1, *x0.shape))


def measured(run: Trajectory, W: np.ndarray | None) -> dict[str, float]:
    """What is asked of a run: sizes at both ends, the distance to three hyperplanes, the largest fall and the largest speed.

    least: no token set can be nearer to 0 than this, by the coordinates of W^{-1} z that never decrease (ReLU).
    """
    z = run.z
    assert z is not None
    inverse = np.eye(run.d) if W is None else np.linalg.inv(W)
    rising = z @ inverse.T
    first, last = z[0], z[-1]
    widest = diameter(first)
    seldom = slice(None, None, 4)                           # values between the integrator's steps are less exact near a kink
    steps = np.diff(z[seldom], axis=0) / np.diff(run.times[seldom])[:, None, None]
    return {
        "is_complete": float(run.is_ok), "reached": float(run.times[-1] * leading_rate(run.dynamics.weights.full_V[0])),
        "first_size": float(np.linalg.norm(first, axis=1).max()), "size": float(np.linalg.norm(last, axis=1).max()),
        "first_diameter": widest, "diameter": diameter(last), "planes": three_planes(last) / widest,
        "fall": float(-np.diff(rising, axis=0).min() / np.abs(rising[0]).max()), "speed": float(np.abs(steps).max()),
        "least": float(max(0.0, (rising[0] / np.linalg.norm(inverse, axis=1)).max())),
    }


def diameter(z: np.ndarray) -> float:
    """The largest distance between two of the points z (n, d)."""
    return float(np.linalg.norm(z[:, None] - z[None], axis=-1).max())


def three_planes(z: np.ndarray) -> float:
    """The smallest r such that some three parallel hyperplanes have all points z (n, d) within r, over many normals."""
    values = np.sort(directions(z.shape[1]) @ z.T, axis=1)                                   # (normals, n)
    i, j = np.triu_indices(len(z) - 1, 1)                                                    # groups end at i, j and n - 1
    first, middle, last = values[:, i] - values[:, :1], values[:, j] - values[:, i + 1], values[:, -1:] - values[:, j + 1]
    return float(np.maximum(np.maximum(first, middle), last).min() / 2)


def directions(d: int) -> np.ndarray:
    """Unit vectors (m, d) spread over half of the circle (a third of a degree apart) or of the sphere (two degrees)."""
    if d == 2:
        angle = np.pi * np.arange(540) / 540
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    height, turn = (np.arange(3000) + 0.5) / 3000, np.pi * (1 + 5**0.5) * np.arange(3000)
    return np.stack([np.sqrt(1 - height**2) * np.cos(turn), np.sqrt(1 - height**2) * np.sin(turn), height], axis=1)


def chosen(draws: Any, row: str, law: str | None = None, setting: str | None = None) -> Any:
    """The lines of a row of the picture, of one case or of several."""
    used = draws["row"].values == row
    for name, word in (("law", law), ("setting", setting)):
        used = used & ((draws[name].values == word) if word is not None else True)
    return draws.isel(line=np.flatnonzero(used))


def share(happens: np.ndarray) -> tuple[float, float, float]:
    """(share, lower, upper end of its 95 % interval by Clopper and Pearson)."""
    return float(happens.mean()), *share_interval(int(happens.sum()), len(happens))


def on_planes(lines: Any) -> np.ndarray:
    """Whether the tokens end on at most three parallel hyperplanes."""
    return np.asarray(lines["planes"].values <= PLANE)


def at_zero(lines: Any) -> np.ndarray:
    """Whether all tokens end at 0."""
    return np.asarray(lines["size"].values <= NEAR_ZERO * lines["first_size"].values)


def claims(data: Data) -> list[Claim]:
    """What is exact, and the paper's three observations over many draws."""
    draws = data["draws"]
    relu, tanh, random = (chosen(draws, row) for row in ROWS)
    apart = max(float(np.abs(data["independent"]["z"].sel(row=row).values - run_in(data, row).z).max()) for row in ROWS)
    both = [lines["size"].values / np.maximum(lines["least"].values, 1e-300) for lines in (relu, random)]
    complete = draws.isel(line=np.flatnonzero(draws["is_complete"].values == 1))
    # in the plane tanh has no time for it: λ₁T = 5 is T = 3.7, and no coordinate moves faster than 1
    in_time = complete.isel(line=np.flatnonzero(complete["setting"].values != "plane"))
    zero = {"tanh": share(at_zero(chosen(in_time, "tanh", "cube"))), "random": share(at_zero(chosen(complete, "random", "cube")))}
    planes = {law: share(on_planes(chosen(draws, "relu", law, "plane"))) for law in LAWS}
    half = "an observation that is typical would be made in at least half of the draws"
    return [
        Claim(text="The three runs of the picture agree with an independent integrator (SciPy's DOP853, plain NumPy): largest "
              "difference of a coordinate.", measured=apart, low=0, high=1e-4,
              because="the tolerance 1e-8 of the run, on tokens of size 10, in about a thousand steps"),
        Claim(text="ReLU, W = I: no coordinate of any token ever decreases. The largest decrease in all draws, relative to the "
              "start.", measured=float(relu["fall"].max()), published="not said", low=-np.inf, high=1e-6 * MAX_STEPS,
              because=f"z' = ReLU(..) >= 0; the tolerance 1e-6 in up to {MAX_STEPS} steps is off by no more"),
        Claim(text="ReLU, W random: no coordinate of W⁻¹z ever decreases. The largest decrease in all draws, relative to the "
              "start.", measured=float(random["fall"].max()), published="not said", low=-np.inf, high=1e-6 * MAX_STEPS,
              because=f"W⁻¹z' = ReLU(..) >= 0; the tolerance 1e-6 in up to {MAX_STEPS} steps is off by no more"),
        Claim(text="So with ReLU, W = I or random, the tokens cannot collapse to 0: the largest token at the end over the "
              "bound that the start sets, smallest of all draws.", measured=float(min(map(np.min, both))),
              published="W random: all particles appear to collapse to 0", low=1 - 1e-6 * MAX_STEPS, high=np.inf,
              because="a coordinate of W⁻¹z that is positive stays at least as large, so |z| >= (W⁻¹z(0))_k / |row k of W⁻¹|",
              differs="a collapse to 0 needs W⁻¹z <= 0 for all tokens of the start, which has a probability of at most 2^-n"),
        Claim(text="tanh, W = I: no coordinate moves faster than 1. The largest mean speed between two saved times in all "
              "draws.", measured=float(tanh["speed"].max()), published="not said", low=0, high=1.01,
              because="|tanh| < 1; a hundredth for the tolerance 1e-6, on tokens of size 10, over times a tenth apart or more"),
        Claim(text="tanh, W = I, starts in [-5, 5]^3: the tokens do not collapse to 0 by λ₁T = 5. Upper end of the 95 % "
              "interval for the share of draws that do, of all whose run is complete.", measured=zero["tanh"][2],
              published="all particles appear to collapse to 0 (one draw)", low=0, high=0.5, because=half,
              differs=f"here a share of {zero['tanh'][0]:.2f}: a leader attends to itself alone and stands still"),
        Claim(text="ReLU, W random, starts in [-5, 5]^d: the same share, upper end of its interval.", measured=zero["random"][2],
              published="all particles appear to collapse to 0 (one draw)", low=0, high=0.5, because=half,
              differs=f"here a share of {zero['random'][0]:.2f}, as the bound above demands"),
        Claim(text="ReLU, W = I, starts in [-5, 5]^2: more than three parallel hyperplanes are needed. Upper end of the 95 % "
              "interval for the share of draws where three are enough.", measured=planes["cube"][2],
              published="at most three (one draw)", low=0, high=0.5, because=half,
              differs=f"here a share of {planes['cube'][0]:.2f}: where phi*_1 < 0 tokens listen to a token below them, "
              "V(z_leader - z) has no positive coordinate, and the ReLU stops them where they are, each at its own level"),
        Claim(text="ReLU, W = I, starts in the positive quadrant [0, 5]^2: at most three are enough. Lower end of the interval "
              "for the share of draws where they are.", measured=planes["positive"][1], published="at most three (one draw)",
              low=0.5, high=1, because=half),
    ]


def figures(data: Data) -> dict[str, Any]:
    """The three rows over time; what they did in many draws; what can be proved."""
    from attnlab.render.feedforward_figure import coordinates_figure, draws_figure, rows_figure

    V, _, W = drawn("plane", "cube", 0)
    runs = {row: run_in(data, row) for row in ROWS}
    z = {row: np.asarray(run.z) for row, run in runs.items()}
    grown = growth(V)(float(runs["relu"].times[-1]))
    rest = {row: np.all(velocity(V, grown, layer(row, W), z[row][-1]) == 0, axis=1) for row in ROWS}
    values, left = np.linalg.eig(V.T)
    normal = np.real(left[:, np.argmax(values.real)])
    cells = [(row, setting, law, chosen(data["draws"], row, law, setting)) for row in ROWS for setting, law in CASES]
    strips = [(row, SETTINGS[setting], law, lines["size"].values / lines["first_size"].values, share(on_planes(lines)))
              for row, setting, law, lines in cells]
    rising = {row: z[row] @ (np.linalg.inv(W).T if row == "random" else np.eye(2)) for row in ROWS}
    t = runs["relu"].times
    return {"feedforward": rows_figure(t, z, ROWS, rest, normal),
            "feedforward_draws": draws_figure(strips, ROWS, LAWS, near_zero=NEAR_ZERO),
            "feedforward_coordinates": coordinates_figure(t, rising, ROWS)}


def _at(draws: Any, row: str, **changes: Any) -> None:
    """Multiply columns of the lines of a row."""
    used = draws["row"].values == row
    for name, factor in changes.items():
        draws[name] = ("line", np.where(used, draws[name].values * factor, draws[name].values))


def _slips(row: str) -> Any:
    def change(draws: Any) -> None:
        fall = draws["fall"].values.copy()
        fall[np.flatnonzero(draws["row"].values == row)[3]] = 1e-2
        draws["fall"] = ("line", fall)

    return changed("draws", change)


def _collapsed(row: str) -> Any:
    return changed("draws", lambda draws: _at(draws, row, size=0.01, diameter=0.01))


experiments.register("feedforward")(
    Experiment(
        name="feedforward",
        title="A feed-forward part after the attention: ReLU, tanh, and a random W",
        cite="Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465, section 12, open problem on feed-forward layers and "
        "its figure",
        about="The rescaled tokens obey z' = W sigma(V sum_j P_ij (z_j - z_i)) with V of a good triple, Q = K = I. The paper "
        "shows one draw each of three choices and reports what is seen: ReLU with W = I, at most three parallel "
        "hyperplanes; tanh with W = I, and ReLU with a random W, all particles appear to collapse to 0.\n\n"
        "Some of it is decided by elementary facts. With ReLU no coordinate of W⁻¹z ever decreases, so tokens cannot "
        "collapse to 0 unless all of them start where W⁻¹z <= 0. With tanh no coordinate moves faster than 1. Over many "
        "draws from [-5, 5]^d nothing collapses to 0 by λ₁T = 5 in any of the rows: leaders stand still where they are. And with "
        "ReLU, W = I, three hyperplanes are enough for starts in the positive quadrant but not in general: tokens with "
        "phi*_1 < 0 listen to one that lies below them, and the ReLU stops them where they are. With tanh the tokens go "
        "to the levels of their leaders as without it, only later, and small starts come closest to a collapse: "
        "attention is uniform at first, and draws them to their centre of mass.\n\n"
        "The published draws are not available, nor are their start and their end; a smaller start or a positive one "
        "(both are tried here) changes the picture. Each draw has its own seed (NumPy's generator seeded by 16 and its "
        "number). Runs end at lambda_1 T = 5, or earlier where the kinks of the ReLU need more than 1500 steps; they are "
        "judged where they end.",
        compute=Parts(
            {"shown": Part(run_shown, doing="the three runs of the picture", share=0.06),
             "draws": Part(measure_draw, Grid({"setting, law": CASES, "draw": range(DRAWS["full"])},
                                              small={"draw": range(DRAWS["small"])}), "{setting}, {law} starts", share=0.94)},
            assemble,
        ),
        claims=claims,
        figures=figures,
        specs=specs,
        spoils={
            "another start for the other program": changed("independent", lambda other: other.__setitem__("z",
            other["z"] + 0.01)),
            "a coordinate decreases (W = I)": _slips("relu"),
            "a coordinate decreases (W random)": _slips("random"),
            "tanh collapses to 0": _collapsed("tanh"),
            "ReLU collapses to 0": _collapsed("random"),
            "tokens faster than tanh allows": changed("draws", lambda draws: _at(draws, "tanh", speed=1.5)),
            "all on three hyperplanes": changed("draws", lambda draws: _at(draws, "relu", planes=0.01)),
            "hyperplanes smeared out": changed("draws", lambda draws: _at(draws, "relu", planes=30.0)),
        },
    )
)
