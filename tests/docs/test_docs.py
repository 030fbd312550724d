"""The documentation: what it shows runs, what it names exists, and its tables are those that the
code makes.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tiny_models
from attnlab import Spec, UnknownName
from attnlab.analysis import observables
from attnlab.cli import app, words
from attnlab.cli.names import published_names
from attnlab.cli.reference import REGION, tables, update_tables
from attnlab.examples import example_names
from attnlab.render import kinds
from attnlab.run import DYNAMICS_KEYS, SOLVE_KEYS, resolve
from attnlab.starts import start_laws
from attnlab.weights import weights_families
from places import DOCS, ROOT

README, SPEC = ROOT / "README.md", ROOT / "docs" / "spec.md"
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of code in that language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[list[str]]:
    """The indented lines of a page that call attnlab, split into words, without their comments."""
    lines = re.findall(r"^    (attnlab .*)$", page.read_text(), re.MULTILINE)
    return [shlex.split(line, comments=True)[1:] for line in lines]


# --------------------------------------------------------------------------------------------------
# what is shown


def run_python(page: Path, **known) -> dict:
    """The names after running all Python of a page from top to bottom, as a reader would, with some
    names known before.
    """
    text = "\n".join(blocks(page, "python"))
    assert "import attnlab as al" in text
    exec(compile(text, str(page), "exec"), known)
    return known


def run_commands(page: Path) -> int:
    """How many commands of attnlab a page has; every one must succeed."""
    for words_given in commands(page):
        result = CliRunner().invoke(app(), words_given)
        assert result.exit_code == 0, (words_given, result.output, result.exception)
    return len(commands(page))


@pytest.fixture
def minilm(workplace, monkeypatch):
    """A tiny model under the name that the pages use: nothing is fetched in a test."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    from attnlab.models.catalog import catalog, fetch

    folder = tiny_models.write_folder(workplace / "minilm", *tiny_models.bert(layers=5, heads=12))
    tokenizer = Tokenizer(
        WordLevel({"[UNK]": 0, "Tokens": 1, "are": 2, "particles": 3}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = WhitespaceSplit()  # it has places for ten tokens
    tokenizer.save(str(folder / "tokenizer.json"))
    fetched = []
    monkeypatch.setattr(catalog, "folder_of", lambda name: folder)
    monkeypatch.setattr(fetch, "fetch", lambda name, **options: fetched.append(name) or folder)
    monkeypatch.setattr(
        "attnlab.models.studies.dossier.TEXTS", {"English": ("Tokens are particles.",)}
    )  # it has places for ten
    return fetched


def test_the_python_of_the_readme_prints_what_stands_below_it(workplace, capsys):
    found = run_python(README)
    assert found["run"].is_ok and list(workplace.glob("*.png"))
    assert capsys.readouterr().out == blocks(README, "text")[0]


def test_the_commands_of_the_readme_run(workplace, minilm):
    assert run_commands(README) == 5
    assert list(workplace.glob("*.nc")) and list(workplace.glob("*.png"))


def test_the_readme_is_short():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 110 and max(map(len, lines)) <= 100


def test_the_picture_at_the_top_of_the_readme_is_sharp_and_small():
    import matplotlib.image

    first = re.search(r"!\[[^]]+\]\(([^)]+)\)", README.read_text(encoding="utf-8"))[1]
    assert first == "docs/images/explorer.png" and (ROOT / first).stat().st_size < 350_000
    assert matplotlib.image.imread(ROOT / first).shape[:2] == (
        1600,
        2560,
    )  # twice a window of 1280 x 800
    assert (
        "`attnlab explore`" in README.read_text(encoding="utf-8").split(first)[1].split("\n\n")[1]
    )


def test_what_the_page_about_specs_shows_runs(workplace):
    (workplace / "a.toml").write_text(blocks(SPEC, "toml")[0])
    assert run_commands(SPEC) >= 2
    run = run_python(SPEC)["run"]
    assert run.observed["attention_entropy"].shape == (*run.observed["diameter"].shape, 2)


@pytest.mark.parametrize("text", blocks(SPEC, "toml"))
def test_every_spec_that_is_shown_is_right(text):
    assert resolve(Spec.from_dict(tomllib.loads(text))).x0.ndim == 2


# --------------------------------------------------------------------------------------------------
# what is named


@pytest.fixture(scope="module")
def listed() -> str:
    return CliRunner().invoke(app(), ["list", "--all"]).output


@pytest.mark.parametrize(
    "registry",
    [start_laws, weights_families, observables, kinds],
    ids=lambda registry: registry.kind,
)
def test_every_registered_name_is_listed_and_described(registry, listed):
    text = SPEC.read_text()
    for name in registry:
        assert re.search(rf"│ {name} ", listed), name
        assert registry is kinds or f"`{name}`" in text, name


def test_every_word_is_listed(listed):
    in_tuples = [word for known in words.WORDS.values() for word in known]
    for word in [*example_names(), *published_names(), *DYNAMICS_KEYS, *SOLVE_KEYS, *in_tuples]:
        assert re.search(rf"│ {word} ", listed), word


def test_every_word_and_key_has_a_meaning():
    assert {kind: set(names) for kind, names in words.WORDS.items()} == {
        k: set(m) for k, m in words.WORD_MEANINGS.items()
    }
    assert set(words.DYNAMICS_MEANINGS) == set(DYNAMICS_KEYS) and set(words.SOLVE_MEANINGS) == set(
        SOLVE_KEYS
    )
    known = json.loads(CliRunner().invoke(app(), ["list", "--json"]).output)
    assert all(thing["about"] for things in known.values() for thing in things.values())


def test_the_published_matrices_are_all_of_them():
    with pytest.raises(UnknownName) as caught:
        weights_families["published"](matrix="no")
    assert str(caught.value).endswith(f"Known: {', '.join(sorted(published_names()))}.")


def test_the_tables_of_the_page_about_specs_are_current():
    text = SPEC.read_text()
    assert text == update_tables(text), (
        "Bring it up to date: python -m attnlab.cli.reference docs/spec.md"
    )
    assert {found[1] for found in REGION.finditer(text)} == set(tables()) - {"kinds of figure"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        path, _, heading = target.partition("#")
        if "://" in target:
            continue
        assert (page.parent / path).exists(), target
        if heading:
            there = page.parent / path if path else page
            titles = re.findall(r"^#+ (.*)$", there.read_text(), re.MULTILINE)
            assert heading in [
                re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles
            ], target


def test_every_experiment_has_a_page_on_the_list_and_no_claim_that_fails():
    from attnlab.experiments import experiments
    from attnlab.experiments.folders import titles

    text, claims = (DOCS / "experiments.md").read_text(encoding="utf-8"), 0
    for name, title in titles().items():
        page = (DOCS / "experiments" / f"{name}.md").read_text(encoding="utf-8")
        assert (
            f"](experiments/{name}.md)" in text
            and f"\nexperiments/{name}\n" in text
            and f"![{title}](" in page
        ), name
        assert (DOCS / "experiments" / f"{name}.png").stat().st_size > 5000
        hurry = [
            word
            for word in ("Shown", "Found", "One number", "A caveat")
            if f"**{word}:**" not in page
        ]
        assert "| ✗ |" not in page and (hurry == [] or name not in experiments.folders), (
            name,
            hurry,
        )
        claims += page.count("| ✓ |")
    assert claims > 150 and {path.stem for path in (DOCS / "experiments").glob("*.md")} == set(
        experiments
    )


def test_the_list_of_experiments_is_current(from_docs):
    maker = from_docs("make_experiments")
    assert maker.PAGE.read_text(encoding="utf-8") == maker.write_index(), (
        "Bring it up to date: python docs/make_experiments.py"
    )
