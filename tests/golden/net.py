"""A safety net for rewriting the equation: the bits of 48 runs, their limits and verdicts, the claims of every experiment at
size small, and what the commands print.

    python tests/golden/net.py make        writes net.json beside this file
    python tests/golden/net.py compare     says what has changed since; exit code 1 where something has

The bits belong to one machine: another processor may add in another order. There compare two trees instead, with
`--file other.json` for both. The net goes when it has done its work.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
from pathlib import Path

import numpy as np

import attnlab as al
from attnlab.experiments import experiments

FILE = Path(__file__).parent / "net.json"

COMMANDS = [
    ("list",), ("list", "--all"), ("list", "solve"), ("list", "dynamics"), ("predict", "polytope_2d"),
    ("predict", "hyperplanes_3d"),
    ("check", "polytope_2d"), ("check", "codimension"), ("limit", "polytope_3d"), ("limit", "polytope_times_line", "--json"),
    ("list", "--json"),
]


def specs() -> dict[str, al.Spec]:
    """Runs over all axes of the equation: kernels, masks, spaces, clocks, heads, frames, steppers, shapes of the weights."""
    plane = {"law": "uniform_cube", "n": 12, "d": 2, "low": -1.5, "high": 1.5, "rng": 3}
    space = plane | {"n": 17, "d": 3}
    wide = {"law": "normal", "n": 9, "d": 24, "scale": 0.4, "rng": 1}
    ball = {"law": "sphere", "n": 14, "d": 3, "rng": 2}
    one = {"family": "identity", "d": 2}
    skew = {"family": "spectrum", "eigenvalues": [1.1, [0.4, 0.7]], "basis": "random", "rng": 4}
    heads = {"family": "gaussian", "d": 3, "heads": 3, "rng": 5}
    thin = {"family": "gaussian", "d": 24, "heads": 2, "k": 5, "rank": 4, "rng": 6}
    big = {"family": "gaussian", "d": 40, "k": 36, "rng": 7}
    short, long = {"t_end": 2.0, "saves": 5}, {"t_end": 12.0, "saves": 7}
    found: dict[str, al.Spec] = {}

    def add(name, weights, start, solve, **dynamics):
        found[name] = al.Spec(weights=weights, start=start, solve=solve, dynamics=dynamics)

    for kernel in ("softmax", "exp_mean", "hardmax"):
        for mask in ("full", "causal"):
            small = plane | {"low": -0.5, "high": 0.5} if kernel == "exp_mean" else plane
            axes = {"kernel": kernel, "mask": mask}
            add(f"{kernel}-{mask}-plane", one, small, short, **axes)
            add(f"{kernel}-{mask}-z", one, small, short | {"frame": "z"}, **axes)
            add(f"{kernel}-{mask}-heads", heads, space | {"low": -0.3, "high": 0.3}, {"t_end": 1.0, "saves": 4}, **axes)
            add(f"{kernel}-{mask}-sphere", heads, ball, short, geometry="sphere", **axes)
            add(f"{kernel}-{mask}-layers", skew, space | {"low": -0.3, "high": 0.3}, {"layers": 8, "dt": 0.1}, **axes)
            add(f"{kernel}-{mask}-layers-sphere", heads, ball, {"layers": 6}, geometry="sphere", **axes)
    for stepper in ("euler", "rk4"):
        add(f"{stepper}-x", skew, space, short | {"stepper": stepper, "dt": 0.05})
        add(f"{stepper}-z", heads, space, {"t_end": 1.0, "saves": 3, "stepper": stepper, "dt": 0.1, "frame": "z"})
    for sigma in ("relu", "tanh", "identity"):
        layer = {"sigma": sigma, "W": [[1.0, 0.5], [-0.2, 0.8]], "bias": [0.1, -0.1]}
        add(f"feedforward-{sigma}", one, plane, short, feedforward=layer)
    add("late", one, plane, {"t_end": 30.0, "saves": 5})
    add("extended", skew, space, long)
    add("factored", thin, wide, short)
    add("factored-z", thin, wide, short | {"frame": "z"})
    add("tiled", big, {"law": "normal", "n": 70, "d": 40, "scale": 0.2, "rng": 8}, {"t_end": 1.0, "saves": 3})
    add("large", {"family": "identity", "d": 3}, {"law": "normal", "n": 1500, "d": 3, "rng": 9}, {"t_end": 0.5, "saves": 3})
    add("batch", skew, space | {"batch": 3}, short | {"measure_error": True})
    add("negative-beta", one, plane, short, beta=-2.0)
    add("no-beta", one, plane, short, kernel="hardmax", beta=0.0)
    return found


def bits(array) -> str:
    """A name for the very bits of an array."""
    array = np.ascontiguousarray(array)
    return hashlib.sha256(str((array.shape, array.dtype.str)).encode() + array.tobytes()).hexdigest()[:24]


def run_words(spec: al.Spec) -> dict[str, object]:
    """What a Spec gives: states, observables, limit and verdicts."""
    words: dict[str, object] = {}
    run = al.run_spec(spec, throw=False)
    words |= {"states": bits(run.states), "scale": bits(run.log_scale), "times": bits(run.times), "frame": str(run.frame),
              "status": str(np.ravel(np.asarray(run.status, dtype=object)).tolist()), "attention": bits(al.attention(run)),
              "error": None if run.error is None else bits(run.error)}
    velocity = al.velocity(run.dynamics.weights, run.x[..., 0, :, :]) if run.x.ndim == 3 else None
    words["velocity"] = None if velocity is None else bits(velocity)
    if run.n <= 20 and run.d <= 3:
        try:
            limits = al.limit(run)
        except ValueError as problem:
            words["limit"] = str(problem)
        else:
            words["limit"] = [[bits(one.labels), bits(one.leaders), bits(one.points), str(one.grade), one.reason, one.certificate]
                              for one in (limits if isinstance(limits, list | tuple) else [limits])]
        try:
            checked = al.check(run)
            checked = checked if checked and isinstance(checked[0], list | tuple) else [checked]
            words["verdicts"] = [[f"{one.theorem}: {one.outcome.name}: {one.measured!r} {one.unmet}" for one in each]
                                 for each in checked]
        except ValueError as problem:
            words["verdicts"] = str(problem)
    return words


def claim_words(name: str) -> list[str]:
    """The claims of an experiment at size small, with every digit."""
    experiment = experiments[name]
    data = experiment.compute("small", al.Progress())
    return [f"{claim.text}: {float(claim.measured)!r} in [{claim.low!r}, {claim.high!r}]" for claim in experiment.claims(data)]


def command_words(command: tuple[str, ...]) -> str:
    """What a command prints."""
    from typer.testing import CliRunner

    from attnlab.cli import app

    result = CliRunner(env={"COLUMNS": "160", "TERM": "dumb"}).invoke(app(), list(command))
    return f"exit {result.exit_code}\n{result.output}"


def collect(parts: list[str]) -> dict[str, object]:
    """Everything that the net holds."""
    found: dict[str, object] = {"machine": [platform.machine(), platform.processor(), np.__version__]}
    if "runs" in parts:
        for name, spec in specs().items():
            print(name, file=sys.stderr, flush=True)
            found[f"run {name}"] = run_words(spec)
    if "commands" in parts:
        for command in COMMANDS:
            found[f"command {' '.join(command)}"] = command_words(command)
    if "claims" in parts:
        for name in experiments:
            print(name, file=sys.stderr, flush=True)
            found[f"claims {name}"] = claim_words(name)
    return found


def main() -> int:
    """Make the net, or compare with it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["make", "compare"])
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--parts", nargs="+", default=["runs", "commands", "claims"])
    given = parser.parse_args()
    found = json.loads(json.dumps(collect(given.parts)))
    if given.what == "make":
        given.file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return 0
    kept = json.loads(given.file.read_text(encoding="utf-8"))
    changed = [name for name in found if found[name] != kept.get(name)]
    for name in changed:
        print(f"{name}:\n  before {kept.get(name)}\n  now    {found[name]}")
    print(f"{len(found)} compared, {len(changed)} changed")
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
