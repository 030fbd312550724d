"""From a Spec to a run: names and keys are checked, streams are independent, and the run knows its
Spec.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from attnlab import RunFailed, RunInterrupted, Spec, Status, UnknownName, engine
from attnlab.examples import example_names, example_spec
from attnlab.run import DYNAMICS_KEYS, SOLVE_KEYS, resolve, run_spec
from attnlab.starts import start_laws
from attnlab.weights import weights_families
from places import ROOT

IDENTITY = {"family": "identity"}
CUBE = {"law": "uniform_cube", "n": 6, "d": 3, "rng": 0}
SHORT = {"t_end": 0.5, "saves": 3}


def spec(weights=IDENTITY, start=CUBE, solve=SHORT, **more):
    return Spec(weights=weights, start=start, solve=solve, **more)


# ------------------------------------------------------------------------------------------------
# what comes out


def test_a_spec_becomes_arrays():
    found = resolve(spec(dynamics={"beta": 2, "mask": "causal"}, observe=["diameter"]))
    np.testing.assert_array_equal(found.dynamics.weights.V, np.eye(3)[None])
    np.testing.assert_array_equal(found.x0, start_laws["uniform_cube"](6, 3, rng=0))
    assert (found.dynamics.beta, found.dynamics.mask, found.dynamics.is_layers) == (
        2.0,
        "causal",
        False,
    )
    assert found.solve == {"t_end": 0.5, "saves": 3, "observe": ("diameter",)}
    assert (found.dynamics.beta, found.dynamics.mask) == (2, "causal") and found.spec.dynamics == {
        "beta": 2,
        "mask": "causal",
    }
    layers = resolve(spec(solve={"layers": 4, "dt": 0.25}))
    assert layers.solve == {"layers": 4, "observe": ()} and layers.dynamics.dt == 0.25


def test_layers_and_feedforward_are_understood():
    assert resolve(spec(solve={"layers": 4, "dt": 0.25})).dynamics.dt == 0.25
    forward = resolve(
        spec(dynamics={"feedforward": {"sigma": "tanh", "W": np.eye(3)}})
    ).dynamics.feedforward
    assert forward.sigma == "tanh" and forward.W.shape == (3, 3)


def test_a_missing_d_is_taken_from_the_other_table():
    assert resolve(spec(weights={"family": "goe"})).dynamics.weights.d == 3
    no_d = {"law": "uniform_cube", "n": 6}
    assert resolve(
        spec(weights={"family": "published", "matrix": "hyperplanes_2d"}, start=no_d)
    ).x0.shape == (6, 2)
    assert resolve(spec(weights={"family": "goe", "d": 4}, start=no_d)).x0.shape == (6, 4)
    with pytest.raises(ValueError, match=r"Spec.start \(law = 'uniform_cube'\) needs the key 'd'"):
        resolve(spec(start=no_d))


def test_every_key_of_the_tables_is_an_option_of_simulate():
    options = {
        name
        for name, p in inspect.signature(engine.simulate).parameters.items()
        if p.kind is p.KEYWORD_ONLY
    }
    assert {*DYNAMICS_KEYS, *SOLVE_KEYS, "observe", "progress", "throw"} == options


# --------------------------------------------------------------------------------------------------
# randomness


def test_the_same_spec_is_the_same_run():
    for given in (
        spec(weights={"family": "goe", "rng": 7}),
        spec(weights={"family": "goe"}, start={**CUBE, "batch": 3}),
    ):
        one, other = resolve(given), resolve(given)
        np.testing.assert_array_equal(one.x0, other.x0)
        np.testing.assert_array_equal(one.dynamics.weights.V, other.dynamics.weights.V)


def test_another_number_is_another_run():
    one, other = (
        resolve(spec(weights={"family": "goe", "rng": r}, start={**CUBE, "rng": r})) for r in (0, 1)
    )
    assert not np.any(one.x0 == other.x0)
    assert not np.any(one.dynamics.weights.V == other.dynamics.weights.V)


def test_members_do_not_depend_on_how_many_there_are():
    few, many = (resolve(spec(start={**CUBE, "batch": b})).x0 for b in (2, 5))
    assert few.shape == (2, 6, 3) and many.shape == (5, 6, 3)
    np.testing.assert_array_equal(few, many[:2])
    assert len(np.unique(many)) == many.size


STARTS = {
    "uniform_cube": {},
    "normal": {},
    "sphere": {},
    "circle": {"d": 2},
    "planted": {},
    "given": {"x": [[1.0, 2.0, 3.0]] * 6},
}


@pytest.mark.parametrize("law", sorted(set(start_laws) - {"text"}))
def test_tokens_of_every_law_can_be_moved(law):
    keys = {"law": law, "n": 6, "d": 3, **STARTS[law]}
    weights = {"family": "identity", "d": keys["d"]}
    places = {"5": [1.245, 1.917, 1e-3][: keys["d"]], "0": [0, -0.1, 7][: keys["d"]]}
    drawn, moved = (
        resolve(spec(weights=weights, start={**keys, **more})).x0
        for more in ({}, {"moved": places})
    )
    np.testing.assert_array_equal(moved[1:5], drawn[1:5])
    np.testing.assert_array_equal(moved[[5, 0]], list(places.values()))
    assert not np.any(moved[[5, 0]] == drawn[[5, 0]])
    np.testing.assert_array_equal(
        resolve(spec(weights=weights, start={**keys, "moved": {}})).x0, drawn
    )


def test_a_moved_start_survives_toml_and_runs():
    given = spec(start={**CUBE, "moved": {"5": [0.1 + 0.2, -1e-17, 3]}})
    for again in (Spec.from_toml(given.to_toml()), Spec.from_json(given.to_json())):
        assert again == given and again.digest() == given.digest() != spec(start=CUBE).digest()
    np.testing.assert_array_equal(run_spec(given).x[0], resolve(given).x0)


def shared_numbers(x0, weights) -> int:
    """How many entries of Q, K, V are one and the same multiple of a token's coordinate."""
    entries = np.concatenate([weights.Q.ravel(), weights.K.ravel(), weights.V.ravel()])
    ratios = np.round(entries[:, None] / x0.ravel(), 9)
    return int(np.unique(ratios, return_counts=True)[1].max())


