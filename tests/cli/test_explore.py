"""attnlab explore: the page, sentences for what is wrong, and no file lost."""

from __future__ import annotations

import webbrowser

import pytest
from typer.testing import CliRunner

import attnlab as al
from attnlab.cli import app
from attnlab.explorer.entry import is_page
from explorer_pages import payload_in, spec_of


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(webbrowser, "open", lambda address: pytest.fail(f"opened {address}"))
    return tmp_path


def attnlab(*words: str):
    return CliRunner().invoke(app(), ["explore", *words])


def test_the_default_page(here):
    done = attnlab()
    assert (
        done.exit_code == 0
        and "Open explorer.html in a browser" in done.output
        and is_page(here / "explorer.html")
    )


def test_options_arrive(here):
    done = attnlab(
        "late",
        "-o",
        "page.html",
        "--hide",
        "sweep,footer",
        "--hide",
        "legend",
        "--lock",
        "beta, n",
        "--guess",
        "--theme",
        "dark",
        "--title",
        "Week 3",
    )
    payload = payload_in(here / "page.html")
    assert done.exit_code == 0, done.output
    assert (payload["hide"], payload["lock"]) == (["sweep", "footer", "legend"], ["beta", "n"])
    assert (
        payload["guess"] is True
        and payload["title"] == "Week 3"
        and payload["state"]["view"]["theme"] == "dark"
    )


def test_files_and_recordings(here):
    spec_of().save("mine.toml")
    assert (
        attnlab("mine.toml", "-o", "page.html").exit_code == 0
        and payload_in(here / "page.html")["limits"]
    )
    assert (
        attnlab("mine.toml", "-o", "page.html", "--record").exit_code == 0
        and payload_in(here / "page.html")["recording"]
    )
    al.save(al.run_spec(spec_of()), "run.nc")
    assert (
        attnlab("run.nc", "-o", "other.html").exit_code == 0
        and payload_in(here / "other.html")["recording"]
    )
    assert attnlab("hyperplanes_2d", "-o", "page.html", "--work", "10").exit_code == 0


@pytest.mark.parametrize("words, says", [
    (["polytopp"], "Did you mean 'polytope'?"), (["none.toml"], "There is no Spec at none.toml"), (["none.nc"], "none.nc"),
    (["late", "-o", "page.png"], "must end in .html"), (["late", "-o", "no/page.html"], "There is no folder no"),
    (["late", "--hide", "sweeep"], "Did you mean 'sweep'?"), (["late", "--lock", "bet"], "beta"),
    (["late", "--theme", "x"], "Unknown theme"),
    (["late", "-o", "."], "is a folder"),
])  # fmt: skip
def test_what_is_wrong_is_a_sentence(here, words, says):
    done = attnlab(*words)
    assert (
        done.exit_code == 2
        and says in " ".join(done.output.split())
        and "Traceback" not in done.output
    )
    assert not list(here.glob("*.html"))


def test_only_a_page_of_its_own_is_replaced(here):
    (here / "page.html").write_text("<title>mine</title>")
    done = attnlab("late", "-o", "page.html")
    assert (
        done.exit_code == 2
        and "exists already" in done.output
        and (here / "page.html").read_text() == "<title>mine</title>"
    )
    assert attnlab("late", "-o", "page.html", "--force").exit_code == 0 and is_page(
        here / "page.html"
    )
    assert (
        attnlab("polygon", "-o", "page.html").exit_code == 0
        and payload_in(here / "page.html")["state"]["preset"] == "polygon"
    )
    spec_of().save("mine.toml")
    (here / "link.html").symlink_to("mine.toml")
    assert "would overwrite the input" in attnlab("mine.toml", "-o", "link.html").output


def test_a_broken_spec_leaves_the_old_page(here):
    attnlab("late", "-o", "page.html")
    before = (here / "page.html").read_bytes()
    (here / "bad.toml").write_text(
        "[weights]\nfamily = 'identiy'\n[start]\nlaw='normal'\nn=3\nd=2\n[solve]\nt_end=1\n"
    )
    done = attnlab("bad.toml", "-o", "page.html")
    assert (
        done.exit_code == 2
        and "Did you mean 'identity'" in done.output
        and (here / "page.html").read_bytes() == before
    )


def test_a_browser_is_opened_on_request_only(here, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    attnlab("late", "-o", "page.html", "--no-open")
    assert opened == []
    attnlab("late", "-o", "page.html", "--open")
    assert opened == [(here / "page.html").as_uri()]
