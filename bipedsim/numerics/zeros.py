"""Arrays of kernels whose shapes stand where they are declared."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np

Kind = TypeVar("Kind")


def zeros_of(kind: type[Kind], sizes: Mapping[str, int], /, **given: Any) -> Kind:
    """Return a ``kind``, a named tuple or dataclass, with zeros of the shapes that its annotations give.

    Args:
        kind: Its fields are annotated as ``Annotated[Array, "K", "6K", 3]``: type, then lengths.
        sizes: What the letters stand for; a number before one multiplies it.
        given: Fields that are no such arrays, or not zero, by name.
    """
    hints = _hints(kind)  # type: ignore[arg-type]
    made = {name: _zeros(*get_args(hint), sizes=sizes) for name, hint in hints.items() if name not in given}
    return kind(**made, **given)


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _zeros(array: Any, *lengths: str | int, sizes: Mapping[str, int]) -> np.ndarray[Any, Any]:
    (scalar,) = get_args(get_args(array)[-1])
    return np.zeros([_length(length, sizes) for length in lengths], dtype=scalar)


def _length(length: str | int, sizes: Mapping[str, int]) -> int:
    if isinstance(length, int):
        return length
    letter = length.lstrip("0123456789")
    return int(length.removesuffix(letter) or 1) * sizes[letter]
