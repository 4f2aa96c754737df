"""Call of a compiled function by its address, so that its callers are compiled once for all functions they may call."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from bipedsim.numerics.boxing import Box
from bipedsim.numerics.jit import ready


class NativeCall(NamedTuple):
    """Addresses of a compiled function and of its only argument; the caller must keep both alive."""

    function: int
    argument: int


def native_call(function: Any, boxed: Box) -> NativeCall:
    """Compile ``function``, an :data:`entry` that takes a box and returns nothing, and return its call with ``boxed``.

    A kernel makes the call with :func:`call_native`. The compiler sees only addresses, so nothing is optimised across
    the call.
    """
    ready(function, boxed)
    code, described = attrgetter("library", "fndesc")(function.overloads[(boxed.type,)])
    return NativeCall(code.get_pointer_to_function(described.llvm_func_name), boxed.address)


@intrinsic  # type: ignore[untyped-decorator]
def call_native(typing: Any, function: Any, argument: Any) -> Any:
    """Call the function of a :class:`NativeCall`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # numba passes a box as a plain pointer.
        types_of, convention = (types.voidptr,), context.call_conv
        kind = convention.get_function_type(types.none, types_of).as_pointer()
        address = builder.inttoptr(arguments[0], kind)
        pointer = builder.inttoptr(arguments[1], context.get_value_type(types.voidptr))
        status, _ = convention.call_function(builder, address, types.none, types_of, [pointer])
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate
