"""Find messages in bytes and numbers in messages with compiled loops; Python is too slow for each message."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bipedsim.numerics import Flags, Integers, entry, kernel

Bytes = NDArray[np.uint8]

_HEAD, _MESSAGE, _MESSAGE_HEAD = 9, 5, 22
NAN_WORD = 0x7FF8000000000000
"""Word of a number that a message lacks: the bits of NaN."""
PADDING = 8
"""Bytes required after the last byte that is read: numbers are read as 8-byte words, which may extend beyond it."""


def words(data: Bytes) -> Integers:
    """Return a view of the 8-byte words that begin at every byte of ``data``."""
    return np.ndarray((max(0, len(data) - PADDING + 1),), np.dtype("<i8"), data, strides=(1,))


@entry
def count_records(data: Bytes, word: Integers, end: int) -> tuple[int, bool]:
    """Return the number of complete MCAP records at the start of ``data``, and whether they end exactly at ``end``."""
    at, n = 0, 0
    while at + _HEAD <= end:
        length = word[at + 1]
        if length < 0 or length > end - at - _HEAD or (data[at] == _MESSAGE and length < _MESSAGE_HEAD):
            return n, False
        at += _HEAD + length
        n += 1
    return n, at == end


@entry
def walk_records(data: Bytes, word: Integers, n: int) -> Integers:
    """Return a table (7, n) of the first ``n`` MCAP records.

    Its rows are opcode; channel, sequence, log time and publish time of messages; start; size. Start and size refer to
    the content of a record, and to the data of a message.
    """
    table = np.zeros((7, n), np.int64)
    at = 0
    for i in range(n):
        length = word[at + 1]
        opcode = data[at]
        at += _HEAD
        table[0, i], table[5, i], table[6, i] = opcode, at, length
        if opcode == _MESSAGE:
            table[1, i], table[2, i] = word[at] & 0xFFFF, word[at + 2] & 0xFFFFFFFF
            table[3, i], table[4, i] = word[at + 6], word[at + 14]
            table[5, i], table[6, i] = at + _MESSAGE_HEAD, length - _MESSAGE_HEAD
        at += length
    return table


@kernel
def _turned(word: int) -> np.int64:
    """Return a word with reversed bytes."""
    out = np.int64(0)
    for i in range(8):
        out |= ((word >> 8 * i) & 0xFF) << (56 - 8 * i)
    return out


@entry
def read_alike(
    word: Integers,
    start: Integers,
    size: Integers,
    layout: tuple[int, Integers, Integers, bool],
    done: Flags,
    out: Integers,
) -> int:
    """Read all messages of one layout and return their number.

    Args:
        word: See :func:`words`.
        start, size: (n,) offset and size of each message.
        layout: Size of the messages; (m, 3) offset in the message, expected word, and mask of its relevant bits; (k,)
            offsets of the words to read, of which negative ones give NaN and the first word consists of two 4-byte
            numbers; and whether the numbers have the other byte order.
        done: (n,) messages to skip; set to True for messages that were read.
        out: (n, k) the words.
    """
    length, same, numbers, swapped = layout
    n_read = 0
    for i in range(len(start)):
        if done[i] or size[i] != length:
            continue
        begin = start[i]
        other = np.int64(0)
        for j in range(len(same)):
            other |= (word[begin + same[j, 0]] ^ same[j, 1]) & same[j, 2]
        if other != 0:
            continue
        for k in range(len(numbers)):
            out[i, k] = word[begin + numbers[k]] if numbers[k] >= 0 else NAN_WORD
        if swapped:
            for k in range(len(numbers)):
                out[i, k] = _turned(out[i, k]) if numbers[k] >= 0 else NAN_WORD
            out[i, 0] = out[i, 0] << 32 | (out[i, 0] >> 32 & 0xFFFFFFFF)
        done[i] = True
        n_read += 1
    return n_read
