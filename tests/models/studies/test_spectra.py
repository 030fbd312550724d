"""Spectra of trained heads: planted spectra, dense truth, the null, invariance, the table, figures,
the command line.
"""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest
from scipy import linalg, stats

import attnlab as al
from attnlab.experiments.common.planted_heads import PATTERN, PlantedHeads
from attnlab.models.checkpoints.record import Config
from attnlab.models.studies.head_numbers import Reduced, head_numbers, reduce_head
from attnlab.models.studies.judgement import VERDICTS, is_simple, verdict
from attnlab.models.studies.null import STATISTICS, draw_head, null_of
from attnlab.models.studies.shares import shares_of, summary
from attnlab.models.studies.spectra_table import (
    NUMBERS,
    leading_good_triple,
    measure_heads,
    spectra,
)
from command_line import attnlab, refused
from places import DOCS

pandas = pytest.importorskip("pandas")


def factors(S, d, rng, *, is_oblique=True):
    """B (d, r), C (r, d) with C B = S: the non-zero eigenvalues of B C are those of S."""
    r = len(S)
    B = np.linalg.qr(rng.normal(size=(d, r)))[0]
    if is_oblique:
        B = B @ rng.normal(size=(r, r))
    left = np.linalg.pinv(B)
    return B, S @ left + (rng.normal(size=(r, d)) @ (np.eye(d) - B @ left) if is_oblique else 0.0)


def planted(blocks, d=20, rng=0, **options):
    """B, C whose non-zero eigenvalues are those of the blocks: numbers, or pairs (a, b) for a +-
    bi, or matrices.
    """
    made = [
        (
            np.array([[one[0], one[1]], [-one[1], one[0]]])
            if isinstance(one, tuple)
            else np.atleast_2d(one)
        )
        for one in blocks
    ]
    return factors(linalg.block_diag(*made), d, np.random.default_rng(rng), **options)


def scores_along(B, C, sign, k=6, rng=0):
    """Q, K (k, d) for which phi_1^T M phi_1 has this sign."""
    V = B @ C
    values, vectors = np.linalg.eig(V)
    phi = vectors[:, np.argmax(np.abs(values))].real
    phi /= np.linalg.norm(phi)
    generator = np.random.default_rng(rng)
    Q, K = generator.normal(size=(2, k, len(V)))
    return Q, K + np.outer(sign * 3 * (Q @ phi) - K @ phi, phi)


def numbers(Q, K, B, C):
    return head_numbers(reduce_head(Q, K, B, C))


def gaussian_head(d, r, k, rng=0):
    generator = np.random.default_rng(rng)
    Q, K = generator.normal(size=(2, k, d))
    return Q, K, generator.normal(size=(d, r)), generator.normal(size=(r, d))


class PlainModel:
    """Heads made here, as a Model has them."""

    def __init__(self, layers, *, name="made", is_tied=False, used=None):
        self.name, self.layers = name, layers
        h, k, d = layers[0].Q.shape
        self.config = Config(
            "bert", d, h, h, k, used or len(layers), 4 * d, 10, 10, is_tied=is_tied
        )

    def weights(self, layer, head=None, fold_norm=True, offset=0):
        weights = self.layers[layer]
        if head is None:
            return weights
        return al.Weights(
            Q=weights.Q[head], K=weights.K[head], V=(weights.V[0][head], weights.V[1][head])
        )


def layer_of(heads):
    Q, K, B, C = (np.stack(parts) for parts in zip(*heads, strict=True))
    return al.Weights(Q=Q, K=K, V=(B, C))


CASES = {
    "good triple": ([2.0, -1.5, (0.5, 0.3), 0.1], +1),
    "positive": ([2.0, -1.5, (0.5, 0.3), 0.1], -1),
    "negative": ([-2.0, 1.5, (0.5, 0.3), 0.1], +1),
    "complex": ([(1.5, 1.5), 2.0, -1.0, 0.1], +1),
}


