"""Who attends to whom: leaders emerge, and in the end there is one or two; at T = 10 that is not always so yet."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.common.studies import study
from attnlab.experiments.datasets import dataset_of, limit_in, run_in, verdicts_said
from attnlab.experiments.record import Claim, Data, Experiment
from attnlab.experiments.spoils import changed, contradicted
from attnlab.progress import Progress
from attnlab.types import Spec

N, D, T, STEP = 20, 2, 10.0, 0.1
EDGE = 1e-4
"""The published picture draws an edge where a weight exceeds this; a matrix is called final when no entry is farther from P*."""

SEEDS = {"full": 200, "small": 30}
SHOWN = (0.0, 1.0, 2.0, 4.0)
REFERENCE_TIME = 2.0


def draw(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """V = B Bᵀ, M = C Cᵀ and the tokens; the entries of B, C and the tokens are uniform on [-1, 1]."""
    generator = np.random.default_rng(seed)
    B, C = generator.uniform(-1, 1, (2, D, D))
    return B @ B.T, C @ C.T, generator.uniform(-1, 1, (N, D))


def specs(size: str) -> dict[str, Spec]:
    """The run that is shown, rng = 0."""
    V, M, x0 = draw(0)
    return {"run": Spec(weights={"family": "given", "Q": M.tolist(), "K": np.eye(D).tolist(), "V": V.tolist()},
                        start={"law": "given", "x": x0.tolist()}, solve={"t_end": T, "saves": 201, "rtol": 1e-10})}


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The run that is shown with its limit, the same by Euler, and many draws."""
    from attnlab.engine import simulate
    from attnlab.types import Weights

    data = study(specs(size)["run"], progress.part(0.0, 0.2), names=["three_hyperplanes"])
    V, M, x0 = draw(0)
    times = np.arange(0, round(T / STEP) + 1) * STEP
    data["euler"] = dataset_of(simulate(Weights(Q=M, V=V), x0, times=times, t_end=T, stepper="euler", dt=STEP, frame="x"))
    data["reference"] = reference(V, M, x0)
    data["many"] = many(SEEDS[size], progress.part(0.25, 1.0))
    return data


