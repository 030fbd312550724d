"""From a Spec to arrays and to a run: `resolve(spec)` checks every name and key, `run_spec(spec)`
simulates, and `limit_of_spec(spec)` computes the limit.

    spec.weights  family = name, and that function's parameters      spec.dynamics  the equation
    spec.start    law = name, n, d, rng, parameters                  spec.solve     how long, how accurately
                  and, for every law, batch = b or moved = {token: place}

A key is valid if the function behind the name takes it, so a new family or law needs no second
change. If one of the two tables leaves out `d`, the other one decides. `rng` is a whole number, 0
by default: a Spec is one run, not a random law of runs.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from attnlab.analysis import observables
from attnlab.batches import Limits
from attnlab.capacity import check_memory
from attnlab.displayed import Displayed, short_repr
from attnlab.engine import simulate
from attnlab.limits import limit
from attnlab.progress import ProgressOption
from attnlab.registry import unknown_name
from attnlab.spec import SECTIONS
from attnlab.starts import move_tokens, start_laws
from attnlab.types import Dynamics, Limit, RunFailed, Spec, Trajectory, Weights
from attnlab.weights import weights_families

START_KEYS = ("batch", "moved")
"""Keys that every start law takes besides its own."""

DYNAMICS_KEYS = tuple(
    name for name in inspect.signature(Dynamics.of).parameters if name not in ("weights", "dt")
)
SOLVE_KEYS = (
    "t_end",
    "layers",
    "times",
    "saves",
    "rtol",
    "atol",
    "stepper",
    "dt",
    "frame",
    "max_steps",
    "measure_error",
    "rng",
)

WEIGHTS_STREAM = 0x57454947
"""Spawn key of the weights' stream ("WEIG" in ASCII; members of a batch of starts take 0, 1, 2,
...). Without a stream of their own, a Spec with the same rng in both tables would make the matrices
out of the same random numbers as the tokens.
"""

NUMBERS_A_MEMBER = 400
"""The memory of a member of a batch besides its tokens, in numbers of 8 bytes: queue, status and
times.
"""


@dataclass(frozen=True, eq=False)
class Resolved(Displayed):
    """A Spec as arrays: the equation, the first tokens, and how it is solved.

    Attributes
    ----------
    dynamics : Dynamics
        The equation. With layers, it holds their clock dt.
    x0 : array (n, d) or (batch, n, d)
        The first tokens.
    solve : mapping
        The keyword arguments of `simulate` besides the equation: simulate(dynamics, x0, **solve) is
        the run.
    spec : Spec
        The Spec.
    """

    dynamics: Dynamics
    x0: np.ndarray
    solve: Mapping[str, Any]
    spec: Spec
    __repr__ = short_repr


def resolve(spec: Spec) -> Resolved:
    """Return the equation, the first tokens and the options of a Spec. Check every name and key.

    Parameters
    ----------
    spec : Spec
        The Spec.

    Returns
    -------
    Resolved
        The arrays.

    Raises
    ------
    UnknownName
        A name or a key does not exist. The message suggests the nearest one.
    ValueError
        A value is invalid, or a file of numbers was not read.

    Examples
    --------
    >>> import attnlab as al
    >>> spec = al.Spec(weights={"family": "identity"}, start={"law": "uniform_cube", "n": 4, "d": 2}, solve={"t_end": 1.0})
    >>> al.resolve(spec).x0.shape
    (4, 2)
    """
    if not isinstance(spec, Spec):
        raise TypeError(
            f"A Spec is needed, got {type(spec).__name__}. Read one with Spec.load(path) or"
            " Spec.from_dict(table)."
        )
    try:
        return _resolved(spec)
    except ValueError as problem:
        if not spec.files:
            raise
        read = ", ".join(f"{where} from {name}" for where, name in spec.files.items())
        raise ValueError(f"{str(problem).rstrip('.')}. (Read from files: {read}.)") from problem


def _resolved(spec: Spec) -> Resolved:
    _check_files_read(spec)
    _check_observe(spec)
    _check_keys("dynamics", spec.dynamics, DYNAMICS_KEYS)
    if "certify" in spec.solve:
        raise ValueError(
            "Spec.solve.certify has a new name, measure_error: it measures the error of a run. A"
            " certificate comes from `attnlab limit`. Rename the key."
        )
    _check_keys("solve", spec.solve, SOLVE_KEYS)
    for name in spec.observe:
        observables[name]  # raises with the nearest name
    weights, x0 = _draw(spec)
    try:
        dynamics = Dynamics.of(
            weights,
            **spec.dynamics,
            dt=spec.solve.get("dt", 1.0) if "layers" in spec.solve else None,
        )
    except (TypeError, ValueError) as problem:
        _check_rows("Spec.dynamics", spec.dynamics, problem)
        if isinstance(problem, TypeError):  # a word instead of a table: an error in the Spec
            raise ValueError(f"Spec.dynamics: {problem}") from problem
        raise
    if not isinstance(measure_error := spec.solve.get("measure_error", False), bool):
        raise ValueError(f"Spec.solve.measure_error must be true or false, got {measure_error!r}.")
    solve = {
        key: value for key, value in spec.solve.items() if key != "dt" or not dynamics.is_layers
    }
    return Resolved(dynamics, x0, {**solve, "observe": tuple(spec.observe)}, spec)


def _take_resolved(given: Spec | Resolved) -> Resolved:
    return given if isinstance(given, Resolved) else resolve(given)


def run_spec(
    spec: Spec | Resolved, *, progress: ProgressOption = False, throw: bool = True
) -> Trajectory:
    """Simulate a Spec and return the Trajectory, with the Spec attached.

    Parameters
    ----------
    spec : Spec or Resolved
        The run.
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel.
    throw : bool, optional
        Whether a run that does not reach its end raises RunFailed. False returns the part that was
        computed.

    Returns
    -------
    Trajectory
        The run.

    Raises
    ------
    RunFailed
        The run did not reach its end. `.run` is the part that was computed.

    Examples
    --------
    >>> import attnlab as al
    >>> spec = al.Spec(weights={"family": "identity"}, start={"law": "uniform_cube", "n": 4, "d": 2}, solve={"t_end": 1.0})
    >>> run = al.run_spec(spec)
    >>> run.spec == spec, run.times[-1] == 1.0
    (True, np.True_)
    """
    resolved = _take_resolved(spec)
    try:
        run = simulate(
            resolved.dynamics, resolved.x0, **resolved.solve, progress=progress, throw=throw
        )
    except RunFailed as problem:
        raise type(problem)(
            str(problem), dataclasses.replace(problem.run, spec=resolved.spec)
        ) from None
    return dataclasses.replace(run, spec=resolved.spec)


def limit_of_spec(
    spec: Spec | Resolved,
    *,
    times: Any = None,
    digits: int | None = None,
    work: float | None = None,
    budget: float = 60.0,
    progress: ProgressOption = False,
    proof: bool = False,
) -> Limit | Limits:
    """Return the Limit of a Spec, resolved or not, with the Spec attached; for a batch a list. In
    [solve] only the clock counts.

    proof: also prove it, as in al.limit.
    progress: False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
    cancel.
    """
    resolved = _take_resolved(spec)
    found = limit(
        resolved.dynamics,
        resolved.x0,
        times=times,
        digits=digits,
        **({} if work is None else {"work": work}),
        budget=budget,
        progress=progress,
        proof=proof,
    )
    if isinstance(found, list):
        return Limits(dataclasses.replace(member, spec=resolved.spec) for member in found)
    return dataclasses.replace(found, spec=resolved.spec)


def _draw(spec: Spec) -> tuple[Weights, np.ndarray]:
    """Return the weights and the first tokens. The one that needs d from the other is drawn second.

    The checks of weights and first tokens refuse values that overflow as not finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _draw_both(spec)


