"""A trial of a laboratory: what its force plates gave, where markers were, what happened when.

Everything is in metres, newtons and seconds, in a world whose z looks up; readers turn and convert what files hold.
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
    **dict.fromkeys(("m", "meter", "meters", "metre", "metres"), 1.0),
    **dict.fromkeys(("dm", "decimeter", "decimeters", "decimetre", "decimetres"), 0.1),
    **dict.fromkeys(("cm", "centimeter", "centimeters", "centimetre", "centimetres"), 1e-2),
    **dict.fromkeys(("mm", "millimeter", "millimeters", "millimetre", "millimetres"), 1e-3),
    **dict.fromkeys(("in", "inch", "inches"), 0.0254),
    **dict.fromkeys(("ft", "foot", "feet"), 0.3048),
}
"""Units of length that files use, in metres; names in lower case."""
NEWTONS = {
    **dict.fromkeys(("n", "nt", "newton", "newtons"), 1.0),
    **dict.fromkeys(("kn", "kilonewton", "kilonewtons"), 1e3),
    **dict.fromkeys(("kgf", "kp", "kilopond", "kiloponds"), 9.80665),
    **dict.fromkeys(("lb", "lbs", "lbf", "pound", "pounds"), 4.4482216152605),
}
"""Units of force, in newtons; names in lower case."""
MOMENTS = {
    **{force + length: n * m for length, m in METRES.items() for force, n in NEWTONS.items()},
    **{length + force: n * m for length, m in METRES.items() for force, n in NEWTONS.items() if len(length) > 1},
}
"""Units of moment, in newton metres: letters of a force and a length, in lower case. A length m in front would be the
prefix milli."""
Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
"""Takes a vector of a world whose z is up to OpenSim's axes, whose y is: (x, z, -y)."""


@dataclass(frozen=True, eq=False)
class Markers:
    """Where points of the body were.

    Attributes:
        t: (n,) [s].
        names: Of m points.
        positions: (n, m, 3) in the world [m]; NaN where one was not seen.
    """

    t: Array
    names: tuple[str, ...]
    positions: Array

    @classmethod
    def none(cls) -> Markers:
        """Return no markers."""
        return cls(np.zeros(0), (), np.zeros((0, 0, 3)))


@dataclass(frozen=True)
class Event:
    """What happened in a gait, as C3D files say it.

    Attributes:
        t: When [s].
        label: ``Foot Strike`` or ``Foot Off``.
        context: ``Left``, ``Right`` or ``General``.
    """

    t: float
    label: str
    context: str = "General"


@dataclass(frozen=True, eq=False)
class LabTrial:
    """One trial.

    Attributes:
        name: For titles and messages.
        plates: What each force plate gave.
        markers: Where points were.
        events: What was marked.
        notes: What a reader should know, such as that a file breaks the standard and how it was taken.
        weight: Of who was on the plates [N]; NaN where that is not known.
    """

    name: str
    plates: tuple[PlateSignals, ...]
    markers: Markers = field(default_factory=Markers.none)
    events: tuple[Event, ...] = ()
    notes: tuple[str, ...] = ()
    weight: float = float("nan")


def length_unit(text: str, where: str) -> float:
    """Return how many metres a unit of length is.

    Raises:
        RecordingError: The unit is not known.
    """
    return _unit(text, where, METRES, "length", "m, dm, cm, mm, in, ft")


def force_unit(text: str, where: str) -> float:
    """Return how many newtons a unit of force is.

    Raises:
        RecordingError: The unit is not known.
    """
    return _unit(text, where, NEWTONS, "force", "N, kN, kgf, lbf")


def moment_unit(text: str, where: str) -> float:
    """Return how many newton metres a unit of moment such as ``Nmm`` or ``N.m`` is.

    Raises:
        RecordingError: The unit is not known.
    """
    return _unit(text, where, MOMENTS, "moment", "N.m, Nmm, N.cm, lbf.in")


def _unit(text: str, where: str, known: Mapping[str, float], kind: str, usual: str) -> float:
    """Return what a unit is by its letters, whatever brackets, blanks and signs of multiplication are between them."""
    letters = "".join(re.findall(r"[^\W\d_]+", text.lower()))
    # What else is in a unit changes it: a power, a quotient.
    if letters not in known or re.search(r"[/^\d]", text):
        raise RecordingError(f"{where}: unit {text!r} is no {kind} that is known here: {usual}")
    return known[letters]
