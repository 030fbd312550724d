"""How fast tokens and attention converge: exponential, double exponential or t^(-1/2), for which heads and which V."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.rates import fit_line
from attnlab.experiments import experiments
from attnlab.experiments.common import heads
from attnlab.experiments.common.plain_flow import by_scipy
from attnlab.experiments.datasets import rows_where, table, table_of_rows
from attnlab.experiments.intervals import mean_interval
from attnlab.experiments.parts import Context, Part, Parts, Results, grids_of
from attnlab.experiments.rates_laws import LAWS, PLANTED_STARTS, check_planted, chosen_law, fitted, prediction_errors
from attnlab.experiments.rates_runs import STEP, Curves, D, N, curves_of, run_of, start_of, weights_of, window_of
from attnlab.experiments.record import Claim, Data, Experiment
from attnlab.experiments.spoils import changed
from attnlab.models.studies.shares import interval
from attnlab.sweep.grid import Grid

CASES = (("plain", "identity"), ("plain", "negative"), ("symmetric", "identity"), ("symmetric", "negative"),
         ("synthetic", "identity"), ("synthetic", "own"), ("synthetic", "negative"),
         ("trained", "identity"), ("trained", "own"), ("trained", "negative"))
STARTS = {"full": 10, "small": 3}
SLOW_STARTS = {"full": 3, "small": 3}
"""Starts of trained heads with their own V_h, which take long."""

QUANTITIES = ("tokens", "attention")
EXPECTED = {("tokens", "identity"): "exponential", ("attention", "identity"): "double exponential",
            ("tokens", "own"): "exponential", ("attention", "own"): "double exponential",
            ("tokens", "negative"): "power law", ("attention", "negative"): "power law"}
DRAWN = (("trained", "identity"), ("plain", "negative"), ("synthetic", "negative"))


def start_grids(size: str) -> list[Grid]:
    """Every case with 1 to 16 heads and its starts."""
    return grids_of("family, values, heads, rng", [
        (*case, heads.HEADS, (SLOW_STARTS if case == ("trained", "own") else STARTS)[size]) for case in CASES])


def measure_start(context: Context, **case: Any) -> dict[str, Any]:
    """The fits of one start; the slopes of its rows of attention where V = I; its curves where they are drawn."""
    family, values, count, rng = case.values()
    model = context.shared.model
    weights, x0 = weights_of(family, values, count, rng, model), start_of(family, rng, model)
    run, clock = run_of(weights, x0, values)
    curves = curves_of(run, clock, values)
    steps = run_of(weights, x0, values, STEP / 2) if run.solve.stepper == "rk4" else None
    finer = curves_of(*steps, values) if steps is not None else None
    return {"fits": _fits(values, curves, finer, lowest(run)), "slopes": _row_slopes(curves) if values == "identity" else [],
            "curves": (curves.clock, curves.tokens, curves.attention, curves.leaks.min(axis=(1, 2)))}


def assemble(results: Results) -> dict[str, Any]:
    """Fits, rows of attention, what planted data say of the method, an independent integrator, and curves to draw."""
    import xarray

    measured, is_alone = np.array([slope for one in results.values("starts") for slope in one["slopes"]]).T
    planted = {name: (("law", "sample"), np.stack([one[name] for one in results.values("planted")]))
               for name in ("covered", "naive", "right")}
    drawn = {"{family}_{values}_{heads}".format(**case): one["curves"] for case, one in results.found["starts"]
             if case["rng"] == 0 and (case["family"], case["values"]) in DRAWN}
    length = max(len(clock) for clock, *_ in drawn.values())
    curves = {name: (("part", "time"), np.stack([np.pad(one, (0, length - len(one)), constant_values=np.nan) for one in parts]))
              for name, parts in drawn.items()}
    return {"fits": table_of_rows(results.rows("starts", "fits"), model=results.shared.name, why=results.why),
            "rows": table({"slope": measured, "alone": is_alone.astype(int)}),
            "planted": xarray.Dataset(planted, coords={"law": list(LAWS)}), "scipy": results.values("scipy")[0],
            "curves": xarray.Dataset(curves)}


def lowest(run: Any) -> float:
    """The smallest eigenvalue of the symmetric part of sum_h Q_h^T K_h on the span of the tokens, over the largest modulus."""
    total = run.dynamics.weights.M.sum(axis=0)
    values = np.linalg.eigvalsh(total + total.T)
    return float(values[0] / np.abs(values).max())


def _fits(values: str, curves: Curves, finer: Curves | None, sign: float) -> list[dict[str, Any]]:
    """For tokens and attention: the errors of the laws, the one that is chosen, and exponents in units of the clock."""
    clock = curves.clock
    window = window_of(clock, values)
    growth = fitted("exponential", clock[window], curves.size[window]).slope if window.sum() >= 6 else np.nan
    rows = []
    for quantity in QUANTITIES:
        log_y = getattr(curves, quantity)
        usable = window & np.isfinite(log_y)
        expected = EXPECTED[quantity, values]
        runs_away = values == "negative" and bool(curves.tokens[-1] > curves.tokens[0])
        if runs_away:
            expected = "exponential" if quantity == "tokens" else "double exponential"
        row: dict[str, Any] = {"quantity": quantity, "law": "none", "slope": np.nan, "growth": growth, "lowest": sign,
               "runs_away": int(runs_away), "is_settled": int(curves.is_ok), "constant": np.nan, "by_size": np.nan}
        row |= {f"error_{law.split()[0]}": np.nan for law in LAWS}
        if usable.sum() >= 10:
            errors = prediction_errors(clock[usable], log_y[usable])
            row |= {f"error_{law.split()[0]}": error for law, error in zip(LAWS, errors, strict=True)}
            row["law"] = chosen_law(errors)
            if expected != "double exponential" or (log_y[usable] < 0).all():
                row["slope"] = fitted(expected, clock[usable], log_y[usable]).slope
            if finer is not None:
                row["is_settled"] = int(_agrees(row["slope"], expected, finer, quantity, values))
            if quantity == "tokens":
                row["by_size"] = fit_line(curves.size[usable], log_y[usable]).slope
            if quantity == "tokens" and values == "negative":
                row["constant"] = float(2 * clock[-1] / min(N - 1, D) * np.exp(2 * log_y[-1]))
        rows.append(row)
    return rows


def _agrees(slope: float, law: str, finer: Curves, quantity: str, values: str) -> bool:
    """Whether half the step gives the same exponent, within a twentieth."""
    log_y = getattr(finer, quantity)
    usable = window_of(finer.clock, values) & np.isfinite(log_y)
    if usable.sum() < 10 or (law == "double exponential" and (log_y[usable] >= 0).any()):
        return False
    other = fitted(law, finer.clock[usable], log_y[usable]).slope
    return bool(abs(slope - other) <= 0.05 * abs(other))


def _row_slopes(curves: Curves) -> list[tuple[float, bool]]:
    """(slope of log(-log(1 - P_max)), whether the leader is a cluster of its own) of every row of every head."""
    window = window_of(curves.clock, "identity")
    leaks = curves.leaks[window]
    usable = np.isfinite(leaks).all(axis=0) & (leaks < 0).all(axis=0)
    return [(fitted("double exponential", curves.clock[window], leaks[:, head, row]).slope, bool(curves.alone[head, row]))
            for head, row in zip(*np.nonzero(usable), strict=True)]


def _scipy(_: Context) -> Any:
    """z of four synthetic heads with V_h = I at H t = 8, also by SciPy; and where 16 heads end that are asked for t = 15."""
    import xarray

    from attnlab.engine import simulate

    weights, x0 = weights_of("synthetic", "identity", 4, 0, None), start_of("synthetic", 0, None)
    other = by_scipy(weights, x0, 2.0)
    ours = simulate(weights, x0, times=[0.0, 2.0], t_end=2.0, rtol=1e-11).x[-1]
    sixteen = weights_of("plain", "identity", 16, 0, None)
    late = simulate(sixteen, x0, times=np.linspace(0.0, 15.0, 601), t_end=15.0, throw=False)
    axes = ("token", "coordinate")
    return xarray.Dataset({"ours": (axes, ours), "scipy": (axes, other)}, attrs={"reached": float(16 * late.times[-1])})


def intervals(rows: Any, mask: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Confidence intervals (case, 2) of the mean of some values, for each family and number of heads in the mask."""
    found = [mean_interval(values[mask & rows_where(rows, family=family, heads=count)])
             for family in np.unique(rows["family"].values[mask]) for count in heads.HEADS]
    return np.array(found)


