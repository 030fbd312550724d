"""Damaged Specs: each is refused with a sentence, or gives a run that is finite or says why it
stopped.
"""

from __future__ import annotations

import contextlib
import copy
import json
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
import workers
from mutations import damage_bytes, damage_table
from worker import Fault

FEW, MANY = 160, 4000

SIZES = (
    "n",
    "d",
    "batch",
    "saves",
    "layers",
    "t_end",
    "max_steps",
    "count",
    "heads",
    "rank",
    "times",
)
AFFORDABLE, BEYOND = 300, 10**9
"""A size between the two may take minutes and be right; it is not tried. Sizes beyond must be
refused.
"""

KERNELS, GEOMETRIES, MASKS = (
    ("softmax", "exp_mean", "hardmax"),
    ("euclidean", "sphere"),
    ("full", "causal"),
)

SPECS: list[dict[str, Any]] = [
    {
        "weights": {"family": "identity"},
        "start": {"law": "uniform_cube", "n": 5, "d": 3, "low": -5, "high": 5, "rng": 0},
        "solve": {"t_end": 0.5, "saves": 3, "max_steps": 200},
    },
    {
        "weights": {"family": "gaussian", "d": 2, "rng": 1},
        "start": {"law": "sphere", "n": 4, "batch": 2},
        "dynamics": {"geometry": "sphere", "beta": 2.0},
        "solve": {"times": [0.0, 0.5, 1.0], "rtol": 1e-6, "atol": 1e-9},
    },
    {
        "weights": {
            "family": "spectrum",
            "eigenvalues": [1.0, 0.5, -0.5],
            "basis": "random",
            "rng": 2,
        },
        "start": {"law": "normal", "n": 6},
        "dynamics": {"kernel": "hardmax", "mask": "causal"},
        "solve": {"layers": 4, "dt": 0.25},
        "observe": ["diameter", "cluster_count"],
    },
    {
        "weights": {"family": "identity", "d": 2},
        "start": {"law": "circle", "n": 7},
        "dynamics": {
            "feedforward": {"sigma": "tanh", "W": [[1.0, 0.0], [0.0, 1.0]], "bias": [0.1, 0.2]}
        },
        "solve": {"t_end": 1.0, "stepper": "rk4", "dt": 0.125, "frame": "z"},
        "observe": ["energy"],
    },
    {
        "weights": {"family": "identity", "d": 3},
        "start": {"law": "sphere", "n": 20},
        "dynamics": {"geometry": "sphere", "beta": 9.0},
        "solve": {"t_end": 50.0, "rtol": 1e-3},
    },
]


def prepare(folder: Path) -> None:
    """Compile what sound Specs need, so that no case waits for it."""
    from attnlab.run import run_spec
    from attnlab.types import Spec

    for table in SPECS:
        run_spec(Spec.from_dict(table))