def reference(V: np.ndarray, M: np.ndarray, x0: np.ndarray) -> Any:
    """Tokens at REFERENCE_TIME by SciPy's DOP853 on a plain right-hand side."""
    import xarray
    from scipy.integrate import solve_ivp
    from scipy.special import softmax

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        x = flat.reshape(x0.shape)
        return (softmax(x @ M @ x.T, axis=1) @ x @ V.T).ravel()

    end = solve_ivp(velocity, (0.0, REFERENCE_TIME), x0.ravel(), method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    return xarray.Dataset({"x": (("token", "coordinate"), end.reshape(x0.shape))})


def many(count: int, progress: Progress) -> Any:
    """For each draw: whom every token follows at T by the flow and by Euler, whom at infinity, and how far T is from that."""
    import xarray

    from attnlab.dynamics import attention
    from attnlab.engine import simulate
    from attnlab.limits import limit
    from attnlab.types import Weights

    follows = {name: np.zeros((count, N), int) for name in ("flow", "euler", "infinity")}
    numbers = {name: np.zeros(count) for name in ("leading", "second", "decided", "off", "rank", "rank_euler")}
    levels, is_exact = np.zeros((count, N)), np.zeros(count, np.int8)
    for k in range(count):
        V, M, x0 = draw(k)
        weights = Weights(Q=M, V=V)
        growth, modes = np.linalg.eigh(V)
        end = limit(weights, x0, work=500_000.0)
        final = np.where(end.leaders[:, None] >= 0, np.eye(N)[end.leaders], np.nan)
        # a run with a large λ₁ may end before T, where double precision does: its attention has long been Boolean then
        options: dict[str, Any] = {"t_end": T, "times": np.linspace(0.0, T, 21), "throw": False}
        P = attention(simulate(weights, x0, rtol=1e-9, **options))[0]
        P_euler = attention(simulate(weights, x0, stepper="euler", dt=STEP, frame="x", **options))[0]
        for name, chosen in (("flow", P.argmax(axis=1)), ("euler", P_euler.argmax(axis=1)), ("infinity", end.leaders)):
            follows[name][k] = chosen
        row = (growth[1], growth[0], end.t, np.abs(P - final).max(), np.linalg.matrix_rank(P), np.linalg.matrix_rank(P_euler))
        for name, value in zip(numbers, row, strict=True):
            numbers[name][k] = value
        levels[k], is_exact[k] = end.limits @ modes[:, -1], end.grade == "exact"
        progress(k / count, "many draws")
    variables: dict[str, Any] = {f"follows_{name}": (("seed", "token"), array) for name, array in follows.items()}
    variables |= {name: ("seed", array) for name, array in numbers.items()}
    return xarray.Dataset({**variables, "level": (("seed", "token"), levels), "is_exact": ("seed", is_exact)})


def number_of(follows: np.ndarray) -> np.ndarray:
    """The number of leaders of each draw, from whom every token follows (seed, token)."""
    return np.array([len(set(row.tolist())) for row in follows])


def claims(data: Data) -> list[Claim]:
    """What the theorem says, what follows for leaders, and how far T = 10 is from the end."""
    run, limit, every = run_in(data), limit_in(data), data["many"]
    exact = every["is_exact"].values == 1
    ends, levels = every["follows_infinity"].values[exact], every["level"].values[exact]
    scale = np.abs(levels).max(axis=1, keepdims=True)
    lowest, highest = levels.min(axis=1, keepdims=True), levels.max(axis=1, keepdims=True)
    away = np.min([np.abs(levels), levels - lowest, highest - levels], axis=0)
    pairs = sum(len(set(row[level > 0].tolist())) > 1 or len(set(row[level < 0].tolist())) > 1
                for row, level in zip(ends, levels, strict=True))
    early, off, leading = every["decided"].values <= T, every["off"].values, every["leading"].values
    ranks, counts = every["rank"].values, number_of(every["follows_infinity"].values)
    other = (every["follows_flow"].values != every["follows_infinity"].values).any(axis=1) | (ranks != counts)
    late = ~(off <= EDGE)
    euler = run_in(data, "euler")
    growth, modes = np.linalg.eigh(run.dynamics.weights.full_V[0])
    leader = int(limit.leaders[0])
    grown = euler.x[[-1, -11], leader] @ modes[:, -1]
    at = int(np.abs(run.times - REFERENCE_TIME).argmin())
    x_end = data["reference"]["x"].values
    slow = np.median(leading[late]) / np.median(leading[~late]) if late.any() and not late.all() else np.nan
    return [
        Claim(text="The theorem of the three hyperplanes is supported by the run that is shown.",
              measured=float(verdicts_said(data["verdicts"], "three_hyperplanes") == ["SUPPORTED"]),
              published="a theorem (section 4)", low=1, high=1, because="1 is SUPPORTED; V is symmetric positive definite with "
              "a simple top eigenvalue, and ⟨Mφ₁, φ₁⟩ > 0: a good triple"),
        Claim(text="Over all draws the limits of φ₁(z) are 0, the smallest or the largest of them: largest distance, relative "
              "to the largest.", measured=float((away / scale).max()), published="at most three hyperplanes", low=0, high=1e-6,
              because="Theorem 4.2; errors of certified limits are smaller"),
        Claim(text="In the end there are one or two leaders: the largest number over all draws with a certified limit.",
              measured=float(number_of(ends).max()), published="a few leaders; at most three limits (conjecture 4.3)", low=1,
              high=2, because="leaders that follow themselves move like e^{tV}; of two on one side of φ₁ = 0 the farther one "
              "gets the higher score from both, at the rate e^{2 λ₁ t}, so only one stays",
              differs="The theorem counts hyperplanes, not leaders, and allows three; for tokens drawn at random the third "
              "level, 0, is not hit."),
        Claim(text="No two of them are on one side of the line φ₁ = 0: number of draws in which two are.", measured=float(pairs),
              low=0, high=0, because="the same argument"),
        Claim(text="A draw that is decided before T = 10 has its last leaders at T, and P has as many independent rows as "
              "leaders: exceptions.", measured=float(np.sum(other & early & exact)), low=0, high=0,
              because="the certificate: no gap closes again, and all exceed 50"),
        Claim(text=f"The published T = 10 is not always the end: share of draws with a weight farther than {EDGE:g} from its "
              "limit.", measured=float(late.mean()), published="no number; one draw shown", low=0.5 / len(off),
              high=float(1 - (early & exact).mean()), because="not more than the share of draws that are decided after T = 10, "
              "and not none: λ₁ has a density near 0", differs="Where λ₁ is small, the picture at T = 10 shows who leads by "
              "then and not who leads in the end."),
        Claim(text="Those draws are the slow ones: median λ₁ of the draws that are not final over that of those that are.",
              measured=float(slow), low=0, high=1, because="scores grow like e^{2 λ₁ t}"),
        Claim(text="Euler's tokens are too slow: growth of a leader along φ₁ in the last unit of time, relative to (1 + λ₁ "
              "dt)^10, less 1.", measured=float(abs(grown[0] / grown[1] / (1 + growth[-1] * STEP) ** 10 - 1)),
              published="Euler, dt = 0.1", low=0, high=1e-9,
              because="a leader attends to itself, so that x(t + dt) = (1 + dt V) x(t); the flow has e^{λ₁}",
              differs="The published scores are too small by a factor of e^{λ₁² dt T} at T; leaders come later, and are mostly "
              "the same."),
        Claim(text="The flow agrees with SciPy's DOP853 at t = 2: largest difference of a coordinate, relative to the largest.",
              measured=float(np.abs(run.x[at] - x_end).max() / np.abs(x_end).max()), low=0, high=1e-7,
              because="tolerances 1e-10 and 1e-12"),
    ]


def figures(data: Data) -> dict[str, Any]:
    """Who attends to whom, over time, and over many draws."""
    from attnlab.render.style import house_style

    with house_style():
        return {"leaders": _pictures(data), "leaders_over_time": _over_time(data), "leaders_of_many_draws": _many_draws(data)}


def received(P: np.ndarray) -> np.ndarray:
    """The attention that each token receives from the others, as a share of all they can give, P (.., n, n) -> (.., n)."""
    n = P.shape[-1]
    return (P.sum(axis=-2) - np.diagonal(P, axis1=-2, axis2=-1)) / (n - 1)


def _attention(run: Any) -> np.ndarray:
    from attnlab.dynamics import attention

    return np.stack([attention(run, at=k)[0] for k in range(len(run.times))])


def _pictures(data: Data) -> Any:
    from attnlab.render.style import INK, NOTE, PALETTE, new_figure, title

    run = run_in(data)
    M, V = run.dynamics.weights.M[0], run.dynamics.weights.full_V[0]
    order = np.argsort(run.x[0] @ np.linalg.eigh(V)[1][:, -1])
    height = np.empty(run.n)
    height[order] = np.linspace(0, 1, run.n)
    figure = new_figure(12.4, 7.0)
    grid = figure.subplots(2, len(SHOWN), height_ratios=[1, 1.15])
    for axes, t in zip(grid.T, SHOWN, strict=True):
        k = int(np.abs(run.times - t).argmin())
        P = _attention_at(run, k)
        keys = run.x[k] / np.abs(run.x[k]).max()
        queries = keys @ M.T / np.abs(keys @ M.T).max()
        rows = np.stack([np.zeros(run.n), height], axis=1), np.stack([np.ones(run.n), height], axis=1)
        chosen = sorted(set(P.argmax(axis=1).tolist()))
        few = chosen if len(chosen) <= 4 else []
        for axis, (start, end) in zip(axes, ((queries, keys), rows), strict=True):
            for i, j in zip(*np.nonzero((P > EDGE) & ~np.eye(run.n, dtype=bool)), strict=True):
                faint = float(min(1.0, 0.04 + P[i, j]))
                axis.plot(*np.stack([start[i], end[j]]).T, color=NOTE, alpha=faint, linewidth=0.7, zorder=1)
            axis.scatter(*start.T, s=24, marker="D", color=PALETTE[2], linewidths=0, zorder=3)
            axis.scatter(*end.T, s=26, marker="o", color=PALETTE[1], linewidths=0, zorder=3)
            axis.scatter(*end[chosen].T, s=95, marker="o", facecolors="none", edgecolors=INK, linewidths=1.3, zorder=4)
            for j in few:
                axis.annotate(f"{j}", end[j], xytext=(8, 4), textcoords="offset points", fontsize=9.5, fontweight="bold")
            axis.set_xticks([])
            axis.set_yticks([])
        axes[0].set_title(f"t = {run.times[k]:g}, rank {np.linalg.matrix_rank(P)}\n{_said(len(chosen))}")
        axes[0].set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal")
        axes[1].set(xlim=(-0.2, 1.3), ylim=(-0.06, 1.06))
        axes[1].set_xticks([0, 1], ["queries", "keys"])
        axes[1].spines[:].set_visible(False)
        axes[1].tick_params(length=0)
    grid[0, 0].set_ylabel("in the plane, scaled")
    grid[1, 0].set_ylabel("sorted by φ₁ at t = 0")
    title(figure, f"Who attends to whom · n = {run.n}, d = 2, V and M random, λ₁ = {np.linalg.eigvalsh(V)[-1]:.3g}",
          f"Green diamonds: queries Mxᵢ; orange dots: keys xⱼ; a line where Pᵢⱼ > {EDGE:g}, i ≠ j, the darker the larger Pᵢⱼ. "
          "Ringed: leaders, the tokens that somebody attends to most. Queries and keys are scaled to the panel; they grow like "
          "exp(λ₁t).")
    return figure


def _said(count: int) -> str:
    return f"{count} leader{'s' if count != 1 else ''}"


def _attention_at(run: Any, k: int) -> np.ndarray:
    from attnlab.dynamics import attention

    return np.asarray(attention(run, at=k)[0])


def _over_time(data: Data) -> Any:
    from attnlab.render.heat_maps import draw_strip, draw_weight_bar
    from attnlab.render.style import INK, NOTE, PALETTE, dress_flat, new_figure, title

    run, euler, limit = run_in(data), run_in(data, "euler"), limit_in(data)
    order = np.argsort(run.x[0] @ np.linalg.eigh(run.dynamics.weights.full_V[0])[1][:, -1])
    P, P_euler = _attention(run), _attention(euler)
    figure = new_figure(10.4, 6.0)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[1.35, 1])
    image = draw_strip(upper, run.times, received(P)[:, order].T)
    draw_weight_bar(figure, image, [upper], shrink=0.9)
    figure.axes[-1].set_ylabel("share of others' attention")
    upper.set_yticks(range(run.n), [str(i) for i in order], fontsize=6.5)
    upper.set(ylabel="token, sorted by φ₁", title="Attention that a token receives from the others")
    for i in sorted(set(limit.leaders.tolist())):
        place = int(np.flatnonzero(order == i)[0])
        upper.annotate(f"leader {i}\nat t = "
        f"∞", (T, place), xytext=(-6, -26 if place > run.n / 2 else 12), ha="right", va="bottom",
                       textcoords="offset points", fontsize=8.5, color=INK)
    upper.axvline(limit.t, color=INK, linewidth=1.0, linestyle=(0, (4, 2)))
    upper.text(limit.t + 0.08, run.n / 2, f"certified\nat t = {limit.t:.2f}", fontsize=8.5, va="center")
    dashes = (0, (5, 2))
    for times, matrices, style, words in ((run.times, P, "solid", "flow"), (euler.times, P_euler, dashes, "Euler, dt = 0.1")):
        counts = number_of(matrices.argmax(axis=2))
        ranks = [np.linalg.matrix_rank(one) for one in matrices]
        lower.plot(times, ranks, color=PALETTE[0], linewidth=1.6, linestyle=style, label=f"rank of P, {words}")
        heard = ((matrices > EDGE) & ~np.eye(run.n, dtype=bool)).any(axis=1).sum(axis=1)
        lower.plot(times, heard, color=PALETTE[2], linewidth=1.6, linestyle=style, label=f"tokens with an edge to them, {words}")
        lower.plot(times, counts, color=PALETTE[1], linewidth=1.6, linestyle=style, label=f"leaders, {words}")
    lower.axhline(len(set(limit.leaders.tolist())), color=NOTE, linewidth=0.9, linestyle=(0, (1, 1.2)))
    lower.text(T, len(set(limit.leaders.tolist())) + 0.7, "leaders at t = ∞, certified", ha="right", fontsize=8.5, color=NOTE)
    lower.set(xlabel="t", ylabel="number", xlim=(0, T), ylim=(0, None))
    lower.legend(frameon=False, fontsize=8.5, loc="upper right")
    dress_flat(lower, ticks=6)
    title(figure, f"Leaders emerge · the run of the pictures, n = {run.n}, d = 2",
          f"A leader is a token that at least one token attends to most; an edge is a weight above {EDGE:g}. Euler with the "
          f"published step is later: its tokens grow by "
          "1 + λ₁dt a step in place of exp(λ₁dt).")
    return figure


