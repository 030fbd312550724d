"""A Proof: every step of the enclosed flow, and its end. It is saved as the State of a Limit."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from attnlab.displayed import Displayed, short_repr
from attnlab.limits.state import State


@dataclass(frozen=True, eq=False)
class Proof(Displayed):
    """The steps that enclose the tokens, and the end that certifies their limit. Tokens are the
    different ones, m of n.

    On step k, 0 <= s <= 1, the tokens at the time t_k + s h_k are within a radius of
    coefficients[k] evaluated at s. Where doubles are too coarse, numbers are sums of several
    doubles: the coefficients are coefficients + the sum of coefficients_rest along its first axis.

    start_digest  of the first tokens, the weights and the options
    number        (n,): which different token each token is
    rates         (d,): the eigenvalues of V;  rates_off (d,): what they are off by at most
    vectors       (d, d): eigenvectors in columns, rounded
    h             (steps,): lengths in time
    coefficients  (steps, order + 1, m, d): of the polynomials in s, p_k(s) = sum_r coefficients[k,
                  r] s^r
    leader        (steps, m): the token with the largest score in each row, at the start of the step
    pieces        (steps,): into how many equal pieces a step is cut for the comparison matrix
    defect        (steps, m): bounds of |p' - f(p)|, per unit of time
    tube          (steps, m): bounds, during the step, of what the linearised flow leaves out of |x
                  - p|
    radius        (steps, m): bounds of |x - p| at the end of the step
    end           (m, d): the last polynomial at its end, rounded;  end_rest (rest, m, d): what is
                  added to it;  end_radius (m,): bounds of |x - end - the sum of end_rest|
    leaders       (m,): those that stay for ever from there on
    margin, mu    gaps stay above margin e^{mu s};  leak: by how much softmax moves a leader's coordinate e^{-rate s} x for ever
    """

    start_digest: str
    number: np.ndarray
    rates: np.ndarray
    rates_off: np.ndarray
    vectors: np.ndarray
    h: np.ndarray
    coefficients: np.ndarray
    coefficients_rest: np.ndarray
    leader: np.ndarray
    pieces: np.ndarray
    defect: np.ndarray
    tube: np.ndarray
    radius: np.ndarray
    end: np.ndarray
    end_rest: np.ndarray
    end_radius: np.ndarray
    leaders: np.ndarray
    margin: float
    mu: float
    leak: float
    __repr__ = short_repr

    def state(self) -> State:
        """The State that holds the arrays."""
        return State("proof", {field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def of(cls, state: State) -> Proof:
        """The Proof that a State of the way "proof" holds."""
        values = {
            name: value.item() if value.ndim == 0 else value for name, value in state.values.items()
        }
        return cls(**values)
