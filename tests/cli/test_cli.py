"""The command line: what it prints, what it writes, its exit codes, and one sentence for whatever a
user gets wrong.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from attnlab import Spec, Status, __version__, engine, render
from attnlab.analysis import observables
from attnlab.cli import verbs
from attnlab.cli.words import KIND_MEANINGS
from attnlab.examples import example_names, example_spec
from attnlab.starts import start_laws
from attnlab.store import load
from attnlab.weights import weights_families
from command_line import attnlab, refused


@pytest.fixture
def spec_file(workplace, polytope):
    polytope.save(workplace / "small.toml")
    return "small.toml"


@pytest.fixture
def ends_with(monkeypatch, make_run):
    """Let every simulation end with a given status."""

    def arrange(status, kind="plain"):
        run = dataclasses.replace(make_run(kind), status=status)
        monkeypatch.setattr("attnlab.run.simulate", lambda w, x0, **options: run)

    return arrange


# --------------------------------------------------------------------------------------------------
# help and list


def test_the_version():
    assert attnlab("--version").stdout == f"attnlab {__version__}\n"


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_the_help_page_has_every_verb(arguments):
    text = attnlab(*arguments).stdout
    for verb in verbs:
        assert verb in text
    assert {"list", "run", "plot", "tour"} <= set(verbs)


@pytest.mark.parametrize("verb", list(verbs))
def test_every_verb_explains_itself(verb):
    assert "--help" in attnlab(verb, "--help").stdout


def test_list_has_everything():
    named = json.loads(attnlab("list", "--json").stdout)
    assert set(named["start laws"]) == set(start_laws)
    assert set(named["weights families"]) == set(weights_families)
    assert set(named["observables"]) == set(observables)
    assert set(named["kinds of figure"]) == set(render.kinds)
    assert set(named["example Specs"]) == set(example_names())
    for things in named.values():
        assert all(thing["about"] and "\n" not in thing["about"] for thing in things.values())
    assert named["start laws"]["uniform_cube"]["keys"] == {
        "n": {"required": True},
        "d": {"required": True},
        "low": {"required": False, "default": -1.0},
        "high": {"required": False, "default": 1.0},
        "rng": {"required": False, "default": 0},
    }
    assert named["weights families"]["gaussian"]["keys"]["rank"] == {"required": False}
    assert (
        named["keys of [solve]"]["rtol"]["default"] == 1e-8
        and "default" not in named["keys of [solve]"]["t_end"]
    )
    assert {"softmax", "exp_mean", "hardmax", "sigmoid", "sinkhorn"} <= set(named["kernels"])
    assert named["masks"]["window"]["keys"]["width"] == {"required": True}
    table = attnlab("list", "--all").stdout
    for things in named.values():
        assert all(name in table for name in things)


def test_list_begins_with_an_overview():
    every = json.loads(attnlab("list", "--json").stdout)
    assert set(KIND_MEANINGS) == set(every)
    overview = attnlab("list").stdout
    assert len(overview.splitlines()) < 36
    rows = [
        [cell.strip() for cell in line.strip("│ ").split("│")]
        for line in overview.splitlines()
        if line.startswith("│")
    ]
    assert [(kind, int(count)) for kind, count, *_ in rows] == [
        (kind, len(things)) for kind, things in every.items()
    ]
    for kind, _, _, command in rows:
        program, verb, word = command.split()
        assert (program, verb) == ("attnlab", "list")
        shown = json.loads(attnlab(verb, word, "--json").stdout)
        assert shown[kind] == every[kind] and len(shown) <= 2
    assert "--all shows every kind" in refused("list", "starts", "--all")


def test_list_of_one_kind():
    every = json.loads(attnlab("list", "--json").stdout)
    assert json.loads(attnlab("list", "experiments", "--json").stdout) == {
        "experiments": every["experiments"]
    }
    assert set(json.loads(attnlab("list", "Keys of", "--json").stdout)) == {
        name for name in every if name.startswith("keys of")
    }
    assert (
        "polytope_2d" in attnlab("list", "experiments").stdout
        and "uniform_cube" not in attnlab("list", "experiments").stdout
    )


@pytest.mark.parametrize("kind", ["no such kind", " "])
def test_list_of_a_kind_that_is_not_there_names_those_that_are(kind):
    failed = attnlab("list", kind, code=2)
    assert "Unknown kind" in failed.stderr and "start laws" in failed.stderr


# --------------------------------------------------------------------------------------------------
# run


def test_run_saves_and_tells(spec_file, workplace, polytope):
    result = attnlab("run", spec_file, "-o", "run.nc")
    run = load(workplace / "run.nc")
    assert run.spec == polytope and run.is_ok
    for words in ("identity", "status", "OK", "steps", "time reached", "run.nc"):
        assert words in result.stdout
    assert sorted(path.name for path in workplace.iterdir()) == ["run.nc", "small.toml"]


def test_run_prints_json(spec_file, polytope):
    numbers = json.loads(attnlab("run", spec_file, "--json").stdout)
    assert (numbers["n"], numbers["d"], numbers["status"], numbers["saved"]) == (
        5,
        3,
        "OK",
        "small.nc",
    )
    assert numbers["time_reached"] == numbers["time_asked"] == 0.5
    assert numbers["steps"] > 0 and numbers["evaluations"] > numbers["steps"]
    assert numbers["digest"] == polytope.digest() and numbers["error"] is None


def test_run_gives_the_certified_error(workplace, polytope):
    dataclasses.replace(polytope, solve={**polytope.solve, "measure_error": True}).save(
        "certified.toml"
    )
    assert 0 <= json.loads(attnlab("run", "certified.toml", "--json").stdout)["error"] < 1e-6


def test_run_draws_and_films(workplace, polytope, monkeypatch):
    monkeypatch.setattr(render, "movie", functools.partial(render.movie, frames=3, dpi=40))
    dataclasses.replace(polytope, start={**polytope.start, "d": 2}).save("flat.toml")
    attnlab("run", "flat.toml", "--figure", "f.png", "--movie", "m.gif")
    assert (workplace / "f.png").read_bytes().startswith(b"\x89PNG")
    assert (workplace / "m.gif").read_bytes().startswith(b"GIF")


@pytest.mark.parametrize(
    ("option", "name"), [("-o", "old.nc"), ("--figure", "old.png"), ("--movie", "old.gif")]
)
def test_run_replaces_nothing_unless_forced(spec_file, workplace, option, name, ends_with):
    ends_with(Status.OK)
    (workplace / name).write_text("precious")
    message = refused("run", spec_file, option, name)
    assert message == f"{name} exists already. Choose another name, or add --force to replace it."
    assert (workplace / name).read_text() == "precious"
    if option == "-o":
        attnlab("run", spec_file, "-o", name, "--force")
        assert load(workplace / name).is_ok


@pytest.fixture
def must_not_simulate(monkeypatch):
    monkeypatch.setattr(
        engine, "simulate", lambda *_, **__: pytest.fail("simulated before looking where to write")
    )


@pytest.mark.parametrize("option", ["-o", "--figure", "--movie"])
@pytest.mark.parametrize("name", ["small.toml", "../work/small.toml", "link.nc"])
def test_the_spec_itself_is_never_replaced(spec_file, workplace, option, name, must_not_simulate):
    (workplace / "link.nc").symlink_to("small.toml")
    before = (workplace / "small.toml").read_bytes()
    message = refused("run", spec_file, option, name, "--force")
    assert message == f"{option} would overwrite the input {name}. Choose another name."
    assert (workplace / "small.toml").read_bytes() == before


def test_a_spec_that_is_called_like_a_run_is_not_replaced(workplace, polytope, must_not_simulate):
    polytope.save("small.toml")
    (workplace / "small.toml").rename("small.nc")
    assert refused("run", "small.nc", "--force").startswith("-o would overwrite the input small.nc")
    assert Spec.from_toml((workplace / "small.nc").read_text()) == polytope


@pytest.mark.parametrize(
    ("outputs", "sentence"),
    [
        (
            ("-o", "a.nc", "--figure", "a.nc"),
            "-o and --figure are the same file, a.nc. Choose two names.",
        ),
        (
            ("--figure", "a.png", "--movie", "./a.png"),
            "--figure and --movie are the same file, a.png. Choose two names.",
        ),
        (
            ("-o", "run"),
            "The name of a run must end in .nc, .csv, .npz or .mat, got run: use run.nc.",
        ),
        (
            ("-o", "run.png"),
            "The name of a run must end in .nc, .csv, .npz or .mat, got run.png: use run.nc.",
        ),
        (
            ("--figure", "f.gif"),
            "f.gif is the name of a movie: a figure's name ends in .png, .pdf or .svg.",
        ),
        (("--figure", "f"), "A figure's file name must end in .png, .pdf or .svg"),
        (("--figure", "f.txt"), "A figure's file name must end in .png, .pdf or .svg"),
        (("--movie", "m.png"), "A movie's file name must end in .gif or .mp4, got 'm.png'."),
        (("--figure", "no/f.png"), "There is no folder no. Create it first."),
        (("--movie", "no/m.gif"), "There is no folder no. Create it first."),
    ],
)
def test_names_are_looked_at_before_the_run(
    spec_file, workplace, outputs, sentence, must_not_simulate
):
    assert refused("run", spec_file, *outputs, "--force").startswith(sentence)
    assert [path.name for path in workplace.iterdir()] == ["small.toml"]


def test_a_folder_that_forbids_writing_is_seen_before_the_run(
    spec_file, monkeypatch, must_not_simulate
):
    monkeypatch.setattr("os.access", lambda path, mode, **__: mode != os.W_OK)
    assert refused("run", spec_file) == "You may not write to the folder .. Choose another one."


def test_an_example_runs_by_its_name(workplace, ends_with, polytope):
    ends_with(Status.OK)
    attnlab("run", "polytope_2d")
    assert load("polytope_2d.nc").spec == example_spec("polytope_2d")
    attnlab("plot", "polytope_2d", "-o", "f.png")
    (workplace / "polytope_3d").mkdir()
    attnlab("run", "polytope_3d", "-o", "a.nc")
    assert load("a.nc").spec == example_spec("polytope_3d")
    polytope.save("polytope_2d")  # a file of that name is what is meant
    attnlab("run", "polytope_2d", "-o", "b.nc")
    assert load("b.nc").spec == polytope


def test_an_unknown_name_suggests_the_nearest_example(workplace):
    for verb in (("run", "polytop_2d"), ("plot", "polytop_2d", "-o", "f.png")):
        message = refused(*verb)
        assert message.startswith(
            "Unknown file or example Spec 'polytop_2d'. Did you mean 'polytope_2d'? Known:"
            " attention_1d, "
        )
    message = refused("run", "polytope_2d.toml")
    assert (
        message == "There is no Spec at polytope_2d.toml. To use the example, give its name alone:"
        " polytope_2d."
    )
    (workplace / "folder").mkdir()
    assert refused("run", "folder") == "folder is a folder: give a Spec, a .toml or .json file."


def test_a_run_that_fails_is_saved_and_is_exit_code_1(spec_file, workplace, ends_with):
    ends_with(Status.MAX_STEPS)
    result = attnlab("run", spec_file, "-o", "run.nc", "--figure", "f.png", code=1)
    assert (
        result.stderr.strip()
        == f"{Status.MAX_STEPS.value} The part that was computed is in run.nc."
    )
    assert "MAX_STEPS" in result.stdout
    assert load(workplace / "run.nc").status is Status.MAX_STEPS


def test_a_batch_that_fails_in_part_says_how_many(spec_file, ends_with):
    ends_with(np.array([Status.OK, Status.STALLED], dtype=object), kind="batch")
    result = attnlab("run", spec_file, code=1)
    assert result.stderr.startswith(f"1 of 2 members: {Status.STALLED.value}")
    assert "1 OK, 1 STALLED" in result.stdout


def test_a_run_that_is_interrupted_is_saved_and_is_exit_code_130(spec_file, workplace, ends_with):
    ends_with(Status.INTERRUPTED)
    attnlab("run", spec_file, "-o", "run.nc", code=130)
    assert load(workplace / "run.nc").status is Status.INTERRUPTED


def test_a_real_failure_leaves_a_run_up_to_there(workplace, polytope):
    dataclasses.replace(polytope, solve={"t_end": 5, "saves": 51, "max_steps": 3}).save(
        "short.toml"
    )
    attnlab("run", "short.toml", code=1)
    run = load("short.nc")
    assert run.status is Status.MAX_STEPS and run.spec == Spec.load("short.toml")
    assert 0 <= run.times[-1] < 5 and np.isfinite(run.states).all()


# ------------------------------------------------------------------------------------------- what a
# user gets wrong

SMALL = (
    "[weights]\nfamily = 'identity'\n[start]\nlaw = 'normal'\nn = 3\nd = 2\n[solve]\nt_end = 1\n"
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "There is no Spec at bad.toml."),
        ("[weights\n", "bad.toml is not valid TOML"),
        (
            "[weights]\n",
            (
                "bad.toml: A Spec needs the sections weights, start and solve; start, solve is"
                " missing."
            ),
        ),
        ("weights = 3\nstart = 3\nsolve = 3\n", "bad.toml: Spec.weights must be a table, got int."),
        (SMALL.replace("identity", "identiy"), "Did you mean 'identity'?"),
        (SMALL.replace("t_end", "t_edn"), "Did you mean 't_end'?"),
        (SMALL.replace("n = 3", "n = 0"), "n must be a whole number"),
        (
            SMALL + "observe = ['diameter']\n",
            "observe is a list at the top of the file, before the first [section]",
        ),
    ],
)
def test_a_wrong_spec_is_one_sentence(workplace, text, sentence):
    if text is not None:
        (workplace / "bad.toml").write_text(text)
    for verb in (("run", "bad.toml"), ("plot", "bad.toml", "-o", "f.png")):
        assert sentence in refused(*verb)
    assert not list(workplace.glob("*.nc")) and not list(workplace.glob("*.png"))


@pytest.mark.parametrize("output", ["no/run.nc", ".", "small.toml/run.nc"])
def test_a_wrong_place_is_one_sentence(spec_file, output, must_not_simulate):
    assert "folder" in refused("run", spec_file, "-o", output)


def test_a_folder_is_no_spec(workplace):
    (workplace / "folder.toml").mkdir()
    assert (
        refused("run", "folder.toml")
        == "folder.toml is a folder: give a Spec, a .toml or .json file."
    )


def test_what_is_no_run_is_one_sentence(workplace):
    (workplace / "text.nc").write_text("no run")
    assert refused("plot", "text.nc", "-o", "f.png").startswith("text.nc is not a NetCDF-4 file")
    assert refused("plot", "no.nc", "-o", "f.png") == "There is no run at no.nc."


def test_a_bug_shows_itself(spec_file, monkeypatch):
    def bug(*_, **__):
        raise KeyError("a bug")

    monkeypatch.setattr("attnlab.run.simulate", bug)
    with pytest.raises(KeyError, match="a bug"):
        attnlab("run", spec_file)


@pytest.mark.parametrize(("status", "code"), [(Status.NON_FINITE, 1), (Status.INTERRUPTED, 130)])
def test_a_run_that_fails_is_not_drawn(spec_file, workplace, ends_with, status, code):
    ends_with(status)
    assert refused("plot", spec_file, "-o", "f.png", code=code) == status.value
    assert not (workplace / "f.png").exists()


# --------------------------------------------------------------------------------------------------
# plot


def test_plot_draws_a_spec_and_a_run(spec_file, workplace):
    attnlab("plot", spec_file, "-o", "a.png")
    attnlab("run", spec_file)
    attnlab("plot", "small.nc", "-o", "b.png", "--kind", "attention")
    for name in ("a.png", "b.png"):
        assert (workplace / name).read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def run_file(workplace):
    """A batch of two runs of two heads in the plane, on disk."""
    start = {"law": "normal", "n": 6, "d": 2, "batch": 2}
    Spec(
        weights={"family": "gaussian", "heads": 2}, start=start, solve={"t_end": 1, "saves": 5}
    ).save("two.toml")
    attnlab("run", "two.toml")
    return "two.nc"


def test_plot_passes_on_what_is_asked(run_file, monkeypatch):
    asked = {}

    def drawn(run, kind, **options):
        asked.update(options, kind=kind)
        return real(run, kind, **options)

    real = render.plot
    monkeypatch.setattr(render, "plot", drawn)
    options = (
        "--kind",
        "attention",
        "--member",
        1,
        "--times",
        "0,0.5",
        "--frame",
        "x",
        "--head",
        1,
        "--width",
        5,
        "--no-title",
    )
    attnlab("plot", run_file, "-o", "f.png", *options)
    assert asked == {
        "kind": "attention",
        "member": 1,
        "times": [0.0, 0.5],
        "frame": "x",
        "head": 1,
        "width": 5.0,
        "title": False,
    }


@pytest.mark.parametrize(("name", "begins"), [("m.gif", b"GIF"), ("M.MP4", b"\x00\x00\x00")])
def test_plot_films(run_file, workplace, monkeypatch, name, begins):
    monkeypatch.setattr(render, "movie", functools.partial(render.movie, frames=3, dpi=40))
    result = attnlab(
        "plot", run_file, "-o", name, "--member", 1, "--kind", "attention", "--head", 0
    )
    assert (workplace / name).read_bytes().startswith(
        begins
    ) and result.stdout == f"Movie written to {name}.\n"


def test_plot_replaces_nothing_unless_forced(run_file, workplace):
    (workplace / "f.png").write_text("precious")
    assert refused("plot", run_file, "-o", "f.png").startswith("f.png exists already")
    assert (workplace / "f.png").read_text() == "precious"
    attnlab("plot", run_file, "-o", "f.png", "--force")
    assert (workplace / "f.png").read_bytes().startswith(b"\x89PNG")
    before = (workplace / run_file).read_bytes()
    assert refused("plot", run_file, "-o", run_file, "--force").startswith(
        "-o would overwrite the input two.nc"
    )
    assert (workplace / run_file).read_bytes() == before


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--kind", "atention"), "Did you mean 'attention'?"),
        (
            ("--times", "soon"),
            "--times must be numbers with commas between them, such as 0,2.5,5; got 'soon'.",
        ),
        (("--times", "0,nan"), "--times must be numbers with commas between them"),
        (("--frame", "y"), "--frame must be x or z, got 'y'."),
        (("-o", "f.xyz"), "A figure's file name must end in .png, .pdf or .svg"),
        (
            ("-o", "f.gif", "--times", "1"),
            "--times applies only to figures; a movie shows all times.",
        ),
    ],
)
def test_wrong_options_of_plot_are_one_sentence_before_the_run(
    spec_file, options, sentence, must_not_simulate
):
    options = options if "-o" in options else ("-o", "f.png", *options)
    assert sentence in refused("plot", spec_file, *options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--member", "2"), "got member = 2"),
        (("--head", "2", "--kind", "attention"), "head must be"),
        (("--times", "7"), "got 7"),
    ],
)
def test_what_the_run_does_not_have_is_one_sentence(run_file, workplace, options, words):
    assert words in refused("plot", run_file, "-o", "f.png", *options)
    assert not (workplace / "f.png").exists()


# --------------------------------------------------------------------------------------------- as
# its own process

COMMAND = [sys.executable, "-c", "from attnlab.cli import main; main()"]


def test_as_a_process(workplace, polytope):
    polytope.save("small.toml")
    done = subprocess.run([*COMMAND, "run", "small.toml", "--json"], capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout)["status"] == "OK"
    done = subprocess.run([*COMMAND, "run", "no.toml"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "There is no Spec at no.toml.\n")


def test_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "attnlab", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"attnlab {__version__}\n")


def test_a_reader_may_leave_early():
    process = subprocess.Popen(
        [*COMMAND, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.close()
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait()
