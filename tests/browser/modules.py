"""Modules of the explorer in a page of their own: what they export is in window.NAME."""

from __future__ import annotations

from pathlib import Path

from tab import Tab

from attnlab.explorer.join import join_script


def open_modules(tab: Tab, folder: Path, *names: str) -> Tab:
    """Open a page that has joined the modules of these names; the module address.js is window.address."""
    scripts = [join_script(f"{name}.js", expose_as=name).replace("</script", "<\\/script") for name in names]
    page = folder / "modules.html"
    page.write_text("<!DOCTYPE html><meta charset=utf-8><title>modules</title>\n"
                    + "\n".join(f"<script>\n{script}\n</script>" for script in scripts), encoding="utf-8")
    tab.open(page.as_uri())
    assert tab.complaints == []
    return tab
