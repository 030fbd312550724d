"""The compiled kernels: eight lanes, 2^x, and the attention of blocks of rows, against sums in
Python's own arithmetic.

Most data lie on a grid of eighths: scores are then exact in every order of summation, so that
factors of any size can be compared and ties are ties.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys

import mpmath as mp
import numba
import numpy as np
import pytest

from attnlab.engine import exp2 as exp2_file
from attnlab.engine import lanes, tiled, tiling, unrolled
from attnlab.engine.exp2 import exp2
from attnlab.engine.system import pad_count
from places import ROOT
from remez import minimax_exp2

KERNELS = {
    "softmax": unrolled.SOFTMAX,
    "exp_mean": unrolled.EXP_MEAN,
    "hardmax": unrolled.HARDMAX,
    "sigmoid": unrolled.SIGMOID,
}
HAS_ROWS_OF_SUM_ONE = {"softmax": True, "exp_mean": False, "hardmax": True, "sigmoid": False}
BIAS = {"sigmoid": -1.25}
"""The kernel's own number, in powers of two."""

MASKS = {"full": unrolled.FULL, "causal": unrolled.CAUSAL}
ROUNDING = 2.0**-53
EXP2_ERROR = (
    2.4e-16  # half a unit of the root and half of the result, and a tenth of a unit for the rest
)
SIZES = (1, 2, 7, 8, 9, 16, 17, 40, 240, 241, 513)

add, subtract, multiply, divide = lanes.add, lanes.subtract, lanes.multiply, lanes.divide
load, store, spread, fill, larger = lanes.load, lanes.store, lanes.spread, lanes.fill, lanes.larger
make_stack, get, put = lanes.make_stack, lanes.get, lanes.put


# ----------------------------------------------------------------------------------------------
# lanes


@numba.njit
def _arithmetic(a, b, c, out):
    x, y, z = load(a, 0), load(b, 0), load(c, 0)
    store(out, 0, add(x, y))
    store(out, 8, subtract(x, y))
    store(out, 16, multiply(x, y))
    store(out, 24, divide(x, y))
    store(out, 32, lanes.multiply_add(x, y, z))
    store(out, 40, larger(x, y))
    store(out, 48, lanes.where_equal(x, y, fill(1.0), fill(-1.0)))
    store(out, 56, lanes.fraction(x))
    store(out, 64, spread(a, 3))
    store(out, 72, load(a, 1))
    store(out, 80, fill(2.5))


@numba.njit
def _masks(first, yes, no, out):
    store(out, 0, lanes.where_from(first, load(yes, 0), load(no, 0)))


@numba.njit
def _sixteenths(x, power, rest):
    for i in range(0, len(x), 8):
        store(power, i, lanes.power_of_sixteenths(load(x, i)))
        store(rest, i, lanes.fraction(load(x, i)))


@numba.njit
def _stacked(a, out):
    stack = make_stack(3)
    for m in range(3):
        put(stack, m, load(a, 8 * m))
    for m in range(3):
        store(out, 8 * m, get(stack, 2 - m))


def test_lane_arithmetic_is_that_of_numpy():
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, 9))
    b[2], a[4], a[5] = (
        a[2],
        2.5 / 16,
        -3.5 / 16,
    )  # a tie, and halves of a sixteenth to be rounded to even
    out = np.full(88, np.nan)
    _arithmetic(a, b, c, out)
    rows = out.reshape(-1, 8)
    a8, b8, c8 = a[:8], b[:8], c[:8]
    for row, expected in zip(rows[:4], (a8 + b8, a8 - b8, a8 * b8, a8 / b8), strict=True):
        np.testing.assert_array_equal(row, expected)
    np.testing.assert_allclose(
        rows[4], a8 * b8 + c8, rtol=0, atol=2.0**-52 * (np.abs(a8 * b8) + np.abs(c8)).max()
    )
    np.testing.assert_array_equal(rows[5], np.maximum(a8, b8))
    np.testing.assert_array_equal(rows[6], np.where(a8 == b8, 1.0, -1.0))
    np.testing.assert_array_equal(rows[7], a8 - np.rint(16 * a8) / 16)
    assert rows[7, 4] == rows[7, 5] == 0.5 / 16  # 2.5 is nearest to 2, the even one, and -3.5 to -4
    np.testing.assert_array_equal(rows[8], np.full(8, a[3]))
    np.testing.assert_array_equal(rows[9], a[1:9])
    np.testing.assert_array_equal(rows[10], np.full(8, 2.5))


