"""What would take too long a message at a time in Python: finding messages among bytes, and numbers in messages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bipedsim.numerics import Flags, Integers, entry

Bytes = NDArray[np.uint8]

_HEAD, _MESSAGE, _MESSAGE_HEAD = 9, 5, 22


@entry
def _number(data: Bytes, at: int, size: int) -> np.int64:
    value = np.int64(0)
    for i in range(size):
        value |= np.int64(data[at + i]) << np.int64(8 * i)
    return value


@entry
def count_records(data: Bytes) -> tuple[int, bool]:
    """Return how many whole MCAP records ``data`` begins with, and whether that is all of it."""
    at, n = 0, 0
    while at + _HEAD <= len(data):
        length = _number(data, at + 1, 8)
        if length < 0 or length > len(data) - at - _HEAD or (data[at] == _MESSAGE and length < _MESSAGE_HEAD):
            return n, False
        at += _HEAD + length
        n += 1
    return n, at == len(data)


@entry
def walk_records(data: Bytes, n: int) -> tuple[Integers, Integers, Integers, Integers, Integers, Integers, Integers]:
    """Return of ``n`` MCAP records: opcode; channel, sequence, log and publish time of messages; start and size.

    Start and size are those of the data of a message, and of the content of any other record.
    """
    opcode, channel, sequence = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    log_time, publish_time = np.zeros(n, np.int64), np.zeros(n, np.int64)
    start, size = np.zeros(n, np.int64), np.zeros(n, np.int64)
    at = 0
    for i in range(n):
        length = _number(data, at + 1, 8)
        opcode[i] = data[at]
        at += _HEAD
        start[i], size[i] = at, length
        if opcode[i] == _MESSAGE:
            channel[i], sequence[i] = _number(data, at, 2), _number(data, at + 2, 4)
            log_time[i], publish_time[i] = _number(data, at + 6, 8), _number(data, at + 14, 8)
            start[i], size[i] = at + _MESSAGE_HEAD, length - _MESSAGE_HEAD
        at += length
    return opcode, channel, sequence, log_time, publish_time, start, size


@entry
def take_alike(
    data: Bytes, start: Integers, places: Integers, same: Bytes, pieces: Integers, out: Bytes, alike: Flags
) -> None:
    """Copy pieces of those messages that have the bytes ``same`` at ``places``.

    Args:
        data: Holds the messages.
        start: (n,) where each begins; all of them reach beyond every place and piece.
        places: (m,) offsets in a message.
        same: (m,) the bytes there.
        pieces: (p, 2) offset and length of each.
        out: (n, sum of lengths) the pieces, one behind the other.
        alike: (n,) which messages are meant; those that differ are taken out.
    """
    for i in range(len(start)):
        if not alike[i]:
            continue
        begin = start[i]
        for j in range(len(places)):
            if data[begin + places[j]] != same[j]:
                alike[i] = False
                break
        if not alike[i]:
            continue
        to = 0
        for j in range(len(pieces)):
            at = begin + pieces[j, 0]
            for k in range(pieces[j, 1]):
                out[i, to + k] = data[at + k]
            to += pieces[j, 1]
