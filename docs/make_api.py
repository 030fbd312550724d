"""Writes docs/api.md, a table of all public names that reads in a plain clone, and
docs/api_details.md for the site.

python docs/make_api.py
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import attnlab as al
from attnlab.files import write_text
from attnlab.registry import Registry

DOCS = Path(__file__).parent
PAGE, DETAILS = DOCS / "api.md", DOCS / "api_details.md"

SECTIONS: dict[str, dict[str, str]] = {
    "Simulate": {"simulate": "", "velocity": "", "attention": ""},
    "What goes in": {
        "Weights": "heads, d, is_factored, M, full_V, total",
        "Dynamics": "of, replace, words, from_words, is_layers, is_value_linear",
        "FeedForward": "",
        "Solve": "",
    },
    "The axes of the equation": dict.fromkeys(
        ["kernels", "masks", "spaces", "scores", "reads", "writes", "speeds", "drifts", "noises"],
        "",
    ),
    "A member of an axis": {
        "axes.kernels.Kernel": "weights",
        "axes.kernels.ScaledKernel": "scaled_weights",
        "axes.masks.Mask": "seen",
        "axes.spaces.Space": "check, project, retract",
        "axes.scores.Scores": "compare",
        "axes.reads.Read": "__call__",
        "axes.writes.Write": "__call__",
        "axes.speeds.Speed": "__call__",
        "axes.drifts.Drift": "__call__",
        "axes.noises.Noise": "increment",
    },
    "What comes out": {
        "Trajectory": "x, z, rescaled, n, d, batch, is_ok, scaled_x",
        "Status": "*",
        "RunFailed": "",
        "RunInterrupted": "",
        "NoRescaledFrame": "",
    },
    "t = infinity": {
        "limit": "",
        "Limit": "certified, count, limits, place_count",
        "Grade": "*",
        "Event": "",
        "batches.Limits": "summary",
        "verify": "",
        "Verification": "",
    },
    "Theory": {
        "predict": "",
        "check": "",
        "verdicts.Predictions": "summary, ordered",
        "Prediction": "unmet",
        "verdicts.Verdicts": "summary",
        "Verdict": "paragraph",
        "Outcome": "*",
    },
    "Figures, movies and pages": {"plot": "", "movie": "", "explore": "", "Explorer": ""},
    "Specs, files and experiments": {
        "Spec": "",
        "run_spec": "",
        "resolve": "",
        "save": "",
        "load": "",
        "to_xarray": "",
        "reproduce": "",
        "UnknownName": "",
    },
    "Progress": {"Progress": "fraction, is_cancelled, cancel, part", "Cancelled": ""},
    "Many runs": {
        "Sweep": "load, from_dict, run, spec_of",
        "sweep.load": "",
        "sweep.export": "",
        "sweep.plot": "",
    },
    "Trained models": {
        "models.load": "",
        "models.heads": "",
        "models.Model": "",
        "models.spectra": "",
        "models.sentence": "",
        "models.survey": "",
        "models.intervals": "",
        "models.compare": "",
        "models.table": "",
        "models.iterate": "",
        "models.dossier": "",
        "models.Dossier": "",
        "models.flow": "",
        "models.findings": "",
        "models.Flow": "status, in_doubt, clusters",
        "models.BadModel": "",
    },
}
"""{heading: {name: members that the details show}}: "" for all that have a docstring where it is a
class, "*" for all.
"""

ALL_MEMBERS = ("Spec", "models.Model")

HEAD = """# The API

Use every name below as `al.name` after `import attnlab as al`. One row is one name: how you call
it, and what it returns or is. The last two axes of an array of tokens are (token, coordinate). Time
comes before them, and the batch comes first.

[The details](api_details.md) have every argument. The site shows them (`make docs`), and in Python
`help(al.simulate)` shows the same. Names that are not on this page may change without notice.
[Specs](spec.md) have a reference of their own, and so has the command line: `attnlab --help`.
`python docs/make_api.py` writes this page.
"""

DETAILS_HEAD = """# The API in detail

The text of this page comes from the docstrings when the site is built (`make docs`).
[The overview](api.md) is one table per topic.
"""


def find(name: str) -> Any:
    """Return the thing that a name of the page stands for."""
    thing: Any = al
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


def write_page() -> str:
    """Return the overview: one table per section."""
    parts = [HEAD]
    for heading, names in SECTIONS.items():
        rows = "\n".join(f"| `{write_call(name)}` | {summarise(find(name))} |" for name in names)
        parts.append(f"## {heading}\n\n| name | what it returns or is |\n| --- | --- |\n{rows}\n")
    return "\n".join(parts)


def write_call(name: str) -> str:
    """Return how a function is called: the names of its arguments. A class or an exception is only
    named.
    """
    thing = find(name)
    if inspect.isclass(thing) or isinstance(thing, Registry):
        return name
    given = [
        ("*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else "")
        + one.name
        for one in inspect.signature(thing).parameters.values()
    ]
    return f"{name}({', '.join(given)})"


def summarise(thing: Any) -> str:
    """Return the first sentence of a docstring as one cell of a table."""
    first = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    sentence = re.split(r"(?<=[a-z0-9)\]`])\. ", first)[0].rstrip(".") + "."
    return (
        re.sub(r"([*_|<])", r"\\\1", sentence)
        if "`" not in sentence
        else sentence.replace("|", r"\|")
    )


def write_details() -> str:
    """Return the page from which Sphinx makes the details."""
    parts = [DETAILS_HEAD]
    for heading, names in SECTIONS.items():
        lines = "\n".join(line for name, members in names.items() for line in direct(name, members))
        parts.append(f"## {heading}\n\n```{{eval-rst}}\n{lines}\n```\n")
    return "\n".join(parts)


def direct(name: str, members: str) -> list[str]:
    """Return the lines that tell Sphinx to show a name."""
    thing = find(name)
    if isinstance(thing, Registry):
        return [f".. autodata:: attnlab.{name}", "   :no-value:"]
    if not inspect.isclass(thing):
        return [f".. autofunction:: attnlab.{name}"]
    kind = "autoexception" if issubclass(thing, BaseException) else "autoclass"
    lines = [f".. {kind}:: attnlab.{name}{'()' if name == 'UnknownName' else ''}"]
    if members == "*":
        return [*lines, "   :members:", "   :undoc-members:"]
    return [
        *lines,
        *([f"   :members: {members}".rstrip()] if members or name in ALL_MEMBERS else []),
    ]


if __name__ == "__main__":
    write_text(PAGE, write_page())
    write_text(DETAILS, write_details())
