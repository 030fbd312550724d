"""The frozen-leader test of the page: where it holds, it says what al.limit certifies; else it says
that it does not know.
"""

from __future__ import annotations

import numpy as np
import pytest
from modules import module_page

import attnlab as al
from attnlab.run import limit_of_spec

page = module_page("record", "frozen", "weights")

CUBE = {"law": "uniform_cube", "low": -5, "high": 5, "n": 30}
ESTIMATE = """specs => specs.map(spec => {
  const take = new record.Recorder(spec, { frames: 2 });
  for (const _ of take.run()) { }
  return { estimate: take.estimate, why: take.why }; })"""


def spectrum(*eigenvalues, basis="identity", rng=0):
    return {"family": "spectrum", "eigenvalues": list(eigenvalues), "basis": basis, "rng": rng}


SPECTRA = {
    "I2": {"family": "identity", "d": 2}, "I3": {"family": "identity", "d": 3}, "1 0.5": spectrum(1, 0.5),
    "1 -0.3": spectrum(1, -0.3), "1 0.9 -0.5": spectrum(1, 0.9, -0.5), "1 1 -0.5": spectrum(1, 1, -0.5),
}  # fmt: skip
OTHERS = {
    "oblique": (spectrum(1, 0.6, -0.5, basis="random", rng=3), {}),
    "a decaying pair": (spectrum(1, [-0.3, 0.8], basis="random"), {}),
    "zero": (spectrum(1, 0.0, -1), {}), "published": ({"family": "published", "matrix": "hyperplanes_3d_decaying"}, {}),
    "scores": ({"family": "given", "V": [[1, 0], [0, 0.7]], "Q": [[1, 0.4], [0.4, 2]]}, {}),
    "indefinite scores": ({"family": "given", "V": [[1, 0], [0, 1]], "Q": [[1, 0], [0, -1]]}, {}),
    "causal": (spectrum(1, 0.8), {"mask": "causal"}), "backward": (spectrum(1, 0.7), {"beta": -1.0}),
    "soft": (spectrum(1, 0.7), {"beta": 0.1}),
}  # fmt: skip


def compare(page, specs: list[dict]) -> int:
    """How many estimates hold; each of them is compared with the certified limit."""
    held = 0
    for spec, found in zip(specs, page.call(ESTIMATE, specs, patience=120), strict=True):
        estimate = found["estimate"]
        if not estimate["holds"]:
            assert estimate["why"] and estimate["count"] == 0 and estimate["leaders"] == []
            continue
        limit = limit_of_spec(al.Spec.from_dict(spec))
        assert limit.certified, limit.reason
        held += 1
        assert estimate["count"] == limit.count, spec
        assert (limit.leaders == -1).sum() == 0 and estimate["leaders"] == limit.leaders.tolist(), (
            spec
        )
        assert len(set(zip(estimate["labels"], limit.labels.tolist(), strict=True))) == limit.count
        points = np.array(estimate["points"])[estimate["labels"]]
        assert np.abs(points - limit.limits).max() < 1e-5 * np.abs(limit.limits).max(), spec
        sizes = np.bincount(estimate["labels"])
        assert (np.diff(sizes) <= 0).all()
    return held


@pytest.mark.parametrize("name", SPECTRA)
def test_six_spectra_of_twelve_starts(page, name):
    specs = [
        {"weights": SPECTRA[name], "start": {**CUBE, "rng": rng}, "solve": {"t_end": 14.0}}
        for rng in range(12)
    ]
    held = compare(page, specs)
    assert held >= (3 if name == "1 0.9 -0.5" else 12)


@pytest.mark.parametrize("name", OTHERS)
def test_other_equations(page, name):
    weights, dynamics = OTHERS[name]
    spec = {"weights": weights, "dynamics": dynamics, "solve": {"t_end": 6.0}}
    assert compare(page, [{**spec, "start": {**CUBE, "rng": rng}} for rng in range(3)]) >= 1


