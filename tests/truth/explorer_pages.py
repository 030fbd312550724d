"""A Spec for the explorer, and the payload that a page holds."""

from __future__ import annotations

import json
import re

import attnlab as al

CUBE = {"law": "uniform_cube", "n": 9, "d": 2, "low": -5, "high": 5, "rng": 1}


def spec_of(weights=None, start=None, solve=None, dynamics=None) -> al.Spec:
    return al.Spec(
        weights=weights or {"family": "identity"},
        start=start or CUBE,
        solve=solve or {"t_end": 3.0},
        dynamics=dynamics or {},
    )


def payload_in(path) -> dict:
    """The payload that a page holds."""
    found = re.search(
        r'<script type="application/json" id="attnlab-payload">(.*?)</script>',
        path.read_text("utf-8"),
        re.DOTALL,
    )
    return json.loads(found[1])
