"""A controller that runs a learned policy: a network, with inputs and outputs as in its deployment file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bipedsim.config import param
from bipedsim.control.base import refuse_loops
from bipedsim.control.estimation import Estimator, EstimatorParams
from bipedsim.control.policy.config import PolicyConfig
from bipedsim.control.policy.fit import ResolvedInput, ResolvedPolicy, ResolvedTerm, fit
from bipedsim.control.policy.network import Single
from bipedsim.control.policy.readers import read_deployment
from bipedsim.control.policy.terms import TERMS, TRUE_VELOCITY, BaseSensor, TermInputs
from bipedsim.errors import ConfigError, MeasurementError, some, warn_doubled
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Command, Observation


@dataclass(frozen=True)
class PolicyParams:
    """Parameters of :class:`PolicyController`; relative paths refer to the current folder, else to robot.yaml's."""

    file: str = param("", "deployment file of the policy; must be given")
    network: str = param("", "file of the network, instead of the one in the deployment file")
    period: float = param(0.0, "time between two updates, instead of the one in the deployment file", unit="s", low=0.0)


class PolicyController:
    """Run a network at its own rate for joint targets, which the drives follow at every physics step.

    Args:
        robot: The robot; free-flying.
        params: See :class:`PolicyParams`.
        dt: Control period [s].

    Attributes:
        decimation: Ticks between two updates.
        true_velocity: (3,) velocity of the base in its axes [m/s], which the host writes; None if no term sees it.
        height_points: (S, 2) points of its height scans in the heading frame of the base [m]; None without any.
        readouts: Updated in place: ``largest_action``, the largest magnitude of the network's outputs.

    Raises:
        ConfigError: File, robot and network do not fit; the message lists all mismatches.
    """

    Params = PolicyParams

    def __init__(self, robot: Robot, params: PolicyParams, dt: float) -> None:
        if not robot.free_flyer:
            raise ConfigError(
                f"it needs a free-flying robot, {robot.name!r} is fixed to the world", "controller 'policy'"
            )
        refuse_loops(robot, "policy")
        if not params.file:
            raise ConfigError("the deployment file is needed: --set file=PATH", "controller 'policy': file")
        path = _find(params.file, robot)
        network = _find(params.network, robot) if params.network else None
        config, unread, faults = read_deployment(path, robot, network, params.period)
        self.config = config
        self._fitted: ResolvedPolicy = fit(config, str(path), robot, dt, unread, faults)
        fitted = self._fitted
        _warn_of_damping(robot, fitted, str(path))
        self._base = BaseSensor(robot)
        self._input = NetworkInput(fitted.policy, config)
        self._encoders = {name: NetworkInput(encoder, config) for name, encoder in fitted.encoders.items()}
        self._view = TermInputs.at_rest(robot, len(fitted.moved))
        estimated = fitted.sees(TERMS["base_lin_vel"])
        self._estimator = Estimator(robot, EstimatorParams(), dt) if estimated else None
        self.true_velocity = self._view.true_velocity if fitted.sees(TRUE_VELOCITY) else None
        # The estimator needs every tick, so the controller counts the ticks between two updates of the network itself.
        self.decimation = 1 if self._estimator else fitted.decimation
        self.height_points = fitted.height_points
        self._updates, self._dt = 0, dt
        self._low, self._high = np.array(config.command.low), np.array(config.command.high)
        self._velocity = self._view.command
        self._command = Command(
            np.zeros(robot.nu), fitted.default.copy(), None, fitted.stiffness.copy(), fitted.damping.copy()
        )
        self.readouts = {"largest_action": 0.0}

    @property
    def memory(self) -> tuple[str, ...]:
        """Names of the states that the network keeps between two updates."""
        return self._fitted.policy.network.memory

    @property
    def seen(self) -> Single:
        """Input of the network at the last update, as a copy."""
        return self._input.all.copy()

    def set_velocity(self, vx: float, vy: float, wz: float) -> None:
        """Set a velocity command [m/s, m/s, rad/s], clipped to the limits of the deployment file."""
        self._velocity[:] = vx, vy, wz
        np.clip(self._velocity, self._low, self._high, out=self._velocity)

    def reset(self, observation: Observation) -> None:
        """Reset the memory and restart the clock.

        Raises:
            MeasurementError: The IMU gives no attitude, or nothing measures the heights that the policy needs, or no
                simulator gives the true velocity.
        """
        points = 0 if self.height_points is None else len(self.height_points)
        seen = len(observation.height_scan)
        if seen < points:
            problem = f"has {seen} heights, and the policy needs {points}: no sensor measures them here"
            raise MeasurementError(f"{problem}. Run the policy with `bipedsim run`", "policy: height_scan")
        if self.true_velocity is not None and np.isnan(self.true_velocity).any():
            raise MeasurementError(
                "base_lin_vel has `ground_truth: true`, and there is no simulator here that gives the velocity. Run "
                "the policy with `bipedsim run`, or remove the key to use the estimate",
                "policy: ground_truth",
            )
        for part in (self._input, *self._encoders.values()):
            part.reset()
        view = self._view
        view.seen = observation
        self._velocity[:] = 0.0
        view.action[:] = 0.0
        self._began, self._updates = observation.t, 0
        if not self._base.read(view):
            raise MeasurementError("the IMU gives no attitude, so the direction of gravity is unknown", "policy")
        if self._estimator:
            self._estimator.reset(observation)

    def update(self, observation: Observation) -> Command:
        """Return the targets until the next update, which overwrites the arrays.

        Raises:
            MeasurementError: The IMU no longer gives an attitude.
        """
        view = self._view
        view.seen = observation
        if not self._base.read(view):
            raise MeasurementError("the IMU gives no attitude any more", "policy")
        if self._estimator:
            estimate = self._estimator.update(observation)
            view.base_linear_velocity[:] = estimate.v[:3]
            ticks = round((observation.t - self._began) / self._dt)
            if ticks < self._updates * self._fitted.decimation:
                return self._command
            self._updates = ticks // self._fitted.decimation + 1
        self._act(view)
        return self._command

    def _act(self, view: TermInputs) -> None:
        """Evaluate the networks and set the targets."""
        clock, fitted = self.config.clock, self._fitted
        view.phase = ((view.seen.t - self._began + clock.start) / clock.period) % 1.0
        still = float(np.linalg.norm(self._velocity)) < clock.still_below
        view.rest = clock.still if still else None
        for name, encoder in self._encoders.items():
            view.encoded[name] = encoder.evaluate(view)
        action = self._input.evaluate(view)
        clipped = np.clip(action, *fitted.clip)
        view.action = clipped if self.config.action.clip_last else action
        target = fitted.action_offset + fitted.action_scale * clipped
        position = self._command.position
        assert position is not None
        position[fitted.moved] = np.clip(target, *fitted.limits)
        self.readouts["largest_action"] = float(np.abs(clipped).max())


