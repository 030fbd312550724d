"""attnlab predict and attnlab check, and the figure of verdicts: what is printed and drawn is what
the records hold.
"""

from __future__ import annotations

import dataclasses
import io
import json

import numpy as np
import pytest

import attnlab as al
from attnlab.cli.theory_words import plain
from attnlab.render.verdict_figure import LOOKS
from attnlab.run import run_spec
from attnlab.store import save
from attnlab.theory import theorems
from attnlab.verdicts import Hypothesis, Measured, Outcome, Theorem, Verdict
from command_line import attnlab

FAST = ("distances_grow", "field_bounds")
NAN = float("nan")


def named(*names):
    return [word for name in names for word in ("--name", name)]


@pytest.fixture
def spec_file(workplace, polytope):
    dataclasses.replace(polytope, solve={"t_end": 0.5, "saves": 6}).save(workplace / "small.toml")
    return "small.toml"


@pytest.fixture
def batch_file(workplace, polytope):
    spec = dataclasses.replace(
        polytope, start={**polytope.start, "batch": 3}, solve={"t_end": 0.5, "saves": 6}
    )
    spec.save(workplace / "batch.toml")
    return "batch.toml"


@pytest.fixture
def planted(monkeypatch):
    """A result registered for one test, that measures what it is told to."""

    def plant(value, hypothesis=True, needs=""):
        theorem = Theorem(
            "planted",
            "theorem",
            "It is planted.",
            "arXiv",
            lambda dynamics, x0: [Hypothesis("a fact", 1.5, "> 2", hypothesis)],
            lambda dynamics, x0: (
                "Something grows.",
                {"rate": 1 + 2j, "set": (1, np.inf), "array": np.arange(2.0)},
            ),
            lambda evidence: Measured(
                value,
                0.0,
                0.01,
                0.1,
                "Seen by eye.",
                needs=needs,
                details={"number": np.float64(3.0)},
            ),
            lambda: None,
            lambda: None,
            lambda: None,
            lambda run: run,
        )
        len(theorems)  # so that all files are read before
        monkeypatch.setitem(theorems._things, "planted", theorem)

    return plant


# the command line
# --------------------------------------------------------------------------------------------------


def test_a_prediction_is_a_line_or_a_paragraph_and_json_holds_it_all(spec_file, planted):
    planted(0.0)
    line = attnlab("predict", spec_file, *named("planted")).stdout
    assert line == "planted (theorem): applies. Something grows.\n"
    text = attnlab("predict", spec_file, "--long", *named("planted")).stdout
    assert (
        text.startswith(line.strip())
        and "yes  a fact (1.5, must be > 2)" in text
        and "rate: (1+2j)" in text
    )
    (record,) = json.loads(attnlab("predict", spec_file, "--json", *named("planted")).stdout)
    assert record["applies"] is True and record["limit"] == "Something grows."
    assert record["data"] == {"rate": [1.0, 2.0], "set": [1, None], "array": [0.0, 1.0]}
    assert record["hypotheses"] == [
        {"says": "a fact", "value": 1.5, "needs": "> 2", "holds": True, "note": ""}
    ]


def test_those_that_apply_come_first_and_all_are_there(spec_file):
    summary, *lines = attnlab("predict", spec_file).stdout.splitlines()
    assert (
        summary.startswith("Theorems: ") and "polytope" in summary and "codimension" not in summary
    )
    assert {line.split(" ")[0] for line in lines} == set(theorems)
    assert "(theorem): applies" in lines[0]
    places = [
        next(
            i
            for i, words in enumerate(("): applies", "): may apply", "): does not"))
            if words in line
        )
        for line in lines
    ]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("value", "outcome", "code"),
    [
        (-1.0, "SUPPORTED", 0),
        (0.005, "SUPPORTED", 0),
        (0.02, "CONTRADICTED", 1),
        (NAN, "UNDECIDED", 0),
    ],
)
def test_the_exit_code_is_one_for_a_contradicted_theorem_only(
    spec_file, planted, value, outcome, code
):
    planted(value, needs="more would decide")
    result = attnlab("check", spec_file, *named("planted"), code=code)
    assert result.stdout.startswith(f"planted (theorem): {outcome}")
    (record,) = json.loads(
        attnlab("check", spec_file, "--json", *named("planted"), code=code).stdout
    )
    assert (
        record["outcome"] == outcome
        and record["evidence"] == "Seen by eye."
        and record["details"] == {"number": 3.0}
    )
    assert record["measured"] == (value if value == value else None)


