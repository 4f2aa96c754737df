"""Coordinates of the states in which a robot can cross a section: some of its own joints, and their rates.

With its feet on the ground a robot has fewer states than q and v have numbers (hurmuzlu2001: the reduced vector of eq.
49): feet that carry stay, and on the section its function is zero. A chart picks as many joints and rates as are free,
and finds the others by Newton.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pinocchio as pin
from scipy.linalg import qr

from bipedsim.model import Robot
from bipedsim.numerics import Array, Indices
from bipedsim_studies.stability.maps import NoReturnError
from bipedsim_studies.stability.planes import FeetOnPlane, sliders

DIFFERENCE = 1e-6
"""Step of central differences [m, rad, and per s]."""
RANK = 1e-6
"""Singular values below this share of the largest are those of conditions that say the same."""
TOLERANCE = 1e-12
"""Of the conditions [m, rad, and per s]."""
ITERATIONS = 20
_BASE = ("base x", "base y", "base z", "base roll", "base pitch", "base yaw")


class Chart:
    """A chart around one state (q, v): coordinates are joint angles [rad] and rates [rad/s] themselves.

    Args:
        robot: The robot.
        feet: Its feet above the ground.
        q, v: (nq,), (nv,) a state near the section, around which the chart is made.
        carrying: Indices of the feet that stay where they are.
        value: Of q and v: zero on the section; None where all states are on it.

    Attributes:
        names: Of the coordinates: joints [rad], then joints with a prime, their rates [rad/s].
        centre: (n,) coordinates of that state.
        place: (3,) mean of the vertices that carry [m].
    """

    def __init__(
        self,
        robot: Robot,
        feet: FeetOnPlane,
        q: Array,
        v: Array,
        carrying: Sequence[int],
        value: Callable[[Array, Array], float] | None,
    ) -> None:
        self._model = robot.model
        self._feet, self._carrying, self._value = feet, list(carrying), value
        self._q, self._v = q.copy(), v.copy()
        self._points = feet.points(q, self._carrying) if self._carrying else np.zeros((0, 3))
        nv = robot.model.nv
        jacobian = self._jacobian(np.zeros(2 * nv), np.arange(2 * nv))
        values = np.linalg.svd(jacobian, compute_uv=False)
        rank = int((values > RANK * values[0]).sum()) if len(values) else 0
        # Others are found from what a user would look at: joints with drives, then joints, the base never.
        weight = np.full(nv, 1e3)
        weight[robot.idx_v] = 1.0
        weight[sliders(robot)] = 1e6
        order = qr(jacobian * np.tile(weight, 2), mode="r", pivoting=True)[1]
        self._found = np.sort(order[:rank])
        self.free = np.setdiff1d(np.arange(2 * nv), self._found)
        names = _names(robot)
        self.names = tuple(names[i] if i < nv else f"{names[i - nv]}'" for i in self.free)
        self.place = self._points.mean(axis=0) if len(self._points) else np.zeros(3)
        # What a joint has turned from its zero; of a base, from where the world's axes are.
        turned = pin.difference(robot.model, pin.neutral(robot.model), q)
        self.centre: Array = np.concatenate([turned, v])[self.free]

    def state(self, xi: Array) -> tuple[Array, Array]:
        """Return (q, v) of the coordinates (n,).

        Raises:
            NoReturnError: No state near the centre of the chart has them.
        """
        x = np.zeros(2 * self._model.nv)
        x[self.free] = xi - self.centre
        for _ in range(ITERATIONS):
            error = self._conditions(*self._at(x))
            if not len(error) or np.abs(error).max() < TOLERANCE:
                break
            x[self._found] -= np.linalg.lstsq(self._jacobian(x, self._found), error, rcond=None)[0]
        else:
            where = dict(zip(self.names, xi.tolist(), strict=True))
            raise NoReturnError(f"{self._model.name} has no state on the section with {where}")
        return self._at(x)

    def coordinates(self, q: Array, v: Array) -> Array:
        """Return the coordinates (n,) of a state whose feet stand at :attr:`place`."""
        away = np.concatenate([pin.difference(self._model, self._q, q), v - self._v])
        return np.asarray(self.centre + away[self.free])

    def _at(self, x: Array) -> tuple[Array, Array]:
        nv = self._model.nv
        return pin.integrate(self._model, self._q, x[:nv]), self._v + x[nv:]

    def _conditions(self, q: Array, v: Array) -> Array:
        parts = []
        if self._carrying:
            parts.append((self._feet.points(q, self._carrying) - self._points).ravel())
            parts.append(self._feet.velocities(q, v, self._carrying).ravel())
        if self._value is not None:
            parts.append(np.array([self._value(q, v)]))
        return np.concatenate(parts) if parts else np.zeros(0)

    def _jacobian(self, x: Array, columns: Indices) -> Array:
        rows = []
        for i in columns:
            step = np.zeros(len(x))
            step[i] = DIFFERENCE
            ahead, behind = self._conditions(*self._at(x + step)), self._conditions(*self._at(x - step))
            rows.append((ahead - behind) / (2.0 * DIFFERENCE))
        return np.array(rows).T


def _names(robot: Robot) -> list[str]:
    """Return a name for each of the nv velocities."""
    names: list[str] = []
    # The first one is the world.
    for joint, name in zip(list(robot.model.joints)[1:], list(robot.model.names)[1:], strict=True):
        if joint.nv == 6:
            names.extend(_BASE)
        elif joint.nv:
            names.extend([name] if joint.nv == 1 else [f"{name} {i}" for i in range(joint.nv)])
    return names
