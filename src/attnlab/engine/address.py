"""Calling compiled code through its address, and flags that another thread may set.

One stepper serves every kernel: the kernel's address is a number in the System. A closure over the kernel, or the kernel as an
argument, would never be found again in Numba's cache. The caller must keep the kernel alive (the factories do).
"""

from __future__ import annotations

from llvmlite import ir
from numba import boolean, int64, types
from numba.core import cgutils
from numba.extending import intrinsic

from attnlab.engine.compile import compiled
from attnlab.engine.unrolled import core_signature


@intrinsic
def call_core(typingctx, address, q, keys, values, n, begin, end, factor, work, out):
    """Call the attention kernel at `address` (see unrolled.core_signature for the arguments)."""
    signature = types.void(types.int64, *core_signature.args)

    def generate(context, builder, signature, arguments):
        kinds = signature.args[1:]
        function_type = context.call_conv.get_function_type(types.void, kinds)
        function = builder.inttoptr(arguments[0], function_type.as_pointer())
        status, _ = context.call_conv.call_function(builder, function, types.void, kinds, arguments[1:])
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return signature, generate


def _element(context, builder, array_type, array):
    return context.make_array(array_type)(context, builder, value=array).data


@intrinsic
def _load_now(typingctx, array):
    """array[0], read from memory each time: a plain read would be moved out of the loop."""

    def generate(context, builder, signature, arguments):
        pointer = _element(context, builder, signature.args[0], arguments[0])
        return builder.load_atomic(pointer, "monotonic", 8, typ=ir.IntType(64))

    return types.int64(types.int64[::1]), generate


@compiled(boolean(int64[::1]))
def is_set(flag):
    """Whether another thread has set the flag (int64 array of length 1)."""
    return _load_now(flag) != 0
