"""What a Spec may not ask for: more memory than there is, endless layers, deep nesting.
tests/attack tries all the rest.
"""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest

import attnlab as al
from attnlab import Spec, capacity
from attnlab.capacity import TooLarge, available_bytes, check_memory
from attnlab.run import limit_of_spec, resolve, run_spec
from attnlab.starts import start_laws
from clock import least_seconds, seconds_of
from command_line import refused

GIGABYTE = 10**9


@pytest.fixture
def small_machine(monkeypatch):
    """A machine with 2 GB of free memory, so that a test refuses the same everywhere."""
    monkeypatch.setattr("attnlab.capacity.available_bytes", lambda: 2 * GIGABYTE)


def spec_of(**changes):
    """A small Spec with some keys of its sections changed: weights__d=3."""
    tables = {
        "weights": {"family": "identity"},
        "start": {"law": "normal", "n": 4, "d": 2},
        "solve": {"t_end": 1.0, "saves": 5},
    }
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
        (
            {"solve__saves": 4 * 10**7, "start__n": 1},
            None,
            "Choose fewer saves, tokens or members.",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_numbers_and_at_once(
    small_machine, changes, needed, advice
):
    problems: list[ValueError] = []

    def ask() -> None:
        with pytest.raises(ValueError) as caught:
            run_spec(spec_of(**changes))
        problems.append(caught.value)

    # a refusal takes a millisecond, after what it imports the first time
    assert least_seconds(lambda: seconds_of(ask, time.process_time), 2.0) < 2.0
    words = str(problems[-1])
    assert (
        isinstance(problems[-1], TooLarge)
        and words.endswith(advice)
        and "2 GB are available" in words
    )
    if needed is not None:
        assert f"need {needed / 1e9:.3g} GB of memory" in words


def test_layers_without_end_are_refused(small_machine):
    for layers, words in (
        (10**12, "layers must be at most 100000000"),
        (10**8, "Give saves= or times=, or choose fewer layers"),
    ):
        tables = {
            "weights": {"family": "identity"},
            "start": {"law": "normal", "n": 4, "d": 2},
            "solve": {"layers": layers},
        }
        with pytest.raises(ValueError, match=words):
            run_spec(Spec.from_dict(tables))


@pytest.mark.parametrize("name", ["attention_rank", "attention_entropy"])
def test_an_observable_of_pairs_is_refused_before_the_run(small_machine, name, monkeypatch):
    monkeypatch.setattr("attnlab.engine.simulation._integrate", None)  # it must not come to that
    x0 = np.random.default_rng(0).normal(size=(20_000, 2))
    with pytest.raises(
        TooLarge,
        match=f"pairs of 20000 tokens, for the observable {name}, need 19.2 GB .* Leave it out",
    ):
        al.simulate(al.Weights(V=np.eye(2)), x0, t_end=1.0, observe=[name])


def test_a_limit_of_a_spec_is_refused_in_the_same_way(small_machine):
    with pytest.raises(TooLarge, match="need 48 GB of memory"):
        limit_of_spec(spec_of(start__n=10**9))


def test_many_layers_of_the_reference_are_refused_for_certify(small_machine):
    x0 = np.random.default_rng(0).normal(size=(20_000, 2))
    with pytest.raises(
        TooLarge, match="pairs of 20000 tokens, for measure_error=True, need 19.2 GB"
    ):
        al.simulate(al.Weights(V=np.eye(2)), x0, layers=1, measure_error=True)


def test_what_fits_is_not_refused(small_machine):
    check_memory("Numbers", 2 * GIGABYTE // 8, "")
    with pytest.raises(
        TooLarge, match=r"^Numbers need 2\.01 GB of memory, but 2 GB are available\. Stop\.$"
    ):
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


# ------------------------------------------------------------------------------------------- what
# was seen


def nested(levels):
    value = 1.0
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("feedforward", [3, [1], True])
def test_a_feedforward_that_is_no_table_is_a_sentence(feedforward):
    with pytest.raises(
        ValueError, match=r"Spec\.dynamics: feedforward must be an attnlab\.FeedForward or a table"
    ):
        run_spec(spec_of(dynamics__feedforward=feedforward))


@pytest.mark.parametrize("levels", [20, 900, 5000])
def test_deep_nesting_is_a_sentence(levels, tmp_path):
    with pytest.raises(ValueError, match="at most 12 lists or tables inside each other"):
        spec_of(start__x=nested(levels))
    text = (
        '{"weights": {"family": "given", "V": '
        + "[" * levels
        + "]" * levels
        + '}, "start": {}, "solve": {}}'
    )
    for suffix, words in (
        (".json", text),
        (".toml", f"[weights]\nV = {'[' * levels}{']' * levels}\n[start]\n[solve]\n"),
    ):
        path = tmp_path / f"deep{suffix}"
        path.write_text(words)
        with pytest.raises(ValueError, match="at most 12 lists or tables inside each other"):
            Spec.load(path)


def test_batches_are_the_same_streams_as_ever():
    """Member i is drawn with the i-th child of the seed, one by one now; in one go before."""
    x0 = resolve(spec_of(start__batch=3, start__rng=7)).x0
    streams = np.random.SeedSequence(7).spawn(3)
    assert np.array_equal(
        x0, [start_laws["normal"](4, 2, rng=np.random.default_rng(stream)) for stream in streams]
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"dynamics__feedforward": 3},
        {"start__n": 10**15},
        {"start__batch": 10**12},
        {"solve__saves": 10**12},
    ],
)
def test_the_command_line_says_it_in_one_line(changes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec_of(**changes).save("bad.toml")
    for verb in ("run", "limit"):
        if verb == "limit" and "solve__saves" in changes:
            continue  # a limit saves nothing
        refused(verb, "bad.toml")


@pytest.mark.parametrize(("measure_error", "copies"), [(False, 4), (True, 10)])
def test_an_error_that_is_measured_counts_in_memory(monkeypatch, measure_error, copies):
    """One run holds about 4 arrays of its states at its peak; measuring its error takes 9 or 10
    (seen: 9).
    """
    saves, x0 = 200_000, np.random.default_rng(0).normal(size=(40, 2))
    states = 8 * saves * x0.size
    monkeypatch.setattr(capacity, "available_bytes", lambda: int(0.95 * copies * states))
    with pytest.raises(capacity.TooLarge, match="200000 saved times of 40 tokens"):
        al.simulate(
            al.Weights(V=np.eye(2)), x0, t_end=1.0, saves=saves, measure_error=measure_error
        )


def test_memory_that_runs_out_is_a_sentence(monkeypatch):
    from attnlab.engine import members

    def fill(*arguments):
        raise MemoryError("Unable to allocate 1 TiB")

    monkeypatch.setattr(members, "integrate_members", fill)
    with pytest.raises(
        capacity.TooLarge, match="2 tokens in dimension 2 need more memory than this machine has"
    ):
        al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0)


def test_a_run_that_is_off_by_infinity_says_so_without_a_warning():
    from attnlab.engine.simulation import _relative_difference

    run = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0, saves=2)
    far = dataclasses.replace(run, log_scale=np.array([0.0, 800.0]))
    assert _relative_difference(far, run) == np.inf


def test_the_old_name_of_measure_error_is_refused_with_the_new_one(polytope):
    old = dataclasses.replace(polytope, solve={**polytope.solve, "certify": True})
    with pytest.raises(ValueError, match=r"Spec\.solve\.certify has a new name, measure_error"):
        al.run_spec(old)
