"""Damage that files take: each changes the bytes of one in place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def cut(raw: bytearray, rng: np.random.Generator) -> None:
    """Cut the end off."""
    del raw[int(rng.integers(len(raw))) :]


def flip(raw: bytearray, rng: np.random.Generator) -> None:
    """Turn over one bit or a few."""
    for at in rng.integers(len(raw), size=int(rng.integers(1, 4))):
        raw[at] ^= 1 << int(rng.integers(8))


def zero(raw: bytearray, rng: np.random.Generator) -> None:
    """Make zeros of some bytes."""
    begin, size = int(rng.integers(len(raw))), int(rng.integers(1, 2000))
    raw[begin : begin + size] = bytes(len(raw[begin : begin + size]))


def noise(raw: bytearray, rng: np.random.Generator) -> None:
    """Replace some bytes by random ones."""
    begin, size = int(rng.integers(len(raw))), int(rng.integers(1, 200))
    raw[begin : begin + size] = rng.bytes(len(raw[begin : begin + size]))


DAMAGES: tuple[Callable[[bytearray, np.random.Generator], None], ...] = (cut, flip, zero, noise)
