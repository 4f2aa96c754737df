"""Calls of kernels from Python with the argument types that they have within a step, to avoid a second compilation."""

from __future__ import annotations

from typing import Any, NamedTuple

from bipedsim.numerics.boxing import box
from bipedsim.numerics.jit import entry


class _One(NamedTuple):
    kernel: Any
    a: Any


class _Two(NamedTuple):
    kernel: Any
    a: Any
    b: Any


class _Three(NamedTuple):
    kernel: Any
    a: Any
    b: Any
    c: Any


class _Four(NamedTuple):
    kernel: Any
    a: Any
    b: Any
    c: Any
    d: Any


class _Five(NamedTuple):
    kernel: Any
    a: Any
    b: Any
    c: Any
    d: Any
    e: Any


@entry
def _call_one(boxed: Any) -> Any:
    packed = boxed.arrays
    return packed.kernel(packed.a)


@entry
def _call_two(boxed: Any) -> Any:
    packed = boxed.arrays
    return packed.kernel(packed.a, packed.b)


@entry
def _call_three(boxed: Any) -> Any:
    packed = boxed.arrays
    return packed.kernel(packed.a, packed.b, packed.c)


@entry
def _call_four(boxed: Any) -> Any:
    packed = boxed.arrays
    return packed.kernel(packed.a, packed.b, packed.c, packed.d)


@entry
def _call_five(boxed: Any) -> Any:
    packed = boxed.arrays
    return packed.kernel(packed.a, packed.b, packed.c, packed.d, packed.e)


_BY_COUNT: tuple[tuple[Any, Any], ...] = (
    (_One, _call_one),
    (_Two, _call_two),
    (_Three, _call_three),
    (_Four, _call_four),
    (_Five, _call_five),
)


def call(kernel: Any, *arguments: Any) -> Any:
    """Return ``kernel(*arguments)`` for one to five named tuples, arrays or numbers, packed by :func:`box`.

    Named tuples that are passed by value have another numba type. The kernel, and all kernels that it calls, would then
    be compiled again.
    """
    kind, run = _BY_COUNT[len(arguments) - 1]
    return run(box(kind(kernel, *arguments)))
