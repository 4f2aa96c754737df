"""Bytewise copies of arrays of any type, which compiled code saves and restores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from bipedsim.numerics.arrays import Integers
from bipedsim.numerics.jit import entry, kernel


class Kept(NamedTuple):
    """Arrays, and memory for a copy of them.

    Attributes:
        where: (n, 3) address of each array, address of its copy, and size in bytes. The caller must keep the arrays
            alive.
        copies: Bytes of all copies, one after the other.
    """

    where: Integers
    copies: NDArray[np.uint8]


def kept(arrays: Iterable[NDArray[Any]], *others: Kept) -> Kept:
    """Return memory for a copy of ``arrays``, and for another copy of the arrays of ``others``.

    Raises:
        ValueError: An array is not contiguous in memory.
    """
    arrays = list(arrays)
    if not all(array.flags.c_contiguous for array in arrays):
        raise ValueError("cached arrays must be contiguous in memory")
    sources = [(array.ctypes.data, array.nbytes) for array in arrays]
    sources += [(int(source), int(size)) for other in others for source, _, size in other.where]
    copies = np.zeros(sum(size for _, size in sources), dtype=np.uint8)
    where, address = [], copies.ctypes.data
    for source, size in sources:
        where.append((source, address, size))
        address += size
    return Kept(np.array(where, dtype=np.int64).reshape(-1, 3), copies)


@intrinsic  # type: ignore[untyped-decorator]
def _copy(typing: Any, to: Any, source: Any, size: Any) -> Any:
    """Copy ``size`` bytes from one address to another."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        to, source, size = arguments
        cgutils.raw_memcpy(builder, builder.inttoptr(to, byte), builder.inttoptr(source, byte), size, 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@kernel
def keep(k: Kept) -> None:
    """Save a copy of the arrays."""
    for i in range(k.where.shape[0]):
        _copy(k.where[i, 1], k.where[i, 0], k.where[i, 2])  # type: ignore[call-arg]


@kernel
def put_back(k: Kept) -> None:
    """Restore the arrays from their copies."""
    for i in range(k.where.shape[0]):
        _copy(k.where[i, 0], k.where[i, 1], k.where[i, 2])  # type: ignore[call-arg]


@entry
def copy_rows(where: Integers, row: int) -> None:
    """Copy arrays to row ``row`` of larger ones, in one call.

    Args:
        where: (n, 3) address of each array, address of row 0 of its target, and size of a row in bytes. Arrays with the
            address 0 are skipped. The caller must keep all arrays alive.
        row: Index of the row.
    """
    for i in range(where.shape[0]):
        if where[i, 0] != 0:
            _copy(where[i, 1] + row * where[i, 2], where[i, 0], where[i, 2])  # type: ignore[call-arg]
