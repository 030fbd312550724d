"""al.Explorer on the Python side: what is shown, what the front end may change, certificates in a
thread, and pages of it.
"""

from __future__ import annotations

import ast
import json
import math
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import attnlab as al
from attnlab.explorer import certifying
from attnlab.explorer.certifying import Certifier
from attnlab.explorer.incoming import MOST_VALUES, read_selected, read_spec, read_time
from attnlab.explorer.presets import preset_record, presets
from attnlab.progress import Cancelled
from attnlab.run import limit_of_spec
from clock import PATIENCE, least_seconds, seconds_of

POLYGON = presets["polygon"].spec
TABLE = POLYGON.to_dict()
START, WEIGHTS = TABLE["start"], TABLE["weights"]


def moved(**places) -> dict:
    """The Spec of the polygon as a table, with tokens put elsewhere: moved(t5=[1, 2])."""
    return {
        **TABLE,
        "start": {**START, "moved": {name[1:]: place for name, place in places.items()}},
    }


# ----------------------------------------------------------------------------------------- what a
# stranger may say


def test_what_the_viewer_makes_is_read():
    spec = read_spec(moved(t5=[1.25, 2.0]))
    assert al.resolve(spec).x0[5].tolist() == [1.25, 2.0] and isinstance(spec, al.Spec)
    assert read_spec(TABLE) == POLYGON
    for name in presets.in_order():
        assert read_spec(json.loads(json.dumps(presets[name].spec.to_dict()))) == presets[name].spec


@pytest.mark.parametrize("table, sentence", [
    (None, "A Spec must be a table"), ([], "A Spec must be a table"), ({}, "needs the sections"),
    ({**TABLE, "script": "x"}, "unknown key"), ({**TABLE, "start": 5}, "must be a table"),
    ({**TABLE, "start": {**START, "n": 10**9}}, "n must be at most 2000"),
    ({**TABLE, "start": {**START, "n": 10**400}}, "range of double precision"),
    ({**TABLE, "start": {**START, "n": "5"}}, "n must be a whole number"),
    ({**TABLE, "start": {**START, "n": True}}, "n must be a whole number"),
    ({**TABLE, "start": {**START, "low": math.nan}}, "must be finite"),
    ({**TABLE, "start": {**START, "low": 1e300}}, "at most 1e+12"),
    ({**TABLE, "start": {**START, "rng": 2**70}}, "less than 2^64"),
    ({**TABLE, "start": {**START, "batch": 10**6}}, "has a batch"),
    ({**TABLE, "start": {**START, "law": "no"}}, "Unknown start law"),
    ({**TABLE, "start": {**START, "law": "planted", "clusters": 10**8}}, "clusters must be at most"),
    ({**TABLE, "start": {"law": "given", "x": "secrets.npy"}}, "names a file"),
    ({**TABLE, "start": {"law": "given", "x": [[0.0, 0.0]] * MOST_VALUES}}, "at most 60000 values"),
    ({**TABLE, "weights": {"family": "identity"}, "start": {"law": "given", "x": [[0.0] * 4] * 3}}, "at most 3 dimensions"),
    ({**TABLE, "weights": {"family": "gaussian"}}, "the families identity"),
    ({**TABLE, "weights": {"family": "identity", "d": 10**6}}, "d must be at most 3"),
    ({**TABLE, "weights": {**WEIGHTS, "eigenvalues": [1.0] * 5}}, "stand for 5 dimensions"),
    ({**TABLE, "weights": {**WEIGHTS, "basis": "x" * 500}}, "at most 100 letters"),
    ({**TABLE, "solve": {"t_end": -1.0}}, "t_end must be"), ({**TABLE, "solve": {"t_end": 1.0, "saves": 10**9}}, "saves must be"),
    ({**TABLE, "solve": {"layers": 5}}, "not layers"), ({**TABLE, "dynamics": {"beta": "4"}}, "beta"),
    ({**TABLE, "dynamics": {"geometry": "sphere"}}, "norm 1"),
    (moved(t99=[0.0, 0.0]), "moved"), (moved(t5=[0.0]), "moved"), (moved(tx=[0.0, 0.0]), "moved"),
    ({**TABLE, "start": {**START, "moved": [[[[[[[[[[[1]]]]]]]]]]]}}, "inside each other"),
    ({**TABLE, "start": {**START, "k" * 200: 1}}, "at most 100 letters"),
])  # fmt: skip
def test_what_it_could_not_have_made_is_a_sentence(table, sentence):
    def refuse() -> None:
        with pytest.raises(ValueError, match=re.escape(sentence)) as problem:
            read_spec(table)
        assert len(str(problem.value)) < 1000

    # a refusal takes a millisecond, after what it imports the first time; to make what is asked for
    # would take minutes
    assert least_seconds(lambda: seconds_of(refuse, time.process_time), 2.0) < 2.0


