"""Define the interface of an engine for the benchmark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter_ns

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from bipedsim.errors import BipedSimError
from bipedsim.model import Robot, Sole, sole_placements
from bipedsim.numerics import Array
from bipedsim.sim import Simulator

SOLE_THICKNESS = 0.02
"""Height of the box that represents a sole in engines with solid shapes only [m]. Its bottom face is the sole."""


class EngineUnavailableError(BipedSimError):
    """The engine cannot be used.

    Attributes:
        status: ``"not installed"`` or ``"not supported"``.
    """

    def __init__(self, status: str, message: str, place: str = "") -> None:
        self.status = status
        super().__init__(message, place)


def not_supported(message: str, place: str = "") -> EngineUnavailableError:
    """Return the error for an engine that does not support a robot."""
    return EngineUnavailableError("not supported", message, place)


class Engine(ABC):
    """One robot on the plane z = 0 in one engine.

    States use pinocchio's convention. Torques are in the order of ``robot.joint_names``.

    Args:
        robot: The robot, with a floating base.
        dt: Step [s].

    Attributes:
        step: Advances by dt under joint torques (nu,) [N.m] and computes the forces on both feet. Only this call is
            timed. It is a callable instead of a method, so that an engine can provide its function without overhead.
        simulator: bipedsim's simulator; None in other engines.

    Raises:
        EngineUnavailableError: The engine does not support the robot.
    """

    step: Callable[[Array], object]
    simulator: Simulator | None = None

    def __init__(self, robot: Robot, dt: float) -> None:
        if not robot.free_flyer:
            raise not_supported("it has a fixed base", robot.name)
        self.robot = robot
        self.dt = dt
        # All joints except the free-flyer, and their indices in q and v.
        joints = list(robot.model.joints)[2:]
        self._joints = list(robot.model.names)[2:]
        self._ours_q = [joint.idx_q for joint in joints]
        self._ours_v = [joint.idx_v for joint in joints]
        self._soles = Soles(robot)
        self._push = np.zeros(3)

    @abstractmethod
    def reset(self, q: Array, v: Array) -> None:
        """Set the state q (nq,), v (nv,), and remove the push."""

    def push(self, force_world: Array) -> None:
        """Apply a force (3,) [N] at the origin of the root link, from the next step until changed."""
        self._push[:] = force_world

    def time_block(self, torques: list[Array]) -> float:
        """Advance with each of ``torques``, arrays (nu,), and return the total time [ns]."""
        step = self.step
        start = perf_counter_ns()
        for torque in torques:
            step(torque)
        return perf_counter_ns() - start

    @abstractmethod
    def state(self) -> tuple[Array, Array]:
        """Return q (nq,) and v (nv,)."""

    @abstractmethod
    def wrenches(self) -> Array:
        """Return force [N] and torque [N.m] of the ground on each foot at its sole origin (K, 6), in world axes."""

    def load(self) -> Array:
        """Return the sum of all contact forces on the robot (3,) [N], in world axes; engines with a scene have it."""
        return np.asarray(self.wrenches()[:, :3].sum(axis=0))

    def _state_of(
        self, base: pin.SE3, linear: ArrayLike, angular: ArrayLike, position: ArrayLike, rate: ArrayLike
    ) -> tuple[Array, Array]:
        """Return q and v from the root's pose and world velocities, and the joints' states in pinocchio's order."""
        q, v = np.zeros(self.robot.model.nq), np.zeros(self.robot.model.nv)
        q[:7] = pin.SE3ToXYZQUAT(base)
        v[:3] = base.rotation.T @ np.asarray(linear)
        v[3:6] = base.rotation.T @ np.asarray(angular)
        q[self._ours_q], v[self._ours_v] = position, rate
        return q, v

    def _wrenches_of(self, contacts: Iterable[tuple[int, ArrayLike, ArrayLike]]) -> Array:
        """Return the wrenches of contacts: index of the foot, point, and force on the foot, in world axes."""
        origins = self._soles.positions(self.state()[0])
        rows = np.zeros((len(origins), 6))
        for k, point, force in contacts:
            rows[k] += wrench_about(origins[k], np.array([point]), np.array([force]))
        return rows

    def close(self) -> None:  # noqa: B027 - most engines hold no resources
        """Release resources that garbage collection does not release."""


class Soles:
    """Placements of a robot's soles in any configuration. All engines use this pinocchio code for a fair comparison."""

    def __init__(self, robot: Robot) -> None:
        self._model = robot.model
        self._data = robot.model.createData()
        self._soles = robot.soles

    def placements(self, q: Array) -> list[pin.SE3]:
        """Return the sole frames in the world at q (nq,)."""
        return sole_placements(self._model, self._data, self._soles, q)

    def positions(self, q: Array) -> Array:
        """Return the sole origins (K, 3) in the world [m] at q (nq,)."""
        return np.array([placement.translation for placement in self.placements(q)])

    def depth(self, q: Array) -> float:
        """Return the depth of the lowest vertex below z = 0 [m]; negative above."""
        lowest = np.inf
        for sole, placement in zip(self._soles, self.placements(q), strict=True):
            heights = sole.vertices @ placement.rotation[2, :2] + placement.translation[2]
            lowest = min(lowest, float(heights.min()))
        return -lowest


@dataclass(frozen=True)
class SoleBox:
    """Box whose bottom face is a rectangular sole.

    Attributes:
        placement_joint_box: Centre of the box in the frame of the parent joint.
        size: (3,) edge lengths [m].
    """

    placement_joint_box: pin.SE3
    size: Array


def sole_box(sole: Sole) -> SoleBox:
    """Return the box of a rectangular sole.

    Raises:
        EngineUnavailableError: The sole is not a rectangle.
    """
    vertices = sole.vertices
    edges = np.roll(vertices, -1, axis=0) - vertices
    if len(vertices) != 4 or abs(edges[0] @ edges[1]) + float(np.abs(edges[0] + edges[2]).max()) > 1e-9:
        raise not_supported(f"no rectangle ({len(vertices)} vertices); the adapter knows boxes", f"sole {sole.name!r}")
    lengths = np.hypot(edges[:2, 0], edges[:2, 1])
    direction = edges[0] / lengths[0]
    rotation = np.array([[direction[0], -direction[1], 0.0], [direction[1], direction[0], 0.0], [0.0, 0.0, 1.0]])
    centre = np.append(sole.centre, 0.5 * SOLE_THICKNESS)
    placement = sole.placement_joint_sole * pin.SE3(rotation, centre)
    return SoleBox(placement, np.array([lengths[0], lengths[1], SOLE_THICKNESS]))


def wrench_about(origin: Array, points: Array, forces: Array) -> Array:
    """Return the wrench (6,) about ``origin`` (3,) of ``forces`` (n, 3) [N] that act at ``points`` (n, 3)."""
    return np.concatenate([forces.sum(axis=0), np.cross(points - origin, forces).sum(axis=0)])
