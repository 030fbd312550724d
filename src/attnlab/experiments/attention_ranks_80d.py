"""d = 80, V = B Bᵀ: attention with a leading eigenvalue of 100, coupled and, as in the published script, not coupled."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.common.studies import study
from attnlab.experiments.datasets import limit_in, run_in, verdicts_said
from attnlab.experiments.record import Claim, Data, Experiment
from attnlab.experiments.spoils import changed, contradicted
from attnlab.progress import Progress
from attnlab.types import Spec

SIZES = {"full": (40, 80, 11.0), "small": (16, 12, 80.0)}
"""n, d, T. The reduced system has a smaller λ₁, and a T for which λ₁ T is about 1100 all the same."""

STEPS = 110
"""Steps of the published script: T = 11 and dt = 0.1."""

LAST = 28.0
"""λ₁ t up to which double precision tells the tokens of a cluster apart (the rule of thumb says 28, it may last until 36)."""

SHOWN = (0.0, 2.0, 4.0, 6.0, 12.0)
"""λ₁ t of the heat maps, before the last one at T."""

REFERENCE = (2.0, 3.0, 4.0)
"""λ₁ t at which the run is compared with another integrator."""


def draw(size: str) -> tuple[np.ndarray, np.ndarray]:
    """V = B Bᵀ, the entries of B uniform on [-1, 1], and tokens with coordinates uniform on [-1, 1]; rng = 0."""
    n, d, _ = SIZES[size]
    generator = np.random.default_rng(0)
    B = generator.uniform(-1, 1, (d, d))
    return B @ B.T, generator.uniform(-1, 1, (n, d))


def specs(size: str) -> dict[str, Spec]:
    """The coupled run until λ₁ t = LAST; what comes later is in its certified limit."""
    V, x0 = draw(size)
    leading = np.linalg.eigvalsh(V)[-1]
    times = np.unique([0.0, *np.geomspace(0.5, LAST, 56), *SHOWN, *REFERENCE]) / leading
    return {"run": Spec(weights={"family": "given", "V": V.tolist()}, start={"law": "given", "x": x0.tolist()},
                        solve={"t_end": float(times[-1]), "times": times.tolist(), "rtol": 1e-9})}


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The coupled run, its limit, the attention matrices of both dynamics, and the published script step by step."""
    import xarray

    from attnlab.dynamics import attention
    from attnlab.dynamics.attention import attention_matrices

    V, x0 = draw(size)
    T = SIZES[size][2]
    data = study(specs(size)["run"], progress.part(0.0, 0.85), names=["three_hyperplanes"])
    run, limit = run_in(data), limit_in(data)
    growth, modes = np.linalg.eigh(V)
    late = np.geomspace(LAST * 1.2, growth[-1] * T, 16)
    both = np.concatenate([run.times * growth[-1], late])                                           # λ₁ t
    coupled = [attention(run, at=k)[0] for k in range(len(run.times))] + [final_attention(limit.leaders)] * len(late)
    alone = [attention_matrices(run.dynamics, ((x0 @ modes) * np.exp((growth - growth[-1]) * s / growth[-1])) @ modes.T, s)[0]
             for s in both]
    data["attention"] = xarray.Dataset(
        {"coupled": (("at", "row", "column"), np.stack(coupled)), "alone": (("at", "row", "column"), np.stack(alone)),
         "reach": ("at", both), "is_certificate": ("at", (both > LAST * 1.1).astype(np.int8)),
         "eigenvalues": ("mode", growth[::-1].copy()), "leading_coordinate": ("row", x0 @ modes[:, -1])},
        attrs={"T": T, "n": len(x0), "d": len(V)})
    progress(0.87, "the published script")
    data["script"] = published_script(V, x0, T / STEPS)
    progress(0.93, "another integrator")
    data["reference"] = reference(V, x0, np.array(REFERENCE) / growth[-1])
    return data


