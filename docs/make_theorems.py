"""Writes docs/theorems.md from the registry of statements, and its picture.

    python docs/make_theorems.py            only specimens whose file has changed are run again
    python docs/make_theorems.py --fresh    all are

What specimens came to stands in the page between <!-- specimens NAME --> and <!-- end -->; all else
is made of the registered words, so that `tests/docs/test_theorems.py` can tell without a run
whether the page is up to date.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import os
import re
import sys
import textwrap
from pathlib import Path

from make_glossary import add_links

import attnlab as al
from attnlab.cli.names import first_sentence
from attnlab.theory import theorems
from attnlab.verdicts import Theorem, Verdict

PAGE = Path(__file__).parent / "theorems.md"
PICTURE = "images/verdicts.png"
WIDTH = 100
REGION = re.compile(r"<!-- specimens (\w+) (\w+) -->\n(.*?)\n<!-- end -->", re.DOTALL)
PARTS = {
    "theorem": (
        "Theorems",
        (
            "Proved, in the paper or in the source that is named. If a run contradicts "
            "one, the run or the program has a fault."
        ),
    ),
    "conjecture": (
        "Conjectures and open questions",
        "Not proved. A contradiction here is news, or a known counterexample.",
    ),
    "estimate": (
        "Estimates",
        "Inequalities that hold for every run, with constants. They find wrong data first.",
    ),
}


def write_page(found: dict[str, tuple[str, str]]) -> str:
    """Return the page. found: {name: (digest of its file, what the specimens gave, in
    Markdown)}.
    """
    parts = [
        "# The statements that are checked",
        wrap("""
            attnlab checks these statements on your runs. Each is one file in
            `src/attnlab/theory/statements`, and `python docs/make_theorems.py` writes this page
            from them. Errors of the paper are in [errata.md](errata.md).
        """),
        (
            "    attnlab predict hyperplanes_2d        # which statements apply, and what they say"
            " beforehand\n    attnlab check hyperplanes_2d          # whether the run does it"
        ),
        wrap("""
            In Python these are `al.predict(weights, x0)` and `al.check(run)`.
            `al.plot(al.check(run))` draws the verdicts. A verdict rests on one number that must be
            at most a bound:
        """),
        (
            "- SUPPORTED: it is, as far as its error can tell.\n- CONTRADICTED: it is above the"
            " bound, by more than its error.\n- UNDECIDED: the error is too large, or the run is"
            " too short. The verdict says what would decide.\n- OUT\\_OF\\_SCOPE: a hypothesis"
            " fails. The verdict says which."
        ),
        wrap("""
            Every statement has four specimens: a run of which it is true, a run outside its
            hypotheses, a run that is too short or too coarse, and the first run with damaged data.
            A test runs them all.
        """),
        f"![The verdicts on the runs they are true of]({PICTURE})",
        wrap("""
            *What to see: One row is one statement, on a run of which it is true. A dot in the
            shaded part, with its whole error line, would contradict the statement. There is none.*
        """),
    ]
    for kind, (title, words) in PARTS.items():
        names = [name for name in theorems if theorems[name].kind == kind]
        if names:
            entries = [write_entry(theorems[name], found) for name in names]
            parts += [f"## {title}", wrap(words), *entries]
    return add_links("\n\n".join(parts) + "\n")


def write_entry(theorem: Theorem, found: dict[str, tuple[str, str]]) -> str:
    """Return one statement: its words, what is measured, errata, specimens, citation."""
    digest, specimens = found.get(theorem.name, ("none", "Not run yet."))
    lines = [
        f"### {theorem.name}",
        wrap(theorem.statement),
        wrap(f"**Measured:** {sentence_of(inspect.getdoc(theorem.measure))}"),
        wrap(f"**Hypotheses:** {sentence_of(inspect.getdoc(theorem.hypotheses))}"),
    ]
    if theorem.errata:
        lines.append(wrap(f"**Errata:** {theorem.errata}"))
    lines.append(f"<!-- specimens {theorem.name} {digest} -->\n{specimens}\n<!-- end -->")
    return "\n\n".join([*lines, wrap(f"*{theorem.cite}.*")])


def sentence_of(text: str | None) -> str:
    """What a docstring says first."""
    return first_sentence(text) if text else "see the file."


def wrap(text: str) -> str:
    """Return a paragraph in lines, with * and _ and < of the mathematics escaped outside code."""
    pieces = re.split(
        r"(`[^`]*`|\[[^\]]*\]\([^)]*\.md\)|\*\*[A-Z][a-z]+:\*\*|^\*|\*$)", " ".join(text.split())
    )
    pieces[::2] = [
        re.sub(r"([*_<\[\]])", r"\\\1", piece).replace("](", "] (") for piece in pieces[::2]
    ]
    return textwrap.fill("".join(pieces), WIDTH, break_long_words=False, break_on_hyphens=False)


def run_specimens(theorem: Theorem) -> tuple[str, Verdict]:
    """Check a statement on its four specimens; return Markdown, and the verdict on the first."""
    run = theorem.holds()
    runs = {
        "true": run,
        "outside": theorem.breaks(),
        "too little": theorem.short(),
        "spoiled": theorem.spoil(run),
    }
    verdicts = {word: al.check(one, names=[theorem.name])[0] for word, one in runs.items()}
    lines = ["```text", *(f"{word:<12}{verdict}" for word, verdict in verdicts.items()), ""]
    lines += textwrap.wrap(verdicts["true"].evidence, WIDTH)
    lines += [str(one) for one in verdicts["true"].hypotheses]
    return "\n".join([*lines, "```"]), verdicts["true"]


def digest_of(theorem: Theorem) -> str:
    """Return the digest of the file that registers a statement."""
    return hashlib.sha256(Path(inspect.getfile(theorem.measure)).read_bytes()).hexdigest()[:12]


def read_specimens() -> dict[str, tuple[str, str]]:
    """Return what the page has of the specimens: {name: (digest, Markdown)}."""
    text = PAGE.read_text() if PAGE.exists() else ""
    return {match[1]: (match[2], match[3]) for match in REGION.finditer(text)}


def main() -> None:
    """Run the specimens whose statement has changed, and write the page and the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="run all specimens again")
    is_fresh, found, drawn = parser.parse_args().fresh, read_specimens(), []
    for name in theorems:
        theorem, digest = theorems[name], digest_of(theorems[name])
        if is_fresh or found.get(name, ("",))[0] != digest:
            print(name, file=sys.stderr)
            words, verdict = run_specimens(theorem)
            found[name] = (digest, words)
        else:
            (verdict,) = al.check(theorem.holds(), names=[name])
        drawn.append(verdict)
    (PAGE.parent / PICTURE).parent.mkdir(exist_ok=True)
    al.plot(drawn).savefig(PAGE.parent / PICTURE)
    draft = PAGE.with_suffix(".part")
    draft.write_text(write_page(found))
    os.replace(draft, PAGE)


if __name__ == "__main__":
    main()
