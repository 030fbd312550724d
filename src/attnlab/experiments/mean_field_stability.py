"""Two measures stay together: W_2(mu_t, nu_t) <= e^{Ct} W_2(mu_0, nu_0), with a constant that is written down.

The constant. All tokens of both measures are in the ball of radius R. X[mu](x) = V m(x), m(x) the average of y against the
weights w(y) = e^{<a, y>} / int e^{<a, y>} dmu, a = M^T x, M = Q^T K, so |a| <= |M| R for tokens.

 1. In x: the Jacobian of X[mu] is V Cov M^T, Cov the covariance under w, at most R²:            |V| |M| R².
 2. In mu: join pairs (y, y') of an optimal coupling pi by straight lines y_s and let delta = y' - y. Then
        dm/ds = E_w[ delta + (y_s - m) <a, delta> ],  |dm/ds| <= int w |delta| (1 + |a| |y_s - m|) dpi
    and by Cauchy and Schwarz, with w <= e^{2|a|R} and E_w |y_s - m|² <= R²,
        |X[mu](x) - X[nu](x)| <= |V| (1 + |M| R²) e^{|M| R²} W_2(mu, nu).
 3. Tokens that are coupled optimally at time 0 and stay coupled have distances whose root mean square grows at most at the rate
        L(R) = |V| ( |M| R² + (1 + |M| R²) e^{|M| R²} ),
    and W_2 is at most that. As |x'| <= |V| R, R(s) <= R e^{|V| s}: log(W_2(t) / W_2(0)) <= int_0^t L(R e^{|V| s}) ds. The same
    from t back to 0: the logarithm is bounded from below as well.
In the largest distance instead of W_2 no factor e^{|M| R²} is needed: the rate is |V| (1 + 2 |M| R²).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.datasets import table
from attnlab.experiments.mean_field import wasserstein
from attnlab.experiments.record import Claim, Data, Experiment
from attnlab.experiments.spoils import changed
from attnlab.progress import Progress

PAIRS = {"full": 200, "small": 20}
CROWDS = {"full": (0.75, 1.0, 1.25, 1.5, 1.75, 2.0), "small": (0.75, 1.0, 1.25, 1.5, 1.75)}
TIMES = np.linspace(0.0, 1.0, 11)
TOKENS, RADII, NUDGE = 20, (0.4, 0.7, 1.0), 1e-4
KINDS = ("independent", "near", "worst", "middle")
WEIGHTS = ("identity", "minus", "random")


def drawn_weights(name: str, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(V, M), both of norm 1."""
    if name == "random":
        V, M = (A / np.linalg.norm(A, 2) for A in rng.normal(size=(2, d, d)))
        return V, M
    return (1.0 if name == "identity" else -1.0) * np.eye(d), np.eye(d)


def ball(d: int, radius: float, rng: np.random.Generator) -> np.ndarray:
    """Tokens uniform in a ball, the outermost on its edge."""
    x = rng.normal(size=(TOKENS, d))
    x *= (rng.uniform(size=(TOKENS, 1)) ** (1 / d)) / np.linalg.norm(x, axis=1, keepdims=True)
    return radius * x / np.linalg.norm(x, axis=1).max()


def solve(V: np.ndarray, M: np.ndarray, starts: np.ndarray, times: np.ndarray = TIMES, rtol: float = 1e-11) -> np.ndarray:
    """The tokens x (member, T, n, d) of several starts (member, n, d)."""
    from attnlab.engine import simulate
    from attnlab.types import Weights

    weights = Weights(V=V, Q=np.eye(len(M)), K=M)
    return np.array(simulate(weights, starts, times=times, t_end=float(times[-1]), rtol=rtol, frame="x").x)


