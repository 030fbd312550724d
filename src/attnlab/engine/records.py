"""Records of numbers and arrays at an address: compiled code passes one number, and reads a field
where it uses it.

When compiled code passes or reads a named tuple, it splits the tuple into its parts, and each array
into at least nine numbers. For the named tuples of system.py and stepper.py this took most of the
compile time of the integrator, three seconds.
"""

from __future__ import annotations

import math
import struct
from functools import cache, lru_cache
from typing import Any, get_type_hints

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, register_model

from attnlab.engine.tiling import make_aligned

LINE = 8
"""Numbers per line of the processor's cache."""


class Record:
    """A named tuple of whole numbers, real numbers and arrays that compiled code reads at `address`
    while this object lives.

    It is stored as compiled code has it in memory. Of an array: no owner, twice, then size, item
    size, place, shape and strides. The named tuple's annotations say which numbers are real.
    """

    def __init__(self, fields: Any):
        words, kind = list[int](), fields.__class__
        for field, is_real in zip(fields, _are_real(kind), strict=True):
            if isinstance(field, np.ndarray):
                if not field.flags.c_contiguous:
                    raise ValueError(
                        "An array in a Record must be contiguous: compiled code does not use its"
                        " strides."
                    )
                words += (
                    0,
                    0,
                    field.size,
                    field.itemsize,
                    field.ctypes.data,
                    *field.shape,
                    *field.strides,
                )
            else:
                words.append(
                    struct.unpack("=q", struct.pack("=d", field))[0] if is_real else int(field)
                )
        self.fields, self._words = fields, np.array(words, np.int64)
        self.address = self._words.ctypes.data

    @classmethod
    def zeros(cls, shapes: tuple[tuple[int, ...], ...]) -> Record:
        """A Record of new arrays of zeros, in one piece of memory that starts where a cache line
        does, as each array does.
        """
        size, words, places = _layout(shapes)
        made = cls.__new__(cls)
        made.fields, made._words = make_aligned(size), words.copy()
        made._words[places] += made.fields.ctypes.data
        made.address = made._words.ctypes.data
        return made


@cache
def _are_real(kind: Any) -> list[bool]:
    """Of each field of a named tuple, whether it is annotated as a real number."""
    return [hint is float for hint in get_type_hints(kind).values()]


@lru_cache(256)
def _layout(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, np.ndarray, np.ndarray]:
    """(how many numbers arrays of these shapes are in one piece of memory, its Record as if it
    began at 0, where places are).
    """
    begin, words, places = 0, list[int](), []
    for shape in shapes:
        size, strides = (
            math.prod(shape),
            [8 * math.prod(shape[axis + 1 :]) for axis in range(len(shape))],
        )
        places.append(len(words) + 4)
        words += (0, 0, size, 8, 8 * begin, *shape, *strides)
        begin += -(-size // LINE) * LINE
    return begin, np.array(words, np.int64), np.array(places)


class Place(types.Type):
    """The type of a Record in compiled code: where it is. `kind` is Numba's type of the named
    tuple.
    """

    def __init__(self, kind: Any):
        self.kind = kind
        super().__init__(name=f"attnlab.Place({kind})")


@register_model(Place)
class _PlaceModel(PrimitiveModel):
    def __init__(self, manager, type_):
        super().__init__(manager, type_, ir.IntType(64))


@infer_getattr
class _Fields(AttributeTemplate):
    key = Place

    def generic_resolve(self, place, name):  # type: ignore[override]
        return dict(zip(place.kind.fields, place.kind.types, strict=True)).get(name)


@lower_getattr_generic(Place)
def _read_field(context, builder, place, address, name):
    form = context.get_value_type(place.kind)
    index = place.kind.fields.index(name)
    whole = builder.inttoptr(address, form.as_pointer())
    zero, number = ir.Constant(ir.IntType(32), 0), ir.Constant(ir.IntType(32), index)
    return builder.load(
        builder.gep(whole, [zero, number], source_etype=form), align=8, typ=form.elements[index]
    )


def reader(example: Any) -> Any:
    """A function read(address) for compiled code: the Record there, whose named tuple is like the
    example.
    """
    form = example.__class__
    fields = [
        (
            types.Array(types.float64 if field.dtype == float else types.int64, field.ndim, "C")
            if isinstance(field, np.ndarray)
            else types.float64
            if is_real
            else types.int64
        )
        for field, is_real in zip(example, _are_real(form), strict=True)
    ]
    kind = types.NamedTuple(fields, form)  # as numba.typeof(example), which imports numpy.ma

    @intrinsic
    def read(typingctx, address):
        return Place(kind)(types.int64), lambda context, builder, signature, arguments: arguments[0]

    return read
