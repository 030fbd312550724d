"""Viewers inside other pages: the tour, the dossier, the pages of experiments.

    payloads = {"polytope": run_payload(run, limit, name="Polytope", watch="...")}
    pieces = embed_viewers(payloads)            pieces.head and pieces.foot go into the page
    page.put_behind("polytope", still)          in the page (render/page.py): a picture, and a place for the viewer

The reader first sees the still picture. It is also printed, and it remains without JavaScript. The
script of the page adds a button under it, which opens the viewer in its place. Nothing is computed
before the reader clicks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from attnlab.explorer.join import join_page
from attnlab.explorer.page import allow_scripts, escape_json, read_loader, write_scripts
from attnlab.explorer.payload import MOST_LIVE_DIMENSIONS, live_spec, make_payload, spec_of_run
from attnlab.explorer.presets import Preset
from attnlab.explorer.recording import record_run
from attnlab.explorer.trained import model_payload
from attnlab.progress import ProgressOption
from attnlab.types import Limit, Trajectory

HIDDEN = ("presets", "sweep", "footer", "theme")
"""Panels that a viewer inside another page does not have."""

WITH_SWITCH = tuple(name for name in HIDDEN if name != "presets")
"""The same for a viewer of several recordings, which needs its switch."""

CSS = """
.attnlab-place { margin: 1.2rem 0; }
.attnlab-place > figure { margin-bottom: .4rem; }
.attnlab-place > button { font: inherit; font-size: 1rem; color: #fff; background: #0072b2; border: 0; border-radius: 2rem;
  padding: .55rem 1.2rem; min-height: 2.75rem; cursor: pointer; }
.attnlab-place > button:hover { background: #005a8e; }
.attnlab-place > button:focus-visible { outline: 3px solid #0072b2; outline-offset: 3px; }
.attnlab-place.open > button { color: #0072b2; background: none; box-shadow: inset 0 0 0 1px #0072b2; margin-top: .6rem; }
.attnlab-place.open > figure { display: none; }
.attnlab-note { white-space: normal; font-size: .88rem; opacity: .8; margin: .5rem 0 0; }
.attnlab-live { border: 1px solid #dde3ea; border-radius: 12px; overflow: hidden; --attnlab-height: clamp(440px, 74vh, 660px); }
@media (max-width: 48rem) { .attnlab-live { --attnlab-height: clamp(400px, 62vh, 540px); } }
@media print {
  .attnlab-place > button, .attnlab-place > .attnlab-note, .attnlab-place > .attnlab-live { display: none; }
  .attnlab-place.open > figure { display: block; }
}
"""


@dataclass(frozen=True)
class Pieces:
    """The HTML that a page with viewers needs in its head and at the end of its body."""

    head: str = ""
    foot: str = ""


def embed_viewers(payloads: Mapping[str, Mapping[str, Any]]) -> Pieces:
    """Return the pieces of a page with these viewers, {name: payload}: one script for all. No
    viewers: empty pieces.
    """
    if not payloads:
        return Pieces()
    script, loader = _script(), read_loader()
    rules = {
        "script-src": allow_scripts(loader, script),
        "worker-src": "blob:",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    policy = "; ".join(f"{name} {allowed}" for name, allowed in rules.items())
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{CSS}</style>'
    data = f'<script type="application/json" id="attnlab-payloads">{escape_json(payloads)}</script>'
    return Pieces(head, f"{data}\n{write_scripts(script, loader)}")


@cache
def _script() -> str:
    """Return the joined script, which all pages share."""
    return join_page("embed_main.js")


def make_dossier(found: Any, progress: ProgressOption = False) -> str:
    """Return the whole page of a dossier, with its viewers.

    progress: False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
    cancel.
    """
    from attnlab.render.dossier import dossier_page  # loads matplotlib

    viewers = dossier_payloads(found)
    return dossier_page(found, progress, viewers, embed_viewers(viewers))


def dossier_payloads(found: Any) -> dict[str, dict[str, Any]]:
    """Return the viewers of a dossier by the names of their figures: the first flow of one head,
    and the first sentence.
    """
    flows = [(number, one.flow) for number, one in enumerate(found.flows) if one.head is not None]
    viewers = {
        f"flow_{number}": model_payload(flow, hide=HIDDEN, theme="light")
        for number, flow in flows[:1]
    }
    return viewers | {
        f"sentence_{number}": model_payload(data, hide=WITH_SWITCH, theme="light")
        for number, data in enumerate(found.sentences[:1])
    }


def run_payload(
    run: Trajectory,
    limit: Limit | None = None,
    *,
    name: str,
    watch: str = "",
    hide: Sequence[str] = HIDDEN,
    progress: ProgressOption = False,
) -> dict[str, Any]:
    """Return the record of a viewer of a run: one that the page integrates itself if it can, or a
    recording.

    limit: of the same start; shown if it is certified. name, watch: the heading, and one or two
    sentences under it. progress: False, True (a bar), a function f(fraction, doing), or an
    al.Progress, which can also cancel.
    """
    spec, why_not = live_spec(spec_of_run(run), run.dynamics, run.x[0])
    is_drawn = limit is not None and run.d <= MOST_LIVE_DIMENSIONS
    recording = record_run(run, progress=progress) if why_not else None
    shown = Preset("run", name, watch, spec)
    return make_payload(
        spec,
        limits=[limit] if limit is not None and is_drawn else [],
        presets=[shown],
        preset=shown,
        recording=recording,
        hide=hide,
        theme="light",
        title=name,
    )