def test_times_and_tokens():
    assert read_time("inf") == math.inf and read_time(0) == 0.0 and read_time(2.5) == 2.5
    assert read_selected([3, 1, 3], 4) == [3, 1] and read_selected([], 4) == []
    for bad in (-1.0, math.nan, math.inf, "1", None, True, [1], 1e13):
        with pytest.raises(ValueError, match="A time must be"):
            read_time(bad)
    for bad in ([4], [-1], [True], [1.0], ["1"], None, "1", list(range(5))):
        with pytest.raises(ValueError, match="chosen token"):
            read_selected(bad, 4)


# --------------------------------------------------------------------------------------------------
# in a thread


class Heard(list):
    """What a Certifier tells."""

    def words(self) -> str:
        return next(message["sentence"] for message in self if message["kind"] == "done")


def test_work_tells_how_far_it_is_and_ends_with_a_sentence():
    heard, may_end = Heard(), threading.Event()
    certifier = Certifier(heard.append)

    def work(progress):
        for k in range(200):
            progress(k / 200, "counting")
            time.sleep(2.5e-3)
        assert may_end.wait(PATIENCE)
        return "five"

    began = time.monotonic()
    certifier.start(work)
    assert certifier.is_busy
    certifier.start(lambda progress: "a second one is not begun")
    may_end.set()
    certifier.wait(PATIENCE)
    took = time.monotonic() - began
    assert (
        not certifier.is_busy
        and heard.words() == "five"
        and heard[-1]["kind"] == "done"
        and len(heard) >= 2
    )
    fractions = [message["fraction"] for message in heard[:-1]]
    assert fractions == sorted(fractions) and all(
        message["doing"] == "counting" for message in heard[:-1]
    )
    assert len(fractions) <= 1 + took / certifying.PAUSE  # not a message for every step


def test_work_is_cancelled_and_errors_are_sentences():
    heard, began = Heard(), threading.Event()
    certifier = Certifier(heard.append)

    def work(progress):
        while True:
            progress(0.1, "for ever")
            began.set()
            time.sleep(0.01)

    certifier.start(work)
    assert began.wait(PATIENCE)
    certifier.cancel()
    certifier.wait(PATIENCE)
    assert not certifier.is_busy and heard.words() == "Cancelled."

    def fail(progress):
        raise ValueError("beta must be positive.")

    heard.clear()
    certifier.start(fail)
    certifier.wait(PATIENCE)
    assert heard.words() == "beta must be positive."
    certifier.cancel()  # nothing to cancel: no error


# -------------------------------------------------------------------------------------------
# without anywidget


