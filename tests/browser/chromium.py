"""A headless Chromium, driven over its own protocol with nothing but the standard library.

It speaks on two pipes (--remote-debugging-pipe): JSON messages that end in a zero byte. Without a
port there is nothing to collide with, and nothing that others could connect to.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--no-default-browser-check",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-default-apps", "--disable-dev-shm-usage", "--mute-audio", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 60.0

# The browser reads from descriptor 3 and writes to 4: put the pipes there, by way of numbers that
# cannot be in the way.
WRAPPER = """
import fcntl, os, sys
reads, writes = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 64) for number in sys.argv[1:3])
os.dup2(reads, 3)
os.dup2(writes, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_chromium() -> str | None:
    """Where the browser is, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class Visit:
    """What happened while a page was looked at."""

    requests: list[str] = field(default_factory=list)  # every address that was asked for
    complaints: list[str] = field(
        default_factory=list
    )  # console messages, exceptions, failed requests
    scroll_width: int = 0
    width: int = 0  # of the window, without its scroll bar
    images: list[int] = field(default_factory=list)  # natural widths; 0 is a broken image
    too_wide: list[str] = field(
        default_factory=list
    )  # elements that reach beyond the page outside of a box that scrolls
    text: str = ""
    screenshot: bytes = b""


LOOK = """
(() => {
  const scrolls = e => { for (let p = e.parentElement; p; p = p.parentElement)
    if (p !== document.documentElement && p !== document.body && getComputedStyle(p).overflowX !== 'visible') return true;
    return false; };
  const width = document.documentElement.clientWidth;
  return JSON.stringify({
    scroll_width: document.documentElement.scrollWidth, width: width, text: document.body.innerText,
    images: [...document.images].map(i => i.naturalWidth),
    too_wide: [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > width + 1 && !scrolls(e))
      .map(e => e.tagName + ' ' + e.className)});
})()
"""


class Chromium:
    """A browser with one tab; a context, so that it always ends."""

    def __init__(self, profile: Path):
        path = find_chromium()
        assert path is not None
        their_in, self._out = os.pipe()
        self._in, their_out = os.pipe()
        command = [
            sys.executable,
            "-c",
            WRAPPER,
            str(their_in),
            str(their_out),
            path,
            *OPTIONS,
            f"--user-data-dir={profile}",
        ]
        self._process = subprocess.Popen(
            command,
            pass_fds=(their_in, their_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_in)
        os.close(their_out)
        self._rest, self._number, self._events = b"", 0, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.tell(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *problem: Any) -> None:
        try:
            self.ask("Browser.close")
        except (OSError, EOFError, TimeoutError):
            pass
        for descriptor in (self._in, self._out):
            os.close(descriptor)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def visit(self, address: str, width: int, height: int = 900) -> Visit:
        """Open an address in a window of that width, and say what happened."""
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self._events.clear()
        failed = self.tell("Page.navigate", url=address).get("errorText")
        assert not failed, failed
        self._until("Page.loadEventFired")
        self._settle(0.5)
        seen = Visit(
            **json.loads(self.tell("Runtime.evaluate", expression=LOOK)["result"]["value"])
        )
        for event in self._events:
            name, about = event["method"], event["params"]
            if name == "Network.requestWillBeSent":
                seen.requests.append(about["request"]["url"])
            elif name in (
                "Runtime.consoleAPICalled",
                "Runtime.exceptionThrown",
                "Log.entryAdded",
                "Network.loadingFailed",
            ):
                seen.complaints.append(f"{name}: {json.dumps(about)[:500]}")
        size = self.tell("Page.getLayoutMetrics")["cssContentSize"]
        picture = self.tell(
            "Page.captureScreenshot",
            captureBeyondViewport=True,
            clip={"x": 0, "y": 0, "width": width, "height": min(size["height"], 16000), "scale": 1},
        )
        seen.screenshot = base64.b64decode(picture["data"])
        return seen

    def tell(self, method: str, **about: Any) -> dict[str, Any]:
        """A message to the tab."""
        return self.ask(method, self._session, **about)

    def ask(self, method: str, session: str | None = None, **about: Any) -> dict[str, Any]:
        """A message, and its answer; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": about} | (
            {"sessionId": session} if session else {}
        )
        self._send(message)
        until = time.monotonic() + PATIENCE
        while True:
            answer = self._read(until)
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result

    def _send(self, message: dict[str, Any]) -> None:
        os.write(self._out, json.dumps(message).encode() + b"\0")

    def _until(self, event: str) -> None:
        until = time.monotonic() + PATIENCE
        while not any(one["method"] == event for one in self._events):
            self._read(until)

    def _settle(self, seconds: float) -> None:
        """Collect what still comes."""
        until = time.monotonic() + seconds
        try:
            while True:
                self._read(until)
        except TimeoutError:
            pass

    def _read(self, until: float) -> dict[str, Any]:
        """The next message; events are kept."""
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], max(until - time.monotonic(), 0.0))[0]:
                raise TimeoutError("Chromium says nothing.")
            got = os.read(self._in, 1 << 20)
            if not got:
                raise EOFError("Chromium has ended.")
            self._rest += got
        text, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        if "method" in message and "id" not in message:
            self._events.append(message)
        return message