@pytest.mark.parametrize("name", CASES)
def test_planted_spectra_are_told_apart(name):
    blocks, sign = CASES[name]
    B, C = planted(blocks)
    head = numbers(*scores_along(B, C, sign), B, C)
    assert verdict(head) == name
    wanted = {"good triple": 2.0, "positive": 2.0, "negative": -2.0, "complex": 1.5 + 1.5j}[name]
    assert head.lambda1 == pytest.approx(wanted, abs=1e-12)
    assert head.gap == pytest.approx(0.0 if name == "complex" else 0.25, abs=1e-12)
    if name != "complex":
        assert np.sign(head.score) == sign and np.sign(head.score_value) == sign


def test_a_real_leader_just_above_a_pair_and_a_pair_just_above_a_real_one():
    for real, word in ((2.0 + 1e-5, "good triple"), (2.0 - 1e-5, "complex")):
        B, C = planted([real, (2 * np.cos(0.1), 2 * np.sin(0.1)), -0.4])
        head = numbers(*scores_along(B, C, 1), B, C)
        assert verdict(head) == word
        assert abs(head.lambda1) == pytest.approx(max(real, 2.0), rel=1e-12)


@pytest.mark.parametrize(
    "apart, is_alone", [(1e-3, True), (1e-6, True), (1e-10, False), (0.0, False)]
)
def test_a_nearly_double_eigenvalue_is_simple_only_where_it_can_be_told(apart, is_alone):
    B, C = planted([1.0, 1.0 - apart, 0.3, -0.2], is_oblique=False)
    Q = np.random.default_rng(3).normal(size=(4, 20))
    head = numbers(Q, Q, B, C)  # every vector scores itself positively
    assert is_simple(head) is is_alone
    assert verdict(head) == ("good triple" if is_alone else "positive")


def test_a_jordan_block_is_ill_conditioned_and_not_simple():
    B, C = planted([np.array([[1.0, 1.0], [0.0, 1.0]]), 0.3])
    Q = np.random.default_rng(3).normal(size=(4, 20))
    head = numbers(Q, Q, B, C)
    assert head.condition > 1e6 and not is_simple(head)
    assert verdict(head) in ("positive", "complex")  # which of the two is rounding


def test_an_ill_conditioned_leader_is_known_with_its_condition():
    # eigenvectors (1, 0) and (1, 1e-6): lambda_1 is simple, and moves by half a million times what
    # V does
    B, C = planted([np.array([[1.0, -5e5], [0.0, 0.5]])], is_oblique=False)
    head = numbers(*scores_along(B, C, 1), B, C)
    assert head.condition == pytest.approx(1e6, rel=1e-3)
    assert head.gap == pytest.approx(0.5, rel=1e-6) and is_simple(head)


def test_a_head_that_writes_nothing():
    Q, K, B, C = gaussian_head(9, 3, 2)
    head = numbers(Q, K, 0 * B, C)
    assert (
        verdict(head) == "zero"
        and head.lambda1 == 0
        and head.non_normality == 0.0
        and np.isnan(head.attractive)
    )
    table = spectra(PlainModel([layer_of([(Q, K, 0 * B, C)])]), null=5)
    assert table.loc[0, "applies"] == "none" and "positive" in table.loc[0, "why_not"]


SHAPES = [(12, 4, 3), (12, 4, 8), (12, 8, 3), (6, 6, 6), (5, 8, 8), (7, 1, 1), (1, 1, 1)]