def _many_draws(data: Data) -> Any:
    from attnlab.render.heat_maps import draw_share_table
    from attnlab.render.style import HULL, INK, NOTE, PALETTE, dress_flat, new_figure, title

    every = data["many"]
    late = ~(every["off"].values <= EDGE)
    count = len(late)
    at_end, at_last = number_of(every["follows_infinity"].values), number_of(every["follows_flow"].values)
    most = max(3, int(at_last.max()))
    figure = new_figure(11.4, 4.3)
    left, middle, right = figure.subplots(1, 3, width_ratios=[0.8, 1.05, 1.5])
    shares = np.array([[np.mean((at_last == i) & (at_end == j)) for j in (1, 2)] for i in range(1, most + 1)])
    draw_share_table(left, shares, [str(i) for i in range(1, most + 1)], ["1", "2"])
    left.set(xlabel="leaders at t = ∞", ylabel="leaders at T = 10", title="Share of draws")
    bins = np.arange(0.5, N + 1.5)
    ranks = every["rank"].values
    middle.hist([ranks[~late], ranks[late]], bins=bins, stacked=True, color=[PALETTE[0], PALETTE[1]],
                label=["final", "not final"])
    middle.set(xlabel="rank of P at T = 10", ylabel="draws", title="The rank that is printed")
    middle.legend(frameon=False, fontsize=8.5)
    leading, decided = every["leading"].values, every["decided"].values
    for chosen, colour, marker, words in ((~late, PALETTE[0], "o", "final at T = 10"), (late, PALETTE[1], "s", "not final")):
        right.loglog(leading[chosen], decided[chosen], color=colour, marker=marker, linestyle="none", markersize=4.5, alpha=0.75,
                     markeredgewidth=0, label=words)
    right.axhline(T, color=HULL, linewidth=1.0, linestyle=(0, (4, 2)))
    ends = np.array([leading.min(), leading.max()])
    right.loglog(ends, 8.0 / ends, color=INK, linewidth=1.0, linestyle=(0, (1, 1.2)))
    right.text(ends[0], T * 1.08, "T = 10, published", fontsize=8.5, color=NOTE)
    right.text(0.2, 22.0, "slope −1", fontsize=8.5, ha="center", va="top")
    right.set(xlabel="λ₁", ylabel="t of the certificate", title="When it is decided who leads")
    right.legend(frameon=False, fontsize=8.5, loc="upper right")
    right.minorticks_off()
    for ticks, numbers in ((right.set_xticks, (0.1, 0.2, 0.5, 1, 2, 4)), (right.set_yticks, (2, 5, 10, 20, 50))):
        ticks(numbers, [f"{number:g}" for number in numbers])
    for axes in (middle, right):
        dress_flat(axes)
    same = np.mean((every["follows_flow"].values == every["follows_euler"].values).all(axis=1))
    title(figure, f"{count} draws: T = 10 is not the end in {100 * late.mean():.0f} % of them, and in the end one or two "
          f"tokens lead",
          f"V = B Bᵀ, M = C Cᵀ, n = {N}, d = 2. Final: no weight farther than {EDGE:g} from its certified limit. It takes a few "
          f"times 1/λ₁. Euler with the published step: every token follows the same leader at T in {100 * same:.0f} % of the "
          f"draws.")
    return figure


