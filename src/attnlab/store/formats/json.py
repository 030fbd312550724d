"""A result as JSON, for results that are mostly words and a few numbers. What JSON has no word for,
such as NaN, is null.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attnlab.files import write_text
from attnlab.store.formats import Format, formats
from attnlab.store.packing import Kind


def write(thing: Any, kind: Kind, path: Path) -> None:
    """Write the record of a result."""
    if kind.record is None:
        raise ValueError(f"{path}: there is no JSON of {kind.title}. Save it as a .nc file.")
    write_text(path, json.dumps(kind.record(thing), indent=2, allow_nan=False) + "\n")


formats.register("json")(Format("JSON", write))
