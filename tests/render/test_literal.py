"""Words of strangers (texts, tokens, names of models and files) are shown as they are: in figures,
on pages, on the terminal.
"""

from __future__ import annotations

import ast
import dataclasses
import html
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.controls import escape_controls
from attnlab.render.literal import NO_GLYPH, escape_words
from attnlab.render.style import house_style, new_figure, title
from command_line import attnlab, refused
from embedded_viewers import check_viewers
from html_pages import Seen
from tiny_models import TOKENIZER

NAME = r"a$x_{$[red]<b>&'[bold]"
"""A name of a model that breaks mathematics, rich markup and HTML."""

TEXT = r"Let $\alpha$ be $5 today and $6 <script>alert(1)</script> [/] [red]x[/red]"
WORDS = TEXT.split()

SHOWN = {
    r"Let $\alpha$ be small.": r"Let $\alpha$ be small.",
    "$5 today and $6": "$5 today and $6",
    r"\$ and \\$": r"\$ and \\$",
    r"$\frac{1}{$ $": r"$\frac{1}{$ $",
    "x^2_{i} % # & ~": "x^2_{i} % # & ~",
    "one\x1b[31mred": r"one\x1b[31mred",
    "a\u202eb\u200bc": r"a\u202eb\u200bc",
    "nul\x00": r"nul\x00",
    "lone \udcff": r"lone \udcff",
    "two\nlines\tand more": "two lines and more",
    "中文": NO_GLYPH * 2,
    "👍🏽": NO_GLYPH * 2,
    "שלום": "שלום",
}


@pytest.fixture(autouse=True)
def letters():
    """SVG files keep letters as letters, so that a test can read them."""
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        yield


def drawn(path: Path) -> list[str]:
    """Every text in an SVG file."""
    texts = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    # mathematics is letter by letter, with spaces that do not break
    return [
        "".join(part.text or "" for part in list(one) or [one]).replace("\xa0", " ")
        for one in texts
    ]


@pytest.mark.parametrize(
    "endings",
    [["svg"], pytest.param(["png", "pdf", "svg"], marks=pytest.mark.slow)],
    ids=["svg", "all"],
)
@pytest.mark.parametrize("words", SHOWN, ids=range(len(SHOWN)))
def test_words_are_drawn_literally(words, endings, tmp_path):
    with house_style():
        figure = new_figure(9, 3)
        axes = figure.subplots()
        axes.set_xticks([0, 1], [escape_words(words), "other"], fontweight="bold")
        axes.plot([0, 1], [0, 1], label=f"led by {escape_words(words)}")
        axes.legend()
        axes.annotate(escape_words(words), (0.5, 0.5))
        title(figure, f"{escape_words(words)}: ours is $V_h$")
    for ending in endings:
        figure.savefig(tmp_path / f"a.{ending}")
    found = drawn(tmp_path / "a.svg")
    assert found.count(SHOWN[words]) == 2 and f"led by {SHOWN[words]}" in found
    assert f"{SHOWN[words]}: ours is Vh" in found


def test_the_callers_settings_do_not_change_words(tmp_path):
    with matplotlib.rc_context({"text.parse_math": False}), house_style():
        figure = new_figure(3, 3)
        title(figure, escape_words("$5 and $6"))
    figure.savefig(tmp_path / "a.svg")
    assert drawn(tmp_path / "a.svg") == ["$5 and $6"]


@pytest.mark.slow
def test_lines_do_not_break_inside_an_escape(tmp_path):
    dollars = escape_words("a" + "$" * 400)
    with house_style():
        figure = new_figure(3, 3)
        title(figure, "", dollars + " b")
    figure.savefig(tmp_path / "a.svg")
    lines = drawn(tmp_path / "a.svg")
    assert (
        "".join(lines) == "a" + "$" * 400 + " b" and len(lines) > 5
    )  # cut between signs, none lost and none escaped