def _draw_both(spec: Spec) -> tuple[Weights, np.ndarray]:
    family = _Call("weights", "family", weights_families, spec.weights)
    common = {key: spec.start[key] for key in START_KEYS if key in spec.start}
    own = {key: value for key, value in spec.start.items() if key not in START_KEYS}
    law = _Call("start", "law", start_laws, own, extra=START_KEYS)
    seed = _weights_seed(family.seed)
    if law.needs_d and not family.needs_d:
        weights = family(rng=seed)
        return weights, _tokens(law, common, d=weights.d)
    x0 = _tokens(law, common)
    return family(rng=seed, d=x0.shape[-1]), x0


def draw_start(start: Mapping[str, Any], d: int) -> np.ndarray:
    """Return the first tokens of a table [start], for weights of dimension d, as in `resolve`,
    without the equation.
    """
    own = {key: value for key, value in start.items() if key not in START_KEYS}
    law = _Call("start", "law", start_laws, own, extra=START_KEYS)
    with np.errstate(over="ignore", invalid="ignore"):
        return _tokens(
            law,
            {key: start[key] for key in START_KEYS if key in start},
            **({"d": d} if law.needs_d else {}),
        )


def _tokens(law: _Call, common: Mapping[str, Any], **known: Any) -> np.ndarray:
    """Return the first tokens (n, d) or (batch, n, d), from the law and the common keys."""
    if "batch" not in common:
        tokens = law(rng=law.seed, **known)
        return (
            move_tokens(tokens, common["moved"], "Spec.start.moved")
            if "moved" in common
            else tokens
        )
    if "moved" in common:
        raise ValueError(
            "Spec.start.moved moves tokens of one start, but a batch has several starts. Leave out"
            " batch or moved."
        )
    return _batch_of_tokens(law, common["batch"], known)


