"""Exact symmetry: signed permutations of the coordinates that leave the equation as it is and
permute the tokens.

What such data do is decided by the symmetry (a token may sit between two leaders for ever), and any
rounding breaks it. So the arithmetic keeps it: one token of each orbit is computed, projected on
what its stabiliser leaves fixed, and copied.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from attnlab.limits.problem import Problem
from attnlab.limits.products import score_matrices

ALL_PERMUTATIONS = 4
"""Up to this d all 2^d d! signed permutations are tried; up to ALL_SIGNS all changes of sign;
above, only x -> -x.
"""

ALL_SIGNS = 8


@dataclass(frozen=True, eq=False)
class Element:
    """(S x)_a = sign_a x_{order_a}; image[i] is the token that token i goes to."""

    order: np.ndarray
    sign: np.ndarray
    image: np.ndarray

    def apply(self, x: np.ndarray) -> np.ndarray:
        """S x for tokens (..., d)."""
        return x[..., self.order] * self.sign


@dataclass(frozen=True, eq=False)
class Symmetry:
    """A group, the identity first. For every token: its orbit's representative, an element that
    leads there, its stabiliser.
    """

    elements: tuple[Element, ...]
    representative: np.ndarray  # (n,)
    carrier: (
        np.ndarray
    )  # (n,): the number of an element that takes the representative to this token

    def stabiliser(self, i: int) -> list[Element]:
        """The elements that leave token i where it is."""
        return [element for element in self.elements if element.image[i] == i]

    def tied(self, i: int, leader: int) -> set[int]:
        """The tokens whose scores for row i equal the leader's by symmetry."""
        return {int(element.image[leader]) for element in self.stabiliser(i)}

    def projected(self, x: np.ndarray, i: int) -> np.ndarray:
        """x (d,) projected on what the stabiliser of token i leaves fixed; exactly fixed, not only
        to rounding.
        """
        stabiliser = self.stabiliser(i)
        out = x * 0
        done = np.zeros(len(x), bool)
        for a in range(len(x)):
            if done[a]:
                continue
            # the coordinates that a is linked to, each with the sign that it comes with; both
            # signs: it must be 0
            links: dict[int, set[int]] = {}
            for element in stabiliser:
                b = int(element.order[a])
                links.setdefault(b, set()).add(int(element.sign[a]))
            done[list(links)] = True
            if any(len(signs) == 2 for signs in links.values()):
                continue
            mean = sum(x[b] * next(iter(signs)) for b, signs in sorted(links.items())) / len(links)
            for b, signs in links.items():
                out[b] = mean * next(iter(signs))
        return out

    def impose(self, x: np.ndarray) -> None:
        """Make tokens (n, d), or their velocities, symmetric: representatives are projected, the
        others copied from them.
        """
        for i in np.unique(self.representative):
            x[i] = self.projected(x[i], int(i))
        for i, number in enumerate(self.carrier):
            if number:
                x[i] = self.elements[number].apply(x[self.representative[i]])

    def is_equivariant(self, leaders: np.ndarray) -> bool:
        """Whether a map of leaders has the symmetry: leader(S i) = S leader(i)."""
        return all(
            np.array_equal(leaders[element.image], element.image[leaders])
            for element in self.elements
        )


def find_symmetry(problem: Problem, x0: np.ndarray) -> Symmetry | None:
    """The symmetry group of the different tokens, or None where it is trivial. Exact: not a bit may
    differ.
    """
    weights, tokens = problem.dynamics.weights, problem.tokens
    x = x0[tokens] + 0.0  # -0 becomes 0
    many = np.bincount(problem.same_as, minlength=len(x0))[tokens]
    V, M = weights.full_V[0], score_matrices(weights)[0]
    where = {row.tobytes(): i for i, row in enumerate(x)}
    found = []
    for order, sign in _candidates(x.shape[1]):
        signs = sign[:, None] * sign[None, :]
        if not (
            np.array_equal(V[np.ix_(order, order)] * signs, V)
            and np.array_equal(M[np.ix_(order, order)] * signs, M)
        ):
            continue
        image = _image(x[:, order] * sign + 0.0, where)
        if image is None or not np.array_equal(many[image], many):
            continue
        if problem.dynamics.mask.is_causal and not np.array_equal(image, np.arange(len(x))):
            continue
        found.append(Element(order, sign, image))
    if len(found) < 2:
        return None
    representative, carrier = np.arange(len(x)), np.zeros(len(x), np.int64)
    for i in range(len(x)):
        for number, element in enumerate(found):
            j = int(element.image[i])
            if representative[i] == i and j > i and representative[j] == j:
                representative[j], carrier[j] = i, number
    return Symmetry(tuple(found), representative, carrier)


def _image(moved: np.ndarray, where: dict[bytes, int]) -> np.ndarray | None:
    out = np.empty(len(moved), np.int64)
    for i, row in enumerate(moved):
        j = where.get(row.tobytes())
        if j is None:
            return None
        out[i] = j
    return out


def _candidates(d: int):
    """(order, sign), the identity first."""
    orders = itertools.permutations(range(d)) if d <= ALL_PERMUTATIONS else [tuple(range(d))]
    for order in orders:
        signs = (
            itertools.product((1.0, -1.0), repeat=d)
            if d <= ALL_SIGNS
            else [(1.0,) * d, (-1.0,) * d]
        )
        for sign in signs:
            yield np.array(order), np.array(sign)