def test_weights_and_tokens_do_not_share_their_random_numbers():
    """Normal tokens and Gaussian matrices from one and the same stream: the first tokens would be
    the rows of Q.
    """
    found = resolve(
        spec(
            weights={"family": "gaussian", "rng": 0},
            start={"law": "normal", "n": 12, "d": 3, "rng": 0},
        )
    )
    assert shared_numbers(found.x0, weights_families["gaussian"](3, rng=0)) >= 27
    assert shared_numbers(found.x0, found.dynamics.weights) == 1


def test_the_source_repeats_the_draw_by_hand():
    found = resolve(spec(weights={"family": "goe", "rng": 5})).dynamics.weights
    again = eval(
        f"family(**dict({found.source.removeprefix('goe(').removesuffix(')')}))",
        {"family": weights_families["goe"]},
    )
    np.testing.assert_array_equal(again.V, found.V)


# --------------------------------------------------------------------------------------------------
# what is wrong


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (
            {"weights": {"family": "identiy"}},
            "Unknown weights family 'identiy'. Did you mean 'identity'",
        ),
        (
            {"start": {**CUBE, "law": "unifrom_cube"}},
            "Unknown start law 'unifrom_cube'. Did you mean 'uniform_cube'",
        ),
        (
            {"start": {**CUBE, "hihg": 5}},
            r"Unknown key of Spec.start \(law = 'uniform_cube'\) 'hihg'. Did you mean 'high'",
        ),
        (
            {"weights": {**IDENTITY, "rank": 5}},
            r"Unknown key of Spec.weights \(family = 'identity'\) 'rank'",
        ),
        ({"dynamics": {"temperature": 5}}, "Unknown key of Spec.dynamics 'temperature'"),
        ({"dynamics": {"geometry": "shpere"}}, "Unknown geometry 'shpere'. Did you mean 'sphere'"),
        ({"dynamics": {"feedforward": {"sigm": "relu"}}}, "'sigm'. Did you mean 'sigma'"),
        ({"solve": {"t_edn": 5}}, "Unknown key of Spec.solve 't_edn'. Did you mean 't_end'"),
        ({"solve": {"t_end": 1, "beta": 5}}, "Unknown key of Spec.solve 'beta'"),
        ({"observe": ["diametre"]}, "Unknown observable 'diametre'. Did you mean 'diameter'"),
    ],
)
def test_an_unknown_name_or_key_is_a_sentence(parts, sentence):
    with pytest.raises(UnknownName, match=sentence) as caught:
        resolve(spec(**parts))
    assert "Known: " in str(caught.value)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (
            {"weights": {}},
            "Spec.weights needs the key 'family', the name of a weights family. Known: ",
        ),
        ({"start": {"n": 3}}, "Spec.start needs the key 'law', the name of a start law. Known: "),
        (
            {"weights": {"family": 3}},
            "Spec.weights.family must be the name of a weights family, got 3",
        ),
        (
            {"start": {"law": "uniform_cube", "d": 3}},
            r"Spec.start \(law = 'uniform_cube'\) needs the key 'n'. It takes: n, d",
        ),
        (
            {"start": {**CUBE, "rng": 1.5}},
            r"rng of Spec.start \(law = 'uniform_cube'\) must be .*, 0 or more, got 1.5",
        ),
        (
            {"weights": {"family": "goe", "rng": -1}},
            r"rng of Spec.weights \(family = 'goe'\) must be a whole number",
        ),
        ({"start": {**CUBE, "rng": True}}, "must be a whole number, 0 or more, got True"),
        (
            {"start": {**CUBE, "batch": 0}},
            "Spec.start.batch must be a whole number of members, 1 or more, got 0",
        ),
        ({"start": {**CUBE, "batch": 2.0}}, "Spec.start.batch must be a whole number"),
        (
            {"start": {**CUBE, "moved": [1, 2]}},
            r"Spec.start.moved must be a table of tokens .* got \[1, 2\]",
        ),
        (
            {"start": {**CUBE, "moved": {"6": [0, 0, 0]}}},
            "the numbers of tokens as keys, 0 to 5, got '6'",
        ),
        (
            {"start": {**CUBE, "moved": {"-1": [0, 0, 0]}}},
            "the numbers of tokens as keys, 0 to 5, got '-1'",
        ),
        (
            {"start": {**CUBE, "moved": {"05": [0, 0, 0]}}},
            "the numbers of tokens as keys, 0 to 5, got '05'",
        ),
        (
            {"start": {**CUBE, "moved": {"9" * 400: [0, 0, 0]}}},
            "the numbers of tokens as keys, 0 to 5, got '999",
        ),
        (
            {"start": {**CUBE, "moved": {"1": [0, 0]}}},
            r"Spec.start.moved.1 must be a list of d = 3 numbers, got \[0, 0\]",
        ),
        (
            {"start": {**CUBE, "moved": {"1": 3.0}}},
            "Spec.start.moved.1 must be a list of d = 3 numbers, got 3.0",
        ),
        (
            {"start": {**CUBE, "moved": {"1": [0, True, 0]}}},
            "Spec.start.moved.1 must be a list of d = 3 numbers",
        ),
        (
            {"start": {**CUBE, "moved": {"1": [0, "a", 0]}}},
            "Spec.start.moved.1 must be made of real numbers",
        ),
        (
            {"start": {**CUBE, "moved": {"1": [0, 10**299 * 10**10, 0]}}},
            "in the range of double precision",
        ),
        ({"start": {**CUBE, "moved": {"1": [0, 0, 0]}, "batch": 2}}, "Leave out batch or moved"),
        ({"start": {**CUBE, "n": 0}}, "n must be a whole number, at least 1, got 0"),
        (
            {
                "weights": {"family": "published", "matrix": "codimension"},
                "start": {**CUBE, "d": 2},
            },
            "on dimension 3, but d = 2",
        ),
        ({"dynamics": {"beta": "hot"}}, "beta must be a finite number, got 'hot'"),
        ({"solve": {"layers": 3, "dt": -1}}, "dt must be a positive number, got -1"),
    ],
)
def test_a_missing_key_or_a_wrong_value_is_a_sentence(parts, sentence):
    with pytest.raises(ValueError, match=sentence):
        resolve(spec(**parts))


