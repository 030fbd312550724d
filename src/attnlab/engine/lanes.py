"""Eight float64 numbers at once: a Numba type that lowers to LLVM's <8 x double>, and its
operations.

Rows of the attention matrix go in the lanes and columns are visited in order, so that every sum has
one fixed order: results do not depend on threads, batches, blocking or the width of the machine's
vectors. LLVM splits the type where registers are narrower. No operation carries a fast-math flag.

Arrays are contiguous float64 of any shape, with an offset counted in numbers; nothing is
bounds-checked here.
"""

from __future__ import annotations

import struct

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel.models import PrimitiveModel
from numba.extending import intrinsic, register_model

WIDTH = 8
MAGIC = 1.5 * 2.0**48
_DOUBLE, _INT64 = ir.DoubleType(), ir.IntType(64)
_VECTOR, _BITS = ir.VectorType(_DOUBLE, WIDTH), ir.VectorType(_INT64, WIDTH)


class Lanes(types.Type):
    """Eight float64."""

    def __init__(self) -> None:
        super().__init__(name="attnlab.Lanes")


class LaneStack(types.Type):
    """A stack array of Lanes; promoted to registers where loops over it are unrolled."""

    def __init__(self) -> None:
        super().__init__(name="attnlab.LaneStack")


lanes, lane_stack = Lanes(), LaneStack()


@register_model(Lanes)
class _LanesModel(PrimitiveModel):
    def __init__(self, manager, type_):
        super().__init__(manager, type_, _VECTOR)


@register_model(LaneStack)
class _LaneStackModel(PrimitiveModel):
    def __init__(self, manager, type_):
        super().__init__(manager, type_, _VECTOR.as_pointer())


def _splat(builder, value):
    """A vector with `value` in every lane."""
    kind = _VECTOR if value.type == _DOUBLE else _BITS
    nothing, index = ir.Constant(kind, ir.Undefined), ir.IntType(32)
    one = builder.insert_element(nothing, value, ir.Constant(index, 0))
    return builder.shuffle_vector(
        one, nothing, ir.Constant(ir.VectorType(index, WIDTH), [0] * WIDTH)
    )


def _pointer(context, builder, array_type, array, offset):
    data = context.make_array(array_type)(context, builder, value=array).data
    return builder.gep(data, [offset], source_etype=_DOUBLE)


def _is_contiguous(array) -> bool:
    return isinstance(array, types.Array) and array.dtype == types.float64 and array.layout == "C"


@intrinsic
def load(typingctx, array, offset):
    """array[offset : offset + 8]."""
    if not _is_contiguous(array):
        return None

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(builder.bitcast(pointer, _VECTOR.as_pointer()), align=8, typ=_VECTOR)

    return lanes(array, types.intp), generate


@intrinsic
def store(typingctx, array, offset, value):
    """array[offset : offset + 8] = value."""
    if not _is_contiguous(array) or value != lanes:
        return None

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        builder.store(arguments[2], builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), generate


@intrinsic
def spread(typingctx, array, offset):
    """array[offset] in all eight lanes."""
    if not _is_contiguous(array):
        return None

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return _splat(builder, builder.load(pointer, align=8, typ=_DOUBLE))

    return lanes(array, types.intp), generate


@intrinsic
def fill(typingctx, value):
    """The number `value` in all eight lanes."""

    def generate(context, builder, signature, arguments):
        return _splat(builder, arguments[0])

    return lanes(types.float64), generate


@intrinsic
def flatten(typingctx, array):
    """All numbers of a contiguous array in one row, as with `reshape`, which takes long to compile
    and to load.
    """
    if not _is_contiguous(array):
        return None
    row = types.float64[::1]

    def generate(context, builder, signature, arguments):
        from numba.np.arrayobj import populate_array

        whole = context.make_array(array)(context, builder, value=arguments[0])
        made = context.make_array(row)(context, builder)
        populate_array(
            made, whole.data, [whole.nitems], [whole.itemsize], whole.itemsize, whole.meminfo
        )
        return made._getvalue()

    return row(array), generate


