"""The tour: every stop, the one page, its table, what happens without models, and its exit
codes.
"""

from __future__ import annotations

import dataclasses
import re

import pytest

import tiny_models
from attnlab import Status, render
from attnlab.examples import example_names
from attnlab.models import BadModel, load
from attnlab.models.catalog import fetch
from attnlab.run import resolve
from attnlab.theory import theorems as results
from attnlab.tour import context, make_tour, stops
from attnlab.tour.build import in_order
from attnlab.tour.pictures import PICTURES
from attnlab.tour.record import Chapter, Row, Stop
from attnlab.tour.stops import theorems
from attnlab.verdicts import Outcome
from command_line import attnlab, refused
from embedded_viewers import check_viewers
from tour_pages import check_page, check_summary

BY_NAME = {shown.name: shown for shown in PICTURES}


@pytest.fixture
def no_models(monkeypatch):
    """Models that cannot be fetched."""

    def fails(name, **options):
        raise BadModel(f"pip must deliver {name}, and did not.")

    monkeypatch.setattr(fetch, "fetch", fails)


@pytest.fixture
def short(monkeypatch, no_models):
    """A tour with few pictures and a movie of three frames."""

    def arrange(*names):
        monkeypatch.setattr(theorems, "PICTURES", tuple(BY_NAME[name] for name in names))
        monkeypatch.setattr(theorems, "FRAMES", 3)
        monkeypatch.setattr(theorems, "MOVIE_DPI", 40)

    return arrange


# --------------------------------------------------------------------------------------------------
# the stops


def test_the_stops_have_places_titles_and_makers():
    assert all(
        isinstance(stops[name], Stop) and stops[name].title and callable(stops[name].tell)
        for name in stops
    )
    assert [stop.number for _, stop in in_order()] == list(range(1, len(stops) + 1))
    assert [name for name, _ in in_order()] == [
        "equation",
        "theorems",
        "past_the_wall",
        "trained_head",
        "sentence",
    ]


def test_the_pictures_are_examples_with_a_measured_error():
    assert set(BY_NAME) <= set(example_names()) and len(BY_NAME) == len(PICTURES)
    for shown in PICTURES:
        found = resolve(shown.spec)
        assert shown.spec.solve["measure_error"] is True and shown.shows.endswith(".")
        assert shown.theorem in results and (shown.kind is None or shown.kind in render.kinds)
        assert found.x0.shape == (shown.spec.start["n"], shown.spec.start["d"])
        assert all(
            text.endswith((".", ")")) and len(text) > 60
            for text in (shown.says, shown.see, shown.why)
        )
        assert shown.times[0] == 0 and shown.times[-1] == shown.spec.solve["t_end"]
    assert sum(shown.has_movie for shown in PICTURES) == 1


# --------------------------------------------------------------------------------------------------
# the page


def test_a_short_tour(workplace, short):
    short("polytope_2d", "hyperplanes_2d")
    result = attnlab("tour", "-o", "new/tour")
    folder = workplace / "new" / "tour"
    rows = {row["name"]: row for row in check_summary(folder)}
    assert list(rows) == [
        "polytope_2d",
        "hyperplanes_2d",
        "past_the_wall",
        "trained_head",
        "sentence",
    ]
    for name in ("polytope_2d", "hyperplanes_2d"):
        row = rows[name]
        assert (
            row["status"] == "OK"
            and row["error"] < 1e-6
            and row["time_reached"] == row["time_asked"]
        )
        assert (
            row["verdict"] == "SUPPORTED"
            and row["is_ok"]
            and row["limits"] in (2, 4)
            and row["decided_at"] > 0
        )
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    text = check_page(folder)
    for name, stop in in_order():
        assert f'<h2 id="{name}">' in text and stop.title in text
    assert text.count("data:image/gif;base64") == 1 and text.count("data:image/png;base64") == 5
    assert (
        folder / "polytope_2d_proved.png"
    ).exists() and "4 limits, proved, each to within" in text
    viewers = check_viewers(text)
    assert list(viewers) == ["polytope_2d", "hyperplanes_2d", "past_the_wall"]
    for name, payload in viewers.items():
        assert (
            payload["limits"][0]["count"] == rows[name]["limits"]
            and payload["limits"][0]["spec"] == payload["state"]["spec"]
        )
    assert (folder / "polytope_2d.gif").read_bytes().startswith(b"GIF") and (
        folder / "polytope_2d.mp4"
    ).stat().st_size > 500
    assert (
        "SUPPORTED" in result.stdout
        and "hyperplanes_2d" in result.stdout
        and "new/tour/index.html" in result.stdout
    )
    assert "trained_head was left out: pip must deliver albert-chem, and did not." in result.stdout
    assert text.count("Left out.") == 2 and "pip must deliver minilm, and did not." in text