def _find(name: str, robot: Robot) -> Path:
    """Return the path of a file, relative to the current folder if it exists there, else to robot.yaml's."""
    path = Path(name).expanduser()
    beside = robot.source.parent / path
    # Unlike Path.exists, this is False for a folder that must not be searched.
    return beside if not os.path.exists(path) and os.path.exists(beside) else path


def _warn_of_damping(robot: Robot, fitted: ResolvedPolicy, where: str) -> None:
    """Warn if the robot's description already contains the damping of the drives as friction of the joints."""
    friction = robot.joint_damping[robot.idx_v]
    twice = (friction > 0.0) & np.isclose(friction, fitted.damping, rtol=0.05)
    if twice.any():
        names = [name for name, same in zip(robot.joint_names, twice, strict=True) if same]
        warn_doubled(
            f"{where}: damping: {some(names)} have the same viscous friction in {robot.source.name}, so they are "
            "damped twice. If the friction is that of the drive, remove it from the robot, or set damping to 0 for "
            "these joints."
        )


class NetworkInput:
    """Assemble the input of a network, including its history, and evaluate the network.

    Args:
        resolved: Network and terms.
        config: The deployment file, with the limits of all values and the start of the history.

    Attributes:
        all: (frames * frame,) input of the network.
    """

    def __init__(self, resolved: ResolvedInput, config: PolicyConfig) -> None:
        self._network = resolved.network
        self._terms: list[tuple[ResolvedTerm, Single]] = []
        self._frame = np.zeros(resolved.frame, dtype=np.float32)
        begin = 0
        for term in resolved.terms:
            end = begin + term.size * term.history
            self._terms.append((term, self._frame[begin:end].reshape(term.history, term.size)))
            begin = end
        self._frames = np.zeros((resolved.frames.count, resolved.frame), dtype=np.float32)
        self.all = self._frames.reshape(-1)
        self._clip = config.clip
        self._newest_first, self._repeats = resolved.frames.newest_first, config.history_start == "first"
        self._fresh = True

    def reset(self) -> None:
        """Clear the history and the memory of the network."""
        self._network.reset()
        self._frame[:] = 0.0
        self.all[:] = 0.0
        self._fresh = True

    def evaluate(self, view: TermInputs) -> Array:
        """Update the input and return the output of the network."""
        first = self._fresh and self._repeats
        self._fresh = False
        for term, rows in self._terms:
            values: Array = np.asarray(term.values(view, term.joints), dtype=np.float64)
            if term.clip is not None:
                values = np.clip(values, *term.clip)
            rows[:-1] = rows[1:]
            rows[-1] = term.scale * values
            if self._clip is not None:
                np.clip(rows[-1], *self._clip, out=rows[-1])
            if first:
                rows[:-1] = rows[-1]
        frames = self._frames
        if self._newest_first:
            frames[1:] = frames[:-1]
            frames[0] = self._frame
        else:
            frames[:-1] = frames[1:]
            frames[-1] = self._frame
        if first:
            frames[:] = self._frame
        return self._network(self.all).astype(np.float64)
