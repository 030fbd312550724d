"""The address: everything of a state goes there and back to the bit, and nothing a stranger writes
breaks the page.
"""

from __future__ import annotations

import copy
import json
import random

import pytest
from modules import open_modules
from tab import Tab

VIEW = {
    "t": 0.4,
    "frame": "limit",
    "camera": [0.6, 0.3, 1.0],
    "show": ["trails", "hull"],
    "selected": [],
    "theme": "auto",
}
FALLBACK = {
    "version": 1, "preset": "late",
    "spec": {"weights": {"family": "spectrum", "eigenvalues": [1.0, 0.9, -0.5], "basis": "identity"}, "dynamics": {"beta": 2.0},
             "start": {"law": "uniform_cube", "n": 30, "d": 3, "low": -5, "high": 5, "rng": 4}, "solve": {"t_end": 26.0}},
    "view": {**VIEW, "t": "inf", "theme": "dark", "selected": [3, 4]},
}  # fmt: skip
CUBE = {"law": "uniform_cube", "n": 12, "d": 2, "rng": 2**53 - 1}
STATES = {
    "fallback": FALLBACK,
    "one dimension": ({"family": "spectrum", "eigenvalues": [1.0], "basis": "identity"}, {**CUBE, "d": 1}, {"t_end": 3}, {}),
    "numbers": ({"family": "spectrum", "eigenvalues": [0.1 + 0.2, 1e-300], "basis": "identity"},
                {**CUBE, "low": -1e-7, "high": 1.7e11, "moved": {"5": [1.245, -0.0], "11": [5e-324, 0.1 + 0.7]}},
                {"t_end": 1e-3, "rtol": 1e-13, "times": [0, 1e-3 / 3]}, {"beta": -1.5}),
    "a pair": ({"family": "spectrum", "eigenvalues": [1, [-0.25, 0.5]], "basis": "identity"}, {**CUBE, "d": 3}, {"t_end": 3}, {}),
    "pairs with exponents": ({"family": "spectrum", "eigenvalues": [[1e-7, -2.5e-9]], "basis": "orthogonal", "rng": 3}, CUBE,
                             {"t_end": 3}, {}),
    "heads": ({"family": "given", "V": [[[1, 0], [0, 1]], [[0.5, 0.1], [0, -1]]], "Q": [[1, 2], [3, 4]],
               "K": [[[1, 2]], [[3, 4]]]},
              {"law": "given", "x": [[0.1, 1e-20], [3, 4], [-5, 6]]}, {"t_end": 3}, {"kernel": "hardmax", "mask": "causal"}),
    "a number as a matrix": ({"family": "given", "V": 1.5, "d": 1}, {**CUBE, "d": 1, "law": "normal", "mean": [0.25]},
                             {"layers": 5, "dt": 0.25}, {}),
    "sphere": ({"family": "identity", "scale": -2}, {"law": "circle", "n": 9, "equally_spaced": True, "radius": 1},
               {"t_end": 40, "stepper": "rk4", "dt": 0.01, "measure_error": False, "saves": 7},
               {"geometry": "sphere", "beta": 9}),
    "published": ({"family": "published", "matrix": "hyperplanes_2d"}, {**CUBE, "law": "normal", "mean": [1, 2], "scale": 0.5},
                  {"t_end": 3, "frame": "x", "max_steps": 100, "atol": 0}, {"kernel": "exp_mean"}),
    "planted": ({"family": "identity"}, {**CUBE, "law": "planted", "clusters": 4, "spread": 0.1, "separation": 2}, {"t_end": 1},
                {}),
}  # fmt: skip


def state_of(made) -> dict:
    if isinstance(made, dict):
        return made
    weights, start, solve, dynamics = made
    return {
        "version": 1,
        "spec": {
            "weights": weights,
            "start": start,
            "solve": solve,
            **({"dynamics": dynamics} if dynamics else {}),
        },
        "view": VIEW,
    }


@pytest.fixture
def page(tab: Tab, tmp_path):
    return open_modules(tab, tmp_path, "address")


@pytest.mark.parametrize("name", STATES)
def test_everything_goes_there_and_back(page, name):
    state = state_of(STATES[name])
    both = (
        "(state, fallback) => {const text = address.writeAddress(state); return [text,"
        " address.readAddress(text, fallback)];}"
    )
    found = page.call(both, state, FALLBACK)
    assert found[1]["complaints"] == []
    assert found[1]["state"] == state
    assert '"' not in found[0] and " " not in found[0]
    # the browser itself keeps it
    assert (
        page.call("(text) => { location.hash = text; return location.hash; }", found[0])
        == f"#{found[0]}"
    )