def missed(ends: np.ndarray, truth: float) -> float:
    """By how much the intervals (case, 2) miss a number, at worst; 0 where all hold it."""
    return float(np.maximum(0.0, np.maximum(ends[:, 0] - truth, truth - ends[:, 1])).max())


def claims(data: Data) -> list[Claim]:
    """V = I; the heads' own; V = -I; and what planted data say of intervals and choices."""
    return [*_of_identity(data), *_of_own(data), *_of_negative(data), *_of_method(data)]


def _of_identity(data: Data) -> list[Claim]:
    fits, rows = data["fits"], data["rows"]
    identity = rows_where(fits, values="identity")
    tokens, attention = (identity & rows_where(fits, quantity=name) for name in QUANTITIES)
    slope, law = fits["slope"].values, fits["law"].values
    expected = np.where(rows["alone"].values == 1, 2.0, 1.0)
    right = np.mean((law[tokens] == "exponential").tolist() + (law[attention] == "double exponential").tolist())
    return [
        Claim(text="V_h = I: clusters in z shrink like e^(−Ht), for 1 to 16 heads of every family: farthest end of a 95 % "
              "interval (over starts) of the exponent over H from −1.",
              measured=float(np.abs(intervals(fits, tokens, slope) + 1).max()), published="clusters form; the rate is left open",
              low=0, high=0.02, because="tokens of a cluster come to listen to the same leaders, head by head; then x_i − x_j "
              "stays as it is, and z = e^(−Ht) x", differs="Heads need not agree with each other for it."),
        Claim(text="V_h = I: the slowest row of attention becomes Boolean double exponentially, 1 − max P = exp(−c e^(Ht)): "
              "largest distance of a 95 % interval of the slope over H from 1.",
              measured=missed(intervals(fits, attention, slope), 1.0),
              published="for d = 1 a theorem, with one head: exp(−c e^(Vt))", low=0, high=0.01,
              because="the next best token is in the cluster of the leader, at a constant distance in x, and x grows like "
              "e^(Ht)"),
        Claim(text="REFINED: a row whose leader is alone in its cluster has twice that slope, all others have it: rows within "
              "a tenth of what this says, share.", measured=float((np.abs(rows["slope"].values / expected - 1) <= 0.1).mean()),
              published="exp(−c e^t), a bound for all rows", low=0.95, high=1,
              because="then the next best is in another cluster, at a distance in x that grows like e^(Ht) too; a twentieth is "
              "room for clusters that are not yet apart"),
        Claim(text="V_h = I: of the three laws, each fitted to the first part of a window and judged by the rest, the "
              "exponential is chosen for clusters and the double exponential for attention: share of runs.",
              measured=float(right), low=0.95, high=1, because="the two closed forms above; one in twenty for starts that "
              "decide late"),
    ]


