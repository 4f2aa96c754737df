"""Hostile messages, made from valid ones with a seed."""

from __future__ import annotations

import array
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

from rclpy.serialization import deserialize_message, serialize_message

_NUMBERS = ("double", "float")
_NOT_FINITE = (math.nan, math.inf, -math.inf)
_HUGE = (1e308, -1e308)
_GIANT = 60_000
"""Entries of a giant list: half a megabyte of numbers."""


def _leaves(message: Any) -> Iterator[tuple[Any, str, str]]:
    """Yield the fields of a message and of those in it: their owner, name and type."""
    for name, kind in message.get_fields_and_field_types().items():
        value = getattr(message, name)
        if hasattr(value, "get_fields_and_field_types"):
            yield from _leaves(value)
        else:
            yield message, name, kind
            if kind.startswith("sequence<") and "/" in kind:
                for entry in value[:3]:
                    yield from _leaves(entry)


def _set_number(message: Any, rng: random.Random, numbers: tuple[float, ...]) -> bool:
    """Put one of ``numbers`` in a random place; return whether there is one."""
    places = []
    for owner, name, kind in _leaves(message):
        if kind in _NUMBERS:
            places.append((owner, name, -1))
        elif "double" in kind or "float" in kind:
            places += [(owner, name, i) for i in range(len(getattr(owner, name)))]
    if not places:
        return False
    owner, name, i = rng.choice(places)
    if i < 0:
        setattr(owner, name, rng.choice(numbers))
    else:
        getattr(owner, name)[i] = rng.choice(numbers)
    return True


def _lists(message: Any) -> list[tuple[Any, str, str]]:
    return [leaf for leaf in _leaves(message) if leaf[2].startswith("sequence<")]


def not_finite(message: Any, rng: random.Random) -> bool:
    """One number is NaN or infinite."""
    return _set_number(message, rng, _NOT_FINITE)


def huge(message: Any, rng: random.Random) -> bool:
    """One number is as large as numbers are."""
    return _set_number(message, rng, _HUGE)


def wrong_size(message: Any, rng: random.Random) -> bool:
    """A list is shorter, longer, or empty."""
    places = [place for place in _lists(message) if len(getattr(place[0], place[1]))]
    if not places:
        return False
    owner, name, kind = rng.choice(places)
    values = list(getattr(owner, name))
    values = rng.choice((values[:-1], values + values[:1], [], values * 3))
    setattr(owner, name, array.array("d", values) if kind == "sequence<double>" else values)
    return True


def names(message: Any, rng: random.Random) -> bool:
    """A text is another one."""
    places = []
    for owner, name, kind in _leaves(message):
        if kind == "string":
            places.append((owner, name, -1))
        elif kind == "sequence<string>":
            places += [(owner, name, i) for i in range(len(getattr(owner, name)))]
    if not places:
        return False
    owner, name, i = rng.choice(places)
    text = rng.choice(("", "nobody", "../../etc/passwd", "x" * 1000, "%s%n{}", "\u00e4\u6f22\U0001f916", "l_sole\n"))
    if i < 0:
        setattr(owner, name, text)
    else:
        getattr(owner, name)[i] = text
    return True


def stamps(message: Any, rng: random.Random) -> bool:
    """It is of long ago, or yet to come."""
    owners = {id(owner): owner for owner, name, _ in _leaves(message) if name == "nanosec"}
    if not owners:
        return False
    owner = rng.choice(list(owners.values()))
    owner.sec = rng.choice((0, 1, -(2**31), 2**31 - 1, rng.randrange(2**31)))
    owner.nanosec = rng.choice((0, 999_999_999, 2**32 - 1))
    return True


def giant(message: Any, rng: random.Random) -> bool:
    """A list or a text is far too long."""
    places = [leaf for leaf in _leaves(message) if leaf[2] in ("sequence<double>", "sequence<string>", "string")]
    if not places:
        return False
    owner, name, kind = rng.choice(places)
    if kind == "sequence<double>":
        setattr(owner, name, array.array("d", bytes(8 * _GIANT)))
    else:
        setattr(owner, name, "x" * 8 * _GIANT if kind == "string" else ["x"] * _GIANT)
    return True


def empty(_data: bytes, rng: random.Random) -> bytes:
    """Nothing, or the header of the encapsulation alone."""
    return rng.choice((b"\0\1", b"\0\1\0\0"))


def truncated(data: bytes, rng: random.Random) -> bytes:
    """It ends too early."""
    return data[: rng.randrange(1, len(data))] if len(data) > 1 else data


def bit_flips(data: bytes, rng: random.Random) -> bytes:
    """Some of its bits are wrong."""
    flipped = bytearray(data)
    for _ in range(rng.randrange(1, 9)):
        flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
    return bytes(flipped)


def counts_that_lie(data: bytes, rng: random.Random) -> bytes:
    """Four bytes, where a length may be, hold a large number."""
    if len(data) < 8:
        return data
    at = 4 + 4 * rng.randrange((len(data) - 4) // 4)
    number = rng.choice((2**32 - 1, 2**31, 2**30, 10**6))
    return data[:at] + number.to_bytes(4, "little") + data[at + 4 :]


def encapsulation(data: bytes, rng: random.Random) -> bytes:
    """It claims another encoding, or another order of bytes."""
    return bytes((rng.randrange(256), rng.randrange(12))) + data[2:]


def noise(_data: bytes, rng: random.Random) -> bytes:
    """Bytes without a meaning."""
    return b"\0\1\0\0"[: rng.choice((0, 4))] + rng.randbytes(rng.randrange(4, 3000))


FIELDS: tuple[Callable[[Any, random.Random], bool], ...] = (not_finite, huge, wrong_size, names, stamps, giant)
BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(empty, truncated, bit_flips, counts_that_lie, encapsulation, noise),
)
WEIGHTS = {giant: 0.02}
"""How often each is tried; 1 if not said."""


def make(good: bytes, kind: type, rng: random.Random) -> tuple[str, bytes]:
    """Return a hostile message, serialised, and its kind; its length is one that DDS does not pad.

    Args:
        good: A valid message, serialised.
        kind: Its type.
        rng: Draws everything.
    """
    ways = (*FIELDS, *BYTES)
    while True:
        way = rng.choices(ways, [WEIGHTS.get(way, 1.0) for way in ways])[0]
        if way in BYTES:
            data = way(good, rng)  # type: ignore[arg-type]
            return way.__name__, data + bytes(-len(data) % 4)  # type: ignore[arg-type, operator]
        message = deserialize_message(good, kind)
        if way(message, rng):  # type: ignore[arg-type]
            data = bytes(serialize_message(message))
            return way.__name__, data + bytes(-len(data) % 4)