@pytest.mark.parametrize("section", ["weights", "dynamics", "start", "solve"])
def test_observe_in_a_section_is_told_where_it_belongs(section):
    tables = {"weights": IDENTITY, "start": CUBE, "solve": SHORT, "dynamics": {}}
    tables[section] = {**tables[section], "observe": ["diameter"]}
    with pytest.raises(
        ValueError, match=rf"observe is a list at the top of the file, .* inside \[{section}\]"
    ):
        resolve(Spec(**tables))


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (
            {"weights": {"family": "given", "V": [[1, 0], [0]]}},
            "Spec.weights.V must .* row 0 has 2 entries and row 1 has 1.",
        ),
        (
            {"weights": {"family": "given", "V": [[1, 0], [0, 1]], "Q": [[1], [1, 2]]}},
            "Spec.weights.Q must have rows",
        ),
        (
            {"weights": {"family": "given", "V": [[[1, 0], [0, 1]], [[1, 0], [0]]]}},
            r"Spec.weights.V\[1\] must have rows",
        ),
        (
            {"weights": {"family": "given", "B": [[1], []], "C": [[1, 0]]}},
            "Spec.weights.B must have rows of equal length",
        ),
        (
            {"start": {"law": "given", "x": [[1, 2, 3], [1, 2]]}},
            "Spec.start.x must have rows of equal length",
        ),
        (
            {"dynamics": {"feedforward": {"W": [[1, 0, 0], [0, 1]]}}},
            "Spec.dynamics.feedforward.W must have rows of equal length",
        ),
    ],
)
def test_rows_of_different_lengths_are_a_sentence(parts, sentence):
    with pytest.raises(ValueError, match=sentence):
        resolve(spec(**parts))


