"""Some pages of plain English, written for attnlab: what the experiments with real embeddings
read.
"""

from __future__ import annotations

from pathlib import Path

TEXT = Path(__file__).with_name("paragraphs.txt").read_text(encoding="utf-8")
PARAGRAPHS = tuple(" ".join(paragraph.split()) for paragraph in TEXT.split("\n\n"))
