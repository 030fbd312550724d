"""2^x for eight numbers x <= 0 at once, to 4e-16 relative.

x = t + r with t whole and |r| <= 1/2; 2^r by the polynomial of degree 10 with the smallest largest relative error
(2.1e-16; tests/remez.py makes it again), then t is added to the exponent. Below -1022 the answer is 2^-1022, which no sum
with a term 1 in it can see; NaN stays NaN. There is no upper clamp: x must stay below 1023.
"""

import numba

from attnlab.engine.lanes import fill, larger, multiply_add, round_even, shift_exponent, subtract

COEFFICIENTS = (
    1.0,
    0.6931471805599497,
    0.24022650695908768,
    0.05550410866445883,
    0.009618129108034602,
    0.001333355822856187,
    0.00015403529961120784,
    1.5252658116348333e-05,
    1.3215662838954957e-06,
    1.0208537941214528e-07,
    7.03727835328324e-09,
)
C0, C1, C2, C3, C4, C5, C6, C7, C8, C9, C10 = COEFFICIENTS


@numba.njit(inline="always")
def exp2(x):
    """2^x of Lanes, x <= 0."""
    x = larger(x, fill(-1022.0))      # this way round a NaN in x stays
    whole = round_even(x)
    r = subtract(x, whole)
    p = multiply_add(fill(C10), r, fill(C9))
    p = multiply_add(p, r, fill(C8))
    p = multiply_add(p, r, fill(C7))
    p = multiply_add(p, r, fill(C6))
    p = multiply_add(p, r, fill(C5))
    p = multiply_add(p, r, fill(C4))
    p = multiply_add(p, r, fill(C3))
    p = multiply_add(p, r, fill(C2))
    p = multiply_add(p, r, fill(C1))
    p = multiply_add(p, r, fill(C0))
    return shift_exponent(p, whole)
