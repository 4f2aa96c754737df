"""Arrays that compiled code stores and restores."""

from __future__ import annotations

import numpy as np
import pytest

from bipedsim.numerics import call, copy_rows
from bipedsim.numerics.byte_copies import keep, kept, put_back


def test_arrays_of_all_kinds_come_back_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(3, 5)), rng.integers(9, size=4), rng.random(7) < 0.5, np.zeros((0, 3))]
    wanted = [array.tobytes() for array in arrays]
    room = kept(arrays)
    call(keep, room)
    for array in arrays:
        array[...] = 1
    call(put_back, room)
    assert [array.tobytes() for array in arrays] == wanted
    arrays[0][:] = 2.0
    call(put_back, room)
    assert [array.tobytes() for array in arrays] == wanted, "it is kept until something else is"


def test_what_is_kept_elsewhere_is_kept_once_more_by_itself() -> None:
    own, theirs = np.arange(3.0), np.arange(4)
    first = kept([theirs])
    both = kept([own], first)
    call(keep, both)
    theirs[:] = 7
    call(keep, first)
    own[:], theirs[:] = 0.0, 8
    call(put_back, both)
    assert (own.tolist(), theirs.tolist()) == ([0.0, 1.0, 2.0], [0, 1, 2, 3])
    call(put_back, first)
    assert theirs.tolist() == [7, 7, 7, 7], "each has a copy of its own"


def test_nothing_beside_them_is_touched() -> None:
    whole = np.arange(10.0)
    room = kept([whole[2:5]])
    call(keep, room)
    whole[:] = -1.0
    call(put_back, room)
    assert whole.tolist() == [-1, -1, 2, 3, 4, -1, -1, -1, -1, -1]


def test_an_array_in_pieces_is_refused() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        kept([np.zeros((4, 4))[:, 1]])


def test_arrays_of_all_kinds_are_copied_to_a_row() -> None:
    rng = np.random.default_rng(0)
    sources = [rng.normal(size=(3, 5)), rng.integers(9, size=4), rng.random(7) < 0.5, np.array(2.5), np.ones(2)]
    targets = [np.zeros((6, *source.shape), dtype=source.dtype) for source in sources]
    where = [(s.ctypes.data, t.ctypes.data, s.nbytes) for s, t in zip(sources, targets, strict=True)]
    table = np.array(where, dtype=np.int64)
    table[-1, 0] = 0
    for row in (0, 4):
        copy_rows(table, row)
    for source, target in zip(sources[:-1], targets, strict=False):
        assert target[0].tobytes() == target[4].tobytes() == source.tobytes()
        assert not target[[1, 2, 3, 5]].any()
    assert not targets[-1].any()
