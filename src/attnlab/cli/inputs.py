"""What the verbs share about files: reading a Spec or a run, and refusing to write over something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnlab.cli.summary import is_interrupted, sentence
from attnlab.types import RunFailed, RunInterrupted, Spec, Trajectory


def read_spec(path: Path) -> Spec:
    """The Spec in a file; whatever is wrong with it is a ValueError or an OSError."""
    try:
        return Spec.load(path)
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder: give a Spec, a .toml or .json file.") from None
    except TypeError as problem:
        raise ValueError(str(problem)) from None


def read_run(path: Path, **options: Any) -> Trajectory:
    """The run in a .nc file, or the run of a .toml or .json Spec, simulated now; then one that fails raises RunFailed."""
    if path.suffix in (".toml", ".json"):
        from attnlab.run import run_spec

        run = run_spec(read_spec(path), throw=False, **options)
        if not run.is_ok:
            raise (RunInterrupted if is_interrupted(run) else RunFailed)(sentence(run), run)
        return run
    from attnlab.store import load

    return load(path)


def check_free(path: Path | None, is_forced: bool) -> None:
    """Refuse a place that nothing can be written to, before the work is done and not after."""
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of a file.")
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent}: make it first.")
    if path.exists() and not is_forced:
        raise ValueError(f"{path} exists already: choose another name, or add --force to replace it.")
