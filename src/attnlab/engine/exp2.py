"""2^x for eight numbers x <= 0 at once, to 1.1 units in the last place: half a unit for the root,
half for the result.

x = t + r with t a multiple of 1/16 and |r| <= 1/32; 2^t from a table of sixteen roots, which fits
in two registers, its exponent by adding whole numbers to it; 2^r by the polynomial of degree 6 with
the smallest largest relative error (6.9e-18; tests/truth/remez.py makes it again). Without the
table it would take degree 11 for the same, and three instructions more. Below -1022, where numbers
are no longer normal, the answer is 0: no sum with a term 1 in it can see the difference, but
arithmetic with such numbers takes a hundred times as long. NaN stays NaN. There is no upper clamp:
x must stay below 1023.
"""

import numba

from attnlab.engine.lanes import (
    add,
    divide,
    fill,
    fraction,
    larger,
    multiply,
    multiply_add,
    power_of_sixteenths,
    subtract,
    zero_below,
)

COEFFICIENTS = (
    1.0,
    0.6931471805599468,
    0.24022650695909842,
    0.0555041086520945,
    0.009618129113142318,
    0.001333381880779842,
    0.0001540330454429504,
)
_, C1, C2, C3, C4, C5, C6 = COEFFICIENTS


@numba.njit(inline="always")
def exp2(x):
    """2^x of Lanes, x <= 0; 0 below the smallest normal number."""
    return zero_below(x, fill(-1022.0), exp2_within(x))


@numba.njit(inline="always")
def exp2_within(x):
    """2^x of Lanes, -1022 <= x < 1023."""
    r = fraction(x)
    power = power_of_sixteenths(x)
    p = multiply_add(fill(C6), r, fill(C5))
    p = multiply_add(p, r, fill(C4))
    p = multiply_add(p, r, fill(C3))
    p = multiply_add(p, r, fill(C2))
    p = multiply_add(p, r, fill(C1))
    return multiply_add(multiply(power, r), p, power)


@numba.njit(inline="always")
def logistic(x):
    """1 / (1 + 2^-x) of any Lanes: never overflows; 0 below the smallest normal number."""
    held = larger(x, fill(-1022.0))  # this way round NaN stays
    return zero_below(
        x, fill(-1022.0), divide(fill(1.0), add(fill(1.0), exp2(subtract(fill(0.0), held))))
    )
