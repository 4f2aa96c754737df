"""What a return map is, whatever makes it: the engine, an integrator from event to event, or a formula."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from bipedsim.numerics import Array


class NoReturnError(ArithmeticError):
    """A trajectory does not come back to the section: the robot falls, or stands."""


class Return(NamedTuple):
    """Where and when a map comes back.

    Attributes:
        xi: (n,) coordinates. duration: Of the stride [s].
    """

    xi: Array
    duration: float


class PoincareMap(Protocol):
    """What Newton, multipliers, continuation and basins ask of a map; of the engine, by events, or a user's.

    Attributes:
        names: Of the n coordinates.
    """

    names: tuple[str, ...]

    def __call__(self, xi: Array) -> Return:
        """Return what becomes of the coordinates (n,) after one stride.

        Raises:
            NoReturnError: They do not come back.
        """
        ...


class Iterated:
    """A map taken several times: its fixed points are the periodic orbits (hurmuzlu2001 eq. 50).

    Args:
        map: The map. count: How often.
    """

    def __init__(self, map: PoincareMap, count: int) -> None:
        self._map, self._count = map, count
        self.names = map.names

    def __call__(self, xi: Array) -> Return:
        """Return what becomes of ``xi``, and the time of all strides."""
        duration = 0.0
        for _ in range(self._count):
            xi, stride = self._map(xi)
            duration += stride
        return Return(xi, duration)
