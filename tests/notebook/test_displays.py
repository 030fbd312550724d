"""How records show themselves: a short text without arrays or addresses, and HTML that is safe,
small and cannot fail.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import pickle
import pkgutil
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.batches import Limits
from attnlab.displayed import Displayed, short_repr, shorten
from attnlab.models.catalog.catalog import known_models
from attnlab.notebook import displays, show
from attnlab.notebook.films import MOST_BYTES
from attnlab.render.film import Film, Films
from attnlab.theory import theorems
from attnlab.verdicts import (
    BatchVerdicts,
    Hypothesis,
    Measured,
    Outcome,
    Prediction,
    Predictions,
    Verdict,
    Verdicts,
)

HOSTILE = "<script>alert(1)</script>\"'&\x1b\u202e<img src=x onerror=alert(2)>"

HYPOTHESIS = Hypothesis(HOSTILE, 0.25, HOSTILE, False, HOSTILE)
OPEN = Hypothesis("first tokens are small", float("nan"), "", None, HOSTILE)
PREDICTION = Prediction(HOSTILE, "theorem", False, (HYPOTHESIS, OPEN), HOSTILE, {"V": np.eye(30)})
VERDICT = Verdict(
    HOSTILE,
    "theorem",
    Outcome.UNDECIDED,
    0.5,
    1.0,
    0.1,
    0.01,
    HOSTILE,
    HOSTILE,
    (HYPOTHESIS,),
    {"x": np.eye(30)},
)


def weights(**parts):
    return al.Weights(**{"V": np.diag([1.0, -0.5]), "source": HOSTILE, **parts})


def run(**changes):
    made = al.simulate(
        weights(),
        np.random.default_rng(0).normal(size=(6, 2)),
        t_end=0.5,
        saves=5,
        observe=["diameter"],
    )
    return dataclasses.replace(made, **changes)


def batch():
    return al.simulate(
        weights(), np.random.default_rng(0).normal(size=(3, 6, 2)), t_end=0.5, saves=5
    )


def limit(**changes):
    made = al.Limit(
        al.Dynamics(weights()),
        np.zeros((40, 2)),
        np.arange(40) % 20,
        np.arange(40),
        np.eye(2)[:, :1],
        np.ones((40, 1)),
        1e-9,
        "exact",
        HOSTILE,
        HOSTILE,
        tuple(al.Event(float(t), t, 1, 2) for t in range(99)),
        2.5,
    )
    return dataclasses.replace(made, **changes)


def model():
    loaded = al.models.load(*tiny_models.bert(), name=HOSTILE)
    return dataclasses.replace(loaded, source=HOSTILE, licence=HOSTILE)


def flow():
    found = al.models.flow(
        model(), 1, 0, ids=[1, 2, 3], t_end=0.2, saves=3, limit=False, check=False
    )
    return dataclasses.replace(found, words=(HOSTILE,) * 3)


def dossier():
    from attnlab.models.studies.dossier import Dossier, ShownFlow

    one = flow()
    return Dossier(
        model(),
        al.models.spectra(model(), null=2),
        (ShownFlow(one, 1, 0, HOSTILE),),
        (one.data,),
        (),
        (),
        HOSTILE,
    )


SPEC = al.Spec(
    weights={"family": "given", "V": np.eye(40)},
    start={"law": HOSTILE, "n": 3},
    solve={"t_end": 1},
    observe=[HOSTILE],
)
POLYTOPE = al.Spec(
    weights={"family": "identity"}, start={"law": "normal", "n": 4, "d": 2}, solve={"t_end": 1}
)

RECORDS = {
    "Weights": weights,
    "Weights of several heads": lambda: weights(V=np.ones((4, 3, 3))),
    "Weights in factors": lambda: weights(V=(np.ones((500, 2)), np.ones((2, 500)))),
    "FeedForward": lambda: al.FeedForward(W=np.eye(50), bias=np.ones(50)),
    "Dynamics": lambda: al.Dynamics(
        weights(), beta=4.0, feedforward=al.FeedForward(W=np.eye(50)), kernel="hardmax"
    ),
    "Solve": lambda: al.Solve(2.0, np.linspace(0, 2, 1000), rtol=1e-6),
    "Spec": lambda: SPEC,
    "Event": lambda: al.Event(1 / 3, 2, 3, 4),
    "Trajectory": run,
    "Trajectory of a batch": batch,
    "Trajectory that failed": lambda: run(status=al.Status.STALLED),
    "Limit": limit,
    "Limit that is undecided": lambda: limit(grade="undecided", reason=10 * HOSTILE),
    "Limit without growth": lambda: limit(
        basis=np.zeros((2, 0)), points=np.zeros((40, 0)), places=np.zeros((40, 2))
    ),
    "Limits": lambda: Limits([limit(), limit(grade="undecided")] * 30),
    "Resolved": lambda: al.resolve(POLYTOPE),
    "Hypothesis": lambda: HYPOTHESIS,
    "Prediction": lambda: PREDICTION,
    "Predictions": lambda: Predictions(
        [PREDICTION, dataclasses.replace(PREDICTION, applies=True)] * 30, [HOSTILE]
    ),
    "Measured": lambda: Measured(1.0, 2.0, 0.1, 0.2, HOSTILE, details={"x": np.eye(30)}),
    "Verdict": lambda: VERDICT,
    "Verdicts": lambda: Verdicts(
        [VERDICT, dataclasses.replace(VERDICT, outcome=Outcome.OUT_OF_SCOPE)] * 40
    ),
    "Verdicts of nothing": Verdicts,
    "BatchVerdicts": lambda: BatchVerdicts([Verdicts([VERDICT] * 15)] * 200),
    "Theorem": lambda: theorems["polytope"],
    "Model": model,
    "Config": lambda: model().config,
    "Parts": lambda: model().parts,
    "Layer": lambda: model().parts.layers[0],
    "Entry": lambda: dataclasses.replace(known_models["minilm"], about=HOSTILE),
    "KeptFile": lambda: known_models["minilm"].files[0],
    "Flow": flow,
    "Cluster": lambda: flow().clusters[0],
    "Dossier": dossier,
}


class Reader(HTMLParser):
    """The tags and attributes of some HTML, and the text that a reader sees."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.seen = [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.seen += data


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_has_a_short_text(name):
    text = repr(RECORDS[name]())
    assert len(text) < 200 and "\n" not in text
    assert (
        "0x" not in text
        and "array([" not in text
        and "[[" not in text
        and not set("\x1b\u202e") & set(text)
    )
    assert text.startswith(name.split(" ")[0])


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_has_safe_html(name):
    record = RECORDS[name]()
    kind = next((one.__name__ for one in type(record).__mro__ if one.__name__ in displays), None)
    if kind is not None:
        displays[kind](record)  # show would hide what goes wrong here
    html = record._repr_html_()
    assert html.isascii() and len(re.sub(r"base64,[^\"]*", "", html)) < 60_000
    found = Reader(html)
    assert found.tags[:3] == ["div", "style", "b"]
    assert set(found.tags) <= {
        "div",
        "style",
        "b",
        "p",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "pre",
        "details",
        "summary",
        "img",
    }
    for attribute, value in found.attributes:
        assert attribute in ("class", "alt", "src") and (
            attribute != "src" or value.startswith("data:image/png;base64,")
        )
    assert "//" not in re.sub(r"base64,[^\"]*", "", html)
    assert "\x1b" not in html and "\u202e" not in found.seen


