"""Compilation of kernels that only other kernels call: they are stored as bitcode instead of machine code.

numba generates machine code for every function together with all functions that it calls. In a chain of ten kernels the
innermost one is then optimised and translated ten times. Only the code of the entry point, into which everything is
linked, is executed. A kernel that another kernel needs is therefore compiled for that purpose only. If Python calls it
later, it is compiled again, unless it takes a pointer into a box, which Python cannot pass.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as ll
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import compile_result
from numba.core.targetconfig import ConfigStack


def is_inner(arguments: tuple[Any, ...]) -> bool:
    """Return whether a function is now compiled for other kernels only.

    This is so during the compilation of another function, or if an argument is a pointer into a box.
    """
    pointers = any(getattr(kind, "members", None) is not None for kind in arguments)
    return pointers or ConfigStack.top_or_none() is not None


def _is_of_kernels(version: Any) -> bool:
    """Return whether a compiled version exists and is for calls by other kernels only."""
    return isinstance(getattr(version, "library", None), InnerLibrary)


def let_python_call(kernel: Any) -> None:
    """Compile a kernel again, to machine code, if Python calls it after it was compiled for other kernels only."""
    compile_kernel, add_version = kernel.compile, kernel.add_overload

    def compile_for_python(signature: Any) -> Any:
        arguments = tuple(getattr(signature, "args", signature))
        if _is_of_kernels(kernel.overloads.get(arguments)) and not is_inner(arguments):
            del kernel.overloads[arguments]
        return compile_kernel(signature)

    def add(version: Any) -> None:
        if _is_of_kernels(version):
            # Calls from Python look elsewhere, so they do not find it and compile.
            kernel.overloads[tuple(version.signature.args)] = version
        else:
            add_version(version)

    kernel.compile, kernel.add_overload = compile_for_python, add


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
