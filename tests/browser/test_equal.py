"""When two Specs are the same run: values count, not texts; a certified limit must vanish when
anything else changes.
"""

from __future__ import annotations

import pytest
from modules import open_modules

SPEC = {"weights": {"family": "spectrum", "eigenvalues": [1.0, 0.5], "basis": "identity"},
        "start": {"law": "uniform_cube", "n": 12, "d": 2, "low": -5, "high": 5, "rng": 3}, "solve": {"t_end": 12.0}}  # fmt: skip


def changed(path: str, value) -> dict:
    section, _, key = path.partition(".")
    table = {name: entry for name, entry in SPEC.get(section, {}).items() if name != key}
    return {**SPEC, section: table if value is None else {**table, key: value}}


SAME = [
    changed("weights.eigenvalues", [1, 0.5]), changed("dynamics.beta", 1), changed("dynamics.kernel", "softmax"),
    changed("dynamics.mask", "full"), changed("dynamics.geometry", "euclidean"), {**SPEC, "dynamics": {}},
    changed("weights.rng", 0),
    changed("start.moved", {}), changed("solve.t_end", 3), changed("solve.rtol", 1e-10), {**SPEC, "observe": ["diameter"]},
    dict(reversed([(key, dict(reversed(table.items()))) for key, table in SPEC.items()])),
]  # fmt: skip
OTHER = [
    changed("weights.eigenvalues", [1, 0.5000000000000001]), changed("weights.eigenvalues", [0.5, 1]),
    changed("weights.eigenvalues", [1, [0.5, 0]]), changed("weights.eigenvalues", [1, 0.5, 0]), changed("weights.basis", None),
    changed("dynamics.beta", 1.0001), changed("dynamics.kernel", "hardmax"), changed("dynamics.mask", "causal"),
    changed("dynamics.geometry", "sphere"), changed("start.rng", 4), changed("start.n", 13), changed("start.low", None),
    changed("start.moved", {"3": [1, 2]}), changed("start.law", "normal"), changed("solve.layers", 3),
    changed("weights.family", None),
    changed("dynamics.feedforward", {"sigma": "relu"}), {}, None, 3, [], {"weights": None, "start": None, "solve": None},
]  # fmt: skip


@pytest.fixture
def page(tab, tmp_path):
    return open_modules(tab, tmp_path, "equal")


def test_equal_and_different(page):
    same = "(a, others) => others.map(b => [equal.isSameSpec(a, b), equal.isSameSpec(b, a)])"
    assert page.call(same, SPEC, [SPEC, *SAME]) == [[True, True]] * (1 + len(SAME))
    assert page.call(same, SPEC, OTHER) == [[False, False]] * len(OTHER)
    start = {**SPEC["start"], "rng": 0}
    with_zero, without = (
        {**SPEC, "start": table}
        for table in (start, {key: start[key] for key in start if key != "rng"})
    )
    assert page.call(same, with_zero, [without]) == [[True, True]]


def test_moved_tokens_count(page):
    moved = changed("start.moved", {"3": [1, 2], "10": [0.1, 0.2]})
    same = "(a, b) => equal.isSameSpec(a, b)"
    assert page.call(same, moved, changed("start.moved", {"10": [0.1, 0.2], "3": [1.0, 2.0]}))
    assert not page.call(same, moved, changed("start.moved", {"10": [0.1, 0.2]}))
    assert not page.call(same, moved, changed("start.moved", {"10": [0.1, 0.2], "3": [1.0, 2.5]}))


def test_layers_have_their_clock(page):
    two, three, other = (
        changed("solve.layers", 2),
        changed("solve.layers", 3),
        {**SPEC, "solve": {"layers": 3, "dt": 0.5}},
    )
    assert page.call(
        "(a, b) => equal.isSameSpec(a, b)", two, three
    )  # the limit is that of infinitely many
    assert not page.call("(a, b) => equal.isSameSpec(a, b)", three, other)
    assert page.call(
        "(a, b) => equal.isSameSpec(a, b)", three, {**SPEC, "solve": {"layers": 3, "dt": 1}}
    )


def test_the_defaults_are_those_of_python():
    """The table of defaults in equal.js against the signatures behind the names."""
    import inspect
    import json
    import re

    from attnlab.cli.names import option_defaults
    from attnlab.engine import simulate
    from attnlab.explorer.join import WEB
    from attnlab.starts import start_laws
    from attnlab.weights import weights_families

    block = re.search(r"const DEFAULTS = (\{.*?\n\});", (WEB / "equal.js").read_text(), re.DOTALL)
    text = re.sub(r"(\w+):", r'"\1":', block[1].replace("'", '"'))
    table = json.loads(re.sub(r",(\s*})", r"\1", text))
    functions = (
        {"dynamics": simulate}
        | {name: start_laws[name] for name in start_laws}
        | {name: weights_families[name] for name in ("identity", "spectrum")}
    )
    assert set(table) == set(functions) - {"given"}
    for name, defaults in table.items():
        found = {
            key: one.default
            for key, one in inspect.signature(functions[name]).parameters.items()
            if one.default is not one.empty and one.default is not None or key == "rng"
        }
        found = {key: 0 if key == "rng" else value for key, value in found.items()}
        known = {key: option_defaults()[key] for key in defaults} if name == "dynamics" else found
        assert defaults == known, name
