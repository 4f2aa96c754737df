"""Kernels that only other kernels call: kept as what the compiler reads, not as machine code.

numba makes machine code of every function, with all that it calls in it: a chain of ten kernels optimises and
translates the innermost one ten times. What takes a pointer into a box is called by no Python code, so that the code of
the entry, into which everything is linked, is the only one that runs.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as ll
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, compile_result


def is_inner(arguments: tuple[Any, ...]) -> bool:
    """Return whether a function of these numba types takes a pointer into a box."""
    return any(getattr(kind, "members", None) is not None for kind in arguments)


class InnerLibrary(JITCodeLibrary):
    """The code of one kernel and of what it calls, to be linked into that of its callers and optimised there."""

    @property
    def codegen(self) -> Any:
        """Whom numba asks to note where the function's constants are: there is no function in memory."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing; see :attr:`codegen`."""

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: nobody calls it by address."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """Return what is kept on disk."""
        return self.serialize_using_bitcode()  # type: ignore[no-any-return]

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class KernelCompiler(Compiler):
    """numba's pipeline, with an :class:`InnerLibrary` where nothing else is needed."""

    def __init__(
        self, typing_context: Any, target_context: Any, library: Any, args: Any, return_type: Any, *rest: Any
    ) -> None:
        if library is None and is_inner(args):
            library = InnerLibrary(target_context.codegen(), "inner")
        super().__init__(typing_context, target_context, library, args, return_type, *rest)


def rebuild(target_context: Any, reduced: tuple[Any, ...]) -> Any:
    """Return the compiled function that ``CompileResult._reduce`` made ``reduced`` of, for an inner kernel."""
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