def strange_table(table: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A Spec of known words and keys that nobody would combine, and with numbers at the ends of
    what numbers can be.
    """
    from attnlab.analysis import observables
    from attnlab.starts import start_laws
    from attnlab.weights import weights_families

    changed = copy.deepcopy(table)
    dynamics, solve = changed.setdefault("dynamics", {}), changed["solve"]
    tiny_to_huge = (0.0, 1e-300, 1e-9, 0.3, 1.0, 7.0, 50.0, 1e4, 1e9, 1e150, 1e300, 1e308)
    sizes = {"normal": "scale", "sphere": "radius", "circle": "radius", "uniform_cube": "high"}

    def draw_start() -> None:
        law = rng.choice(sorted(start_laws))
        changed["start"] = {"law": law, "n": rng.choice((1, 2, 5, 30)), "d": 2}

    def scale_start() -> None:
        start = changed["start"]
        start[sizes.get(start["law"], "rng")] = rng.choice(tiny_to_huge)

    def ask_for_too_much() -> None:
        beyond = rng.choice((BEYOND, 2**31, 10**12, 2**63, 10**30))
        changed[rng.choice(("start", "solve"))][
            rng.choice(("n", "d", "batch", "saves", "layers", "max_steps"))
        ] = beyond

    steps = {
        "size": ask_for_too_much,
        "family": lambda: changed.update(
            weights={"family": rng.choice(sorted(weights_families)), "d": 2}
        ),
        "law": draw_start,
        "scale": scale_start,
        "words": lambda: dynamics.update(
            kernel=rng.choice(KERNELS), geometry=rng.choice(GEOMETRIES), mask=rng.choice(MASKS)
        ),
        "beta": lambda: dynamics.update(beta=rng.choice((-1, 1)) * rng.choice(tiny_to_huge)),
        "accuracy": lambda: solve.update(
            {rng.choice(("rtol", "atol")): rng.choice((1e-14, 1e-6, 0.1, 0.5, 1.0, 1e2, 1e300))}
        ),
        "stepper": lambda: solve.update(
            stepper=rng.choice(("adaptive", "euler", "rk4")), dt=rng.choice((1e-3, 0.1, 3.0, 1e200))
        ),
        "frame": lambda: solve.update(frame=rng.choice(("auto", "x", "z"))),
        "end": lambda: solve.update(
            t_end=rng.choice((1e-300, 0.1, 20.0, 250.0)), max_steps=rng.choice((1, 50, 300))
        ),
        "measure_error": lambda: solve.update(measure_error=True),
        "observe": lambda: changed.update(observe=rng.sample(sorted(observables), 2)),
    }
    for name in rng.sample(sorted(steps), rng.randint(1, 4)):
        steps[name]()
    return changed


def damaged_file(rng: random.Random, folder: Path) -> Path:
    """A Spec on disk, .toml or .json, with damage in its bytes or in its table, or a strange
    one.
    """
    table = rng.choice(SPECS)
    is_json = rng.random() < 0.4
    data = json.dumps(table).encode() if is_json else tomli_w.dumps(table).encode()
    how = rng.random()
    if how < 0.02:  # Python writes nothing deep; by hand it can be done
        levels = rng.choice((100, 1000, 100_000))
        deep = "[" * levels + "]" * levels
        data = (f'{{"weights": {deep}}}' if is_json else f"weights = {deep}").encode()
    elif how < 0.3:
        data = damage_bytes(data, rng)
    else:
        changed = damage_table(table, rng) if how < 0.6 else strange_table(table, rng)
        try:
            data = json.dumps(changed).encode() if is_json else tomli_w.dumps(changed).encode()
        except (
            TypeError,
            RecursionError,
            AttributeError,
            ValueError,
        ):  # TOML has no null and no depth
            data = damage_bytes(data, rng)
    path = folder / ("spec.json" if is_json else "spec.toml")
    path.write_bytes(data)
    return path


def numbers_in(value: Any, key: str = "") -> Iterator[tuple[str, float]]:
    """(key, number) of all numbers in a table."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from numbers_in(entry, str(name))
    elif isinstance(value, list):
        for entry in value:
            yield from numbers_in(entry, key)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield key, value


def is_costly(path: Path) -> bool:
    """Whether the Spec asks for something large that a patient person could have meant."""
    try:
        read = json.loads if path.suffix == ".json" else tomllib.loads
        return any(
            key in SIZES and AFFORDABLE < abs(number) < BEYOND
            for key, number in numbers_in(read(path.read_text()))
        )
    except (ValueError, RecursionError):
        return False


def attempt(rng: random.Random, folder: Path) -> None:
    """One damaged Spec through the reader and the engine, and some of them through the command
    line.
    """
    from attnlab.cli.inputs import read_spec
    from attnlab.run import run_spec

    path = damaged_file(rng, folder)
    if is_costly(path):
        return
    if rng.random() < 0.1:
        through_the_command_line(path, folder)
    check_run(run_spec(read_spec(path), throw=False))


def check_run(run: Any) -> None:
    """A run that went well is finite; one that stopped says why, and ends before its first bad
    time.
    """
    from attnlab.types import Status

    statuses = np.ravel(np.asarray(run.status, dtype=object))
    states = run.states.reshape(len(statuses), *run.states.shape[-3:])
    for status, member in zip(statuses, states, strict=True):
        if (status is Status.OK or not run.batch) and not (
            np.isfinite(member).all() and np.isfinite(run.times).all()
        ):
            raise Fault(
                "unhealthy",
                f"{status} with numbers that are not finite, {run.spec.to_json()[:300]}",
            )
        if status is Status.OK and not all(
            np.isfinite(values).all() for values in run.observed.values() if not run.batch
        ):
            raise Fault(
                "unhealthy",
                f"{status} with an observable that is not finite, {run.spec.to_json()[:300]}",
            )
        if len(status.value) < 10:
            raise Fault("words", f"The status {status} says nothing.")
    with contextlib.suppress(OverflowError):  # x may be beyond what numbers can be, and says so
        if run.is_ok and not np.isfinite(run.x).all():
            raise Fault("unhealthy", f"x is not finite, {run.spec.to_json()[:300]}")


def through_the_command_line(path: Path, folder: Path) -> None:
    """`attnlab run` ends with a code that says how, and with no traceback."""
    from typer.testing import CliRunner

    from attnlab.cli import app

    result = CliRunner().invoke(app(), ["run", str(path), "-o", str(folder / "run.nc"), "--force"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise Fault(
            "traceback", f"attnlab run: {type(result.exception).__name__}: {result.exception}"
        )
    if result.exit_code not in (0, 1, 2) or result.exit_code and not result.stderr.strip():
        raise Fault("words", f"attnlab run: code {result.exit_code}, {result.stderr!r}")


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(range(FEW), id="few"),
        pytest.param(range(FEW, MANY), id="many", marks=pytest.mark.slow),
    ],
)
def test_every_damaged_spec_gets_a_result_or_a_sentence(numbers, tmp_path):
    outcomes = workers.try_all("test_specs", numbers, tmp_path)
    counts = workers.counted(outcomes)
    workers.assert_clean(outcomes)
    assert counts["result"] > 0.05 * len(numbers) and counts["refused"] > 0.4 * len(numbers), counts
