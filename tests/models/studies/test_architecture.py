"""Changes of the architecture with the same weights: moved norms, masks, rotary positions, shared
layers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models.checkpoints.forward import apply_norm, embed, run_layer, steps
from attnlab.models.checkpoints.record import FeedForward, Layer
from attnlab.models.studies.architecture import (
    CHANGES,
    NUMBERS,
    TRAINED,
    measure_architecture,
    norms_after,
    norms_before,
    summarize,
    with_one_layer,
    without_rotary,
)

IDS = np.array([3, 1, 4, 1, 5, 9, 2])


def made(family):
    state, raw = getattr(tiny_models, family)()
    return al.models.load(state, config=raw)


def ends(parts, x0, seen):
    return [step.x for step in steps(parts, x0, seen)]


def start(model):
    seen = np.ones((len(IDS), len(IDS)), dtype=bool)
    if model.config.is_causal:
        seen = np.tri(len(IDS), dtype=bool)
    return embed(model.parts.embedding, IDS, np.float64), seen


def added(layer, block, read, seen):
    """What the mixer of a block alone adds, of these tokens. A layer must have attention: that of a
    feed-forward part is made to add nothing.
    """
    bare = replace(block, norm_before=None, norm_sum=None)
    alone = Layer((bare,))
    if isinstance(block.mixer, FeedForward):
        silent = replace(layer.attention_block, norm_before=None, norm_sum=None)
        zero = np.zeros_like(layer.attention.output)
        silent = Layer((silent,)).change(output=zero, output_bias=None).blocks[0]
        alone = Layer((silent, bare))
    return run_layer(alone, read, seen, (), ())[0] - read


def blocks_of(model):
    return [block for _, block in pairs_of(model)]


def pairs_of(model):
    return [(layer, block) for layer in model.parts.layers for block in layer.blocks]


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_norms_after_become_norms_before_by_hand(family):
    """The stream is a plain sum; each part reads it with the norm that it read before."""
    model = made(family)
    stream, seen = start(model)
    norms = [block.norm_sum for block in blocks_of(model)]
    for number, (layer, block) in enumerate(pairs_of(model)):
        read = stream if number == 0 else apply_norm(norms[number - 1], stream)
        stream = stream + added(layer, block, read, seen)
    moved = norms_before(model.parts)
    found = ends(moved, *start(model))
    np.testing.assert_allclose(found[-1], apply_norm(norms[-1], stream), atol=1e-10)
    assert not np.allclose(found[-1], ends(model.parts, *start(model))[-1], atol=1e-3)
    back = ends(norms_after(moved), *start(model))
    np.testing.assert_allclose(back[-1], ends(model.parts, *start(model))[-1], atol=1e-10)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_norms_before_become_norms_after_by_hand(family):
    """The stream is normed after each sum, and each part reads it as it is."""
    model = made(family)
    x, seen = start(model)
    norms = [*(block.norm_before for block in blocks_of(model)), model.parts.final_norm]
    stream = apply_norm(norms[0], x)
    for number, (layer, block) in enumerate(pairs_of(model)):
        stream = apply_norm(norms[number + 1], stream + added(layer, block, stream, seen))
    found = ends(norms_after(model.parts), x, seen)
    np.testing.assert_allclose(found[-1], stream, atol=1e-10)
    assert not np.allclose(found[-1], ends(model.parts, x, seen)[-1], atol=1e-3)


def test_norms_of_parallel_layers_are_not_moved():
    with pytest.raises(ValueError, match="one norm"):
        norms_after(made("gpt_neox").parts)


def test_without_rotary_positions_the_order_of_earlier_tokens_does_not_count():
    model = made("llama")
    x0, seen = start(model)
    parts = without_rotary(model.parts)
    swapped = x0[[1, 0, 2, 3, 4, 5, 6]]
    whole = np.ones_like(seen)
    here, there = (ends(parts, tokens, whole)[-1] for tokens in (x0, swapped))
    np.testing.assert_allclose(here[2:], there[2:], atol=1e-12)
    rotary, moved = (ends(model.parts, tokens, whole)[-1] for tokens in (x0, swapped))
    assert np.abs(rotary[2:] - moved[2:]).max() > 1e-6


def test_one_layer_is_shared_by_all():
    model = made("bert")
    parts = with_one_layer(model.parts)
    assert len({id(layer) for layer in parts.layers}) == 1
    assert parts.layers[0] is model.parts.layers[len(model.parts.layers) // 2]


def test_the_changes_of_a_model_and_their_numbers():
    rng = np.random.default_rng(0)
    texts = [rng.integers(5, 19, size=7) for _ in range(4)]
    wanted = {
        "bert": {"norms before each part", "causal mask", "one layer shared"},
        "albert": {"norms before each part", "causal mask"},
        "llama": {
            "norms after each sum",
            "no mask",
            "no rotary positions",
            "one layer shared",
        },
    }
    for family, changes in wanted.items():
        model = made(family)
        frame = measure_architecture(model, texts)
        assert set(frame["change"]) == changes | {TRAINED} <= set(CHANGES)
        assert len(frame) == len(texts) * (len(changes) + 1)
        for name in NUMBERS:
            assert np.isfinite(frame[name]).all()
        assert ((frame["sink"] > 0) & (frame["sink"] <= 1)).all()
        data = al.models.sentence(model, ids=texts[0], only=["real"])
        row = frame[(frame["text"] == 0) & (frame["change"] == TRAINED)].iloc[0]
        last = model.config.layers
        assert row["cosine"] == pytest.approx(float(data["cosine"][0, last]), abs=1e-9)
        assert row["entropy"] == pytest.approx(float(data["entropy"][0, :last].mean()), abs=1e-9)


def test_the_summary_is_of_paired_differences():
    import pandas

    rows = [
        {"text": text, "change": change, **dict.fromkeys(NUMBERS, value)}
        for text, (before, after) in enumerate([(0.0, 1.0), (5.0, 6.1), (9.0, 9.9)])
        for change, value in ((TRAINED, before), ("no mask", after))
    ]
    found = summarize(pandas.DataFrame(rows[::-1])).set_index(["change", "number"])
    row = found.loc["no mask", "cosine"]
    assert row["difference"] == pytest.approx(1.0) and row["low"] < 1.0 < row["high"]
    assert row["high"] - row["low"] < 0.6  # of differences, not of values that spread over 9
    assert found.loc[TRAINED, "cosine"]["difference"] == 0.0
