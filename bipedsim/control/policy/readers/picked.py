"""Take entries of a list by the indices of a deployment file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from bipedsim.errors import ConfigError

T = TypeVar("T")


def picked(values: Sequence[T], indices: Iterable[int], place: str) -> list[T]:
    """Return ``values`` at ``indices``.

    Raises:
        ConfigError: An index is no integer from 0 to the last one; ``place`` is its file and key.
    """
    chosen = list(indices)
    for index in chosen:
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(values):
            raise ConfigError(f"is no index of the {len(values)} entries, which begin with 0", place, index)
    return [values[index] for index in chosen]