def final_attention(leaders: np.ndarray) -> np.ndarray:
    """P* from certified leaders; NaN where a row is not decided."""
    return np.where(leaders[:, None] >= 0, np.eye(len(leaders))[leaders], np.nan)


def plain_attention(x: np.ndarray) -> np.ndarray:
    """P as the published script computes it, 1 / Σ_k exp⟨x_i, x_k - x_j⟩, in plain double precision."""
    with np.errstate(over="ignore", invalid="ignore"):
        return 1 / np.exp(np.einsum("id,kjd->ikj", x, x[:, None] - x[None])).sum(axis=1)


def published_script(V: np.ndarray, x: np.ndarray, dt: float) -> Any:
    """What lowrank-attention.py does: dx/dt = V x without attention, by Runge-Kutta; the ranks it prints, -1: not a number."""
    from attnlab.experiments.datasets import table

    leading = np.linalg.eigh(V)[1][:, -1]
    ranks, sizes = [], []
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(STEPS):
            P = plain_attention(x)
            ranks.append(int(np.linalg.matrix_rank(P)) if np.isfinite(P).all() else -1)
            sizes.append(np.abs(x @ leading).max())
            k1 = dt * x @ V
            k2 = dt * (x + 0.5 * k1) @ V
            k3 = dt * (x + 0.5 * k2) @ V
            k4 = dt * (x + k3) @ V
            x = x + (k1 + 2 * k2 + 2 * k3 + k4) / 6
    return table({"rank": ranks, "size": sizes}, "step", dt=dt, largest_entry=float(np.abs(leading).max()))


def reference(V: np.ndarray, x0: np.ndarray, times: np.ndarray) -> Any:
    """Attention matrices of the coupled flow by SciPy's DOP853 on a plain right-hand side."""
    import xarray
    from scipy.integrate import solve_ivp
    from scipy.special import softmax

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        x = flat.reshape(x0.shape)
        return (softmax(x @ x.T, axis=1) @ x @ V).ravel()

    found = solve_ivp(velocity, (0.0, times[-1]), x0.ravel(), method="DOP853", t_eval=times, rtol=1e-10, atol=1e-10)
    states = found.y.T.reshape(-1, *x0.shape)
    return xarray.Dataset({"P": (("at", "row", "column"), softmax(states @ states.transpose(0, 2, 1), axis=2))})


def ranks_of(matrices: np.ndarray) -> np.ndarray:
    """Numerical ranks; 0 where a matrix is not decided."""
    return np.array([np.linalg.matrix_rank(P) if np.isfinite(P).all() else 0 for P in matrices])


def runge_kutta_factor(h: float) -> float:
    """By what one step of the classical method multiplies a mode with λ dt = h."""
    return 1 + h + h**2 / 2 + h**3 / 6 + h**4 / 24


