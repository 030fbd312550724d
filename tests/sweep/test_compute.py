"""Sweeps: a cell is the run of its own Spec, whatever computes it; failed cells are rows; nothing
is computed twice.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import attnlab as al
from attnlab.analysis import observables
from attnlab.run import limit_of_spec
from attnlab.sweep import Rows
from attnlab.sweep.compute import Computer
from attnlab.sweep.engines import Task
from attnlab.sweep.engines.here import Here
from attnlab.sweep.numbers import first_passage
from attnlab.sweep.runner import run_cells
from sweep_samples import BASE, SPREAD, TINY, changed, results, specs_by_loops

NUMBERS = {
    "last": {"observable": "diameter"},
    "least": {"observable": "min_distance", "at": "min"},
    "most": {"observable": "diameter", "at": "max"},
    "mean": {"observable": "diameter", "at": "mean"},
    "saved": {"observable": "diameter", "at": 1.5},
    "between": {"observable": "diameter", "at": 1.2345},
    "merged": {"observable": "diameter", "at": {"below": 1.0}},
    "never": {"observable": "diameter", "at": {"above": 10}},
}


def rows_of(sweep, cells=None, **more):
    """The rows of cells of a sweep, computed in this process as one task."""
    cells = list(sweep.grid) if cells is None else cells
    return Computer(sweep.head())(
        Task(tuple((sweep.digest_of(cell), cell) for cell in cells), **more)
    )


def by_hand(spec):
    """NUMBERS of a run of this Spec, from the run with its own times and from one that saves the
    other time too.
    """
    run = al.run_spec(
        al.Spec(
            spec.weights,
            spec.start,
            spec.solve,
            spec.dynamics,
            observe=["diameter", "min_distance"],
        )
    )
    solve = {"t_end": spec.solve["t_end"], "times": [0.0, 1.2345, spec.solve["t_end"]]}
    other = al.run_spec(
        al.Spec(spec.weights, spec.start, solve, spec.dynamics, observe=["diameter"])
    )
    t, wide, near = run.times, run.observed["diameter"], run.observed["min_distance"]
    merged = None
    for k in range(len(t)):
        if wide[k] < 1.0:
            merged = (
                t[k]
                if k == 0
                else t[k - 1] + (wide[k - 1] - 1.0) / (wide[k - 1] - wide[k]) * (t[k] - t[k - 1])
            )
            break
    mean = sum((wide[k] + wide[k + 1]) / 2 * (t[k + 1] - t[k]) for k in range(len(t) - 1)) / t[-1]
    return {
        "last": wide[-1],
        "least": near.min(),
        "most": wide.max(),
        "mean": pytest.approx(mean, rel=1e-13),
        "saved": wide[list(t).index(1.5)],
        "between": other.observed["diameter"][1],
        "merged": merged if merged is None else pytest.approx(merged, rel=1e-13),
        "never": None,
    }


def test_every_cell_is_the_run_of_its_own_spec_bit_for_bit():
    data = changed(TINY, numbers=NUMBERS, axes={"dynamics.beta": [0.5, 2.0, 7.0]})
    sweep = al.Sweep.from_dict(data)
    specs = specs_by_loops(data)
    rows = rows_of(sweep)
    assert [tuple(row.axes.values()) for row in rows] == list(specs)
    for row, spec in zip(rows, specs.values(), strict=True):
        assert row.digest == spec.digest() and row.status == "ok" and row.seed == spec.start["rng"]
        assert row.numbers == by_hand(spec)
    assert any(row.numbers["merged"] is None for row in rows) and any(
        row.numbers["merged"] is not None for row in rows
    )


@pytest.mark.parametrize(
    "change",
    [
        {
            "dynamics": {"noise": {"name": "brownian", "kappa": 0.2}},
            "solve": {"t_end": 1.0, "stepper": "euler", "dt": 0.05},
        },
        {"solve": {"layers": 6, "dt": 0.5}},
        {"solve": {"layers": 6, "saves": 4}},
        {"solve": {"times": [0.0, 1.5, 3.0]}},
        {"weights": {"family": "gaussian"}, "dynamics": {}},
        {"dynamics": {"kernel": "sigmoid"}},
        {"dynamics": {"mask": "causal"}},
    ],
)
def test_batches_equal_single_runs_on_every_path(change):
    data = changed(
        TINY,
        base={**BASE, **change},
        axes={"start.n": [3, 4]},
        numbers={
            **SPREAD,
            "when": {"observable": "diameter", "at": {"below": 1.7}},
            "least": {"observable": "min_distance", "at": "min"},
        },
    )
    sweep = al.Sweep.from_dict(data)
    together = rows_of(sweep)
    alone = [rows_of(sweep, [cell])[0] for cell in sweep.grid]
    backward = rows_of(sweep, list(sweep.grid)[::-1], is_timed=True)[::-1]
    for key, spec, *rows in zip(
        specs_by_loops(data), specs_by_loops(data).values(), together, alone, backward, strict=True
    ):
        run = al.run_spec(spec)
        assert {row.digest for row in rows} == {spec.digest()} and {row.status for row in rows} == {
            "ok"
        }, key
        assert rows[0].numbers == rows[1].numbers == rows[2].numbers
        assert rows[0].numbers["spread"] == observables["diameter"](run)[-1]
        assert rows[0].numbers["least"] == observables["min_distance"](run).min()


@pytest.mark.parametrize(
    "data",
    [
        changed(TINY),
        changed(TINY, axes={"start.n": [3, 4], "solve.t_end": [1, 2.0, 2.5], "start.d": [2, 3]}),
        changed(TINY, axes={"start.n, start.d": [[3, 2], [4, 5]]}, exclude=[{"start.rng": 1}]),
        changed(
            TINY,
            base={**BASE, "weights": {"family": "spectrum", "eigenvalues": [1.0, 0.5, -0.5]}},
            axes={
                "weights.eigenvalues.1": {"linspace": [0, 1, 5]},
                "weights.eigenvalues.2": [-1, -0.5],
            },
        ),
        changed(
            TINY, axes={"weights": [{"family": "identity"}, {"family": "gaussian", "scale": 2.0}]}
        ),
        changed(TINY, axes={"dynamics": [{}, {"beta": 2}, {"beta": 3.0, "mask": "causal"}]}),
        changed(
            TINY,
            axes={
                "dynamics.noise": [
                    {"name": "brownian", "kappa": 1},
                    {"name": "brownian", "kappa": 0.5},
                ]
            },
        ),
        changed(
            TINY,
            base={**BASE, "observe": ["diameter"], "start": {"law": "sphere", "n": 5}},
            axes={"start.d": [2, 3]},
        ),
    ],
)
def test_the_fast_digest_is_that_of_the_spec(data):
    sweep = al.Sweep.from_dict(data)
    digests = [sweep.digest_of(cell) for cell in sweep.grid]
    assert digests == [sweep.spec_of(cell).digest() for cell in sweep.grid]
    assert len(set(digests)) == len(digests) == len(sweep.grid)


def test_a_cell_changes_the_copy_and_not_the_base():
    sweep = al.Sweep.from_dict(
        changed(
            TINY,
            base={**BASE, "weights": {"family": "spectrum", "eigenvalues": [1.0, 0.5, 0.1]}},
            axes={"weights.eigenvalues.1": [0.2, 0.3]},
        )
    )
    one, other = (sweep.spec_of(cell) for cell in list(sweep.grid)[::3])
    assert one.weights["eigenvalues"] == [1.0, 0.2, 0.1] and other.weights["eigenvalues"] == [
        1.0,
        0.3,
        0.1,
    ]
    assert sweep.base["weights"]["eigenvalues"] == [1.0, 0.5, 0.1]


def test_first_passage_is_on_the_straight_line_between_two_times():
    times = np.array([0.0, 1.0, 3.0, 4.0])
    values = np.array([4.0, 3.0, 1.0, 5.0])
    assert first_passage(times, values, 2.0, is_below=True) == 2.0
    assert first_passage(times, values, 4.5, is_below=True) == 0.0
    assert first_passage(times, values, 1.0, is_below=True) is None  # it must be below, not at
    assert first_passage(times, values, 3.0, is_below=False) == 0.0
    assert first_passage(times, values, 4.5, is_below=False) == pytest.approx(3.875)
    assert first_passage(times, values, 5.0, is_below=False) is None


def test_limits_and_verdicts_are_numbers_too():
    base = {
        "weights": {"family": "spectrum", "eigenvalues": [1.0, -0.5]},
        "start": {"law": "normal", "n": 5},
        "solve": {"t_end": 2.0},
    }
    data = {
        "base": base,
        "seeds": 4,
        "numbers": {
            "count": {"limit": "count"},
            "grade": {"limit": "grade"},
            "certified": {"limit": "certified"},
            "hull": {"verdict": "hull_shrinks"},
            **SPREAD,
        },
    }
    for row, spec in zip(
        rows_of(al.Sweep.from_dict(data)), specs_by_loops(data).values(), strict=True
    ):
        limit = limit_of_spec(spec)
        outcome = al.check(al.run_spec(spec), names=["hull_shrinks"])[0].outcome.name
        assert limit.count is not None
        assert row.numbers == {
            "count": limit.count,
            "grade": limit.grade,
            "certified": int(limit.certified),
            "hull": outcome,
            "spread": observables["diameter"](al.run_spec(spec))[-1],
        }


def test_a_sweep_of_limits_alone_simulates_nothing():
    # no run of V = I reaches t = 1000 in double precision, and the limit needs none
    base = {
        "weights": {"family": "identity"},
        "start": {"law": "normal", "n": 4, "d": 2},
        "solve": {"t_end": 1000.0},
    }
    limits = rows_of(
        al.Sweep.from_dict({"base": base, "seeds": 2, "numbers": {"count": {"limit": "count"}}})
    )
    runs = rows_of(al.Sweep.from_dict({"base": base, "seeds": 2, "numbers": SPREAD}))
    assert [row.status for row in limits] == ["ok"] * 2 and all(
        row.numbers["count"] >= 1 for row in limits
    )
    assert [row.status for row in runs] == ["past_double_precision"] * 2 and all(
        "of 1000" in row.error for row in runs
    )


def test_failed_cells_are_rows_with_their_sentence_and_the_others_go_on(tmp_path):
    data = changed(
        TINY, axes={"solve.t_end": [0.1, 3000.0]}, base={**BASE, "solve": {"max_steps": 20}}
    )
    sweep = al.Sweep.from_dict(data, tmp_path / "some.toml")
    tally = sweep.run(workers=0)
    assert (tally.computed, tally.failed, tally.is_ok) == (6, 3, False)
    for key, (_, status, numbers, error, _) in results(sweep.rows_path).items():
        t_end, seed = map(float, key)
        run = al.run_spec(specs_by_loops(data)[t_end, seed], throw=False)
        assert status == ("ok" if t_end == 0.1 else "max_steps") == run.status.name.lower()
        assert (error is None) == (t_end == 0.1) and bool(numbers) == (t_end == 0.1)
        assert error is None or (f"of {t_end:g}" in error and run.status.value in error)
    again = sweep.run(workers=0)
    assert (again.computed, again.kept, again.kept_failed, again.is_ok) == (0, 6, 3, False)
    assert [row.status for row in again.failures] == ["max_steps"] * 3
    assert (
        sweep.run(workers=0, retry="failed").computed == 3
        and sweep.run(workers=0, retry="stalled").computed == 0
    )
    with pytest.raises(al.UnknownName, match="'max_steps'"):
        sweep.run(retry="maxsteps")


def test_an_observable_that_raises_fails_its_cell_alone(monkeypatch):
    def awkward(run):
        if run.n == 4:
            raise AttributeError("no such thing")
        return np.full(len(run.times), math.nan if run.n == 5 else math.inf)

    monkeypatch.setitem(observables._things, "awkward", awkward)
    data = changed(
        TINY, axes={"start.n": [3, 4, 5]}, seeds=1, numbers={"a": {"observable": "awkward"}}
    )
    rows = rows_of(al.Sweep.from_dict(data))
    assert [row.status for row in rows] == ["ok", "refused", "ok"]
    assert [row.numbers.get("a", "") for row in rows] == [math.inf, "", None]
    assert rows[1].error == "AttributeError: no such thing"


def test_a_second_run_computes_nothing_and_other_numbers_compute_again(tmp_path, monkeypatch):
    sweep = al.Sweep.from_dict(TINY, tmp_path / "some.toml")
    assert sweep.run(workers=0).computed == 6
    before = results(sweep.rows_path)
    monkeypatch.setattr("attnlab.sweep.compute.integrate", None)  # whatever is computed now fails
    again = sweep.run(workers=0)
    assert (again.computed, again.kept, again.is_ok) == (0, 6, True) and results(
        sweep.rows_path
    ) == before
    monkeypatch.undo()
    plans = []
    numbers = {**SPREAD, "least": {"observable": "min_distance"}}
    more = al.Sweep.from_dict(changed(TINY, numbers=numbers), tmp_path / "some.toml")
    assert more.run(workers=0, look=plans.append).computed == 6 and plans[0].outdated == 6
    assert all(
        row[2]["spread"] == before[key][2]["spread"]
        for key, row in results(sweep.rows_path).items()
    )


def test_cells_that_still_exist_are_kept_others_named_and_pruned_on_request(tmp_path):
    path = tmp_path / "some.toml"
    al.Sweep.from_dict(TINY, path).run(workers=0)
    before, plans = results(path.with_suffix(".sqlite")), []
    other = al.Sweep.from_dict(changed(TINY, axes={"dynamics.beta": [2.0, 4.0]}), path)
    assert other.run(workers=0, look=plans.append).computed == 3
    assert plans[0].others == 3 and {row.axes["dynamics.beta"] for row in plans[0].named} == {0.5}
    now = results(path.with_suffix(".sqlite"))
    assert len(now) == 9 and now.items() >= before.items()
    assert other.run(workers=0, prune=True).computed == 0
    assert results(path.with_suffix(".sqlite")) == {
        key: row for key, row in now.items() if key[0] != "0.5"
    }


def test_the_small_version_is_a_part_of_the_same_file(tmp_path):
    sweep = al.Sweep.from_dict(
        changed(TINY, small={"dynamics.beta": [2.0, 3.0], "seeds": 1}), tmp_path / "some.toml"
    )
    plans = []
    assert sweep.run(workers=0, small=True).computed == 2
    assert sweep.run(workers=0, look=plans.append).computed == 5
    assert plans[0].others == 0 and len(results(sweep.rows_path)) == 7
    assert (
        sweep.run(workers=0, prune=True, small=True).computed == 0
        and len(results(sweep.rows_path)) == 7
    )


def test_what_was_done_before_an_interruption_is_kept(tmp_path):
    whole = al.Sweep.from_dict(TINY, tmp_path / "whole.toml")
    whole.run(workers=0)
    part = al.Sweep.from_dict(TINY, tmp_path / "part.toml")
    for stop in (KeyboardInterrupt, al.Cancelled):
        seen = []

        def count(fraction, doing, seen=seen, stop=stop):
            if " of 6" in doing:
                seen.append(doing)
                if len(seen) == 2:
                    raise stop

        with pytest.raises(KeyboardInterrupt):
            part.run(workers=0, progress=count)
        assert 0 < len(results(part.rows_path)) < 6
    progress = al.Progress(lambda fraction, doing: progress.cancel() if "of 6" in doing else None)
    with pytest.raises(al.Cancelled):
        part.run(workers=0, progress=progress)
    part.run(workers=0)
    assert results(part.rows_path) == results(whole.rows_path)


def test_the_estimate_is_made_of_timed_cells_whose_rows_are_kept(tmp_path):
    sweep = al.Sweep.from_dict(TINY, tmp_path / "some.toml")
    found = []

    def announce(estimate):
        found.append((estimate, len(results(sweep.rows_path))))

    assert sweep.run(workers=0, announce=announce).computed == 6
    ((estimate, done),) = found
    assert estimate.cells == 3 == done and estimate.workers == 1
    assert estimate.seconds == pytest.approx(3 * estimate.seconds_per_cell) and estimate.seconds > 0


class Fragile(Here):
    """An engine whose workers end with every task that holds a cell of `deadly`, the first time or
    every time.
    """

    def __init__(self, compute, deadly, times):
        super().__init__(compute)
        self.deadly, self.times, self.asked = deadly, times, []

    def results(self):
        from attnlab.sweep.engines import WorkerLost

        while self._tasks:
            task = self._tasks.popleft()
            self.asked.append([digest for digest, _ in task.cells])
            if self.deadly in self.asked[-1] and self.times > 0:
                self.times -= 1
                yield task, WorkerLost("It ended by the signal SIGSEGV.")
            else:
                yield task, self._compute(task)


@pytest.mark.parametrize(("times", "status"), [(1, "ok"), (2, "crashed")])
def test_a_cell_that_costs_two_workers_is_crashed_and_the_others_go_on(
    tmp_path, monkeypatch, times, status
):
    sweep = al.Sweep.from_dict(TINY, tmp_path / "some.toml")
    cells = [(sweep.digest_of(cell), cell) for cell in sweep.grid]
    monkeypatch.setattr("attnlab.sweep.runner._Run._size", lambda self: 3)
    rows, engine = Rows(sweep.rows_path), Fragile(Computer(sweep.head()), cells[1][0], times)
    with rows.open(), engine:
        tally = run_cells(cells, 6, engine, rows)
    assert tally.computed == 6 and tally.failed == (status == "crashed")
    found = {row.digest: row for row in rows.read()}
    assert [found[digest].status for digest, _ in cells] == ["ok", status, *["ok"] * 4]
    assert (found[cells[1][0]].error == "It ended by the signal SIGSEGV.") == (status == "crashed")
    digests = [digest for digest, _ in cells]
    # the task of three, each of its cells alone, and the other task of three
    assert sorted(map(tuple, engine.asked)) == sorted(
        [tuple(digests[:3]), *((one,) for one in digests[:3]), tuple(digests[3:])]
    )