def _binary(name):
    @intrinsic
    def operation(typingctx, a, b):
        if a != lanes or b != lanes:
            return None

        def generate(context, builder, signature, arguments):
            return getattr(builder, name)(*arguments)

        return lanes(lanes, lanes), generate

    return operation


add, subtract, multiply, divide = _binary("fadd"), _binary("fsub"), _binary("fmul"), _binary("fdiv")


@intrinsic
def multiply_add(typingctx, a, b, c):
    """a * b + c, fused where the machine has it (llvm.fmuladd: llvm.fma would be a library call
    elsewhere).
    """

    def generate(context, builder, signature, arguments):
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), "llvm.fmuladd.v8f64"
        )
        return builder.call(function, arguments)

    return lanes(lanes, lanes, lanes), generate


def _unary(name):
    @intrinsic
    def operation(typingctx, a):
        def generate(context, builder, signature, arguments):
            function = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(_VECTOR, [_VECTOR]), f"llvm.{name}.v8f64"
            )
            return builder.call(function, arguments)

        return lanes(lanes), generate

    return operation


absolute, square_root = _unary("fabs"), _unary("sqrt")


@intrinsic
def larger(typingctx, a, b):
    """b where b > a, else a. A NaN in a stays; one in b is passed over."""

    def generate(context, builder, signature, arguments):
        a, b = arguments
        return builder.select(builder.fcmp_ordered(">", b, a), b, a)

    return lanes(lanes, lanes), generate


@intrinsic
def where_equal(typingctx, a, b, yes, no):
    """`yes` in the lanes where a == b, else `no`."""

    def generate(context, builder, signature, arguments):
        a, b, yes, no = arguments
        return builder.select(builder.fcmp_ordered("==", a, b), yes, no)

    return lanes(lanes, lanes, lanes, lanes), generate


@intrinsic
def zero_below(typingctx, x, least, value):
    """0 in the lanes where x < least, else `value`; NaN is not below anything."""

    def generate(context, builder, signature, arguments):
        x, least, value = arguments
        return builder.select(
            builder.fcmp_ordered("<", x, least), ir.Constant(_VECTOR, [0.0] * WIDTH), value
        )

    return lanes(lanes, lanes, lanes), generate


@intrinsic
def where_from(typingctx, first, yes, no):
    """`yes` in the lanes number `first` and above, else `no`: how a causal mask cuts a block of
    rows.
    """

    def generate(context, builder, signature, arguments):
        first, yes, no = arguments
        numbers = ir.Constant(_BITS, list(range(WIDTH)))
        return builder.select(builder.icmp_signed(">=", numbers, _splat(builder, first)), yes, no)

    return lanes(types.intp, lanes, lanes), generate


def _to_sixteenths(builder, x):
    """x + 1.5 * 2^48: rounded to sixteenths, ties to even, whose number stands in the lowest bits.
    (No fast-math undoes it.)
    """
    return builder.fadd(x, ir.Constant(_VECTOR, [MAGIC] * WIDTH))


@intrinsic
def fraction(typingctx, x):
    """x minus the nearest sixteenth, in [-1/32, 1/32], for |x| < 2^47. Two additions are faster
    than a rounding instruction.
    """

    def generate(context, builder, signature, arguments):
        (x,) = arguments
        rounded = builder.fsub(_to_sixteenths(builder, x), ir.Constant(_VECTOR, [MAGIC] * WIDTH))
        return builder.fsub(x, rounded)

    return lanes(lanes), generate


ROOTS = tuple(
    struct.unpack("<q", struct.pack("<d", 2.0 ** (j / 16)))[0] - (j << 48) for j in range(16)
)
"""The bits of 2^(j/16), less j in the place where the shift below brings it: one addition then
makes 2^(k + j/16).
"""


