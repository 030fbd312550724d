"""Where things lie in the repository, whatever folder a test is in."""

from __future__ import annotations

from pathlib import Path

TRUTH = Path(__file__).resolve().parent
TESTS = TRUTH.parent
ROOT = TESTS.parent
DOCS = ROOT / "docs"
FROZEN = TRUTH / "frozen"
