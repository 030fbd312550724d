"""Writes docs/examples.md and its figures by running the scripts of examples/: `python
docs/make_examples.py [NAME ...]`.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from make_glossary import add_links, wrap
from PIL import Image

DOCS = Path(__file__).parent
SCRIPTS, IMAGES, PAGE = DOCS.parent / "examples", DOCS / "images" / "examples", DOCS / "examples.md"

ORDER = {
    "polytope": "A polytope",
    "hyperplanes": "Hyperplanes",
    "two_frames": "Two frames",
    "past_the_wall": "Past the wall",
    "euler_steps": "Euler steps",
    "sphere": "The sphere",
    "several_heads": "Several heads",
    "own_observable": "An observable of one's own",
    "trained_head": "A trained head",
    "sentence": "A sentence",
}
"""From the paper's first picture to trained models; the values are headings."""

HEAD = """# Examples

The folder `examples/` has ten scripts of at most forty lines. Each has one idea and one figure.
`python examples/polytope.py` writes `polytope.png` into the current folder and prints one line. On
this page the line stands below the figure. The last two scripts need a trained model: run
`attnlab fetch minilm` first. `python docs/make_examples.py` writes this page.
"""


def read_idea(name: str) -> tuple[str, str]:
    """Return the docstring of a script as Markdown, without markup: its idea, and what to see."""
    text = ast.get_docstring(ast.parse((SCRIPTS / f"{name}.py").read_text(encoding="utf-8"))) or ""
    first, see = (re.sub(r"([*_<])", r"\\\1", part) for part in text.split("\n\n"))
    return wrap(first), wrap(f"*What to see: {see}*")


def read_code(name: str) -> str:
    """Return the code of a script without its docstring, as it stands in the file."""
    text = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
    return text[text.index("import matplotlib") :].strip()


def write_page(lines: dict[str, str]) -> str:
    """Return the page. lines: the line that each script prints. The docstring stands above the
    code.
    """
    parts = [HEAD]
    for name, heading in ORDER.items():
        first, see = read_idea(name)
        parts.append(
            f"## {heading}\n\n{first}\n\n![{heading}](images/examples/{name}.png)\n\n"
            f"{see}\n\n```text\n{lines[name]}\n```\n\n"
            f"[examples/{name}.py](../examples/{name}.py):\n\n```python\n{read_code(name)}\n```\n"
        )
    return add_links("\n".join(parts))


def read_lines() -> dict[str, str]:
    """Return the line of each script, as the page has them."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    found = re.findall(r"^```text\n((\w+)\.png: .*)\n```$", text, re.MULTILINE)
    return {name: line for line, name in found}


def run_script(name: str) -> str:
    """Run one script, keep its figure, and return the line that it prints."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(SCRIPTS / f"{name}.py")],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "MPLBACKEND": "Agg"},
        )
        # a palette makes them three times smaller, and nobody sees it
        with Image.open(Path(folder) / f"{name}.png") as figure:
            figure.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(
                IMAGES / f"{name}.png", optimize=True
            )
    return done.stdout.strip()


def main(names: list[str]) -> None:
    """Run the scripts of these names again, all where none is given, and write the page."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    lines = read_lines()
    for name in names or ORDER:
        lines[name] = run_script(name)
        print(lines[name])
    PAGE.write_text(write_page(lines), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