def _roots_at(context, builder, bits):
    """ROOTS[the lowest four bits], in each lane: one instruction where registers can hold the
    table, else loads.
    """
    if "+avx512f" in context.codegen().magic_tuple()[2]:
        low, high = (ir.Constant(_BITS, list(half)) for half in (ROOTS[:8], ROOTS[8:]))
        kind = ir.FunctionType(_VECTOR, [_VECTOR, _BITS, _VECTOR])
        choose = cgutils.get_or_insert_function(
            builder.module, kind, "llvm.x86.avx512.vpermi2var.pd.512"
        )
        found = builder.call(
            choose, [builder.bitcast(low, _VECTOR), bits, builder.bitcast(high, _VECTOR)]
        )
        return builder.bitcast(found, _BITS)
    table = cgutils.global_constant(
        builder, "roots", ir.Constant(ir.ArrayType(_INT64, 16), list(ROOTS))
    )
    found, index = ir.Constant(_BITS, ir.Undefined), ir.IntType(32)
    bits = builder.and_(bits, ir.Constant(_BITS, [15] * WIDTH))
    for lane in range(WIDTH):
        place = builder.extract_element(bits, ir.Constant(index, lane))
        one = builder.load(builder.gep(table, [ir.Constant(_INT64, 0), place]), typ=_INT64)
        found = builder.insert_element(found, one, ir.Constant(index, lane))
    return found


@intrinsic
def power_of_sixteenths(typingctx, x):
    """2^(the sixteenth nearest to x), rounded, for x in [-1022, 1023].

    No conversion from double to integer is needed, which narrower machines do not have in vector
    form.
    """

    def generate(context, builder, signature, arguments):
        bits = builder.bitcast(_to_sixteenths(builder, arguments[0]), _BITS)
        shifted = builder.shl(bits, ir.Constant(_BITS, [48] * WIDTH))
        return builder.bitcast(builder.add(_roots_at(context, builder, bits), shifted), _VECTOR)

    return lanes(lanes), generate


@intrinsic
def largest_lane(typingctx, a):
    """The largest of the eight numbers, none of them NaN."""

    def generate(context, builder, signature, arguments):
        (a,) = arguments
        top = builder.extract_element(a, ir.Constant(ir.IntType(32), 0))
        for lane in range(1, WIDTH):
            x = builder.extract_element(a, ir.Constant(ir.IntType(32), lane))
            top = builder.select(builder.fcmp_ordered(">", x, top), x, top)
        return top

    return types.float64(lanes), generate


@intrinsic
def any_reaches(typingctx, a, b):
    """Whether a >= b in any lane, or either is NaN there."""

    def generate(context, builder, signature, arguments):
        a, b = arguments
        reached = builder.bitcast(builder.fcmp_unordered(">=", a, b), ir.IntType(WIDTH))
        return builder.icmp_unsigned("!=", reached, ir.Constant(ir.IntType(WIDTH), 0))

    return types.boolean(lanes, lanes), generate


@intrinsic
def make_stack(typingctx, length):
    """A stack array of `length` Lanes; `length` must be a literal."""
    if not isinstance(length, types.IntegerLiteral):
        return None
    count = length.literal_value

    def generate(context, builder, signature, arguments):
        return cgutils.alloca_once(builder, _VECTOR, size=count)

    # the literal stays in the signature: Numba finds implementations by it, and stacks have
    # different lengths
    return lane_stack(length), generate


@intrinsic
def get(typingctx, stack, index):
    """stack[index]."""

    def generate(context, builder, signature, arguments):
        return builder.load(
            builder.gep(arguments[0], [arguments[1]], source_etype=_VECTOR), typ=_VECTOR
        )

    return lanes(lane_stack, types.intp), generate


@intrinsic
def put(typingctx, stack, index, value):
    """stack[index] = value."""

    def generate(context, builder, signature, arguments):
        builder.store(arguments[2], builder.gep(arguments[0], [arguments[1]], source_etype=_VECTOR))
        return context.get_dummy_value()

    return types.void(lane_stack, types.intp, lanes), generate
