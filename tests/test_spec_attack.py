"""Every Spec gives a result or a sentence: wrong types, huge numbers, deep nesting; what does not fit in memory is refused."""

from __future__ import annotations

import copy
import inspect
import json
import random
import time

import numpy as np
import pytest

import attnlab as al
from attnlab import Spec, UnknownName
from attnlab.analysis import observables
from attnlab.capacity import TooLarge, available_bytes, check_memory
from attnlab.frames import DrownedInRounding
from attnlab.run import DYNAMICS_KEYS, SOLVE_KEYS, limit_of_spec, resolve, run_spec
from attnlab.starts import start_laws
from attnlab.weights import weights_families
from command_line import refused
from test_finite import assert_finite_where_good

GIGABYTE = 10**9


@pytest.fixture
def small_machine(monkeypatch):
    """A machine with 2 GB of free memory, so that a test refuses the same everywhere."""
    monkeypatch.setattr("attnlab.capacity.available_bytes", lambda: 2 * GIGABYTE)


def spec_of(**changes):
    """A small Spec with some keys of its sections changed: weights__d=3."""
    tables = {"weights": {"family": "identity"}, "start": {"law": "normal", "n": 4, "d": 2}, "solve": {"t_end": 1.0, "saves": 5}}
    for place, value in changes.items():
        section, key = place.split("__")
        tables.setdefault(section, {})[key] = value
    return Spec.from_dict(tables)


# ------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize(
    ("changes", "needed", "advice"),
    [
        ({"start__n": 10**9}, 3 * 2 * 10**9 * 8, "Choose a smaller n or d."),
        ({"start__n": 10**12}, 3 * 2 * 10**12 * 8, "Choose a smaller n or d."),
        ({"start__d": 10**9}, 3 * 4 * 10**9 * 8, "Choose a smaller n or d."),
        ({"solve__saves": 10**9}, 4 * 10**9 * 8, "Choose fewer saves."),
        ({"solve__saves": 10**30}, 4 * 10**30 * 8, "Choose fewer saves."),
        ({"start__batch": 10**12}, (2 * 8 + 400) * 10**12 * 8, "Choose a smaller batch."),
        ({"weights__d": 10**5, "start__d": 10**5}, 6 * 10**10 * 8, "Choose a smaller d."),
        ({"solve__saves": 4 * 10**7, "start__n": 1}, None, "Choose fewer saves, tokens or members."),
    ],
)
def test_what_does_not_fit_is_refused_with_the_numbers_and_at_once(small_machine, changes, needed, advice):
    began = time.perf_counter()
    with pytest.raises(ValueError) as caught:
        run_spec(spec_of(**changes))
    assert time.perf_counter() - began < 5.0
    words = str(caught.value)
    assert isinstance(caught.value, TooLarge) and words.endswith(advice) and "2 GB are available" in words
    if needed is not None:
        assert f"need {needed / 1e9:.3g} GB of memory" in words


def test_layers_without_end_are_refused(small_machine):
    for layers, words in ((10**12, "layers must be at most 100000000"), (10**8, "Give saves= or times=, or choose fewer layers")):
        tables = {"weights": {"family": "identity"}, "start": {"law": "normal", "n": 4, "d": 2}, "solve": {"layers": layers}}
        with pytest.raises(ValueError, match=words):
            run_spec(Spec.from_dict(tables))


@pytest.mark.parametrize("name", ["attention_rank", "attention_entropy"])
def test_an_observable_of_pairs_is_refused_before_the_run(small_machine, name, monkeypatch):
    monkeypatch.setattr("attnlab.engine.simulation._integrate", None)              # it must not come to that
    x0 = np.random.default_rng(0).normal(size=(20_000, 2))
    with pytest.raises(TooLarge, match=f"pairs of 20000 tokens, for the observable {name}, need 19.2 GB .* Leave it out"):
        al.simulate(al.Weights(V=np.eye(2)), x0, t_end=1.0, observe=[name])


def test_a_limit_of_a_spec_is_refused_in_the_same_way(small_machine):
    with pytest.raises(TooLarge, match="need 48 GB of memory"):
        limit_of_spec(spec_of(start__n=10**9))


