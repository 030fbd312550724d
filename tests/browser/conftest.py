"""One browser for all tests of the explorer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chromium import find_chromium
from tab import Tab


@pytest.fixture(scope="session")
def browser_tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """The one browser of the session; tests take `tab`, which gives it back as it was."""
    if find_chromium() is None:
        pytest.skip("no Chromium is installed (apt-get install chromium)")
    with Tab(tmp_path_factory.mktemp("profile")) as browser_tab:
        yield browser_tab


@pytest.fixture
def tab(browser_tab: Tab) -> Iterator[Tab]:
    """A tab to act on. What a test made it prefer, see or run before pages is taken back at the
    end.
    """
    yield browser_tab
    browser_tab.prefer()
    browser_tab.see_as()
    browser_tab.forget_scripts()
