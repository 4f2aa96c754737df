"""A trial of a laboratory: what its force plates gave, where markers were, what happened when.

Everything is in metres, newtons and seconds, in a world whose z looks up; readers turn and convert what files hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bipedsim.errors import RecordingError
from bipedsim.numerics import Array
from bipedsim.plates import PlateSignals

METRES = {"m": 1.0, "dm": 0.1, "cm": 1e-2, "mm": 1e-3, "in": 0.0254}
"""Units of length that files use, in metres."""
NEWTONS = {"n": 1.0, "kn": 1e3, "lbf": 4.4482216152605}
"""Units of force, in newtons; names in lower case."""
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
    key = text.strip().lower()
    if key not in METRES:
        raise RecordingError(f"{where}: unit {text!r} is no length that is known here: {', '.join(METRES)}")
    return METRES[key]


def force_unit(text: str, where: str) -> float:
    """Return how many newtons a unit of force is.

    Raises:
        RecordingError: The unit is not known.
    """
    key = text.strip().lower()
    if key not in NEWTONS:
        raise RecordingError(f"{where}: unit {text!r} is no force that is known here: N, kN, lbf")
    return NEWTONS[key]


def moment_unit(text: str, where: str) -> float:
    """Return how many newton metres a unit of moment such as ``Nmm`` or ``N.m`` is.

    Raises:
        RecordingError: The unit is not known.
    """
    key = "".join(letter for letter in text.lower() if letter.isalpha())
    for force in sorted(NEWTONS, key=len, reverse=True):
        if key.startswith(force) and key[len(force) :] in METRES:
            return NEWTONS[force] * METRES[key[len(force) :]]
    raise RecordingError(f"{where}: unit {text!r} is no moment that is known here, such as N.m, Nmm, N.cm or lbf.in")