def test_signs_of_zero_survive(page):
    state = state_of(STATES["numbers"])
    text = page.call(
        "state => { state.spec.start.moved = {1: [-0, 0]}; return address.writeAddress(state); }",
        state,
    )
    assert page.call(
        "(text, f) => Object.is(address.readAddress(text, f).state.spec.start.moved[1][0], -0)",
        text,
        FALLBACK,
    )


def test_the_address_can_be_read_by_people(page):
    state = copy.deepcopy(FALLBACK)
    state["spec"]["start"]["moved"] = {"5": [1.245, 1.917, 0]}
    assert (
        page.call("state => address.writeAddress(state)", state)
        == "preset=late&weights.family=spectrum&weights.eigenvalues=1,0.9,-0.5&weights.basis=identity&dynamics.beta=2"
        "&start.law=uniform_cube&start.n=30&start.d=3&start.low=-5&start.high=5&start.rng=4&start.moved.5=1.245,1.917,0"
        "&solve.t_end=26&view.t=inf&view.frame=limit&view.camera=0.6,0.3,1&view.show=trails,hull&view.selected=3,4&view.theme=dark"
    )


def read(page, text: str, presets=()):
    before = page.evaluate("JSON.stringify(Object.getOwnPropertyNames(Object.prototype))")
    found = page.call(
        "(text, fallback, presets) => address.readAddress(text, fallback, presets)",
        text,
        FALLBACK,
        list(presets),
    )
    assert page.evaluate("JSON.stringify(Object.getOwnPropertyNames(Object.prototype))") == before
    return found["state"], found["complaints"]


def test_what_is_not_said_stays(page):
    state, complaints = read(
        page,
        "#weights.eigenvalues=1,0.9,-0.5&dynamics.beta=4&view.t=0.4&start.moved.5=1.245,1.917,0",
    )
    assert complaints == [] and state["view"] == {**FALLBACK["view"], "t": 0.4}
    assert state["spec"] == {
        **FALLBACK["spec"],
        "dynamics": {"beta": 4},
        "start": {**FALLBACK["spec"]["start"], "moved": {"5": [1.245, 1.917, 0]}},
    }
    assert read(page, "") == (FALLBACK, []) and read(page, "#") == (FALLBACK, [])


def test_dimensions_follow_the_eigenvalues(page):
    state, complaints = read(page, "#weights.eigenvalues=1,0.5")
    assert complaints == [] and state["spec"]["start"]["d"] == 2
    state, complaints = read(page, "#weights.eigenvalues=1,0.5&start.d=3")
    assert "2 dimensions and the tokens 3" in complaints[0] and state["spec"]["start"]["d"] == 2


def test_a_preset_by_name(page):
    spec = state_of(STATES["sphere"])["spec"]
    presets = [{"id": "circle", "name": "Circle", "spec": spec, "camera": [1, 2, 3]}]
    state, complaints = read(page, "#preset=circle&dynamics.beta=4", presets)
    assert complaints == [] and state["preset"] == "circle" and state["view"]["camera"] == [1, 2, 3]
    assert state["spec"] == {**spec, "dynamics": {"geometry": "sphere", "beta": 4}}
    state, complaints = read(page, "#preset=cirlce", presets)
    assert complaints == ["There is no preset “cirlce” on this page."] and state == FALLBACK