@pytest.mark.parametrize("d, r, k", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_small_matrices_give_what_the_full_ones_do(d, r, k, seed):
    Q, K, B, C = gaussian_head(d, r, k, seed)
    head, V, M = numbers(Q, K, B, C), B @ C, Q.T @ K
    values, left, right = linalg.eig(V, left=True, right=True)
    order = np.lexsort((-values.imag.round(9), -values.real.round(9), -np.abs(values).round(9)))
    values, left, right = values[order], left[:, order], right[:, order]
    assert head.lambda1 == pytest.approx(values[0], rel=1e-9)
    assert head.lambda2 == pytest.approx(values[1] if d > 1 else 0.0, rel=1e-9, abs=1e-9)
    phi, psi = right[:, 0] / np.linalg.norm(right[:, 0]), left[:, 0]
    assert head.condition == pytest.approx(np.linalg.norm(psi) / abs(np.vdot(psi, phi)), rel=1e-8)
    assert head.score_value == pytest.approx(np.vdot(phi, M @ phi).real, rel=1e-8)
    lengths = np.linalg.norm(Q @ phi) * np.linalg.norm(K @ phi)
    assert head.score == pytest.approx(np.vdot(Q @ phi, K @ phi).real / lengths, rel=1e-8)
    form = np.linalg.eigvalsh((M + M.T) / 2)
    clear = 1e-10 * np.abs(form).max()
    assert (head.positive, head.negative) == (np.sum(form > clear), np.sum(form < -clear))
    assert head.positive + head.negative + head.zero == d
    assert head.positive_share == pytest.approx(form[form > 0].sum() / np.abs(form).sum(), rel=1e-9)
    assert head.effective_beta == pytest.approx(
        np.sqrt(d) * np.linalg.norm((M + M.T) / 2), rel=1e-12
    )
    triangle = np.triu(linalg.schur(V, output="complex")[0], 1)
    assert head.non_normality == pytest.approx(
        np.linalg.norm(triangle) / np.linalg.norm(V), rel=1e-9, abs=1e-12
    )
    nonzero = values[np.abs(values) > 1e-10]
    turning = np.abs(nonzero.imag) > np.abs(nonzero.real)
    assert head.rotational == pytest.approx(turning.mean())
    assert head.attractive == pytest.approx((~turning & (nonzero.real > 0)).mean())
    weight = np.abs(nonzero.real).sum() + np.abs(nonzero.imag).sum()
    assert head.repulsive_weight == pytest.approx(
        -nonzero.real[nonzero.real < 0].sum() / weight, abs=1e-12
    )
    assert head.rotational_weight == pytest.approx(np.abs(nonzero.imag).sum() / weight, abs=1e-12)
    for kind in ("", "_weight"):
        assert sum(
            getattr(head, f"{name}{kind}") for name in ("attractive", "repulsive", "rotational")
        ) == pytest.approx(1.0)


def test_the_spectrum_is_the_one_of_the_analysis():
    weights = al.Weights(Q=np.ones((1, 9)), K=np.ones((1, 9)), V=gaussian_head(9, 4, 2)[2:])
    head = numbers(weights.Q[0], weights.K[0], weights.V[0][0], weights.V[1][0])
    from attnlab.analysis.spectra import eigenvalues

    assert head.eigenvalues == pytest.approx(eigenvalues(weights)[:4], abs=1e-12)


def test_a_normal_value_matrix_is_normal_to_rounding():
    # through |V|^2 - sum |lambda|^2 it would be 1e-8
    B = np.linalg.qr(np.random.default_rng(0).normal(size=(30, 6)))[0]
    C = np.diag([3.0, 2.0, 1.0, -1.0, -2.0, 0.5]) @ B.T
    head = numbers(*gaussian_head(30, 6, 4)[:2], B, C)
    assert head.non_normality < 1e-14 and head.condition == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_what_applies_is_what_predict_says(name):
    blocks, sign = CASES[name]
    B, C = planted(blocks, d=8)
    Q, K = scores_along(B, C, sign)
    row = spectra(PlainModel([layer_of([(Q, K, B, C)])]), null=3).loc[0]
    said = al.predict(al.Weights(Q=Q, K=K, V=(B, C)), names=["three_hyperplanes"])[0]
    assert (row["applies"] == "three_hyperplanes") is said.applies is (name == "good triple")
    assert row["why_not"].split("(")[0] == (
        "" if said.applies else said.unmet[0].asked.split("(")[0]
    )


@pytest.mark.parametrize(
    "V, theorem",
    [
        (np.eye(4), "polytope"),
        (-2 * np.eye(4), "collapse_to_origin"),
        (np.diag([1.0, 1.0, 0.3, -0.5]), "polytope_times_subspace"),
        (np.diag([1.0, 0.5, 0.3, -0.5]), "three_hyperplanes"),
        (np.diag([-1.0, 0.5, 0.3, 0.2]), "none"),
    ],
)
def test_the_other_theorems_apply_to_heads_as_wide_as_the_stream(V, theorem):
    row = spectra(PlainModel([layer_of([(np.eye(4), np.eye(4), V, np.eye(4))])]), null=3).loc[0]
    assert row["applies"] == theorem and bool(row["why_not"]) is (theorem == "none")


@pytest.mark.parametrize("seed", range(3))
def test_no_number_depends_on_the_basis_of_the_stream(seed):
    Q, K, B, C = gaussian_head(16, 5, 4, seed)
    turn = stats.ortho_group.rvs(16, random_state=seed)
    one, other = numbers(Q, K, B, C), numbers(Q @ turn.T, K @ turn.T, turn @ B, C @ turn.T)
    for name in NUMBERS:
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-8), name


