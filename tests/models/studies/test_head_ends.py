"""Where heads end: planted heads with a known end, random heads like them, and the comparison."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import ks_2samp

import attnlab as al
import tiny_models
from attnlab.models.studies.head_ends import (
    ENDS,
    HeadEnd,
    Start,
    compare_ends,
    end_of,
    heads_of,
    measure_end,
    measure_head,
    obstacle_of,
)
from attnlab.models.studies.null import draw_head, draw_like


def factored(block, d=6):
    k = len(block)
    B = np.linalg.qr(np.random.default_rng(4).normal(size=(d, k)))[0]
    return al.Weights(V=(B, np.asarray(block) @ B.T), Q=B.T, K=B.T), B


NEAR = [[2.0, 0.3], [1.8, -0.2], [2.2, 0.1], [1.5, 0.0]]
TWO = [[1.0, 0.0], [3.0, 0.1], [2.0, -0.1], [-2.0, 0.0]]
PAIR = [[1.0, -0.2], [0.2, 1.0]]


@pytest.mark.parametrize(
    ("block", "points", "end", "groups"),
    [
        (np.eye(2), NEAR, "all together", (4,)),
        (np.eye(2), TWO, "two or more", (3, 1)),
        (PAIR, NEAR, "together, rotating", (4,)),
        (-np.eye(2), NEAR, "nothing grows", None),
    ],
)
def test_planted_heads_end_where_they_must(block, points, end, groups):
    weights, B = factored(block)
    row = measure_end(weights, np.array(points) @ B.T, "full")
    assert end_of(row) == end
    assert groups is None or row.groups == groups
    assert (row.horizon is not None) == ("rotating" in end)
    assert row.lambda1 == pytest.approx((max(block[0][0], 0.0), abs(block[0][1])))  # 0: the kernel
    if end == "together, rotating":
        assert not row.has_leaders
    assert HeadEnd.of_record(json.loads(json.dumps(row.record))) == row


def test_the_mask_is_part_of_the_question():
    weights, B = factored(np.eye(2))
    x0 = np.array([[-2.0, 0.0], [1.0, 0.0], [3.0, 0.1], [2.0, -0.1]]) @ B.T
    full, causal = (measure_end(weights, x0, mask) for mask in ("full", "causal"))
    assert full.groups == (3, 1)
    # token 0 sees only itself; token 1 follows itself, since token 0 is on the other side; 3 follows 2
    assert causal.groups == (2, 1, 1)


def test_under_the_causal_mask_a_group_rotates_for_ever():
    weights, B = factored(PAIR)
    row = measure_end(weights, np.array([NEAR[i] for i in (2, 3, 1, 0)]) @ B.T, "causal")
    assert end_of(row) == "groups, rotating" and row.horizon is None and row.groups == (2, 1, 1)


def test_without_work_the_obstacle_is_named():
    weights, B = factored(PAIR)
    x0 = np.random.default_rng(0).normal(size=(9, 2)) @ B.T
    row = measure_end(weights, x0, "full", work=1.0)
    assert end_of(row) == "undecided" and "work" in row.obstacle and row.reason
    assert row.count is None and not row.has_leaders


def test_the_obstacle_is_read_from_the_reason():
    text = "Undecided (slide) at t = 3. No groups are certified either (stalled): the step (1e-3)."
    assert obstacle_of(text) == "slide, stalled"
    assert obstacle_of("Undecided (work) at t = 1. No groups are certified either (work): x") == (
        "work"
    )
    assert obstacle_of("Undecided (tie): a (b)") == "tie"


# --------------------------------------------------------------------------------------------------
# random heads


def test_a_random_head_has_shapes_and_norms_of_its_head_and_nothing_else():
    rng = np.random.default_rng(1)
    B, C = 3.0 * rng.normal(size=(12, 3)), rng.normal(size=(3, 12))
    given = al.Weights(V=(B, C), Q=rng.normal(size=(4, 12)), K=7.0 * rng.normal(size=(4, 12)))
    drawn = draw_like(given, rng=np.random.default_rng(0))
    for one, other in (
        (given.Q[0], drawn.Q[0]),
        (given.K[0], drawn.K[0]),
        (B, drawn.V[0][0]),
        (C, drawn.V[1][0]),
    ):
        assert one.shape == other.shape
        assert np.linalg.norm(one) == pytest.approx(np.linalg.norm(other), rel=1e-12)
        cosine = (one * other).sum() / np.linalg.norm(one) / np.linalg.norm(other)
        assert abs(cosine) < 5 / np.sqrt(one.size)
    again = draw_like(given, rng=np.random.default_rng(0))
    assert np.array_equal(again.Q, drawn.Q)
    with pytest.raises(ValueError, match="one head with factors"):
        draw_like(al.Weights(V=np.eye(3)), rng=rng)


def test_random_heads_have_the_law_of_the_null_of_the_spectra():
    """The leading modulus of C B over |B| |C|, drawn whole and drawn as small matrices."""
    d, r, k, draws = 10, 3, 4, 400
    rng = np.random.default_rng(5)
    given = al.Weights(
        V=(rng.normal(size=(d, r)), rng.normal(size=(r, d))),
        Q=rng.normal(size=(k, d)),
        K=rng.normal(size=(k, d)),
    )
    size = np.linalg.norm(given.V[0][0]) * np.linalg.norm(given.V[1][0])

    def whole():
        B, C = (factor[0] for factor in draw_like(given, rng=rng).V)
        return np.abs(np.linalg.eigvals(C @ B)).max() / size

    def small():
        head = draw_head(d, r, k, rng=rng)
        return np.abs(np.linalg.eigvals(head.T)).max() / head.value_size

    assert ks_2samp([whole() for _ in range(draws)], [small() for _ in range(draws)]).pvalue > 0.01


# --------------------------------------------------------------------------------------------------
# models


def test_heads_of_a_model_are_counted_once_where_layers_share_them():
    for family, layers in (("bert", None), ("albert", 1)):
        state, raw = getattr(tiny_models, family)()
        model = al.models.load(state, config=raw)
        found = list(heads_of(model))
        assert len(found) == (layers or model.config.layers) * model.config.heads
        assert len(set(found)) == len(found)


def test_a_head_is_measured_from_what_its_layer_reads():
    state, raw = tiny_models.bert()
    model = al.models.load(state, config=raw)
    start = Start((3, 1, 4, 1, 5))
    x0 = start.tokens(model, 1)
    expected = measure_end(model.weights(1, 0), x0, "full")
    found = measure_head(model, 1, 0, start)
    assert (found.grade, found.count, found.groups) == (
        expected.grade,
        expected.count,
        expected.groups,
    )
    one, same, other = (measure_head(model, 1, 0, start, rng=seed) for seed in (1, 1, 2))
    assert (one.grade, one.horizon) == (same.grade, same.horizon)
    assert one.horizon is None or one.horizon != other.horizon or one.grade != other.grade


# --------------------------------------------------------------------------------------------------
# the comparison


def row(end):
    return HeadEnd(
        grade="undecided" if end in ("nothing grows", "undecided") else "group",
        count=2 if end.startswith(("two", "groups")) else 1,
        lambda1=(1.0, 0.5 if "rotating" in end else 0.0),
        horizon=9.0 if end.endswith(("rotating", "time")) else None,
        nothing_grows=end == "nothing grows",
        has_leaders=False,
        groups=(),
        obstacle="",
        reason="",
        seconds=0.0,
    )


def test_the_comparison_counts_pairs():
    assert [end_of(row(end)) for end in ENDS] == list(ENDS)
    trained = [row("all together")] * 9 + [row("undecided")]
    random = [row("together, rotating")] * 8 + [row("all together")] * 2
    found = {one.end: one for one in compare_ends(trained, random)}
    together = found["all together"]
    assert (together.count, together.random_count, together.total) == (9, 2, 10)
    # pairs: 8 only trained, 1 only random, 1 both
    assert (together.sign.wins, together.sign.losses, together.sign.ties) == (8, 1, 1)
    assert together.sign.p == pytest.approx(2 * (1 + 9) / 2**9)  # 8 or 9 heads of 9 flips, twice
    assert together.p >= together.sign.p
    assert together.low < 0.9 < together.high and found["two or more"].sign.p == 1.0
    assert together.block_p == pytest.approx(together.sign.p)
    in_two = compare_ends(trained, random, blocks=["a"] * 5 + ["b"] * 5)
    assert {one.end: one.block_p for one in in_two}["all together"] == pytest.approx(0.5)
    with pytest.raises(ValueError, match="one random head"):
        compare_ends(trained, random[:3])
