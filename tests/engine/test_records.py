"""Records that compiled code reads at an address, parts that it calls by a symbol, and the
coefficients of the steppers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba import float64, int64, types
from scipy.integrate import DOP853

from attnlab.engine import compile as compiling
from attnlab.engine.callers import linked
from attnlab.engine.records import Record, reader
from attnlab.engine.tables import STEP, table


class Thing(NamedTuple):
    """As System and Control are: whole numbers, real numbers, arrays of one to three axes."""

    count: int
    size: float
    cube: Any
    row: Any
    whole: Any
    last: float


def thing() -> Thing:
    rng = np.random.default_rng(0)
    return Thing(
        -3, 0.1, rng.normal(size=(2, 3, 4)), rng.normal(size=5), np.arange(6).reshape(2, 3), -np.inf
    )


read_thing = reader(thing())


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """What is compiled here is not kept."""
    monkeypatch.setattr(compiling, "cache_folder", lambda: str(tmp_path))


def test_compiled_code_reads_every_field_where_it_is():
    @compiling.compiled(
        types.Tuple((int64, float64, float64, float64, int64, float64, int64, int64))(int64)
    )
    def look(address):
        it = read_thing(address)
        it.row[1] = 7.0
        return (
            it.count,
            it.size,
            it.cube[1, 2, 3],
            it.row[4],
            it.whole[1, 0],
            it.last,
            it.cube.shape[1],
            it.row.size,
        )

    kept = Record(thing())
    expected = thing()
    assert look(kept.address) == (
        -3,
        0.1,
        expected.cube[1, 2, 3],
        expected.row[4],
        3,
        -np.inf,
        3,
        5,
    )
    assert kept.fields.row[1] == 7.0  # the array itself, and not a copy


def test_a_whole_number_in_the_place_of_a_real_one_is_stored_as_a_real_one():
    @compiling.compiled(float64(int64))
    def size(address):
        return read_thing(address).size

    kept = Record(thing()._replace(size=2))
    assert size(kept.address) == 2.0


def test_the_type_of_a_record_is_the_one_that_numba_finds():
    """The layout in memory is Numba's own, so the types must be."""
    assert read_thing._defn(None, int64)[0].return_type.kind == numba.typeof(thing())


def test_an_array_with_gaps_is_refused():
    with pytest.raises(ValueError, match="must be contiguous"):
        Record(thing()._replace(cube=np.zeros((2, 3, 8))[:, :, ::2]))


class Room(NamedTuple):
    """Only arrays, as Work and Scratch."""

    first: Any
    second: Any


SHAPES = Room((3, 2, 5), (7,))
read_room = reader(Room(*map(np.zeros, SHAPES)))


def test_records_of_zeros_do_not_overlap():
    @compiling.compiled(float64(int64, float64))
    def fill(address, value):
        room = read_room(address)
        total = 0.0
        for i in range(3):
            for j in range(2):
                for k in range(5):
                    total += room.first[i, j, k]
                    room.first[i, j, k] = value
        for i in range(7):
            total += room.second[i]
            room.second[i] = 10.0 * value
        return total

    one, other = Record.zeros(SHAPES), Record.zeros(SHAPES)
    assert fill(one.address, 1.0) == 0.0 and fill(other.address, 2.0) == 0.0
    assert fill(one.address, 0.0) == 30.0 + 70.0 and fill(other.address, 0.0) == 60.0 + 140.0


def test_a_linked_part_is_called_and_not_compiled_again():
    @compiling.compiled(types.void(float64[:, ::1], float64))
    def add_to_all(y, amount):
        for a in range(y.shape[0]):
            for i in range(y.shape[1]):
                y[a, i] += amount

    call_add = linked(add_to_all)

    def add_twice(y):
        call_add(y, 1)
        call_add(y, 0.5)

    made = numba.njit(types.void(float64[:, ::1]))(add_twice)
    y = np.zeros((2, 3))
    made(y)
    assert (y == 1.5).all()
    (code,) = made.inspect_llvm().values()
    assert "declare" in code and f"{add_to_all.__module__}.add_to_all" in code
    assert "fadd" not in code  # the addition is in the other function alone


def test_the_adaptive_stepper_has_scipys_coefficients():
    _, A, c, errors, dense, *_ = table("adaptive")
    np.testing.assert_array_equal(A[:STEP, :STEP], DOP853.A)
    np.testing.assert_array_equal(A[STEP, :STEP], DOP853.B)
    np.testing.assert_array_equal(A[STEP + 1 :], DOP853.A_EXTRA)
    np.testing.assert_array_equal(c, [*DOP853.C, 1.0, *DOP853.C_EXTRA])
    np.testing.assert_array_equal(errors[:2, : STEP + 1], [DOP853.E5, DOP853.E3])
    np.testing.assert_array_equal(dense, DOP853.D)
    assert not A[:, STEP + 1 :][: STEP + 1].any() and not errors[:, STEP + 1 :].any()