def test_scale_moves_the_sizes_and_nothing_else():
    Q, K, B, C = gaussian_head(16, 5, 4)
    one, other, null = numbers(Q, K, B, C), numbers(3 * Q, K, 5 * B, C), null_of(16, 5, 4, draws=20)
    factor = {"lambda1": 5, "lambda2": 5, "score_value": 3, "effective_beta": 3}
    for name in NUMBERS:
        assert getattr(other, name) == pytest.approx(
            factor.get(name, 1) * getattr(one, name), rel=1e-9
        ), name
        if name in STATISTICS:
            assert null.quantile(name, other) == null.quantile(name, one), name


@pytest.mark.parametrize("d, r, k", [(20, 4, 3), (10, 6, 7), (5, 6, 6)])
def test_quantiles_of_a_gaussian_head_are_uniform(d, r, k):
    # heads drawn whole, d x r; the null draws small matrices only
    null = null_of(d, r, k, draws=1500, rng=1)
    heads = [numbers(*gaussian_head(d, r, k, seed)) for seed in range(150)]
    for name in (
        "lambda1",
        "condition",
        "score",
        "score_value",
        "positive_share",
        "effective_beta",
        "attractive_weight",
        "rotational_weight",
        "non_normality",
    ):
        found = np.array([null.quantile(name, head) for head in heads])
        assert stats.kstest(found, "uniform").pvalue > 1e-3, name
    for name in ("good triple", "positive", "negative", "complex"):
        count = sum(verdict(head) == name for head in heads)
        chance = null.shares[name]
        assert abs(count / 150 - chance) < 4 * np.sqrt(0.25 / 150), name


def test_the_small_draws_have_the_law_of_the_large_ones():
    d, r, k = 9, 3, 2
    small = [draw_head(d, r, k, rng=stream) for stream in np.random.default_rng(2).spawn(500)]
    large = [reduce_head(*gaussian_head(d, r, k, seed)) for seed in range(500)]

    def sizes(head: Reduced):
        u = np.zeros(len(head.T))
        u[0] = 1.0
        return [
            np.linalg.norm(head.T),
            np.linalg.norm(head.rest),
            np.trace(head.T),
            np.linalg.norm(head.place(u)),
            head.value_size,
            head.score_size,
            np.linalg.norm(head.query @ head.key.T),
        ]

    for one, other in zip(
        np.array([sizes(head) for head in small]).T,
        np.array([sizes(head) for head in large]).T,
        strict=True,
    ):
        assert stats.ks_2samp(one, other).pvalue > 1e-3


def test_the_null_can_be_drawn_again_and_is_shared():
    one, other = null_of(12, 3, 3, draws=8, rng=5), null_of(12, 3, 3, draws=8, rng=5)
    assert one is other
    fresh = null_of(12, 3, 3, draws=8, rng=6)
    assert not np.array_equal(one.values["lambda1"], fresh.values["lambda1"])
    first, second = (null_of(12, 3, 3, draws=8, rng=np.random.default_rng(1)) for _ in range(2))
    assert first is not second and np.array_equal(first.values["lambda1"], second.values["lambda1"])
    assert sum(one.shares[name] for name in VERDICTS) == pytest.approx(1.0)
    assert (
        one.shares["good triple"] + one.shares["positive"]
        == one.shares["positive leader"]
        == one.shares["real"] / 2
    )