def claims(data: Data) -> list[Claim]:
    """What is known of λ₁, of the ends of both dynamics, and of the published script."""
    shown, script, limit = data["attention"], data["script"], limit_in(data)
    growth, n, d, T = shown["eigenvalues"].values, *(shown.attrs[name] for name in ("n", "d", "T"))
    reach, coupled, alone = (shown[name].values for name in ("reach", "coupled", "alone"))
    centre = (np.sqrt(d - 1) + np.sqrt(d)) ** 2
    width = (np.sqrt(d - 1) + np.sqrt(d)) * (1 / np.sqrt(d - 1) + 1 / np.sqrt(d)) ** (1 / 3)
    in_run = shown["is_certificate"].values == 0
    last = np.flatnonzero(in_run)[-1]
    sides = np.sign(shown["leading_coordinate"].values)
    extremes = np.where(sides > 0, (s := shown["leading_coordinate"].values).argmax(), s.argmin())
    places = [int(np.abs(reach - at).argmin()) for at in REFERENCE]
    sizes, ranks = script["size"].values, script["rank"].values
    h = growth[0] * script.attrs["dt"]
    factor = runge_kutta_factor(h)
    stages = 6 * (factor - 1) * sizes[0] * script.attrs["largest_entry"]
    overflow = (np.log(np.finfo(float).max) - np.log(stages)) / np.log(factor)
    return [
        Claim(text="λ₁ T is beyond what exp can hold in double precision.", measured=float(growth[0] * T),
              published="T = 11, λ₁ not given", low=float(np.log(np.finfo(float).max)), high=np.inf,
              because="e^709.8 is the largest double", differs="A script with exp(tV), as the others of the paper have it, "
              "would overflow; attnlab carries the exponent apart."),
        Claim(text="λ₁ is that of a random matrix: 3 λ₁, centred and scaled as Johnstone does.",
              measured=float((3 * growth[0] - centre) / width), low=-5.0, high=4.0,
              because="entries of variance 1/3; the Tracy-Widom law has 99.9 % of its mass there"),
        Claim(text="At t = 0 the attention matrix has full rank: n less its numerical rank, the worse of both.",
              measured=float(n - min(ranks_of(coupled[:1])[0], ranks_of(alone[:1])[0])), low=0, high=0,
              because="exp⟨x, y⟩ is a strictly positive definite kernel; far apart in 80 dimensions, rounding does not hide it"),
        Claim(text="The theorem of the three hyperplanes is supported by the run and its certified limit.",
              measured=float(verdicts_said(data["verdicts"], "three_hyperplanes") == ["SUPPORTED"]),
              published="a theorem (section 4)", low=1, high=1, because="1 is SUPPORTED"),
        Claim(text="The certified end has one leader on either side of φ₁ = 0, or one in all: number of leaders.",
              measured=float(len(set(limit.leaders.tolist())) if limit.certified else np.nan), published="a few columns", low=1,
              high=2, because="of two that follow themselves on one side the one with the larger φ₁ takes over the other, at "
              "the rate e^{2 λ₁ t}"),
        Claim(text="It is decided within the reach of double precision: λ₁ t of the certificate.",
              measured=float(limit.t * growth[0]), published="T: λ₁ t = 1100", low=0, high=LAST,
              because="differences inside a cluster are right up to λ₁ t = 28",
              differs="98 % of the published time shows a matrix that no longer changes."),
        Claim(text="At the end of the run attention is the certified Boolean matrix: largest |P - P*|.",
              measured=float(np.abs(coupled[last] - final_attention(limit.leaders)).max()), low=0, high=float(n * np.exp(-50.0)),
              because="the certificate has all score gaps above 50 from then on"),
        Claim(text="Without coupling every row ends at the token with the largest or smallest φ₁ of the start: rows that do "
              "not.", measured=float(np.sum(alone[-1].argmax(axis=1) != extremes)), low=0, high=0,
              because="x = e^{tV} x(0); the other modes are behind by e^{-(λ₁-λ₂)T}"),
        Claim(text="The coupled matrices up to λ₁ t = 4 agree with SciPy's DOP853: largest difference of a weight.",
              measured=float(np.abs(coupled[places] - data["reference"]["P"].values).max()), low=0, high=1e-6,
              because="tolerances 1e-9 and 1e-10 on x, scores of the order of 1000"),
        Claim(text="The published script does not solve its own equation: growth of φ₁ in a step of 0.1, over e^{λ₁ dt}.",
              measured=float(sizes[1] / sizes[0] / np.exp(h)), published="Runge-Kutta, dt = 0.1", low=0, high=0.5,
              because="1 + h + h²/2 + h³/6 + h⁴/24 is less than half of e^h for h = λ₁ dt above 5, and here it is about 10",
              differs="λ₁ dt is 10, far outside the range where the method is accurate; and the tokens do not attend to each "
              "other."),
        Claim(text="Its matrices end in values that are not numbers: first step with one, less that at which x leaves double "
              "precision.", measured=float((np.flatnonzero(ranks < 0)[0] if (ranks < 0).any() else STEPS) - overflow), low=1,
              high=2, because="log max double over the logarithm of the growth factor (the sum of four stages is six times the "
              "step), rounded up, and the matrix of the next step is made of it"),
    ]


