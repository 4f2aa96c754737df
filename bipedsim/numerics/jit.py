"""How kernels are compiled.

``kernel`` compiles without numba's runtime: such a function cannot allocate, which the compiler checks, and spends
nothing on counting references to fifty arrays at every call, three quarters of the time else.

What is compiled is kept on disk and compiled again when the code changes that it depends on (``kernel_cache.py``). It
is compiled when it is first called; :func:`announced` says so to whoever has to wait.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from numba import njit, typeof
from numba.core.types import unliteral

from bipedsim.numerics.compile_time import compile_seconds
from bipedsim.numerics.inner import KernelCompiler
from bipedsim.numerics.kernel_cache import KernelCache, share_missing

_caches: list[KernelCache] = []
# Seconds from which on a figure would promise too much: other programs take their part of the cores.
_LONG = 50.0
_what, _least, _most = "", 0.0, 0.0
_announced = False
_silent = True
_on_first: Callable[[], object] | None = None
_compiled = 0
_since = 0.0


@contextmanager
def announced(what: str, seconds: float, at_first: float | None = None) -> Iterator[None]:
    """Say on stderr that ``what`` is compiled, and about how long, if within the context a kernel must be.

    Args:
        what: What the kernels are for; what stands behind a comma is said at the beginning alone.
        seconds: What it takes alone, where all that others need too is in the cache [s].
        at_first: What it takes where nothing is, by default no longer [s]; in between, it goes by the share of kernels
            that are missing.

    How many were compiled, and for how long, is said at its end. A context speaks for those within it. Before and
    behind it the first kernel that must be compiled says so for all, and where it is from. On a terminal a line counts
    the kernels meanwhile.
    """
    global _what, _least, _most, _announced, _silent
    if _announced:
        yield
        return
    _what, _least, _most, _announced = f" of {what}", seconds, seconds if at_first is None else at_first, True
    before, begun = _compiled, compile_seconds()
    try:
        yield
        if _compiled > before:
            # What the line of a terminal counts is written over.
            begin = "\r" if sys.stderr.isatty() else ""
            count = f"{_compiled - before} kernel{'s' * (_compiled > before + 1)}"
            of = what.partition(",")[0]
            print(f"{begin}compiled {count} of {of} in {compile_seconds() - begun:.0f} s", file=sys.stderr, flush=True)
    finally:
        _what, _announced, _silent = "", False, True


@contextmanager
def on_compiling(act: Callable[[], object]) -> Iterator[None]:
    """Call ``act()`` before the first kernel is compiled within the context, if one is."""
    global _on_first
    before, _on_first = _on_first, act
    try:
        yield
    finally:
        _on_first = before


def _announce(module: str) -> None:
    """Say that kernels are compiled, of which the first is one of ``module``."""
    global _what, _silent, _on_first, _compiled, _since
    act, _on_first = _on_first, None
    if act is not None:
        act()
    if _what:
        said = f"compiling the kernels{_what}, {_how_long(_least, _most)}, once ..."
        print(said, file=sys.stderr, flush=True)
        _what, _silent = "", False
    elif _silent:
        print(f"compiling kernels, of {module} first, up to two minutes, once ...", file=sys.stderr, flush=True)
        _silent = False
    _since = _since or time.monotonic()
    _compiled += 1
    if sys.stderr.isatty():
        print(f"\r{_compiled} kernels, {time.monotonic() - _since:.0f} s ", end="", file=sys.stderr, flush=True)


def _how_long(least: float, most: float) -> str:
    """Return in words what compiling takes between ``least`` and ``most`` [s], by how much is missing."""
    seconds = least + (most - least) * share_missing(_caches)
    return f"about {seconds:.0f} s" if seconds < _LONG else "1 to 2 minutes"


def _without_literals(fold: Callable[..., Any], args: Any, kws: Any) -> Any:
    """Return what numba's ``fold`` does, of types without values: else each constant argument compiles a kernel again.

    The optimiser sees the constants anyway, since callers are linked with what they call.
    """
    signature, types = fold(args, kws)
    return signature, tuple(map(unliteral, types))


def _compiler(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles with ``options``, and keeps what it compiled."""

    def decorate(function: Callable[..., Any]) -> Any:
        # One wrapper less to compile: none of them is called from C.
        made: Any = njit(
            **{"error_model": "numpy", "no_cfunc_wrapper": True, "pipeline_class": KernelCompiler, **options}
        )(function)
        made._cache = KernelCache(made, partial(_announce, function.__module__))
        made._compiler.fold_argument_types = partial(_without_literals, made._compiler.fold_argument_types)
        _caches.append(made._cache)
        return made

    return decorate


kernel = _compiler(_nrt=False)

entry = _compiler()
"""For what is called from Python with a box: only here are references counted. It may allocate."""


def ready(function: Any, *arguments: Any) -> Callable[..., Any]:
    """Return what ``function``, an :data:`entry`, is compiled to for ``arguments`` like these.

    It is called as the function is, by position, and does not look at the types of what it is given, which takes the
    function 0.3 us where a box is among them: whoever calls it answers for them, and that arrays lie in one piece.
    """
    made: Callable[..., Any] = function.compile(tuple(map(typeof, arguments)))
    return made