CHECK = """(weights_, dynamics, x, exponent, leaders) => {
  const resolved = weights.resolveWeights({ weights: weights_, start: { law: 'given', x } }), n = x.length, d = x[0].length;
  const test = new frozen.FrozenTest(resolved, { beta: 1, kernel: 'softmax', mask: 'full', ...dynamics }, n);
  const y = Float64Array.from({ length: n * d }, (_, i) => x[i % n][Math.floor(i / n)]);
  return test.check(y, exponent, Int32Array.from(leaders)); }"""


def test_a_large_gap_that_will_close_is_not_settled(page):
    """Token 1 leads itself with a gap of 6301, and yet from t = 21 on token 0 leads it: e^{2t}
    overtakes e^{1.8t}.
    """
    x = np.array([[100.0, 0.0], [99.0, 80.0]])
    assert x[1] @ x[1] - x[1] @ x[0] > 6000
    assert "Token 1 may still turn from 1 to 0" in page.call(
        CHECK, spectrum(1, 0.9), {}, x.tolist(), 0, [0, 1]
    )
    late = al.run_spec(
        al.Spec.from_dict(
            {
                "weights": spectrum(1, 0.9),
                "start": {"law": "given", "x": x.tolist()},
                "solve": {"t_end": 22.5, "saves": 46},
            }
        )
    )
    assert al.attention(late)[0, 1].argmax() == 0
    assert (
        page.call(CHECK, spectrum(1, 1), {}, x.tolist(), 0, [0, 1]) == ""
    )  # with equal growth it stays


def test_what_is_asked_of_leaders(page):
    x = [[100.0, 0.0], [70.0, 5.0], [-120.0, 10.0]]
    assert page.call(CHECK, spectrum(1, 1), {}, x, 0, [0, 0, 2]) == ""
    assert "may still turn" in page.call(
        CHECK, spectrum(1, 1), {}, x, 0, [0, 1, 2]
    )  # 1 does not lead itself
    assert "may still turn" in page.call(
        CHECK, spectrum(1, 1), {}, (0.01 * np.array(x)).tolist(), 0, [0, 0, 2]
    )  # no margin
    assert page.call(CHECK, spectrum(1, 1), {}, (0.01 * np.array(x)).tolist(), 7, [0, 0, 2]) == ""
    assert "itself still attends" in page.call(CHECK, spectrum(1, 1), {}, x, 0, [2, 0, 2])
    assert "may still turn" in page.call(
        CHECK, spectrum(1, 1), {}, [*x, x[0]], 0, [0, 0, 2, 0]
    )  # equal tokens: tied for ever


@pytest.mark.parametrize("weights, dynamics, start, words", [
    ({"family": "identity"}, {"geometry": "sphere"}, {"law": "sphere", "n": 5, "d": 3}, "On the sphere"),
    ({"family": "given", "V": [np.eye(2).tolist()] * 2}, {}, {**CUBE, "n": 5}, "several heads"),
    ({"family": "identity"}, {"kernel": "exp_mean"}, {"law": "normal", "n": 5, "d": 2, "scale": 0.1}, "exp_mean"),
    (spectrum(0.2, [0.5, 1.0]), {}, {**CUBE, "n": 5}, "A complex pair grows"),
    ({"family": "given", "V": [[1, 1], [0, 1]]}, {}, {**CUBE, "n": 5}, "no basis of eigenvectors"),
    ({"family": "identity", "scale": -1}, {}, {**CUBE, "n": 5, "d": 2}, "No direction of V grows"),
    ({"family": "identity"}, {"beta": 0}, {**CUBE, "n": 5, "d": 2}, "beta = 0"),
])  # fmt: skip
def test_no_estimate_where_the_test_says_nothing(page, weights, dynamics, start, words):
    spec = {"weights": weights, "start": start, "dynamics": dynamics, "solve": {"t_end": 1.0}}
    [found] = page.call(ESTIMATE, [spec])
    assert found["estimate"] is None and words in found["why"]
