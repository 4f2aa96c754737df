"""Convert words for the remote control, such as ``start`` and ``ly=0.5``, to its bytes in rt/lowstate."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from bipedsim.errors import ConfigError
from bipedsim.sim import GANTRY_ACTIONS

BUTTONS = (
    *("R1", "L1", "start", "select", "R2", "L2", "F1", "F2"),
    *("A", "B", "X", "Y", "up", "right", "down", "left"),
)
"""Buttons in the order of their bits."""
STICKS = {"lx": 4, "rx": 8, "ry": 12, "ly": 20}
"""Sticks with their offset in the bytes: x to the right and y ahead, from -1 to 1."""
PRESS_S = 0.3
"""Time for which a button remains pressed [s]."""
_BIT = {name.lower(): bit for bit, name in enumerate(BUTTONS)}
_SIZE, _KEYS = 40, 2
_GANTRY = "gantry"
FORM = (
    f"a button ({', '.join(BUTTONS)}), a stick ({', '.join(STICKS)}) with its value from -1 to 1, such as ly=0.5, or "
    f"{' or '.join(f'{_GANTRY}={action}' for action in GANTRY_ACTIONS)}"
)


class RemoteControl:
    """State of the buttons and sticks of the remote control."""

    def __init__(self) -> None:
        self._bytes = bytearray(_SIZE)
        self._until: dict[int, float] = {}

    def apply(self, words: str, now: float) -> tuple[str, ...]:
        """Press buttons and move sticks at the time ``now`` [s].

        Args:
            words: Words separated by blanks or commas. Buttons are released automatically, sticks keep their position;
                ``release`` centres all sticks.

        Returns:
            Actions of the gantry. It is not part of the remote control, but the same operator controls it.

        Raises:
            ConfigError: A word is invalid; in this case nothing has changed.
        """
        pressed: list[int] = []
        moved: dict[str, float] = {}
        actions: list[str] = []
        for word in words.replace(",", " ").split():
            name, equals, text = word.partition("=")
            if not equals and name.lower() in _BIT:
                pressed.append(_BIT[name.lower()])
            elif not equals and name == "release":
                moved = dict.fromkeys(STICKS, 0.0)
            elif name == _GANTRY and text in GANTRY_ACTIONS:
                actions.append(text)
            elif equals and name in STICKS and (value := _stick_position(text)) is not None:
                moved[name] = value
            else:
                raise ConfigError(f"must be {FORM}, or release", "remote", word)
        for bit in pressed:
            self._until[bit] = now + PRESS_S
        for name, value in moved.items():
            struct.pack_into("<f", self._bytes, STICKS[name], value)
        return tuple(actions)

    def move(self, ahead: float, left: float, turn: float) -> None:
        """Move the sticks for walking: fractions from -1 to 1 for ahead, left, and turning to the left."""
        for name, value in (("ly", ahead), ("lx", -left), ("rx", -turn)):
            struct.pack_into("<f", self._bytes, STICKS[name], min(1.0, max(-1.0, value)))

    def state(self, now: float) -> bytes:
        """Return the 40 bytes of the remote control in rt/lowstate at the time ``now`` [s]."""
        keys = 0
        for bit, until in tuple(self._until.items()):
            if now < until:
                keys |= 1 << bit
            else:
                del self._until[bit]
        struct.pack_into("<H", self._bytes, _KEYS, keys)
        return bytes(self._bytes)


def _stick_position(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if -1.0 <= value <= 1.0 else None


@dataclass(frozen=True)
class ScriptLine:
    """Words of a script, and the time at which they apply [s]."""

    at: float
    words: str


def read_script(texts: Sequence[str]) -> tuple[ScriptLine, ...]:
    """Return a script, ``'0.5 start'``, ``'6 ly=0.6 lx=-0.1'``, sorted by time.

    Raises:
        ConfigError: A text does not consist of a time and words.
    """
    script = []
    for text in texts:
        at, _, words = text.strip().partition(" ")
        try:
            time = float(at)
        except ValueError:
            time = -1.0
        if not (0.0 <= time < 1e9 and words.strip()):
            raise ConfigError(f"must be a time in s, at least 0, and then {FORM}", "remote", text)
        RemoteControl().apply(words, 0.0)
        script.append(ScriptLine(time, words.strip()))
    return tuple(sorted(script, key=lambda line: line.at))
