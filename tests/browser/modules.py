"""JavaScript modules of the explorer in a page of their own, so that tests can call what they
export.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tab import Tab

from attnlab.explorer.join import join_script


def open_modules(tab: Tab, folder: Path, *names: str, before: str = "") -> Tab:
    """Open a page in which window.NAME holds what web/NAME.js exports; `before` is a script that
    runs first.
    """
    scripts = [before, *(join_script(f"{name}.js", expose_as=name) for name in names)]
    escaped = "".join(
        "<script>" + script.replace("</", "<\\/") + "</script>\n" for script in scripts if script
    )
    page = folder / f"{'_'.join(names)}.html"
    page.write_text(
        f"<!DOCTYPE html><meta charset='utf-8'><title>modules</title>\n{escaped}", encoding="utf-8"
    )
    tab.open(page.as_uri())
    assert tab.complaints == [], tab.complaints
    return tab


HELPERS = """
window.make = () => engine.createEngine({ workerSource: window.workerSource });
window.plain = recording => { const out = {};
  for (const [key, value] of Object.entries(recording)) out[key] = ArrayBuffer.isView(value) ? Array.from(value) : value;
  out.frames = {}; for (const [key, value] of Object.entries(recording.frames)) out.frames[key] = Array.from(value);
  if (out.trusted === Infinity) out.trusted = 'infinity';
  return out; };
window.record = async (spec, options) => plain(await (window.one ??= make()).record(spec, options));
"""


def open_engine(tab: Tab, folder: Path, before: str = "") -> Tab:
    """Open a page with the engine and its worker; make() returns an Engine, record(spec) a
    recording that JSON can hold.
    """
    source = json.dumps(join_script("worker.js")).replace("</", "<\\/")
    return open_modules(
        tab, folder, "engine", before=f"{before}; window.workerSource = {source};{HELPERS}"
    )


def module_page(*names: str):
    """A fixture `page`, one for all tests of a file: a page with these modules."""

    @pytest.fixture(scope="module")
    def page(browser_tab: Tab, tmp_path_factory: pytest.TempPathFactory) -> Tab:
        return open_modules(browser_tab, tmp_path_factory.mktemp("modules"), *names)

    return page
