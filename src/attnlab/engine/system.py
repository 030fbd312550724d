"""A Dynamics as the arrays that compiled code reads: `System`, and the scratch memory of one
trajectory: `Work`.

The integrator works on y, with mean^h_i = sum_j P^h_ij y_j:

    frame x   x = e^{log_scale} y                y_i' = sum_h V_h mean^h_i
    frame z   x = e^{log_scale} e^{tW} y         y_i' = sum_h e^{-tW} V_h e^{tW} (mean^h_i - y_i),     W = sum_h V_h

(exp_mean in z: rows do not sum to 1, so W y_i is subtracted at the end instead). One head commutes
with its own exponential.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from attnlab.engine import unrolled
from attnlab.engine.compile import address_of
from attnlab.engine.coordinates import real_eigenbasis
from attnlab.engine.cores.kernels import core_of
from attnlab.engine.cores.reads import read_of
from attnlab.engine.tiling import ROWS, key_size, value_size, work_size
from attnlab.exponential import Matrix
from attnlab.types import Dynamics

NO_EXPONENTIAL, EIGENBASIS, TAYLOR = 0, 1, 2
EUCLIDEAN, TANGENT, POST_NORM = 0, 1, 2
NO_FEEDFORWARD, IDENTITY, RELU, TANH = 0, 1, 2, 3
ACTIVATION_CODE = {"identity": IDENTITY, "relu": RELU, "tanh": TANH}


STAY, BASIS, INVERSE, SHIFTED, OUTER = range(5)
"""System.square[...]: what multiplies y_i itself; real eigenbasis of A, its inverse; A - rate I;
the feed-forward layer's W.
"""

GROWTH_RATE, TURN, BIAS, BIAS_OUTSIDE = range(4)
"""System.row[...]: eigenvalues of A minus rate; b at the first of the two rows of a pair a +- ib;
the feed-forward biases.
"""

GROW, SHRINK, SCRATCH, SCRATCH_TWO = range(4)
"""Work.square[...]: e^{t (A - rate)}, its inverse, and two scratch matrices."""


class System(NamedTuple):
    """The equation in one frame, for n tokens. Arrays are contiguous float64, counts int64, choices
    the codes above.

    Compiled code reads it as a Record (records.py).
    """

    n: int
    # addresses: of the attention kernel, and of parts that not every system needs (0: not there)
    core: int
    pack_keys_address: int
    pack_values_address: int
    exponential_address: int
    finish_address: int
    extended_address: int
    transposed_address: int
    read_address: int
    is_tiled: int
    table_size: (
        int  # the numbers of scratch of a kernel that takes all rows at once; 0: it takes blocks
    )
    is_causal: int
    is_hardmax: int
    keys_are_tokens: int  # then query_map is M^T and key_map is not read
    values_are_tokens: int  # else V = B C, with C in value_map and B in out_map
    subtract_self: int
    has_stay: int
    exponential: int
    is_conjugated: int  # several heads in the frame z
    geometry: int
    feedforward: int
    number: float  # of the kernel's own, as the bias of the sigmoid
    read_number: float  # of the read's own, as eps
    log2_factor: float  # log2 of |beta| log2(e) and of the scales taken out of Q and K
    rate: float  # e^{tA} = e^{rate t} (what is formed)
    query_map: np.ndarray  # (h, k, d), the sign of beta inside
    key_map: np.ndarray  # (h, k, d)
    value_map: np.ndarray  # (h, r, d)
    out_map: np.ndarray  # (h, d, r)
    square: np.ndarray  # (5, d, d)
    row: np.ndarray  # (4, d)


class Work(NamedTuple):
    """Scratch memory of one trajectory, allocated once: arrays, or their shapes."""

    # (3, d, n_pad): x without its scale, or what is read of it; means and queries of extended.py
    token: Any
    score: Any  # (2, k, n_pad): queries, keys
    value: Any  # (2, r, n_pad): values, means
    packed_keys: Any
    packed_values: Any
    tile: Any
    square: Any  # (4, d, d)


def generator(dynamics: Dynamics, frame: str) -> Matrix:
    """A of x = e^{tA} y: sum_h V_h in the frame z, 0 in the frame x."""
    return dynamics.weights.total.scaled(1.0 if frame == "z" else 0.0)


def power_of_two_scale(*arrays: np.ndarray) -> int:
    """The exponent e with max|entries| in [2^(e-1), 2^e), 0 for zero arrays."""
    size = max(float(np.abs(array).max()) for array in arrays)
    return math.frexp(size)[1] if size > 0 else 0


def score_maps(dynamics: Dynamics) -> tuple[np.ndarray, np.ndarray, bool, float]:
    """(query_map, key_map, keys_are_tokens, log2_factor): scores as plain inner products of numbers
    of size 1.
    """
    Q, K = dynamics.weights.Q, dynamics.weights.K
    scale_q, scale_k = power_of_two_scale(Q), power_of_two_scale(K)
    Q, K = np.ldexp(Q, -scale_q), np.ldexp(K, -scale_k)
    if dynamics.beta < 0:
        Q = -Q
    keys_are_tokens = Q.shape[1] >= Q.shape[2]
    if keys_are_tokens:
        Q = np.swapaxes(np.swapaxes(Q, 1, 2) @ K, 1, 2)  # M^T: s_ij = <M^T x_i, x_j>
    strength = abs(dynamics.beta) * math.log2(math.e)
    log2_factor = (math.log2(strength) if strength > 0 else -math.inf) + scale_q + scale_k
    return Q, K, keys_are_tokens, log2_factor


def is_hardmax(dynamics: Dynamics) -> bool:
    """Whether only the best scores count. At beta = 0 all scores are equal, and hardmax is
    softmax.
    """
    return core_of(dynamics).is_hardmax and dynamics.beta != 0.0


def core_for(dynamics: Dynamics, n: int, k: int, r: int) -> tuple[Any, bool]:
    """(the compiled attention kernel for n tokens, whether it is the tiled one)."""
    table = core_of(dynamics).table
    if table is not None:
        return table(), False
    all_tied = core_of(dynamics).is_hardmax and not is_hardmax(dynamics)
    kernel = unrolled.SOFTMAX if all_tied else core_of(dynamics).code
    mask = unrolled.CAUSAL if dynamics.mask.is_causal else unrolled.FULL
    if max(k, r) <= (
        unrolled.MOST_COORDINATES_FEW_TOKENS
        if n <= unrolled.FEW_TOKENS
        else unrolled.MOST_COORDINATES
    ):
        return unrolled.unrolled_core(k, r, kernel, mask), False
    from attnlab.engine.tiled import tiled_core

    return tiled_core(kernel, mask), True


def number_of(dynamics: Dynamics) -> float:
    """Return the number that the compiled kernel takes; 0 if it takes none."""
    number = core_of(dynamics).number
    return 0.0 if number is None else number(dynamics.kernel)


def make_system(
    dynamics: Dynamics, n: int, frame: str, may_extend: bool = False, has_kernel: bool = True
) -> System:
    """Return the System of n tokens in a frame. Matrices are formed in full, so d must be moderate.
    may_extend: see extended.py.

    has_kernel=False: only the types that compiled code expects matter; no kernel is compiled.
    """
    weights, d = dynamics.weights, dynamics.weights.d
    query_map, key_map, keys_are_tokens, log2_factor = score_maps(dynamics)
    A = generator(dynamics, frame).dense()
    is_scalar = np.array_equal(A, A[0, 0] * np.eye(d))
    is_conjugated = frame == "z" and weights.heads > 1 and not is_scalar
    # e^{-tA} B C e^{tA} cannot be applied to sums of C y: conjugated heads need V in full
    values_are_tokens = is_conjugated or not weights.is_factored or weights.V[0].shape[2] >= d
    out_map, value_map = (
        (weights.full_V, np.zeros((weights.heads, d, d))) if values_are_tokens else weights.V
    )
    rate = A[0, 0] if is_scalar else float(np.linalg.eigvals(A).real.max())
    eigenbasis = None if is_scalar else real_eigenbasis(A)
    basis, growth, turn = (
        eigenbasis if eigenbasis is not None else (np.eye(d), np.zeros(d), np.zeros(d))
    )
    normalised = dynamics.kernel.rows_sum_to_one
    stay = -A if frame == "z" and not normalised else np.zeros((d, d))
    core, is_tiled = (
        core_for(dynamics, n, query_map.shape[1], out_map.shape[2]) if has_kernel else (None, False)
    )
    read, read_number = read_of(dynamics)
    layer = dynamics.feedforward if dynamics.feedforward.acts_on_z else None
    outer = np.eye(d) if layer is None or layer.W is None else layer.W
    bias = np.zeros(d) if layer is None or layer.bias is None else layer.bias
    bias_outside = (
        np.zeros(d) if layer is None or layer.bias_outside is None else layer.bias_outside
    )
    # compiled code has one type for each field: contiguous and writable
    maps: dict[str, Any] = {
        "query_map": query_map,
        "key_map": key_map,
        "value_map": value_map,
        "out_map": out_map,
    }
    maps = {name: np.array(array, order="C") for name, array in maps.items()}
    return System(
        n=n,
        core=address_of(core) if has_kernel else 0,
        read_address=0 if read is None else address_of(read),
        **_parts(dynamics, is_tiled, not is_scalar, may_extend),
        is_tiled=int(is_tiled),
        table_size=(
            table_size(n)
            if has_kernel and (table_size := core_of(dynamics).table_size) is not None
            else 0
        ),
        is_causal=int(dynamics.mask.is_causal),
        is_hardmax=int(is_hardmax(dynamics)),
        keys_are_tokens=int(keys_are_tokens),
        values_are_tokens=int(values_are_tokens),
        subtract_self=int(normalised and frame == "z"),
        has_stay=int(stay.any()),
        exponential=(
            NO_EXPONENTIAL if is_scalar else EIGENBASIS if eigenbasis is not None else TAYLOR
        ),
        is_conjugated=int(is_conjugated),
        geometry=(
            EUCLIDEAN
            if dynamics.geometry.is_linear
            else POST_NORM
            if dynamics.is_layers
            else TANGENT
        ),
        feedforward=NO_FEEDFORWARD if layer is None else ACTIVATION_CODE[layer.sigma],
        number=number_of(dynamics),
        read_number=read_number,
        log2_factor=log2_factor,
        rate=float(rate),
        **maps,
        square=np.stack([stay, basis, np.linalg.inv(basis), A - rate * np.eye(d), outer]),
        row=np.stack([growth - rate, turn, bias, bias_outside]),
    )


def _parts(
    dynamics: Dynamics, is_tiled: bool, needs_exponential: bool, may_extend: bool
) -> dict[str, Any]:
    """The addresses of the parts this system needs: importing a part compiles it, or loads it from
    the cache.
    """
    addresses = dict.fromkeys(
        (
            "pack_keys_address",
            "pack_values_address",
            "exponential_address",
            "finish_address",
            "extended_address",
            "transposed_address",
        ),
        0,
    )
    if is_tiled:
        from attnlab.engine.tiled import pack_keys, pack_values

        addresses["pack_keys_address"], addresses["pack_values_address"] = (
            address_of(pack_keys),
            address_of(pack_values),
        )
    if needs_exponential:
        from attnlab.engine.matrix_exponential import exponential

        addresses["exponential_address"] = address_of(exponential)
    if not dynamics.feedforward.is_none or (
        not dynamics.geometry.is_linear and not dynamics.is_layers
    ):
        from attnlab.engine.finish import tangent_or_feedforward

        addresses["finish_address"] = address_of(tangent_or_feedforward)
    if may_extend:
        from attnlab.engine.extended import apply_transposed, extended_rows

        addresses["extended_address"], addresses["transposed_address"] = (
            address_of(extended_rows),
            address_of(apply_transposed),
        )
    return addresses


def pad_count(n: int, is_tiled: bool) -> int:
    """Return n rounded up to whole blocks of rows."""
    block = ROWS if is_tiled else 8
    return -(-n // block) * block


def work_shapes(system: System) -> Work:
    """The shapes of the scratch memory for one trajectory of the system."""
    _, k, d = system.query_map.shape
    r, n_pad = system.out_map.shape[2], pad_count(system.n, bool(system.is_tiled))
    sizes = (1, 1, system.table_size or 8)
    if system.is_tiled:
        sizes = key_size(system.n, k), value_size(system.n, r), work_size(k, r)
    packed_keys, packed_values, tile = ((size,) for size in sizes)
    return Work(
        (3, d, n_pad), (2, k, n_pad), (2, r, n_pad), packed_keys, packed_values, tile, (4, d, d)
    )
