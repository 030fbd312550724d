"""reproduce: what is written, kept, resumed and refused; with a tiny experiment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

import attnlab as al
from attnlab.cli import app
from attnlab.experiments import experiments, reproduce
from attnlab.experiments.common.studies import study
from attnlab.experiments.datasets import limit_dataset, limit_from, limit_of_run, run_in, table
from attnlab.experiments.gallery import reproduce_all
from attnlab.experiments.record import Claim, Experiment
from attnlab.experiments.reproduce import MissingExtra, ResultsExist
from attnlab.experiments.results import CannotKeep, read_data, read_record, staging, write_data
from attnlab.experiments.spoils import changed
from attnlab.registry import UnknownName
from attnlab.sweep.lock import InUse
from embedded_viewers import check_viewers
from html_pages import Links

calls: list[str] = []


def specs(size):
    start = {"law": "uniform_cube", "n": 6, "d": 2, "low": -5, "high": 5, "rng": 1}
    return {
        "run": al.Spec(
            weights={"family": "identity"}, start=start, solve={"t_end": 3.0, "saves": 21}
        )
    }


def compute(size, progress, model="none"):
    calls.append(size)
    data = study(specs(size)["run"], progress, names=["hull_shrinks"], limit_times=[1.0, 50.0])
    return {**data, "numbers": table({"value": [1.0, 2.0]}, model=model)}


def claims(data):
    total = float(data["numbers"]["value"].sum())
    return [
        Claim(
            text="The sum is three & <not> four.",
            measured=total,
            published="3",
            low=3,
            high=3,
            because="arithmetic",
            differs="they add otherwise",
        )
    ]


def figures(data):
    return {"tiny": al.plot(run_in(data), times=0.0)}  # one panel: these tests are about files


TINY = Experiment(
    "tiny", "A tiny <experiment>", "nobody, nowhere", "For the tests.\n\nTwo paragraphs.", compute, claims, figures,
    {"other": changed("numbers", lambda numbers: numbers + 1)}, movie=run_in, movie_options={"frames": 3, "dpi": 40}, specs=specs,
)  # fmt: skip


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    len(experiments)  # loaded before the table is replaced
    calls.clear()
    monkeypatch.setattr(experiments, "_things", {"tiny": TINY})


def test_everything_is_written_and_linked(tmp_path):
    record = reproduce("tiny", tmp_path)
    folder = tmp_path / "tiny"
    assert (
        record["holds"]
        and record["claims"][0]["measured"] == 3
        and read_record(folder)["claims"] == record["claims"]
    )
    for name in (
        "tiny.png",
        "tiny.pdf",
        "tiny.gif",
        "tiny.mp4",
        "claims.csv",
        "verdicts.csv",
        "specs/run.toml",
        "data/run.nc",
        "data/run.csv",
        "data/limit.nc",
        "data/limit.csv",
        "data/numbers.csv",
        "index.html",
        "record.json",
    ):
        assert (folder / name).stat().st_size > 0
    links = Links()
    text = (folder / "index.html").read_text(encoding="utf-8")
    links.feed(text)
    assert "A tiny &lt;experiment&gt;" in text and "three &amp; &lt;not&gt; four" in text
    inside = {link[1:] for link in links.found if link.startswith("#")}
    assert inside and all(f'id="{place}"' in text for place in inside)  # the glossary at its end
    outside = [link for link in links.found if not link.startswith("#") and link != "../index.html"]
    assert outside and all((folder / link).exists() for link in outside)
    assert not any("//" in link for link in links.found)
    (viewer,) = check_viewers(text).values()
    assert (
        viewer["state"]["spec"]["start"]
        == al.Spec.load(folder / "specs" / "run.toml").to_dict()["start"]
    )
    assert len(viewer["limits"]) == 1 and viewer["limits"][0]["spec"] == viewer["state"]["spec"]
    assert sorted(os.listdir(tmp_path)) == ["tiny"]


def test_a_limit_of_another_run_is_not_shown():
    """A certified mark needs the limit that was kept beside the very run that is filmed."""
    data = compute("small", None)
    film = run_in(data)
    assert limit_of_run(data, film).certified
    other = al.simulate(film.dynamics.weights, film.x[0], t_end=3.0, times=film.times, beta=2.0)
    assert (
        limit_of_run(data, other) is None
        and limit_of_run({**data, "film": data["run"], "run": data["limit"]}, film) is None
    )


def test_runs_and_limits_come_back_from_the_data(tmp_path):
    reproduce("tiny", tmp_path)
    spec = al.Spec.load(tmp_path / "tiny" / "specs" / "run.toml")
    run, again = al.load(tmp_path / "tiny" / "data" / "run.nc"), al.run_spec(spec)
    np.testing.assert_array_equal(run.states, again.states)
    assert run.spec == spec and run.status is al.Status.OK
    limit = al.limit(again, times=[1.0, 50.0])
    back = limit_from(limit_dataset(limit), run.dynamics)
    for name in ("x0", "labels", "leaders", "basis", "points", "times", "z", "path"):
        np.testing.assert_array_equal(getattr(back, name), getattr(limit, name))
    for name in ("error", "grade", "reason", "certificate", "events", "t", "digits", "count"):
        assert getattr(back, name) == getattr(limit, name)


def test_results_are_kept_unless_forced(tmp_path):
    reproduce("tiny", tmp_path)
    before = (tmp_path / "tiny" / "record.json").stat().st_mtime_ns
    assert reproduce("tiny", tmp_path)["name"] == "tiny" and calls == ["full"]
    assert (tmp_path / "tiny" / "record.json").stat().st_mtime_ns == before
    with pytest.raises(ResultsExist, match="size 'full'.*--force"):
        reproduce("tiny", tmp_path, size="small")
    with pytest.raises(ResultsExist, match="--force"):
        reproduce("tiny", tmp_path, model="other")
    reproduce("tiny", tmp_path, size="small", force=True)
    assert calls == ["full", "small"] and read_record(tmp_path / "tiny")["size"] == "small"
    assert sorted(os.listdir(tmp_path)) == ["tiny"]


def test_foreign_folders_are_not_replaced(tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "thesis.tex").write_text("years of work")
    with pytest.raises(ResultsExist, match="not a folder of complete results"):
        reproduce("tiny", tmp_path)
    assert (tmp_path / "tiny" / "thesis.tex").read_text() == "years of work" and not calls


def test_an_interrupted_attempt_goes_on(tmp_path, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("attnlab.render.movie", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reproduce("tiny", tmp_path)
    assert not (tmp_path / "tiny").exists() and calls == ["full"]
    reproduce("tiny", tmp_path)
    assert calls == ["full"]  # what had been computed was not computed again
    assert sorted(os.listdir(tmp_path)) == ["tiny"]


@pytest.mark.slow
def test_what_was_computed_otherwise_is_not_used(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("attnlab.render.movie", lambda *args, **options: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            reproduce("tiny", tmp_path)
    (tmp_path / ".tiny.unfinished" / "data" / "numbers.nc").write_bytes(b"cut off")
    reproduce("tiny", tmp_path)
    assert calls == ["full", "full"]
    with monkeypatch.context() as patch:
        patch.setattr("attnlab.render.movie", lambda *args, **options: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            reproduce("tiny", tmp_path, force=True)
    reproduce("tiny", tmp_path, size="small", force=True)
    assert calls == ["full", "full", "full", "small"]


def test_names_sizes_and_options_are_checked(tmp_path):
    with pytest.raises(UnknownName, match="Unknown experiment 'tinny'. Did you mean 'tiny'"):
        reproduce("tinny", tmp_path)
    with pytest.raises(UnknownName, match="Unknown size 'large'"):
        reproduce("tiny", tmp_path, size="large")
    with pytest.raises(
        UnknownName, match="option of the experiment tiny 'modle'. Did you mean 'model'"
    ):
        reproduce("tiny", tmp_path, modle="x")
    assert not calls and not os.listdir(tmp_path)


def test_a_missing_extra_says_how_to_install_it(tmp_path, monkeypatch):
    from dataclasses import replace

    monkeypatch.setattr(experiments, "_things", {"tiny": replace(TINY, needs="models")})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'attnlab\[models\]'"):
        reproduce("tiny", tmp_path)


def test_a_folder_that_takes_nothing_is_refused_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotKeep, match="cannot be written to .*choose another one with -o"):
        reproduce("tiny", tmp_path / "file")
    assert not calls


def test_a_full_disk_is_said_and_what_was_there_is_kept(tmp_path, monkeypatch):
    reproduce("tiny", tmp_path)

    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("attnlab.files.os.fsync", full)
    with pytest.raises(
        CannotKeep, match=r"\.nc cannot be written \(No space left on device"
    ):  # which file
        reproduce("tiny", tmp_path, force=True)
    assert read_record(tmp_path / "tiny")["holds"]


def test_the_gallery_shows_what_there_is_and_says_what_is_missing(tmp_path, monkeypatch):
    from dataclasses import replace

    monkeypatch.setenv("ATTNLAB_MODELS", str(tmp_path / "nothing"))

    def not_fetched(size, progress):
        from attnlab.models import load

        load("plbert")

    missing = replace(TINY, name="missing", compute=not_fetched)
    monkeypatch.setattr(experiments, "_things", {"tiny": TINY, "missing": missing})
    told = []
    failures = []
    records = reproduce_all(
        tmp_path,
        progress=lambda fraction, at="": told.append(fraction),
        finished=lambda name, record, why, is_failure: failures.append(is_failure),
    )
    assert not any(failures)  # not here, and not a failure
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert (
        list(records) == ["tiny"] and "the claim holds" in text and "attnlab fetch plbert" in text
    )
    assert told == sorted(told) and told[-1] >= 0.5
    links = Links()
    links.feed(text)
    assert all((tmp_path / link).exists() for link in links.found)
    reproduce_all(tmp_path)
    assert calls == ["full"]


def test_a_failure_does_not_keep_the_others_from_being_made(tmp_path, monkeypatch):
    from dataclasses import replace

    def broken(size, progress):
        raise KeyError("z")

    def refused(size, progress):
        raise ConnectionError("The hub does not answer.")

    things = {
        "broken": replace(TINY, name="broken", compute=broken),
        "refused": replace(TINY, name="refused", compute=refused),
        "tiny": TINY,
    }
    monkeypatch.setattr(experiments, "_things", things)
    heard = {}
    records = reproduce_all(
        tmp_path,
        finished=lambda name, record, why, is_failure: heard.update({name: (why, is_failure)}),
    )
    assert list(records) == ["tiny"] and heard["broken"] == ("KeyError: 'z'", True)
    assert heard["refused"] == ("The hub does not answer.", False) and heard["tiny"] == ("", False)
    done = command("--all", "-o", tmp_path)
    assert (
        done.exit_code == 1
        and "Failed: broken" in done.output
        and "Left out: refused" in done.output
    )
    with pytest.raises(
        ConnectionError, match="does not answer"
    ):  # and is not taken for a full disk
        reproduce("refused", tmp_path)


def test_an_interrupted_run_is_no_failure_of_its_experiment(tmp_path, monkeypatch):
    """RunInterrupted is also an Exception: Ctrl-C went on with the next experiment."""
    from dataclasses import replace

    def interrupted(size, progress):
        progress.cancel()
        al.run_spec(specs(size)["run"])

    monkeypatch.setattr(
        experiments,
        "_things",
        {"first": replace(TINY, name="first", compute=interrupted), "tiny": TINY},
    )
    with pytest.raises(al.RunInterrupted):
        reproduce_all(tmp_path)
    assert calls == [] and not (tmp_path / "tiny").exists()


def test_one_process_at_a_time_makes_a_folder(tmp_path):
    code = (
        "import sys; from pathlib import Path; from attnlab.experiments.results import staging\n"
        "with staging(Path(sys.argv[1]), 'tiny'): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"held\n"
        try:
            with pytest.raises(ValueError, match=f"Process {other.pid} is making .*tiny now"):
                reproduce("tiny", tmp_path)
        finally:
            other.kill()  # it cannot tidy up: its file stays
    assert not calls and (tmp_path / ".tiny.lock").read_text() == str(other.pid)
    assert reproduce("tiny", tmp_path)["holds"] and sorted(os.listdir(tmp_path)) == ["tiny"]


@pytest.mark.parametrize("text", ["", "nonsense", "-1", "9" * 30, "own", "\0\xff"])
def test_a_lock_that_nobody_holds_is_no_hindrance(tmp_path, text):
    """Not even one with the number of a process that runs: that may be another one, which has the
    number now.
    """
    (tmp_path / ".tiny.lock").write_text(str(os.getppid()) if text == "own" else text)
    with staging(tmp_path, "tiny"):
        with pytest.raises(InUse, match=f"Process {os.getpid()} is making"):  # and it is held now
            reproduce("tiny", tmp_path)
    assert os.listdir(tmp_path) == [".tiny.unfinished"]


def test_a_lock_that_is_no_file_is_no_hindrance(tmp_path):
    (tmp_path / ".tiny.lock").mkdir()
    with staging(tmp_path, "tiny"):
        pass
    os.mkfifo(tmp_path / ".tiny.lock")
    with staging(tmp_path, "tiny"):
        pass
    assert os.listdir(tmp_path) == [".tiny.unfinished"]


def test_damaged_data_of_an_unfinished_attempt_are_made_again(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("attnlab.render.movie", lambda *args, **options: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            reproduce("tiny", tmp_path)
    with h5py.File(tmp_path / ".tiny.unfinished" / "data" / "numbers.nc", "r+") as file:
        file["value"][0] = 5.0  # the file is as whole as before
    assert reproduce("tiny", tmp_path)["holds"] and calls == ["full", "full"]


def test_data_that_are_damaged_or_gone_are_none(tmp_path):
    data = {"numbers": table({"value": [1.0, 2.0]})}
    write_data(tmp_path, data, "key")
    kept = {path: path.read_bytes() for path in (tmp_path / "numbers.nc", tmp_path / "key.json")}
    assert (
        read_data(tmp_path, "key")["numbers"].equals(data["numbers"])
        and read_data(tmp_path, "other") is None
    )
    for path, whole in kept.items():
        for content in (b"", whole[:-10], b"[" * 100_000, b"{}", b"\xff" + whole[1:]):
            path.write_bytes(content)
            assert read_data(tmp_path, "key") is None
        path.unlink()
        path.mkdir()
        assert read_data(tmp_path, "key") is None
        path.rmdir()
        path.write_bytes(whole)


def test_an_unfinished_attempt_that_is_a_file_is_no_hindrance(tmp_path):
    (tmp_path / ".tiny.unfinished").write_text("")
    with staging(tmp_path, "tiny") as made:
        (made / "data").write_text("")
    with staging(tmp_path, "tiny") as made:
        assert os.listdir(made) == []


def test_a_run_among_the_data_loads_as_any_run(tmp_path):
    reproduce("tiny", tmp_path)
    run = al.load(tmp_path / "tiny" / "data" / "run.nc")
    np.testing.assert_array_equal(run.states, al.run_spec(specs("full")["run"]).states)


def test_what_an_ended_attempt_left_is_put_right(tmp_path):
    reproduce("tiny", tmp_path)
    (tmp_path / "tiny").rename(tmp_path / ".tiny.abcd1234.old")  # ended between the two renamings
    (tmp_path / ".tiny.unfinished").mkdir()
    (tmp_path / ".tiny.unfinished" / "stale.png").write_text("of another text")
    assert reproduce("tiny", tmp_path, force=True)["holds"]
    assert (
        sorted(os.listdir(tmp_path)) == ["tiny"] and not (tmp_path / "tiny" / "stale.png").exists()
    )


@pytest.mark.parametrize(
    "text",
    [
        "null",
        '{"is_complete": true}',
        *(
            pytest.param(text, marks=pytest.mark.slow)
            for text in ("{}", "[]", "not JSON", '{"is_complete": 1, "figures": []}')
        ),
    ],
)
def test_records_of_another_shape_are_no_results(text, tmp_path):
    reproduce("tiny", tmp_path)
    (tmp_path / "tiny" / "record.json").write_text(text)
    with pytest.raises(ResultsExist, match="not a folder of complete results"):
        reproduce("tiny", tmp_path)
    reproduce_all(tmp_path)
    assert "tiny" in (tmp_path / "index.html").read_text(
        encoding="utf-8"
    )  # said to be missing, and why
    assert reproduce("tiny", tmp_path, force=True)["holds"]


def command(*words):
    return CliRunner().invoke(app(), ["reproduce", *map(str, words)])


def test_the_command_line(tmp_path):
    done = command("tiny", "-o", tmp_path)
    assert (
        done.exit_code == 0 and "they add otherwise" in done.output and "index.html" in done.output
    )
    records = json.loads(command("tiny", "-o", tmp_path, "--json").stdout)["records"]
    assert records["tiny"]["claims"][0]["holds"] is True
    assert command("--all", "-o", tmp_path).exit_code == 0
    for words, message in (
        (("tinny",), "Did you mean 'tiny'"),
        ((), "--all"),
        (("tiny", "--all"), "--all"),
        (("--all", "--model", "x"), "is for one experiment"),
        (("tiny", "--small", "-o", tmp_path), "--force"),
    ):
        refused = command(*words)
        assert refused.exit_code == 2 and message in refused.output, words


def test_a_claim_that_fails_is_exit_code_1(tmp_path, monkeypatch):
    from dataclasses import replace

    wrong = replace(
        TINY,
        claims=lambda data: [
            Claim(text="Two is three.", measured=2.0, low=3, high=3, because="no")
        ],
    )
    monkeypatch.setattr(experiments, "_things", {"tiny": wrong})
    done = command("tiny", "-o", tmp_path)
    assert done.exit_code == 1 and "NO" in done.output and "Claims fail in tiny" in done.output


def test_a_claim_that_is_not_a_number_fails():
    missing = Claim(text="?", measured=float("nan"), low=0, high=1)
    assert not missing.holds and missing.as_dict()["measured"] is None
    assert Claim(text="?", measured=1.0, low=1, high=1).allowed == "1"
    assert Claim(text="?", measured=1.0, low=0).allowed == "at least 0"


def test_listing_experiments_loads_no_heavy_library():
    code = (
        "import sys, attnlab.experiments as e; list(e.experiments); "
        "print([m for m in ('matplotlib', 'numba', 'xarray', 'scipy.spatial') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_trained_half_is_said(tmp_path, monkeypatch, capsys):
    from dataclasses import replace

    from attnlab.cli.reproduce import _say_without

    def half(size, progress):
        data = TINY.compute(size, progress)
        first = next(iter(data))
        return {**data, first: data[first].assign_attrs(why="`attnlab fetch minilm` downloads it.")}

    monkeypatch.setattr(experiments, "_things", {"tiny": replace(TINY, compute=half)})
    record = reproduce("tiny", tmp_path)
    assert record["without"] == "`attnlab fetch minilm` downloads it."
    assert "`attnlab fetch minilm` downloads it." in (tmp_path / "tiny" / "index.html").read_text(
        encoding="utf-8"
    )
    _say_without({"tiny": record})
    assert "--force" in capsys.readouterr().err
