"""docs/theorems.md: every registered result is there, in the words it is registered with. No
specimen is run here.
"""

from __future__ import annotations

import pytest

from attnlab.theory import theorems

STALE = "Bring it up to date: python docs/make_theorems.py"


@pytest.fixture
def maker(from_docs):
    return from_docs("make_theorems")


def test_the_page_of_results_is_current(maker):
    assert maker.PAGE.read_text() == maker.write_page(maker.read_specimens()), STALE


def test_every_result_has_its_specimens(maker):
    found = maker.read_specimens()
    assert set(found) == set(theorems), STALE
    for name, (_, words) in found.items():
        for outcome in ("SUPPORTED", "OUT_OF_SCOPE", "UNDECIDED", "CONTRADICTED"):
            assert f"{name} ({theorems[name].kind}): {outcome}" in words, STALE


def test_mathematics_is_not_taken_for_markdown(maker):
    assert maker.wrap("phi*_1(z_i) of `a_b` <= 3") == r"phi\*\_1(z\_i) of `a_b` \<= 3"
    assert maker.wrap("**Errata:** x_1") == r"**Errata:** x\_1"
    assert maker.wrap("X[mu](x) in [e](e.md)") == r"X\[mu\] (x) in [e](e.md)"
