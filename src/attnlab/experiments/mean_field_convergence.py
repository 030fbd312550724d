"""How fast n tokens approach the mean-field limit: like 1/n from quantiles, like n^(-1/2) from independent draws, d = 1.

Theory. Tokens start at the quantiles q(u), u = (i - 1/2)/n, and follow the mean-field flow x(t, u), but for the error 1/n² of the
midpoint rule in the velocity. Token i of n stands between the tokens u - 1/(4n) and u + 1/(4n) of 2n, so

    n W_2(n, 2n; t)  ->  c(t) = (1/4) ( int_0^1 |d_u x(t, u)|² du )^(1/2),      c(0) = (1/4) ( int dx / density )^(1/2),

and d_u x grows along a token at the rate V Var, Var the variance of attention there. For V = 1 it never shrinks in x; in the
middle, between the camps that go to + and - infinity, Var goes like e^{2t}, and c grows like exp(k e^{2t}) at last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.mean_field import Law, middle_levels, order, truncated_bells, uniform, wasserstein
from attnlab.experiments.record import Claim, Data, Experiment
from attnlab.experiments.spoils import changed
from attnlab.progress import Progress

SIZES = {"full": tuple(2**k for k in range(4, 13)), "small": tuple(2**k for k in range(4, 10))}
LATE_SIZES = {"full": tuple(sorted(a * 2**k for a in (16, 20, 24, 28) for k in range(6))),
              "small": tuple(sorted(a * 2**k for a in (16, 20, 24, 28) for k in range(4)))}
TIMES, JUDGED, LATE = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]), 5, 9.0
"""Saved times; how many of them are early enough for 1/n to be seen with these n; and a time when all tokens have long "
"split."""

DRAWS = {"full": 400, "small": 200}
RANDOM_SIZES = {"full": (16, 32, 64, 128, 256), "small": (16, 32, 64, 128)}
RANDOM_TIMES = np.array([0.0, 1.0])
MOST = 256
"""Tokens at which the constant of theory is integrated."""


def laws() -> dict[str, Law]:
    """The laws of the start, all on [-1, 1] with a density above 0 everywhere."""
    return {"uniform": uniform(), "bell": truncated_bells("Gaussian, cut off", (1.0, 0.0, 0.5)),
            "two_bells": truncated_bells("two bells", (0.35, -0.6, 0.3), (0.65, 0.5, 0.3))}


def tokens_of(start: np.ndarray, times: np.ndarray, V: float = 1.0, rtol: float = 1e-10) -> np.ndarray:
    """The tokens x of the runs from these starts (*batch, n, 1): (*batch, T, n)."""
    from attnlab.engine import simulate
    from attnlab.types import Weights

    return np.array(simulate(Weights(V=V * np.eye(1)), start, times=times, t_end=float(times[-1]), rtol=rtol).x[..., 0])


def side_by_side(law: Law, sizes: tuple[int, ...], times: np.ndarray, V: float = 1.0) -> Any:
    """A Dataset of runs of all sizes, behind one another along `token`; `size` says which run a token is of."""
    import xarray

    x = np.concatenate([tokens_of(law.start(n), times, V) for n in sizes], axis=1)
    return xarray.Dataset({"x": (("time", "token"), x), "size": ("token", np.repeat(sizes, sizes))}, coords={"time": times},
                          attrs={"V": V, "label": law.label})


