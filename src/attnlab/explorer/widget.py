"""al.Explorer: the viewer inside a notebook. This is the only file that uses anywidget; web/afm.js
is the browser's part.

Traits: the reader and Python change spec, t and selected; moved follows spec; Python changes limit,
recording and height. Python never sends frames: the viewer integrates by itself, or plays a
recording that it got once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import anywidget
import numpy as np
import traitlets

from attnlab.explorer.certifying import Certifier
from attnlab.explorer.entry import payload_of, read_options
from attnlab.explorer.incoming import check_live, read_selected, read_spec, read_time
from attnlab.explorer.join import join_module
from attnlab.explorer.page import frame_page, make_page
from attnlab.explorer.payload import VERSION, limit_record
from attnlab.explorer.presets import preset_limit, presets
from attnlab.explorer.sources import read_source
from attnlab.progress import Progress, ProgressOption, track
from attnlab.run import limit_of_spec, resolve
from attnlab.types import Dynamics, Limit, Spec

WORK, BUDGET = 1_500_000.0, 60.0
"""Evaluations and events, and seconds, for the certified limit that a reader asks for: the defaults
of al.limit.
"""

DOING = "looking at the run"

MOST_KNOWN = 32
"""The most limits of earlier Specs that are kept. If a token is dragged back, its certified limit
is still known.
"""


@cache
def _script() -> str:
    return join_module("afm.js")


@cache
def _preset_limits() -> dict[str, Limit]:
    """Return {run: certified limit} of the presets, which need no computation."""
    found = {
        _run_of(preset.spec): preset_limit(preset)
        for preset in (presets[name] for name in presets.in_order())
    }
    return {run: limit for run, limit in found.items() if limit is not None}


def _say_limit(limit: Limit | None, widget: Any) -> dict[str, Any] | None:
    return (
        None
        if limit is None or not limit.certified or limit.spec is None
        else limit_record(limit, limit.spec)
    )


class Explorer(anywidget.AnyWidget):
    """A run to play with in a notebook: drag tokens, eigenvalues and time, and read in Python what
    you chose.

    `explorer.observe(f, "spec")` calls f after every change. It needs anywidget: pip install
    'attnlab[widget]'.

    Parameters
    ----------
    source : optional
        What `explore` takes: None (all presets), the name of a preset or of an example, a Spec, a
        Trajectory, a Limit, a Flow, or the path of a Spec or of a saved result.
    record, member, hide, lock, guess, theme, title, progress
        As in `explore`.
    height : int, optional
        The height of the stage in pixels.

    Attributes
    ----------
    spec : Spec
        The run that is shown. Assign another one to show it.
    x0 : array (n, d)
        The first tokens, with those that were moved by hand.
    moved : dict
        {token: place} of the tokens that were moved.
    t : float
        The time that is shown, up to math.inf.
    selected : list of int
        The chosen tokens.
    limit : Limit or None
        The limit that Python computed for this run. The button Certify and `certify()` compute it.

    Examples
    --------
    >>> import attnlab as al
    >>> explorer = al.Explorer("collapse")                             # doctest: +SKIP
    >>> explorer.certify().count                                       # doctest: +SKIP
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _page = traitlets.Dict().tag(sync=True)
    spec = traitlets.Instance(Spec).tag(
        sync=True,
        to_json=lambda spec, _: spec.to_dict(),
        from_json=lambda table, _: Spec.from_dict(table),
    )
    t = traitlets.Float(0.0).tag(
        sync=True,
        to_json=lambda t, _: "inf" if t == math.inf else t,
        from_json=lambda value, _: read_time(value),
    )
    selected = traitlets.List(traitlets.Int()).tag(sync=True)
    moved = traitlets.Dict(read_only=True)
    limit = traitlets.Instance(Limit, allow_none=True).tag(sync=True, to_json=_say_limit)
    recording = traitlets.Dict(allow_none=True, default_value=None, read_only=True).tag(sync=True)
    height = traitlets.Int(600, min=200, max=4000).tag(sync=True)

    def __init__(
        self,
        source: Any = None,
        *,
        record: bool = False,
        member: int = 0,
        hide: Sequence[str] = (),
        lock: Sequence[str] = (),
        guess: bool = False,
        theme: str = "auto",
        title: str | None = None,
        height: int = 600,
        progress: ProgressOption = False,
        **options: Any,
    ):
        """Read the source and make the widget.

        progress: False, True (a bar), a function f(fraction, doing), or an al.Progress, which can
        also cancel.
        """
        self._recorded: Spec | None = None
        self._known: dict[str, Limit] = {}
        self._certifier = Certifier(self.send)
        self._options = read_options(hide, lock, guess, theme)
        with track(progress, DOING) as progress:
            shown = self._look_at(source, record, member, title, progress)
        self.set_trait("recording", shown.pop("recording"))  # read-only for others
        super().__init__(height=height, **options, **shown)
        self.on_msg(self._hear)

    def show(
        self,
        source: Any = None,
        *,
        record: bool = False,
        member: int = 0,
        title: str | None = None,
        progress: ProgressOption = False,
    ) -> None:
        """Show another run from t = 0.

        Parameters
        ----------
        source : optional
            What `explore` takes.
        record, member, title
            As in `explore`.
        progress : bool, function or Progress, optional
            False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
            cancel.
        """
        with track(progress, DOING) as progress:
            shown = self._look_at(source, record, member, title, progress)
        with self.hold_sync():
            for name, value in {"t": 0.0, "selected": [], **shown}.items():
                self.set_trait(name, value)

    @property
    def x0(self) -> np.ndarray:
        """The first tokens (n, d), those that were moved by hand included."""
        return resolve(self.spec).x0

    def certify(
        self, *, work: float = WORK, budget: float = BUDGET, progress: ProgressOption = False
    ) -> Limit:
        """Compute the limit of the run that is shown, show it where it is certified, and return it.

        Parameters
        ----------
        work, budget : float, optional
            The work and the seconds, as in `limit`.
        progress : bool, function or Progress, optional
            False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
            cancel.

        Returns
        -------
        Limit
            The limit.
        """
        spec = self.spec
        if self.recording is not None:
            raise ValueError(
                "The widget shows a recording, whose limit must come with it. Use"
                " al.Explorer(al.limit(...)) or al.limit."
            )
        with track(progress, "certifying the limit") as progress:
            found = limit_of_spec(spec, work=work, budget=budget, progress=progress.part(0.0, 0.99))
            progress(0.99, "showing the limit")
        assert isinstance(found, Limit)
        self._known[_run_of(spec)] = found
        while len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        if _run_of(self.spec) == _run_of(spec):
            self.limit = found
        return found

    def html(self) -> str:
        """Return the present view as a separate page: one HTML text without network, as al.explore
        writes it.
        """
        payload = {
            **self._page,
            "version": VERSION,
            "limits": [found] if (found := _say_limit(self.limit, self)) else [],
        }
        view = {
            **payload.pop("view"),
            "t": "inf" if self.t == math.inf else self.t,
            "selected": self.selected,
        }
        state = {"version": VERSION, "spec": self.spec.to_dict(), "view": view}
        if (preset := payload.pop("preset", None)) is not None:
            state["preset"] = preset
        if self.recording is not None:
            payload["recording"] = self.recording
        return make_page({**payload, "state": state})

    def static(self) -> StaticExplorer:
        """Return the page of `html()` in a frame, for notebooks that are exported or read without a
        kernel.
        """
        return StaticExplorer(frame_page(self.html(), self.height + 120))

    def close(self) -> None:
        """Close the widget and stop its computation."""
        self._certifier.cancel()
        super().close()

    # ---- what is shown
    def _look_at(
        self, source: Any, record: bool, member: int, title: str | None, progress: Progress
    ) -> dict[str, Any]:
        """Return the traits that show a source."""
        found = read_source(source, member)
        payload = payload_of(
            found,
            record,
            member,
            0.0,
            1.0,
            {**self._options, "title": title or found.name},
            progress,
        )
        state, recording = payload.pop("state"), payload.pop("recording", None)
        spec = Spec.from_dict(state["spec"])
        limit = None if found.limit is None else dataclasses.replace(found.limit, spec=spec)
        if limit is None and recording is None:  # a recording has its own limit
            limit = _preset_limits().get(_run_of(spec))
        self._recorded = None if recording is None else spec
        self._known = {} if limit is None else {_run_of(spec): limit}
        page = {key: payload[key] for key in payload if key not in ("limits", "version")}
        page |= {"view": state["view"], "preset": state.get("preset")}
        return {"_page": page, "recording": recording, "spec": spec, "limit": limit}

    @traitlets.default("_esm")
    def _default_script(self) -> str:
        return _script()

    @traitlets.validate("spec")
    def _check_spec(self, proposal: Any) -> Spec:
        spec: Spec = proposal["value"]
        if spec != self._recorded:
            check_live(spec)
        return spec

    @traitlets.validate("t")
    def _check_time(self, proposal: Any) -> float:
        return math.inf if proposal["value"] == math.inf else read_time(proposal["value"])

    @traitlets.validate("limit")
    def _check_limit(self, proposal: Any) -> Limit | None:
        limit: Limit | None = proposal["value"]
        if limit is None or (limit.spec is not None and _run_of(limit.spec) == _run_of(self.spec)):
            return limit
        resolved = resolve(self.spec)
        if not (
            np.array_equal(limit.x0, resolved.x0) and _is_same(limit.dynamics, resolved.dynamics)
        ):
            raise traitlets.TraitError(
                "limit must be the limit of the run that is shown: al.limit of its weights and of"
                " x0. Use certify()."
            )
        return dataclasses.replace(limit, spec=self.spec)

    @traitlets.observe("spec")
    def _follow_spec(self, change: Any) -> None:
        """Update everything that depends on the Spec: the moved tokens, the limit, the recording,
        the chosen tokens.
        """
        spec: Spec = change["new"]
        self.set_trait(
            "moved", {int(token): place for token, place in spec.start.get("moved", {}).items()}
        )
        if self._recorded is not None and spec != self._recorded:
            self._recorded = None
            self.set_trait("recording", None)
        limit = self._known.get(_run_of(spec))
        if limit is None and self._recorded is None:
            limit = _preset_limits().get(_run_of(spec))
        if limit is None or limit is not self.limit:
            self._certifier.cancel()
            self.limit = limit

    # ---- what the front end says
    def set_state(self, sync_data: Any) -> None:
        """Take spec, t and selected from the front end, and nothing else. Refuse invalid values."""
        accepted: dict[str, Any] = {}
        refused: dict[str, str] = {}
        spec = self.spec
        for name in ("spec", "t", "selected"):
            if not isinstance(sync_data, dict) or name not in sync_data:
                continue
            try:
                if name == "spec":
                    if self.recording is not None:
                        raise ValueError("The widget shows a recording, which cannot be changed.")
                    spec = read_spec(sync_data["spec"])
                elif name == "t":
                    read_time(sync_data["t"])
                else:
                    read_selected(sync_data["selected"], len(resolve(spec).x0))
                accepted[name] = sync_data[name]
            except ValueError as problem:
                refused[name] = str(problem)
        super().set_state(accepted)
        if refused:
            self.send({"kind": "refused", "sentence": " ".join(refused.values())})
            self.send_state(list(refused))

    def _hear(self, _: Any, content: Any, buffers: Any) -> None:
        """Answer a message: certify, or cancel. Ignore all others."""
        kind = content.get("kind") if isinstance(content, dict) else None
        if kind == "certify":
            self._certifier.start(self._certify_for_reader)
        elif kind == "cancel":
            self._certifier.cancel()

    def _certify_for_reader(self, progress: Progress) -> str:
        """Compute the limit and return a sentence for the reader if it is undecided."""
        found = self.certify(progress=progress)
        progress.raise_if_cancelled()
        return "" if found.certified else f"Undecided: {found.reason}"


class StaticExplorer(str):
    """A frame with the explorer in it, as HTML. A notebook shows it, also after an export."""

    def _repr_html_(self) -> str:
        return str(self)


def _is_same(one: Dynamics, other: Dynamics) -> bool:
    """Whether two equations have the same numbers and words."""
    return one.words() == other.words() and all(
        np.array_equal(getattr(one.weights, name), getattr(other.weights, name))
        for name in ("full_V", "Q", "K")
    )


def _run_of(spec: Spec) -> str:
    """Return a key for the run of a Spec. In [solve] only the clock of layers changes the run."""
    clock = (
        {"layers": 1, "dt": spec.solve.get("dt", 1.0)} if "layers" in spec.solve else {"t_end": 1.0}
    )
    return dataclasses.replace(spec, solve=clock, observe=()).digest()
