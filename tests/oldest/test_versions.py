"""Python and each dependency have the declared minimum here. `make test-oldest` runs this first,
and then the other tests.
"""

from __future__ import annotations

import sys
from importlib.metadata import version

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from declared_versions import PROJECT, lowest, requirements


def test_python_is_the_oldest():
    (bound,) = SpecifierSet(PROJECT["project"]["requires-python"])
    assert bound.operator == ">=" and Version(bound.version).release == sys.version_info[:2]


@pytest.mark.parametrize("asked", requirements("dev"), ids=lambda asked: asked.name)
def test_this_is_the_declared_minimum(asked):
    """A higher version: the declared one is yanked, has no wheel, or another dependency refuses it.
    Raise the bound.
    """
    assert Version(version(asked.name)) == lowest(asked)
