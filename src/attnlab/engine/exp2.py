"""2^x for eight numbers x <= 0 at once, to one unit in the last place (1.5e-16 relative).

x = t + r with t whole and |r| <= 1/2; 2^r by the polynomial of degree 11 with the smallest largest relative error
(3.1e-18; degree 10 has 2.1e-16, two units in the last place of a number just below 1; tests/remez.py makes it again), then t is
added to the exponent. Below -1022, where numbers are no longer normal, the answer is 0: no sum with a term 1 in it can see the
difference, but arithmetic with such numbers takes a hundred times as long.
NaN stays NaN. There is no upper clamp: x must stay below 1023.
"""

import numba

from attnlab.engine.lanes import fill, fraction, multiply_add, shift_exponent, zero_below

COEFFICIENTS = (
    1.0,
    0.6931471805599453,
    0.24022650695910155,
    0.055504108664819925,
    0.009618129107588335,
    0.0013333558146789953,
    0.00015403530462514668,
    1.5252733489958518e-05,
    1.3215433089567188e-06,
    1.0178198034320938e-07,
    7.074105630863329e-09,
    4.435280790456428e-10,
)
C0, C1, C2, C3, C4, C5, C6, C7, C8, C9, C10, C11 = COEFFICIENTS


@numba.njit(inline="always")
def exp2(x):
    """2^x of Lanes, x <= 0; 0 below the smallest normal number."""
    return zero_below(x, fill(-1022.0), exp2_within(x))


@numba.njit(inline="always")
def exp2_within(x):
    """2^x of Lanes, -1022 <= x < 1023."""
    r = fraction(x)
    p = multiply_add(fill(C11), r, fill(C10))
    p = multiply_add(p, r, fill(C9))
    p = multiply_add(p, r, fill(C8))
    p = multiply_add(p, r, fill(C7))
    p = multiply_add(p, r, fill(C6))
    p = multiply_add(p, r, fill(C5))
    p = multiply_add(p, r, fill(C4))
    p = multiply_add(p, r, fill(C3))
    p = multiply_add(p, r, fill(C2))
    p = multiply_add(p, r, fill(C1))
    p = multiply_add(p, r, fill(C0))
    return shift_exponent(p, x)