STRANGE = (
    "Weights",
    "Spec",
    "Limit",
    "Predictions",
    "Verdicts",
    "Verdict",
    "Model",
    "Entry",
    "Flow",
    "Dossier",
)


@pytest.mark.parametrize("name", STRANGE)
def test_words_of_strangers_are_shown_as_they_are(name):
    assert "<script>alert(1)</script>" in Reader(RECORDS[name]()._repr_html_()).seen


def test_every_public_record_shows_itself():
    """The records of these layers are public, or reached from public ones; none has the text that
    dataclasses make.
    """
    open_layers = (
        "types",
        "equations",
        "spec",
        "verdicts",
        "run",
        "exponential",
        "models",
        "analysis",
        "batches",
    )
    found = set()
    for module in pkgutil.walk_packages(al.__path__, "attnlab."):
        if module.name.split(".")[1] in open_layers:
            for thing in vars(importlib.import_module(module.name)).values():
                if (
                    dataclasses.is_dataclass(thing)
                    and isinstance(thing, type)
                    and thing.__module__ == module.name
                ):
                    found.add(thing)
    private = {"Options", "PlantedHeads", "Change", "Architecture"}
    assert {"Weights", "Limit", "Verdict", "Model", "Flow", "Entry", "Parts", "Hull"} <= {
        one.__name__ for one in found
    }
    for one in found:
        if one.__name__ not in private:
            assert issubclass(one, Displayed), one
            made = one.__repr__
            is_written = (
                made.__code__.co_filename == importlib.import_module(one.__module__).__file__
            )
            assert made is short_repr or is_written or one is al.Event, one


def test_the_texts_say_what_matters():
    one = al.Weights(V=1.0)
    assert repr(al.Dynamics(one, beta=4.0)) == f"Dynamics(weights={one!r}, beta=4.0)"
    assert (
        repr(al.Solve(2.0, np.zeros(3), rtol=1e-6))
        == "Solve(t_end=2.0, times=array (3,), rtol=1e-06)"
    )
    assert (
        repr(al.FeedForward(W=np.eye(3), sigma="tanh"))
        == "FeedForward(W=array (3, 3), sigma='tanh')"
    )
    assert (
        repr(POLYTOPE)
        == "Spec(weights: family = 'identity'; start: law = 'normal', n = 4, d = 2; solve: t_end"
        " = 1)"
    )
    assert (
        Limits([limit(), limit(grade="undecided")]).summary
        == "1 of 2 members certified (exact 1), 1 undecided; limits: 20."
    )
    assert shorten("a  b\nc") == "a b c" and shorten("x" * 100, 10) == "xxxxxx ..."