def constants(law: Law, V: float, times: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """c(t) of the theory at these times, by SciPy's DOP853 in plain NumPy; nothing of attnlab is in it.

    MOST tokens make the field; d_u x is followed at the middle of every cell of levels u between these edges.
    """
    from scipy.integrate import solve_ivp

    levels = (edges[1:] + edges[:-1]) / 2
    x, places = law.start(MOST)[:, 0], law.quantiles(levels)

    def rate(_: float, state: np.ndarray) -> np.ndarray:
        tokens, at = state[:MOST], state[:-len(levels)]
        P = np.exp(np.outer(at, tokens) - np.abs(tokens).max() * np.abs(at)[:, None])
        P /= P.sum(axis=1, keepdims=True)
        mean = P @ tokens
        return V * np.append(mean, (P @ tokens**2 - mean**2)[MOST:])

    start = np.concatenate([x, places, -np.log(law.density(places))])
    found = solve_ivp(rate, (0, times[-1]), start, method="DOP853", t_eval=times, rtol=1e-8, atol=1e-12).y[-len(levels):]
    return np.asarray(np.sqrt(np.diff(edges) @ np.exp(2 * found)) / 4)


def drawn(size: str, progress: Progress) -> Any:
    """W_2 squared between n and 2n tokens that are drawn independently, uniform on [-1, 1], over e^{2t}: (size, draw, T)."""
    import xarray

    rng, sizes, many = np.random.default_rng(11), RANDOM_SIZES[size], DRAWS[size]
    squares = np.zeros((len(sizes), many, len(RANDOM_TIMES)))
    for number, n in enumerate(sizes):
        progress(number / len(sizes), f"independent draws, n = {n}")
        one, other = (tokens_of(rng.uniform(-1, 1, size=(many, m, 1)), RANDOM_TIMES, rtol=1e-7) for m in (n, 2 * n))
        squares[number] = [[wasserstein(one[k, j], other[k, j]) ** 2 * np.exp(-2 * t) for j, t in enumerate(RANDOM_TIMES)]
                           for k in range(many)]
    return xarray.Dataset({"square": (("size", "draw", "time"), squares)}, coords={"size": list(sizes), "time": RANDOM_TIMES})


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """Runs from quantiles for V = 1 and V = -1, the constants of theory, late runs, and independent draws."""
    import xarray


    data, theory, even = {}, {}, np.linspace(0, 1, MOST + 1)
    early = TIMES[:JUDGED]
    for number, (name, law) in enumerate(laws().items()):
        progress(0.12 * number, f"{law.label}")
        data[name], theory[name] = side_by_side(law, SIZES[size], TIMES), constants(law, 1.0, early, even)
    progress(0.4, "V = -1")
    bells = laws()["two_bells"]
    data["minus"], theory["minus"] = side_by_side(bells, SIZES[size][:-1], TIMES, -1.0), constants(bells, -1.0, early, even)
    data["theory"] = xarray.Dataset({name: ("time", values) for name, values in theory.items()}, coords={"time": early})
    # the middle of the uniform law, where tokens are torn apart, needs cells of all sizes down to 1e-14; one half, by symmetry
    half, fine = np.append(0.5, 0.5 + np.geomspace(1e-14, 0.5, 160)), np.linspace(0, TIMES[-1], 25)
    torn = np.sqrt(2) * constants(laws()["uniform"], 1.0, fine, half)
    data["torn"] = xarray.Dataset({"constant": ("time", torn)}, coords={"time": fine})
    progress(0.5, "late times")
    data["late"] = side_by_side(bells, LATE_SIZES[size], np.array([0.0, LATE]))
    data["draws"] = drawn(size, progress.part(0.7, 1.0))
    return data


def steps(runs: Any, power: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """(n (k,), W_p between the tokens of n and of 2n in x (k, T)) for all n of which both were run."""
    x, size = runs["x"].values, runs["size"].values
    sizes = np.array([n for n in np.unique(size) if (size == 2 * n).any()])
    return sizes, np.array([[wasserstein(row[size == n], row[size == 2 * n], power) for row in x] for n in sizes])


def expected_square(n: int) -> float:
    """The mean of W_2² between n and 2n independent tokens, uniform on [-1, 1]; exact.

    On [0, 1] both quantile functions are 1/(6n) and 1/(12n) from u in the mean of squares; they are independent, and their own
    means are the steps i/(n + 1) and k/(2n + 1), whose product with u taken off is integrated over the 2n cells.
    """
    k = np.arange(1, 2 * n + 1)
    low, high = (k - 1) / (2 * n), k / (2 * n)
    a, b = (k + 1) // 2 / (n + 1), k / (2 * n + 1)
    product = np.sum(a * b * (high - low) - (a + b) * (high**2 - low**2) / 2 + (high**3 - low**3) / 3)
    return float(4 * (1 / (6 * n) + 1 / (12 * n) - 2 * product))


def crossings(late: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n, W_2 at the late time over its distance D of the two camps, tokens of 2n on the other side than theirs of n)."""
    sizes, far = steps(late)
    x, size = late["x"].values[-1], late["size"].values
    left = {n: int((x[size == n] < 0).sum()) for n in np.unique(size)}
    camps = np.array([np.diff([x[size == 2 * n].min(), x[size == 2 * n].max()])[0] for n in sizes])
    return sizes, far[:, -1] / camps, np.array([abs(2 * left[n] - left[2 * n]) for n in sizes])


def claims(data: Data) -> list[Claim]:
    """Orders and constants, before and after the tokens have split, and for independent draws."""
    n, exact = steps(data["uniform"])
    found = {name: steps(data[name]) for name in (*laws(), "minus")}
    orders = [order(sizes[sizes >= 64], far[sizes >= 64, k])[0] for sizes, far in found.values() for k in range(1, JUDGED)]
    ratios = np.concatenate([sizes[-1] * far[-1, :JUDGED] / data["theory"][name].values for name, (sizes, far) in found.items()])
    density = {name: law.density(middle_levels(4000) * 2 - 1) for name, law in laws().items()}
    first = [data["theory"][name].values[0] / (np.sqrt(2 * np.mean(1 / rho)) / 4) for name, rho in density.items()]
    growth = min(float((far[-1, 1:JUDGED] / far[-1, :JUDGED - 1]).min()) for name, (_, far) in found.items() if name != "minus")
    shrinks = float((found["minus"][1][-1, 1:] / found["minus"][1][-1, :-1]).max())
    sizes, part, crossed = crossings(data["late"])
    cloud = data["uniform"]["x"].values[-1]
    torn = float(data["torn"]["constant"].values[-1] / (data["uniform"]["size"].values.max() * (cloud.max() - cloud.min())))
    squares = data["draws"]["square"].values
    draws = squares.shape[1]
    mean = np.mean([row[:, 0] / expected_square(int(m)) for row, m in zip(squares, data["draws"]["size"].values, strict=True)])
    # the limit of W_2² is a multiple of the square integral of a Brownian bridge: mean 1/6, variance 1/45
    noise = float(np.sqrt(36 / 45 / draws / len(squares)))
    logs = np.log(data["draws"]["size"].values)
    order_noise = noise * float(np.sqrt(len(squares) / np.sum((logs - logs.mean()) ** 2))) / 2
    random_order = order(data["draws"]["size"].values, np.sqrt(squares.mean(axis=1)[:, 1]))[0]
    return [
        Claim(text="At t = 0, uniform law: W_2(n, 2n) is 1/(2n) exactly; the largest |2n W_2 - 1|.",
              measured=float(np.abs(2 * n * exact[:, 0] - 1).max()), published="no rate given", low=0, high=1e-12,
              because="every token is 1/(2n) from its two"),
        Claim(text="From quantiles the order is 1: the fitted order furthest from 1, until t = 2 (three laws, and V = -1).",
              measured=float(max(orders, key=lambda p: abs(p - 1))), published="no rate given", low=0.95, high=1.05,
              because="W_2 = c(t)/n + O(1/n²) by the midpoint rule, for n of 64 and more"),
        Claim(text="With the constant of theory: n W_2 / c(t) at the largest n, furthest from 1.",
              measured=float(ratios[np.argmax(np.abs(ratios - 1))]), published="no rate given", low=0.98, high=1.02,
              because="c = (1/4) |d_u x| in L², from the linearised mean-field flow by SciPy's DOP853"),
        Claim(text="And c(0) is (1/4) (∫ dx/density)^(1/2): the ratio furthest from 1.",
              measured=float(first[int(np.argmax(np.abs(np.array(first) - 1)))]), published="no rate given", low=0.995,
              high=1.005, because="d_u q = 1/density"),
        Claim(text="In x the distance never shrinks for V = 1 (until t = 2), never grows for V = -1: the smallest factor that "
              "way.", measured=min(growth, 1 / shrinks), published="no rate given", low=1, high=np.inf,
              because="c is made of gaps between tokens, which change at the rate V Var; for V = 1 they never shrink (section "
              "7)"),
        Claim(text="The constant of V = 1 explodes: at t = 3, uniform law, c / (n times the diameter of the cloud) for the "
              "largest n.", measured=torn, published="C = C(R, T)", low=1, high=np.inf,
              because="W_2 is at most the diameter: where this is above 1, c/n has not begun at this n",
              differs="1/n holds at every fixed t, but from an n on that grows like exp(k e^(2t))."),
        Claim(text=f"Two bells, t = {LATE:g}: where one token of 2n is in the other camp, √(2n) W_2 / D; the value furthest "
              "from 1.", measured=float(_furthest(np.sqrt(2 * sizes) * part, crossed == 1)), published="no rate given", low=0.98,
              high=1.02, because="a mass of 1/(2n) is moved from camp to camp, over the distance D, so the order that one sees "
              "is 1/2; all else is e^(-t) smaller"),
        Claim(text="Independent draws, uniform law, t = 0: mean W_2² over its exact mean.", measured=float(mean),
              published="no rate given", low=1 - 4 * noise, high=1 + 4 * noise,
              because="order statistics; 4 standard errors, of ∫ B²"),
        Claim(text=f"And their order is 1/2, also at t = {RANDOM_TIMES[-1]:g}: fitted to the root mean square of W_2.",
              measured=random_order, published="no rate given", low=0.5 - 4 * order_noise - 0.03,
              high=0.5 + 4 * order_noise + 0.03, because="the classical rate in d = 1; 4 standard errors, and 0.03 for terms "
              "of higher order at n = 16"),
    ]


def _furthest(values: np.ndarray, chosen: np.ndarray) -> float:
    """The chosen value furthest from 1; NaN where none is chosen."""
    return float(values[chosen][np.argmax(np.abs(values[chosen] - 1))]) if chosen.any() else np.nan


def figures(data: Data) -> dict[str, Any]:
    """Distances against n, constants against t, quantiles against draws, and what is left of the order at late times."""
    from attnlab.render.style import INK, MARKERS, PALETTE, dress_flat, house_style, new_figure, title

    with house_style():
        figure = new_figure(9.6, 7.2)
        (first, second), (third, fourth) = figure.subplots(2, 2)
        n, far = steps(data["two_bells"])
        for number, k in enumerate((0, 2, 4)):
            z = far[:, k] * np.exp(-TIMES[k])
            p, spread = order(n[n >= 64], z[n >= 64])
            first.loglog(n, z, MARKERS[number], color=PALETTE[number], markersize=5.5,
                         label=f"t = {TIMES[k]:g}: order {p:.3f} ± {spread:.1g}")
            first.loglog(n, data["theory"]["two_bells"].values[k] * np.exp(-TIMES[k]) / n, color=PALETTE[number], linewidth=1.0)
        first.set(title="Start at quantiles: order 1", ylabel="W₂(n, 2n)", ylim=(z[-1] / 12, None))
        _draw_constants(second, data)
        _draw_draws(third, data)
        sizes, share, crossed = crossings(data["late"])
        for number, (chosen, word) in enumerate(((crossed > 0, "one token changes camp"), (crossed == 0, "none does"))):
            fourth.loglog(sizes[chosen], share[chosen], MARKERS[number], color=PALETTE[1 - number], markersize=5.5, label=word)
        fourth.loglog(sizes, 1 / np.sqrt(2 * sizes), color=INK, linewidth=1.1, linestyle=(0, (5, 2)), label="1/√(2n)")
        fourth.set(title=f"After the split, t = {LATE:g}: order 1/2 at worst", ylabel="W₂(n, 2n) / D",
                   ylim=(share.min() / 12, None))
        for axes, shown in ((first, n[::2]), (third, data["draws"]["size"].values), (fourth, sizes[::4])):
            axes.minorticks_off()
            axes.set_xticks(shown, [str(one) for one in shown])
            axes.set_xlabel("n")
            axes.legend(frameon=False, fontsize=8, loc="lower left", borderaxespad=0.1)
        for axes in (first, second, third, fourth):
            dress_flat(axes)
        title(figure, "d = 1, Q = K = V = 1: how fast n tokens approach the mean-field limit",
              "W₂ between the runs of n and of 2n tokens, in z = e⁻ᵗx, that is W₂ in x over eᵗ. Lines are theory: the constant "
              "is a quarter of the L² norm of the derivative of the quantile function. Top left and bottom right: two bells, D "
              "the distance of the camps; bottom left: uniform law, bars from 10% to 90% of the draws.")
        return {"mean_field_convergence": figure}


def _draw_constants(axes: Any, data: Data) -> None:
    """n W_2 over time, and what theory says, with the explosion of the uniform law."""
    from attnlab.render.style import HULL, MARKERS, PALETTE

    for number, (name, law) in enumerate(laws().items()):
        n, far = steps(data[name])
        line = data["torn"] if name == "uniform" else data["theory"].rename({name: "constant"})
        t = line["time"].values
        axes.semilogy(t, line["constant"].values * np.exp(-t), color=PALETTE[number], linewidth=1.1)
        chosen = slice(None) if name == "uniform" else slice(JUDGED)
        axes.semilogy(TIMES[chosen], (n[-1] * far[-1] * np.exp(-TIMES))[chosen], MARKERS[number], color=PALETTE[number],
                      markersize=5.5, label=f"{law.label}, n = {n[-1]}")
        if name == "uniform":
            axes.semilogy(TIMES, n[2] * far[2] * np.exp(-TIMES), MARKERS[number], color=PALETTE[number], markersize=5.5,
                          markerfacecolor="white", label=f"{law.label}, n = {n[2]}")
    axes.text(2.42, 4.5, "c(t), uniform law", fontsize=8.5, color=PALETTE[0], ha="right")
    axes.axvspan(2.0, TIMES[-1], color=HULL, alpha=0.1, linewidth=0)
    axes.set(title="The constant: n W₂ (markers), c(t) (lines)", xlabel="t", ylim=(0.08, 30), xlim=(-0.06, 3.06))
    axes.legend(frameon=False, fontsize=8, loc="upper left", borderaxespad=0.1)


def _draw_draws(axes: Any, data: Data) -> None:
    """Independent draws beside quantiles, with the exact values at t = 0."""
    from attnlab.render.style import MARKERS, PALETTE

    draws, (n, far) = data["draws"], steps(data["uniform"])
    m, roots, kept = draws["size"].values, np.sqrt(draws["square"].values), n <= draws["size"].values[-1]
    for number, t in enumerate(RANDOM_TIMES):
        low, middle, high = np.quantile(roots[:, :, number], [0.1, 0.5, 0.9], axis=1)
        axes.errorbar(m * (0.96, 1.04)[number], middle, [middle - low, high - middle], fmt=MARKERS[number], color=PALETTE[number],
                      markersize=5, linewidth=1.0, label=f"independent draws, t = {t:g}")
    axes.loglog(m, [np.sqrt(expected_square(int(one))) for one in m], color=PALETTE[0], linewidth=1.2,
                label="exact root mean square, t = 0")
    axes.loglog(n[kept], far[kept, 0], "^", color=PALETTE[2], markersize=5.5, label="quantiles, t = 0")
    axes.loglog(n[kept], 0.5 / n[kept], color=PALETTE[2], linewidth=1.2, label="1/(2n), exact")
    axes.set(title="Independent draws: order 1/2", ylabel="W₂(n, 2n)", ylim=(0.5 / m[-1] / 60, None))


def _shifted(runs: Any) -> None:
    """Tokens at the left ends of their cells, and not in the middle: a slip of half an index."""
    runs["x"] = runs["x"] - 1.0 / runs["size"]


def _rescaled(runs: Any) -> None:
    """z = e^{-t} x taken for x."""
    runs["x"] = runs["x"] * np.exp(-runs["time"])


def _reversed(runs: Any) -> None:
    """The run with the wrong sign of V: as if time went back."""
    runs["x"] = (("time", "token"), runs["x"].values[::-1].copy())


def _noisy(runs: Any) -> None:
    """An integrator with errors of 1e-3."""
    noise = np.random.default_rng(0).normal(size=runs["x"].shape)
    runs["x"] = runs["x"] + 1e-3 * noise


def _same_camps(late: Any) -> None:
    """Tokens that have not arrived: half way between where they began and where they go."""
    late["x"] = (late["x"] * np.exp(-LATE) + late["x"].isel(time=0, drop=True)).transpose("time", "token")


def _dependent(draws: Any) -> None:
    """Draws that are stratified without saying so: distances like 1/n."""
    draws["square"] = draws["square"] / draws["size"]


def _unresolved(torn: Any) -> None:
    """A grid of even cells that does not see the middle."""
    torn["constant"] = np.minimum(torn["constant"], 0.7 * np.exp(torn["time"]))


def _other_density(theory: Any) -> None:
    theory["bell"] = theory["bell"] * 1.01


experiments.register("mean_field_convergence")(
    Experiment(
        name="mean_field_convergence",
        title="n tokens approach the mean-field limit like 1/n, until they split",
        cite="Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465, section 6 (mean-field form); the rates are ours",
        about="If n tokens start at the quantiles of a law, they stand for it with an error of 1/n, and the flow keeps this "
        "order: doubling n halves the Wasserstein distance W₂. Even the constant is known, from the linearised flow. Tokens "
        "drawn independently are worse, n^(−1/2), as they are at the start.\n\n"
        "But the constant depends on time. With V = 1 tokens split into two camps that run off to plus and minus infinity, and "
        "the few in the middle are torn apart faster and faster, like exp(k e^(2t)). Whoever looks at a fixed range of n sees "
        "the order fall to 1/2: a single token that changes camp, mass 1/n over a distance D, is W₂ = D n^(−1/2). The theorem "
        "is not violated: its constant C(R, T) is for a fixed time. With V = −1, where all tokens collapse to 0, the constant "
        "only falls.\n\n"
        "The paper proves stability in W₂ and gives no rates; distances are shown in z, that is in x over e^t. Draws "
        "have the seed 11.",
        compute=compute,
        claims=claims,
        figures=figures,
        spoils={
            "half an index off": changed("uniform", _shifted),
            "rescaled tokens taken for x": changed("two_bells", _rescaled),
            "V = -1 with the wrong sign": changed("minus", _reversed),
            "errors of the integrator": changed("uniform", _noisy),
            "tokens have not arrived": changed("late", _same_camps),
            "draws not independent": changed("draws", _dependent),
            "middle not resolved": changed("torn", _unresolved),
            "another density": changed("theory", _other_density),
        },
    )
)