def test_many_layers_of_the_reference_are_refused_for_certify(small_machine):
    x0 = np.random.default_rng(0).normal(size=(20_000, 2))
    with pytest.raises(TooLarge, match="pairs of 20000 tokens, for certify=True, need 19.2 GB"):
        al.simulate(al.Weights(V=np.eye(2)), x0, layers=1, certify=True)


def test_what_fits_is_not_refused(small_machine):
    check_memory("Numbers", 2 * GIGABYTE // 8, "")
    with pytest.raises(TooLarge, match=r"^Numbers need 2\.01 GB of memory, and 2 GB are available\. Stop\.$"):
        check_memory("Numbers", int(2.01 * GIGABYTE / 8), "Stop.")


def test_this_machine_says_how_much_memory_it_has():
    """Some of it, and less than a petabyte; a limit of the process counts."""
    assert 10**7 < available_bytes() < 10**15


def test_a_limit_of_the_process_is_seen():
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)
    if before[0] != resource.RLIM_INFINITY:
        pytest.skip("this process has a limit already")
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * 4096
    try:
        resource.setrlimit(resource.RLIMIT_AS, (used + 10**9, before[1]))
        found = available_bytes()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert 0.5e9 < found < 1.5e9


# ------------------------------------------------------------------------------------------- what was seen


def nested(levels):
    value = 1.0
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("feedforward", [3, "relu", [1], True])
def test_a_feedforward_that_is_no_table_is_a_sentence(feedforward):
    with pytest.raises(ValueError, match=r"Spec\.dynamics: feedforward must be an attnlab\.FeedForward or a table"):
        run_spec(spec_of(dynamics__feedforward=feedforward))


@pytest.mark.parametrize("levels", [20, 900, 5000])
def test_deep_nesting_is_a_sentence(levels, tmp_path):
    with pytest.raises(ValueError, match="at most 12 lists or tables inside each other"):
        spec_of(start__x=nested(levels))
    text = '{"weights": {"family": "given", "V": ' + "[" * levels + "]" * levels + '}, "start": {}, "solve": {}}'
    for suffix, words in ((".json", text), (".toml", f"[weights]\nV = {'[' * levels}{']' * levels}\n[start]\n[solve]\n")):
        path = tmp_path / f"deep{suffix}"
        path.write_text(words)
        with pytest.raises(ValueError, match="at most 12 lists or tables inside each other"):
            Spec.load(path)


def test_batches_are_the_same_streams_as_ever():
    """Replica i is drawn with the i-th child of the seed, one by one now; in one go before."""
    x0 = resolve(spec_of(start__batch=3, start__rng=7)).x0
    streams = np.random.SeedSequence(7).spawn(3)
    assert np.array_equal(x0, [start_laws["normal"](4, 2, rng=np.random.default_rng(stream)) for stream in streams])


