"""Provide dynamics and feet of a robot in one state, for the conditions of sticking and of impacts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from bipedsim.dynamics import Dynamics
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.ground import Ground
from bipedsim.model import Robot, sole_placements
from bipedsim.numerics import Array

TOUCHES = 1e-3
"""Maximum height of a vertex in contact with the ground [m], the threshold of constraint selection."""

_ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


@dataclass(frozen=True, eq=False)
class SupportFoot:
    """Foot in one state; "contact axes" are (t1, t2, n) of the ground under it, about the sole origin.

    Attributes:
        name: Name of the foot.
        polygon: (N, 2) part of the sole above ground [m], counter-clockwise in the sole frame; N = 0 if there is none.
        offsets: (N, 3) the same points in contact axes [m].
        heights: (N,) heights of the points above the ground [m].
        rotation: (3, 3) axes of the sole as columns, in contact axes.
        mu_static, mu_dynamic: Friction coefficients.
    """

    name: str
    polygon: Array
    offsets: Array
    heights: Array
    rotation: Array
    mu_static: float
    mu_dynamic: float

    @property
    def n_vertices(self) -> int:
        """Number of vertices N."""
        return len(self.polygon)

    def shrunk(self, by: float) -> Array:
        """Return the offsets (N, 3), N > 2, of the polygon with each edge moved inwards by ``by`` [m].

        Raises:
            ConfigError: The polygon would vanish.
        """
        if by == 0.0:
            return self.offsets
        polygon = _moved_inwards(self.polygon, by)
        if polygon is None:
            raise ConfigError("m leaves nothing of the sole", f"foot {self.name!r}: reserve", by)
        return self.offsets + (polygon - self.polygon) @ self.rotation[:, :2].T


@dataclass(frozen=True, eq=False)
class Support:
    """Dynamics and K feet of a robot at (q, v): M a + forces = S u + J^T lambda, in contact axes.

    Attributes:
        M: (nv, nv) inertia matrix with the reflected inertia of the actuators.
        forces: (nv,) Coriolis, centrifugal, gravity and viscous friction, minus external forces [N, N.m].
        damping: (nv,) viscous friction of the joints [N.m.s/rad].
        selection: (nv, nu) S, maps torques to generalised forces.
        v: (nv,) generalised velocity.
        J: (6K, nv) Jacobian of velocity and angular velocity of each sole origin.
        bias: (6K,) J' v, classical acceleration of the sole origins at constant v.
        feet: The feet.
    """

    M: Array
    forces: Array
    damping: Array
    selection: Array
    v: Array
    J: Array
    bias: Array
    feet: tuple[SupportFoot, ...]

    def index(self, name: str) -> int:
        """Return the index of the foot ``name``.

        Raises:
            ConfigError: There is no such foot; the message lists the names.
        """
        names = [foot.name for foot in self.feet]
        if name not in names:
            raise UnknownNameError("foot", name, names)
        return names.index(name)

    def touching(self, within: float = TOUCHES) -> tuple[tuple[int, ...], ...]:
        """Return for each foot its vertices that are at most ``within`` above the ground [m]."""
        return tuple(tuple(int(i) for i in np.flatnonzero(foot.heights <= within)) for foot in self.feet)

    def with_friction(self, mu: ArrayLike) -> Support:
        """Return the same support with friction ``mu``, one number or (K,), both static and dynamic."""
        coefficients = np.broadcast_to(np.asarray(mu, dtype=np.float64), len(self.feet))
        feet = (
            replace(f, mu_static=float(m), mu_dynamic=float(m)) for f, m in zip(self.feet, coefficients, strict=True)
        )
        return replace(self, feet=tuple(feet))


class SupportReader:
    """Compute the :class:`Support` of a robot on a ground for given states.

    Args:
        robot: The robot.
        ground: Ground under the robot; flat at z = 0 by default.
    """

    def __init__(self, robot: Robot, ground: Ground | None = None) -> None:
        self._robot = robot
        self._body = BodyReader(robot)
        # The duration of the step has no effect on the used values of the projection.
        self._dynamics = Dynamics(robot, ground or Ground.flat(), 1e-3)
        self._still = np.zeros(robot.nu)

    def at(self, q: Array, v: Array, push: Array | None = None, *, before: Array | None = None) -> Support:
        """Return the support at (q, v).

        Args:
            q, v: The state.
            push: (nv,) generalised external force, none by default.
            before: (nq,) configuration one step earlier. It distinguishes feet of ``Sole.passes_ground`` that touched
                down from feet that swing through the ground. Without it, such a foot below the ground counts as
                swinging.
        """
        self._dynamics.reset()
        if before is not None:
            self._dynamics.project(before, v, self._still)
        p = self._dynamics.project(q, v, self._still)
        feet = []
        for k, sole in enumerate(self._robot.soles):
            n = int(p.n_vertices[k])
            offsets = p.offsets[k, :n].copy()
            feet.append(
                SupportFoot(
                    sole.name,
                    p.vertices[k, :n].copy(),
                    offsets,
                    p.position[k, 2] + offsets[:, 2],
                    p.rotation[k].copy(),
                    float(p.mu_static[k]),
                    float(p.mu_dynamic[k]),
                )
            )
        return self._body.support(q, v, self._dynamics.ground_axes, tuple(feet), push)


class BodyReader:
    """Compute the part of a :class:`Support` that is independent of the ground: dynamics and motion of the soles.

    Args:
        robot: The robot.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._data = robot.model.createData()
        self._selection = np.eye(robot.model.nv)[:, robot.idx_v]
        self._rest = np.zeros(robot.model.nv)
        self._upper = np.triu_indices(robot.model.nv, 1)

    def rotations(self, q: Array) -> Array:
        """Return the axes of the soles in the world (K, 3, 3)."""
        poses = sole_placements(self._robot.model, self._data, self._robot.soles, q)
        return np.array([pose.rotation for pose in poses])

    def support(
        self, q: Array, v: Array, axes: Array, feet: tuple[SupportFoot, ...], push: Array | None = None
    ) -> Support:
        """Return the support at (q, v).

        Args:
            q, v: The state.
            axes: (K, 3, 3) contact axes in the world, as columns.
            feet: The feet, in these axes.
            push: (nv,) generalised external force.
        """
        robot, model, data = self._robot, self._robot.model, self._data
        pin.crba(model, data, q)
        M = data.M.copy()
        M.T[self._upper] = M[self._upper]
        forces = pin.nonLinearEffects(model, data, q, v) + robot.joint_damping * v
        pin.computeJointJacobians(model, data, q)
        pin.forwardKinematics(model, data, q, v, self._rest)
        rows, bias = [], []
        for sole, columns in zip(robot.soles, axes, strict=True):
            where = sole.joint_id, sole.placement_joint_sole, _ALIGNED
            J = pin.getFrameJacobian(model, data, *where)
            drift = pin.getFrameClassicalAcceleration(model, data, *where)
            rows += [columns.T @ J[:3], columns.T @ J[3:]]
            bias += [columns.T @ drift.linear, columns.T @ drift.angular]
        return Support(
            M=M,
            forces=forces if push is None else forces - push,
            damping=robot.joint_damping,
            selection=self._selection,
            v=v.copy(),
            J=np.vstack(rows),
            bias=np.concatenate(bias),
            feet=feet,
        )


def _moved_inwards(polygon: Array, by: float) -> Array | None:
    """Return the polygon (N, 2), N > 2, with its edges moved inwards by ``by``; None if an edge vanishes."""
    along = np.concatenate([polygon[1:], polygon[:1]]) - polygon
    unit = along / np.hypot(along[:, 0], along[:, 1])[:, None]
    inwards = unit[:, [1, 0]] * [-1.0, 1.0]
    before = np.concatenate([inwards[-1:], inwards[:-1]])
    # Each corner stays on both of its edges.
    shrunk: Array = polygon + by * (before + inwards) / (1.0 + (before * inwards).sum(axis=1))[:, None]
    after = np.concatenate([shrunk[1:], shrunk[:1]]) - shrunk
    return shrunk if ((after * unit).sum(axis=1) > 0.0).all() else None
