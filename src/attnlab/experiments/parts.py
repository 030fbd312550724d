"""The computation of an experiment as declared parts: a grid of cases each, and what is measured of
one case.

    compute=Parts(
        {
            "limits": Part(count_limits, Grid({"law": LAWS, "n": [10, 30], "start": range(8)},
            small={"start": range(2)}),
                           doing="limits of {n} tokens", share=0.9),
            "reference": Part(compare_with_scipy),                         # no grid: one case
        },
        prepare=Trained, leave_out=Trained.without, assemble=assemble,
    )

    count_limits(context, law, n, start) -> a row {"limits": 3, "t": 2.5}, or a list of rows
    prepare(size, model="minilm")        -> what all cases share, context.shared; its keywords are the experiment's options
    leave_out(shared, case)              -> why a case cannot be measured here, "" where it can
    assemble(results)                    -> {name: Dataset} for claims and figures; without it each part's table or Dataset

The runner owns the rest: loops, progress, one BLAS thread, tables, and rows on disk, from which an
interrupted attempt continues. A case is everything that a measure depends on, including its seed
(an axis, usually `rng`, `seed`, `draw` or `start`). Nothing passes from one case to the next, so a
case has the same bits whenever it is measured. `assemble` joins cases.

How the kinds of experiments fit
- A table, one row per case (the draws of feedforward and of leaders): one grid, and no assemble.
- Numbers of starts that depend on the case (20 draws of 10 tokens, 6 of 300): a list of grids, one
  after another, as `grids_of` makes it, or a function from the size to such a list.
- Several tables of one run (rates: fits, rows of attention, curves): measure returns {"fits": rows,
  "curves": arrays}, and assemble asks for results.rows("starts", "fits").
- Curves, tokens and labels: entries of a row may be arrays; `table_of_rows` takes the names of
  their axes.
- A run with its limit and verdicts (the portraits): a part without a grid that returns {name:
  Dataset}, as `study` does.
- Checks beside the grid (planted answers, SciPy): parts of their own. Where two parts are compared
  (certified against observed), both measure the same cases and assemble compares.
- Trained models: prepare loads them once; without the model leave_out says why, and the cases that
  need it are left out.
- Long cases in NumPy, which uses one core: `at_once=2` measures two cases in two threads. The
  engine's own batches need nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from attnlab.displayed import Displayed, short_repr
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.kept_rows import KeptRows
from attnlab.progress import Progress, track
from attnlab.sweep.grid import Cell, Grid

Grids = Grid | Sequence[Grid]


def grids_of(keys: str, places: Iterable[Sequence[Any]], first: int = 0) -> list[Grid]:
    """Return one grid for each place, with a number of draws of its own.

    keys: the names of the axes, "law, n, start" for the places [("cube", (10, 30), 8), ("ball", 10,
    3)]. An entry of a place is a value or a tuple of values; its last entry is the number of draws,
    which are numbered from `first`.
    """
    names = keys.split(", ")
    return [
        Grid(
            dict(
                zip(
                    names,
                    [
                        *(one if isinstance(one, tuple) else (one,) for one in values),
                        range(first, first + draws),
                    ],
                    strict=True,
                )
            )
        )
        for *values, draws in places
    ]


@dataclass(frozen=True)
class Context(Displayed):
    """What a measure knows beside its case: the size, what `prepare` returned, and the progress of
    this case.
    """

    size: str
    shared: Any
    progress: Progress
    __repr__ = short_repr

    def of_case(self, progress: Progress) -> Context:
        """The same with the progress of one case."""
        return replace(self, progress=progress)


@dataclass(frozen=True)
class Part(Displayed):
    """A grid of cases and its measure(context, **case).

    grid: a Grid, several of them one after another, or a function from the size to these; without
    one there is one case, {}. doing: words for the progress, with {key} of the case. share: this
    part's share of the work, relative to the other parts. work(**case): the work of a case,
    relative to the other cases. at_once: how many cases are measured at once, in threads.
    """

    measure: Callable[..., Any]
    grid: Grids | Callable[[str], Grids] | None = None
    doing: str = ""
    share: float = 1.0
    work: Callable[..., float] | None = None
    at_once: int = 1
    __repr__ = short_repr

    def cases(self, size: str) -> list[Cell]:
        """The cases at a size, in the order of the grids; "small" takes the small values of each
        grid.
        """
        if self.grid is None:
            return [{}]
        found = self.grid if isinstance(self.grid, Grid | Sequence) else self.grid(size)
        grids = [found] if isinstance(found, Grid) else found
        return [case for one in grids for case in (one.reduced() if size == "small" else one)]


@dataclass(frozen=True)
class Results(Displayed):
    """What was measured, for `assemble`. why: the reason for which cases were left out, "" where
    none was.
    """

    size: str
    shared: Any
    why: str
    found: Mapping[str, Sequence[tuple[Cell, Any]]] = field(repr=False)
    __repr__ = short_repr

    def values(self, part: str) -> list[Any]:
        """What the measure of a part returned, case by case."""
        return [value for _, value in self.found[part]]

    def rows(self, part: str, name: str = "") -> list[dict[str, Any]]:
        """The rows of a part: the keys of the case, then what was measured. name: which table,
        where measure returns several.
        """
        found = []
        for case, value in self.found[part]:
            measured = value[name] if name else value
            found += [
                {**case, **row}
                for row in ([measured] if isinstance(measured, Mapping) else measured)
            ]
        return found


def assemble_tables(results: Results) -> dict[str, Any]:
    """A table of the rows of each part; a part that returns Datasets gives these."""
    data: dict[str, Any] = {}
    for part in results.found:
        first = next(iter(results.values(part)), None)
        if hasattr(first, "data_vars"):
            data[part] = first
        elif (
            isinstance(first, Mapping)
            and first
            and all(hasattr(one, "data_vars") for one in first.values())
        ):
            data |= first
        else:
            data[part] = table_of_rows(results.rows(part))
            if results.why:
                data[part].attrs["why"] = results.why
    return data


@dataclass(frozen=True, eq=False)
class Parts(Displayed):
    """The parts of an experiment, by name, in the order of computing; it is called like a function
    compute(size, progress).
    """

    parts: Mapping[str, Part]
    assemble: Callable[[Results], dict[str, Any]] = assemble_tables
    prepare: Callable[..., Any] | None = None
    leave_out: Callable[[Any, Cell], str] | None = None
    __repr__ = short_repr

    @property
    def __signature__(self) -> inspect.Signature:
        """size, progress and the options of `prepare`, by which options are checked."""
        words = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            for name in ("size", "progress")
        ]
        taken = (
            inspect.signature(self.prepare).parameters.values() if self.prepare is not None else ()
        )
        options = [
            one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in taken if one.name != "size"
        ]
        return inspect.Signature([*words, *options])

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """Everything that computes: the measures, `prepare` and `assemble`."""
        return [
            *(part.measure for part in self.parts.values()),
            self.assemble,
            *([self.prepare] if self.prepare else []),
        ]

    def __call__(
        self,
        size: str,
        progress: Progress | None = None,
        *,
        kept: KeptRows | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Measure every case that `kept` does not have, and return the Datasets."""
        from attnlab.engine.threads import one_blas_thread
        from attnlab.experiments.measuring import measure_part

        inspect.signature(self).bind(
            size, progress, **options
        )  # a TypeError names an option that is not taken
        kept = kept if kept is not None else KeptRows()
        whole, before, found, why = sum(part.share for part in self.parts.values()), 0.0, {}, ""
        with track(progress, "preparing") as progress:
            with (
                one_blas_thread()
            ):  # matrices of experiments are small: they are slower on several threads
                shared = self.prepare(size, **options) if self.prepare is not None else None
                for name, part in self.parts.items():
                    cases, reason = self._divide(part.cases(size), shared)
                    inner = progress.part(before / whole, (before + part.share) / whole)
                    found[name] = measure_part(
                        name, part, cases, kept, Context(size, shared, inner)
                    )
                    before, why = before + part.share, why or reason
            return self.assemble(Results(size, shared, why, found))

    def _divide(self, cases: list[Cell], shared: Any) -> tuple[list[Cell], str]:
        """The cases that can be measured here, and why others are left out, "" where none is."""
        reasons = [
            self.leave_out(shared, case) if self.leave_out is not None else "" for case in cases
        ]
        return [case for case, why in zip(cases, reasons, strict=True) if not why], next(
            filter(None, reasons), ""
        )