def test_a_quantile_counts_ties_half_and_is_never_certain():
    null = dataclasses.replace(
        null_of(12, 3, 3, draws=4), values={"gap": np.array([0.0, 0.0, 0.5, 0.7])}
    )
    head = numbers(*gaussian_head(12, 3, 3))
    assert null.quantile("gap", dataclasses.replace(head, gap=0.0)) == pytest.approx(1.5 / 5)
    assert null.quantile("gap", dataclasses.replace(head, gap=0.6)) == pytest.approx(3.5 / 5)
    assert null.quantile("gap", dataclasses.replace(head, gap=1.0)) == pytest.approx(4.5 / 5)


@pytest.fixture(scope="module")
def model():
    heads = [
        [gaussian_head(24, 5, 5, 10 * layer + head) for head in range(3)] for layer in range(2)
    ]
    B, C = planted(CASES["good triple"][0], d=24)
    heads[1][2] = (*scores_along(B, C, 1, k=5), B, C)
    return PlainModel([layer_of(of_layer) for of_layer in heads])


def test_the_table(model):
    table = spectra(model, null=20)
    assert list(zip(table["layer"], table["head"], strict=True)) == [
        (layer, head) for layer in range(2) for head in range(3)
    ]
    contract = {
        "lambda1",
        "is_real",
        "is_positive",
        "is_simple",
        "gap",
        "score",
        "applies",
        "why_not",
        "gap_quantile",
    }
    assert contract <= set(table.columns)
    assert table["lambda1"].dtype == complex and table["is_simple"].dtype == bool
    assert (
        table.loc[5, "verdict"] == "good triple" and table.loc[5, "applies"] == "three_hyperplanes"
    )
    assert table.attrs["null_draws"] == 20 and table.attrs["model"] == "made"
    pandas.testing.assert_frame_equal(spectra(model, null=20), table)
    part = spectra(model, layer=1, head=2, null=20)
    pandas.testing.assert_frame_equal(part, table[5:6].reset_index(drop=True))


def test_tied_layers_are_told_once(model):
    tied = PlainModel(model.layers[:1], is_tied=True, used=7)
    for layer in (None, 0, 6):
        table = spectra(tied, layer=layer, null=5)
        assert list(table["layer"]) == [0, 0, 0] and set(table["used_in_layers"]) == {7}
    with pytest.raises(ValueError, match="no layer 7"):
        spectra(tied, layer=7)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"layer": 2}, "no layer 2"),
        ({"layer": -1}, "no layer -1"),
        ({"head": 3}, "no head 3"),
        ({"head": 1.5}, "whole number"),
        ({"null": 0}, "one draw or more"),
        ({"rng": -1}, "rng must be"),
    ],
)
def test_what_is_not_there_is_said(model, options, words):
    with pytest.raises(ValueError, match=words):
        spectra(model, **options)


def test_the_summary_counts(model):
    table = spectra(model, null=20)
    found = shares_of(table)
    assert found["positive leader"] + found["negative"] + found["complex"] == 6
    assert summary(table).startswith("6 heads: good triples") and "chance" in summary(table)


def test_spectra_in_the_plane_show_every_eigenvalue(model):
    from attnlab.render.spectra_figure import draw_spectra

    figure = draw_spectra(model)
    heads = list(measure_heads(model))
    panels = [
        axes
        for axes in figure.axes
        if any(mark.get_label() == "leading" for mark in axes.collections)
    ]
    assert len(panels) == 6
    for axes, one in zip(panels, heads, strict=True):
        marks = {mark.get_label(): mark.get_offsets() for mark in axes.collections}
        assert np.asarray(marks["eigenvalues"])[:, 0] == pytest.approx(one.numbers.eigenvalues.real)
        assert len(marks["leading"]) == (2 if verdict(one.numbers) == "complex" else 1)
        assert axes.get_title().startswith(f"L{one.layer}H{one.head}:")
        assert axes.get_aspect() == 1.0
    with pytest.raises(ValueError, match="no page 1"):
        draw_spectra(model, page=1)


