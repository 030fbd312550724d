"""What every page with viewers must be: exactly our one script, which its policy names, and a place
for each viewer.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from typing import Any

from attnlab.explorer.join import join_page
from attnlab.explorer.page import read_loader

SCRIPTS = re.compile(r"<script(?P<kind>[^>]*)>(?P<text>.*?)</script>", re.DOTALL)


def check_viewers(text: str) -> dict[str, dict[str, Any]]:
    """Return the payloads of a page by name; {} where it has neither viewers nor a script."""
    places = re.findall(r'<div class="attnlab-place" data-attnlab="([^"]*)"><figure', text)
    scripts = SCRIPTS.findall(text)
    assert text.count("<script") == text.count("</script>") == len(scripts)
    if not places:
        assert scripts == [] and "Content-Security-Policy" not in text
        return {}
    (data_kind, data), (packed_kind, packed), (kind, loader) = scripts
    assert (
        data_kind == ' type="application/json" id="attnlab-payloads"'
        and kind == ""
        and loader == read_loader()
    )
    assert packed_kind == ' type="text/plain" id="attnlab-script"'
    script = zlib.decompress(base64.b64decode(packed)).decode()
    assert script == join_page("embed_main.js")
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)[1]
    digests = {
        base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (loader, script)
    }
    assert set(re.findall(r"'sha256-([^']+)'", policy)) == digests and "unsafe" not in policy
    payloads: dict[str, dict[str, Any]] = json.loads(data)
    assert sorted(payloads) == sorted(places) and len(set(places)) == len(places)
    assert not re.search(r"\son\w+=", re.sub(SCRIPTS, "", text))  # no handlers inside of tags
    return payloads
