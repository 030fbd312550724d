r"""Figures as .pgf, which LaTeX reads with \input: their texts are set in the fonts of the paper.
TeX must be installed.

Every text goes through `to_tex`, because matplotlib hands texts to TeX as they are: a word such as
\input would be obeyed. Our own mathematics, $P_{ij}$, stays as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from attnlab.files import temporary_folder, write_bytes

PROGRAMS = ("pdflatex", "xelatex", "lualatex")
"""What can measure texts, the quickest first."""

NO_TEX = (
    "A .pgf figure needs TeX: pdflatex, xelatex or lualatex must be on the PATH, and none of them"
    " is. Install TeX, or save the figure as .pdf."
)

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\ensuremath{<}",
    ">": r"\ensuremath{>}",
    "|": r"\ensuremath{|}",
    '"': "''",
    "\u00a0": "~",
}
MATHEMATICS = {
    "−": "-",
    "·": r"\cdot ",
    "×": r"\times ",
    "±": r"\pm ",
    "≤": r"\le ",
    "≥": r"\ge ",
    "→": r"\to ",
    "∞": r"\infty ",
    "√": r"\surd ",
    "⟨": r"\langle ",
    "⟩": r"\rangle ",
    "∈": r"\in ",
    "≈": r"\approx ",
    "≠": r"\ne ",
    "∝": r"\propto ",
    "Σ": r"\Sigma ",
    "Π": r"\Pi ",
    "Δ": r"\Delta ",
    "α": r"\alpha ",
    "β": r"\beta ",
    "γ": r"\gamma ",
    "δ": r"\delta ",
    "ε": r"\varepsilon ",
    "θ": r"\theta ",
    "λ": r"\lambda ",
    "μ": r"\mu ",
    "π": r"\pi ",
    "ρ": r"\rho ",
    "σ": r"\sigma ",
    "τ": r"\tau ",
    "φ": r"\varphi ",
    "ψ": r"\psi ",
    "✓": r"\surd ",
    "✗": r"\times ",
    "½": r"\frac{1}{2}",
    "°": r"^\circ ",
}
MATHEMATICS |= {
    letter: f"_{{{plain}}}"
    for letter, plain in zip("₀₁₂₃₄₅₆₇₈₉₊₋ₕᵢⱼₖₙ", "0123456789+-hijkn", strict=True)
}
MATHEMATICS |= {
    letter: f"^{{{plain}}}"
    for letter, plain in zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵈᵏᵗᵀ", "0123456789+-dktT", strict=True)
}
WORDS = {
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "…": r"\ldots{}",
    "–": "--",
    "—": "---",
    "ℓ": r"\ensuremath{\ell}",
}
LATIN = re.compile("[\u00c0-\u017f]")
"""Letters with accents, which every LaTeX knows."""

BOX = r"{\fboxsep0pt\fbox{\phantom{n}}}"
"""For a character that LaTeX may not know, such as one of another script: an empty box, as the
figures themselves draw it.
"""

MATH = re.compile(r"(?<!\\)\$((?:\\.|[^$\\])+)\$")

_one_at_a_time = threading.Lock()


def tex_program() -> str | None:
    """The TeX program that is there, or None."""
    return next((program for program in PROGRAMS if shutil.which(program)), None)


def to_tex(words: str, has_math: bool) -> str:
    r"""The words as LaTeX sets them literally; where `has_math`, what stands between dollar signs
    is mathematics of ours.

    The \mathdefault of matplotlib's ticks is left out: it is no command of LaTeX.
    """
    if not has_math:
        return _literal(words)
    found, last = [], 0
    for match in MATH.finditer(words):
        found += [
            _literal(words[last : match.start()].replace(r"\$", "$")),
            "$" + match[1].replace(r"\mathdefault", "") + "$",
        ]
        last = match.end()
    return "".join([*found, _literal(words[last:].replace(r"\$", "$"))])


def _literal(words: str) -> str:
    return "".join(_letter(letter) for letter in words)


def _letter(letter: str) -> str:
    if letter in SPECIAL:
        return SPECIAL[letter]
    if letter in MATHEMATICS:
        return rf"\ensuremath{{{MATHEMATICS[letter]}}}"
    if letter in WORDS:
        return WORDS[letter]
    return letter if " " <= letter <= "~" or LATIN.match(letter) else BOX


def write_pgf(figure: Figure, target: str | os.PathLike[str], **options: Any) -> None:
    """Write the figure as .pgf, with the pictures in it as .png files beside it; all of them, or
    none where TeX fails.

    options: as Figure.savefig takes them.
    """
    from matplotlib.backends import backend_pgf

    program = tex_program()
    if program is None:
        raise ValueError(NO_TEX)
    target = Path(target)
    settings: Any = {"pgf.texsystem": program, "pgf.rcfonts": False, "pgf.preamble": ""}
    with _one_at_a_time, temporary_folder(target.parent) as folder, matplotlib.rc_context(settings):
        backend: Any = backend_pgf
        plain = backend.RendererPgf
        backend.RendererPgf = _renderer_of(
            plain
        )  # matplotlib has no other way to say how texts are set
        try:
            Figure.savefig(figure, folder / target.name, format="pgf", **options)
        except (backend_pgf.LatexError, RuntimeError, ValueError) as problem:
            raise ValueError(
                f"{program} could not set the texts of the figure ({_first_line(problem)}). Save it"
                " as .pdf, or repair the TeX installation: it needs the packages pgf and"
                " underscore."
            ) from problem
        finally:
            backend.RendererPgf = plain
        for part in sorted(
            folder.iterdir(), key=lambda part: part.suffix == ".pgf"
        ):  # the text last: then all is there
            write_bytes(target.with_name(part.name), part.read_bytes())


def _renderer_of(plain: Any) -> Any:
    """The renderer of .pgf files, with texts that TeX cannot misread."""

    class TexRenderer(plain):
        """Texts go through to_tex, when they are measured and when they are drawn."""

        def draw_text(
            self,
            gc: Any,
            x: float,
            y: float,
            s: str,
            prop: Any,
            angle: float,
            ismath: Any = False,
            mtext: Any = None,
        ) -> None:
            """As RendererPgf does."""
            super().draw_text(gc, x, y, to_tex(s, bool(ismath)), prop, angle, False, mtext)

        def get_text_width_height_descent(
            self, s: str, prop: Any, ismath: Any
        ) -> tuple[float, float, float]:
            """As RendererPgf does."""
            width, height, descent = super().get_text_width_height_descent(
                to_tex(s, bool(ismath)), prop, False
            )
            return width, height, descent

    return TexRenderer


def _first_line(problem: Exception) -> str:
    """What TeX complains about, in its own words."""
    lines = [line.strip() for line in str(problem).splitlines()]
    told = [line.lstrip("! ") for line in lines if line.startswith("!")]
    return (told or lines or ["no reason given"])[0].rstrip(".")
