"""The inputs of the verbs: a Spec from a file or by the name of an example, or a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnlab.cli.summary import is_interrupted, sentence
from attnlab.examples import example_names, example_spec
from attnlab.registry import unknown_name
from attnlab.run import run_spec
from attnlab.types import RunFailed, RunInterrupted, Spec, Trajectory

SPEC_SUFFIXES = (".toml", ".json")


def read_spec(source: Path) -> Spec:
    """Return the Spec in a file, or the example of that name. Raises ValueError, OSError or
    UnknownName.
    """
    if is_example(source):
        return example_spec(str(source))
    if is_word(source):
        raise unknown_name("file or example Spec", str(source), example_names())
    try:
        return Spec.load(source)
    except IsADirectoryError:
        raise ValueError(f"{source} is a folder: give a Spec, a .toml or .json file.") from None
    except FileNotFoundError as problem:
        if source.stem in example_names():
            raise ValueError(
                f"{problem} To use the example, give its name alone: {source.stem}."
            ) from None
        raise
    except TypeError as problem:
        raise ValueError(str(problem)) from None


def read_run(source: Path, **options: Any) -> Trajectory:
    """Return the run in a .nc file, or simulate a Spec (a file, or an example's name). A failed run
    raises RunFailed.
    """
    if is_spec(source):
        run = run_spec(read_spec(source), throw=False, **options)
        if not run.is_ok:
            raise (RunInterrupted if is_interrupted(run) else RunFailed)(sentence(run), run)
        return run
    from attnlab.store import load

    found = load(source)
    if not isinstance(found, Trajectory):
        raise ValueError(
            f"{source} must hold a run or a Spec; it holds {type(found).__name__}. In Python, "
            "al.plot(al.load(path)) draws it."
        )
    return found


def is_spec(source: Path) -> bool:
    """Whether the name is that of a Spec (a file or an example), not of a run."""
    return source.suffix in SPEC_SUFFIXES or is_example(source) or is_word(source)


def is_example(source: Path) -> bool:
    """Whether an example Spec, but no file, has that name."""
    return not source.is_file() and str(source) in example_names()


def is_word(source: Path) -> bool:
    """Whether it can only be a name: no file exists there, and it has neither a suffix nor a
    folder.
    """
    return not source.exists() and not source.suffix and len(source.parts) == 1
