"""How Sphinx makes the site out of the pages of this folder: `make docs`. Nothing is fetched while
it builds.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import attnlab

project = "attnlab"
author = "The attnlab developers"
copyright = "2026, The attnlab developers"  # the name is Sphinx's
version = release = attnlab.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

myst_heading_anchors = 3  # by GitHub's rule, where the same pages are read too

napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes as a list under the class
napoleon_use_rtype = False

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 90
add_module_names = False

html_title = f"attnlab {version}"
html_theme = "furo" if importlib.util.find_spec("furo") else "alabaster"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["live.js", "search_offline.js"]
html_copy_source = False
html_show_sphinx = False

RETURNED = (
    "Trajectory",
    "Limit",
    "Event",
    "Solve",
    "Model",
    "Flow",
    "RunFailed",
    "RunInterrupted",
    "Status",
    "UnknownName",
    "Prediction",
    "Verdict",
    "Outcome",
    "Kernel",
    "ScaledKernel",
    "Mask",
    "Space",
    "Scores",
    "Read",
    "Write",
    "Speed",
    "Drift",
    "Noise",
)
"""Records that attnlab makes and users read, and Protocols: their constructors are not shown."""


def as_text(line: str) -> str:
    """Return a line of prose for docutils: text between backquotes is code, and letters of the
    mathematics are not markup.
    """
    parts = re.split(r"`([^`]+)`", line)
    return "".join(
        f"``{part}``" if place % 2 else re.sub(r"([*|\\]|(?<=\w)_(?!\w))", r"\\\1", part)
        for place, part in enumerate(parts)
    )


def escape_mathematics(
    app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Prepare a docstring for napoleon. Doctests, formulas indented below `::` and names of
    arguments stay as they are.
    """
    is_doctest, formula = False, None
    for number, line in enumerate(lines):
        stripped, indent = line.strip(), len(line) - len(line.lstrip())
        if formula is not None and (not stripped or indent > formula):
            continue
        formula = indent if stripped.endswith("::") else None
        is_doctest = bool(stripped) and (is_doctest or stripped.startswith(">>>"))
        if is_doctest:
            continue
        argument = re.fullmatch(r"([\w*, ]+) : (.+)", line)
        if argument and lines[number + 1].startswith(
            " "
        ):  # emphasis: Sphinx takes plain words for names of classes
            lines[number] = f"{argument[1]} : *{as_text(argument[2])}*"
        else:
            lines[number] = as_text(line)


def set_signature(
    app: Any,
    what: str,
    name: str,
    thing: Any,
    options: Any,
    signature: str | None,
    returned: str | None,
) -> Any:
    """No arguments for records that are only read; types without their modules, defaults as a user
    would write them.
    """
    if what in ("class", "exception") and name.rsplit(".", 1)[-1] in RETURNED:
        return "", None
    if signature is None:
        return None
    plain = re.sub(r"~?(?:\w+\.)+(?=[A-Z])", "", signature)
    plain = plain.replace("<factory>", "{}").replace("slice(None, None, None)", "slice(None)")
    return re.sub(r"<(?:function|class) '?(?:\w+\.)*(\w+)'?>", r"\1", plain), returned


def write_explorer(app: Any, problem: Exception | None) -> None:
    """Write the live explorer, all presets, beside the other files that pages of the site use."""
    if problem is None and app.builder.format == "html":
        attnlab.explore(None, Path(app.outdir) / "_static" / "explorer.html")


def setup(app: Any) -> None:
    """Sphinx asks for it."""
    app.connect("build-finished", write_explorer)
    app.connect(
        "autodoc-process-docstring", escape_mathematics, priority=400
    )  # before napoleon, which has 500
    app.connect("autodoc-process-signature", set_signature)
