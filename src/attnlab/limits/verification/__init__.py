"""A certificate checked again from the state that is stored with a Limit. One file per way in which
a certificate comes about.

A file registers a function under the name of its way. The function gets a Limit and yields `Step`s;
each is a name and a function that returns a sentence about what holds, or raises `Failed` with a
sentence about what does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attnlab.registry import Registry

ways: Registry[Callable[..., Any]] = Registry(
    "way to a certificate", package="attnlab.limits.verification"
)