def _of_own(data: Data) -> list[Claim]:
    fits = data["fits"]
    tokens = rows_where(fits, values="own", quantity="tokens", is_settled=1) & (fits["heads"].values == 1)
    ratio = fits["by_size"].values
    several = rows_where(fits, quantity="tokens") & (fits["heads"].values >= 4)
    settled = several & rows_where(fits, values="own", is_settled=1)
    held = (np.abs(ratio + 1) <= 0.05) & (fits["law"].values == "exponential")
    low, high = interval(int((held & settled).sum()), int(settled.sum()))
    alike = several & rows_where(fits, values="identity") & np.isin(fits["family"].values, fits["family"].values[settled])
    named = {family: heads.as_shown(family, fits.attrs["model"]) for family in heads.FAMILIES}
    open_ones = ", ".join(f"{(fits['is_settled'].values[rows] == 0).sum()} of {rows.sum()} {words}"
                          for family, words in named.items()
                          for rows in [several & rows_where(fits, values="own", family=family)] if rows.any())
    return [
        Claim(text=f"The heads' own V, one head, {families_in(fits, tokens)}, runs that settle: clusters shrink, relative to "
              "the largest token, exactly as fast as that one grows: farthest slope of the logarithm of the one over that of "
              "the other from −1.", measured=float(np.abs(ratio[tokens] + 1).max()), low=0, high=0.02,
              because="followers of one leader keep their distance in x, whatever V is",
              differs=f"{tokens.sum()} of {rows_where(fits, values='own', quantity='tokens', heads=1).sum()} runs settle. In t "
              "this is an exponential only where the leading eigenvalue of V is real; else it swings with the token's size."),
        Claim(text="V_h = I does not stand for the heads' own: with four own V_h or more the exponential law of that exponent "
              f"is not in all runs that settle ({families_in(fits, settled)}): runs without it.",
              measured=float((settled & ~held).sum()), published="W_V = I, W_O stacked identities", low=1, high=np.inf,
              because="one is enough; with V_h = I, the same families and numbers of heads, it holds in "
              f"{(held & alike).sum()} of {alike.sum()} runs", differs=f"The law holds in {(held & settled).sum()} of "
              f"{settled.sum()} runs that settle, 95 % interval {low:.2f} to {high:.2f}. Nothing is said of those that do not: "
              f"{open_ones} run out of steps, or have another exponent with half the step."),
    ]


