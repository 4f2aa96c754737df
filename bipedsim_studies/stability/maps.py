"""Define the interface of return maps, which a simulator, an event-based integrator or a formula can implement."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from bipedsim.errors import BipedSimError
from bipedsim.numerics import Array


class NoReturnError(BipedSimError, ArithmeticError):
    """The trajectory does not return to the section, because the robot falls or stands still."""


class Return(NamedTuple):
    """State and duration of one return to the section.

    Attributes:
        xi: (n,) coordinates. duration: Duration of the stride [s].
    """

    xi: Array
    duration: float


class PoincareMap(Protocol):
    """Interface of a return map, as used by Newton's method, continuation and basins.

    Attributes:
        names: Names of the n coordinates.
    """

    names: tuple[str, ...]

    def __call__(self, xi: Array) -> Return:
        """Return the coordinates (n,) after one stride from ``xi`` (n,).

        Raises:
            NoReturnError: The trajectory does not return to the section.
        """
        ...


class Iterated:
    """Apply a map several times; its fixed points are the periodic orbits (hurmuzlu2001 eq. 50).

    Args:
        map: The map. count: Number of applications.
    """

    def __init__(self, map: PoincareMap, count: int) -> None:
        self._map, self._count = map, count
        self.names = map.names

    def __call__(self, xi: Array) -> Return:
        """Return the coordinates (n,) after ``count`` strides, and their total duration."""
        duration = 0.0
        for _ in range(self._count):
            xi, stride = self._map(xi)
            duration += stride
        return Return(xi, duration)