def test_out_of_scope_says_why(spec_file, planted):
    planted(5.0, hypothesis=False)
    line = "planted (theorem): OUT_OF_SCOPE: it needs: a fact (1.5, must be > 2)\n"
    assert attnlab("check", spec_file, *named("planted")).stdout == line


def test_a_contradicted_conjecture_is_a_finding(spec_file):
    result = attnlab("check", spec_file, *named("codimension"))
    assert (
        result.stdout.startswith("codimension (conjecture): CONTRADICTED")
        and "counterexample" in result.stdout
    )


def test_a_single_word_as_names_and_an_unknown_option_are_refused():
    weights = al.Weights(V=np.eye(2))
    with pytest.raises(TypeError, match="names must be a list"):
        al.predict(weights, names="polytope")
    with pytest.raises(TypeError, match="names must be a list"):
        al.check(al.simulate(weights, np.eye(2), t_end=1.0), names="polytope")
    with pytest.raises(TypeError, match=r"predict\(\) got an unexpected keyword argument 'betta'"):
        al.predict(weights, betta=2.0)
    assert len(al.predict(weights, names=["polytope", "polytope"])) == 1


def test_a_run_is_judged_as_its_spec_is(spec_file, workplace):
    save(run_spec(al.Spec.load(spec_file)), "small.nc")
    texts = [attnlab("check", source, *named(*FAST)).stdout for source in (spec_file, "small.nc")]
    assert texts[0] == texts[1]
    run = al.load("small.nc")
    for verdict in al.check(run, names=FAST):
        assert str(verdict) in texts[0]
        assert (
            verdict.evidence
            in attnlab("check", "small.nc", "--long", *named(verdict.theorem)).stdout
        )
    assert texts[0].endswith("2 SUPPORTED.\n")
    assert (
        attnlab("predict", "small.nc", *named(*FAST)).stdout
        == attnlab("predict", spec_file, *named(*FAST)).stdout
    )


def test_a_batch_is_a_table(batch_file, planted):
    planted(0.02)
    text = attnlab("check", batch_file, *named("planted", "distances_grow"), code=1).stdout
    lines = [line.split("│") for line in text.splitlines() if line.count("│") > 4]
    rows = {row[1].strip(): [cell.strip() for cell in row[2:6]] for row in lines}
    assert rows["planted"] == ["0", "3", "0", "0"] and rows["distances_grow"] == [
        "3",
        "0",
        "0",
        "0",
    ]
    assert text.count("CONTRADICTED (measured 0.02") == 3
    found = json.loads(attnlab("check", batch_file, "--json", *named("planted"), code=1).stdout)
    assert [[one["outcome"] for one in member] for member in found] == [["CONTRADICTED"]] * 3
    before = attnlab("predict", batch_file, *named("planted", "low_rank_boolean")).stdout
    assert "does not apply" in before and "planted" in before
    assert len(json.loads(attnlab("predict", batch_file, "--json", *named("planted")).stdout)) == 3
    assert "Member 2" in attnlab("check", batch_file, "--long", *named("planted"), code=1).stdout


def test_a_run_that_ends_early_is_judged_as_far_as_it_goes(workplace, polytope):
    dataclasses.replace(polytope, solve={"t_end": 5.0, "max_steps": 3}).save("early.toml")
    result = attnlab("check", "early.toml", *named("distances_grow"))
    assert "max_steps" in result.stderr and "UNDECIDED" in result.stdout


