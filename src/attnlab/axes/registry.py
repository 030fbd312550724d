"""A registry of the members of one axis of the equation. It checks members, and converts them from
and to words.

    kernels = AxisRegistry("kernel", "attnlab.axes.kernels", default="softmax",
    functions=("weights",),
                           flags=("rows_sum_to_one",), later={"may_be_negative": False})

A member is a class with functions and flags; it need not derive from another class. Its parameters
are those of __init__, each kept as an attribute of the same name. `register` adds its name, default
flags, and an equality by name and parameters, so that `dynamics.kernel == "softmax"` is true.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

import numpy as np

from attnlab.registry import Registered, Registry, unknown_name

Member = TypeVar("Member")
"""The Protocol of the members of an axis."""


class AxisRegistry(Registry[type[Any]], Generic[Member]):
    """The members of one axis by name."""

    def __init__(
        self,
        kind: str,
        package: str,
        *,
        about: str,
        default: str,
        functions: tuple[str, ...] = (),
        flags: tuple[str, ...] = (),
        later: Mapping[str, bool] | None = None,
    ):
        super().__init__(kind, package)
        self.__doc__ = (
            f"{about} A registry: `list` of it has the names, `register(name)` files a class under"
            " a name."
        )
        self.default, self.functions, self.flags, self.later = (
            default,
            functions,
            flags,
            dict(later or {}),
        )
        self._shared: dict[type, Any] = {}  # the one object of each class without parameters

    def register(self, name: str) -> Callable[[Registered], Registered]:
        """Return a decorator that checks a class and registers it under `name`."""
        file_it = super().register(name)

        def check_and_file(member: Any) -> Any:
            self._check_class(name, member)
            if member.__module__ != f"{self._package}.{name}" and self._has_file(
                name
            ):  # attnlab's own, not imported yet
                raise ValueError(
                    f"The {self.kind} {name!r} is registered already, by attnlab itself. Choose"
                    " another name."
                )
            _complete(member, name, self.later)
            return file_it(member)

        return check_and_file

    def _check_class(self, name: str, member: Any) -> None:
        """Refuse anything but a class, a missing function or flag, and a flag of the wrong type."""
        if not isinstance(member, type):
            raise TypeError(
                f"The {self.kind} {name!r} must be a class, got {type(member).__name__}."
            )
        for function in self.functions:
            # every class has a __call__, which makes its objects: look for one in the class itself
            # or a parent
            own = next(
                (vars(base)[function] for base in member.__mro__ if function in vars(base)), None
            )
            if not callable(own):
                raise TypeError(
                    f"The {self.kind} {name!r} must have the function {function}. docs/extending.md"
                    " shows one."
                )
        for flag in (*self.flags, *self.later):
            if flag in self.flags and not hasattr(member, flag):
                raise TypeError(
                    f"The {self.kind} {name!r} must have the flag {flag} = True or False."
                )
            value = getattr(member, flag, False)
            if not isinstance(value, bool | property):
                raise TypeError(
                    f"The flag {flag} of the {self.kind} {name!r} must be True or False, got"
                    f" {value!r}."
                )

    def make(self, given: Any) -> Member:
        """Return the member of a name, of a table {name = "...", and its parameters}, or a member
        itself. None: the default.
        """
        if given is None:
            given = self.default
        if isinstance(given, str):
            member = self._things.get(given)
            return (
                self._shared[member]
                if member in self._shared
                else self._from_table({"name": given})
            )
        if isinstance(given, Mapping):
            return self._from_table(given)
        if isinstance(given, type):
            raise TypeError(
                f"{self.kind} must be a name, a table or a member, got the class {given.__name__}:"
                " call it first."
            )
        name = getattr(given, "name", None)
        if isinstance(name, str) and self._things.get(name) is type(given):
            return cast(Member, given)  # without the package, which would import all members
        if not isinstance(name, str) or name not in self or type(given) is not self[name]:
            raise TypeError(
                f"{self.kind} must be the name of one, a table with its name, or a member that was"
                f" registered; got {type(given).__name__}. Known: {', '.join(self)}."
            )
        return cast(Member, given)

    def _from_table(self, table: Mapping[str, Any]) -> Member:
        parameters = {key: value for key, value in table.items() if key != "name"}
        name = table.get("name")
        if not isinstance(name, str):
            raise ValueError(
                f"A table for the {self.kind} must have the key name, the name of a {self.kind},"
                f" got {name!r}. Known: {', '.join(self)}."
            )
        member = self[name]
        known = parameter_names(member)
        for key in parameters:
            if key not in known:
                raise unknown_name(f"parameter of the {self.kind} {name!r}", key, known)
        if not known:  # all its objects are equal, so one is enough
            return self._shared.setdefault(member, member())
        for parameter in _parameters(member):
            if parameter.default is parameter.empty and parameter.name not in parameters:
                raise ValueError(
                    f"The {self.kind} {name!r} needs the parameter {parameter.name}: "
                    f'{{"name": "{name}", "{parameter.name}": ...}}.'
                )
        try:
            return member(**parameters)
        except TypeError as problem:
            raise ValueError(
                f"The {self.kind} {name!r} cannot be made of {parameters}: {problem}."
            ) from problem

    def words(self, member: Any) -> str | dict[str, Any]:
        """Return the words of a member: its name, or a table of its name and the parameters that
        are not defaults.
        """
        found = {}
        for parameter in _parameters(type(member)):
            value = getattr(member, parameter.name, _MISSING)
            if value is _MISSING:
                raise TypeError(
                    f"The {self.kind} {member.name!r} must keep its parameter {parameter.name} as"
                    " an attribute of that name, so that it can be saved."
                )
            if not _is_equal(value, parameter.default):
                found[parameter.name] = _plain(value)
        return {"name": member.name, **found} if found else member.name


_MISSING = object()


def _parameters(member: type) -> list[inspect.Parameter]:
    if member.__init__ is object.__init__:  # type: ignore[misc]
        return []
    return [
        one
        for one in list(inspect.signature(member.__init__).parameters.values())[1:]  # type: ignore[misc]
        if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]


def parameter_names(member: type) -> list[str]:
    """Return the names of the parameters of a member."""
    return [one.name for one in _parameters(member)]


def _complete(member: Any, name: str, later: Mapping[str, bool]) -> None:
    """Give a class its name, its default flags, and functions to compare and print its objects."""
    member.name = name
    for flag, value in later.items():
        if not hasattr(member, flag):
            setattr(member, flag, value)
    if member.__eq__ is object.__eq__:
        member.__eq__ = _equal
    member.__hash__ = _hash
    if member.__repr__ is object.__repr__:
        member.__repr__ = _text


def _equal(self: Any, other: object) -> Any:
    if isinstance(other, str):
        return self.name == other
    if type(other) is not type(self):
        return NotImplemented
    return all(
        _is_equal(getattr(self, name, None), getattr(other, name, None))
        for name in parameter_names(type(self))
    )


def _hash(self: Any) -> int:
    return hash(self.name)


def _text(self: Any) -> str:
    given = [
        f"{one.name}={getattr(self, one.name, None)!r}"
        for one in _parameters(type(self))
        if not _is_equal(getattr(self, one.name, None), one.default)
    ]
    return f"{self.name}({', '.join(given)})" if given else str(self.name)


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return (
            isinstance(one, np.ndarray)
            and isinstance(other, np.ndarray)
            and np.array_equal(one, other)
        )
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


def _plain(value: Any) -> Any:
    """Return a parameter as JSON and TOML can hold it."""
    if isinstance(value, str):
        return str(value)  # a member of an enumeration is its word
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
