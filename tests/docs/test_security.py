"""SECURITY.md: every promise names tests, and the tests that it names are there."""

from __future__ import annotations

import ast
import re

from places import ROOT

PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_every_promise_names_tests_that_exist():
    promises = re.split(
        r"^\d+\. ", PAGE.split("## What attnlab does not promise")[0], flags=re.MULTILINE
    )[1:]
    assert len(promises) >= 8
    for promise in promises:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", promise)
        assert named, promise
        for path, name in named:
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            assert name in {
                node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
            }, f"{path}::{name}"


def test_the_page_is_short_and_says_how_to_report():
    assert len(PAGE.splitlines()) <= 80 and "## How to report a fault" in PAGE
