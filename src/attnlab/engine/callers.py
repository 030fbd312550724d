"""Call compiled code without inlining it: through its address, or by a symbol. And a flag that
another thread may set.

There is one stepper for all equations. Kernels and optional parts are addresses in the System, 0
for a missing part. With a closure over the callee, or the callee as an argument, Numba's cache
would never find the function again. Unused parts are not compiled. Parts that every run needs are
called by a symbol: a plain call would compile the callee again in every caller. The code that
passes an address must keep the function alive (modules and cached factories do).
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import boolean, float64, int64, types, void
from numba.core import cgutils
from numba.extending import intrinsic

from attnlab.engine.compile import address_of, compiled
from attnlab.engine.unrolled import core_signature

_matrix, _stack = float64[:, ::1], float64[:, :, ::1]
pack_signature = void(_matrix, int64, float64[::1])
exponential_signature = void(int64, float64, _stack, _matrix, _matrix, _matrix)
finish_signature = void(int64, int64, _matrix, _matrix, _matrix, _matrix, _matrix)
fixed_signature = void(float64, float64, _matrix, _matrix, _matrix, _matrix, boolean, _matrix)
renormalise_signature = void(_matrix, int64)
read_signature = void(_matrix, int64, float64, _matrix)
transposed_signature = void(_matrix, _matrix, _matrix)
extended_signature = void(_matrix, _stack, int64, int64, int64, float64, boolean, boolean, _matrix)


def caller(signature: Any) -> Any:
    """A function call(address, *arguments) for compiled code, calling what stands at `address` with
    this signature.
    """

    @intrinsic
    def call(typingctx, address, *arguments):
        def generate(context, builder, _, values):
            kind = context.call_conv.get_function_type(signature.return_type, signature.args)
            return _call(
                context,
                builder,
                signature,
                builder.inttoptr(values[0], kind.as_pointer()),
                values[1],
            )

        return signature.return_type(types.int64, types.Tuple(signature.args)), generate

    return call


def linked(function: Any) -> Any:
    """Return a function for compiled code that calls the machine code of `function` by a symbol,
    found when the caller loads.
    """
    (result,) = function.overloads.values()
    signature, symbol = result.signature, f"{function.__module__}.{function.__name__}"
    binding.add_symbol(symbol, address_of(function))

    @intrinsic
    def call(typingctx, *arguments):
        def generate(context, builder, _, values):
            kind = context.call_conv.get_function_type(signature.return_type, signature.args)
            return _call(
                context,
                builder,
                signature,
                cgutils.get_or_insert_function(builder.module, kind, symbol),
                values[0],
            )

        return signature.return_type(types.Tuple(signature.args)), generate

    return call


def _call(context: Any, builder: Any, signature: Any, function: Any, packed: Any) -> Any:
    """The call of a function with this signature, its arguments packed in a tuple."""
    arguments = cgutils.unpack_tuple(builder, packed, len(signature.args))
    status, result = context.call_conv.call_function(
        builder, function, signature.return_type, signature.args, arguments
    )
    with cgutils.if_unlikely(builder, status.is_error):
        context.call_conv.return_status_propagate(builder, status)
    return context.get_dummy_value() if signature.return_type == types.void else result


call_core = caller(core_signature)
call_pack = caller(pack_signature)
call_exponential = caller(exponential_signature)
call_finish = caller(finish_signature)
call_extended = caller(extended_signature)
call_transposed = caller(transposed_signature)
call_fixed = caller(fixed_signature)
call_read = caller(read_signature)
call_renormalise = caller(renormalise_signature)


@intrinsic
def _load_now(typingctx, array):
    """array[0], read from memory each time: a plain read would be moved out of the loop."""

    def generate(context, builder, signature, arguments):
        pointer = context.make_array(signature.args[0])(context, builder, value=arguments[0]).data
        return builder.load_atomic(pointer, "monotonic", 8, typ=ir.IntType(64))

    return types.int64(types.int64[::1]), generate


@compiled(boolean(int64[::1]))
def is_set(flag):
    """Whether another thread has set the flag (int64 array of length 1)."""
    return _load_now(flag) != 0
