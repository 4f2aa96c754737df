"""Motions recorded once with ideal sensors, and looked at by estimators through any sensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.control.controllers import make_controller
from bipedsim.control.estimation.estimator import Estimator, EstimatorParams
from bipedsim.model import REALISTIC, Robot, read_hardware
from bipedsim.numerics import Array, Flags
from bipedsim.sim.io import Observation
from bipedsim.sim.noise import Noise
from bipedsim.sim.simulator import Simulator

DT = 1e-3
MEASURED = (
    "joint_position",
    "joint_velocity",
    "joint_effort",
    "imu_orientation",
    "imu_angular_velocity",
    "imu_linear_acceleration",
    "foot_wrench",
)


@dataclass(frozen=True, eq=False)
class Log:
    """Measurements of a robot over n ticks, and the true values.

    Attributes:
        robot: The robot.
        t: (n,) [s].
        measured: The arrays of its observations by name, (n, ...).
        q, v: (n, nq), (n, nv) true state.
        wrench: (n, K, 6) of the ground on the soles.
    """

    robot: Robot
    t: Array
    measured: Mapping[str, Array]
    q: Array
    v: Array
    wrench: Array

    def observation(self, i: int) -> Observation:
        """Return the observation of tick ``i``."""
        return Observation(float(self.t[i]), **{name: values[i] for name, values in self.measured.items()})

    def part(self, start: int, stop: int) -> Log:
        """Return the ticks from ``start`` to ``stop``."""
        rows = slice(start, stop)
        measured = {name: values[rows] for name, values in self.measured.items()}
        return replace(
            self, t=self.t[rows], measured=measured, q=self.q[rows], v=self.v[rows], wrench=self.wrench[rows]
        )


def record(
    sim: Simulator,
    duration: float,
    torque: Callable[[Observation], Array],
    start: Observation | None = None,
) -> Log:
    """Return the log of a motion under ``torque`` from the reset of ``sim``, or from ``start``, the current
    observation.
    """
    observation = sim.reset() if start is None else start
    rows = []
    for i in range(round(duration / DT) + 1):
        if i:
            observation = sim.step(torque(observation))
        copy = observation.copy()
        rows.append((copy, sim.q.copy(), sim.v.copy(), sim.contact.wrench.copy()))
    observations = [row[0] for row in rows]
    return Log(
        sim.robot,
        np.array([o.t for o in observations]),
        {name: np.array([getattr(o, name) for o in observations]) for name in MEASURED},
        *(np.array([row[i] for row in rows]) for i in (1, 2, 3)),
    )


def perform(
    robot: Robot,
    name: str,
    params: Mapping[str, Any],
    duration: float,
    velocity: Callable[[float], tuple[float, float, float]] | None = None,
    **simulator: Any,
) -> Log:
    """Return a motion of a registered controller; a walking one follows ``velocity`` of time."""
    sim = Simulator(robot, physics_dt=DT, **simulator)
    controller: Any = make_controller(name, robot, params, DT)
    observation = sim.reset()
    controller.reset(observation)

    def torque(observation: Observation) -> Array:
        if velocity is not None:
            controller.set_velocity(*velocity(observation.t))
        tau: Array = controller.update(observation).tau_joint
        return tau

    return record(sim, duration, torque, observation)


def with_noise(log: Log, seed: int, **hardware: float) -> Log:
    """Return the same motion with real sensors: the preset ``realistic`` with the changes in ``hardware``."""
    ideal = Observation.zeros(log.robot.nu, len(log.robot.soles))
    params = read_hardware({"preset": REALISTIC, **hardware}, log.robot)
    noise = Noise(params, ideal, DT, seed)
    noise.reset()
    measured = {name: np.empty_like(values) for name, values in log.measured.items()}
    for i in range(len(log.t)):
        for name, values in log.measured.items():
            getattr(ideal, name)[...] = values[i]
        real = noise.measure(first=i == 0)
        for name, values in measured.items():
            values[i] = getattr(real, name)
    return replace(log, measured=measured)


@dataclass(frozen=True, eq=False)
class Seen:
    """Estimates over n ticks of a log.

    Attributes:
        q, v, contact, normal_force, wrench: (n, ...) the estimates.
        position, velocity, turn, rate: (n, 3) errors of the base: position and velocity in world axes [m], [m/s],
            rotation vector [rad], angular velocity [rad/s].
        faults: Counted at the end.
    """

    q: Array
    v: Array
    contact: Flags
    normal_force: Array
    wrench: Array
    position: Array
    velocity: Array
    turn: Array
    rate: Array
    faults: int


def look(log: Log, *, pose: bool = True, **params: float) -> Seen:
    """Return the estimates with ``params`` for a log; the first pose is the true one, or unknown."""
    estimator = Estimator(log.robot, EstimatorParams(**params), DT)
    rows = []
    for i in range(len(log.t)):
        if i == 0:
            e = estimator.reset(log.observation(0), pin.XYZQUATToSE3(log.q[0, :7]) if pose else None)
        else:
            e = estimator.update(log.observation(i))
        rows.append([array.copy() for array in (e.q, e.v, e.contact, e.normal_force, e.wrench)])
    q, v, contact, normal_force, wrench = (np.array(column) for column in zip(*rows, strict=True))
    velocity, turn = np.empty((len(q), 3)), np.empty((len(q), 3))
    for i in range(len(q)):
        R, true = (pin.Quaternion(x[i, 3:7]).matrix() for x in (q, log.q))
        velocity[i] = R @ v[i, :3] - true @ log.v[i, :3]
        turn[i] = pin.log3(R @ true.T)
    return Seen(
        q, v, contact, normal_force, wrench,
        position=q[:, :3] - log.q[:, :3], velocity=velocity, turn=turn, rate=v[:, 3:6] - log.v[:, 3:6],
        faults=estimator.estimate.faults,
    )  # fmt: skip
