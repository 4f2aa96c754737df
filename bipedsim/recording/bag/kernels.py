"""What would take too long a message at a time in Python: finding messages among bytes, and numbers in messages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bipedsim.numerics import Flags, Integers, entry

Bytes = NDArray[np.uint8]

_HEAD, _MESSAGE, _MESSAGE_HEAD = 9, 5, 22


@entry
def _u16(data: Bytes, at: int) -> np.int64:
    return np.int64(data[at]) | np.int64(data[at + 1]) << np.int64(8)


@entry
def _u32(data: Bytes, at: int) -> np.int64:
    return _u16(data, at) | _u16(data, at + 2) << np.int64(16)


@entry
def _i64(data: Bytes, at: int) -> np.int64:
    return _u32(data, at) | _u32(data, at + 4) << np.int64(32)


@entry
def count_records(data: Bytes) -> tuple[int, bool]:
    """Return how many whole MCAP records ``data`` begins with, and whether that is all of it."""
    at, n = 0, 0
    while at + _HEAD <= len(data):
        length = _i64(data, at + 1)
        if length < 0 or length > len(data) - at - _HEAD or (data[at] == _MESSAGE and length < _MESSAGE_HEAD):
            return n, False
        at += _HEAD + length
        n += 1
    return n, at == len(data)


@entry
def walk_records(data: Bytes, n: int) -> Integers:
    """Return of ``n`` MCAP records a table (7, n), whose content begins at ``start`` and has ``size`` bytes.

    Its rows: opcode; channel, sequence, log time and publish time of messages; start; size. Of a message they are those
    of its data.
    """
    table = np.zeros((7, n), np.int64)
    at = 0
    for i in range(n):
        length = _i64(data, at + 1)
        opcode = data[at]
        at += _HEAD
        table[0, i], table[5, i], table[6, i] = opcode, at, length
        if opcode == _MESSAGE:
            table[1, i], table[2, i] = _u16(data, at), _u32(data, at + 2)
            table[3, i], table[4, i] = _i64(data, at + 6), _i64(data, at + 14)
            table[5, i], table[6, i] = at + _MESSAGE_HEAD, length - _MESSAGE_HEAD
        at += length
    return table


@entry
def keep_alike(data: Bytes, start: Integers, spans: Integers, same: Bytes, alike: Flags) -> None:
    """Take out of ``alike`` (n,) the messages that begin at ``start`` (n,) and have other bytes than ``same`` in spans.

    Args:
        data: Holds the messages.
        start: Where each begins.
        spans: (m, 2) offset and length of each stretch of bytes.
        same: What is to be there, one behind the other.
        alike: Which messages are meant; all of them reach beyond every span.
    """
    for i in range(len(start)):
        if not alike[i]:
            continue
        at, other = 0, np.uint8(0)
        for j in range(len(spans)):
            begin = start[i] + spans[j, 0]
            for k in range(spans[j, 1]):
                other |= data[begin + k] ^ same[at + k]
            at += spans[j, 1]
        alike[i] = other == 0


@entry
def copy_pieces(data: Bytes, start: Integers, out: Bytes) -> None:
    """Copy to every row of ``out`` (n, k) the bytes that begin at ``start`` (n,)."""
    for i in range(len(start)):
        begin = start[i]
        for k in range(out.shape[1]):
            out[i, k] = data[begin + k]
