"""Arrays of kernels whose shapes stand where they are declared."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

Kind = TypeVar("Kind")


def zeros_of(kind: type[Kind], sizes: Mapping[str, int], /, **given: Any) -> Kind:
    """Return a ``kind``, a named tuple or dataclass, with zeros of the shapes that its annotations give.

    Args:
        kind: Its fields are annotated as ``Annotated[Array, "K", "6K", 3]``: type, then lengths.
        sizes: What the letters stand for; a number before one multiplies it.
        given: Fields that are no such arrays, or not zero, by name.
    """
    made = {
        name: np.zeros([times * sizes[letter] if letter else times for times, letter in lengths], dtype=scalar)
        for name, scalar, lengths in _fields(kind)  # type: ignore[arg-type]
        if name not in given
    }
    return kind(**made, **given)


@cache
def _fields(kind: Hashable) -> list[tuple[str, Any, list[tuple[int, str]]]]:
    """Return name, type of a number, and lengths of each field that is declared as such an array."""
    hints = get_type_hints(kind, include_extras=True)
    declared = [(name, *get_args(hint)) for name, hint in hints.items() if get_origin(hint) is Annotated]
    return [
        (name, get_args(get_args(array)[-1])[0], [_length(length) for length in lengths])
        for name, array, *lengths in declared
    ]


def _length(length: str | int) -> tuple[int, str]:
    """Return a number and the letter whose value it multiplies, which may be none."""
    if isinstance(length, int):
        return length, ""
    letter = length.lstrip("0123456789")
    return int(length.removesuffix(letter) or 1), letter
