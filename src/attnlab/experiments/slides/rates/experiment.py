"""How fast tokens and attention converge: exponential, double exponential or t^(-1/2), for which heads and which V."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

from attnlab.analysis.decay import LAWS, best_law, fit_law, prediction_errors
from attnlab.analysis.plain_flow import flow_by_scipy
from attnlab.analysis.rates import fit_line
from attnlab.engine import simulate
from attnlab.experiments.common import heads
from attnlab.experiments.datasets import table, table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results, grids_of
from attnlab.sweep.grid import Grid

from .planted import check_planted
from .runs import STEP, Curves, D, N, curves_of, run_of, start_of, weights_of, window_of

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
    growth = fit_law("exponential", clock[window], curves.size[window]).slope if window.sum() >= 6 else np.nan
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
            row["law"] = best_law(errors)
            if expected != "double exponential" or (log_y[usable] < 0).all():
                row["slope"] = fit_law(expected, clock[usable], log_y[usable]).slope
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
    other = fit_law(law, finer.clock[usable], log_y[usable]).slope
    return bool(abs(slope - other) <= 0.05 * abs(other))


def _row_slopes(curves: Curves) -> list[tuple[float, bool]]:
    """(slope of log(-log(1 - P_max)), whether the leader is a cluster of its own) of every row of every head."""
    window = window_of(curves.clock, "identity")
    leaks = curves.leaks[window]
    usable = np.isfinite(leaks).all(axis=0) & (leaks < 0).all(axis=0)
    return [(fit_law("double exponential", curves.clock[window], leaks[:, head, row]).slope, bool(curves.alone[head, row]))
            for head, row in zip(*np.nonzero(usable), strict=True)]


def _scipy(_: Context) -> Any:
    """z of four synthetic heads with V_h = I at H t = 8, also by SciPy; and where 16 heads end that are asked for t = 15."""
    weights, x0 = weights_of("synthetic", "identity", 4, 0, None), start_of("synthetic", 0, None)
    other = flow_by_scipy(weights, x0, 2.0)
    ours = simulate(weights, x0, times=[0.0, 2.0], t_end=2.0, rtol=1e-11).x[-1]
    sixteen = weights_of("plain", "identity", 16, 0, None)
    late = simulate(sixteen, x0, times=np.linspace(0.0, 15.0, 601), t_end=15.0, throw=False)
    axes = ("token", "coordinate")
    return xarray.Dataset({"ours": (axes, ours), "scipy": (axes, other)}, attrs={"reached": float(16 * late.times[-1])})


compute = Parts(
    {
        "starts": Part(measure_start, start_grids, "{heads} {family} heads, V {values}", 0.9, lambda heads, **_: heads),
        "planted": Part(check_planted, Grid({"law": LAWS}), "planted data", share=0.09),
        "scipy": Part(_scipy, share=0.01),
    },
    prepare=heads.Trained, leave_out=heads.Trained.without, assemble=assemble,
)
