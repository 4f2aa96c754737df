"""Allocation of arrays whose shapes are part of their type annotations."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from bipedsim.numerics.arrays import scalar_type

Kind = TypeVar("Kind")


def zeros_of(kind: type[Kind], sizes: Mapping[str, int], /, **values: Any) -> Kind:
    """Return a ``kind``, a named tuple or dataclass, with zero arrays of the shapes in its annotations.

    Args:
        kind: Its fields are annotated as ``Annotated[Array, "K", "6K", 3]``: type, then lengths.
        sizes: Values of the letters; a number before a letter multiplies it.
        values: Fields that are no such arrays, or not zero, by name.
    """
    arrays = {
        name: np.zeros([times * sizes[letter] if letter else times for times, letter in lengths], dtype=scalar)
        for name, scalar, lengths in _fields(kind)  # type: ignore[arg-type]
        if name not in values
    }
    return kind(**arrays, **values)


@cache
def _fields(kind: Hashable) -> list[tuple[str, Any, list[tuple[int, str]]]]:
    """Return name, scalar type and lengths of each field that is declared as such an array."""
    hints = get_type_hints(kind, include_extras=True)
    declared = [(name, *get_args(hint)) for name, hint in hints.items() if get_origin(hint) is Annotated]
    return [(name, scalar_type(array), [_length(length) for length in lengths]) for name, array, *lengths in declared]


def _length(length: str | int) -> tuple[int, str]:
    """Return a factor and the letter whose value it multiplies; the letter may be empty."""
    if isinstance(length, int):
        return length, ""
    letter = length.lstrip("0123456789")
    return int(length.removesuffix(letter) or 1), letter
