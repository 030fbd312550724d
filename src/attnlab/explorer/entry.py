"""al.explore: write a run as one page."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.engine import simulate
from attnlab.explorer.embed import make_dossier
from attnlab.explorer.members import strange_members
from attnlab.explorer.page import GENERATOR, frame_page, make_page
from attnlab.explorer.payload import (
    MOST_LIVE_DIMENSIONS,
    live_spec,
    make_payload,
    spec_of_run,
    theory_record,
    write_spec,
)
from attnlab.explorer.presets import Preset, presets, recorded_head
from attnlab.explorer.recording import clock_unit, frame_times, record_run
from attnlab.explorer.sources import TRAINED, Source, check_member, read_source, take_member
from attnlab.explorer.trained import model_payload
from attnlab.files import write_text
from attnlab.limits import limit
from attnlab.progress import Progress, ProgressOption, track
from attnlab.registry import unknown_name
from attnlab.run import resolve
from attnlab.types import Dynamics, Limit, Spec, Status, Trajectory

PANELS = (
    "presets",
    "verdict",
    "spectrum",
    "attention",
    "controls",
    "sweep",
    "footer",
    "legend",
    "equation",
    "theme",
)
"""The panels that can be hidden: PANELS of layout.js."""

CONTROLS = (
    "n",
    "beta",
    "t_end",
    "law",
    "rng",
    "start",
    "kernel",
    "mask",
    "geometry",
    "frame",
    "drag",
    "spectrum",
    "controls",
)
"""The controls that can be locked; `controls` means all of them."""

THEMES = ("auto", "light", "dark")
WORK, BUDGET = 500_000.0, 20.0
"""Evaluations and events, and seconds, for the certified limit of a page, as in al.limit."""

DEFAULT_OUTPUT = Path("explorer.html")
HEIGHT = 860
"""Pixels of the page inside a notebook."""


class Page(type(Path())):  # type: ignore[misc]
    """The path of a page. In a notebook it shows the page."""

    def _repr_html_(self) -> str:
        try:
            text = Path(self).read_text(encoding="utf-8")
        except OSError:
            return f"<code>{html.escape(str(self))}</code>"
        return frame_page(text, HEIGHT)


def explore(
    source: Any = None,
    output: str | os.PathLike[str] | None = None,
    *,
    record: bool = False,
    member: int = 0,
    hide: Sequence[str] = (),
    lock: Sequence[str] = (),
    guess: bool = False,
    theme: str = "auto",
    title: str | None = None,
    work: float = WORK,
    budget: float = BUDGET,
    progress: ProgressOption = False,
) -> Page:
    """Write a run as an interactive page, one HTML file that needs no network, and return its path.

    The page itself integrates runs of up to 2000 tokens in up to three dimensions. Other runs are
    shown as recordings.

    Parameters
    ----------
    source : optional
        What the page shows: None (all presets), the name of a preset or of an example Spec, a Spec,
        a Trajectory, a Limit, a Flow of al.models.flow, the Dataset of al.models.sentence, a list
        of such Flows and Datasets (the page then has a button for each), the Dossier of
        al.models.dossier (the page then is the whole dossier, and only `output` and `progress`
        count), or the path of a Spec (.toml, .json) or of a saved result (.nc).
    output : str or path, optional
        The name of the file. The default is explorer.html, or dossier.html. An existing file is
        replaced completely or not at all.
    record : bool, optional
        Show a recording that Python computes now, even if the page could integrate the run itself.
    member : int, optional
        The member of a batch.
    hide : sequence of str, optional
        Panels to leave out: presets, verdict, spectrum, attention, controls, sweep, footer, legend,
        equation, theme.
    lock : sequence of str, optional
        Controls that cannot be changed: n, beta, t_end, law, rng, start, kernel, mask, geometry,
        frame, drag, spectrum, or all of them, controls.
    guess : bool, optional
        Keep the verdict closed until the reader has guessed the number of limits.
    theme : str, optional
        "auto", "light" or "dark".
    title : str, optional
        The title of the page.
    work, budget : float, optional
        The work and the seconds for the certified limit, as in `limit`. If the limit is undecided,
        the page shows none.
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel.

    Returns
    -------
    Page
        The path of the file. A notebook shows the page.

    Examples
    --------
    >>> import numpy as np
    >>> import attnlab as al
    >>> run = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0)
    >>> al.explore(run, "run.html").name
    'run.html'
    """
    options = read_options(hide, lock, guess, theme)
    found = read_source(source, member)
    if found.dossier is not None:
        path = Page("dossier.html" if output is None else output)
        write_text(path, make_dossier(found.dossier, progress))
        return path
    with track(progress, "looking at the run") as progress:
        payload = payload_of(
            found, record, member, work, budget, {**options, "title": title or found.name}, progress
        )
    path = Page(DEFAULT_OUTPUT if output is None else output)
    write_text(path, make_page(payload))
    return path


def is_page(path: Path) -> bool:
    """Whether explore wrote a file, so that it may be replaced without asking."""
    try:
        with path.open("rb") as file:
            return f'content="{GENERATOR}"'.encode() in file.read(4096)
    except OSError:
        return False


def read_options(
    hide: Sequence[str], lock: Sequence[str], guess: bool, theme: str
) -> dict[str, Any]:
    """Return these options of a page as a table. Refuse unknown names."""
    _check_names("panel", hide, PANELS)
    _check_names("control", lock, CONTROLS)
    if theme not in THEMES:
        raise unknown_name("theme", theme, THEMES)
    return {"hide": list(hide), "lock": list(lock), "guess": bool(guess), "theme": theme}


def _check_names(kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    if isinstance(names, str):
        raise TypeError(
            f"Give {kind}s as a list of names, got the single word {names!r}. Use [{names!r}]."
        )
    for name in names:
        if name not in known:
            raise unknown_name(f"{kind} of the explorer", name, known)


def payload_of(
    found: Source,
    record: bool,
    member: int,
    work: float,
    budget: float,
    options: dict[str, Any],
    progress: Progress,
) -> dict[str, Any]:
    """Return the record of the page: a preset, a live Spec with its limit, or a recording. work =
    0: no limit is computed.
    """
    known = [presets[name] for name in presets.in_order()]
    if found.is_trained:
        return _trained_payload(options)
    if found.preset is not None and not record:
        return make_payload(found.preset.spec, presets=known, preset=found.preset, **options)
    if found.of_model is not None:
        return model_payload(found.of_model, progress=progress, **options)
    if found.run is not None:
        run = take_member(found.run, member)
        return _recorded_payload(run, [], options, progress)
    spec = found.preset.spec if found.preset is not None else found.spec
    if found.limit is not None:
        spec = _spec_of_limit(found.limit)
    assert spec is not None
    dynamics, x0, solve = _resolve(spec, found.limit)
    check_member(member, len(x0) if x0.ndim == 3 else 1)
    start = x0[member] if x0.ndim == 3 else x0
    live, why_not = live_spec(spec, dynamics, x0, member)
    if found.limit is not None:
        limits = [found.limit]
    elif x0.shape[-1] > MOST_LIVE_DIMENSIONS or work == 0:  # its points cannot be drawn
        limits = []
    else:
        limits = [
            _find_limit(
                dynamics, start, work, budget, progress.part(0.0, 0.5 if record or why_not else 1.0)
            )
        ]
    if not why_not and not record:
        return make_payload(live, limits=limits, presets=known, **options)
    run = _simulate(dynamics, start, solve, progress.part(0.5, 0.8))
    shown = live if not why_not else spec_of_run(run) if x0.ndim == 3 else spec
    return _recorded_payload(run, limits, options, progress.part(0.8, 1.0), shown)


def _recorded_payload(
    run: Trajectory,
    limits: Sequence[Limit],
    options: dict[str, Any],
    progress: Progress,
    spec: Spec | None = None,
) -> dict[str, Any]:
    spec = spec_of_run(run) if spec is None else spec
    recording = record_run(run, progress=progress)
    # the page's own table of theorems
    knows = (
        run.d <= MOST_LIVE_DIMENSIONS
        and run.dynamics.feedforward.is_none
        and not strange_members(run.dynamics)
    )
    says = theory_record(run, spec) if run.times[0] == 0.0 and not knows else []
    return make_payload(spec, limits=limits, recording=recording, says=says, **options)


def _trained_payload(options: dict[str, Any]) -> dict[str, Any]:
    """Return the record of the recorded head that is part of attnlab."""
    stored = recorded_head()
    spec = Spec.from_dict(stored["spec"])
    head = Preset(TRAINED, stored["name"], stored["watch"], spec)
    shown = {
        **options,
        "title": stored["name"],
        "hide": [*options["hide"], "presets"],
    }  # a recording has no other presets
    return make_payload(
        spec,
        presets=[head],
        preset=head,
        recording=stored["recording"],
        says=stored["says"],
        **shown,
    )


def _resolve(spec: Spec, limit: Limit | None) -> tuple[Dynamics, np.ndarray, dict[str, Any]]:
    """Return the equation, the first tokens and the options of the integration."""
    if limit is not None:
        return limit.dynamics, limit.x0, {"t_end": _usual_end(limit.dynamics)}
    resolved = resolve(spec)
    return resolved.dynamics, resolved.x0, dict(resolved.solve)


def _spec_of_limit(limit: Limit) -> Spec:
    if limit.spec is not None and "batch" not in limit.spec.start:
        return limit.spec
    return write_spec(limit.dynamics, limit.x0, _usual_end(limit.dynamics))


def _usual_end(dynamics: Dynamics) -> float:
    """Return the end of the run that is shown with a limit: lambda_1 t = 14, or 40 if nothing
    grows.
    """
    unit = clock_unit(dynamics, math.inf)
    end = 14.0 * unit if math.isfinite(unit) else 40.0
    return end if dynamics.dt is None else max(1, round(end / dynamics.dt)) * dynamics.dt


def _find_limit(
    dynamics: Dynamics, x0: np.ndarray, work: float, budget: float, progress: Progress
) -> Limit:
    progress(0.0, "certifying the limit (the first time on a machine compiles for some seconds)")
    return limit(dynamics, x0, work=work, budget=budget, progress=progress)


def _simulate(
    dynamics: Dynamics, x0: np.ndarray, solve: dict[str, Any], progress: Progress
) -> Trajectory:
    """Return the run at the times of a recording's frames, up to its end."""
    options = {
        name: value
        for name, value in solve.items()
        if name not in ("times", "saves", "measure_error", "observe")
    }
    if dynamics.dt is None:
        options["t_end"] = float(solve["t_end"] if "t_end" in solve else max(solve["times"]))
        if solve.get("stepper", "adaptive") == "adaptive":
            options["times"] = frame_times(dynamics, len(x0), options["t_end"])
    run = simulate(dynamics, x0, **options, progress=progress, throw=False)
    if run.status is Status.INTERRUPTED:
        progress.raise_if_cancelled()
        raise KeyboardInterrupt
    return run
