"""Requests of users to a running simulation: start in a state, push, and move objects, singly or several at once.

The fields of a request are those of its dataclass. All requests of a list are checked before the first one acts, and
they act between the same two ticks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.config import from_mapping, param
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import Robot, start_configuration
from bipedsim.numerics import Array
from bipedsim.sim import Simulator, placed
from bipedsim_ros.loop.sim_loop import SimLoop

Numbers3 = tuple[float, float, float]
Numbers6 = tuple[float, float, float, float, float, float]
_POSE, _STATE = 7, 13


def object_state(name: str, numbers: Sequence[float]) -> Array:
    """Return pose and velocities (13,) in the axes of an object, from its pose and its velocities in the world.

    Args:
        name: Name of the object, for messages.
        numbers: 7 numbers, at rest, or 13.

    Raises:
        ConfigError: There is another number of values, or the quaternion has another length than 1.
    """
    if len(numbers) not in (_POSE, _STATE):
        form = "must be 7 numbers: x y z [m], qx qy qz qw, or 13: then the velocities in odom axes [m/s, rad/s]"
        raise ConfigError(form, f"object {name!r}", list(numbers))
    state = np.zeros(_STATE)
    state[: len(numbers)] = numbers
    state[7:] = in_own_axes(state[3:7], state[7:], f"object {name!r}")
    return state


def in_own_axes(quaternion: Array, twist: Array, where: str) -> Array:
    """Return velocities (6,) in the world, linear and angular, in the axes of a body with this orientation.

    Raises:
        ConfigError: The quaternion has another length than 1.
    """
    if not abs(np.linalg.norm(quaternion) - 1.0) <= 1e-3:
        raise ConfigError("is no rotation: a quaternion x y z w of length 1 is needed", where, quaternion.tolist())
    rotation = pin.Quaternion(quaternion / np.linalg.norm(quaternion)).matrix()
    return np.concatenate([rotation.T @ twist[:3], rotation.T @ twist[3:]])


@dataclass(frozen=True)
class PushRequest:
    """Push a body of the robot, or an object."""

    wrench: Numbers6 = param((0.0,) * 6, "force and torque in odom axes", unit="N, N.m", required=True)
    body: str = param("", "frame of the robot, or object; default: the root link")
    point: Numbers3 | None = param(
        None, "where the force acts, in the axes of the body; its origin by default", unit="m"
    )
    duration: float = param(0.1, "duration", unit="s", low=1e-6, high=1e9)
    ramp: float = param(0.0, "time in which the wrench rises, and falls at the end", unit="s", low=0.0, high=1e9)

    def _arguments(self) -> tuple[Array, str, float, Array | None, float]:
        point = None if self.point is None else np.array(self.point)
        return np.array(self.wrench), self.body, self.duration, point, self.ramp

    def check(self, sim: Simulator, scene: _Scene) -> None:
        """Raise ConfigError or UnknownNameError if the simulator would refuse the push."""
        wrench, body, duration, point, ramp = self._arguments()
        sim.pushes.check(wrench, body or None, duration, 0.0, point, ramp)

    def run(self, loop: SimLoop) -> str:
        """Push, and return what was done."""
        return loop.push(*self._arguments())


@dataclass(frozen=True)
class MoveRequest:
    """Move objects to a state."""

    objects: Mapping[str, tuple[float, ...]] = param(
        {}, "x y z [m], qx qy qz qw of each object, and its velocities in odom axes [m/s, rad/s]", required=True
    )

    def _states(self) -> dict[str, Array]:
        return {name: object_state(name, numbers) for name, numbers in self.objects.items()}

    def check(self, sim: Simulator, scene: _Scene) -> None:
        """Add the objects to the scene."""
        if sim.objects is None:
            raise ConfigError("the run has none. Start with a scenario that has objects", "objects")
        scene.objects |= self._states()

    def run(self, loop: SimLoop) -> str:
        """Move the objects, and return what was done."""
        return loop.move(self._states())


@dataclass(frozen=True)
class StartRequest:
    """Go back to t = 0, in a posture or with joints and base in a given state."""

    posture: str = param("", "posture of robot.yaml, or path of a YAML file; standing by default")
    base_pose: tuple[float, ...] = param(
        (), "x y z [m], qx qy qz qw of base_link; by default that of the posture, the lowest sole on the ground"
    )
    base_twist: tuple[float, ...] = param((), "its velocities in odom axes", unit="m/s, rad/s")
    positions: Mapping[str, float] = param({}, "joint to position, instead of that of the posture", unit="rad")
    velocities: Mapping[str, float] = param({}, "joint to velocity; 0 by default", unit="rad/s")
    objects: Mapping[str, tuple[float, ...]] = param({}, "object to its state, as when objects are moved")

    def state(self, sim: Simulator) -> tuple[Array, Array]:
        """Return the state (nq,), (nv,) of the robot."""
        robot = sim.robot
        q, v = start_configuration(robot, self.posture), np.zeros(robot.model.nv)
        for name, values, array, index in (
            ("positions", self.positions, q, robot.idx_q),
            ("velocities", self.velocities, v, robot.idx_v),
        ):
            for joint, value in values.items():
                if joint not in robot.joint_names:
                    raise UnknownNameError("joint", joint, robot.joint_names, name)
                array[index[robot.joint_names.index(joint)]] = value
        if (self.base_pose or self.base_twist) and not robot.free_flyer:
            raise ConfigError(f"{robot.name} is fixed to the ground", "base_pose")
        if self.positions:
            q = robot.closed(q)
        if self.base_pose:
            q[:7] = _sized("base_pose", self.base_pose, 7)
        elif robot.free_flyer:
            q[2] -= _lowest(robot, q) if self.positions else 0.0
            q = placed(sim, q)
        if self.base_twist:
            v[:6] = in_own_axes(q[3:7], _sized("base_twist", self.base_twist, 6), "base_pose")
        return q, v

    def check(self, sim: Simulator, scene: _Scene) -> None:
        """Raise ConfigError if the robot cannot start there; otherwise continue with the scene at the start."""
        scene.q, scene.v = self.state(sim)
        scene.from_start, scene.objects = True, {}
        sim.check_start(scene.q, scene.v)
        if self.objects:
            MoveRequest(self.objects).check(sim, scene)

    def run(self, loop: SimLoop) -> str:
        """Start again, and return what was done."""
        done = loop.begin_at(*self.state(loop.simulator))
        return f"{done}; {MoveRequest(self.objects).run(loop)}" if self.objects else done


Request = PushRequest | MoveRequest | StartRequest
REQUESTS: dict[str, type[Request]] = {"push": PushRequest, "move": MoveRequest, "start": StartRequest}
"""Name of a request to its fields."""


@dataclass
class _Scene:
    """State of robot and moved objects after the requests that were checked so far."""

    q: Array
    v: Array
    objects: dict[str, Array]
    from_start: bool = False


def read_request(name: str, fields: Mapping[str, Any]) -> Request:
    """Return a request from its name and its fields.

    Raises:
        UnknownNameError, ConfigError: The name or a field does not exist, or a value is not valid.
    """
    if name not in REQUESTS:
        raise UnknownNameError("request", name, tuple(REQUESTS))
    return from_mapping(REQUESTS[name], fields, name)


def carry_out(loop: SimLoop, requests: Sequence[Request]) -> str:
    """Carry out all requests between two ticks, or none; return what was done. Only the loop may call this.

    Raises:
        ConfigError, UnknownNameError: One of them is not possible; nothing has changed.
    """
    if not requests:
        raise ConfigError("is empty. Give requests such as push: '{wrench: [0, 10, 0, 0, 0, 0]}'", "list")
    sim = loop.simulator
    scene = _Scene(sim.q, sim.v, {})
    for number, request in enumerate(requests, start=1):
        try:
            request.check(sim, scene)
            if scene.objects and sim.objects is not None:
                sim.objects.check_move(scene.objects, sim.closed_at(scene.q), scene.v, scene.from_start)
        except ConfigError as error:
            raise error.within(f"request {number} of {len(requests)}") from error
    return "; ".join(request.run(loop) for request in requests)


def _lowest(robot: Robot, q: Array) -> float:
    """Return the height of the lowest point of the soles in the configuration ``q`` (nq,) [m]; 0 without soles."""
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    bodies = ((sole, data.oMi[sole.joint_id]) for sole in robot.soles)
    heights = [sole.vertices_joint @ pose.rotation[2] + pose.translation[2] - sole.radius for sole, pose in bodies]
    return float(np.min(heights)) if heights else 0.0


def _sized(name: str, numbers: Sequence[float], size: int) -> Array:
    if len(numbers) != size:
        raise ConfigError(f"must be {size} numbers", name, list(numbers))
    return np.array(numbers)
