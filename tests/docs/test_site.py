"""The site: it builds without a warning, its links lead somewhere, and the Python on its pages
runs.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import attnlab as al
from places import DOCS, ROOT, TRUTH

HAS_SPHINX = all(importlib.util.find_spec(name) for name in ("sphinx", "myst_parser"))

TINY_MODEL = f"""
import sys; sys.path.insert(0, {str(TRUTH)!r})
import tiny_models, attnlab
folder = tiny_models.write_folder(__import__("pathlib").Path("tiny"), *tiny_models.bert())
model = attnlab.models.load(folder)
"""


def python_of(page: str) -> str:
    """All Python of a page, as a reader would run it from top to bottom."""
    return "\n".join(
        re.findall(
            r"^```python\n(.*?)^```",
            (DOCS / page).read_text(encoding="utf-8"),
            re.DOTALL | re.MULTILINE,
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    ["index.md", "getting_started.md", "choosing.md", "extending.md", "files.md", "figures.md"],
)
def test_the_python_of_the_page_runs(page, tmp_path):
    # in a process of its own: what a page registers must not be seen by other tests
    before = TINY_MODEL if page == "extending.md" else ""
    (tmp_path / "page.py").write_text(before + python_of(page), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "page.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "MPLBACKEND": "Agg"},
    )
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_on_the_page_of_the_api(from_docs):
    maker = from_docs("make_api")
    shown = {name for names in maker.SECTIONS.values() for name in names}
    assert set(al.__all__) - {"models", "sweep"} <= shown
    assert {
        f"models.{name}"
        for name in ("load", "Model", "spectra", "sentence", "iterate", "flow", "BadModel")
    } <= shown
    for page, text in ((maker.PAGE, maker.write_page()), (maker.DETAILS, maker.write_details())):
        assert page.read_text(encoding="utf-8") == text, (
            "Bring it up to date: python docs/make_api.py"
        )
    overview = maker.PAGE.read_text(encoding="utf-8")
    for name in shown:  # read in a plain clone: a sentence, and no directive of Sphinx
        assert re.search(
            rf"^\| `{re.escape(name)}[`(].* \| \S.{{10,}}\. \|$", overview, re.MULTILINE
        ), name
    assert "{" not in overview


def test_every_page_is_in_the_table_of_contents():
    listed = set(
        re.findall(r"^([a-z_]+)$", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert {path.stem for path in DOCS.glob("*.md")} - {"index"} <= listed


MARKDOWN = sorted(DOCS.rglob("*.md"))
CAPTION = r"\*What to see: [^*]{20,500}\*"


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_figure_has_a_caption_that_says_what_to_see(page):
    text = page.read_text(encoding="utf-8")
    paragraphs = [one.strip() for one in text.split("\n\n") if one.strip() != "</div>"]
    captions = [after for one, after in pairwise(paragraphs) if one.startswith("![")]
    assert len(captions) == len(re.findall(r"!\[[^]]*\]\(", text))  # each is a paragraph of its own
    for caption in captions:
        assert re.fullmatch(CAPTION, caption, re.DOTALL), caption


def test_the_front_page_has_three_ways_of_five_pages():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    ways = re.split(r"^\*\*You are an? [\w ]+\.\*\*", text, flags=re.MULTILINE)[1:]
    assert len(ways) == 3
    for way in ways:
        pages = re.findall(r"^\d\. \[[^]]+\]\((\w+\.md)\): ", way, re.MULTILINE)
        assert len(pages) == len(set(pages)) == 5, way
        assert all((DOCS / page).exists() for page in pages)


def test_the_page_of_examples_has_all_of_them(from_docs):
    maker = from_docs("make_examples")
    text = maker.PAGE.read_text(encoding="utf-8")
    assert text == maker.write_page(maker.read_lines()), "Run: python docs/make_examples.py"
    assert set(maker.ORDER) == {path.stem for path in (ROOT / "examples").glob("*.py")}
    for name in maker.ORDER:
        assert 5_000 < (maker.IMAGES / f"{name}.png").stat().st_size < 200_000
        assert "import attnlab as al\n" in maker.read_code(name) and maker.read_code(name) in text


# --------------------------------------------------------------------------------------------------
# the built site


class Page(HTMLParser):
    """What a page links to, and the places in it that can be linked to."""

    def __init__(self, path: Path):
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.targets += [found[name] for name in ("href", "src") if found.get(name)]
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    if not HAS_SPHINX:
        pytest.skip("Sphinx is not here: pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    options = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(folder / "doctrees")]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(DOCS), str(folder / "html")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and not done.stderr.strip(), done.stderr
    return folder / "html"


@pytest.mark.slow
def test_it_builds_and_every_link_leads_somewhere(site):
    pages = {path: Page(path) for path in site.glob("*.html")}
    assert {path.stem for path in DOCS.glob("*.md")} <= {path.stem for path in pages}
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or target.startswith("data:"):
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert there.exists(), (path.name, target)
            if parts.fragment and there in pages and path.stem not in ("search", "genindex"):
                assert unquote(parts.fragment) in pages[there].places, (path.name, target)


@pytest.mark.slow
def test_nothing_is_fetched_to_show_it(site):
    for path in site.glob("*.html"):
        for tag in re.findall(
            r"<(?:script|link|img|iframe)\b[^>]*>", path.read_text(encoding="utf-8")
        ):
            assert not re.search(r'(?:src|href)="(?:https?:)?//', tag), (path.name, tag)


def search(site: Path, protocol: str, word: str) -> dict[str, list[str]]:
    """What the search page of a site finds, and what it fetches for that."""
    program = Path(__file__).with_name("search.mjs")
    done = subprocess.run(
        ["node", program, site, protocol, word], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_search_works_in_a_folder_without_a_server(site):
    expected = {"polytope": "theorems", "hand-over": "glossary", "codimension": "errata"}
    for word, page in expected.items():
        answer = search(site, "file:", word)
        assert answer["fetched"] == []
        assert f"{page}.html" in [one.split("#")[0] for one in answer["found"]], word
    assert search(site, "file:", "nonsensewordxyz") == {"fetched": [], "found": []}
    assert search(site, "https:", "polytope")["fetched"]  # a server can be asked for quotations


@pytest.mark.slow
def test_signatures_are_what_a_user_would_write(site):
    signatures = re.findall(
        r'<dt class="sig.*?</dt>',
        (site / "api_details.html").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    plain = [unescape(re.sub(r"<[^>]+>", "", one)) for one in signatures]
    assert any(one.strip().startswith("reproduce(") for one in plain)
    assert not [one for one in plain if "~" in one or re.search(r"<\w", one)]