def families_in(fits: Any, mask: np.ndarray) -> str:
    """The families of heads that are there, in words."""
    there = [family for family in heads.FAMILIES if (fits["family"].values[mask] == family).any()]
    return heads.as_shown(" and ".join(there), fits.attrs["model"])


def _of_negative(data: Data) -> list[Claim]:
    fits = data["fits"]
    tokens, attention = (rows_where(fits, values="negative", quantity=name) for name in QUANTITIES)
    positive = (fits["lowest"].values > 0) & np.isin(fits["family"].values, ["plain", "symmetric"])
    slope = fits["slope"].values
    plain = tokens & rows_where(fits, family="plain")
    indefinite = tokens & (fits["lowest"].values < 0)
    grown = fits["growth"].values
    return [
        Claim(text="V_h = −I, symmetric positive scores: tokens shrink like t^(−1/2), for 1 to 16 heads: farthest end of a 95 "
              "% interval of the exponent from −1/2.",
              measured=float(np.abs(intervals(fits, tokens & positive, slope) + 0.5).max()), low=0, high=0.02,
              because="the covariance obeys (C⁻¹)' = 2 Σ_h M_h once the mean is gone and tokens are small"),
        Claim(text="There attention becomes uniform like 1/t: farthest end of a 95 % interval of the exponent of max |n P − 1| "
              "from −1.", measured=float(np.abs(intervals(fits, attention & positive, slope) + 1).max()), low=0, high=0.04,
              because="scores are products of two tokens"),
        Claim(text="And H heads are H times as fast: 2 H t / r times the mean square norm at the end, Q = K = I, farthest from "
              "1.", measured=float(np.abs(fits["constant"].values[plain] - 1).max()), low=0, high=0.05,
              because="C → I / (2 H t), r the rank of the centred start"),
        Claim(text="Not so for other scores: where the symmetric part of Σ Q_hᵀK_h has a negative eigenvalue on the span of "
              f"the tokens, V_h = −I mostly makes them run away: share of such runs, {families_in(fits, indefinite)}, lower "
              "end of the 95 % interval.",
              measured=interval(int(fits["runs_away"].values[indefinite].sum()), int(indefinite.sum()))[0],
              published="for QᵀK = I a theorem: all tend to 0", low=0.5, high=1,
              because="C⁻¹ = C(0)⁻¹ + 2 t sym Σ M_h becomes singular, so that small tokens do not stay small; were the theorem "
              "true for these scores, it would be 0", differs="REFINED: some positivity of QᵀK is needed. Other runs "
              f"({families_in(fits, indefinite & (fits['runs_away'].values == 0)) or 'none here'}) first lose the directions "
              "in which they would run away, and then shrink like t^(−1/2) for long, or come to rest elsewhere."),
        Claim(text="Nothing grows faster than e^(Ht) with V_h = ± I: largest rate of growth over H.",
              measured=float(np.nanmax(grown[rows_where(fits, values="identity") | rows_where(fits, values="negative")])),
              low=-1, high=1.001, because="|x_i'| ≤ H max |x_j|: P_h x is an average"),
    ]


def _of_method(data: Data) -> list[Claim]:
    planted, scipy = data["planted"], data["scipy"]
    samples = planted.sizes["sample"] * len(LAWS)
    room = 4 * np.sqrt(0.05 * 0.95 / samples)
    off = np.abs(scipy["ours"].values - scipy["scipy"].values).max() / np.abs(scipy["scipy"].values).max()
    return [
        Claim(text=f"Intervals over {PLANTED_STARTS} starts hold a planted exponent as often as they promise: share of "
              f"{samples} samples.", measured=float(planted["covered"].values.mean()), low=0.95 - room, high=0.95 + room,
              because="95 %, and four standard errors of the share"),
        Claim(text="Intervals from the points of one run would not: share that hold the exponent planted there, noise that "
              "neighbours share.", measured=float(planted["naive"].values.mean()), low=0, high=0.8,
              because="points of one run are not independent"),
        Claim(text="The choice between the laws finds the planted one: smallest share over the three.",
              measured=float(planted["right"].values.mean(axis=1).min()), low=0.9, high=1, because="the truth is known"),
        Claim(text="Four heads with V_h = I at H t = 8: the engine against SciPy's DOP853 on a plain sum, largest difference "
              "over the largest token.", measured=float(off), low=0, high=1e-6, because="tolerances 1e-11 and 1e-12"),
        Claim(text="Sixteen heads with V_h = I asked for t = 15 end where double precision does: H t that is reached, of 240.",
              measured=float(scipy.attrs["reached"]), published="shown at t = 7, 15, 20", low=25, high=40,
              because="tokens of a cluster differ by e^(−Ht) in z, and e^(−36) is the rounding error",
              differs="What is shown later with 16 heads is decided by rounding inside a cluster."),
    ]


