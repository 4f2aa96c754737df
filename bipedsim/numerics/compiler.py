"""numba's compiler without work that kernels do not need. It generates the same machine code in two thirds of the time.

The time of a compilation is distributed over several thousand small steps, each in Python. This module removes those
that are repeated for each array and each operator.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import types
from numba.core.compiler import Compiler, Flags
from numba.core.imputils import lower_builtin
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import IRLegalization, NopythonRewrites
from numba.core.types.functions import BaseFunction
from numba.core.untyped_passes import InlineClosureLikes

from bipedsim.numerics.inner import InnerLibrary, is_inner

_UNUSED = frozenset({InlineClosureLikes, NopythonRewrites, IRLegalization})
"""Passes for closures, array expressions and ``del``, none of which is possible without memory allocation."""

_resolve = BaseFunction.get_call_type
_signatures: dict[Any, Any] = {}
"""Signatures of calls of numba's own functions, by function, compiler options and argument types."""


class _Flags(Flags):
    """Options of a compilation, compared by those that are set; numba compares all 30 at each call of a function."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flags) and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values))


class KernelCompiler(Compiler):
    """numba's compiler pipeline, with an :class:`InnerLibrary` for inner kernels."""

    def __init__(
        self,
        typing_context: Any,
        target_context: Any,
        library: Any,
        args: Any,
        return_type: Any,
        flags: Any,
        variables: Any,
    ) -> None:
        if library is None and is_inner(args):
            library = InnerLibrary(target_context.codegen(), "inner")
        super().__init__(typing_context, target_context, library, args, return_type, _Flags(flags), variables)
        context = self.state.targetctx
        context.get_abi_sizeof = lambda kind: _size(kind, context.target_data)

    def define_pipelines(self) -> list[Any]:
        """Return numba's passes, without those that a kernel does not need."""
        pipelines: list[Any] = super().define_pipelines()
        if not self.state.flags.nrt:
            for pipeline in pipelines:
                pipeline.passes = [step for step in pipeline.passes if step[0] not in _UNUSED]
                pipeline.finalize()
        return pipelines


@cache
def _size(kind: Any, target: Any) -> int:
    """Return the size of an LLVM type [bytes]; llvmlite parses a module to determine it."""
    return int(kind.get_abi_size(target))


@lower_builtin("__array__", types.Array)
def _array_of_array(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the array itself. Without this, numba searches for a conversion, in vain, at each use of an array."""
    return arguments[0]


def _call_type(self: BaseFunction, context: Any, args: Any, kws: Any) -> Any:
    """Return the signature of a call of one of numba's own functions; numba tries all versions for each call.

    A run has 30 000 such calls and 400 different ones.
    """
    flags = ConfigStack.top_or_none()
    if kws or not isinstance(flags, _Flags):
        return _resolve(self, context, args, kws)
    key = self, context, flags, args
    signature = _signatures.get(key)
    if signature is None:
        signature = _signatures[key] = _resolve(self, context, args, kws)
    return signature


BaseFunction.get_call_type = _call_type  # type: ignore[method-assign]
