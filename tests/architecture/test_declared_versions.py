"""Each dependency has a lower bound, which `make test-oldest` tries, and no upper bound."""

from __future__ import annotations

from packaging.requirements import Requirement

from declared_versions import EXTRAS, PROJECT, lowest, requirements

PINNED = {"torch"}
"""The CPU build of this version is small, and the default of another one is not. Only `make parity`
and `make bench` need it.
"""


def test_lower_bounds_only():
    for asked in requirements(*EXTRAS):
        operators = [part.operator for part in asked.specifier]
        assert operators == (["=="] if asked.name in PINNED else [">="]), (
            f"{asked}: give a lower bound and no other."
        )


def test_what_users_install_is_not_pinned():
    assert not PINNED & {asked.name for asked in requirements("models", "dev")}


def test_the_tests_build_the_wheel_with_what_a_user_would():
    (builder,) = map(Requirement, PROJECT["build-system"]["requires"])
    (ours,) = (asked for asked in requirements("dev") if asked.name == builder.name)
    assert lowest(ours) == lowest(builder)