def test_larger_keeps_a_nan_of_the_first_and_passes_over_one_of_the_second():
    a, b, c = np.zeros(9), np.ones(9), np.zeros(9)
    a[0], b[1] = np.nan, np.nan
    out = np.zeros(88)
    _arithmetic(a, b, c, out)
    assert np.isnan(out[40]) and out[41] == 0.0 and out[42] == 1.0
    assert out[48] == -1.0 and out[49] == -1.0  # NaN equals nothing


@pytest.mark.parametrize("first", [-100, -1, 0, 1, 5, 7, 8, 100])
def test_where_from_cuts_at_the_lane(first):
    yes, no, out = np.arange(8.0), -1.0 - np.arange(8.0), np.zeros(8)
    _masks(first, yes, no, out)
    np.testing.assert_array_equal(out, np.where(np.arange(8) >= first, yes, no))


def test_sixteenths_are_split_off_and_raised():
    x = np.concatenate(
        [
            np.arange(-1022 * 16, 1023 * 16) / 16.0,
            np.random.default_rng(3).uniform(-1022, 1023, 801),
        ]
    )
    x = x[: len(x) // 8 * 8]
    power, rest = np.zeros_like(x), np.zeros_like(x)
    _sixteenths(x, power, rest)
    nearest = np.round(x * 16) / 16  # ties to even, as the machine rounds
    np.testing.assert_array_equal(rest, x - nearest)
    whole = np.floor(nearest)
    np.testing.assert_array_equal(power, np.ldexp(2.0 ** (nearest - whole), whole.astype(int)))


ELSEWHERE = """
import sys
sys.path.insert(0, sys.argv[1])
import numba, numpy as np
from attnlab.engine.exp2 import exp2
from attnlab.engine.lanes import load, store
@numba.njit
def powers(x, out):
    for i in range(0, len(x), 8):
        store(out, i, exp2(load(x, i)))
x = -np.random.default_rng(5).uniform(0, 1100, 8000)
out = np.zeros_like(x)
powers(x, out)
print(np.abs(out / np.exp2(x) - 1)[x >= -1022].max(), out[x < -1022].max())
"""


def test_machines_without_wide_registers_load_the_table_instead(tmp_path):
    """The same function compiled for a plain processor of this kind, apart: no fused operations, no
    table in registers.
    """
    environment = {
        **os.environ,
        "NUMBA_ENABLE_AVX": "0",
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    source = str(ROOT / "src")
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, source],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    worst, below = map(float, done.stdout.split())
    assert worst < 4e-16 and below == 0.0


def test_a_stack_keeps_its_lanes_apart():
    a, out = np.arange(24.0), np.zeros(24)
    _stacked(a, out)
    np.testing.assert_array_equal(out.reshape(3, 8), a.reshape(3, 8)[::-1])


# ---------------------------------------------------------------------------------------------- 2^x


@numba.njit
def _exp2_of(x, out):
    for i in range(0, len(x), 8):
        store(out, i, exp2(load(x, i)))


def powers(x):
    """2^x by the kernel, for any number of x."""
    x = np.ravel(np.asarray(x, float))
    padded_x, out = np.zeros(-(-len(x) // 8) * 8), np.zeros(-(-len(x) // 8) * 8)
    padded_x[: len(x)] = x
    _exp2_of(padded_x, out)
    return out[: len(x)]


def test_exp_of_minus_745_to_0_is_within_two_units_in_the_last_place():
    """e^x as the kernels form it: the factor log2(e) is folded into the scores, which rounds; so
    2^y for the rounded y.
    """
    x = np.concatenate(
        [
            -np.random.default_rng(4).uniform(0, 745, 6000),
            np.linspace(-745, 0, 1491),
            [-np.inf, np.nan],
        ]
    )
    y = x * math.log2(math.e)
    ours = powers(y)
    assert ours[-2] == 0.0 and np.isnan(ours[-1])
    normal = y[:-2] >= -1022.0
    assert (ours[:-2][~normal] == 0.0).all() and (
        ~normal
    ).any()  # e^-708.4 is the smallest normal number; then exactly 0
    with mp.workdps(40):
        exact = [mp.power(2, mp.mpf(float(v))) for v in y[:-2][normal]]
        found = zip(ours[:-2][normal], exact, strict=True)
        units = [
            abs(mp.mpf(float(one)) - e) / mp.mpf(float(np.spacing(float(e)))) for one, e in found
        ]
    assert max(units) <= 2.0


def test_exp2_is_accurate_on_all_of_its_range():
    rng = np.random.default_rng(1)
    halves = -np.arange(0, 1021) - np.tile([1, 3, 5, 7], 256)[:1021] / 32  # between two sixteenths
    x = np.concatenate([
        -rng.uniform(0, 1021, 3000), -rng.uniform(0, 2, 3000), -(10.0 ** rng.uniform(-300, 0, 300)), halves,
        np.nextafter(halves, 0), np.nextafter(halves, -np.inf), [-1021.0],
    ])  # fmt: skip
    ours = powers(x)
    with mp.workdps(40):
        worst = max(
            abs(mp.mpf(float(y)) / mp.power(2, mp.mpf(float(v))) - 1)
            for v, y in zip(x, ours, strict=True)
        )
    assert worst <= EXP2_ERROR


def test_exp2_of_whole_numbers_is_exact():
    whole = -np.arange(0.0, 1023.0)
    np.testing.assert_array_equal(powers(whole), np.ldexp(1.0, whole.astype(int)))
    np.testing.assert_array_equal(powers([0.0, -0.0]), [1.0, 1.0])


def test_exp2_far_below_is_nothing_and_nan_stays():
    x = np.concatenate([np.linspace(-1100, -1022, 400), [-1e300, -np.inf, -1e4, -1e18]])
    small = powers(x)
    assert (small[x < -1022] == 0.0).all() and (small[x == -1022] == 2.0**-1022).all()
    low = powers(np.linspace(-1022, -1021, 100))
    assert (low >= 2.0**-1022).all() and (low <= 2.0**-1021).all()
    mixed = powers([np.nan, -1.0, -np.nan, 0.0, -np.inf])
    assert np.isnan(mixed[[0, 2]]).all() and mixed[1] == 0.5 and mixed[3] == 1.0


def test_exp2_never_decreases():
    x = np.sort(-np.random.default_rng(2).uniform(0, 1100, 4000))
    assert (np.diff(powers(x)) >= 0).all()


def test_the_polynomial_is_the_minimax_one():
    coefficients, error = minimax_exp2(6)
    assert 6.9e-18 < error < 7.0e-18
    ours = exp2_file.COEFFICIENTS
    assert ours[0] == 1.0  # so that 2^0 is exactly 1
    for c, exact in zip(ours, coefficients, strict=True):
        assert abs(c - float(exact)) <= 3e-16 * max(abs(float(exact)), 1e-3)
    with mp.workdps(40):  # what rounding the coefficients has cost
        r = [mp.mpf(i) / 6400 for i in range(-200, 201)]
        worst = max(
            abs(mp.fsum(mp.mpf(c) * v**k for k, c in enumerate(ours)) * mp.power(2, -v) - 1)
            for v in r
        )
    assert worst < 1e-16


# ----------------------------------------------------------------------------------------------
# attention of blocks of rows


def by_loops(q, keys, values, factor, kernel, mask, rows):
    """out (r, len(rows)) in the kernel's convention, weights 2^{factor s_ij}; q, keys (k, n),
    values (r, n).
    """
    k, n = q.shape
    out = np.zeros((len(values), len(rows)))
    for at, i in enumerate(rows):
        seen = i + 1 if mask == "causal" else n
        scores = [
            math.fsum(float(q[c, i]) * float(keys[c, j]) for c in range(k)) for j in range(seen)
        ]
        top = max(scores)
        if kernel == "hardmax":
            weights = [1.0 if s == top else 0.0 for s in scores]
        elif kernel == "sigmoid":
            weights = [1 / (1 + 2.0 ** min(-(factor * s + BIAS[kernel]), 1023.0)) for s in scores]
        else:
            weights = [2.0 ** (factor * (s - top)) for s in scores]
        total = math.fsum(weights)
        if not HAS_ROWS_OF_SUM_ONE[kernel]:
            total = 1.0 if kernel == "sigmoid" else seen / 2.0 ** (factor * top)
        for c, row in enumerate(values):
            out[c, at] = (
                math.fsum(w * float(u) for w, u in zip(weights, row[:seen], strict=True)) / total
            )
    return out


def call(core_kind, q, keys, values, factor, kernel, mask, ranges=None):
    """The kernel's out (r, n); `ranges` are (begin, end) in blocks of rows."""
    (k, n), r = q.shape, len(values)
    is_tiled = core_kind == "tiled"
    n_pad, block = pad_count(n, is_tiled), tiling.ROWS if is_tiled else 8
    wide_q, wide_keys, wide_values = (np.zeros((len(a), n_pad)) for a in (q, keys, values))
    wide_q[:, :n], wide_keys[:, :n], wide_values[:, :n] = q, keys, values
    if is_tiled:
        core = tiled.tiled_core(KERNELS[kernel], MASKS[mask])
        flat_keys, flat_values = (
            np.full(tiling.key_size(n, k), np.nan),
            np.full(tiling.value_size(n, r), np.nan),
        )
        tiled.pack_keys(wide_keys, n, flat_keys)
        tiled.pack_values(wide_values, n, flat_values)
        work = np.full(tiling.work_size(k, r), np.nan)
    else:
        core = unrolled.unrolled_core(k, r, KERNELS[kernel], MASKS[mask])
        flat_keys, flat_values, work = wide_keys.ravel(), wide_values.ravel(), np.full(8, np.nan)
    out = np.full((r, n_pad), np.nan)
    for begin, end in ranges or [(0, n_pad // block)]:
        is_small = unrolled.are_small(wide_q, wide_keys, float(factor))
        core(
            wide_q,
            flat_keys,
            flat_values,
            n,
            begin * block,
            end * block,
            float(factor),
            BIAS.get(kernel, 0.0),
            is_small,
            work,
            out,
        )
    return out[:, :n]


def on_grid(rng, rows, n, size=4):
    """Multiples of 1/8 up to `size`: products and their sums are exact."""
    return rng.integers(-8 * size, 8 * size + 1, (rows, n)) / 8.0


def some_rows(n):
    """All rows of a small system; of a large one those at the borders of blocks and tiles."""
    if n <= 40:
        return list(range(n))
    return sorted(
        {
            i
            for i in (0, 1, 7, 8, 15, 16, 100, 238, 239, 240, 241, 255, 256, 511, 512, n - 2, n - 1)
            if i < n
        }
    )


def bound(n, values):
    """Rounding of exp2 above and below the line and of two sums of n terms, relative to the largest
    value.
    """
    return (2 * EXP2_ERROR + 2 * (n + 4) * ROUNDING) * np.abs(values).max()


def compare(core_kind, n, k, r, kernel, mask, factor, rng, size=4):
    q, keys, values = (
        on_grid(rng, k, n, size),
        on_grid(rng, k, n, size),
        rng.standard_normal((r, n)),
    )
    rows = some_rows(n)
    truth = by_loops(q, keys, values, factor, kernel, mask, rows)
    ours = call(core_kind, q, keys, values, factor, kernel, mask)[:, rows]
    if kernel == "exp_mean":
        # each row has a size of its own, and rounding of the exponent factor * top counts
        top = (q[:, rows].T @ keys).max(axis=1)
        size_of = 2.0 ** (factor * top) * (1 + np.abs(factor * top))
        assert (np.abs(ours - truth) <= bound(n, values) * size_of).all()
    elif kernel == "sigmoid":
        np.testing.assert_allclose(
            ours, truth, rtol=0, atol=bound(n, values) * n
        )  # the weights of a row sum to n at most
    else:
        np.testing.assert_allclose(ours, truth, rtol=0, atol=bound(n, values))


SOME_SHAPES = ((1, 1), (3, 2), (4, 4), (8, 8))


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kernel", ["softmax", "exp_mean"])
@pytest.mark.parametrize("kind", ["unrolled", "tiled"])
def test_rows_with_and_without_a_maximum_agree_at_the_limit_between_them(kind, kernel, mask):
    """Scores of 89 bits need no maximum, of 91 they do; large ones may sit beside small ones in one
    block.
    """
    rng = np.random.default_rng(12)
    k, r, n = (3, 2, 41) if kind == "unrolled" else (6, 13, 41)
    q, keys, values = on_grid(rng, k, n), on_grid(rng, k, n), rng.standard_normal((r, n))
    rows, largest_product = (
        list(range(n)),
        float(np.linalg.norm(q, axis=0).max() * np.linalg.norm(keys, axis=0).max()),
    )
    for bits in (89.0, 91.0):
        factor = 2.0 ** math.floor(
            math.log2(bits / largest_product)
        )  # a power of two: products stay exact
        scaled = q * (bits / largest_product / factor)
        truth = by_loops(scaled, keys, values, factor, kernel, mask, rows)
        ours = call(kind, scaled, keys, values, factor, kernel, mask)
        scores = factor * scaled.T @ keys
        top = 0.0 if kernel == "softmax" else scores.max(axis=1)
        # scores of 90 bits are rounded at 90 eps, and the weights with them
        off = (bound(n, values) + 4 * 91 * k * ROUNDING * np.abs(values).max()) * 2.0**top
        assert (np.abs(ours - truth) <= off).all()


@pytest.mark.parametrize("kind", ["unrolled", "tiled"])
def test_tiny_values_under_small_weights_do_not_underflow(kind):
    """Coordinates 1e-280 of the largest are kept by runs: their mean must not come out of weights
    of 2^-90 as 0.
    """
    k, r, n = (1, 2, 16) if kind == "unrolled" else (6, 13, 16)
    q, keys, values = np.zeros((k, n)), np.zeros((k, n)), np.ones((r, n))
    q[0], keys[0], values[-1] = -9.0, 9.9, 1e-280  # all scores equal, -89.1 bits
    ours = call(kind, q, keys, values, 1.0, "softmax", "full")
    np.testing.assert_allclose(ours, values, rtol=1e-14)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shape", SOME_SHAPES, ids=str)
def test_unrolled_equals_the_loops(shape, kernel, mask):
    rng = np.random.default_rng([*shape, KERNELS[kernel], MASKS[mask]])
    for n in SIZES:
        compare("unrolled", n, *shape, kernel, mask, 0.37, rng, size=2)


@pytest.mark.slow
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "shape",
    [(k, r) for k in range(1, 5) for r in range(1, 5) if (k, r) not in SOME_SHAPES],
    ids=str,
)
def test_unrolled_equals_the_loops_for_every_shape(shape, kernel, mask):
    rng = np.random.default_rng([*shape, KERNELS[kernel], MASKS[mask]])
    for n in (1, 7, 8, 9, 40):
        compare("unrolled", n, *shape, kernel, mask, 0.37, rng, size=2)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (6, 13), (12, 24), (25, 7)], ids=str)
def test_tiled_equals_the_loops(shape, kernel, mask):
    rng = np.random.default_rng([*shape, KERNELS[kernel], MASKS[mask], 1])
    for n in SIZES if shape in ((5, 5), (6, 13)) else (1, 8, 17, 241):
        compare("tiled", n, *shape, kernel, mask, 0.37, rng, size=2)


CASES = [("unrolled", 3, 2), ("tiled", 6, 13)]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("factor", [0.0, 1e-300, 1e-17, 40.0, 1e6, 1e300])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_factors_of_every_size(case, factor, mask):
    kind, k, r = case
    rng = np.random.default_rng(5)
    for n in (1, 9, 40, 241, 513):
        compare(kind, n, k, r, "softmax", mask, factor, rng)
    for n in (1, 9, 241):
        compare(kind, n, k, r, "sigmoid", mask, factor, rng)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_sigmoid_is_0_and_1_where_scores_are_huge(case):
    """Also where a score times the factor is infinite."""
    kind, k, r = case
    n, values = 21, np.arange(1.0, r + 1)[:, None] * np.ones(21)
    for sign, weight in ((1.0, 1.0), (-1.0, 0.0)):
        for size in (1e3, 1e100, 1e160):
            ours = call(
                kind,
                sign * np.full((k, n), size),
                np.full((k, n), size),
                values,
                1e10,
                "sigmoid",
                "full",
            )
            np.testing.assert_array_equal(ours, weight * n * values)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_the_bias_of_the_sigmoid_is_the_number_of_tokens_unless_given(case, mask, monkeypatch):
    """With scores of 0 the weights are 1 / (1 + tokens seen), so their sum is seen / (1 + seen)."""
    kind, k, r = case
    monkeypatch.setitem(BIAS, "sigmoid", math.nan)
    ours = call(
        kind, np.zeros((k, 250)), np.zeros((k, 250)), np.ones((r, 250)), 1.0, "sigmoid", mask
    )
    seen = np.arange(1, 251) if mask == "causal" else np.full(250, 250)
    np.testing.assert_allclose(ours, np.broadcast_to(seen / (1 + seen), ours.shape), rtol=1e-14)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_factor_zero_is_the_plain_mean_and_a_huge_one_the_hardmax(case):
    kind, k, r = case
    rng = np.random.default_rng(6)
    n = 250
    q, keys, values = on_grid(rng, k, n), on_grid(rng, k, n), rng.standard_normal((r, n))
    mean = np.array([math.fsum(row) / n for row in values])
    ours = call(kind, q, keys, values, 0.0, "softmax", "full")
    np.testing.assert_allclose(
        ours, np.repeat(mean[:, None], n, axis=1), rtol=0, atol=bound(n, values)
    )
    np.testing.assert_allclose(
        call(kind, q, keys, values, 1e300, "softmax", "full"), call(kind, q, keys, values, 1.0, "hardmax", "full"),
        rtol=0, atol=bound(n, values),
    )  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_factors_of_every_size_for_exp_mean(case):
    kind, k, r = case
    rng = np.random.default_rng(7)
    for factor in (0.0, 1e-300, 1e-3, 5.0):  # 5 * 4 * 4 * 6 bits stay below 1023
        for mask in MASKS:
            compare(kind, 41, k, r, "exp_mean", mask, factor, rng)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_exp_mean_overflows_to_infinity_and_underflows_to_zero(case):
    kind, k, r = case
    n = 20
    keys, values = np.ones((k, n)), np.ones((r, n))
    up = call(kind, np.ones((k, n)), keys, values, 1e5, "exp_mean", "full")
    assert (up == np.inf).all()
    down = call(kind, -np.ones((k, n)), keys, values, 1e5, "exp_mean", "full")
    assert (down == 0.0).all()


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_scores_of_1e300_keep_their_order(case, scale):
    """The largest weight is exactly 1, whatever the size of the scores: no inf, no NaN."""
    kind, k, r = case
    rng = np.random.default_rng(8)
    n = 260
    exponent = round(math.log2(scale))
    q, keys, values = on_grid(rng, k, n), on_grid(rng, k, n), rng.standard_normal((r, n))
    big = call(
        kind,
        np.ldexp(q, exponent),
        np.ldexp(keys, exponent),
        values,
        0.75 if scale > 1 else 1e300,
        "softmax",
        "full",
    )
    truth = by_loops(
        np.ldexp(q, exponent),
        np.ldexp(keys, exponent),
        values,
        0.75 if scale > 1 else 1e300,
        "softmax",
        "full",
        some_rows(n),
    )
    np.testing.assert_allclose(big[:, some_rows(n)], truth, rtol=0, atol=bound(n, values))


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kernel", ["softmax", "hardmax"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_identical_tokens_average_to_themselves(case, kernel, mask):
    kind, k, r = case
    n = 245
    rng = np.random.default_rng(9)
    q, keys, value = (
        rng.standard_normal((k, 1)),
        rng.standard_normal((k, 1)),
        rng.integers(-9, 9, (r, 1)) + 0.0,
    )
    for factor in (3.7, 3.7e4):  # small scores need no maximum, and weights are then not 1
        ours = call(
            kind, *(np.repeat(a, n, axis=1) for a in (q, keys, value)), factor, kernel, mask
        )
        is_small = factor < 1e4 and kernel == "softmax"
        exact = np.repeat(value, n, axis=1)
        np.testing.assert_allclose(
            ours,
            exact,
            rtol=0 if is_small else 4 * ROUNDING,
            atol=bound(n, value) if is_small else 0,
        )
        if mask == "full":
            np.testing.assert_array_equal(ours, np.repeat(ours[:, :1], n, axis=1))


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_ties_of_hardmax_are_averaged(case, mask):
    """Scores from {-1, 0, 1}: hundreds of ties, within a tile and across tiles."""
    kind, k, r = case
    n = 500
    rng = np.random.default_rng(10)
    q, keys = np.zeros((k, n)), np.zeros((k, n))
    q[0], keys[0] = rng.integers(-1, 2, n), rng.integers(-1, 2, n)
    values = rng.integers(-50, 51, (r, n)) + 0.0
    rows = some_rows(n)
    truth = by_loops(q, keys, values, 1.0, "hardmax", mask, rows)
    np.testing.assert_allclose(
        call(kind, q, keys, values, 1.0, "hardmax", mask)[:, rows], truth, rtol=4 * ROUNDING, atol=0
    )


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_rows_in_parts_are_bit_equal_to_the_whole(case, kernel, mask):
    kind, k, r = case
    rng = np.random.default_rng(11)
    n = 301
    q, keys, values = (rng.standard_normal((a, n)) for a in (k, k, r))
    blocks = pad_count(n, kind == "tiled") // (tiling.ROWS if kind == "tiled" else 8)
    whole = call(kind, q, keys, values, 1.3, kernel, mask)
    parts = [(3, 4), (0, 3), (blocks - 1, blocks), (4, blocks - 1)]
    np.testing.assert_array_equal(call(kind, q, keys, values, 1.3, kernel, mask, parts), whole)
    only = call(kind, q, keys, values, 1.3, kernel, mask, [(1, 2)])
    first, last = np.flatnonzero(~np.isnan(only[0]))[[0, -1]]
    assert (first, last) == ((16, 31) if kind == "tiled" else (8, 15))  # nothing else is written


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_nan_in_a_key_is_nan_in_every_row_that_sees_it(case, kernel, mask):
    kind, k, r = case
    rng = np.random.default_rng(12)
    n = 260
    q, keys, values = (rng.standard_normal((a, n)) for a in (k, k, r))
    clean = call(kind, q, keys, values, 1.3, kernel, mask)
    for j in (0, 13, 239, 240, n - 1):
        spoiled = keys.copy()
        spoiled[k - 1, j] = np.nan
        ours = call(kind, q, spoiled, values, 1.3, kernel, mask)
        unseen = j if mask == "causal" else 0
        np.testing.assert_array_equal(ours[:, :unseen], clean[:, :unseen])
        assert np.isnan(ours[:, unseen:]).all()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_nan_in_a_query_or_a_value_is_nan_where_it_belongs(case, kernel):
    kind, k, r = case
    rng = np.random.default_rng(13)
    n = 40
    q, keys, values = (rng.standard_normal((a, n)) for a in (k, k, r))
    clean = call(kind, q, keys, values, 1.3, kernel, "full")
    spoiled = q.copy()
    spoiled[0, 17] = np.nan
    ours = call(kind, spoiled, keys, values, 1.3, kernel, "full")
    others = np.arange(n) != 17
    assert np.isnan(ours[:, 17]).all()
    np.testing.assert_array_equal(ours[:, others], clean[:, others])
    spoiled = values.copy()
    spoiled[1, 17] = np.nan
    ours = call(kind, q, keys, spoiled, 1.3, kernel, "full")
    assert np.isnan(ours[1]).all()
    np.testing.assert_array_equal(ours[0], clean[0])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_long_sums_stay_accurate(case):
    """8192 random tokens: 3e-14 of the largest value is what a plain sequential sum costs."""
    kind, k, r = case
    rng = np.random.default_rng(14)
    n = 8192
    q, keys, values = (
        on_grid(rng, k, n, 1),
        on_grid(rng, k, n, 1),
        rng.standard_normal((r, n)) + 3.0,
    )
    rows = [0, 1000, n - 1]
    ours = call(kind, q, keys, values, 0.37, "softmax", "full")[:, rows]
    truth = by_loops(q, keys, values, 0.37, "softmax", "full", rows)
    assert np.abs(ours - truth).max() <= 3e-14 * np.abs(values).max()


def test_chunks_keep_the_rounding_of_a_long_sum_small():
    """8192 equal values 0.1 with weight 1: every addition rounds the same way, so a plain sum is
    visibly off.
    """
    n = 8192
    plain = 0.0
    for _ in range(n):
        plain += 0.1
    most = (unrolled.CHUNK + n // unrolled.CHUNK + 2) * ROUNDING
    assert abs(plain / n - 0.1) > 0.1 * most
    ours = call(
        "unrolled", np.zeros((1, n)), np.zeros((1, n)), np.full((1, n), 0.1), 1.0, "softmax", "full"
    )
    assert np.abs(ours - 0.1).max() <= 0.1 * most


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_tiled_and_unrolled_agree_on_random_tokens(kernel, mask):
    """Scores that are not on a grid: the two kernels round them in other ways, by at most k
    roundings of the largest product.
    """
    rng = np.random.default_rng(15)
    n = 333
    q, keys, values = (rng.standard_normal((a, n)) for a in (3, 3, 2))
    factor = 1.3
    first, second = (
        call(kind, q, keys, values, factor, kernel, mask) for kind in ("unrolled", "tiled")
    )
    scores = np.abs(q).T @ np.abs(keys)
    noise = (
        2 * 3 * 2 * ROUNDING * scores.max() * factor * math.log(2)
    )  # both kernels, the score and the maximum
    size = (
        2.0 ** (factor * (q.T @ keys).max(axis=1)) * (1 + factor * scores.max())
        if kernel == "exp_mean"
        else 1.0
    )
    assert (
        np.abs(first - second) <= (2 * bound(n, values) + 2 * noise * np.abs(values).max()) * size
    ).all()
    rows = some_rows(n)
    truth = by_loops(q, keys, values, factor, kernel, mask, rows)
    size = size[rows] if kernel == "exp_mean" else 1.0
    assert (
        np.abs(first[:, rows] - truth)
        <= (bound(n, values) + 2 * noise * np.abs(values).max()) * size
    ).all()
