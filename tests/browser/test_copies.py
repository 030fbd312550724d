"""Copies: attnlab runs TOML and Python that a page writes, from the same start to the bit, to the
same certified count.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from modules import module_page
from tab import JavaScriptError
from test_address import STATES, state_of

import attnlab as al
from attnlab.explorer.presets import presets, stored_limits
from attnlab.run import limit_of_spec, resolve

page = module_page("copies")
NAMES = presets.in_order()
SLOW = ("sphere",)
"""Their limit takes a minute; only the start is compared."""

MOVED = {"5": [0.1 + 0.2, -1.917, 1e-17], "0": [-0.0, 5e-324, 1.7976931348623157e308 / 1e300]}


def spec_dict(name: str, moved: bool) -> dict:
    spec = presets[name].spec.to_dict()
    if moved:
        d = spec["start"]["d"]
        places = {token: place[:d] for token, place in MOVED.items()}
        if spec.get("dynamics", {}).get("geometry") == "sphere":  # on the sphere, to the last digit
            places = {token: (np.array([0.6, -0.8, 0.0][:d])).tolist() for token in places}
        spec["start"] = {**spec["start"], "moved": places}
    return spec


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_attnlab_runs_the_copied_toml(page, name, moved):
    given = spec_dict(name, moved)
    text = page.call("spec => copies.asToml(spec)", given)
    spec = al.Spec.from_toml(text)
    assert spec.to_dict() == given and spec.digest() == al.Spec.from_dict(given).digest()
    x0, again = resolve(al.Spec.from_dict(given)).x0, resolve(spec).x0
    assert x0.tobytes() == again.tobytes()
    if moved:
        np.testing.assert_array_equal(again[5], given["start"]["moved"]["5"])
    elif name not in SLOW and (stored := stored_limits()[name]["limit"]) is not None:
        assert limit_of_spec(spec).count == stored["count"]


@pytest.mark.parametrize("name", NAMES)
def test_the_copied_python_has_the_same_spec(page, name):
    text = page.call("spec => copies.asPython(spec)", spec_dict(name, True))
    compile(text, "copied", "exec")
    found = re.search(r"spec = al.Spec.from_json\(r'''(.*?)'''\)", text, re.DOTALL)[1]
    spec = al.Spec.from_json(found)
    assert (
        resolve(spec).x0.tobytes() == resolve(al.Spec.from_dict(spec_dict(name, True))).x0.tobytes()
    )


@pytest.mark.parametrize("name", ["boolean", "late", "causal", "collapse"])
def test_the_copied_python_runs(page, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(page.call("spec => copies.asPython(spec)", presets[name].spec.to_dict()), names)
    stored = stored_limits()[name]["limit"]
    assert (
        names["limit"].count == stored["count"]
        and names["limit"].labels.tolist() == stored["labels"]
    )
    assert names["run"].n == len(stored["labels"]) and (tmp_path / "run.png").stat().st_size > 5000
    assert "Certified" in capsys.readouterr().out


@pytest.mark.parametrize("name", STATES)
def test_every_kind_of_value_survives(page, name):
    given = state_of(STATES[name])["spec"]
    for text, read in (
        (page.call("spec => copies.asToml(spec)", given), al.Spec.from_toml),
        (page.call("spec => copies.asPython(spec)", given).split("'''")[1], al.Spec.from_json),
    ):
        assert read(text).to_dict() == given
    assert (
        al.Spec.from_dict(given).digest()
        == al.Spec.from_toml(page.call("spec => copies.asToml(spec)", given)).digest()
    )


def test_layers_and_signs(page):
    spec = {
        "weights": {"family": "identity"},
        "start": {"law": "given", "x": [[-0.0, 1.0]]},
        "solve": {"layers": 3, "dt": 0.5},
    }
    text = page.call("spec => { spec.start.x[0][0] = -0; return copies.asToml(spec); }", spec)
    assert np.signbit(resolve(al.Spec.from_toml(text)).x0[0, 0])
    text = page.call("spec => { spec.start.x[0][0] = -0; return copies.asPython(spec); }", spec)
    assert "dt=0.5" in text and np.signbit(
        resolve(al.Spec.from_json(text.split("'''")[1])).x0[0, 0]
    )


def test_words_stay_words(page):
    """A word of a stranger cannot end the string that it stands in."""
    word = "it's '''; import os \\ \" \n \x7f é"
    spec = {
        "weights": {"family": word},
        "start": {"law": "x"},
        "solve": {"t_end": 1},
        "observe": [word],
    }
    assert al.Spec.from_toml(page.call("spec => copies.asToml(spec)", spec)).to_dict() == spec
    text = page.call("spec => copies.asPython(spec)", spec)
    assert al.Spec.from_json(text.split("'''")[1]).to_dict() == spec and text.count("'''") == 2


def test_a_recording_without_matrices_has_nothing_to_copy(page):
    spec = {
        "weights": {"family": "given", "d": 384},
        "start": {"law": "given", "n": 16, "d": 384},
        "solve": {"t_end": 5},
    }
    for copy in ("asToml", "asPython"):
        with pytest.raises(JavaScriptError, match="came without its matrices"):
            page.call(f"spec => copies.{copy}(spec)", spec)
