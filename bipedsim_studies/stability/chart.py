"""Define minimal coordinates of the robot states on a section: some of the joint positions and rates.

A robot with its feet on the ground has fewer degrees of freedom than q and v have entries (hurmuzlu2001: the reduced
vector of eq. 49). The feet in contact do not move, and the section's function is zero. A chart selects as many joints
and rates as are independent, and computes the others with Newton's method.
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
"""Step of central differences [m, rad, m/s, rad/s]."""
RANK = 1e-6
"""Singular values below this fraction of the largest belong to redundant conditions."""
TOLERANCE = 1e-12
"""Tolerance of the conditions [m, rad, m/s, rad/s]."""
ITERATIONS = 20
_BASE = ("base x", "base y", "base z", "base roll", "base pitch", "base yaw")


class SectionChart:
    """Map between minimal coordinates and states (q, v) near one state of the section.

    The coordinates are joint angles [rad] and rates [rad/s].

    Args:
        robot: The robot.
        feet: Position of its feet relative to the ground.
        q, v: (nq,), (nv,) state near the section, around which the chart is made.
        carrying: Indices of the feet in contact, which do not move.
        value: Function of q and v that is zero on the section. None if every state is on the section.

    Attributes:
        names: Names of the coordinates. A name with a prime is the rate of that joint [rad/s].
        centre: (n,) coordinates of the state (q, v).
        place: (3,) mean position of the vertices in contact, in world axes [m].
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
        # Pivoting eliminates the columns with the largest weights first: the prismatic root joints, then the base and
        # joints without a drive. Joints with a drive remain as coordinates because users know them best.
        weight = np.full(nv, 1e3)
        weight[robot.idx_v] = 1.0
        weight[sliders(robot)] = 1e6
        order = qr(jacobian * np.tile(weight, 2), mode="r", pivoting=True)[1]
        self._dependent = np.sort(order[:rank])
        self.free = np.setdiff1d(np.arange(2 * nv), self._dependent)
        names = _names(robot)
        self.names = tuple(names[i] if i < nv else f"{names[i - nv]}'" for i in self.free)
        self.place = self._points.mean(axis=0) if len(self._points) else np.zeros(3)
        # Joint coordinates are relative to the neutral configuration. The base is relative to the world's axes.
        angles = pin.difference(robot.model, pin.neutral(robot.model), q)
        self.centre: Array = np.concatenate([angles, v])[self.free]

    def state(self, xi: Array) -> tuple[Array, Array]:
        """Return the state (q, v) with the coordinates ``xi`` (n,).

        Raises:
            NoReturnError: No state near the centre of the chart has these coordinates.
        """
        x = np.zeros(2 * self._model.nv)
        x[self.free] = xi - self.centre
        for _ in range(ITERATIONS):
            error = self._conditions(*self._at(x))
            if not len(error) or np.abs(error).max() < TOLERANCE:
                break
            x[self._dependent] -= np.linalg.lstsq(self._jacobian(x, self._dependent), error, rcond=None)[0]
        else:
            where = dict(zip(self.names, xi.tolist(), strict=True))
            raise NoReturnError(f"no state on the section with {where}", self._model.name)
        return self._at(x)

    def coordinates(self, q: Array, v: Array) -> Array:
        """Return the coordinates (n,) of a state whose feet are at :attr:`place`."""
        offset = np.concatenate([pin.difference(self._model, self._q, q), v - self._v])
        return np.asarray(self.centre + offset[self.free])

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
            forward, backward = self._conditions(*self._at(x + step)), self._conditions(*self._at(x - step))
            rows.append((forward - backward) / (2.0 * DIFFERENCE))
        return np.array(rows).T


def _names(robot: Robot) -> list[str]:
    """Return a name for each of the nv entries of v."""
    names: list[str] = []
    # Joint 0 of a pinocchio model is the universe.
    for joint, name in zip(list(robot.model.joints)[1:], list(robot.model.names)[1:], strict=True):
        if joint.nv == 6:
            names.extend(_BASE)
        elif joint.nv:
            names.extend([name] if joint.nv == 1 else [f"{name} {i}" for i in range(joint.nv)])
    return names