@pytest.mark.parametrize(
    "changes", [{"dynamics__feedforward": 3}, {"start__n": 10**15}, {"start__batch": 10**12}, {"solve__saves": 10**12}]
)
def test_the_command_line_says_it_in_one_line(changes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec_of(**changes).save("bad.toml")
    for verb in ("run", "limit"):
        if verb == "limit" and "solve__saves" in changes:
            continue                                        # a limit saves nothing
        refused(verb, "bad.toml")


# ------------------------------------------------------------------------------------------- anything


JUNK = [
    "word", "", "softmax", [], [1, 2], [0.5], [[1.0, 2.0], [3.0]], [[1.0, 0.0], [0.0, 1.0]], ["a", 1], [None], {}, {"a": 1},
    {"W": 3}, {"sigma": 5},
    float("nan"), float("inf"), -1, 0, 1, 2, 2.5, -0.0, 1e308, -1e308, 1e-308, 10**9, 10**12, -(10**12), 10**30,
    10**400, True, False, None, [1e308, -1e308], [[1e308, 1.0], [1.0, 1e308]], "adaptive", "euler", "z", [3, 2, 1], [0.0, 1e308],
    [[[1.0]]], nested(40), list(range(50)), "x" * 1000, "\n", 0.1, 1e-9,
]
SMALL = {
    "weights": [
        {"family": "identity", "d": 2}, {"family": "gaussian", "d": 2, "heads": 2}, {"family": "good_triple", "d": 2},
        {"family": "paranormal", "d": 2}, {"family": "spectrum", "eigenvalues": [[0.25, 0.5]]},
        {"family": "goe", "d": 2}, {"family": "given", "V": [[1.0, 0.5], [0.0, -0.5]]},
        {"family": "published", "matrix": "hyperplanes_2d"},
    ],
    "start": [
        {"law": "normal", "n": 5}, {"law": "uniform_cube", "n": 4, "low": -2}, {"law": "sphere", "n": 6},
        {"law": "planted", "n": 6}, {"law": "given", "x": [[1.0, 0.5], [0.0, -1.0]]}, {"law": "normal", "n": 3, "batch": 2},
    ],
    "dynamics": [{}, {"geometry": "sphere"}, {"kernel": "hardmax"}, {"feedforward": {"sigma": "tanh"}}],
    "solve": [
        {"t_end": 2.0, "max_steps": 200}, {"layers": 4, "dt": 0.5},
        {"t_end": 1.0, "stepper": "rk4", "dt": 0.1, "max_steps": 200},
    ],
}


KEYS = {"dynamics": DYNAMICS_KEYS, "solve": SOLVE_KEYS}
NUMBERS = [value for value in JUNK if isinstance(value, int | float)]


def attacked(rng):
    """The tables of a small Spec, some of whose keys were given other values: numbers for numbers, or anything."""
    tables = {section: copy.deepcopy(rng.choice(choices)) for section, choices in SMALL.items()}
    if tables["dynamics"].get("geometry") == "sphere":
        tables["start"] = {"law": "sphere", "n": 4}
    if rng.random() < 0.3:
        tables["observe"] = rng.sample(list(observables), 2) if rng.random() < 0.8 else rng.choice(JUNK)
    for _ in range(rng.choice([1, 1, 2, 3])):
        section = rng.choice(list(SMALL))
        table = tables[section]
        if rng.random() < 0.02 or not isinstance(table, dict):
            tables[section] = rng.choice(JUNK)
            continue
        function = {"weights": weights_families, "start": start_laws}.get(section, {})
        name = table.get("family", table.get("law"))
        has_function = isinstance(name, str) and name in function
        known = inspect.signature(function[name]).parameters if has_function else KEYS.get(section, ())
        key = rng.choice([*known, *table, *(["batch"] if section == "start" else [])])
        table[key] = rng.choice(JUNK if rng.random() < 0.4 else NUMBERS)
    return tables


def check_attack(seed):
    """A result whose numbers are finite where it says so, or one of the sentences that the command line prints."""
    tables = attacked(random.Random(seed))
    try:
        spec = Spec.from_dict(tables)
    except (ValueError, TypeError) as problem:
        assert str(problem), tables
        return
    try:
        with np.errstate(all="ignore"):
            run = run_spec(spec, throw=False)
    except (ValueError, UnknownName, OverflowError, DrownedInRounding) as problem:
        assert str(problem), tables
        return
    assert_finite_where_good(run)


@pytest.mark.parametrize("block", range(10))
def test_mutated_specs(small_machine, block):
    for seed in range(40 * block, 40 * (block + 1)):
        check_attack(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(50))
def test_very_many_mutated_specs(small_machine, block):
    for seed in range(10**6 + 200 * block, 10**6 + 200 * (block + 1)):
        check_attack(seed)


def test_text_of_strangers_is_a_spec_or_a_sentence(tmp_path):
    """Bytes of a Spec exchanged at random."""
    whole = json.dumps(spec_of().to_dict())
    rng = random.Random(0)
    for number in range(300):
        text = list(whole)
        for _ in range(rng.randint(1, 6)):
            text[rng.randrange(len(text))] = chr(rng.choice([0, 34, 44, 48, 57, 91, 92, 93, 123, 125, 0x2028, 0x1F600]))
        path = tmp_path / f"spec{number % 2}.{'json' if number % 2 else 'toml'}"
        path.write_text("".join(text), encoding="utf-8")
        try:
            Spec.load(path)
        except (ValueError, TypeError) as problem:
            assert str(problem).startswith(str(path))