@pytest.mark.parametrize("text, key", [
    ("start.n=2001", "start.n"), ("start.n=1e9", "start.n"), ("start.n=NaN", "start.n"), ("start.n=", "start.n"),
    ("start.n", "start.n"),
    ("start.n=2.5", "start.n"), ("start.n=-1", "start.n"), ("start.n=0x10", "start.n"), ("start.d=4", "start.d"),
    ("dynamics.beta=Infinity", "dynamics.beta"), ("dynamics.beta=1e999", "dynamics.beta"),
    ("dynamics.beta=<script>", "dynamics.beta"),
    ("weights.eigenvalues=1,1,1,1", "weights.eigenvalues"), ("weights.eigenvalues=1,1,0.5+1i", "weights.eigenvalues"),
    ("weights.eigenvalues=", "weights.eigenvalues"), ("weights.eigenvalues=1,,2", "weights.eigenvalues"),
    ("weights.eigenvalues=a", "weights.eigenvalues"), ("weights.V=[[1,2,3,4]]", "weights.V"), ("weights.V={}", "weights.V"),
    ('weights.V=["a"]', "weights.V"), ("weights.V=[[1,[2]]]", None), ("weights.V=[[null]]", "weights.V"),
    ("weights.V=[]", "weights.V"),
    ("weights.V=[[[[1]]]]", "weights.V"), ("weights.family=<img onerror=alert(1)>", "weights.family"),
    ("weights.frmaily=x", "frmaily"),
    ("dynamics.kernel=soft", "dynamics.kernel"), ("dynamics.feedforward=1", "dynamics.feedforward"),
    ("start.rng=-1", "start.rng"),
    ("start.moved.30=1,2,3", "token 30"), ("start.moved.1=1,2", "token 1"), ("start.moved.01=1,2,3", "start.moved.01"),
    ("start.moved.__proto__=1,2,3", "__proto__"), ("__proto__.polluted=1", "__proto__"),
    ("constructor.prototype.polluted=1", "constructor"),
    ("weights.__proto__=1", "weights.__proto__"), ("start.moved=1", "start.moved"), ("start.batch=3", "start.batch"),
    ("view.camera=1,2", "view.camera"), ("view.camera=1,2,1e9", "view.camera"), ("view.t=-1", "view.t"),
    ("view.t=later", "view.t"),
    ("view.show=<b>", "view.show"), ("view.theme=pink", "view.theme"), ("view.selected=1.5", "view.selected"), ("a=b=c", "a"),
    ("solve.t_end=0", "solve.t_end"), ("solve.t_end=-3", "solve.t_end"), ("solve.layers=1e6", "solve.layers"),
    ("%E0%A4%A=1", "%E0%A4%A"),
    ("version=2", "version 2"), ("preset=../../x", "preset"), ("\x00\x1b[31m=1", "?"), ("start.x=[[1,2,3,4]]", "start.x"),
    ("start.x=1", "start.x"), ("start.x=[[1,2],[3]]", "start.x"), ("start.x=[1,2]", "start.x"),
    ("observe=<a>", "observe"), ("toString=1", "toString"),
])  # fmt: skip
def test_a_spoiled_address_is_a_sentence_and_a_working_state(page, text, key):
    for address in (f"#{text}", f"#view.t=0.25&{text}&dynamics.beta=3"):
        state, complaints = read(page, address)
        if key is not None:
            assert len(complaints) == 1 and key in complaints[0] and len(complaints[0]) < 300
            assert not any(character in complaints[0] for character in "\x00\x1b")
        if "&" in address:
            assert state["view"]["t"] == 0.25 and state["spec"]["dynamics"]["beta"] == 3
        if key not in ("version 2", None):
            rest = {**FALLBACK["spec"], "dynamics": state["spec"]["dynamics"]}
            assert state["spec"] == rest and state["view"] == {
                **FALLBACK["view"],
                "t": state["view"]["t"],
            }
    assert page.evaluate("({}).polluted === undefined && Array.prototype.polluted === undefined")


def test_a_spec_that_cannot_run_is_replaced(page):
    check = "spec => { if (!(spec.start.n > 0)) throw new Error('The start needs n.'); }"
    found = page.call(
        f"(text, f) => address.readAddress(text, f, [], {check})",
        "#weights.family=identity&start.law=normal&view.t=3",
        FALLBACK,
    )
    assert found == {
        "state": {**FALLBACK, "view": {**FALLBACK["view"], "t": 3}},
        "complaints": ["The run in the address cannot be shown. The start needs n."],
    }


def test_no_text_makes_it_throw_or_grow(page):
    """Random damage to real addresses, and floods: always a state within bounds, and few
    complaints.
    """
    chance = random.Random(0)
    texts = [
        "#" + "a=1&" * 100_000,
        "#" + "x" * 500_000,
        "#start.x=" + "[" * 100_000,
        "#weights.V=" + "[1," * 5_000,
        "#start.moved.1=" + "1," * 50_000,
        "#" + "&".join(f"start.moved.{k}=1,2,3" for k in range(2500)),
    ]
    for made in STATES.values():
        whole = page.call("state => address.writeAddress(state)", state_of(made))
        for _ in range(40):
            letters = list(whole)
            for _ in range(chance.randint(1, 6)):
                letters[chance.randrange(len(letters))] = chance.choice("&=,.[]-+ie019%#xn\u202e")
            texts.append("".join(letters))
    found = page.call(
        "(texts, f) => texts.map(text => address.readAddress(text, f))", texts, FALLBACK
    )
    for one in found:
        assert len(one["complaints"]) <= 7 and all(
            isinstance(words, str) for words in one["complaints"]
        )
        start = one["state"]["spec"]["start"]
        assert (
            start.get("n", 1) <= 2000 and len(start.get("x", [])) <= 2000 and start.get("d", 3) <= 3
        )
        assert set(one["state"]) <= {"version", "preset", "spec", "view"} and set(
            one["state"]["view"]
        ) == set(VIEW)
        assert len(start.get("moved", {})) <= start.get("n", 2000)
        assert json.dumps(one)
    assert any(one["complaints"] for one in found)
    for value in (None, 3, {}, []):
        assert (
            page.call("(value, f) => address.readAddress(value, f)", value, FALLBACK)["state"]
            == FALLBACK
        )
