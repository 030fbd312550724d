"""The folder of an experiment: what its about.md says, and the Experiment that its files make.

    about.md         head: title, cite, needs (the extra that must be installed), source (which
                     figure or slide, for the index),
                     showed, found, number, caveat (for a reader in a hurry), see (what to see
                     in the figure); then prose
    experiment.py    compute: Parts, or a function (size, progress); specs(size), where runs have a
                     Spec
    claims.py        claims(data), spoils
    figures.py       figures(data); film(data) and film_options, where there is a film;
                     tables(data), for the page

A short experiment may have everything in experiment.py. The files import each other as `from
.experiment import measure`.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.displayed import Displayed, short_repr
from attnlab.experiments.record import Experiment

ABOUT = "about.md"
FILES = ("experiment", "claims", "figures")
HURRY = ("showed", "found", "number", "caveat")
"""For a reader in a hurry: what the slide or the paper showed; what we find; words of the claim
whose number counts; a caveat.
"""

KEYS = ("title", "cite", "needs", "source", *HURRY, "see")
HOMES = {
    "compute": "experiment",
    "specs": "experiment",
    "claims": "claims",
    "spoils": "claims",
    "figures": "figures",
    "film": "figures",
    "film_options": "figures",
    "tables": "figures",
}
"""Where each part of an experiment is looked for first; then in experiment.py."""

NEEDED = ("compute", "claims", "spoils", "figures")


class NotAnExperiment(ValueError):
    """A folder that is not that of an experiment; the message says what is missing."""


@dataclass(frozen=True)
class About(Displayed):
    """What about.md says: the entries of its head, and its prose, paragraphs with a blank line
    between them.
    """

    head: Mapping[str, str]
    prose: str
    __repr__ = short_repr


def read_about(folder: Path) -> About:
    """Read the about.md of a folder: "key: value" up to the first blank line, where an indented
    line goes on; then prose.
    """
    try:
        text = (folder / ABOUT).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise NotAnExperiment(
            f"{folder} is not the folder of an experiment: it needs a text file {ABOUT} with a"
            " title. docs/extending.md has the recipe."
        ) from None
    first, _, rest = text.strip().partition("\n\n")
    head: dict[str, str] = {}
    for line in first.splitlines():
        key, colon, value = line.partition(":")
        if line.startswith(" ") and head:
            head[list(head)[-1]] += f" {line.strip()}"
        elif colon and key in KEYS and key not in head:
            head[key] = value.strip()
        else:
            raise NotAnExperiment(
                f"{folder / ABOUT}: the head has one line per key, as in 'title: Two tokens', with"
                f" the keys {', '.join(KEYS)}; got {line!r}."
            )
    if not head.get("title") or not head.get("cite"):
        raise NotAnExperiment(
            f"{folder / ABOUT} needs a line title: .. and a line cite: .. at its beginning."
        )
    return About(head, "\n\n".join(" ".join(part.split()) for part in rest.strip().split("\n\n")))


def load_folder(folder: Path) -> Experiment:
    """Import the files of a folder and return their Experiment, which is called like the folder."""
    about, modules = read_about(folder), _import_files(folder)
    found: dict[str, Any] = {}
    for name, home in HOMES.items():
        module = next(
            (modules[file] for file in (home, "experiment") if hasattr(modules.get(file), name)),
            None,
        )
        if module is not None:
            found[name] = getattr(module, name)
    missing = [f"{name} in {HOMES[name]}.py" for name in NEEDED if name not in found]
    if missing:
        raise NotAnExperiment(f"The experiment in {folder} has no {' and no '.join(missing)}.")
    return Experiment(
        name=folder.name,
        title=about.head["title"],
        cite=about.head["cite"],
        about=about.prose,
        needs=about.head.get("needs", ""),
        hurry={key: about.head.get(key, "") for key in HURRY},
        folder=folder,
        movie=found.pop("film", None),
        movie_options=found.pop("film_options", {}),
        **found,
    )


def is_folder(name: str | os.PathLike[str]) -> bool:
    """Whether a name means a folder and not an experiment of ours: a path, or a folder with an
    about.md.
    """
    return (
        not isinstance(name, str)
        or os.sep in name
        or "/" in name
        or name == "."
        or (Path(name) / ABOUT).is_file()
    )


def load_named(name: str | os.PathLike[str]) -> Experiment:
    """Load the experiment of a registered name, or of the folder at a path."""
    from attnlab.experiments import (
        experiments,
    )  # circular: the registry loads folders by this module

    if not is_folder(name) or (isinstance(name, str) and name in experiments):
        found: Experiment = experiments[str(name)]
        return found
    folder = Path(name).resolve()
    if not folder.is_dir():
        raise NotAnExperiment(
            f"There is no folder {os.fspath(name)}. Give the folder of an experiment, or one of"
            f" these names: {', '.join(experiments)}."
        )
    if not folder.name.isidentifier():
        raise NotAnExperiment(
            "The folder of an experiment is named with letters, digits and _, as its results are;"
            f" got {folder.name!r}."
        )
    return load_folder(folder)


def titles() -> dict[str, str]:
    """{name: title} of all experiments. Nothing of them is imported."""
    from attnlab.experiments import experiments  # circular, as above

    return {
        name: (
            read_about(experiments.folders[name]).head["title"]
            if name in experiments.folders
            else experiments[name].title
        )
        for name in experiments
    }


def texts_of(folder: Path) -> list[str]:
    """The texts of all files that the results of a folder depend on."""
    return [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))]


def _import_files(folder: Path) -> dict[str, Any]:
    """The modules of a folder: those of attnlab by their names, others in a package that is named
    after their texts.
    """
    package = _package_of(folder)
    return {
        file: importlib.import_module(f"{package}.{file}")
        for file in FILES
        if (folder / f"{file}.py").is_file()
    }


def _package_of(folder: Path) -> str:
    """The name of the package of a folder. A folder from anywhere gets one of its own: a changed
    text is another package.
    """
    root = Path(__file__).parent
    if root in folder.parents:
        return ".".join(["attnlab.experiments", *folder.relative_to(root).parts])
    digest = hashlib.sha256("\0".join([str(folder), *texts_of(folder)]).encode()).hexdigest()[:12]
    name = f"attnlab_experiment_{folder.name}_{digest}"
    if name not in sys.modules:
        package = types.ModuleType(name, f"The experiment in {folder}.")
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name
