"""Arrays of the shapes that a named tuple's annotations give."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import pytest

from bipedsim.numerics import Array, Flags, Integers, zeros_of


class Room(NamedTuple):
    speed: float
    place: Annotated[Array, "K", 3]
    all_rows: Annotated[Integers, "6K", "12K"]
    open: Annotated[Flags, 1]


def test_shapes_and_types_are_those_of_the_annotations() -> None:
    room = zeros_of(Room, {"K": 2}, speed=0.5)
    assert room.speed == 0.5
    assert (room.place.shape, room.place.dtype) == ((2, 3), np.float64)
    assert (room.all_rows.shape, room.all_rows.dtype) == ((12, 24), np.int64)
    assert (room.open.shape, room.open.dtype) == ((1,), np.bool_)
    assert not any(array.any() for array in room[1:])


def test_a_letter_without_a_size_is_an_error() -> None:
    with pytest.raises(KeyError, match="K"):
        zeros_of(Room, {"N": 2}, speed=0.5)