def test_a_list_of_numbers_and_pairs_is_right():
    assert (
        resolve(
            spec(weights={"family": "spectrum", "eigenvalues": [1.0, [0.5, 0.5]]})
        ).dynamics.weights.d
        == 3
    )


def test_a_part_of_the_name_of_an_observable_finds_it():
    with pytest.raises(UnknownName, match="Did you mean 'attention_entropy'"):
        resolve(spec(observe=["entropy"]))


def test_a_table_is_no_spec():
    with pytest.raises(TypeError, match="A Spec is needed, got dict"):
        resolve({"weights": IDENTITY, "start": CUBE, "solve": SHORT})


@pytest.mark.parametrize("name", sorted(set(weights_families) - {"model"}))
def test_every_family_can_be_named(name):
    family = weights_families[name]
    d = {"given": 2}.get(name, 3)
    found = resolve(
        spec(weights={"family": name, **getattr(family, "example", {})}, start={**CUBE, "d": d})
    )
    assert found.dynamics.weights.d == d


# --------------------------------------------------------------------------------------------------
# running


def test_the_run_knows_its_spec(polytope):
    run = run_spec(polytope)
    assert run.spec == polytope and run.status is Status.OK
    assert run.states.shape == (3, 5, 3)
    np.testing.assert_array_equal(run.times, [0.0, 0.25, 0.5])
    np.testing.assert_array_equal(run.x[0], resolve(polytope).x0)


def test_a_batch_is_the_runs_of_its_members():
    run = run_spec(spec(start={**CUBE, "batch": 2}, observe=["diameter"]))
    assert run.x.shape == (2, 3, 6, 3) and run.observed["diameter"].shape == (2, 3)
    alone = engine.simulate(run.dynamics.weights, run.x[1, 0], t_end=0.5, saves=3)
    np.testing.assert_array_equal(alone.x, run.x[1])


@pytest.mark.parametrize("kind", [RunFailed, RunInterrupted])
def test_a_run_that_fails_still_knows_its_spec(polytope, make_run, monkeypatch, kind):
    def fails(w, x0, **options):
        raise kind("It went wrong.", make_run("plain"))

    monkeypatch.setattr("attnlab.run.simulate", fails)
    with pytest.raises(kind, match="It went wrong.") as caught:
        run_spec(polytope)
    assert type(caught.value) is kind and caught.value.run.spec == polytope


def test_a_real_failure_is_raised_or_returned():
    short = spec(solve={"t_end": 5, "max_steps": 2})
    with pytest.raises(RunFailed, match="max_steps") as caught:
        run_spec(short)
    assert caught.value.run.spec == short
    assert run_spec(short, throw=False).status is Status.MAX_STEPS


@pytest.mark.parametrize("name", example_names())
def test_every_example_runs(name):
    run = run_spec(example_spec(name))
    assert run.is_ok and np.isfinite(run.states).all()


def test_there_are_examples():
    assert {"polytope_3d", "factored", "sphere_3d"} <= set(example_names())


def test_example_specs_are_in_one_folder():
    assert sorted((ROOT / "examples").glob("*.toml")) == []
