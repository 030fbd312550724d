"""Makes the pictures of docs/figures.md, and that of a comparison in docs/models.md:
`python docs/make_figures.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import attnlab as al

IMAGES = Path(__file__).parent / "images"


TEXTS = (
    "The cat sat on the mat.",
    "Dogs bark at night.",
    "Rain fell on the quiet town.",
    "She reads a long book about the sea.",
    "Prices rose again last month, and nobody knows why.",
    "Water boils at a hundred degrees.",
    "He forgot his keys on the kitchen table.",
    "Old trees grow slowly.",
)


def draw_comparison() -> None:
    """Draw which heads of minilm attend differently when three heads are left out."""
    m = al.models.load("minilm")
    table = al.models.compare(m, m.without(heads=[(0, 3), (2, 7), (2, 9)]), texts=TEXTS)
    al.plot(table).savefig(IMAGES / "models_compare.png", dpi=90)


def main() -> None:
    """Draw one run as a paper would show it, attention of several heads, a sentence, and a
    comparison.
    """
    draw_comparison()
    rng = np.random.default_rng(0)
    run = al.simulate(al.Weights(V=np.eye(2)), rng.uniform(-5, 5, (20, 2)), t_end=5.0)
    al.plot(run, width=3.4, title=False).savefig(IMAGES / "figures_column.png")
    Q, K, V = (rng.normal(size=(3, 6, 6)) for _ in range(3))
    several = al.simulate(al.Weights(Q=Q, K=K, V=V / 4), rng.normal(size=(20, 6)), t_end=3.0)
    al.plot(several, "eigenvalues").savefig(IMAGES / "figures_eigenvalues.png", dpi=110)
    al.plot(several, "pca3d").savefig(IMAGES / "figures_pca3d.png", dpi=110)
    text = "The cat sat on the mat because it was tired."
    data = al.models.sentence(al.models.load("minilm"), text, only=["twin"])
    al.plot(data, "words").savefig(IMAGES / "figures_words.png", dpi=90)


if __name__ == "__main__":
    main()
