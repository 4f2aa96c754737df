"""Compiled code reads from a packed struct the same values as the tuple contains."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from bipedsim.numerics.boxing import box
from bipedsim.numerics.jit import entry, kernel, ready


class Inner(NamedTuple):
    rows: Any
    flags: Any


class Outer(NamedTuple):
    count: int
    share: float
    right: bool
    wrong: bool
    inner: Inner
    seen: Any
    work: Any


class Swapped(NamedTuple):
    share: float
    count: int


class Plain(NamedTuple):
    count: int
    share: float


class WithKernel(NamedTuple):
    add: Any
    x: Any


@kernel
def add_one(t):
    t.x[0] += 1.0


@kernel
def add_two(t):
    t.x[0] += 2.0


@entry
def _call(boxed):
    boxed.arrays.add(boxed.arrays)


@entry
def _read(boxed, out):
    a = boxed.arrays
    out[0], out[1] = a.count, a.share
    out[2], out[3] = a.right, a.wrong
    out[4] = a.inner.rows[1, 2]
    out[5] = a.inner.flags[1]
    out[6], out[7] = a.seen[0, 1], a.seen.shape[0]
    for i in range(a.work.size):
        a.work[i] = i * a.inner.rows.shape[1]


@entry
def _share(boxed):
    return boxed.arrays.share


def test_fields_are_read_and_arrays_are_shared() -> None:
    rows = np.arange(12.0).reshape(3, 4)
    whole = np.arange(20.0).reshape(4, 5)
    # Every second row, backwards, of a transpose: strides of all kinds.
    view = whole.T[::-2]
    work = np.zeros(3)
    outer = Outer(-7, 0.25, True, False, Inner(rows, np.array([False, True])), view, work)
    out = np.zeros(8)
    _read(box(outer), out)
    assert out.tolist() == [-7.0, 0.25, 1.0, 0.0, rows[1, 2], 1.0, view[0, 1], 3.0]
    assert work.tolist() == [0.0, 4.0, 8.0]
    rows[1, 2] = 99.0
    _read(box(outer), out)
    assert out[4] == 99.0


def test_a_box_keeps_its_arrays_alive() -> None:
    boxed = box(WithKernel(add_one, np.full(1000, 5.0)))
    np.random.default_rng(0).normal(size=(50, 1000)).sum()
    _call(boxed)
    assert boxed._owner.x[0] == 6.0


def test_an_entry_that_is_ready_is_the_entry_and_does_not_look_at_types() -> None:
    boxed = box(WithKernel(add_two, np.zeros(2)))
    made = ready(_call, boxed)
    made(boxed)
    _call(boxed)
    assert boxed._owner.x.tolist() == [4.0, 0.0]
    assert len(_call.signatures) == len(set(_call.signatures)), "compiled once"


def test_kernels_in_a_box_are_called_and_tell_boxes_apart() -> None:
    for function, expected in ((add_one, 1.0), (add_two, 2.0)):
        x = np.zeros(1)
        _call(box(WithKernel(function, x)))
        assert x[0] == expected


def test_fields_in_another_order_are_another_type() -> None:
    assert _share(box(Plain(3, 0.5))) == _share(box(Swapped(0.5, 3))) == 0.5


def test_what_no_box_holds_is_named() -> None:
    with pytest.raises(TypeError, match=r"Outer\.inner: Inner\.flags: .* not str"):
        box(Outer(1, 1.0, True, True, Inner(np.zeros(1), "yes"), np.zeros(1), np.zeros(1)))

    @kernel
    def local(t):
        t.x[0] = 0.0

    with pytest.raises(TypeError, match="a kernel must be a function of a module"):
        box(WithKernel(local, np.zeros(1)))
