"""Flags: every registered member tells the truth, every flag has a check, and no member whose flag
lies passes it.
"""

from __future__ import annotations

import pytest

from attnlab.axes.members import AXES
from attnlab.axes.registry import parameter_names
from axes_flags import CHECKS, UNCHECKED, axis_flags, check_flag, check_member
from axes_members import NAMES, make, own_members

assert own_members  # a fixture: the members of the tests are registered in this file


def test_every_flag_has_a_check_or_a_reason():
    flags = {(axis, flag) for axis in AXES for flag in axis_flags(axis)}
    assert CHECKS.keys() | UNCHECKED.keys() == flags and not CHECKS.keys() & UNCHECKED.keys()


@pytest.mark.parametrize("axis, name", [(axis, name) for axis in NAMES for name in NAMES[axis]])
def test_every_member_does_what_its_flags_say(axis, name):
    check_member(axis, make(axis, name))


@pytest.mark.parametrize("axis, flag", CHECKS)
def test_a_member_whose_flag_lies_fails(axis, flag):
    """A copy of every member with this flag turned: "softmax, but rows do not sum to 1", and so
    on.
    """
    values = set()
    for name in NAMES[axis]:
        honest = make(axis, name)
        values.add(getattr(honest, flag))
        liar = type("Liar", (type(honest),), {flag: not getattr(honest, flag)})
        parameters = {
            parameter: getattr(honest, parameter) for parameter in parameter_names(type(honest))
        }
        try:
            check_flag(axis, liar(**parameters), flag)
        except AssertionError:
            continue
        pytest.fail(
            f"the {AXES[axis].kind} {name} says {flag} = {not getattr(honest, flag)}, and passes"
        )
    assert values == {True, False}  # both lies were told