def test_without_anywidget_it_can_be_named_and_says_what_to_do():
    code = """
import sys
import attnlab.explorer as explorer
explorer.find_spec = lambda name: None
from attnlab import *                               # every name can be asked for
assert "anywidget" not in sys.modules
try:
    Explorer("polygon")
except ImportError as problem:
    print(repr(str(problem)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    words = ast.literal_eval(done.stdout)
    assert (
        "pip install 'attnlab[widget]'" in words
        and "needs the package anywidget" in words
        and "al.explore(" in words
    )


def test_both_classes_say_the_same_about_themselves():
    pytest.importorskip("anywidget")
    from attnlab.explorer import widget, without_widget

    assert widget.Explorer.__doc__.split("\n")[0] == without_widget.Explorer.__doc__.split("\n")[0]


# --------------------------------------------------------------------------------------------------
# the widget


@pytest.fixture
def explorer():
    """Make widgets whose messages are kept in `said`, and close them."""
    pytest.importorskip(
        "anywidget", reason="anywidget is not installed (pip install 'attnlab[widget]')"
    )
    made = []

    def make(*given, **options):
        one = al.Explorer(*given, **options)
        one.said = []
        one.send = one._certifier._tell = one.said.append
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


def test_it_takes_what_explore_takes(explorer, tmp_path):
    assert explorer().spec == presets[presets.in_order()[0]].spec
    assert explorer("late").spec == presets["late"].spec
    POLYGON.save(tmp_path / "mine.toml")
    assert explorer(tmp_path / "mine.toml").spec == POLYGON
    run = al.run_spec(POLYGON)
    recorded = explorer(run)
    assert recorded.spec == POLYGON and recorded.recording["n"] == 60 and recorded.limit is None
    al.save(run, tmp_path / "run.nc")
    assert explorer(tmp_path / "run.nc").recording["n"] == 60
    limit = limit_of_spec(POLYGON)
    shown = explorer(limit)
    assert (
        shown.limit.count == limit.count == shown.get_state("limit")["limit"]["count"]
        and shown.recording is None
    )
    with pytest.raises(al.UnknownName, match="Did you mean 'polygon'"):
        explorer("polygn")
    with pytest.raises(al.UnknownName, match="panel of the explorer"):
        explorer("polygon", hide=["nothing"])


def test_what_a_page_cannot_integrate_is_recorded(explorer):
    high = al.Spec(
        weights={"family": "identity"},
        start={"law": "uniform_cube", "n": 8, "d": 5},
        solve={"t_end": 2.0},
    )
    one = explorer(high)
    assert one.recording["dimension"] == 5 and one.spec == high and one.x0.shape == (8, 5)
    with pytest.raises(ValueError, match="The widget shows a recording"):
        one.certify()
    one.set_state({"spec": TABLE})
    assert one.spec == high and "cannot be changed" in one.said[-1]["sentence"]
    live = explorer("polygon")
    with pytest.raises(ValueError, match="shows a recording"):
        live.spec = high
    live.show(high)
    assert live.recording is not None and live.spec == high
    live.spec = POLYGON
    assert live.recording is None and live.spec == POLYGON


def test_drawn_weights_are_written_out_and_run(explorer):
    drawn = al.Spec(
        weights={"family": "gaussian", "rng": 3},
        start={"law": "uniform_cube", "n": 6, "d": 2},
        solve={"t_end": 1.0},
    )
    one = explorer(drawn)
    assert one.spec.weights["family"] == "given" and one.recording is None
    np.testing.assert_array_equal(al.run_spec(one.spec).x, al.run_spec(drawn).x)


def test_the_front_end_changes_three_traits_and_no_others(explorer):
    one = explorer("polygon", height=500)
    one.set_state(
        {
            "spec": moved(t5=[1.25, 2.0]),
            "t": "inf",
            "selected": [5],
            "height": 9000,
            "limit": {"count": 1},
            "_esm": "x",
            "recording": {},
            "_page": {},
            "moved": {"1": [0, 0]},
        }
    )
    assert (
        one.moved == {5: [1.25, 2.0]}
        and one.x0[5].tolist() == [1.25, 2.0]
        and one.t == math.inf
        and one.selected == [5]
    )
    assert (
        one.height == 500
        and one.limit is None
        and one.recording is None
        and len(one._esm) > 100_000
        and one._page["presets"]
    )
    assert one.said == []
    before = one.spec
    one.set_state({"spec": {**TABLE, "start": {**START, "n": 10**7}}, "t": -4, "selected": [99]})
    assert (one.spec, one.t, one.selected) == (before, math.inf, [5])
    assert one.said[-1]["kind"] == "refused"
    for words in ("n must be at most 2000", "A time must be", "A chosen token must be"):
        assert words in one.said[-1]["sentence"]
    for nonsense in (None, [], "x", {"spec": {"start": []}}):
        one.set_state(nonsense)
    assert one.spec == before
    for message in (None, [], "certify", {"kind": "no"}, {"kind": ["certify"]}, {}):
        one._handle_custom_msg(message, [])
    assert not one._certifier.is_busy


def test_python_is_checked_too(explorer):
    one = explorer("polygon")
    for bad in (-1.0, math.nan):
        with pytest.raises(ValueError, match="A time must be"):
            one.t = bad
    with pytest.raises(ValueError, match="Unknown start law"):
        one.spec = al.Spec(weights=WEIGHTS, start={"law": "no"}, solve={"t_end": 1.0})
    with pytest.raises(Exception, match="height"):
        one.height = 5
    other = limit_of_spec(presets["boolean"].spec)
    with pytest.raises(Exception, match="limit of the run that is shown"):
        one.limit = other
    assert one.limit.count == 5 and one.spec == POLYGON  # that of the preset
    plain = al.limit(al.Weights(V=np.eye(2)), one.x0)
    one.limit = plain
    assert one.limit.count == plain.count and one.get_state("limit")["limit"]["spec"] == TABLE


@pytest.mark.parametrize("name", ["boolean", "late", "collapse", "sphere"])
def test_the_certified_limit_of_a_preset_is_there_at_once(explorer, name):
    """Its certificate is shown, so Python has it too: it is stored, and equals what limit
    computes.
    """
    one = explorer(name)
    limit, sent = one.limit, one.get_state("limit")["limit"]
    stored = preset_record(presets[name])["limit"]
    assert (
        {**sent, "points": None} == {**stored, "points": None}
        and limit.certified
        and limit.spec == one.spec
    )
    np.testing.assert_allclose(sent["points"], stored["points"], rtol=1e-14, atol=1e-14)
    if name != "sphere":  # which takes minutes
        again = limit_of_spec(one.spec)
        assert (limit.grade, limit.count, limit.place_count, limit.digits) == (
            again.grade,
            again.count,
            again.place_count,
            again.digits,
        )
        # another processor adds in another order, so the times of events differ by rounding
        assert [(one.token, one.before, one.after) for one in limit.events] == [
            (one.token, one.before, one.after) for one in again.events
        ]
        np.testing.assert_allclose(
            [one.t for one in limit.events], [one.t for one in again.events], rtol=1e-9
        )
        for mine, other in (
            (limit.points, again.points),
            (limit.basis, again.basis),
            (limit.x0, again.x0),
        ):
            np.testing.assert_allclose(mine, other, atol=1e-9)
        np.testing.assert_array_equal(limit.leaders, again.leaders)
    one.spec = al.Spec.from_dict({**one.spec.to_dict(), "start": {**one.spec.start, "rng": 77}})
    assert one.limit is None
    one.spec = presets["polygon"].spec  # another preset, chosen inside the viewer
    assert one.limit.count == 5
    assert explorer("circle").limit is None  # undecided


def test_a_limit_belongs_to_its_start(explorer):
    one = explorer("polygon")
    limit = one.certify()
    assert one.limit is limit and limit.certified and limit.spec == POLYGON
    one.spec = al.Spec.from_dict(
        {**TABLE, "solve": {"t_end": 5.0}}
    )  # a shorter clock: the same limit
    assert one.limit is limit
    one.set_state({"spec": moved(t5=[1.25, 2.0])})
    assert one.limit is None
    one.set_state({"spec": TABLE})
    assert one.limit is limit  # back again


def test_the_button_certifies_in_a_thread(explorer, monkeypatch):
    one = explorer("polygon")
    one._handle_custom_msg({"kind": "certify"}, [])
    one._certifier.wait(PATIENCE)
    assert one.limit.certified and one.said[-1] == {"kind": "done", "sentence": ""}
    # a row that slides stays undecided with all the work of the widget, and with a tenth of it
    monkeypatch.setattr(
        "attnlab.explorer.widget.limit_of_spec",
        lambda spec, work, **options: limit_of_spec(spec, work=0.1 * work, **options),
    )
    undecided = explorer("pair")
    undecided._handle_custom_msg({"kind": "certify"}, [])
    undecided._certifier.wait(PATIENCE)
    assert (
        undecided.said[-1]["sentence"].startswith("Undecided: ")
        and "the row slides" in undecided.said[-1]["sentence"]
        and undecided.get_state("limit")["limit"] is None
    )


def test_another_run_cancels_what_is_being_certified(explorer, monkeypatch):
    one, began = explorer("polygon"), threading.Event()

    def endless(spec, *, progress, **options):
        while True:
            progress(0.1, "for ever")
            began.set()
            time.sleep(0.01)

    monkeypatch.setattr("attnlab.explorer.widget.limit_of_spec", endless)
    one._handle_custom_msg({"kind": "certify"}, [])
    assert began.wait(PATIENCE)
    one.set_state({"spec": moved(t5=[1.25, 2.0])})
    one._certifier.wait(PATIENCE)
    assert not one._certifier.is_busy and one.said[-1] == {"kind": "done", "sentence": "Cancelled."}
    with pytest.raises(Cancelled):
        progress = al.Progress()
        progress.cancel()
        one.certify(progress=progress)


def payload_in(page: str) -> dict:
    return json.loads(re.search(r'id="attnlab-payload">(.*?)</script>', page, re.DOTALL)[1])


def test_a_page_of_what_is_shown(explorer):
    one = explorer("polygon", hide=["sweep"], title="Mine")
    one.set_state({"spec": moved(t5=[1.25, 2.0]), "t": "inf", "selected": [5]})
    limit = one.certify()
    payload = payload_in(one.html())
    assert (
        payload["state"]["spec"] == moved(t5=[1.25, 2.0])
        and payload["state"]["preset"] == "polygon"
    )
    assert (
        payload["state"]["view"]["t"] == "inf"
        and payload["state"]["view"]["selected"] == [5]
        and payload["hide"] == ["sweep"]
    )
    assert payload["limits"][0]["count"] == limit.count and payload["limits"][0]["spec"] == moved(
        t5=[1.25, 2.0]
    )
    assert payload["title"] == "Mine" and "recording" not in payload
    static = one.static()
    assert (
        static._repr_html_() == static
        and static.startswith("<iframe srcdoc=")
        and "&lt;!DOCTYPE html&gt;" in static
    )
    assert payload_in(explorer(al.run_spec(POLYGON)).html())["recording"]["n"] == 60
