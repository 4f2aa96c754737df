"""Define the Gymnasium environment: a robot with position-controlled joints on a ground, at 50 Hz.

It needs the extra ``gym``. Actions and observations are those of walking policies on real robots: joint targets
relative to the standing posture, and only measured quantities.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np
import pinocchio as pin
from gymnasium import Env
from gymnasium.spaces import Box
from gymnasium.utils.seeding import np_random
from numpy.typing import NDArray

from bipedsim.analysis import has_fallen
from bipedsim.config import checked_seed, together
from bipedsim.errors import ConfigError, DivergenceError
from bipedsim.ground import get_ground
from bipedsim.model import (
    IDEAL,
    at_posture,
    drive_gains,
    load_robot,
    sole_placements,
    standing_torque,
    start_configuration,
)
from bipedsim.numerics import Array
from bipedsim.sim import Command, Simulator, placed

Numbers = NDArray[np.float32]


class BipedEnv(Env[Numbers, Numbers]):
    """Biped with the task to walk at a commanded velocity, or to stand at zero velocity.

    **Action** (nu,), in [-1, 1]: the drives move the joints to ``posture + action_scale * action`` [rad]. They use
    their own gains (:func:`bipedsim.model.drive_gains`) and the torques of standing as feedforward. Zeros command the
    standing posture. biped14 stays there. A robot with ankles less stiff than m g h, such as g1, needs balance control.

    **Observation**, float32, in this order; ``layout`` has the slices by name:

    * ``angular_velocity`` (3,) of the IMU [rad/s];
    * ``up`` (3,), the vertical in axes of the IMU;
    * ``command`` (3,), commanded velocity forward and to the left [m/s] and turning rate [rad/s];
    * ``joint_position`` (nu,) relative to the posture [rad];
    * ``joint_velocity`` (nu,) [rad/s];
    * ``action`` (nu,), the last one.

    **Reward**: the sum of :meth:`rewards`, which a subclass may override; the terms are in ``info``.

    An episode ends (``terminated``) with a fall, as defined by :func:`bipedsim.analysis.fall_time`, or if the
    simulation diverges. After a divergence all terms of the reward are 0, the observation is the last one, and ``info``
    has ``diverged``.

    The environment can be copied and pickled during an episode; the copy continues with the same bits.

    Args:
        robot: Name or path of a robot with a floating base.
        ground: Name or path of a ground.
        contact_model: Name of the contact model.
        hardware: Preset or parameters, see docs/hardware.md.
        control_dt: Time of a step [s].
        physics_dt: Step of the simulation [s].
        action_scale: Joint displacement for an action of 1 [rad].
        command: Commanded velocity (vx, vy, wz) in all episodes; by default drawn within ``command_range`` at every
            reset.
        command_range: Largest magnitudes of a drawn command.
        start_noise: Standard deviation of the initial joint positions [rad]; ten times as much for velocities [rad/s].
        posture: Initial posture and zero of the actions: a posture of robot.yaml, or the path of a file with joints and
            angles; standing by default.
        render_mode: Must be None. To see a learned policy, run it as a controller.

    Attributes:
        sim: The simulator, with the ground truth for rewards.
        layout: Name to its slice of the observation.
        command: The commanded velocity (3,).

    Raises:
        ConfigError: An argument is wrong.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(  # noqa: PLR0913 -- `gymnasium.make` passes the options of an environment as keywords
        self,
        robot: str = "biped14",
        ground: str = "flat",
        contact_model: str = "one_step",
        hardware: str | Mapping[str, Any] = IDEAL,
        control_dt: float = 0.02,
        physics_dt: float = 1e-3,
        action_scale: float = 0.25,
        command: tuple[float, float, float] | None = None,
        command_range: tuple[float, float, float] = (0.5, 0.2, 0.5),
        start_noise: float = 0.01,
        posture: str = "",
        render_mode: str | None = None,
    ) -> None:
        together([*_argument_errors(action_scale, start_noise, command, command_range)])
        if render_mode is not None:
            raise ConfigError("is not supported. Record a run and view it", "render_mode", render_mode)
        self.render_mode = None
        self.robot = load_robot(robot)
        if posture:
            self.robot = at_posture(self.robot, start_configuration(self.robot, posture))
        if not self.robot.free_flyer or not self.robot.nu or not self.robot.soles:
            raise ConfigError("has no feet, no drives or no free base: this environment is for bipeds", "robot", robot)
        self.sim = Simulator(self.robot, get_ground(ground), contact_model, physics_dt, control_dt, hardware=hardware)
        nu = self.robot.nu
        self.action_scale = action_scale
        self._given_command = command
        self._range = np.array(command_range, dtype=np.float64)
        self._noise = start_noise
        self.command: Array = np.zeros(3)
        kp, kd = drive_gains(self.robot, physics_dt)
        self._stand = standing_torque(self.robot)
        self._drive_command = Command(self._stand, self.robot.posture.copy(), None, kp, kd)
        parts = {"angular_velocity": 3, "up": 3, "command": 3} | dict.fromkeys(
            ("joint_position", "joint_velocity", "action"), nu
        )
        ends = np.cumsum(list(parts.values()))
        self.layout = {name: slice(int(end) - n, int(end)) for (name, n), end in zip(parts.items(), ends, strict=True)}
        self._values = np.zeros(int(ends[-1]), dtype=np.float32)
        self.action_space = Box(-1.0, 1.0, (nu,), np.float32)
        largest = np.full(self._values.shape, np.inf, dtype=np.float32)
        # Sensor data and commands are unbounded; a direction and the clipped action are bounded.
        largest[self.layout["up"]] = largest[self.layout["action"]] = 1.0
        self.observation_space = Box(-largest, largest, dtype=np.float32)
        self._data = self.robot.model.createData()
        self._upright = np.zeros(3)
        self._height = 0.0
        self.action: Array = np.zeros(nu)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Numbers, dict[str, Any]]:
        """Start an episode near the standing posture.

        Args:
            seed: Seed of initial state, command and hardware noise, for this and all later episodes.
            options: ``command`` (3,), or initial ``q`` (nq,) and ``v`` (nv,).

        Raises:
            ConfigError: An option is unknown, the seed is not an integer of at least 0, or the initial state is
                impossible. The environment is then unchanged.
        """
        options = options or {}
        unknown = sorted(options.keys() - {"command", "q", "v"})
        if unknown:
            raise ConfigError("are unknown; there are command, q and v", "options", unknown)
        command = options.get("command", self._given_command)
        together([*_velocity_errors("options: command", command)] if command is not None else [])
        robot = self.robot
        random = deepcopy(self.np_random) if seed is None else np_random(checked_seed(seed))[0]
        drawn_command = random.uniform(-self._range, self._range)
        q, v = self._start(random)
        simulation_seed = int(random.integers(2**31))
        observation = self.sim.reset(options.get("q", q), options.get("v", v), seed=simulation_seed)
        super().reset(seed=seed)
        self.np_random.bit_generator.state = random.bit_generator.state
        self.command = np.array(drawn_command if command is None else command, dtype=np.float64)
        self.action = np.zeros(robot.nu)
        vertical, self._height = self._pose()
        self._upright = vertical
        return self._observe(observation), {}

    def _start(self, random: np.random.Generator) -> tuple[Array, Array]:
        """Return a posture (nq,) near standing with the lowest vertex on the ground, and velocities (nv,)."""
        robot = self.robot
        q, v = robot.q_nominal.copy(), np.zeros(robot.model.nv)
        angles = robot.posture + self._noise * random.normal(size=robot.nu)
        v[robot.idx_v] = 10.0 * self._noise * random.normal(size=robot.nu)
        if self._noise and not robot.loops:
            q[robot.idx_q] = np.clip(angles, robot.position_lower, robot.position_upper)
            soles = zip(robot.soles, sole_placements(robot.model, self._data, robot.soles, q), strict=True)
            q[2] -= min(float(pose.act(vertex)[2]) for sole, pose in soles for vertex in _corners(sole.vertices))
        elif robot.loops:
            v[:] = 0.0
        return placed(self.sim, q), v

    def step(self, action: Numbers) -> tuple[Numbers, float, bool, bool, dict[str, Any]]:
        """Command the joint targets of ``action`` (nu,) for one step.

        Raises:
            ConfigError: The action has another shape or is not finite; the environment is then unchanged.
        """
        values = np.asarray(action, dtype=np.float64)
        if values.shape != self.action_space.shape:
            raise ConfigError(f"its shape {values.shape} must be {self.action_space.shape}", "action")
        if not np.isfinite(values).all():
            raise ConfigError("is not finite", "action", values.tolist())
        self.action = np.clip(values, -1.0, 1.0)
        assert self._drive_command.position is not None
        self._drive_command.position[:] = self.robot.posture + self.action_scale * self.action
        diverged = ""
        try:
            self._observe(self.sim.step(self._drive_command))
        except DivergenceError as error:
            diverged = str(error)
        fallen = bool(diverged) or self.fallen()
        terms = self.rewards()
        if diverged:
            terms = dict.fromkeys(terms, 0.0)
        info: dict[str, Any] = {"rewards": terms, **({"diverged": diverged} if diverged else {})}
        return self._values.copy(), float(sum(terms.values())), fallen, False, info

    def rewards(self) -> dict[str, float]:
        """Return the terms of the reward after a step; each is between 0 and its weight.

        * ``going`` compares the base velocity in its heading frame with the command.
        * ``turning`` compares the turning rate with the command.
        * ``upright`` compares the attitude with the initial one.
        * ``effort``, at most 0, is the mean square of torque divided by limit.
        """
        rotation = pin.Quaternion(self.sim.q[3:7]).toRotationMatrix()
        velocity = rotation @ self.sim.v[:3]
        yaw = np.arctan2(rotation[1, 0], rotation[0, 0])
        ahead = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, yaw), np.zeros(3)).actInv(velocity)[:2]
        turning = float((rotation @ self.sim.v[3:6])[2])
        uprightness = float(self._upright @ self._pose()[0])
        effort = float(np.mean((self.sim.effort / self.robot.effort_limit) ** 2))
        return {
            "going": 1.0 * float(np.exp(-np.sum((ahead - self.command[:2]) ** 2) / 0.25)),
            "turning": 0.5 * float(np.exp(-((turning - self.command[2]) ** 2) / 0.25)),
            "upright": 0.5 * max(uprightness, 0.0),
            "effort": -0.1 * effort,
        }

    def fallen(self) -> bool:
        """Return whether the robot has fallen, as defined by :func:`bipedsim.analysis.fall_time`."""
        vertical, height = self._pose()
        return bool(has_fallen(float(self._upright @ vertical), height, self._height))

    def _pose(self) -> tuple[Array, float]:
        """Return the vertical (3,) in axes of the base, and the height of the CoM above the lowest sole [m]."""
        robot, q = self.robot, self.sim.q
        com = pin.centerOfMass(robot.model, self._data, q)
        lowest = min(pose.translation[2] for pose in sole_placements(robot.model, self._data, robot.soles, q))
        return pin.Quaternion(q[3:7]).toRotationMatrix()[2].copy(), float(com[2] - lowest)

    def _observe(self, observation: Any) -> Numbers:
        """Update and return the observation."""
        parts = {
            "angular_velocity": observation.imu_angular_velocity,
            "up": pin.Quaternion(observation.imu_orientation).toRotationMatrix()[2],
            "command": self.command,
            "joint_position": observation.joint_position - self.robot.posture,
            "joint_velocity": observation.joint_velocity,
            "action": self.action,
        }
        for name, values in parts.items():
            self._values[self.layout[name]] = values
        return self._values.copy()