def _self_led(every: Any) -> None:
    """Everybody follows himself in the end."""
    every["follows_infinity"] = (("seed", "token"), np.tile(np.arange(N), (every.sizes["seed"], 1)))


def _spread(every: Any) -> None:
    every["level"] = every["level"] * np.linspace(0.9, 1.1, N)


def _unsharp(every: Any) -> None:
    """Attention at T with a hundredth of it taken from every leader."""
    every["off"] = every["off"] + 0.01


def _exchanged(every: Any) -> None:
    every["leading"] = 1 / every["leading"]


def _kicked(run: Any) -> None:
    run["states"] = run["states"] * (1 + 1e-3 * run["time"])


experiments.register("leaders")(
    Experiment(
        name="leaders",
        title="Leaders: who attends to whom, and how many lead in the end",
        cite="Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465, section on leaders (introduction), and its script "
        "leaders.py",
        about="Twenty tokens in the plane, V = B Bᵀ and M = C Cᵀ random. Token i asks with Mx_i, token j answers with x_j; a "
        "line is drawn where i gives j more than 0.0001 of its attention. At first everybody listens to everybody; then few "
        "tokens, the leaders, get all attention.\n\nWhat theory says: V has almost surely a simple top eigenvalue, so at most "
        "three parallel lines attract the tokens (Theorem 4.2). That alone does not bound the number of leaders. But leaders "
        "in the end follow themselves, and of two on one side of φ₁ = 0 the farther one wins: so there are at most two, one a "
        "side; all draws (rng = 0, 1, ..) agree, and in about half of them a single token leads.\n\nThe published picture is "
        "one draw by Euler's method at T = 10. Euler with dt = 0.1 makes tokens grow more slowly, and leaders come later; more "
        "important, T = 10 is not the end where λ₁ is small: the rank printed then can be anything up to n.",
        compute=compute,
        claims=claims,
        figures=figures,
        specs=specs,
        spoils={
            "theorem contradicted": contradicted,
            "everybody leads himself": changed("many", _self_led),
            "tokens spread over many lines": changed("many", _spread),
            "attention blurred": changed("many", _unsharp),
            "fast and slow draws exchanged": changed("many", _exchanged),
            "run kicked": changed("run", _kicked),
            "Euler kicked": changed("euler", _kicked),
        },
    )
)
