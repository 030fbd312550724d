"""Recordings in the browser: unpacked as Python unpacks them, and a damaged one is a sentence."""

from __future__ import annotations

import base64
import copy
import json
import zlib

import numpy as np
import pytest
from modules import module_page
from tab import JavaScriptError

import attnlab as al
from attnlab.explorer.presets import recorded_head
from attnlab.explorer.recording import record_run
from unpack import unpack_leaders, unpack_tokens

page = module_page("embedded")
UNPACK = """async packed => { const r = await embedded.unpackRecording(packed);
  const plain = value => ArrayBuffer.isView(value) ? Array.from(value) : value;
  const kinds = [r.times, r.leaders, r.labels, r.frames.limit].map(a => a.constructor.name);
  return {...Object.fromEntries(Object.entries(r).map(([key, value]) => [key, plain(value)])),
    frames: {limit: Array.from(r.frames.limit)}, trusted: r.trusted === Infinity ? 'forever' : r.trusted, kinds}; }"""


def recorded(V, n=10, **options) -> dict:
    x0 = np.random.default_rng(1).uniform(-2, 2, (n, len(V)))
    return record_run(al.simulate(al.Weights(V=V), x0, t_end=3.0, **options))


RECORDINGS = {
    "line": lambda: recorded(np.eye(1)), "plane": lambda: recorded(np.diag([1.0, -0.5])),
    "space": lambda: recorded(np.eye(3), 25),
    "one token": lambda: recorded(np.eye(2), 1), "collapse": lambda: recorded(-np.eye(2)),
    "many dimensions": lambda: recorded(np.eye(6)),
    "hardmax": lambda: recorded(np.eye(2), kernel="hardmax"), "trained": lambda: recorded_head()["recording"],
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_browser_unpacks_what_python_packed(page, name):
    packed = json.loads(json.dumps(RECORDINGS[name]()))
    found = page.call(UNPACK, packed)
    T, n = packed["T"], packed["n"]
    tokens = unpack_tokens(packed)
    frames = np.array(found["frames"]["limit"]).reshape(T, n, 3)
    np.testing.assert_allclose(frames, tokens, rtol=3e-7, atol=1e-7 * np.abs(tokens).max())          # float32
    np.testing.assert_array_equal(np.array(found["leaders"]).reshape(T, n), unpack_leaders(packed))
    assert found["times"] == packed["times"] and found["labels"] == packed["labels"] and found["changes"] == packed["changes"]
    assert found["complete"] is True and found["isEmbedded"] is True
    assert found["trusted"] == "forever" and found["estimate"] is None
    assert found["kinds"] == ["Float64Array", "Int16Array", "Int32Array", "Float32Array"]
    assert found.get("words") == packed.get("words") and found.get("axes") == packed.get("axes")
    np.testing.assert_allclose(np.array(found["x0"]), packed.get("x0", frames[0, :, : packed["d"]]))


def test_the_error_of_a_recording_is_below_its_promise(page):
    """From the run itself to what the browser draws: 2e-5 of the box."""
    weights, x0 = al.Weights(V=np.diag([1.0, 0.9])), np.random.default_rng(1).uniform(-5, 5, (20, 2))
    from attnlab.explorer.recording import frame_times

    run = al.simulate(weights, x0, t_end=5.0, times=frame_times(al.Dynamics(weights), 20, 5.0))
    found = np.array(page.call(UNPACK, record_run(run))["frames"]["limit"]).reshape(480, 20, 3)
    assert np.abs(found[..., :2] - run.z).max() < 2e-5 * np.ptp(run.z, axis=(0, 1)).min()


def deflated(count: int) -> str:
    return base64.b64encode(zlib.compress(bytes(count), 9)).decode()


GOOD = recorded(np.eye(2))
SPOILS = {
    "another version": {"version": 2}, "no version": {"version": None}, "huge n": {"n": 10**9}, "huge T": {"T": 10**9},
    "no n": {"n": None},
    "d": {"d": 4}, "n as a word": {"n": "<b>"}, "negative": {"n": -1}, "every": {"every": 0}, "tokens": {"tokens": None},
    "not base64": {"tokens": {**GOOD["tokens"], "bytes": "!!!"}}, "not deflated": {"tokens": {**GOOD["tokens"], "bytes": "AAAA"}},
    "too short": {"tokens": {**GOOD["tokens"], "bytes": deflated(7)}},
    "a bomb": {"tokens": {**GOOD["tokens"], "bytes": deflated(10**8)}},
    "box": {"tokens": {**GOOD["tokens"], "low": [1, 2]}}, "box of words": {"tokens": {**GOOD["tokens"], "size": ["a", 1, 1]}},
    "leaders": {"leaders": GOOD["leaders"][:-8] + "AAAAAAA="}, "no leaders": {"leaders": 3},
    "times": {"times": GOOD["times"][:-1]},
    "times fall": {"times": GOOD["times"][::-1]}, "labels": {"labels": [99] * GOOD["n"]}, "words": {"words": ["a"]},
    "status": {"status": "FINE"},
    "geometry": {"geometry": "torus"}, "basis": {"basis": [[1, 0]]}, "growth": {"growth": [None, None]}, "tau": {"tau": "x"},
    "x0": {"x0": [[1, 2]]}, "axes": {"axes": "abc"}, "trusted": {"trusted": "x"}, "groups": {"groups": []},
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILS)
def test_a_damaged_recording_is_a_sentence(page, name):
    with pytest.raises(JavaScriptError, match="Refusal") as problem:
        page.call(UNPACK, {**copy.deepcopy(GOOD), **SPOILS[name]})
    assert "recording" in str(problem.value)


@pytest.mark.parametrize("record", [None, 3, "x", [], {}])
def test_what_is_no_recording_is_a_sentence(page, record):
    with pytest.raises(JavaScriptError, match="Refusal"):
        page.call(UNPACK, record)
