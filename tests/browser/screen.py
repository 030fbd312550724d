"""The explorer's screen for tests: open a page, wait for its run, and find things on it in pixels
of the window.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tab import Tab

VIEWER = "window.attnlab.viewers[0]"
THERE = "Boolean(window.attnlab?.viewers?.length)"
"""Whether the script of the page has mounted its viewer; it unpacks itself first."""

COMPLETE = (
    f"{THERE} && Boolean({VIEWER}.session.recording?.complete && !{VIEWER}.session.isBusy &&"
    f" !{VIEWER}.isDirty)"
)


class Screen:
    """One viewer in a tab. Places are pixels of the window."""

    def __init__(self, tab: Tab, page: Path):
        self.tab, self.page = tab, page

    def open(
        self,
        fragment: str = "",
        *,
        query: str = "",
        width: int = 1280,
        height: int = 820,
        is_phone: bool = False,
    ) -> Screen:
        """Open the page and wait until its run is complete and drawn."""
        address = (
            self.page.as_uri()
            + (f"?{query}" if query else "")
            + (f"#{fragment}" if fragment else "")
        )
        self.tab.open(address, width, height, is_phone=is_phone)
        self.wait()
        return self

    def wait(self, patience: float = 20.0) -> None:
        """Wait until the run is complete and drawn."""
        self.tab.wait_until(COMPLETE, patience=patience)
        self.tab.rest(0.05)

    def get(self, path: str) -> Any:
        """A value of the viewer: get("session.outcome.kind")."""
        return self.tab.evaluate(f"{VIEWER}.{path}")

    def text(self, part: str) -> str:
        """The text of a part of the layout, such as heading, verdict, counts, veil."""
        return str(self.get(f"layout.{part}.textContent"))

    def find(self, selector: str) -> tuple[float, float]:
        """The middle of an element of the screen, scrolled into view."""
        place = self.tab.evaluate(
            f"""(() => {{ const node = {VIEWER}.layout.root.querySelector({selector!r});
            node.scrollIntoView({{ block: 'nearest', inline: 'nearest' }});
            const box = node.getBoundingClientRect(); return [box.left + box.width / 2, box.top + box.height / 2]; }})()"""
        )
        return place[0], place[1]

    def click(self, selector: str) -> None:
        """Click an element with the mouse."""
        self.tab.click(*self.find(selector))

    def token(self, i: int) -> tuple[float, float]:
        """Where a token is now."""
        place = self.tab.evaluate(
            f"""(() => {{ const v = {VIEWER}, box = v.layout.scene.getBoundingClientRect();
            return [box.left + v.drawn.pixels[{4 * i}], box.top + v.drawn.pixels[{4 * i + 1}]]; }})()"""
        )
        return place[0], place[1]

    def starts(self) -> list[list[float]]:
        """Where the starts of all tokens are: x, y and depth."""
        return self.tab.evaluate(
            f"""(() => {{ const v = {VIEWER}, box = v.layout.scene.getBoundingClientRect(), at = [0, 0,
            0, 0];
            return v.session.recording.x0.map(([x, y = 0, z = 0]) => {{
              if (v.drawn.camera) v.drawn.camera.project(x, y, z, at);
              if (!v.drawn.camera) return [box.left + v.area.left, box.top + v.drawn.yOf(x), 0];
              return [box.left + at[0], box.top + at[1], at[2]]; }}); }})()"""
        )

    def clock(self, share: float) -> tuple[float, float]:
        """A place on the clock, from 0 to 1 (infinity)."""
        place = self.tab.evaluate(
            f"""(() => {{ const box = {VIEWER}.clock.node.getBoundingClientRect(), left = box.left + 14;
            return [left + {share} * (box.right - 26 - left), box.top + box.height / 2]; }})()"""
        )
        return place[0], place[1]

    def eigenvalue(self, value: float) -> tuple[float, float]:
        """The middle of the handle on a real eigenvalue."""
        return self.find(f'.handle[aria-valuenow="{value:g}"]')

    def picture(self) -> list[list[float]]:
        """Where all tokens are now, in pixels of the stage."""
        return self.tab.evaluate(
            f"(() => {{ const p = {VIEWER}.drawn.pixels; return Array.from({{ length: p.length / 4"
            " }, (_, i) => [p[4 * i], p[4 * i + 1]]); })()"
        )

    def focus(self) -> str:
        """What has the focus: its name for a screen reader, or its text."""
        return str(
            self.tab.evaluate(
                f"""(() => {{ const node = {VIEWER}.layout.root.getRootNode().activeElement;
            return node ? node.getAttribute('aria-label') ?? node.textContent : ''; }})()"""
            )
        )

    def tab_to(self, name: str, most: int = 80) -> None:
        """Press the tab key until something with that name has the focus."""
        for _ in range(most):
            if self.focus() == name:
                return
            self.tab.press("Tab")
        raise AssertionError(f"The tab key never reaches {name!r}.")
