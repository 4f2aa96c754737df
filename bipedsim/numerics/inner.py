"""Compilation of kernels that only other kernels call: they are stored as bitcode instead of machine code.

numba generates machine code for every function together with all functions that it calls. In a chain of ten kernels the
innermost one is then optimised and translated ten times. A function that takes a pointer into a box is never called
from Python. Only the code of the entry point, into which everything is linked, is executed.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as ll
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, compile_result


def is_inner(arguments: tuple[Any, ...]) -> bool:
    """Return whether a function with arguments of these numba types takes a pointer into a box."""
    return any(getattr(kind, "members", None) is not None for kind in arguments)


class InnerLibrary(JITCodeLibrary):
    """Code of one kernel and of the kernels that it calls, which is linked into its callers and optimised there."""

    @property
    def codegen(self) -> Any:
        """Object that numba asks to register the function's constants, which does nothing."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing; see :attr:`codegen`."""

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, because the function is never called by address."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """Return the data for the cache on disk."""
        return self.serialize_using_bitcode()  # type: ignore[no-any-return]

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class KernelCompiler(Compiler):
    """numba's compiler pipeline, with an :class:`InnerLibrary` for inner kernels."""

    def __init__(
        self, typing_context: Any, target_context: Any, library: Any, args: Any, return_type: Any, *rest: Any
    ) -> None:
        if library is None and is_inner(args):
            library = InnerLibrary(target_context.codegen(), "inner")
        super().__init__(typing_context, target_context, library, args, return_type, *rest)


def rebuild(target_context: Any, reduced: tuple[Any, ...]) -> Any:
    """Return the compiled inner kernel that ``CompileResult._reduce`` reduced to ``reduced``."""
    (name, _, code), fndesc, env, signature, objectmode, lifted, annotation, reload_init, environments = reduced
    for function in reload_init:
        function()
    library = InnerLibrary(target_context.codegen(), name)
    library._final_module = ll.parse_bitcode(code)
    library._finalize_final_module()
    return compile_result(
        target_context=target_context,
        typing_context=target_context.typing_context,
        library=library,
        environment=env,
        entry_point=target_context.get_executable(library, fndesc, env),
        fndesc=fndesc,
        type_annotation=annotation,
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        reload_init=reload_init,
        referenced_envs=environments,
    )
