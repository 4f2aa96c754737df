"""Define a laboratory trial: signals of force plates, marker positions and gait events.

All data are in metres, newtons and seconds in a world with z up; the readers convert the content of files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from bipedsim.errors import RecordingError
from bipedsim.numerics import Array
from bipedsim.plates import PlateSignals

METRES = {
    **dict.fromkeys(("m", "meter", "meters", "metre", "metres", "mete", "metr"), 1.0),
    **dict.fromkeys(("dm", "decimeter", "decimeters", "decimetre", "decimetres"), 0.1),
    **dict.fromkeys(("cm", "centimeter", "centimeters", "centimetre", "centimetres", "cent"), 1e-2),
    **dict.fromkeys(("mm", "millimeter", "millimeters", "millimetre", "millimetres", "mill"), 1e-3),
    **dict.fromkeys(("in", "inch", "inches"), 0.0254),
    **dict.fromkeys(("ft", "foot", "feet"), 0.3048),
}
"""Unit of length (lower case) to its size [m]; old C3D files cut texts after four letters."""
NEWTONS = {
    **dict.fromkeys(("n", "nt", "newton", "newtons", "newt"), 1.0),
    **dict.fromkeys(("kn", "kilonewton", "kilonewtons"), 1e3),
    **dict.fromkeys(("kgf", "kp", "kilopond", "kiloponds"), 9.80665),
    **dict.fromkeys(("lb", "lbs", "lbf", "pound", "pounds"), 4.4482216152605),
}
"""Unit of force (lower case) to its size [N]."""
MOMENTS = {
    **{force + length: n * m for length, m in METRES.items() for force, n in NEWTONS.items()},
    **{length + force: n * m for length, m in METRES.items() for force, n in NEWTONS.items() if len(length) > 1},
}
"""Unit of moment (lower case, letters of force and length) to its size [N.m]. A leading m is omitted, because it would
be the prefix milli."""
SECONDS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
}
"""Unit of time (lower case) to its size [s]."""
UPRIGHT = {
    "X": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    "Y": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    "Z": np.eye(3),
}
"""Upward axis of a laboratory to the rotation that makes z point up."""
Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
"""Rotation from a world with z up to OpenSim's axes with y up: (x, z, -y)."""


@dataclass(frozen=True, eq=False)
class Markers:
    """Marker trajectories.

    Attributes:
        t: (n,) [s].
        names: Names of m markers.
        positions: (n, m, 3) in the world [m]; NaN for invisible markers.
    """

    t: Array
    names: tuple[str, ...]
    positions: Array

    @classmethod
    def none(cls) -> Markers:
        """Return an empty set of markers."""
        return cls(np.zeros(0), (), np.zeros((0, 0, 3)))


@dataclass(frozen=True)
class Event:
    """Gait event with the terms of C3D files.

    Attributes:
        t: Time [s].
        label: ``Foot Strike`` or ``Foot Off``.
        context: ``Left``, ``Right`` or ``General``.
    """

    t: float
    label: str
    context: str = "General"


@dataclass(frozen=True, eq=False)
class LabTrial:
    """One trial of a laboratory.

    Attributes:
        name: Name for titles and messages.
        plates: Signals of each force plate.
        markers: Marker trajectories.
        events: Gait events.
        notes: Remarks for the reader, such as a violation of the standard and its interpretation.
        weight: Weight of the person [N]; NaN if unknown.
    """

    name: str
    plates: tuple[PlateSignals, ...]
    markers: Markers = field(default_factory=Markers.none)
    events: tuple[Event, ...] = ()
    notes: tuple[str, ...] = ()
    weight: float = float("nan")


def length_unit(text: str, where: str) -> float:
    """Return the size of a unit of length [m].

    Raises:
        RecordingError: The unit is unknown.
    """
    return _unit(text, where, METRES, "length", "m, dm, cm, mm, in, ft")


def force_unit(text: str, where: str) -> float:
    """Return the size of a unit of force [N].

    Raises:
        RecordingError: The unit is unknown.
    """
    return _unit(text, where, NEWTONS, "force", "N, kN, kgf, lbf")


def moment_unit(text: str, where: str) -> float:
    """Return the size of a unit of moment such as ``Nmm`` or ``N.m`` [N.m].

    Raises:
        RecordingError: The unit is unknown.
    """
    return _unit(text, where, MOMENTS, "moment", "N.m, Nmm, N.cm, lbf.in")


def time_unit(text: str, where: str) -> float:
    """Return the size of a unit of time [s]; without a text it is the second.

    Raises:
        RecordingError: The unit is unknown.
    """
    return _unit(text or "s", where, SECONDS, "time", "s, ms")


def _unit(text: str, where: str, known: Mapping[str, float], kind: str, usual: str) -> float:
    """Look up a unit by its letters; brackets, blanks and multiplication signs are ignored."""
    letters = "".join(re.findall(r"[^\W\d_]+", text.lower()))
    # Powers and quotients would change the unit.
    if letters not in known or re.search(r"[/^\d]", text):
        raise RecordingError(f"is no {kind} that is known here: {usual}", f"{where}: unit", text)
    return known[letters]