# ------------------------------------------------------------------------------------------------
# lists of results


def test_check_returns_a_list_that_prints_what_was_decided_first():
    found = al.check(run(), names=["polytope", "collapse_to_origin", "stability"], work=1e3)
    assert (
        isinstance(found, Verdicts)
        and isinstance(found, list)
        and [one.theorem for one in found] == ["polytope", "collapse_to_origin", "stability"]
    )
    counts = {outcome: sum(one.outcome is outcome for one in found) for outcome in Outcome}
    assert (
        found.summary
        == ", ".join(f"{count} {outcome.name}" for outcome, count in counts.items() if count) + "."
    )
    lines = str(found).splitlines()
    assert (
        len(lines) == 4
        and lines[-1] == found.summary
        and sorted(lines[:3]) == sorted(map(str, found))
    )
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is Verdicts and str(again) == str(found)
    of_batch = al.check(batch(), names=["stability"])
    assert (
        isinstance(of_batch, BatchVerdicts)
        and len(of_batch) == 3
        and all(isinstance(one, Verdicts) for one in of_batch)
    )


def test_limits_of_a_batch_are_a_list_with_a_summary():
    found = al.limit(batch(), work=10.0)
    assert (
        isinstance(found, Limits)
        and isinstance(found, list)
        and len(found) == 3
        and isinstance(found[0], al.Limit)
    )
    assert (
        found.summary == "0 of 3 members certified, 3 undecided."
        and len(str(found).splitlines()) == 4
    )


# --------------------------------------------------------------------------------------------------
# pictures


def test_a_run_is_drawn_where_that_is_quick():
    assert 'src="data:image/png;base64,iVBOR' in run()._repr_html_()
    many = run(states=np.zeros((5, 2000, 2)))
    assert "<img" not in many._repr_html_() and "al.plot(run) draws it" in many._repr_html_()


def test_a_picture_that_fails_leaves_the_table(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no <b>font</b>")

    monkeypatch.setattr("attnlab.render.plots.plot", fail)
    html = run()._repr_html_()
    assert (
        "<img" not in html and "No picture: no &lt;b&gt;font&lt;/b&gt;" in html and "status" in html
    )


def test_a_display_that_fails_shows_the_text(monkeypatch):
    monkeypatch.setitem(displays._things, "Weights", lambda record: 1 / 0)
    assert show(weights()).startswith("<pre>Weights(") and "<script" not in show(weights())


def test_tables_are_shown_without_matplotlib():
    code = (
        "import sys, numpy as np, attnlab as al; w = al.Weights(V=np.eye(2)); html ="
        " w._repr_html_() + al.Dynamics(w)._repr_html_() + al.Spec({}, {}, {})._repr_html_();"
        " assert 'Weights' in html; print([name for name in ('matplotlib', 'numba', 'xarray',"
        " 'pandas') if name in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout.strip()
        == "[]"
    )


# --------------------------------------------------------------------------------------------------
# movies


def test_a_movie_is_a_path_that_shows_itself(tmp_path):
    gif, mp4 = tmp_path / "a.gif", tmp_path / "a.mp4"
    film = al.movie(run(), gif, frames=2, dpi=30)
    assert (
        isinstance(film, Path)
        and film == gif
        and os.fspath(film) == str(gif)
        and film.read_bytes().startswith(b"GIF")
    )
    assert {film: 1}[gif] == 1 and str(film) == str(gif) and pickle.loads(pickle.dumps(film)) == gif
    assert 'src="data:image/gif;base64,R0lG' in film._repr_html_()
    both = al.movie(run(), [str(gif), str(mp4)], frames=2, dpi=30)
    assert (
        isinstance(both, list) and both == [gif, mp4] and all(isinstance(one, Film) for one in both)
    )
    assert '<video controls loop muted src="data:video/mp4;base64,' in both[1]._repr_html_()
    assert "a.mp4" in both._repr_html_() and "<img" in both._repr_html_()
    assert "script" not in Film(tmp_path / "<script>.gif")._repr_html_().replace("&lt;script", "")
    assert "This is a path" in Film(tmp_path)._repr_html_()


def test_a_movie_that_is_too_large_is_not_put_into_a_notebook(tmp_path):
    path = tmp_path / "large.gif"
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    assert (
        "too much for a notebook" in Film(path)._repr_html_()
        and len(Film(path)._repr_html_()) < 5_000
    )
    assert "There is no movie" in Film(
        tmp_path / "none.gif"
    )._repr_html_() and Films()._repr_html_().startswith("<div")
