"""al.models.heads: the matrices come back, and the layer is the equation of the theory."""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.models.studies.dossier import dossier

RNG = np.random.default_rng(0)
H, KV, SIZE, WIDE, D = 4, 2, 3, 5, 7
Q, K = RNG.normal(size=(H, SIZE, D)), RNG.normal(size=(KV, SIZE, D))
V, O = 0.5 * RNG.normal(size=(KV, WIDE, D)), 0.5 * RNG.normal(size=(H, D, WIDE))
X = RNG.normal(size=(6, D))


def test_the_matrices_are_those_of_the_theory():
    m = al.models.heads(Q, K, V, O)
    for head in range(H):
        w = m.weights(0, head)
        assert np.allclose(w.M[0], Q[head].T @ K[head // 2] / np.sqrt(SIZE), rtol=1e-14)
        assert np.allclose(w.full_V[0], O[head] @ V[head // 2], rtol=1e-14)
    assert m.config.layers == 1 and m.parts.embedding is None and m.address is None


def test_scale_norm_and_mask_are_part_of_it():
    gain = RNG.uniform(0.5, 2, D)
    m = al.models.heads(Q, K, V, O, scale=0.3, norm="rms", gain=gain)
    assert np.allclose(
        m.weights(0, 1).M[0], 0.3 * np.diag(gain) @ Q[1].T @ K[0] @ np.diag(gain), rtol=1e-13
    )
    seen = al.models.heads(Q, K, V, O, causal=True).attention(X)
    assert (np.triu(seen, 1) == 0).all() and (np.triu(m.attention(X), 1) > 0).any()
    assert "norm" not in al.models.heads(Q, K, V, O).weights(0).source


def test_the_layer_is_a_double_loop():
    m = al.models.heads(Q, K, V, O, scale=0.3)
    expected = X.copy()
    for i in range(len(X)):
        for h in range(H):
            e = np.exp([0.3 * (Q[h] @ X[i]) @ (K[h // 2] @ x) for x in X])
            expected[i] += sum(e[j] / e.sum() * O[h] @ V[h // 2] @ X[j] for j in range(len(X)))
    assert np.allclose(m.hidden_states(X), [X, expected], rtol=1e-12)


def test_one_head_may_be_two_dimensional_and_v_alone_is_the_map_of_the_stream():
    one = al.models.heads(Q[0], K[0], V[0], O[0])
    whole = al.models.heads(Q[0], K[0], O[0] @ V[0])
    assert np.allclose(one.hidden_states(X), whole.hidden_states(X), rtol=1e-12)
    assert one.config.heads == 1
    left, right = (al.models.spectra(m, null=5)["lambda1"][0] for m in (one, whole))
    assert np.isclose(left, right, rtol=1e-9)


def test_torch_tensors_are_taken():
    torch = pytest.importorskip("torch")
    ours = al.models.heads(*(torch.tensor(one, requires_grad=True) for one in (Q, K, V, O)))
    assert np.array_equal(ours.weights(0).Q, al.models.heads(Q, K, V, O).weights(0).Q)


def test_spectra_flow_sentence_and_dossier_work():
    m = al.models.heads(Q, K, V, O, names=["a", "b", "c", "d"], name="mine")
    table = al.models.spectra(m, null=5)
    assert list(table["name"]) == ["a", "b", "c", "d"]
    values = np.linalg.eigvals(O[2] @ V[1])
    assert np.isclose(abs(table["lambda1"][2]), abs(values).max(), rtol=1e-10)
    assert (table["norms"] == "taken as sqrt(d)").all() and table["token_norm"][0] == np.sqrt(D)
    flow = al.models.flow(m, head=1, x0=X, t_end=0.2, saves=3, limit=False, check=False)
    w = m.weights(0, 1)
    run = al.simulate(w, X, t_end=0.2, saves=3, rtol=1e-9)
    assert np.allclose(flow.run.x, run.x, rtol=1e-4) and flow.name == "mine L0H1"
    assert al.models.flow(m, head=0, n=5, t_end=0.1, saves=2, limit=False, check=False).run.n == 5
    page = dossier(m, work=2e3, budget=2)
    assert len(page.spectra) == H and len(page.sentences) == 2
    assert set(page.sentences[0]["variant"].values) >= {"real", "twin", "random"}
    assert "mine" in repr(page) and al.models.findings(table)


WRONG = {
    "act on rows": (np.swapaxes(Q, 1, 2), np.swapaxes(K, 1, 2), np.swapaxes(V, 1, 2), O),
    "K must be": (Q, K[:, :2], V, O),
    "equally many heads": (Q, K[:1], V, O),
    "a multiple": (Q, np.concatenate([K, K[:1]]), np.concatenate([V, V[:1]]), O),
    "O must be": (Q, K, V, O[:, :, :2]),
    "at most d": (np.ones((1, 9, 3)), np.ones((1, 9, 3)), np.ones((1, 9, 3)), np.ones((1, 3, 9))),
    "one matrix per head": (Q, K, V[0, 0], O),
    "finite": (Q, np.full_like(K, np.nan), V, O),
    "Without O": (Q, K, V),
    "real numbers": (Q * 1j, K, V, O),
}


@pytest.mark.parametrize("what", WRONG)
def test_shapes_that_do_not_go_together_are_refused(what):
    with pytest.raises(ValueError, match=what):
        al.models.heads(*WRONG[what])


@pytest.mark.parametrize(
    "what, given",
    {
        "scale must be": {"scale": -1},
        "norm must be": {"norm": "batch"},
        "belongs to a norm": {"gain": np.ones(D)},
        "gain must be": {"norm": "rms", "gain": np.ones(3)},
        "names must": {"names": ["a"]},
    }.items(),
)
def test_options_that_make_no_sense_are_refused(what, given):
    with pytest.raises(ValueError, match=what):
        al.models.heads(Q, K, V, O, **given)
