"""The one HTML file: payload, script and style inside, no network, no server."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from html import escape as escape_html
from typing import Any

from attnlab.controls import escape_controls
from attnlab.explorer.join import WEB, join_page
from attnlab.explorer.tighten import tighten_script

GENERATOR = "attnlab explore"
"""The mark of a page that explore wrote. Only such a page is replaced without asking."""

WITHOUT_SCRIPT = (
    "This page computes the dynamics of self-attention in your browser, so it needs JavaScript. "
    "Allow JavaScript for this file and load it again. The page does not use the network."
)

STYLE = """
html { color-scheme: light dark; }
body { margin: 0; font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
noscript, .attnlab-problem { display: block; max-width: 40rem; margin: 2rem auto; padding: 0 1rem; }
@media (prefers-color-scheme: dark) { body { background: #11141a; color: #e6e8ec; } }
"""


def make_page(payload: Mapping[str, Any]) -> str:
    """Return the page that shows a payload (explorer/payload.py). Its script is packed: loader.js
    unpacks it.
    """
    script, loader = join_page(), read_loader()
    title = escape_html(
        escape_controls(str(payload.get("title") or "The dynamics of self-attention"))
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(loader, script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="{GENERATOR}">
<title>{title} – attnlab</title>
<style>{STYLE}</style>
</head>
<body>
<div id="attnlab"></div>
<noscript>{WITHOUT_SCRIPT}</noscript>
<script type="application/json" id="attnlab-payload">{escape_json(payload)}</script>
{write_scripts(script, loader)}
</body>
</html>
"""


def frame_page(page: str, height: int) -> str:
    """Return a frame, `height` pixels high, that holds a whole page, for other pages and for
    notebooks.
    """
    return (
        f'<iframe srcdoc="{escape_html(page)}" title="attnlab" style="width:100%;'
        f' height:{height}px; border:0" sandbox="allow-scripts allow-downloads'
        ' allow-popups"></iframe>'
    )


def escape_json(payload: Mapping[str, Any]) -> str:
    """Return JSON that cannot end the script element around it."""
    return json.dumps(payload, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def read_loader() -> str:
    """Return the script that unpacks the script of a page."""
    return tighten_script((WEB / "loader.js").read_text(encoding="utf-8"))


def write_scripts(script: str, loader: str) -> str:
    """Return the elements of a page's script, packed, and of its loader."""
    packed = base64.b64encode(zlib.compress(script.encode(), 9)).decode("ascii")
    return (
        '<script type="text/plain"'
        f' id="attnlab-script">{packed}</script>\n<script>{loader}</script>'
    )


def allow_scripts(*scripts: str) -> str:
    """Return the value of script-src that allows only these scripts."""
    digests = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
        for script in scripts
    ]
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def _policy(*scripts: str) -> str:
    """Return the policy of the page: it may run these scripts, style itself, start workers from its
    text, show its images.
    """
    rules = {
        "default-src": "'none'",
        "script-src": allow_scripts(*scripts),
        "worker-src": "blob:",
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {allowed}" for name, allowed in rules.items())
