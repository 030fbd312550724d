"""A sweep that is killed at random moments loses, doubles and changes no row. The script beside
this file does it 200 times.
"""

from __future__ import annotations

import sys

import kill_sweep
import pytest


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the children of a process are read from /proc"
)
def test_a_sweep_that_is_killed_again_and_again():
    happened = kill_sweep.attack(12, seeds=100)
    assert happened["rows won"] > 0 and happened["rows compared"] >= happened["rows won"]