def test_sixteen_heads_make_a_page():
    from attnlab.render.spectra_figure import draw_spectra

    crowd = PlainModel([layer_of([gaussian_head(8, 2, 2, seed) for seed in range(20)])])
    counts = [
        sum(bool(axes.get_title()) for axes in draw_spectra(crowd, page=page).axes)
        for page in (0, 1)
    ]
    assert counts == [16, 4]


def test_the_map_has_a_mark_for_each_head(model):
    from attnlab.render.spectra_figure import LOOKS, draw_shares, draw_verdict_map

    table = spectra(model, null=20)
    axes = draw_verdict_map(table).axes[-1]
    marks = {mark.get_label(): len(mark.get_offsets()) for mark in axes.collections}
    assert marks == table["verdict"].value_counts().to_dict()
    assert (
        len({(marker, is_filled) for _, marker, is_filled, _ in LOOKS.values()})
        == len(LOOKS)
        == len(VERDICTS)
    )
    assert len(draw_shares([table, table]).axes) == 4


def bert_folder(folder):
    """A tiny BERT of two layers with two heads, as Hugging Face writes it."""
    safetensors = pytest.importorskip("safetensors.numpy")
    d, hidden, rng = 12, 16, np.random.default_rng(0)
    shapes = {
        "attention.self.query": (d, d),
        "attention.self.key": (d, d),
        "attention.self.value": (d, d),
        "attention.output.dense": (d, d),
        "intermediate.dense": (hidden, d),
        "output.dense": (d, hidden),
    }
    tensors = {
        "embeddings.word_embeddings.weight": (30, d),
        "embeddings.position_embeddings.weight": (8, d),
        "embeddings.token_type_embeddings.weight": (2, d),
        "embeddings.LayerNorm.weight": (d,),
        "embeddings.LayerNorm.bias": (d,),
    }
    for layer in range(2):
        for name, shape in shapes.items():
            tensors |= {
                f"encoder.layer.{layer}.{name}.weight": shape,
                f"encoder.layer.{layer}.{name}.bias": shape[:1],
            }
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            tensors |= {
                f"encoder.layer.{layer}.{name}.weight": (d,),
                f"encoder.layer.{layer}.{name}.bias": (d,),
            }
    folder.mkdir()
    arrays = {name: rng.normal(size=shape).astype(np.float32) for name, shape in tensors.items()}
    safetensors.save_file(arrays, folder / "model.safetensors")
    (folder / "config.json").write_text(
        json.dumps(
            {
                "model_type": "bert",
                "hidden_size": d,
                "num_attention_heads": 2,
                "num_hidden_layers": 2,
                "intermediate_size": hidden,
                "vocab_size": 30,
                "max_position_embeddings": 8,
                "type_vocab_size": 2,
                "hidden_act": "gelu",
                "layer_norm_eps": 1e-12,
            }
        )
    )
    return folder


def test_the_command_line(tmp_path):
    folder = bert_folder(tmp_path / "tiny")
    said = attnlab("spectra", folder, "--null", 20).stdout
    norms = (
        r"norms of tokens estimated from gains and biases: [\d.]+( to [\d.]+)? \(--text measures"
        r" them\)"
    )
    assert re.search(norms, " ".join(said.split()))
    assert "4 heads: good triples" in said and "tiny" in said
    record = json.loads(attnlab("spectra", folder, "--null", 20, "--json", "--layer", 1).stdout)
    assert [(row["layer"], row["head"]) for row in record["rows"]] == [(1, 0), (1, 1)]
    assert len(record["rows"][0]["lambda1"]) == 2 and 0 < record["rows"][0]["gap_quantile"] < 1
    csv, plane, map_ = tmp_path / "heads.csv", tmp_path / "plane.png", tmp_path / "map.svg"
    attnlab("spectra", folder, "--null", 20, "--csv", csv, "--figure", plane)
    attnlab("spectra", folder, "--null", 20, "--figure", map_, "--kind", "map")
    table = pandas.read_csv(csv)
    same = al.models.spectra(al.models.load(folder), null=20)
    assert csv.read_text() == same.to_csv(index=False)  # the columns and numbers of the function
    whole = spectra(al.models.load(folder), null=20)
    assert table["lambda1_real"].to_numpy() == pytest.approx(whole["lambda1"].to_numpy().real)
    assert plane.stat().st_size > 10_000 and b"<svg" in map_.read_bytes()


