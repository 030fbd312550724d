"""What must hold of every page of the tour and of its table."""

from __future__ import annotations

import csv
import dataclasses
import json
import re

from attnlab.tour.record import Row
from embedded_viewers import check_viewers


def check_page(folder) -> str:
    """The text of the page, which must need nothing but itself."""
    text = (folder / "index.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and text.endswith("</html>\n")
    check_viewers(text)
    assert not re.search(r'(src|href)=("(?!data:|#)|[^"])', text) and "url(" not in text
    assert "http:" not in text and "https:" not in text
    images = re.findall(r"<img [^>]*>", text)
    assert images and all(re.search(r' alt="[^"]{10,}"', image) for image in images)
    assert not list(folder.glob(".*"))  # nothing half written
    places = set(re.findall(r' id="([^"]+)"', text))
    assert set(re.findall(r"""href=["']#([^"']+)["']""", text)) <= places and "terms" in places
    return text


def check_summary(folder) -> list[dict]:
    """The rows, which are the same in both files."""
    rows = json.loads((folder / "summary.json").read_text())
    with (folder / "summary.csv").open(newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == [row["name"] for row in rows]
    assert all(set(row) == {field.name for field in dataclasses.fields(Row)} for row in rows)
    return rows