def _batch_of_tokens(law: _Call, batch: Any, known: Mapping[str, Any]) -> np.ndarray:
    """Return the first tokens (batch, n, d). The random stream of a member does not depend on the
    number of members.
    """
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise ValueError(
            f"Spec.start.batch must be a whole number of members, 1 or more, got {batch!r}."
        )
    parent = np.random.SeedSequence(law.seed)
    first = law(rng=np.random.default_rng(parent.spawn(1)[0]), **known)
    numbers = batch * (2 * first.size + NUMBERS_A_MEMBER)
    check_memory(
        f"Spec.start.batch = {batch} members of {len(first)} tokens",
        numbers,
        "Choose a smaller batch.",
    )
    tokens = np.empty((batch, *first.shape))
    tokens[0] = first
    for member in range(1, batch):
        tokens[member] = law(rng=np.random.default_rng(parent.spawn(1)[0]), **known)
    return tokens


def _weights_seed(seed: int) -> int:
    """Return the seed of the family. `source` of the weights names it, so that the draw can be
    repeated by hand.
    """
    return int(
        np.random.SeedSequence(seed, spawn_key=(WEIGHTS_STREAM,)).generate_state(1, np.uint64)[0]
    )


class _Call:
    """A registered function and the table of a Spec that fills its parameters, checked against its
    signature.
    """

    def __init__(
        self,
        section: str,
        key: str,
        registry: Any,
        table: Mapping[str, Any],
        extra: tuple[str, ...] = (),
    ):
        if key not in table:
            known = ", ".join(registry)
            raise ValueError(
                f"Spec.{section} needs the key {key!r}, the name of a {registry.kind}. Known:"
                f" {known}."
            )
        if not isinstance(table[key], str):
            raise ValueError(
                f"Spec.{section}.{key} must be the name of a {registry.kind}, got {table[key]!r}."
            )
        self.section = f"Spec.{section}"
        self.where = f"Spec.{section} ({key} = {table[key]!r})"
        self.function: Callable[..., Any] = registry[table[key]]
        self.given = {name: value for name, value in table.items() if name != key}
        self.parameters = _parameters(self.function)
        if not any(p.kind is p.VAR_KEYWORD for p in self.parameters.values()):
            for name in self.given:
                if name not in self.parameters:
                    raise unknown_name(
                        f"key of {self.where}", name, (key, *self.parameters, *extra)
                    )

    @property
    def needs_d(self) -> bool:
        """Whether the function needs d and the table does not have it."""
        return (
            "d" in self.parameters
            and self.parameters["d"].default is inspect.Parameter.empty
            and "d" not in self.given
        )

    @property
    def seed(self) -> int:
        """The whole number `rng` of the table, 0 by default."""
        seed = self.given.get("rng", 0)
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ValueError(
                f"The key rng of {self.where} must be a whole number, 0 or more, got {seed!r}."
            )
        return seed

    def __call__(self, **known: Any) -> Any:
        """Call the function with the table. `known` fills in d, and always rng, if the function
        takes them.
        """
        filled = {
            name: known[name]
            for name in known
            if name in self.parameters and (name == "rng" or name not in self.given)
        }
        arguments = {**self.given, **filled}
        missing = [
            name
            for name, p in self.parameters.items()
            if p.default is p.empty
            and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
            and name not in arguments
        ]
        if missing:
            raise ValueError(
                f"{self.where} needs the key {missing[0]!r}. It takes:"
                f" {', '.join(self.parameters)}."
            )
        try:
            return self.function(**arguments)
        except (TypeError, ValueError) as problem:
            _check_rows(self.section, self.given, problem)
            if isinstance(problem, TypeError):  # a word instead of a number: an error in the table
                raise ValueError(
                    f"{self.where} has a value of the wrong type: {problem}"
                ) from problem
            raise


@cache
def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def _check_keys(section: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    for key in table:
        if key not in known:
            raise unknown_name(f"key of Spec.{section}", key, known)


def _check_files_read(spec: Spec) -> None:
    """Refuse names of files of numbers that were not read: only Spec.load and spec.read_files
    do.
    """
    for where, name in spec.unread_files.items():
        raise ValueError(
            f"Spec.{where} = {name!r} names a file that was not read. Use Spec.load(path) or "
            "spec.read_files(folder), or give the numbers."
        )


def _check_observe(spec: Spec) -> None:
    """Refuse `observe` inside a section: in TOML a line belongs to the [section] above it, so this
    is easily done.
    """
    for section in SECTIONS:
        if "observe" in getattr(spec, section):
            raise ValueError(
                "observe is a list at the top of the file, before the first [section], but here it"
                f' is inside [{section}]. Move it up: observe = ["diameter"].'
            )


def _check_rows(where: str, value: Any, problem: Exception) -> None:
    """Raise a ValueError that names the ragged row. NumPy only says that it is not an array."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            _check_rows(f"{where}.{key}", entry, problem)
    elif isinstance(value, list) and value and all(isinstance(row, list) for row in value):
        for number, row in enumerate(value):
            if len(row) != len(value[0]):
                lengths = f"row 0 has {len(value[0])} entries and row {number} has {len(row)}"
                raise ValueError(
                    f"{where} must have rows of equal length, but {lengths}."
                ) from problem
            _check_rows(f"{where}[{number}]", row, problem)
