"""Solution of linear equations in blocks, most of which are empty, such as those of bodies that touch each other."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from bipedsim.numerics.arrays import Array, Flags, Integers
from bipedsim.numerics.jit import kernel
from bipedsim.numerics.linear import factor_from_end, solve_second_factor
from bipedsim.numerics.zeros import zeros_of

SMALL = 6
"""Number of rows of the blocks of free bodies; the compiler unrolls their loops."""


class Blocks(NamedTuple):
    """Square matrix of at most n rows in at most B blocks; rows and columns have the same blocks.

    Block i, j may be full if i and j are linked. Pivots are exchanged within a block only.

    Attributes:
        used: (1,) number of blocks.
        begin: (B + 1,) first row of each block, and the number of rows.
        linked: (B, B) whether a block may be full. In the elimination, further ones fill up.
        width: (B,) rows of the blocks that are linked to a block and not eliminated; 0 for an eliminated one.
        ordered: (1,) number of blocks in ``order``.
        order: (B,) blocks in the order of their elimination, except those without a link.
        later: (B, B) blocks that are linked to a block and eliminated later.
        n_later: (B,) number of them.
        A: (n, n) the matrix.
        rows: (n,) exchanged rows.
        entries, others: (n,) work arrays.
    """

    used: Annotated[Integers, 1]
    begin: Integers
    linked: Annotated[Flags, "B", "B"]
    width: Annotated[Integers, "B"]
    ordered: Annotated[Integers, 1]
    order: Annotated[Integers, "B"]
    later: Annotated[Integers, "B", "B"]
    n_later: Annotated[Integers, "B"]
    A: Annotated[Array, "n", "n"]
    rows: Annotated[Integers, "n"]
    entries: Annotated[Integers, "n"]
    others: Annotated[Integers, "n"]

    @classmethod
    def of_sizes(cls, begin: Integers) -> Blocks:
        """Return the arrays for blocks with these first rows; the last entry is the number of rows."""
        return zeros_of(cls, {"B": len(begin) - 1, "n": int(begin[-1])}, begin=begin)


@kernel
def unlink_blocks(s: Blocks) -> None:
    """Remove all links."""
    for i in range(s.used[0]):
        for j in range(s.used[0]):
            s.linked[i, j] = False


@kernel
def link_blocks(s: Blocks, i: int, j: int) -> None:
    """Link two blocks, and each of them to itself; they may be the same."""
    s.linked[i, i] = s.linked[j, j] = s.linked[i, j] = s.linked[j, i] = True


@kernel
def order_blocks(s: Blocks) -> None:
    """Fill the order of elimination, the block with the fewest linked rows first, and mark the blocks that fill up."""
    used = s.used[0]
    for i in range(used):
        s.width[i] = 1 if s.linked[i, i] else 0
    for i in range(used):
        if s.width[i] > 0:
            _measure_width(s, i)
    s.ordered[0] = 0
    for n in range(used):
        p = -1
        for i in range(used):
            if s.width[i] > 0 and (p < 0 or s.width[i] <= s.width[p]):
                p = i
        if p < 0:
            return
        s.order[n] = p
        s.ordered[0] = n + 1
        s.width[p] = count = 0
        later = s.later[p]
        for i in range(used):
            if s.linked[p, i] and s.width[i] > 0:
                later[count] = i
                count += 1
        s.n_later[p] = count
        for a in range(count):
            for b in range(count):
                s.linked[later[a], later[b]] = True
        for a in range(count):
            _measure_width(s, later[a])


@kernel
def _measure_width(s: Blocks, i: int) -> None:
    """Fill ``width`` of block ``i``, which is not eliminated."""
    total = 0
    for j in range(s.used[0]):
        if s.linked[i, j] and s.width[j] > 0:
            total += s.begin[j + 1] - s.begin[j]
    s.width[i] = total


@kernel
def begin_matrix(s: Blocks) -> int:
    """Set all blocks that may be full to those of the identity; return their number of entries."""
    entries = 0
    for n in range(s.ordered[0]):
        p = s.order[n]
        first, end = s.begin[p], s.begin[p + 1]
        _clear(s.A, first, end, first, end)
        entries += (end - first) * (end - first)
        for i in range(first, end):
            s.A[i, i] = 1.0
        for m in range(s.n_later[p]):
            j = s.later[p, m]
            begin, stop = s.begin[j], s.begin[j + 1]
            _clear(s.A, first, end, begin, stop)
            _clear(s.A, begin, stop, first, end)
            entries += 2 * (end - first) * (stop - begin)
    return entries


@kernel
def _clear(A: Array, first: int, end: int, begin: int, stop: int) -> None:
    for i in range(first, end):
        row = A[i]
        for j in range(begin, stop):
            row[j] = 0.0


@kernel
def solve_blocks(s: Blocks, b: Array, x: Array) -> int:
    """Fill ``x`` (n,) with the solution of A x = b; A and ``b`` (n,) are overwritten.

    The errors of inverse blocks would exceed the masses of light bodies, so their factors are used.

    Returns:
        Number of operations, 0 if a pivot is 0.
    """
    operations = 0
    for n in range(s.ordered[0]):
        p = s.order[n]
        first, end = s.begin[p], s.begin[p + 1]
        done = factor_from_end(s.A, first, end, s.rows, s.entries, s.others, b)
        if done == 0:
            return 0
        operations += done + _eliminate(s, p, b)
    for n in range(s.ordered[0] - 1, -1, -1):
        p = s.order[n]
        first, end = s.begin[p], s.begin[p + 1]
        for m in range(s.n_later[p]):
            j = s.later[p, m]
            _subtract_times(s.A, first, end, s.begin[j], s.begin[j + 1], x, b)
        solve_second_factor(s.A, first, end, b, x)
    return operations


@kernel
def _eliminate(s: Blocks, p: int, b: Array) -> int:
    """Eliminate the factored block ``p`` from all later ones; return the number of operations."""
    A, first, end = s.A, s.begin[p], s.begin[p + 1]
    later, count, size, total = s.later[p], s.n_later[p], end - first, 0
    for m in range(count):
        j = later[m]
        _apply_first_factor(A, first, end, s.rows, s.begin[j], s.begin[j + 1])
    for m in range(count):
        i = later[m]
        begin, stop = s.begin[i], s.begin[i + 1]
        total += stop - begin
        _divide_by_second_factor(A, first, end, begin, stop)
        _subtract_times(A, begin, stop, first, end, b, b)
        for k in range(count):
            j = later[k]
            _subtract_product(A, begin, stop, first, end, s.begin[j], s.begin[j + 1])
    return size * total * (total + size)


@kernel
def _subtract_times(A: Array, first: int, end: int, begin: int, stop: int, x: Array, b: Array) -> None:
    """Subtract the block of A in rows ``first`` to ``end`` and columns ``begin`` to ``stop``, times x, from ``b``."""
    for i in range(first, end):
        row, total = A[i], 0.0
        for j in range(begin, stop):
            total += row[j] * x[j]
        b[i] -= total


@kernel
def _apply_first_factor(A: Array, first: int, end: int, rows: Integers, begin: int, stop: int) -> None:
    """Apply the row exchanges and the inverse first factor of a pivot block to the columns ``begin`` to ``stop``."""
    for k in range(end - 1, first - 1, -1):
        p = rows[k]
        if p != k:
            for j in range(begin, stop):
                A[k, j], A[p, j] = A[p, j], A[k, j]
    for i in range(end - 2, first - 1, -1):
        row = A[i]
        for k in range(i + 1, end):
            f, other = row[k], A[k]
            if f != 0.0:
                for j in range(begin, stop):
                    row[j] -= f * other[j]


@kernel
def _divide_by_second_factor(A: Array, first: int, end: int, begin: int, stop: int) -> None:
    """Multiply the rows ``begin`` to ``stop`` by the inverse second factor of a pivot block from the right."""
    for k in range(end - 1, first - 1, -1):
        pivot = A[k]
        by = 1.0 / pivot[k]
        for i in range(begin, stop):
            row = A[i]
            f = row[k] * by
            row[k] = f
            for j in range(first, k):
                row[j] -= f * pivot[j]


@kernel
def _subtract_product(A: Array, begin: int, stop: int, first: int, end: int, column: int, last: int) -> None:
    """Subtract the product of two blocks of A from the block in rows ``begin`` and columns ``column``.

    The left factor is in the columns ``first`` to ``end``, the right one in these rows.
    """
    if stop - begin == SMALL and end - first == SMALL and last - column == SMALL:
        for x in range(SMALL):
            row = A[begin + x]
            for k in range(SMALL):
                f, other = row[first + k], A[first + k]
                for y in range(SMALL):
                    row[column + y] -= f * other[column + y]
        return
    for i in range(begin, stop):
        row = A[i]
        for k in range(first, end):
            f, other = row[k], A[k]
            if f != 0.0:
                for j in range(column, last):
                    row[j] -= f * other[j]
