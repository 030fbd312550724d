"""attnlab limit: what it prints agrees with the record, its exit codes, and one sentence for
whatever a user gets wrong.
"""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import attnlab as al
from attnlab import Dynamics, Event, Limit, Spec, Weights
from attnlab import run as run_module
from attnlab.batches import Limits
from attnlab.cli import limit as limit_command
from attnlab.cli.limit_words import MOST_EVENTS, MOST_ROWS, limit_record
from attnlab.run import limit_of_spec, resolve, run_spec
from attnlab.store import save
from command_line import attnlab, refused


@pytest.fixture
def spec_file(workplace, polytope):
    polytope.save(workplace / "small.toml")
    return "small.toml"


@pytest.fixture
def batch(polytope):
    return dataclasses.replace(polytope, start={**polytope.start, "batch": 3})


def hand_made(certified=True, n=30, groups=15, events=0):
    """A Limit that nothing computed."""
    labels, x0 = np.arange(n) % groups, np.random.default_rng(0).normal(size=(n, 2))
    happened = tuple(Event(0.5 + t, t % n, 1, 2) for t in range(events))
    made = Limit(
        Dynamics(Weights(V=np.eye(2))),
        x0,
        labels,
        labels,
        np.eye(2),
        x0[labels],
        error=3.5e-10,
        grade="exact",
        reason="Certified by hand.",
        certificate="Certified by hand.\n\nmargin  7",
        events=happened,
        t=2.25,
    )
    if certified:
        return made
    nobody, reason = np.full(n, -1), "Undecided (tie): a row is tied."
    return dataclasses.replace(
        made,
        labels=nobody,
        leaders=nobody,
        points=np.full((n, 2), np.nan),
        error=np.inf,
        grade="undecided",
        reason=reason,
        certificate=reason,
    )


@pytest.fixture
def answers_with(monkeypatch):
    """Let every limit be a given one; returns the options that were passed."""
    seen = {}

    def arrange(answer):
        def limit(*given, **options):
            seen.update(options, given=given)
            return answer

        monkeypatch.setattr("attnlab.run.limit", limit)
        monkeypatch.setattr("attnlab.cli.limit.limit_of", limit)
        return seen

    return arrange


def assert_same(record, limit):
    """JSON and record say the same."""
    for name in ("labels", "leaders", "basis", "points", "limits"):
        wanted = getattr(limit, name)
        np.testing.assert_array_equal(
            np.array(record[name], dtype=float).reshape(wanted.shape), wanted
        )
    for name in ("count", "certified", "grade", "t", "digits", "reason", "certificate"):
        assert record[name] == getattr(limit, name), name


# what it says
# --------------------------------------------------------------------------------------------------


def test_text_and_json_agree_with_the_record(spec_file, polytope):
    limit = limit_of_spec(polytope)
    assert isinstance(limit, Limit) and limit.certified and limit.spec == polytope
    record = json.loads(attnlab("limit", spec_file, "--json").stdout)
    assert_same(record, limit)
    assert (
        record["error"] == limit.error
        and record["events"] == []
        and record["digest"] == polytope.digest()
    )
    assert (record["n"], record["d"], record["k"]) == (5, 3, 3)
    text = attnlab("limit", spec_file).stdout
    assert text.startswith(limit.certificate + "\n")
    for leader in np.unique(limit.leaders):
        followers = int((limit.leaders == leader).sum())
        place = ", ".join(f"{number:.6g}" for number in limit.limits[leader])
        assert [
            cell.strip()
            for cell in next(line for line in text.splitlines() if place in line).split("│")[1:3]
        ] == [str(leader), str(followers)]
    assert f"{limit.error:.3g}" in text and f"{limit.t:.3g}" in text


def test_the_limit_of_a_spec_is_the_limit_of_its_arrays(polytope):
    spec = dataclasses.replace(polytope, dynamics={"beta": 2.0, "mask": "causal"})
    resolved = resolve(spec)
    wanted = al.limit(resolved.dynamics.weights, resolved.x0, beta=2.0, mask="causal")
    np.testing.assert_array_equal(limit_of_spec(spec).points, wanted.points)


def test_layers_keep_their_clock(answers_with, polytope):
    seen = answers_with(hand_made())
    limit_of_spec(dataclasses.replace(polytope, solve={"layers": 4, "dt": 0.25}), budget=7.0)
    assert seen["given"][0].dt == 0.25 and seen["budget"] == 7.0
    limit_of_spec(polytope)
    assert seen["given"][0].dt is None


