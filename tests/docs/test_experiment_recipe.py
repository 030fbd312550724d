"""The recipe for an experiment of one's own in docs/extending.md, as a newcomer would follow it."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import attnlab as al
from attnlab.experiments.folders import NotAnExperiment, load_folder, load_named
from attnlab.experiments.reproduce import key_of
from places import DOCS


@pytest.fixture
def folder(tmp_path):
    """The folder of the recipe: each file's block stands below the line that names it."""
    text = (DOCS / "extending.md").read_text(encoding="utf-8")
    made = tmp_path / "two_tokens"
    made.mkdir()
    for file, block in re.findall(
        r"^`two_tokens/([\w.]+)`(?:.|\n)*?^```\w+\n(.*?)^```", text, re.DOTALL | re.MULTILINE
    ):
        (made / file).write_text(block, encoding="utf-8")
    assert sorted(path.name for path in made.iterdir()) == [
        "about.md",
        "claims.py",
        "experiment.py",
        "figures.py",
    ]
    return made


def test_the_recipe_runs_from_the_command_line(folder):
    def attnlab(*words):
        return subprocess.run(
            [sys.executable, "-m", "attnlab", *words],
            cwd=folder.parent,
            capture_output=True,
            text=True,
            timeout=120,
        )

    done = attnlab("reproduce", "./two_tokens", "--small")
    assert done.returncode == 0 and "mean rate of growth" in done.stdout, done.stderr
    record = json.loads(
        (folder.parent / "results" / "two_tokens" / "record.json").read_text(encoding="utf-8")
    )
    assert (
        record["holds"]
        and record["claims"][0]["expected"] == "between 0 and 1"
        and record["hurry"]["found"]
    )
    assert "Two tokens on a line" in (folder.parent / "results" / "index.html").read_text(
        encoding="utf-8"
    )
    done = attnlab("page", "./two_tokens", "-o", "pages")
    page = (folder.parent / "pages" / "two_tokens.md").read_text(encoding="utf-8")
    assert (
        done.returncode == 0 and (folder.parent / "pages" / "two_tokens.png").stat().st_size > 1000
    )
    assert (
        "**One number:** mean rate of growth = " in page
        and "**A caveat:**" in page
        and "1 of 1 claims hold" in page
    )
    assert "](two_tokens.png)\n\n*What to see: Each point is one pair. " in page
    assert attnlab("page", "./two_tokens", "--results", "none").returncode == 2


def test_a_folder_is_an_experiment_like_ours(folder):
    experiment = load_folder(folder)
    data = experiment.compute("small")
    assert experiment.claims(data)[0].holds and list(data["gaps"]["gap"].values) == [
        0.25,
        0.5,
        1.0,
        2.0,
    ]
    assert not any(experiment.claims(spoil(data))[0].holds for spoil in experiment.spoils.values())
    assert al.reproduce(folder, folder.parent / "results", size="small")["name"] == "two_tokens"


def test_a_changed_text_is_another_experiment(folder):
    before, key = load_folder(folder), key_of(load_folder(folder), "small", {})
    assert key == key_of(before, "small", {})
    path = folder / "experiment.py"
    path.write_text(
        path.read_text(encoding="utf-8").replace("[0.25, 0.5, 1.0, 2.0]", "[0.25]"),
        encoding="utf-8",
    )
    after = load_folder(folder)
    assert (
        len(after.compute("small")["gaps"]["gap"]) == 1
        and len(before.compute("small")["gaps"]["gap"]) == 4
    )
    assert key_of(after, "small", {}) != key


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("about.md", "title Two tokens\n\nProse.", "the head has one line per key"),
        ("about.md", "title: Two tokens\n\nProse.", "needs a line title: .. and a line cite: .."),
        ("claims.py", "spoils = {}\n", "has no claims in claims.py"),
        ("about.md", None, "needs a text file about.md"),
    ],
)
def test_a_folder_that_is_none_is_refused(folder, file, text, words):
    if text is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(text, encoding="utf-8")
    with pytest.raises(NotAnExperiment, match=re.escape(words)):
        load_named(folder)
    with pytest.raises(NotAnExperiment, match="There is no folder"):
        load_named("./nowhere")
