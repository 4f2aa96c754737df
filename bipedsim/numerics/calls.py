"""Kernels called from Python with the types that they have within a step, so that they are not compiled once more."""

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
    its = boxed.arrays
    return its.kernel(its.a)


@entry
def _call_two(boxed: Any) -> Any:
    its = boxed.arrays
    return its.kernel(its.a, its.b)


@entry
def _call_three(boxed: Any) -> Any:
    its = boxed.arrays
    return its.kernel(its.a, its.b, its.c)


@entry
def _call_four(boxed: Any) -> Any:
    its = boxed.arrays
    return its.kernel(its.a, its.b, its.c, its.d)


@entry
def _call_five(boxed: Any) -> Any:
    its = boxed.arrays
    return its.kernel(its.a, its.b, its.c, its.d, its.e)


_WAYS: tuple[tuple[Any, Any], ...] = (
    (_One, _call_one),
    (_Two, _call_two),
    (_Three, _call_three),
    (_Four, _call_four),
    (_Five, _call_five),
)


def call(kernel: Any, *arguments: Any) -> Any:
    """Return ``kernel(*arguments)``: one to five named tuples, arrays or numbers, which go along in a :func:`box`.

    By themselves named tuples go by value: another type, for which all that the kernel calls would be compiled anew.
    """
    kind, run = _WAYS[len(arguments) - 1]
    return run(box(kind(kernel, *arguments)))
