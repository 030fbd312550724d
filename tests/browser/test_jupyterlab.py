"""al.Explorer in a real JupyterLab: a dragged token and a certificate arrive in the kernel, and Lab
keeps its keys to itself.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from screen import VIEWER, Screen
from tab import Tab

import attnlab as al
from attnlab.run import limit_of_spec

MISSING = [
    name
    for name in ("jupyterlab", "anywidget", "ipykernel")
    if importlib.util.find_spec(name) is None
]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(MISSING),
        reason=f"{', '.join(MISSING)} not installed (pip install jupyterlab anywidget)",
    ),
]
TOKEN = "for-this-test-only"
CELLS = (
    "import attnlab as al\nw = al.Explorer('polygon')\nw",
    (
        "import json\nlimit = w.limit\nprint(json.dumps({'spec': w.spec.to_dict(), 'moved':"
        " w.moved, 't': w.t, 'count': limit and limit.count, 'end': al.run_spec(w.spec).x[-1,"
        " 5].tolist()}))"
    ),
)
KEEP_VIEWERS = """window.attnlab = { viewers: [] };
document.addEventListener('attnlab-play', (event) => {
  if (!attnlab.viewers.includes(event.detail)) attnlab.viewers.push(event.detail);
});"""
READY = (
    "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
)
PRINTED = """[...document.querySelectorAll('.jp-OutputArea-output pre')].map((e) => e.textContent)
  .find((text) => text.startsWith('{"spec'))"""


def write_notebook(path: Path) -> None:
    cells = [
        {
            "cell_type": "code",
            "id": f"cell-{k}",
            "metadata": {},
            "source": text,
            "execution_count": None,
            "outputs": [],
        }
        for k, text in enumerate(CELLS)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(
        json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}),
        encoding="utf-8",
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a JupyterLab on this machine, with a folder and settings of its own."""
    folder = tmp_path_factory.mktemp("lab")
    write_notebook(folder / "explorer.ipynb")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    own = {
        f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")
    }
    source = str(Path(al.__file__).parents[1])
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--ip=127.0.0.1",
        f"--port={port}",
        "--allow-root",
        f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={folder}",
        "--LabApp.expose_app_in_browser=True",
        "--LabApp.news_url=",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, env={**os.environ, **own, "PYTHONPATH": source}, stdout=log, stderr=log
        )
    try:
        until = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(
                    f"http://127.0.0.1:{port}/api/status?token={TOKEN}", timeout=5
                ).close()
                break
            except OSError:
                assert time.monotonic() < until and process.poll() is None, (
                    folder / "log"
                ).read_text()
                time.sleep(0.3)
        yield f"http://127.0.0.1:{port}/lab/tree/explorer.ipynb?token={TOKEN}&reset"
    finally:
        process.terminate()
        process.wait(20)


def run_cell(tab: Tab, number: int) -> None:
    tab.evaluate(f"""(() => {{ jupyterapp.shell.currentWidget.content.activeCellIndex = {number};
        void jupyterapp.commands.execute('notebook:run-cell'); }})()""")


def test_a_token_is_dragged_and_a_limit_certified(tab, server):
    tab.prefer(prefers_color_scheme="dark")  # Lab itself is light, and the widget follows Lab
    tab.run_before_load(KEEP_VIEWERS)
    tab.open(server, 1500, 1000)
    tab.wait_until(READY, patience=90)
    tab.rest(1.0)
    run_cell(tab, 0)
    tab.wait_until("attnlab.viewers.length === 1", patience=60)
    screen = Screen(tab, Path())
    screen.wait()
    assert screen.get("theme.name") == "light"
    tab.evaluate(f"{VIEWER}.player.isPlaying && {VIEWER}.layout.play.click()")
    screen.click("[data-show=drag]")
    screen.wait()
    x, y = screen.starts()[5][:2]
    tab.drag((x, y), (x + 80, y - 60))
    screen.wait()
    place = screen.get("session.spec.start.moved['5']")
    assert place is not None and screen.get("session.outcome.kind") == "estimated"
    screen.click(".certify button")
    tab.wait_until(f"{VIEWER}.session.outcome.kind === 'certified'", patience=120)
    if folder := os.environ.get("BROWSER_PICTURES"):
        (Path(folder) / "jupyterlab.png").write_bytes(tab.screenshot())
    scrolls = (
        "document.querySelector('[data-lm-suppress-shortcuts]').closest('.jp-OutputArea-output')"
    )
    assert tab.evaluate(
        f"{scrolls}.scrollHeight === {scrolls}.clientHeight"
    )  # no scroll bar of its own

    run_cell(tab, 1)
    printed = json.loads(tab.wait_until(PRINTED, patience=120))
    spec = al.Spec.from_dict(printed["spec"])
    assert printed["moved"] == {"5": place} and spec.start["moved"] == {"5": place}
    assert printed["count"] == screen.get("session.outcome.count") == limit_of_spec(spec).count
    assert printed["end"] == al.run_spec(spec).x[-1, 5].tolist() and printed["t"] == screen.get(
        "player.t"
    )

    tab.evaluate(f"{VIEWER}.layout.scene.focus()")
    tab.press("3")  # in Lab: a heading; here: the third preset
    tab.wait_until(f"{VIEWER}.preset.id === 'polytope'")
    kinds = tab.evaluate(
        "jupyterapp.shell.currentWidget.content.widgets.map((cell) => cell.model.type)"
    )
    assert kinds == ["code", "code"]