def figures(data: Data) -> dict[str, Any]:
    """The three laws in single runs, and which law holds where."""
    from attnlab.experiments.rates_figures import law_map, three_laws
    from attnlab.render.style import house_style

    with house_style():
        return {"rates": three_laws(data), "rates_which_law": law_map(data)}


def _other_exponents(fits: Any) -> None:
    """All exponents a tenth larger, as if time were measured wrongly."""
    for name in ("slope", "growth", "by_size", "constant"):
        fits[name] = fits[name] * 1.1


def _other_laws(fits: Any) -> None:
    """Power laws everywhere with V = I; own V as regular as theory; nothing runs away."""
    law = fits["law"].values.copy().astype("U20")
    law[fits["values"].values == "identity"] = "power law"
    own = fits["values"].values == "own"
    law[own] = "exponential"
    fits["law"] = ("row", law)
    fits["by_size"] = ("row", np.where(own, -1.0, fits["by_size"].values))
    fits["is_settled"] = ("row", np.ones(len(law), int))
    fits["runs_away"] = ("row", np.zeros(len(law), int))


def _one_slope(rows: Any) -> None:
    """One rate for all rows."""
    rows["slope"] = rows["slope"] * 0 + 1.4


def _too_narrow(planted: Any) -> None:
    """Intervals that hold the truth in one case of two, points that tell it always, and choices by chance."""
    covered = planted["covered"].values.copy()
    covered[:, ::2] = 0
    planted["covered"] = (planted["covered"].dims, covered)
    planted["naive"] = planted["naive"] * 0 + 1
    planted["right"] = planted["right"] * 0


def _elsewhere(scipy: Any) -> None:
    """Tokens off by a ten-thousandth, and a run that goes on past double precision."""
    scipy["ours"] = scipy["ours"] * 1.0001
    scipy.attrs = {"reached": 240.0}


experiments.register("rates")(
    Experiment(
        name="rates",
        title="Exponential, double exponential, or t^(−1/2): which rate holds where",
        cite="Sugolov, Aubry, MAT1510 project, University of Toronto, November 2023 (slides), rate of convergence; theorems in "
        "Geshkovski et al., arXiv:2305.05465; exponents for several heads and for d > 1 are ours",
        about="How fast do tokens and attention converge? The slides leave it open. Here every case is run from independent "
        "starts, three laws are fitted to the first part of a late window and judged by how they predict the rest, and "
        "exponents get confidence intervals over the starts (the points of one run are not independent: intervals from them "
        "hold a planted exponent far too rarely).\n\nWith V = I and H heads, clusters shrink like e^(−Ht) in z, for synthetic "
        "and trained heads alike, and attention becomes Boolean like exp(−c e^(Ht)); rows whose leader is alone in its cluster "
        "do it at twice that rate, exp(−c e^(2Ht)). Heads need not agree: it is enough that all tokens of a cluster listen to "
        "the same leader in each head.\n\nWith the heads' own V, clusters of one head shrink as fast as the tokens grow; with "
        "several Gaussian heads leaders often keep changing, most runs do not settle, and nothing is said of them; of those that "
        "settle, synthetic and trained, most but not all follow that law. With V = −I tokens shrink like t^(−1/2) where the "
        "scores are symmetric and positive. For Gaussian and for trained scores they are not, and tokens mostly run away "
        "exponentially instead.",
        compute=Parts(
            {
                "starts": Part(measure_start, start_grids, "{heads} {family} heads, V {values}", 0.9, lambda heads, **_: heads),
                "planted": Part(check_planted, Grid({"law": LAWS}), "planted data", share=0.09),
                "scipy": Part(_scipy, share=0.01),
            },
            prepare=heads.Trained, leave_out=heads.Trained.without, assemble=assemble,
        ),
        claims=claims,
        figures=figures,
        spoils={
            "exponents are a tenth larger": changed("fits", _other_exponents),
            "other laws": changed("fits", _other_laws),
            "one slope for all rows": changed("rows", _one_slope),
            "intervals too narrow": changed("planted", _too_narrow),
            "tokens are elsewhere": changed("scipy", _elsewhere),
        },
    )
)
