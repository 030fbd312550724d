"""Viewers inside other pages: pieces, payloads, and that a certified limit stands beside its own
run only.
"""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.explorer.embed import HIDDEN, embed_viewers, run_payload
from attnlab.render.page import page, put_behind
from embedded_viewers import check_viewers

CUBE = {"law": "uniform_cube", "n": 6, "d": 2, "low": -5.0, "high": 5.0, "rng": 1}
SPEC = al.Spec(weights={"family": "identity"}, start=CUBE, solve={"t_end": 3.0, "saves": 11})
STILL = '<figure><img src="data:image/png;base64," alt="a picture of tokens"></figure>'
HOSTILE = '</script><script>alert(1)</script>" onclick="alert(2)'


def test_a_page_without_viewers_has_no_script():
    pieces = embed_viewers({})
    assert pieces.head == pieces.foot == ""
    assert check_viewers(page("A page", put_behind(None, STILL), pieces=pieces)) == {}


def test_a_page_with_two_viewers():
    run = al.run_spec(SPEC)
    payloads = {
        "a": run_payload(run, al.limit(run), name="One"),
        "b": run_payload(run, name="Two", watch="Look."),
    }
    text = page(
        "A page", put_behind("a", STILL) + put_behind("b", STILL), pieces=embed_viewers(payloads)
    )
    found = check_viewers(text)
    assert found == payloads and len(found["a"]["limits"]) == 1 and found["b"]["limits"] == []
    assert found["b"]["presets"][0]["watch"] == "Look." and found["a"]["hide"] == list(HIDDEN)
    assert text.count(STILL) == 2 and len(text) < 190_000


def test_names_of_strangers_stay_names():
    run = al.run_spec(SPEC)
    text = page(
        "A page",
        put_behind(HOSTILE, STILL),
        pieces=embed_viewers({HOSTILE: run_payload(run, name=HOSTILE)}),
    )
    assert text.count("<script") == text.count("</script>") == 3 and 'onclick="' not in text


def test_a_run_that_the_page_integrates_and_one_that_it_does_not():
    live = run_payload(al.run_spec(SPEC), name="One")
    assert "recording" not in live and live["state"]["spec"]["start"] == CUBE
    flat = al.simulate(al.Weights(V=np.diag([1.0, 0.5, 0.2, 0.1])), np.eye(4), t_end=2.0)
    recorded = run_payload(flat, al.limit(flat), name="Two")
    assert (
        recorded["recording"]["dimension"] == 4 and recorded["limits"] == []
    )  # its points could not be drawn


def test_an_undecided_limit_is_left_out():
    run = al.run_spec(SPEC)
    undecided = al.limit(run, work=1.0)
    assert not undecided.certified and run_payload(run, undecided, name="One")["limits"] == []


@pytest.mark.parametrize("name", ["head", "foot"])
def test_pieces_are_written_once(name):
    pieces = embed_viewers({"a": run_payload(al.run_spec(SPEC), name="One")})
    text = page("A page", put_behind("a", STILL), pieces=pieces)
    assert text.count(getattr(pieces, name)) == 1
    assert text.index("</head>") > text.index(pieces.head) and text.index("</body>") > text.index(
        pieces.foot
    )
