"""The certified end of a flow: planted heads with a known end, its words, and its picture."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models.studies.flow_end import SHOWN, leading_eigenvalue, read_end, times_to_show
from attnlab.models.studies.flow_findings import say_end, say_flow
from attnlab.models.studies.flows import flow
from command_line import attnlab

WORDS = ("a", "b", "c", "d", "e")


def head(block):
    """A head of width 2 in R^6 with V = B C, whose C B is this block."""
    rng = np.random.default_rng(4)
    B = np.linalg.qr(rng.normal(size=(6, 2)))[0]
    return al.Weights(V=(B, np.asarray(block) @ B.T), Q=B.T, K=B.T), B


def tokens(B, points):
    return np.asarray(points, dtype=float) @ B.T


def test_the_leading_eigenvalue_is_that_of_the_matrix():
    rng = np.random.default_rng(0)
    for k in (2, 3, 6):
        B, C = rng.normal(size=(6, k)), rng.normal(size=(k, 6))
        values = np.linalg.eigvals(B @ C)
        found = leading_eigenvalue(al.Weights(V=(B, C)))
        assert found.real == pytest.approx(max(values.real.max(), 0.0 if k < 6 else -np.inf))
        assert found.imag >= -1e-12
    assert leading_eigenvalue(al.Weights(V=-np.eye(3))) == -1.0
    assert leading_eigenvalue(head([[-1.0, 0.0], [0.0, -2.0]])[0]) == 0.0  # the kernel's


def test_times_to_show_are_in_units_of_the_leading_rate():
    np.testing.assert_allclose(times_to_show(al.Weights(V=np.diag([2.0, -5.0]))), SHOWN / 2.0)
    assert times_to_show(al.Weights(V=-np.eye(2))).size == 0
    assert times_to_show(head([[0.0, -1.0], [1.0, 0.0]])[0]).size == 0


def test_a_head_with_a_pair_ends_as_a_group_that_rotates_without_a_final_leader():
    weights, B = head([[1.0, -0.2], [0.2, 1.0]])
    x0 = tokens(B, [[2.0, 0.3], [1.8, -0.2], [2.2, 0.1], [1.5, 0.0], [1.9, 0.2]])
    limit = al.limit(weights, x0)
    end = read_end(limit)
    assert end.groups == ((0, 1, 2, 3, 4),) and end.leaders == (None,) and end.rotates
    assert end.period == pytest.approx(2 * np.pi / 0.2) and end.rate == pytest.approx(1.0 + 0.2j)
    assert end.horizon == limit.horizon and end.points.shape == (1, limit.basis.shape[1])
    said = say_end(end, WORDS)
    assert f"up to lambda_1 t = {limit.horizon:.4g}" in said  # the rate is 1
    assert "all 5 tokens end together, as one group that rotates" in said
    assert "take the lead in turn" in said and "none is the final leader" in said
    assert "leader is" not in said


def test_only_a_certificate_of_rotation_says_that_a_group_rotates():
    weights, B = head([[1.0, -0.2], [0.2, 1.0]])
    x0 = tokens(B, [[2.0, 0.3], [1.8, -0.2], [2.2, 0.1], [1.5, 0.0], [1.9, 0.2]])
    limit = al.limit(weights, x0)
    assert limit.stats["kind"] == "rotating group" and read_end(limit).rotates
    for kind in ("one group", "certified"):  # an open leader under a complex pair is not enough
        assert not read_end(replace(limit, stats={**limit.stats, "kind": kind})).rotates
    alone = al.limit(weights, x0[:1])
    assert alone.count == 1 and not read_end(alone).rotates


def test_a_head_with_a_real_leader_names_the_token_that_leads():
    weights, B = head([[1.0, 0.0], [0.0, 1.0]])
    limit = al.limit(weights, tokens(B, [[1.0, 0.0], [3.0, 0.1], [2.0, -0.1], [-2.0, 0.0]]))
    end = read_end(limit)
    assert end.groups == ((0, 1, 2), (3,)) and end.leaders == (1, 3) and not end.rotates
    assert end.horizon is None
    said = say_end(end, WORDS)
    assert said.startswith("Certified for ever") and "2 groups: a, b, c; d" in said
    assert "The leaders are b, d." in said and "rotate" not in said
    np.testing.assert_allclose(end.points, limit.points[[0, 3]][:, end.columns])


def test_the_leading_direction_comes_first():
    """The columns of limit.basis need not be in the order of their rates."""
    rng, seen = np.random.default_rng(0), set()
    for _ in range(4):
        B, S = np.linalg.qr(rng.normal(size=(9, 4)))[0], rng.normal(size=(4, 4))
        S = S + S.T
        limit = al.limit(al.Weights(V=(B, S @ B.T), Q=B.T, K=B.T), rng.normal(size=(5, 9)))
        end = read_end(limit)
        found = [v @ B @ S @ B.T @ v / (v @ v) for v in limit.basis.T[end.columns]]
        np.testing.assert_allclose(found, np.sort(np.linalg.eigvalsh(S))[::-1][: len(found)])
        np.testing.assert_allclose(
            end.points, [limit.points[group[0]][end.columns] for group in end.groups]
        )
        seen.add(tuple(end.columns))
    assert len(seen) > 1


def test_where_nothing_is_certified_there_is_no_end():
    assert read_end(al.limit(al.Weights(V=-np.eye(2)), [[1.0, 0.0], [0.0, 1.0]])) is None
    weights, B = head([[1.0, -0.2], [0.2, 1.0]])
    undecided = al.limit(weights, tokens(B, np.random.default_rng(0).normal(size=(9, 2))), work=1.0)
    assert undecided.grade == "undecided" and read_end(undecided) is None


@pytest.fixture(scope="module")
def planted():
    """A tiny BERT whose head 0 of layer 0 has the leading pair 1 ± 0.2i: W_V W_O is a rotation."""
    state, raw = tiny_models.bert()
    at = "bert.encoder.layer.0.attention."
    k = raw["hidden_size"] // raw["num_attention_heads"]
    block = 0.1 * np.eye(k)
    block[:2, :2] = [[1.0, -0.2], [0.2, 1.0]]
    C = state[f"{at}self.value.weight"][:k]
    state[f"{at}output.dense.weight"][:, :k] = np.linalg.pinv(C) @ block
    return state, raw


def test_a_flow_carries_its_end_and_draws_it(planted, tmp_path):
    from attnlab.render.flow_figure import draw_flow

    model = al.models.load(planted[0], config=planted[1])
    found = flow(model, 0, 0, ids=[3, 1, 4, 1, 5], t_end=1.0, saves=4, check=False)
    limit, end = found.limit, found.end
    assert end is not None and end.rotates and end.rate == pytest.approx(1.0 + 0.2j, abs=1e-6)
    rate = end.rate.real
    assert {round(rate * t, 6) for t in limit.times} >= {round(t, 6) for t in SHOWN}
    late = (limit.times >= limit.t) & (limit.times <= limit.horizon)
    np.testing.assert_allclose(
        limit.path[late], np.broadcast_to(limit.points, limit.path[late].shape), atol=limit.error
    )
    early = np.abs(limit.path[0] - limit.points).max()
    assert early > 1e3 * limit.error  # the way there is on the picture
    longer = replace(found.run, times=found.run.times * (2.0 * end.decided))
    assert "shorter" in "".join(say_flow(found))
    assert "shorter" not in "".join(say_flow(replace(found, run=longer)))
    figure = draw_flow(found)
    figure.savefig(tmp_path / "end.png")
    titles = [axes.get_title() for axes in figure.axes]
    groups = "1 group that rotates" if len(end.groups) == 1 else "groups that rotate"
    assert any("where they end" in title and groups in title for title in titles)
    assert any("certified" in title and "λ₁ t" in title for title in titles)


def test_the_command_says_and_records_the_end(planted, tmp_path):
    folder = tiny_models.write_folder(tmp_path / "tiny", *planted)
    given = ["--layer", "0", "--head", "0", "--ids", "3,1,4,1,5", "--t-end", "1", "--no-check"]
    record = json.loads(attnlab("flow", folder, *given, "--json").stdout)
    end = record["limit"]
    assert end["rotates"] and end["leaders"] == [-1] * 5 and not end["certified"]
    assert end["horizon_lambda1_t"] == pytest.approx(end["horizon"], rel=1e-5)
    assert np.shape(end["points"]) == (len(end["groups"]), end["known_directions"])
    said = next(sentence for sentence in record["said"] if sentence.startswith("Certified up to"))
    assert "none is the final leader" in said
    assert "The run itself is shorter: it ends at lambda_1 t = 1," in said
