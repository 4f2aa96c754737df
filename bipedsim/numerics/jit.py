"""Compilation of kernels.

``kernel`` compiles without numba's runtime. Such a function cannot allocate memory; the compiler checks this. It does
not count references either. For fifty arrays per call, counting would take three quarters of the time.

Compiled functions are cached on disk, and compiled again when the code changes on which they depend
(``kernel_cache.py``). A function is compiled at its first call; :func:`announced` reports this to the user.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from numba import njit, typeof
from numba.core.types import unliteral

from bipedsim.numerics.compile_time import compile_seconds
from bipedsim.numerics.compiler import KernelCompiler
from bipedsim.numerics.inner import let_python_call
from bipedsim.numerics.kernel_cache import KernelCache, share_missing, why_not_shipped

_caches: list[KernelCache] = []
# Above this estimate [s] no exact figure is printed, because other programs share the cores.
_LONG = 50.0
_COLLECTED_AFTER = (200_000, 50, 1000)
"""Thresholds of the garbage collector while kernels are compiled. The compiler's objects live on; with the usual
thresholds, a seventh of the time would go into looking through them again and again."""

_PER_KERNEL_S = 0.12
"""Typical time to compile one kernel [s]; a purpose with many kernels takes longer than its own estimate."""
_purpose, _shortest, _longest = "", 0.0, 0.0
_announced = False
_silent = True
_quiet = False
_on_first: Callable[[], object] | None = None
_compiled = 0
_since = 0.0


@contextmanager
def announced(what: str, seconds: float, at_first: float | None = None) -> Iterator[None]:
    """Print a message on stderr if a kernel must be compiled within the context, with the expected duration.

    Args:
        what: Purpose of the kernels; text after a comma is printed at the beginning only.
        seconds: Duration if only the kernels of this purpose are missing in the cache [s].
        at_first: Duration if the cache is empty [s]; by default the same. In between, the fraction of missing kernels
            determines the estimate.

    At the end of the context, the number of compiled kernels and the duration are printed. The outermost context
    prints for contexts within it. Outside of any context, the first kernel to be compiled prints a message for all,
    which names its module. On a terminal, a line counts the kernels meanwhile.
    """
    global _purpose, _shortest, _longest, _announced, _silent
    if _announced or _quiet:
        yield
        return
    _purpose, _shortest, _longest, _announced = f" of {what}", seconds, seconds if at_first is None else at_first, True
    before, begun, thresholds = _compiled, compile_seconds(), gc.get_threshold()
    gc.set_threshold(*_COLLECTED_AFTER)
    try:
        yield
        if _compiled > before:
            # The final message overwrites the counting line of a terminal.
            begin = "\r" if sys.stderr.isatty() else ""
            count = f"{_compiled - before} kernel{'s' * (_compiled > before + 1)}"
            of = what.partition(",")[0]
            print(f"{begin}compiled {count} of {of} in {compile_seconds() - begun:.0f} s", file=sys.stderr, flush=True)
    finally:
        gc.set_threshold(*thresholds)
        _purpose, _announced, _silent = "", False, True


def compile_silently() -> None:
    """Prepare a process that only compiles: it prints no messages, because its caller reports the progress."""
    global _quiet
    _quiet = True
    gc.set_threshold(*_COLLECTED_AFTER)


@contextmanager
def on_compiling(act: Callable[[], object]) -> Iterator[None]:
    """Call ``act()`` before the first kernel is compiled within the context, if any is."""
    global _on_first
    before, _on_first = _on_first, act
    try:
        yield
    finally:
        _on_first = before


def _announce(module: str) -> None:
    """Print the messages for a kernel of ``module`` that must be compiled."""
    global _purpose, _silent, _on_first, _compiled, _since
    act, _on_first = _on_first, None
    if act is not None:
        act()
    if _quiet:
        return
    if not _compiled and (reason := why_not_shipped()):
        print(reason, file=sys.stderr, flush=True)
    if _purpose:
        message = f"compiling the kernels{_purpose}, {_how_long(_shortest, _longest)}, once ..."
        print(message, file=sys.stderr, flush=True)
        _purpose, _silent = "", False
    elif _silent:
        print(f"compiling kernels, of {module} first, about a minute, once ...", file=sys.stderr, flush=True)
        _silent = False
    _since = _since or time.monotonic()
    _compiled += 1
    if sys.stderr.isatty():
        print(f"\r{_compiled} kernels, {time.monotonic() - _since:.0f} s ", end="", file=sys.stderr, flush=True)


def _how_long(shortest: float, longest: float) -> str:
    """Return the maximum duration as text.

    The fraction of missing kernels interpolates the two limits [s]; the number of missing kernels may require more. It
    may also be less: a kernel that is stored for some arguments counts as stored, whether it has to be compiled or not.
    """
    share = share_missing(_caches)
    seconds = max(shortest + (longest - shortest) * share, _PER_KERNEL_S * share * len(_caches))
    return f"up to {seconds:.0f} s on an idle machine" if seconds < _LONG else "about a minute"


def _without_literals(fold: Callable[..., Any], args: Any, kws: Any) -> Any:
    """Return the result of numba's ``fold`` with types without literal values.

    Otherwise each constant argument would compile a kernel again. The optimiser knows the constants in any case,
    because functions are linked with their callers.
    """
    signature, types = fold(args, kws)
    return signature, tuple(map(unliteral, types))


def _compiler(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles with ``options`` and caches the result."""

    def decorate(function: Callable[..., Any]) -> Any:
        # The kernels are never called from C, so one wrapper less is compiled.
        compiled: Any = njit(
            **{"error_model": "numpy", "no_cfunc_wrapper": True, "pipeline_class": KernelCompiler, **options}
        )(function)
        compiled._cache = KernelCache(compiled, partial(_announce, function.__module__))
        compiled._compiler.fold_argument_types = partial(_without_literals, compiled._compiler.fold_argument_types)
        let_python_call(compiled)
        _caches.append(compiled._cache)
        return compiled

    return decorate


kernel = _compiler(_nrt=False)

entry = _compiler()
"""Decorator for functions that Python calls with a box. Only these count references; they may allocate memory."""


def ready(function: Any, *arguments: Any) -> Callable[..., Any]:
    """Compile ``function``, an :data:`entry`, for arguments like these, and return the compiled function.

    Call the compiled function by position. It does not check the types of its arguments, which would take 0.3 us if
    there is a box. The caller must guarantee the same types, and contiguous arrays.
    """
    compiled: Callable[..., Any] = function.compile(tuple(map(typeof, arguments)))
    return compiled