def figures(data: Data) -> dict[str, Any]:
    """Both dynamics side by side as heat maps, and ranks over all of the time."""
    from attnlab.render.style import house_style

    with house_style():
        return {"attention_ranks_80d": _matrices(data), "ranks_over_time": _ranks(data)}


def _matrices(data: Data) -> Any:
    from attnlab.render.heat_maps import draw_matrices, draw_weight_bar
    from attnlab.render.style import new_figure, title

    shown = data["attention"]
    n, d, reach, leading = shown.attrs["n"], shown.attrs["d"], shown["reach"].values, shown["eigenvalues"].values[0]
    order = np.argsort(shown["leading_coordinate"].values)
    places = [int(np.abs(reach - at).argmin()) for at in SHOWN] + [len(reach) - 1]
    figure = new_figure(13.2, 6.0)
    grid = figure.subplots(2, len(places))
    image = None
    for row, (name, words) in enumerate((("coupled", "coupled"), ("alone", "not coupled"))):
        matrices = [shown[name].values[k][np.ix_(order, order)] for k in places]
        heads = [f"λ₁t = {reach[k]:.4g}" if row == 0 else "" for k in places]
        image = draw_matrices(figure, grid[row], matrices, [
            f"{head}{chr(10) if head else ''}rank "
            f"{rank}" for head, rank in zip(heads, ranks_of(np.array(matrices)), strict=True)])
        grid[row, 0].set_ylabel(f"{words}\ntoken i")
    for axes, k in zip(grid[-1], places, strict=True):
        axes.set_xlabel(f"token j\nt = {reach[k] / leading:.3g}")
    draw_weight_bar(figure, image, grid, shrink=0.6)
    title(figure, f"Attention in {d} dimensions · n = {n}, V = B Bᵀ, Q = K = I, λ₁ = {leading:.4g}",
          "Tokens sorted by their first coordinate φ₁ along the leading eigenvector. Above: the paper's equation; the last "
          "matrix is the certified limit. Below: tokens that do not attend to each other, dx/dt = Vx, as in the published "
          "script, but solved exactly.")
    return figure


def _ranks(data: Data) -> Any:
    from attnlab.render.style import HULL, INK, NOTE, PALETTE, dress_flat, new_figure, title

    shown, script, limit = data["attention"], data["script"], limit_in(data)
    reach, leading, n = shown["reach"].values[1:], shown["eigenvalues"].values[0], shown.attrs["n"]
    coupled, alone = (shown[name].values[1:] for name in ("coupled", "alone"))
    certified = shown["is_certificate"].values[1:] == 1
    figure = new_figure(10.6, 5.4)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1])
    ranks = ranks_of(coupled)
    upper.semilogx(reach[~certified], ranks[~certified], color=PALETTE[0], linewidth=2.2, label="coupled: the flow")
    upper.semilogx(reach[certified], ranks[certified], color=PALETTE[0], linewidth=2.2, linestyle=(0, (1, 1)),
                   label="coupled: its certificate")
    upper.semilogx(reach, ranks_of(alone), color=PALETTE[1], linewidth=1.6, linestyle=(0, (5, 2)), label="not coupled, solved "
    "exactly")
    at, printed = np.arange(STEPS)[1:] * script.attrs["dt"] * leading, script["rank"].values[1:]
    fine = printed >= 0
    upper.semilogx(at[fine], printed[fine], color=PALETTE[2], marker="^", markersize=4, linestyle="none",
                   label="published script, a mark a step")
    if (~fine).any():
        upper.semilogx(at[~fine], np.full((~fine).sum(), 0), color=INK, marker="x", markersize=5, linestyle="none",
                       label="the same: not a number")
    marks = ((limit.t * leading, "certified"), (LAST, "double ends"), (np.log(np.finfo(float).max), "exp(λ₁t)\noverflows"))
    for k, (value, words) in enumerate(marks):
        upper.axvline(value, color=HULL, linewidth=0.9, linestyle=(0, (4, 2)), zorder=0)
        upper.text(value * (0.96 if k == 0 else 1.05 if k == 1 else 0.95), n * 1.05, words, fontsize=8, color=NOTE,
                   ha="left" if k == 1 else "right", va="top")
    upper.set(ylabel="rank of P", ylim=(-0.04 * n, 1.08 * n))
    upper.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(0.0, 0.45))
    lower.semilogx(reach, (coupled.argmax(axis=2) != alone.argmax(axis=2)).mean(axis=1), color=PALETTE[3], linewidth=1.8)
    lower.set(xlabel="λ₁t", ylabel="rows with\nanother leader", ylim=(0, None), xlim=(reach[0], reach[-1] * 1.02))
    for axes in (upper, lower):
        dress_flat(axes)
    above = upper.secondary_xaxis("top", functions=(lambda s: s / leading, lambda t: t * leading))
    above.set_xlabel("t")
    title(figure, f"All happens before λ₁t = {limit.t * leading:.0f}, and the published steps begin at {at[0]:.0f} "
          f"· d = {shown.attrs['d']}",
          "Below: share of tokens that attend most to different tokens with and without coupling. The script solves dx/dt = Vx "
          "with a step in which the leading mode should grow by exp(λ₁dt), and lets it grow by a fiftieth of that.")
    return figure