def test_the_wall_is_passed(workplace, no_models):
    (row,) = make_tour("t", only=["past_the_wall"])
    assert (
        row.verdict == "CERTIFIED"
        and row.limits == 2
        and row.decided_at > 50 > row.time_reached > 28
    )
    assert row.status == "PAST_DOUBLE_PRECISION" and row.is_ok
    text = check_page(workplace / "t")
    counts = [int(found) for found in re.findall(r"<dt>Groups[^<]*</dt><dd>(\d+)", text)]
    assert (
        counts[0] > counts[1] > counts[2] == 2
    )  # what the published time, the wall and the proof say


def test_a_library_that_is_missing_is_said_and_nothing_is_fetched(workplace, monkeypatch):
    monkeypatch.setattr(context, "LIBRARIES", ("no_such_library",))
    monkeypatch.setattr(fetch, "fetch", lambda name, **options: pytest.fail("nothing can read it"))
    rows = make_tour("t", only=["trained_head", "sentence"])
    assert [row.verdict for row in rows] == ["not here"] * 2 and all(row.is_ok for row in rows)
    assert (workplace / "t" / "index.html").read_text().count(
        "pip install &#x27;attnlab[models]&#x27;"
    ) >= 2


def tiny(folder, family, words):
    """A tiny model with a tokenizer that knows these words."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    folder = tiny_models.write_folder(folder, *getattr(tiny_models, family)())
    tokenizer = Tokenizer(
        WordLevel(
            {"[UNK]": 0, **{word: i + 1 for i, word in enumerate(words.split())}}, unk_token="[UNK]"
        )
    )
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return load(folder)


def test_the_stops_with_trained_models(workplace, monkeypatch, no_models):
    from attnlab.tour.stops import sentence, trained_head

    words = "the cat sat on it"
    models = {
        "albert-chem": tiny(workplace / "a", "albert", words),
        "minilm": tiny(workplace / "b", "bert", words),
    }
    monkeypatch.setattr(context.Context, "model", lambda self, name: (models[name], ""))
    monkeypatch.setattr(trained_head, "TEXT", words)
    monkeypatch.setattr(sentence, "SENTENCE", words)
    monkeypatch.setattr(sentence, "TEXTS", (words, "the cat sat", "it sat on the cat"))
    rows = {row.name: row for row in make_tour("t", only=["trained_head", "sentence"])}
    assert list(rows) == [
        "trained_head",
        "trained_head_rotates",
        *(f"sentence_{name}" for name in ("gathering", "groups", "place", "leaders")),
    ]
    assert rows["trained_head"].verdict in ("CERTIFIED", *Outcome.__members__)
    assert rows["trained_head"].n == rows["trained_head_rotates"].n == 5
    assert rows["trained_head_rotates"].verdict == "CERTIFIED"
    assert "up to lambda_1 t =" in rows["trained_head_rotates"].found
    assert all(
        row.verdict in ("right", "in part", "not so", "no evidence")
        for name, row in rows.items()
        if not name.startswith("trained_head")
    )
    text = check_page(workplace / "t")
    assert "The honest answer." in text and "untrained weights" in text and text.count("<img") == 3


@pytest.fixture
def read():
    """The numbers of three sentences in a tiny model."""
    from attnlab.models.studies.stacks import read_stacks

    state, raw = tiny_models.bert()
    return read_stacks(
        load(state, config=raw), [{"ids": [3, 1, 4]}, {"ids": [1, 5, 9, 2]}, {"ids": [6, 5, 3]}]
    )


@pytest.mark.parametrize(
    ("twin", "null", "verdict"),
    [
        (
            "real",
            "far",
            ["right"] * 4,
        ),  # the model does what the theory says, and nothing else does
        ("real", "real", ["no evidence"] * 4),  # so do weights that learned nothing
        ("far", "real", ["not so"] * 4),  # weights that learned nothing do, the theory does not
    ],
)
def test_the_answers_can_be_right_and_wrong(read, twin, null, verdict):
    """Planted stacks: the idealised model or the nulls are the model, the others are far from it."""
    from attnlab.tour.stops.sentence import answers

    numbers = {
        "real": {"cosine": 0.5, "clusters": 1, "turn": 0.0, "word_leader": 1.0},
        "far": {"cosine": 0.0, "clusters": 3, "turn": 1.2, "word_leader": 0.0},
        "embedding": {"cosine": 0.1, "clusters": 2, "turn": 0.5},
    }
    read.chance["word_leader"] = 0.5
    planted = {"real": "real", "twin": twin, "random": null, "untrained": null}
    for variant, of in {**planted, "embedding": "embedding"}.items():
        for name, value in numbers[of].items():
            read.rows.loc[read.rows["variant"] == variant, name] = value
    assert [one.verdict for one in answers(read).values()] == verdict


# --------------------------------------------------------------------------------------------------
# when something is wrong


def test_a_contradicted_verdict_is_exit_code_1(workplace, monkeypatch, short):
    short("hyperplanes_2d")
    judge = theorems.judge

    def contradicted(run, name, progress):
        said, limit = judge(run, name, progress)
        return dataclasses.replace(said, outcome=Outcome.CONTRADICTED), limit

    monkeypatch.setattr(theorems, "judge", contradicted)
    assert "hyperplanes_2d: CONTRADICTED." in attnlab("tour", code=1).stderr
    assert (
        "CONTRADICTED" in check_page(workplace / "tour")
        and not check_summary(workplace / "tour")[0]["is_ok"]
    )


@pytest.fixture
def ends_with(monkeypatch, make_run):
    """Let every simulation end with a given status."""

    def arrange(status):
        run = dataclasses.replace(make_run("plain"), status=status)
        monkeypatch.setattr("attnlab.run.simulate", lambda w, x0, **options: run)

    return arrange


def test_a_run_that_fails_is_exit_code_1(workplace, monkeypatch, short, ends_with):
    short("hyperplanes_2d")
    monkeypatch.delitem(stops._things, "past_the_wall")
    ends_with(Status.STALLED)
    assert f"hyperplanes_2d: UNDECIDED. {Status.STALLED.value}" in attnlab("tour", code=1).stderr
    assert Status.STALLED.value in check_page(workplace / "tour")


def test_a_tour_that_is_interrupted_leaves_the_page_that_was_there(workplace, short, ends_with):
    short("hyperplanes_2d")
    (workplace / "tour").mkdir()
    (workplace / "tour" / "index.html").write_text("yesterday's")
    ends_with(Status.INTERRUPTED)
    assert refused("tour", code=130) == "The tour was interrupted."
    assert [path.name for path in (workplace / "tour").iterdir()] == ["index.html"]
    assert (workplace / "tour" / "index.html").read_text() == "yesterday's"


def test_ctrl_c_in_a_stop_leaves_nothing(workplace, monkeypatch, no_models):
    def stopped(context):
        raise KeyboardInterrupt

    monkeypatch.setitem(stops._things, "past_the_wall", Stop(3, "stopped", stopped))
    monkeypatch.setitem(stops._things, "theorems", Stop(2, "quick", lambda context: Chapter([])))
    assert refused("tour", code=130) == "Interrupted."
    assert list((workplace / "tour").iterdir()) == []


@pytest.mark.slow
def test_all_the_pictures(workplace, no_models):
    attnlab("tour")
    rows = [row for row in check_summary(workplace / "tour") if row["stop"] == "theorems"]
    assert [row["name"] for row in rows] == [shown.name for shown in PICTURES]
    assert all(row["status"] == "OK" and row["error"] < 1e-6 and row["is_ok"] for row in rows)
    # the one that no run decides before double precision ends
    assert {row["name"]: row["verdict"] for row in rows if row["verdict"] != "SUPPORTED"} == {
        "codimension": "UNDECIDED"
    }
    assert all(
        row["limits"] <= 3
        for row in rows
        if row["name"] in ("hyperplanes_2d", "hyperplanes_3d", "codimension")
    )
    check_page(workplace / "tour")


# --------------------------------------------------------------------------------------------------
# the table in docs/


def test_the_page_of_the_tour_has_the_table_of_a_whole_tour(from_docs):
    maker = from_docs("make_tour")
    text = maker.PAGE.read_text(encoding="utf-8")
    assert (
        all(f"| {shown.shows} |" in text for shown in PICTURES)
        and maker.KEPT.stat().st_size > 20_000
    )
    assert (
        text.count("| SUPPORTED |") >= 6
        and "| CERTIFIED |" in text
        and "| not so |" in text
        and "CONTRADICTED |" not in text
    )


def test_a_tour_that_left_something_out_is_not_written(from_docs):
    maker = from_docs("make_tour")
    row = Row("theorems", "a", "What is asked.", "OUT_OF_SCOPE", found="nothing").as_dict()
    assert maker.write_page([row]).splitlines()[-1] == "| What is asked. | OUT OF SCOPE | nothing |"
    with pytest.raises(ValueError, match="left out a"):
        maker.write_page([row | {"verdict": "not here"}])


def test_the_table_says_proved_only_of_a_proved_limit():
    from attnlab.render.tour_page import found_words
    from attnlab.tour.record import Row

    row = Row("theorems", "a", "b", "SUPPORTED", limits=4, decided_at=5.909, grade="proved")
    assert found_words(row) == "4 limits, proved from t = 5.91 on"
    exact = dataclasses.replace(row, limits=1, grade="exact")
    assert found_words(exact) == "1 limit, certified from t = 5.91 on"
