"""Stop 1: the equation."""

from __future__ import annotations

import numpy as np

from attnlab.dynamics.attention import attention_matrices
from attnlab.render.tour_page import draw_force
from attnlab.tour.context import Context
from attnlab.tour.record import Chapter, Formula, Stop, Text
from attnlab.tour.stops import stops
from attnlab.types import Dynamics, Weights

TOKENS, SEED, APART = 9, 1, 0.8


def tell(context: Context) -> Chapter:
    """Explain the equation, and show one step of it in the plane."""
    x = scatter_tokens()
    P = attention_matrices(Dynamics(Weights(V=np.eye(2))), x, 0.0)[0]
    figure = draw_force(x, P, int(np.argmax(x[:, 0])))
    return Chapter(
        [
            Text(
                "A language model splits a sentence into tokens, roughly words. It turns each token"
                " into a long list of numbers: a point in space. Each layer moves these points. The"
                " part of a layer in which a token uses the other tokens is called attention."
            ),
            Text(
                "Now forget the language and keep the motion. A token is a particle. A layer is a"
                " small step of time. Attention is the force between particles:"
            ),
            Formula("x_(i)′  =  Σ_(j) P_(ij) V x_(j)"),
            Text(
                "x_(i) is the place of token i, and x_(i)′ is its velocity. P_(ij) is the share of"
                " its attention that token i gives to token j. It is proportional to exp⟨Q x_(i), K"
                " x_(j)⟩, so it is largest for the tokens with the highest scores. The shares of a"
                " token add up to one. Training finds the three matrices Q, K and V. In the"
                " pictures of the next two stops Q and K are the identity, and V decides"
                " everything."
            ),
            context.draw(
                "equation",
                figure,
                "Left: one token and lines to the others, thick where it gives much attention."
                " Right: an arrow at every token shows its velocity.",
            ),
            Text(
                "Left: one token and its attention. Thick lines and large numbers mean much"
                " attention. Right: the velocities for V = I. Each velocity is the weighted mean of"
                " the tokens, drawn from the middle (the cross), with the attention of that token"
                " as weights.",
                "What you see.",
            ),
            Text(
                "Tokens move outwards, faster and faster, because V stretches them. So we zoom out"
                " at the same speed: z = e^(−tV) x. In these coordinates the tokens come to rest"
                " and form a shape. Which shape? The theorems answer this question.",
                "One trick.",
            ),
        ]
    )


def scatter_tokens() -> np.ndarray:
    """Return random tokens in the plane that keep a distance from each other."""
    rng, kept = np.random.default_rng(SEED), [np.array([1.4, -0.5])]
    while len(kept) < TOKENS:
        x = rng.uniform((-1.9, -1.1), (1.9, 1.1))
        if (
            min(np.linalg.norm(x - other) for other in kept) > APART
            and np.linalg.norm(x) > APART / 2
        ):
            kept.append(x)
    return np.array(kept)


stops.register("equation")(Stop(1, "Tokens are particles, attention is the force", tell))
