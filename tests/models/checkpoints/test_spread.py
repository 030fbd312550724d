"""A layer in blocks of tokens and of heads is the layer as a whole, and a head's part of it is what
it adds.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import attnlab as al
from attnlab.models.checkpoints import spread
from attnlab.models.checkpoints.forward import enter, mix, seen_by, some_heads
from tiny_models import MAKERS, given

IDS = np.array([[3, 17, 5, 5, 8, 11, 8], [2, 9, 10, 4, 4, 4, 12]])


def load(family: str):
    state, raw = MAKERS[family]()
    return al.models.load(state, config=raw)


@pytest.mark.parametrize("family", MAKERS)
def test_blocks_on_threads_are_the_whole(family, monkeypatch):
    model = load(family)
    mask = np.ones_like(IDS)
    mask[1, 5:] = 0
    x = given(model, IDS)
    states, attention = model.hidden_states(x, mask), model.attention(x, mask)
    monkeypatch.setattr(spread, "ROWS", 3)
    monkeypatch.setattr(spread, "ENTRIES", 1)
    monkeypatch.setattr(spread, "WORTH_THREADS", 2)
    np.testing.assert_allclose(model.hidden_states(x, mask), states, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.attention(x, mask), attention, rtol=1e-12, atol=1e-14)


def test_blocks_hold_whole_groups_of_heads(monkeypatch):
    monkeypatch.setattr(spread, "ENTRIES", 100)
    for heads, group, entries in ((12, 1, 30), (12, 4, 30), (12, 4, 10), (6, 3, 10**9), (8, 2, 1)):
        blocks = spread.head_blocks(heads, group, entries)
        assert [h for block in blocks for h in range(heads)[block]] == list(range(heads))
        assert all(block.start % group == 0 and block.stop % group == 0 for block in blocks)
        assert len(blocks) > 1 or heads * entries <= 100


def test_a_worker_does_not_wait_for_the_others():
    """All threads of the pool ask for blocks at once: if they waited, nothing would ever end."""
    from attnlab.engine.threads import pool, thread_count

    names = []

    def inner(block):
        names.append(threading.current_thread().name)

    def outer(_):
        spread.in_blocks(inner, [1, 2, 3], 10**6)

    futures = [pool().submit(outer, number) for number in range(2 * thread_count())]
    for future in futures:
        future.result(timeout=20)
    assert len(names) == 6 * thread_count()


def test_an_error_in_a_block_is_raised():
    def fail(block):
        raise ValueError("the block failed")

    with pytest.raises(ValueError, match="the block failed"):
        spread.in_blocks(fail, [1, 2], 10**6)


@pytest.mark.parametrize("family", MAKERS)
def test_heads_add_up_to_what_attention_adds(family):
    model = load(family)
    seen = seen_by(model.config, np.ones(IDS.shape, dtype=bool))
    x = enter(model.parts, given(model, IDS), float)
    attention = model.parts.layers[-1].attention
    mixed = mix(attention, x, seen, ("attention", "heads"))
    heads = len(attention.output)
    assert mixed.heads.shape == (2, heads, 7, model.config.d)
    bias = 0.0 if attention.output_bias is None else attention.output_bias
    np.testing.assert_allclose(mixed.heads.sum(axis=1) + bias, mixed.added, rtol=1e-9, atol=1e-9)
    group = heads // len(attention.key)
    alone = mix(some_heads(attention, slice(0, group)), x, seen, ("heads",))
    np.testing.assert_allclose(alone.heads, mixed.heads[:, :group], rtol=1e-12, atol=1e-12)
    assert mix(attention, x, seen, ()).attention is None
