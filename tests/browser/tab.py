"""A Chromium tab for tests of the explorer: evaluate JavaScript, wait, and use mouse, wheel,
fingers and keys.
"""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

from chromium import Chromium

COMPLAINTS = (
    "Runtime.consoleAPICalled",
    "Runtime.exceptionThrown",
    "Log.entryAdded",
    "Network.loadingFailed",
)
KEYS = {
    "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35, "PageUp": 33, "PageDown": 34,
    "Enter": 13, "Escape": 27, "Tab": 9, "Backspace": 8, "Delete": 46, " ": 32,
}  # fmt: skip
"""Keys with a name, and their Windows key codes, which is what the protocol wants."""

MODIFIERS = {"alt": 1, "ctrl": 2, "meta": 4, "shift": 8}


class JavaScriptError(AssertionError):
    """An expression threw, or its promise was rejected; the message is what it said."""


class Tab(Chromium):
    """A browser with one tab that a test can act on. Coordinates are CSS pixels of the window."""

    def __init__(self, profile: Path):
        super().__init__(profile)
        self._scripts: list[str] = []

    def open(
        self,
        address: str,
        width: int = 1280,
        height: int = 820,
        *,
        scale: float = 1.0,
        is_phone: bool = False,
    ) -> None:
        """Open an address and wait until it has loaded. What earlier pages asked for and complained
        about is forgotten.
        """
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=is_phone,
        )
        self.tell("Emulation.setTouchEmulationEnabled", enabled=is_phone)
        for page in (
            "about:blank",
            address,
        ):  # an address that differs in its fragment only would not load again
            self._events.clear()
            failed = self.tell("Page.navigate", url=page).get("errorText")
            assert not failed, failed
            self._until("Page.loadEventFired")

    def evaluate(self, expression: str, *, patience: float = 60.0) -> Any:
        """The JSON value of an expression; of a promise, what it resolves to."""
        until = time.monotonic() + patience
        self._number += 1
        number = self._number
        about = {
            "expression": expression,
            "awaitPromise": True,
            "returnByValue": True,
            "userGesture": True,
        }
        self._send(
            {
                "id": number,
                "method": "Runtime.evaluate",
                "params": about,
                "sessionId": self._session,
            }
        )
        while (answer := self._read(until)).get("id") != number:
            pass
        assert "error" not in answer, answer["error"]
        result = answer["result"]
        if problem := result.get("exceptionDetails"):
            thrown = problem.get("exception", {})
            raise JavaScriptError(
                thrown.get("description") or str(thrown.get("value", problem.get("text")))
            )
        return result["result"].get("value")

    def call(self, function: str, *arguments: Any, patience: float = 60.0) -> Any:
        """What a JavaScript function returns, or its promise resolves to, for arguments that JSON
        can hold.
        """
        words = ", ".join(json.dumps(argument) for argument in arguments)
        return self.evaluate(f"({function})({words})", patience=patience)

    def wait_until(self, expression: str, *, patience: float = 10.0) -> Any:
        """Wait until an expression is true, in real time, and return its value; an AssertionError
        where it never is.
        """
        until = time.monotonic() + patience
        while not (value := self.evaluate(expression)):
            assert time.monotonic() < until, f"Not true within {patience:g} s: {expression}"
            self._settle(0.03)
        return value

    def rest(self, seconds: float) -> None:
        """Let the page go on for a while."""
        self._settle(seconds)

    # ---- what happened
    @property
    def requests(self) -> list[str]:
        """Every address that was asked for since the page was opened."""
        self._settle(0.0)
        return [
            event["params"]["request"]["url"]
            for event in self._events
            if event["method"] == "Network.requestWillBeSent"
        ]

    @property
    def complaints(self) -> list[str]:
        """Console messages, exceptions and failed requests since the page was opened."""
        self._settle(0.0)
        bad = (event for event in self._events if event["method"] in COMPLAINTS)
        return [f"{event['method']}: {json.dumps(event['params'])[:500]}" for event in bad]

    def screenshot(self, path: Path | None = None, *, whole_page: bool = False) -> bytes:
        """The window as PNG, also written to `path`."""
        options: dict[str, Any] = {}
        if whole_page:
            size = self.tell("Page.getLayoutMetrics")["cssContentSize"]
            clip = {
                "x": 0,
                "y": 0,
                "width": size["width"],
                "height": min(size["height"], 16000),
                "scale": 1,
            }
            options = {"captureBeyondViewport": True, "clip": clip}
        picture = base64.b64decode(self.tell("Page.captureScreenshot", **options)["data"])
        if path is not None:
            path.write_bytes(picture)
        return picture

    # ---- how the page is seen, and what runs before it
    def prefer(self, **features: str) -> None:
        """Emulate media features: prefer(prefers_color_scheme="dark",
        prefers_reduced_motion="reduce"); none: as they are.
        """
        chosen = [
            {"name": name.replace("_", "-"), "value": value} for name, value in features.items()
        ]
        self.tell("Emulation.setEmulatedMedia", media="", features=chosen)

    def see_as(self, kind: str = "none") -> None:
        """Emulate a vision: achromatopsia, protanopia, deuteranopia, tritanopia, blurredVision, or
        none.
        """
        self.tell("Emulation.setEmulatedVisionDeficiency", type=kind)

    def run_before_load(self, script: str) -> None:
        """Run a script in every page from now on before its own; forget_scripts() ends that."""
        self._scripts.append(
            self.tell("Page.addScriptToEvaluateOnNewDocument", source=script)["identifier"]
        )

    def forget_scripts(self) -> None:
        """End what run_before_load began."""
        for identifier in self._scripts:
            self.tell("Page.removeScriptToEvaluateOnNewDocument", identifier=identifier)
        self._scripts.clear()

    def allow_clipboard(self) -> None:
        """Let pages read and write the clipboard without asking."""
        self.ask(
            "Browser.grantPermissions",
            permissions=["clipboardReadWrite", "clipboardSanitizedWrite"],
        )

    # ---- hands
    def move(self, x: float, y: float, *, held: bool = False) -> None:
        """Move the mouse; `held` with its left button down."""
        self._mouse("mouseMoved", x, y, buttons=int(held), button="left" if held else "none")

    def click(self, x: float, y: float, *, count: int = 1) -> None:
        """Click with the left button."""
        self.move(x, y)
        self._mouse("mousePressed", x, y, button="left", buttons=1, clickCount=count)
        self._mouse("mouseReleased", x, y, button="left", clickCount=count)

    def press_button(self, x: float, y: float) -> None:
        """Put the left button down, and keep it down."""
        self.move(x, y)
        self._mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)

    def release_button(self, x: float, y: float) -> None:
        """Let the left button go."""
        self._mouse("mouseReleased", x, y, button="left", clickCount=1)

    def drag(
        self, start: tuple[float, float], end: tuple[float, float], *, moves: int = 10
    ) -> None:
        """Press at `start`, move to `end`, let go."""
        self.press_button(*start)
        for step in range(1, moves + 1):
            part = step / moves
            self.move(
                start[0] + part * (end[0] - start[0]),
                start[1] + part * (end[1] - start[1]),
                held=True,
            )
        self.release_button(*end)

    def wheel(self, x: float, y: float, down: float) -> None:
        """Turn the wheel at a point."""
        self._mouse("mouseWheel", x, y, deltaX=0, deltaY=down)

    def touch(self, kind: str, *points: tuple[float, float]) -> None:
        """Fingers: kind is touchStart, touchMove or touchEnd (without points)."""
        self.tell(
            "Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y} for x, y in points]
        )

    def press(self, key: str, *modifiers: str) -> None:
        """Press and release a key: press("ArrowRight"), press("r"), press("Tab", "shift")."""
        text = {"Enter": "\r", "Tab": ""}.get(key, key if len(key) == 1 else "")
        held = sum(MODIFIERS[name] for name in modifiers)
        code = KEYS.get(key, ord(key.upper()) if len(key) == 1 else 0)
        about = {"key": key, "code": _code(key), "windowsVirtualKeyCode": code, "modifiers": held}
        self.tell(
            "Input.dispatchKeyEvent",
            type="keyDown" if text else "rawKeyDown",
            **({"text": text} if text else {}),
            **about,
        )
        self.tell("Input.dispatchKeyEvent", type="keyUp", **about)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.tell("Input.insertText", text=text)

    def _mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.tell("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)


def _code(key: str) -> str:
    """The name of the key's place on the keyboard."""
    if key == " ":
        return "Space"
    if len(key) == 1:
        return f"Digit{key}" if key.isdigit() else f"Key{key.upper()}" if key.isalpha() else ""
    return key