def tangent(V: np.ndarray, M: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The derivative of the tokens at the last time by those at 0, (nd, nd), by central differences with attnlab."""
    step = 1e-5
    nudges = step * np.eye(x.size).reshape(-1, *x.shape)
    ends = solve(V, M, np.concatenate([x + nudges, x - nudges]), TIMES[[0, -1]])[:, -1].reshape(2, x.size, x.size)
    return (ends[0] - ends[1]).T / (2 * step)


def tangent_of_formula(V: np.ndarray, M: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The same from the closed form of the Jacobian, in plain NumPy, by SciPy's DOP853: nothing of attnlab is in it."""
    from scipy.integrate import solve_ivp

    n, d = x.shape

    def rate(_: float, state: np.ndarray) -> np.ndarray:
        at, D = state[:n * d].reshape(n, d), state[n * d:].reshape(n * d, n * d)
        scores = at @ M @ at.T
        P = np.exp(scores - scores.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        mean = P @ at
        apart = at[None] - mean[:, None]                                                            # (i, m, d)
        J = np.einsum("im,ab->iamb", P, V) + np.einsum("im,ac,imc,ib->iamb", P, V, apart, at @ M)
        covariance = np.einsum("im,imc,ime->ice", P, apart, apart)
        J[np.arange(n), :, np.arange(n), :] += V @ covariance @ M.T
        return np.concatenate([(mean @ V.T).ravel(), (J.reshape(n * d, n * d) @ D).ravel()])

    start = np.concatenate([x.ravel(), np.eye(n * d).ravel()])
    return solve_ivp(rate, (0, TIMES[-1]), start, method="DOP853", rtol=1e-9, atol=1e-11).y[n * d:, -1].reshape(n * d, n * d)


def drawn_pair(kind: str, V: np.ndarray, M: np.ndarray, radius: float, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """(x, y, the largest singular value of the tangent map at x)."""
    d = len(V)
    x = ball(d, radius, rng)
    if kind == "independent":
        return x, ball(d, radius, rng), np.array(np.nan)
    if kind == "middle":
        # two camps and a token that hesitates between them
        x = 0.02 * ball(d, 1.0, rng)
        x[:, 0] += 0.98 * radius * np.where(np.arange(TOKENS) % 2, 1, -1)
        x[0] = 0.0
    _, sizes, directions = np.linalg.svd(tangent(V, M, x))
    nudge = directions[0].reshape(x.shape) if kind == "worst" else rng.normal(size=x.shape)
    if kind == "middle":
        nudge = np.eye(TOKENS, d) * (np.arange(TOKENS) == 0)[:, None]
    return x, x + NUDGE * np.sqrt(TOKENS) * nudge / np.linalg.norm(nudge), sizes[0]


def crowd_rate(radius: float) -> tuple[int, float, np.ndarray]:
    """(N, rate, (change of the leader, change of the crowd)): the fastest growth of W_2 at a leader at -R and N tokens at R.

    d = 1, V = 1, M = -1: tokens look for their opposite. N = e^{2R²} makes crowd and leader equally heavy in the crowd's eyes.
    In the norm of W_2, |(u, v)|² = (u² + N v²) / (N + 1), the fastest rate is the largest eigenvalue of a symmetric part.
    """
    N = round(float(np.exp(2 * radius**2)))
    x, mass = np.array([-radius, radius]), np.array([1.0, N])
    P = mass * np.exp(-np.outer(x, x))
    P /= P.sum(axis=1, keepdims=True)
    mean = P @ x
    J = P * (1 - (x[None] - mean[:, None]) * x[:, None]) - np.diag(P @ x**2 - mean**2)
    root = np.sqrt(mass)
    inside = J * root[:, None] / root[None]
    values, vectors = np.linalg.eigh((inside + inside.T) / 2)
    return N, float(values[-1]), vectors[:, -1] / root


def measured_crowd_rate(radius: float) -> tuple[int, float, float]:
    """(N, the rate by the closed form, the rate at which W_2 of two runs of N + 1 tokens begins to grow)."""
    N, rate, change = crowd_rate(radius)
    x = np.append(-radius, np.full(N, radius))[:, None]
    y = x + 1e-5 * np.append(change[0], np.full(N, change[1]))[:, None]
    times = np.array([0.0, 2e-3 / rate])
    runs = solve(np.eye(1), -np.eye(1), np.stack([x, y]), times, 1e-13)
    far = [wasserstein(*runs[:, k]) for k in (0, 1)]
    return N, rate, float(np.log(far[1] / far[0]) / times[1])


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The pairs, two tangent maps computed in two ways, and the crowds with their leaders."""
    import xarray

    rng = np.random.default_rng(7)
    shape = (PAIRS[size], 2, len(TIMES), TOKENS, 3)
    tokens, largest, columns = np.zeros(shape), np.full(PAIRS[size], np.nan), []
    checks: list[tuple[float, float]] = []
    for number in range(PAIRS[size]):
        progress(0.8 * number / PAIRS[size], "pairs of measures")
        d, kind = 1 + number % 3, KINDS[number % len(KINDS)]
        name = "identity" if kind == "middle" else WEIGHTS[int(rng.integers(3))]
        radius = RADII[(number // 4) % 3]
        V, M = drawn_weights(name, d, rng)
        x, y, sigma = drawn_pair(kind, V, M, radius, rng)
        y = y[_coupling(x, y)]
        tokens[number, ..., :d], largest[number] = solve(V, M, np.stack([x, y])), sigma
        columns.append((kind, name, d))
        if kind == "worst" and len(checks) < 3:
            checks.append((float(sigma), float(np.linalg.norm(tangent_of_formula(V, M, x), 2))))
    progress(0.85, "crowds and leaders")
    crowds = np.array([(radius, *measured_crowd_rate(radius)) for radius in CROWDS[size]])
    kinds, names, dimensions = zip(*columns, strict=True)
    pairs = xarray.Dataset(
        {"tokens": (("pair", "member", "time", "token", "coordinate"), tokens), "singular_value": ("pair", largest),
         "kind": ("pair", np.array(kinds)), "weights": ("pair", np.array(names)), "d": ("pair", np.array(dimensions))},
        coords={"time": TIMES})
    progress(1.0)
    return {"pairs": pairs, "tangent": table(dict(zip(("differences", "formula"), np.array(checks).T, strict=True))),
            "crowds": table(dict(zip(("radius", "crowd", "closed_form", "measured"), crowds.T, strict=True)))}


def _coupling(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The token of y that each token of x is coupled with, optimally for W_2."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    return np.asarray(linear_sum_assignment(cdist(x, y, "sqeuclidean"))[1])


def distances(tokens: np.ndarray) -> np.ndarray:
    """W_2 of each pair at each time, (pair, T), from tokens (pair, 2, T, n, d)."""
    return np.array([[np.sqrt(np.mean(np.sum((x - y[_coupling(x, y)]) ** 2, axis=1))) for x, y in zip(*pair, strict=True)]
                     for pair in tokens])


def rate(R: np.ndarray) -> np.ndarray:
    """L(R) of the proof above, with |V| = |M| = 1."""
    return np.asarray(R**2 + (1 + R**2) * np.exp(R**2))


def envelopes(data: Data) -> dict[str, np.ndarray]:
    """Bounds of log(W_2(t) / W_2(0)), and of the largest distance, (pair, T).

    "before": from the first radius alone. "along": from the radii on the way, each good for the time up to the next saved one.
    """
    times, tokens = data["pairs"]["time"].values, data["pairs"]["tokens"].values
    R = np.linalg.norm(tokens, axis=-1).max(axis=(1, 3))                                            # (pair, T)
    fine = np.linspace(0, times[-1], 2001)
    grown = rate(R[:, :1] * np.exp(fine))
    summed = np.concatenate([np.zeros((len(R), 1)), np.cumsum((grown[:, 1:] + grown[:, :-1]) / 2 * fine[1], axis=1)], axis=1)
    reached = R[:, :-1] * np.exp(np.diff(times))
    steps = {"along": rate(reached) * np.diff(times), "largest": (1 + 2 * reached**2) * np.diff(times)}
    return {"before": summed[:, np.rint(times / fine[1]).astype(int)],
            **{name: np.concatenate([np.zeros((len(R), 1)), np.cumsum(step, axis=1)], axis=1) for name, step in steps.items()}}


def claims(data: Data) -> list[Claim]:
    """The envelopes, the linearised flow, and how sharp the constant is."""
    pairs, crowds, check = data["pairs"], data["crowds"], data["tangent"]
    far, bounds = distances(pairs["tokens"].values), envelopes(data)
    grown = np.log(far / far[:, :1])
    x, y = np.moveaxis(pairs["tokens"].values, 1, 0)
    largest = np.linalg.norm(x - y, axis=-1).max(axis=-1)
    top, kind = grown[:, -1] - np.log(pairs["singular_value"].values), pairs["kind"].values
    worst = np.exp(top[kind == "worst"])
    R, measured = crowds["radius"].values, crowds["measured"].values
    agreement = measured / crowds["closed_form"].values
    two_ways = check["differences"].values / check["formula"].values
    theorem = "C = C(R, T), no number given (section 6)"
    return [
        Claim(text=f"W_2 of {len(far)} pairs stays in the envelope that R, |V|, |M| give beforehand: the largest |log ratio| / "
              "bound.", measured=float((np.abs(grown) / np.maximum(bounds["before"], 1e-300))[:, 1:].max()), published=theorem,
              low=0, high=1, because="proved: the rate is |V| (|M| R² + (1 + |M| R²) e^{|M| R²}), R at most R(0) e^{|V| t}"),
        Claim(text="And in the narrower one from the radii on the way.",
              measured=float((np.abs(grown) / np.maximum(bounds["along"], 1e-300))[:, 1:].max()), published=theorem, low=0,
              high=1, because="the same proof"),
        Claim(text="The largest distance of coupled tokens stays in its envelope, of rate |V| (1 + 2|M| R²): log ratio / bound.",
              measured=float((np.log(largest / largest[:, :1]) / np.maximum(bounds["largest"], 1e-300))[:, 1:].max()),
              published=theorem, low=-np.inf, high=1, because="each row of attention sums to 1, so changes of all tokens by at "
              "most delta change a velocity by at most that"),
        Claim(text="A pair along the fastest direction grows by the largest singular value of the tangent map: ratio furthest "
              "from 1.", measured=float(worst[np.argmax(np.abs(worst - 1))]), published="no number given", low=0.98, high=1.02,
              because="the linearised flow, for first distances of 1e-4"),
        Claim(text="No other nearby pair grows more: the largest ratio of growth to that singular value.",
              measured=float(np.exp(top[(kind == "near") | (kind == "middle")].max())), published="no number given", low=0,
              high=1.02, because="the linearised flow"),
        Claim(text="The singular value itself, by differences of runs and by the closed Jacobian with SciPy's DOP853: |ratio - "
              "1|.", measured=float(np.abs(two_ways - 1).max()), published="no number given", low=0, high=1e-5,
              because="central differences with step 1e-5 err by its square and by 1e-11 / 1e-5"),
        Claim(text="A crowd and its leader: W_2 of the runs begins to grow at the rate of the closed form; the ratio furthest "
              "from 1.", measured=float(agreement[np.argmax(np.abs(agreement - 1))]), published="no number given", low=0.99,
              high=1.01, because="an eigenvalue of a 2 x 2 matrix"),
        Claim(text="So the factor e^{|M| R²} is needed: the smallest ratio of (measured rate + R²) to (1 + R²) e^{R²}.",
              measured=float(((measured + R**2) / ((1 + R**2) * np.exp(R**2))).min()), published="no number given", low=0.24,
              high=1, because="the eigenvalue is at least half the trace, above -R², and (1 + R²) e^{R²} / 4, half of what the "
              "leader does to √N of the crowd; 4 % for the rounding of N"),
        Claim(text="The rate 1 + 2R² of the largest distance does not hold for W_2: the largest ratio of the measured rate to "
              "it.", measured=float((measured / (1 + 2 * R**2)).max()), published="no number given", low=1, high=np.inf,
              because="one of N tokens moves by delta, so W_2 is delta/√N, and all others follow it: √N / 2 times as much at "
              "once"),
    ]


def figures(data: Data) -> dict[str, Any]:
    """Growth against time, growth against its bound, the linearised flow, and the rate of the crowd."""
    from attnlab.render.style import HULL, INK, MARKERS, PALETTE, dress_flat, house_style, new_figure, title

    pairs, crowds = data["pairs"], data["crowds"]
    kind, sigma = pairs["kind"].values, pairs["singular_value"].values
    far, bounds = distances(pairs["tokens"].values), envelopes(data)
    grown = np.log(far / far[:, :1])
    words = {"independent": "independent starts", "near": "random nudge", "worst": "fastest nudge", "middle": "hesitating token"}
    with house_style():
        figure = new_figure(10.4, 3.9)
        left, middle, right = figure.subplots(1, 3)
        for number, name in enumerate(KINDS):
            chosen = np.flatnonzero(kind == name)
            style = {"color": PALETTE[number], "marker": MARKERS[number], "markersize": 4, "linestyle": "none", "alpha": 0.75}
            left.plot(bounds["along"][chosen, -1], grown[chosen, -1], label=words[name], **style)
            if name != "independent":
                middle.plot(sigma[chosen], np.exp(grown[chosen, -1]), label=words[name], **style)
        line = np.geomspace(1, 2 * bounds["along"][:, -1].max(), 200)
        left.fill_between(line, -line, line, color=HULL, alpha=0.13, linewidth=0)
        left.plot(line, line, color=INK, linewidth=1.1, linestyle=(0, (5, 2)))
        left.plot(line, -line, color=INK, linewidth=1.1, linestyle=(0, (5, 2)))
        top = 2.3 * max(grown[:, -1].max(), 1)
        left.set(xscale="log", ylim=(2.0 * min(grown[:, -1].min(), -0.8), top), xlim=(line[0], line[-1]),
                 xlabel="log of the proved envelope", ylabel="log ( W₂(1) / W₂(0) )", title="Growth from t = 0 to 1")
        left.legend(frameon=False, fontsize=7.8, loc="upper right", borderaxespad=0.1, handletextpad=0.2)
        span = np.array([np.nanmin(sigma) / 1.3, np.nanmax(sigma) * 1.3])
        middle.loglog(span, span, color=INK, linewidth=1.1, linestyle=(0, (5, 2)))
        middle.set(xlabel="largest singular value of the tangent map", ylabel="W₂(1) / W₂(0)", title="Nearby pairs", xlim=span)
        middle.legend(frameon=False, fontsize=7.8, loc="upper left", borderaxespad=0.1, handletextpad=0.2)
        R = np.linspace(0.7, crowds["radius"].values[-1] * 1.03, 100)
        right.semilogy(R, rate(R), color=INK, linewidth=1.4, label="proved for W₂: R² + (1 + R²) exp R²")
        right.semilogy(R, 1 + 2 * R**2, color=HULL, linewidth=1.4, linestyle=(0, (5, 2)), label="largest distance: 1 + 2R²")
        places = crowds["radius"].values
        right.semilogy(places, crowds["closed_form"].values, color=PALETTE[1], linewidth=1.0, label="closed form")
        right.semilogy(places, crowds["measured"].values, "s", color=PALETTE[1], markersize=5, label="two runs")
        right.set(xlabel="radius R", title="A leader and its crowd: rate of W₂", xlim=(R[0], R[-1]),
                  ylim=(0.2, 30 * rate(R).max()))
        right.legend(frameon=False, fontsize=7.8, loc="upper left", borderaxespad=0.1)
        for axes in (left, middle, right):
            dress_flat(axes)
        share = np.median(np.abs(grown[:, -1]) / bounds["along"][:, -1])
        title(figure, f"Stability in W₂: {len(far)} pairs of measures, d = 1, 2, 3, under their proved envelope",
              f"Left: every pair is in the grey region between ± its bound; the median |log ratio| is {share:.1%} of the "
              "bound. Middle: dashed, the most that the linearised flow can do. Right: exp 2R² tokens look at one leader; "
              "moving it moves them all, so the exponential in the constant is needed.")
        return {"mean_field_stability": figure}


def _kicked(pairs: Any) -> None:
    """The second run of each pair continues from another state after the last but one saved time."""
    tokens = pairs["tokens"].values.copy()
    tokens[:, 1, -1] *= 40.0
    pairs["tokens"] = (("pair", "member", "time", "token", "coordinate"), tokens)


def _damped(pairs: Any) -> None:
    """A solver that pulls the second run towards the first."""
    tokens = pairs["tokens"].values.copy()
    tokens[:, 1] = tokens[:, 0] + (tokens[:, 1] - tokens[:, 0]) * np.exp(-pairs["time"].values)[:, None, None]
    pairs["tokens"] = (("pair", "member", "time", "token", "coordinate"), tokens)


def _coarse(check: Any) -> None:
    """Differences with a step that is too large."""
    check["differences"] = check["differences"] * (1 + 1e-3)


def _halved(crowds: Any) -> None:
    """A leader whose change reaches its crowd with an eighth of its weight."""
    crowds["measured"] = crowds["measured"] / 8


experiments.register("mean_field_stability")(
    Experiment(
        name="mean_field_stability",
        title="W₂ of two solutions grows at most exponentially, with an explicit constant",
        cite="Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465, section 6 (stability); the constant is ours",
        about="Two clouds of tokens that start near each other stay near each other for a while: their Wasserstein distance W₂ "
        "grows at most like e^(Ct). The paper proves that such a C exists. Here it is written down, |V| (|M| R² + (1 + |M| R²) "
        "e^(|M| R²)) for tokens in the ball of radius R, and pairs of all kinds are kept under it: independent ones, random "
        "nudges, nudges in the direction that grows fastest, and a token that hesitates between two camps (draws with the seed "
        "7).\n\n"
        "Typical pairs stay far below, and nearby ones do what the linearised flow says. But the exponential in the constant "
        "is no artefact: if very many tokens look at one leader, moving the leader moves them all. W₂ hardly notices the "
        "first, and sees the second in full. In the largest distance of tokens, where the leader counts as much as the crowd, "
        "no exponential is needed.",
        compute=compute,
        claims=claims,
        figures=figures,
        spoils={
            "second run replaced at the end": changed("pairs", _kicked),
            "second run pulled to the first": changed("pairs", _damped),
            "differences too coarse": changed("tangent", _coarse),
            "leader hardly heard": changed("crowds", _halved),
        },
    )
)
