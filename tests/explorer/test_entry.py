"""al.explore: what becomes a live run and what a recording, certified limits, bad input, and the
one file.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import stat
import subprocess
import sys
import zlib

import numpy as np
import pytest

import attnlab as al
from attnlab.explorer import payload as payloads
from attnlab.explorer.entry import CONTROLS, PANELS, Page, explore, is_page
from attnlab.explorer.join import WEB, join_page
from attnlab.explorer.page import escape_json, make_page
from attnlab.explorer.presets import presets
from attnlab.explorer.sources import known_names, read_source
from attnlab.files import CannotWrite
from attnlab.run import limit_of_spec, resolve
from explorer_pages import CUBE, payload_in, spec_of
from unpack import unpack_tokens


def shown(tmp_path, source=None, **options) -> dict:
    return payload_in(explore(source, tmp_path / "page.html", **options))


# --------------------------------------------------------------------------------------------------
# sources


def test_nothing_is_all_presets_and_the_first_is_open(tmp_path):
    payload = shown(tmp_path)
    assert [one["id"] for one in payload["presets"]] == presets.in_order() and payload["state"][
        "preset"
    ] == presets.in_order()[0]
    assert payload["state"]["spec"] == payload["presets"][0]["spec"] and "recording" not in payload


def test_a_preset_by_name(tmp_path):
    payload = shown(tmp_path, "late", title="Homework")
    assert payload["state"]["preset"] == "late" and payload["title"] == "Homework"
    assert payload["state"]["spec"] == presets["late"].spec.to_dict()


@pytest.mark.parametrize(
    "name, near",
    [
        ("polytop", "polytope"),
        ("plane", "planes"),
        ("hyperplanes_2", "hyperplanes_2d"),
        ("xyzzy", None),
    ],
)
def test_a_wrong_name_answers_with_the_nearest(tmp_path, name, near):
    with pytest.raises(al.UnknownName) as problem:
        explore(name, tmp_path / "page.html")
    assert "Known: " in str(problem.value) and all(
        one in str(problem.value) for one in known_names()
    )
    assert near is None or f"Did you mean {near!r}?" in str(problem.value)
    assert not (tmp_path / "page.html").exists()


def test_names_of_presets_and_examples_differ():
    assert len(known_names()) == len(set(known_names()))


def test_a_spec_is_live_with_its_certified_limit(tmp_path):
    spec = spec_of()
    payload = shown(tmp_path, spec)
    assert (
        payload["state"]["spec"] == spec.to_dict()
        and "recording" not in payload
        and "preset" not in payload["state"]
    )
    limit = limit_of_spec(spec)
    (record,) = payload["limits"]
    assert record["count"] == limit.count == len(record["points"]) and record["grade"] == "exact"
    assert record["spec"] == spec.to_dict()
    for token, label in enumerate(record["labels"]):
        np.testing.assert_allclose(
            record["points"][label], limit.limits[token], atol=limit.error + 1e-12
        )
    assert (
        record["leaders"] == limit.leaders.tolist() and record["certificate"] == limit.certificate
    )


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_a_file_of_a_spec(tmp_path, suffix):
    path = tmp_path / f"mine{suffix}"
    spec_of().save(path)
    payload = shown(tmp_path, path)
    assert payload["state"]["spec"] == spec_of().to_dict() and payload["title"] == "mine"


def test_an_example_by_name(tmp_path):
    from attnlab.examples import example_spec

    payload = shown(tmp_path, "polytope_2d", budget=1e-3)
    assert payload["state"]["spec"] == example_spec("polytope_2d").to_dict()


def test_an_undecided_limit_is_not_in_the_page(tmp_path):
    pair = spec_of(weights={"family": "spectrum", "eigenvalues": [[0.5, 1.0]], "basis": "identity"})
    assert shown(tmp_path, pair, work=1e3)["limits"] == []
    with pytest.raises(ValueError, match="undecided"):
        payloads.limit_record(limit_of_spec(pair, work=1e3), pair)


def test_where_nothing_grows_the_places_are_certified(tmp_path):
    collapse = spec_of(weights={"family": "identity", "scale": -1.0})
    (record,) = shown(tmp_path, collapse)["limits"]
    assert (
        record["count"] is None and record["placeCount"] == 1 and record["points"] == [[0.0, 0.0]]
    )


def test_drawn_matrices_are_written_out(tmp_path):
    drawn = spec_of(weights={"family": "gaussian", "heads": 2, "rng": 5})
    payload = shown(tmp_path, drawn, work=1e3)
    weights = resolve(drawn).dynamics.weights
    again = resolve(al.Spec.from_dict(payload["state"]["spec"])).dynamics.weights
    for one, other in ((weights.Q, again.Q), (weights.K, again.K), (weights.full_V, again.full_V)):
        np.testing.assert_array_equal(one, other)
    assert payload["state"]["spec"]["start"] == CUBE
    plain = shown(tmp_path, spec_of(weights={"family": "goe", "rng": 5}), work=1e3)["state"][
        "spec"
    ]["weights"]
    assert set(plain) == {"family", "V"}


def test_a_member_of_a_batch(tmp_path):
    batch = spec_of(start={**CUBE, "batch": 3})
    payload = shown(tmp_path, batch, member=2)
    np.testing.assert_array_equal(payload["state"]["spec"]["start"]["x"], resolve(batch).x0[2])
    assert len(payload["limits"]) == 1 and payload["limits"][0]["spec"] == payload["state"]["spec"]
    for source in (batch, al.run_spec(batch)):
        with pytest.raises(ValueError, match="0 to 2, got 3"):
            explore(source, tmp_path / "page.html", member=3)
    run = al.run_spec(batch)
    recording = shown(tmp_path, run, member=1)["recording"]
    np.testing.assert_array_equal(recording["x0"], run.x[1, 0])


def test_a_run_is_a_recording(tmp_path):
    run = al.run_spec(spec_of())
    path = tmp_path / "run.nc"
    al.save(run, path)
    for source in (run, path, str(path)):
        payload = shown(tmp_path, source)
        assert (
            payload["recording"]["n"] == 9
            and payload["presets"] == []
            and payload["state"]["spec"] == spec_of().to_dict()
        )
        np.testing.assert_allclose(
            unpack_tokens(payload["recording"])[-1, :, :2], run.z[-1], atol=2e-5 * np.ptp(run.z)
        )
    bare = al.simulate(al.Weights(V=np.eye(2)), run.x[0], t_end=1.0)
    spec = al.Spec.from_dict(shown(tmp_path, bare)["state"]["spec"])
    np.testing.assert_array_equal(resolve(spec).x0, bare.x[0])


def test_record_computes_the_run_now(tmp_path):
    payload = shown(tmp_path, "polygon", record=True)
    found = unpack_tokens(payload["recording"])
    run = al.run_spec(presets["polygon"].spec)
    np.testing.assert_allclose(found[-1, :, :2], run.z[-1], atol=2e-5 * np.ptp(found))
    assert payload["limits"][0]["count"] == 5


@pytest.mark.parametrize("spec, says", [
    (spec_of(start={**CUBE, "d": 5}), "Theorem 3.1"), (spec_of(solve={"layers": 4}), None),
    (spec_of(dynamics={"feedforward": {}}), "open"),
    (spec_of(start={**CUBE, "d": 4}, weights={"family": "gaussian"}), None),
    (spec_of(solve={"t_end": 1.0, "stepper": "rk4", "dt": 0.1},
                                                                                      start={**CUBE, "d": 4}), "Theorem 3.1"),
    (spec_of(solve={"times": [0, 0.5, 1]}, start={**CUBE, "d": 4}), "Theorem 3.1"),
])  # fmt: skip
def test_what_a_page_cannot_integrate_is_recorded(tmp_path, spec, says):
    payload = shown(tmp_path, spec)
    assert payload["recording"]["n"] == 9 and payload["state"]["spec"] == spec.to_dict()
    assert (payload["says"][0]["cite"] if payload["says"] else None) == says or says is None


def test_a_limit_and_its_file(tmp_path):
    limit = limit_of_spec(spec_of())
    al.save(limit, tmp_path / "limit.nc")
    for source in (limit, tmp_path / "limit.nc", [limit]):
        payload = shown(tmp_path, source)
        assert (
            payload["limits"][0]["count"] == limit.count
            and payload["state"]["spec"] == spec_of().to_dict()
        )
    bare = al.limit(al.Weights(V=np.eye(2)), resolve(spec_of()).x0)
    payload = shown(tmp_path, bare)
    np.testing.assert_array_equal(resolve(al.Spec.from_dict(payload["state"]["spec"])).x0, bare.x0)
    assert payload["state"]["spec"]["solve"] == {"t_end": 14.0}
    many = al.limit(al.Weights(V=np.eye(4)), np.random.default_rng(0).normal(size=(5, 4)))
    assert shown(tmp_path, many)["recording"]["dimension"] == 4


@pytest.mark.parametrize("source", [3, {}, [], [3], al.Weights(V=np.eye(2))])
def test_other_things_are_refused(tmp_path, source):
    with pytest.raises(TypeError, match="explore shows a preset's name"):
        explore(source, tmp_path / "page.html")


def test_files_that_are_nothing(tmp_path):
    for path, error in (
        (tmp_path / "none.toml", FileNotFoundError),
        (tmp_path / "none.nc", OSError),
        (tmp_path, ValueError),
    ):
        with pytest.raises(error):
            explore(path, tmp_path / "page.html")
    al.save(al.check(al.run_spec(spec_of()), names=["hull_shrinks"]), tmp_path / "verdicts.nc")
    with pytest.raises(ValueError, match="shows a run, a limit, a flow or a sentence"):
        explore(tmp_path / "verdicts.nc", tmp_path / "page.html")


def test_the_trained_head(tmp_path):
    payload = shown(tmp_path, "trained")
    assert payload["recording"]["dimension"] == 384 and "cat" in payload["recording"]["words"]
    assert payload["state"]["preset"] == "trained"
    assert "presets" in payload["hide"] and payload["presets"][0]["watch"].count(".") >= 2
    assert os.path.getsize(tmp_path / "page.html") < 300_000


def test_progress_and_cancelling(tmp_path):
    told = []
    explore(
        spec_of(start={**CUBE, "d": 4}),
        tmp_path / "page.html",
        progress=lambda fraction, doing: told.append((fraction, doing)),
    )
    assert told and all(0 <= fraction <= 1 for fraction, _ in told)
    progress = al.Progress()
    progress.cancel()
    with pytest.raises(al.Cancelled):
        explore(spec_of(), tmp_path / "other.html", progress=progress)
    assert not (tmp_path / "other.html").exists()


# --------------------------------------------------------------------------------------------------
# options


def test_hide_and_lock_know_the_names_of_the_page():
    layout = (WEB / "layout.js").read_text()
    assert re.findall(r"'(\w+)'", re.search(r"PANELS = (\[.*?\]);", layout, re.DOTALL)[1]) == list(
        PANELS
    )
    controls = (
        (WEB / "controls.js").read_text()
        + (WEB / "actions.js").read_text()
        + (WEB / "drawing.js").read_text()
    )
    assert all(f"'{name}'" in controls for name in CONTROLS)


def test_hide_lock_guess_and_theme(tmp_path):
    payload = shown(
        tmp_path, "late", hide=["sweep", "footer"], lock=["beta"], guess=True, theme="dark"
    )
    assert (payload["hide"], payload["lock"], payload["guess"]) == (
        ["sweep", "footer"],
        ["beta"],
        True,
    )
    assert payload["state"]["view"]["theme"] == "dark"


@pytest.mark.parametrize("options, error, says", [
    ({"hide": ["sweeep"]}, al.UnknownName, "Did you mean 'sweep'"), ({"lock": ["betta"]}, al.UnknownName, "Did you mean 'beta'"),
    ({"theme": "pink"}, al.UnknownName, "Known: auto, dark, light"), ({"hide": "sweep"}, TypeError, r"Use \['sweep'\]"),
    ({"member": 1}, ValueError, "0 to 0, got 1"), ({"member": -1}, ValueError, "0 to 0, got -1"),
    ({"budget": -1}, ValueError, "budget"),
])  # fmt: skip
def test_wrong_options_are_sentences(tmp_path, options, error, says):
    with pytest.raises(error, match=says):
        explore(spec_of(), tmp_path / "page.html", **options)
    assert not (tmp_path / "page.html").exists()


# --------------------------------------------------------------------------------------------------
# the one file


def test_the_page_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    page = explore("late", tmp_path / "page.html")
    before = page.read_bytes()
    assert isinstance(page, Page) and page == tmp_path / "page.html" and is_page(page)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(CannotWrite, match="page.html cannot be written"):
            explore("polygon", page)
    assert page.read_bytes() == before and sorted(tmp_path.iterdir()) == [page]
    with pytest.raises(CannotWrite, match="There is no folder"):
        explore("late", tmp_path / "no" / "page.html")
    with pytest.raises(CannotWrite, match="is a folder"):
        explore("late", tmp_path)
    os.chmod(page, stat.S_IRUSR | stat.S_IWUSR)
    explore("polygon", page)
    assert page.read_bytes() != before and stat.S_IMODE(page.stat().st_mode) == 0o600


def test_the_default_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert explore("late") == Page("explorer.html") and is_page(tmp_path / "explorer.html")


def test_only_pages_of_explore_are_pages(tmp_path):
    other = tmp_path / "other.html"
    other.write_text("<!DOCTYPE html><title>mine</title>")
    assert not is_page(other) and not is_page(tmp_path / "none.html") and not is_page(tmp_path)


def test_a_page_shows_itself_in_a_notebook(tmp_path):
    page = explore("late", tmp_path / "page.html")
    shown_page = page._repr_html_()
    assert (
        shown_page.startswith("<iframe srcdoc=")
        and "allow-scripts" in shown_page
        and "allow-same-origin" not in shown_page
    )
    assert "<script" not in shown_page  # escaped, inside the attribute
    page.unlink()
    assert "<code>" in page._repr_html_()


def test_words_cannot_leave_their_place(tmp_path):
    word = "</script><script>alert(1)</script><!--\u2028\ud800"
    payload = {"version": 1, "title": f"{word}\x1b", "words": [word]}
    text = make_page(payload)
    assert (
        text.count("<script") == 3
        and text.count("</script>") == 3
        and "alert(1)</script>" not in text
        and "\x1b" not in text
    )
    assert json.loads(escape_json(payload)) == payload and "<" not in escape_json(payload)
    assert "<!--" not in text.replace("<!DOCTYPE", "")
    text.encode("utf-8")


def test_the_policy_allows_the_one_script_and_nothing_else(tmp_path):
    text = explore("late", tmp_path / "page.html").read_text("utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    loader = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    packed = re.findall(
        r'<script type="text/plain" id="attnlab-script">(.*?)</script>', text, re.DOTALL
    )
    assert len(loader) == len(packed) == 1
    scripts = (loader[0].encode(), zlib.decompress(base64.b64decode(packed[0])))
    digests = [
        f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"
        for script in scripts
    ]
    assert rules == {
        "default-src": "'none'",
        "script-src": " ".join(digests),
        "worker-src": "blob:",
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert (
        not re.search(r"""(?:src|href)=["']?(?!data:)\w+:""", text)
        and "<noscript>" in text
        and "<title>" in text
    )
    assert scripts[1].decode() == join_page()


def test_the_page_is_small(tmp_path):
    assert os.path.getsize(explore(None, tmp_path / "page.html")) < 300_000


def test_the_page_of_a_preset_needs_no_compiler(tmp_path):
    """A preset's limit is stored, so its page is written in a moment."""
    code = (
        "import sys; from attnlab.explorer import explore; explore('late', sys.argv[1]); "
        "print([name for name in ('numba', 'matplotlib', 'xarray') if name in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "page.html"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.strip() == "[]" and is_page(tmp_path / "page.html")


def test_read_source_is_quick_about_names():
    assert (
        read_source("late").preset is presets["late"]
        and read_source(None).preset is presets[presets.in_order()[0]]
    )