def _weaker(shown: Any) -> None:
    """Value matrices of a smaller size: as if B had been divided by two."""
    shown["eigenvalues"] = shown["eigenvalues"] / 4


def _blurred(shown: Any) -> None:
    """Attention mixed with that of the second token, which gets the larger part."""
    for name in ("coupled", "alone"):
        P = 0.4 * shown[name].values + 0.6 * shown[name].values[:, [1], :]
        P[0, 0] = P[0, 1]
        shown[name] = (shown[name].dims, P)


def _undecided_long(limit: Any) -> None:
    """Every token leads itself, and that is decided late."""
    limit["leaders"] = ("token", np.arange(limit.sizes["token"]))
    limit["t"] = 40.0


def _smooth(script: Any) -> None:
    """The script as it should be: growth e^{λ₁ dt / 2} a step and no overflow."""
    script["size"] = script["size"].values[0] * np.exp(0.5 * np.arange(script.sizes["step"])) * (script["size"] * 0 + 1)
    script["rank"] = ("step", np.maximum(script["rank"].values, 2))


experiments.register("attention_ranks_80d")(
    Experiment(
        name="attention_ranks_80d",
        title="d = 80: attention matrices over time, with and without coupling",
        cite="Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465, appendix on low-rank attention, and its script",
        about="Forty tokens in R^80 with V = B Bᵀ, B random: the leading eigenvalue is about 100, so by T = 11 tokens have "
        "grown by e^1100, which no double holds. attnlab keeps the exponent apart. Attention is the identity at first: in 80 "
        "dimensions every token is its own best match, and as long as that is so coupling changes nothing, the flow is dx/dt = "
        "Vx. It loses rank between λ₁t = 2 and 20, and is certified to be Boolean for ever after that, with a leader on either "
        "side of the plane φ₁ = 0.\n\nThe published script moves every token by dx/dt = Vx: no token attends to another. For "
        "the reason just given that is not far off here, though up to a fifth of the tokens follow another leader in between, "
        "and it is wrong where tokens overlap from the start, as for d = 1. Its step of 0.1 means λ₁ dt = 10: the Runge-Kutta "
        "method then grows the leading mode by 2 % of what it should, all of the interesting time lies within the first two "
        "steps, and the last steps overflow. rng = 0.",
        compute=compute,
        claims=claims,
        figures=figures,
        specs=specs,
        spoils={
            "theorem contradicted": contradicted,
            "smaller eigenvalues": changed("attention", _weaker),
            "attention blurred": changed("attention", _blurred),
            "every token leads itself": changed("limit", _undecided_long),
            "script that grows as it should": changed("script", _smooth),
        },
    )
)