def test_a_spec_is_resolved_once(answers_with, polytope, workplace, monkeypatch):
    """The weights and the first tokens are drawn once for a run, for a limit, and for the
    command.
    """
    answers_with(hand_made())
    drawn, draw = [], run_module._draw
    monkeypatch.setattr(run_module, "_draw", lambda spec: drawn.append(spec) or draw(spec))
    resolved = resolve(polytope)
    limit_of_spec(resolved)
    assert run_spec(resolved).spec == polytope and len(drawn) == 1
    polytope.save(workplace / "once.toml")
    limit_command._of_spec(workplace / "once.toml", None, {})
    assert len(drawn) == 2


def test_examples_go_by_their_names():
    record = json.loads(attnlab("limit", "hyperplanes_2d", "--json", "--times", "1,40").stdout)
    assert record["certified"] and record["k"] == 1 and record["times"] == [1.0, 40.0]
    assert np.shape(record["z"]) == (2, 20, 2)


def test_a_run_has_the_limit_of_its_spec(workplace, polytope):
    save(run_spec(polytope), workplace / "run.nc")
    record = json.loads(attnlab("limit", "run.nc", "--json").stdout)
    limit = limit_of_spec(polytope)
    assert record["labels"] == limit.labels.tolist() and record["leaders"] == limit.leaders.tolist()
    np.testing.assert_allclose(record["points"], limit.points, atol=1e-8)


def test_a_run_that_starts_late_is_drawn_from_its_z(workplace, polytope, monkeypatch):
    run = run_spec(dataclasses.replace(polytope, solve={"times": [0.5, 1.0]}))
    save(run, workplace / "late.nc")
    drawn = []
    from attnlab import render

    plot = render.plot
    monkeypatch.setattr(
        render, "plot", lambda limit, **options: drawn.append(limit) or plot(limit, **options)
    )
    attnlab("limit", "late.nc", "-o", "late.png")
    np.testing.assert_allclose(drawn[0].x0, run.z[0], rtol=1e-13)
    np.testing.assert_allclose(drawn[0].points, limit_of_spec(polytope).points, atol=1e-6)


def test_what_is_undecided_says_so(spec_file, answers_with):
    answers_with(hand_made(certified=False))
    result = attnlab("limit", spec_file, code=1)
    assert (
        result.stdout.startswith("Undecided (tie): a row is tied.\n")
        and "given up at t" in result.stdout
    )
    assert "limit of z" not in result.stdout and "nan" not in result.stdout
    record = json.loads(attnlab("limit", spec_file, "--json", code=1).stdout)
    assert record["count"] is None and record["error"] is None and record["certified"] is False
    assert set(record["labels"]) == {-1} and np.shape(record["points"]) == (30, 2)
    assert all(number is None for point in record["points"] for number in point)
    attnlab("limit", spec_file, "-o", "open.png", code=1)


def test_long_tables_are_cut(spec_file, answers_with):
    answers_with(hand_made(events=9))
    text = attnlab("limit", spec_file).stdout
    assert f"and {15 - MOST_ROWS} more" in text and f"and {9 - MOST_EVENTS} more" in text
    record = json.loads(attnlab("limit", spec_file, "--json").stdout)
    assert len(record["events"]) == 9 and record["events"][1] == {
        "t": 1.5,
        "token": 1,
        "before": 1,
        "after": 2,
    }
    assert record["count"] == 15


def test_options_reach_the_computation(spec_file, answers_with):
    seen = answers_with(hand_made())
    attnlab("limit", spec_file, "--digits", 40, "--budget", 2.5, "--times", "10,50")
    assert (seen["digits"], seen["budget"], seen["times"], seen["progress"]) == (
        40,
        2.5,
        [10.0, 50.0],
        False,
    )
    attnlab("limit", spec_file)
    assert (seen["digits"], seen["budget"], seen["times"]) == (None, 60.0, None)


def test_no_growing_direction(workplace, polytope):
    negative = {"family": "given", "V": [[-1.0, 0.0], [0.0, -2.0]]}
    Spec(weights=negative, start={**polytope.start, "d": 2}, solve=polytope.solve).save(
        workplace / "down.toml"
    )
    record = json.loads(attnlab("limit", "down.toml", "--json", "-o", "down.png").stdout)
    assert (
        record["k"] == 0
        and record["count"] is None
        and record["place_count"] == 1
        and record["points"] == [[]] * 5
    )
    assert "limit of z" not in attnlab("limit", "down.toml").stdout
    assert (workplace / "down.png").stat().st_size > 1000