def test_what_a_user_gets_wrong_is_one_sentence(spec_file, workplace):
    for arguments in (
        ("check", spec_file, "--name", "polytop"),
        ("predict", spec_file, "--name", "polytop"),
    ):
        result = attnlab(*arguments, code=2)
        assert "Did you mean 'polytope'?" in result.stderr and result.stdout == ""
    assert "There is no Spec" in attnlab("check", "nothing.toml", code=2).stderr
    (workplace / "there.png").write_text("")
    assert "--force" in attnlab("check", spec_file, "-o", "there.png", code=2).stderr


def test_results_are_listed():
    known = json.loads(attnlab("list", "--json").stdout)["results"]
    assert set(known) == set(theorems) and all(thing["about"] for thing in known.values())


def test_plain_values():
    assert plain({"a": np.array([1.0, np.nan]), 2: (True, 1j), "o": Outcome.SUPPORTED}) == {
        "a": [1.0, None],
        "2": [True, [0.0, 1.0]],
        "o": "SUPPORTED",
    }


# the figure
# --------------------------------------------------------------------------------------------------

MADE = [
    Verdict("one", "theorem", Outcome.SUPPORTED, -0.02, 0.0, 0.01, 1e-4, "Seen."),
    Verdict("two", "theorem", Outcome.CONTRADICTED, 3.5, 1.0, 0.5, 0.25, "Seen."),
    Verdict(
        "three",
        "estimate",
        Outcome.UNDECIDED,
        0.1,
        0.0,
        0.1,
        2.0,
        "Seen.",
        "rtol=1e-12 would decide",
    ),
    Verdict("four", "conjecture", Outcome.OUT_OF_SCOPE, NAN, NAN, NAN, NAN, "", "it needs: V = I"),
]


def words_of(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_a_figure_of_verdicts_shows_every_number_and_word():
    figure = al.plot(MADE)
    bars = figure.axes[1]
    marks = {
        a.get_label(): a.get_offsets()[0]
        for a in bars.collections
        if a.get_label() in {one.theorem for one in MADE}
    }
    assert {name: round(float(place[0]), 12) for name, place in marks.items()} == {
        "one": -2.0,
        "two": 5.0,
        "three": 1.0,
    }
    colours = {
        a.get_label(): a.get_facecolor()[0] for a in bars.collections if a.get_label() in marks
    }
    assert len({tuple(colour) for colour in colours.values()}) == 3
    shown = words_of(figure)
    for one in MADE:
        assert one.theorem in shown and LOOKS[one.outcome][2] in shown
        assert not one.unmet or one.unmet in shown
    assert "3.5" in shown and "0.25" in shown and "nan" not in " ".join(shown)
    assert (
        figure.get_suptitle()
        == "4 statements: 1 supported, 1 contradicted, 1 out of scope, 1 undecided"
    )
    for form in ("png", "pdf", "svg"):
        figure.savefig(io.BytesIO(), format=form)


def test_one_verdict_and_the_verdicts_of_a_batch_are_drawn_too():
    assert al.plot(MADE[0]).get_suptitle() == "1 statement: 1 supported"
    assert al.plot([MADE[:2], MADE], member=1).get_suptitle().startswith("4 statements")
    with pytest.raises(ValueError, match="0 to 1, got 2"):
        al.plot([MADE, MADE], member=2)


@pytest.mark.parametrize("thing", [[], [3], [MADE[0], None]])
def test_a_list_of_other_things_is_refused(thing):
    with pytest.raises(TypeError, match="list of verdicts"):
        al.plot(thing)
    with pytest.raises(ValueError, match="times applies only to figures of a run"):
        al.plot(MADE, times=[1.0])


def test_the_verb_draws(spec_file, workplace):
    assert (
        "Figure written to a.png"
        in attnlab("check", spec_file, "-o", "a.png", *named(*FAST)).stdout
    )
    assert (workplace / "a.png").stat().st_size > 10_000