def _argument_errors(action_scale: Any, start_noise: Any, command: Any, command_range: Any) -> Iterator[ConfigError]:
    """Yield errors in the numeric arguments of an environment."""
    if not (_is_number(action_scale) and action_scale > 0.0):
        yield ConfigError("must be a positive number [rad]", "action_scale", action_scale)
    if not (_is_number(start_noise) and start_noise >= 0.0):
        yield ConfigError("must be a number of at least 0 [rad]", "start_noise", start_noise)
    if command is not None:
        yield from _velocity_errors("command", command)
    yield from _velocity_errors("command_range", command_range, minimum=0.0)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value)


def _velocity_errors(name: str, velocity: Any, minimum: float = -math.inf) -> Iterator[ConfigError]:
    """Yield errors in a velocity or its bounds."""
    numbers = list(velocity) if np.iterable(velocity) and not isinstance(velocity, str) else []
    if len(numbers) != 3 or not all(_is_number(value) and value >= minimum for value in numbers):
        low = "" if minimum < 0.0 else f" of at least {minimum:g}"
        text = f"must be three numbers{low}: ahead and to the left [m/s], and turning [rad/s]"
        yield ConfigError(text, name, velocity)


def _corners(vertices: Array) -> Array:
    """Return the vertices (N, 3) of a sole in its frame."""
    return np.hstack([vertices, np.zeros((len(vertices), 1))])
