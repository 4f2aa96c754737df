"""Arrays of any kinds that compiled code keeps and puts back, as the bytes that they are."""

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
    """Arrays, and room for a copy of them.

    Attributes:
        where: (n, 3) address of each, that of its copy, and how many bytes it has; somebody else has to hold on to the
            arrays.
        copies: The bytes of one after the other.
    """

    where: Integers
    copies: NDArray[np.uint8]


def kept(arrays: Iterable[NDArray[Any]], *others: Kept) -> Kept:
    """Return room for a copy of ``arrays``, and for a further one of what ``others`` keep.

    Raises:
        ValueError: One does not lie in memory in one piece.
    """
    given = list(arrays)
    if not all(array.flags.c_contiguous for array in given):
        raise ValueError("what is kept has to lie in memory in one piece")
    sources = [(array.ctypes.data, array.nbytes) for array in given]
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
    """Copy the arrays."""
    for i in range(k.where.shape[0]):
        _copy(k.where[i, 1], k.where[i, 0], k.where[i, 2])  # type: ignore[call-arg]


@kernel
def put_back(k: Kept) -> None:
    """Make the arrays what they were when they were copied."""
    for i in range(k.where.shape[0]):
        _copy(k.where[i, 0], k.where[i, 1], k.where[i, 2])  # type: ignore[call-arg]


@entry
def copy_rows(where: Integers, row: int) -> None:
    """Copy arrays to row ``row`` of larger ones, in one call.

    Args:
        where: (n, 3) address of each, that of row 0, and how many bytes a row has; what has the address 0 is left out.
            Somebody else has to hold on to all of them.
        row: Number of the row.
    """
    for i in range(where.shape[0]):
        if where[i, 0] != 0:
            _copy(where[i, 1] + row * where[i, 2], where[i, 0], where[i, 2])  # type: ignore[call-arg]