# batches and figures
# --------------------------------------------------------------------------------------------------


def test_a_batch_has_a_row_a_member(workplace, batch):
    batch.save(workplace / "batch.toml")
    found = limit_of_spec(batch)
    assert isinstance(found, list) and all(member.spec == batch for member in found)
    records = json.loads(attnlab("limit", "batch.toml", "--json").stdout)
    for record, limit in zip(records, found, strict=True):
        assert_same(record, limit)
    text = attnlab("limit", "batch.toml").stdout
    rows = [
        [cell.strip() for cell in line.split("│")[1:4]]
        for line in text.splitlines()
        if line.startswith("│")
    ]
    assert rows == [
        [str(number), str(limit.count), limit.grade] for number, limit in enumerate(found)
    ]
    assert found[1].certificate in attnlab("limit", "batch.toml", "--member", 1).stdout


def test_one_undecided_member_is_exit_code_1(spec_file, answers_with):
    answers_with([hand_made(), hand_made(certified=False), hand_made(certified=False)])
    text = attnlab("limit", spec_file, code=1).stdout
    assert "Members 1, 2: Undecided (tie): a row is tied." in text
    records = json.loads(attnlab("limit", spec_file, "--json", code=1).stdout)
    assert [record["certified"] for record in records] == [True, False, False]


def test_the_figure(spec_file, workplace):
    assert "Figure written to a.png." in attnlab("limit", spec_file, "-o", "a.png").stdout
    assert (workplace / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "a.png exists already" in refused("limit", spec_file, "-o", "a.png")
    json.loads(
        attnlab("limit", spec_file, "-o", "a.png", "--force", "--json").stdout
    )  # nothing but JSON


# what a user gets wrong
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, words",
    [
        (("--times", "3,1"), "ascend"),
        (("--times", "soon"), "--times must be numbers with commas between them"),
        (("--budget", "0"), "budget must be"),
        (("--digits", "3"), "digits must be a whole number from 16"),
        (("--member", "1"), "this is a single run, number 0, got 1"),
        (("-o", "a.gif"), "is the name of a movie"),
        (("-o", "nowhere/a.png"), "There is no folder nowhere"),
        (("-o", "small.toml"), "would overwrite the input"),
    ],
)
def test_wrong_options(spec_file, options, words):
    assert words in refused("limit", spec_file, *options)


def test_wrong_sources(workplace, batch):
    assert "Unknown file or example Spec 'polytop_2d'. Did you mean 'polytope_2d'?" in refused(
        "limit", "polytop_2d"
    )
    refused("limit", "missing.toml")
    refused("limit", "missing.nc")
    batch.save(workplace / "batch.toml")
    assert "a batch of 3 members, numbered 0 to 2, got 3" in refused(
        "limit", "batch.toml", "--member", 3
    )


def test_the_help_page_explains_the_exit_codes():
    text = attnlab("limit", "--help").stdout
    assert "Exit code 0: certified" in text and "1: undecided" in text


def test_a_record_is_plain_json():
    for limit in (hand_made(), hand_made(certified=False, events=2)):
        json.dumps(limit_record(limit), allow_nan=False)


# the summary of a batch
# --------------------------------------------------------------------------------------------------


def test_a_batch_is_summed_up_in_one_sentence():
    exact, group = hand_made(groups=5), dataclasses.replace(hand_made(groups=2), grade="group")
    undecided = hand_made(certified=False)
    members = [exact] * 10 + [group] * 2 + [undecided] * 4
    assert (
        Limits(members).summary
        == "12 of 16 members certified (exact 10, group 2), 4 undecided; limits: 2 to 5."
    )
    assert Limits([exact] * 3).summary == "3 of 3 members certified (exact 3); limits: 5."
    assert Limits([undecided] * 2).summary == "0 of 2 members certified, 2 undecided."
    rest = [
        al.limit(Weights(V=np.zeros((2, 2))), np.array(x))
        for x in ([[0.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]])
    ]
    assert Limits(rest).summary == "2 of 2 members certified (group 2); places: 1 to 2."


def test_the_command_ends_with_the_summary(workplace, batch):
    batch.save("batch.toml")
    found = limit_of_spec(batch)
    last = attnlab("limit", "batch.toml").stdout.strip().splitlines()[-1]
    assert last == Limits(found).summary and last.startswith(
        "3 of 3 members certified (exact 3); limits: "
    )