def test_the_command_line_refuses_in_a_sentence(tmp_path):
    folder = bert_folder(tmp_path / "tiny")
    assert "no layer 2" in refused("spectra", folder, "--layer", 2)
    assert "no head 2" in refused("spectra", folder, "--head", 2)
    assert "one draw or more" in refused("spectra", folder, "--null", 0)
    assert "rotary" in refused("spectra", folder, "--offset", 1)
    assert ".csv" in refused("spectra", folder, "--csv", tmp_path / "a.txt")
    assert "--kind" in refused("spectra", folder, "--kind", "round", "--figure", tmp_path / "a.png")
    assert "--figure" in refused("spectra", folder, "--kind", "map")
    assert "no page 3" in refused("spectra", folder, "--figure", tmp_path / "a.png", "--page", 3)
    assert "no model of the catalog" in refused("spectra", "minillm")
    assert not (tmp_path / "a.png").exists()


def test_the_function_is_the_contract():
    for _ in range(2):  # a submodule of that name would take its place after the first time
        assert callable(al.models.spectra)


def fetched(name):
    from attnlab.models.catalog.catalog import is_cached

    if not is_cached(name):
        pytest.skip(f"{name} is not fetched: attnlab fetch {name}")
    return al.models.load(name)


def test_leaders_of_plbert_are_those_that_were_published():
    table = spectra(fetched("plbert"), null=10).set_index("head")
    for head, value in ((8, 2.931), (3, -2.972), (11, -1.567 + 0.044j)):
        assert table.loc[head, "lambda1"] == pytest.approx(value, abs=6e-4)
    assert table.loc[6, "lambda1"] == pytest.approx(1.11 + 1.44j, abs=6e-3)
    assert table.loc[8, "gap"] == pytest.approx(0.26, abs=5e-3)
    assert table.loc[8, "verdict"] == "good triple" and table.loc[3, "verdict"] == "negative"
    assert set(table.loc[[6, 11], "verdict"]) == {"complex"}
    assert table["condition"].idxmax() == 11  # published as ill-conditioned


@pytest.mark.slow
@pytest.mark.parametrize("name", ["minilm", "stories15m"])
def test_small_matrices_give_the_spectrum_of_real_heads(name):
    loaded = fetched(name)
    for one in measure_heads(loaded, layer=1):
        values = np.linalg.eigvals(one.weights.full_V[0])
        values = values[np.argsort(-np.abs(values))][: loaded.config.head_size]
        assert np.abs(values) == pytest.approx(
            np.abs(one.numbers.eigenvalues), abs=1e-9 * abs(values[0])
        )
        assert np.sort(values.real) == pytest.approx(
            np.sort(one.numbers.eigenvalues.real), abs=1e-9 * abs(values[0])
        )


def test_the_page_of_models_names_them_all_and_claims_no_cause():
    from attnlab.models.catalog.catalog import known_models

    page = (DOCS / "models.md").read_text()
    for name in known_models:
        assert name in page, "Add it to the table on the page."
    for words in ("No cause is claimed", "not a sample"):
        assert words in " ".join(page.split())
    assert "| L0H8 | +2.931 | 26% |" in (DOCS / "experiments" / "models_survey.md").read_text()


def test_the_leading_good_triple_of_planted_heads_is_in_the_last_layer():
    """Planted leading eigenvalues grow by 0.35 from layer to layer, and by less than 0.3 inside
    one.
    """
    model = PlantedHeads("planted, three layers", 3, 1, False)
    layer, head, value = leading_good_triple(model)
    assert layer == 2 and PATTERN[head] == ("positive", 1)
    assert 2.7 <= value <= 3.0
    assert leading_good_triple(PlantedHeads("planted, tied", 3, 1, True))[0] == 0