def test_long_words_are_cut_and_say_so():
    assert escape_words("a" * 400, 14) == "a" * 13 + "…"
    assert escape_words("$" * 400, 14) == r"\$" * 13 + "…"
    assert escape_words("short", 14) == "short"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny model under a hostile name, whose tokenizer knows the words of TEXT."""
    state, raw = tiny_models.albert()
    folder = tiny_models.write_folder(
        tmp_path_factory.mktemp("model") / NAME, state, raw | {"max_position_embeddings": 10}
    )
    known = {word: number + 3 for number, word in enumerate(dict.fromkeys(WORDS))}
    tokenizer = TOKENIZER | {"normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"}}
    tokenizer["model"] = TOKENIZER["model"] | {
        "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2} | known
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


FIRST = " ".join(WORDS[:8])


def test_a_sentence_keeps_its_words(folder, tmp_path):
    files = {
        option: tmp_path / f"{option}[b]$a$.svg" for option in ("figure", "words", "iteration")
    }
    said = attnlab(
        "sentence",
        folder,
        FIRST,
        "--times",
        3,
        *(f"--{name}={path}" for name, path in files.items()),
    )
    assert NAME in said.stdout and "figure[b]$a$.svg" in said.stdout
    for path in files.values():
        found = drawn(path)
        assert {r"$\alpha$", "$5", "today"} <= {word.split("  ")[0] for word in found}
        assert any(NAME in one and r"“Let $\alpha$ be $5 today" in one for one in found)


def test_a_flow_keeps_its_words(folder, tmp_path):
    said = attnlab(
        "flow",
        folder,
        "--text",
        FIRST,
        "--head",
        0,
        "--t-end",
        1,
        "--no-limit",
        "-o",
        tmp_path / "a.svg",
    )
    assert NAME in said.stdout
    found = drawn(tmp_path / "a.svg")
    assert {r"$\alpha$", "$5", "today"} <= set(found) and any(one.startswith(NAME) for one in found)


def test_names_in_a_run_are_drawn_literally(make_run, tmp_path):
    """A .nc file of a stranger names its own observables."""
    run = dataclasses.replace(
        make_run("plain"), observed={"$x_{$\x1b": np.ones(3), "wide $a$": np.ones((3, 9))}
    )
    al.plot(run, "observed").savefig(tmp_path / "a.svg")
    found = drawn(tmp_path / "a.svg")
    assert (
        r"$x {$\x1b" in found and "wide $a$" in found and "The first 6 lines of wide $a$." in found
    )


@pytest.mark.parametrize("kind", ["plane", "map"])
def test_spectra_keep_the_name(folder, tmp_path, kind):
    said = attnlab("spectra", folder, "--null", 5, "--figure", tmp_path / "a.svg", "--kind", kind)
    assert NAME in said.stdout
    assert any(one.startswith(NAME) for one in drawn(tmp_path / "a.svg"))


@pytest.mark.slow
def test_a_dossier_holds_no_foreign_tags(folder, tmp_path):
    attnlab("dossier", folder, "-o", tmp_path / "a.html", "--text", FIRST)
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    seen = Seen(page)
    assert (
        seen.open == [] and "b" not in seen.tags and check_viewers(page)
    )  # which allows our one script alone
    text = html.unescape(re.sub(r"<[^>]+>", "", page))
    assert NAME in text and FIRST in text
    assert (
        f"'{FIRST}'" in text and f'"{FIRST}"' not in text
    )  # commands to copy are quoted for a shell


def test_pages_escape_what_acts():
    from attnlab.render.page import gallery_page, page
    from attnlab.render.tour_page import mark_up

    hostile = "<img src=x onerror=alert(1)>\x1b\u202e\udcff\x00"
    for made in (page(hostile, "body"), gallery_page([], {hostile: hostile}), mark_up(hostile)):
        assert "<img" not in made and not set("\x1b\u202e\udcff\x00") & set(made)
        made.encode("utf-8")


@pytest.mark.parametrize(
    "words", ["[/]", "[bold]b[/bold]", "[/red", "\x1b[31mred", "\udcff", ":smile:", "a\u202eb"]
)
def test_the_command_line_prints_names_literally(words, tmp_path):
    path = tmp_path / f"{words}.nc"
    shown = escape_controls(words)
    assert shown in refused("check", path) and shown in refused(
        "plot", path, "-o", tmp_path / "a.png"
    )
    assert shown in refused("list", words) and shown in refused("spectra", words)


def test_a_table_prints_markup_and_controls_as_they_are(capsys):
    from attnlab.cli.summary import print_table

    rows = [("[link=x]a", "\x1b[2J"), ("[/nothing]", "\x07")]
    print_table("[bold]title[/]", "[i]legend[/i]\x1b.", ["[red]one[/red]", "[/]"], rows)
    said = capsys.readouterr().out
    for words in (
        "[bold]title[/]",
        r"[i]legend[/i]\x1b.",
        "[red]one[/red]",
        "[/]",
        "[link=x]a",
        r"\x1b[2J",
        "[/nothing]",
        r"\x07",
    ):
        assert words in said
    assert not set("\x1b\x07") & set(said)


def test_a_bar_takes_any_words(capsys):
    with al.Progress(True) as progress:
        progress.part(0.0, 1.0, "[/] reading")(0.5, "[/nothing]")


def test_every_verb_prints_through_one_function():
    for path in (Path(al.__file__).parent / "cli").glob("*.py"):
        calls = [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
        ]
        names = {ast.unparse(call.func) for call in calls}
        assert path.name == "say.py" or not names & {
            "typer.echo",
            "print",
            "typer.secho",
            "click.echo",
        }, path.name
