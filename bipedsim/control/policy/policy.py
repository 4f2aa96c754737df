"""A controller that runs a learned policy: a network, with inputs and outputs as in its deployment file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bipedsim.config import param
from bipedsim.control.base import refuse_loops
from bipedsim.control.policy.fit import ResolvedPolicy, ResolvedTerm, fit
from bipedsim.control.policy.network import Network, Single, open_network
from bipedsim.control.policy.readers import read_deployment
from bipedsim.control.policy.terms import BaseSensor, TermInputs
from bipedsim.errors import ConfigError, MeasurementError
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
        config = read_deployment(path, robot, network, params.period)
        self.config = config
        opened: list[Network] = []

        def open_it() -> Network:
            opened.append(open_network(Path(config.network), config.input, config.output, config.states))
            return opened[0]

        self._fitted: ResolvedPolicy = fit(config, str(path), robot, dt, open_it)
        self._network = opened[0]
        fitted = self._fitted
        self.decimation = fitted.decimation
        self._base = BaseSensor(robot)
        self._input = _NetworkInput(
            fitted, config.frames.count, config.frames.newest_first, config.history_start == "first"
        )
        observation, zeros = Observation.zeros(robot.nu, len(robot.soles)), np.zeros(3)
        action = np.zeros(len(fitted.moved))
        self._view = TermInputs(observation, zeros, zeros.copy(), zeros.copy(), action, 0.0, False, robot.weight)
        self._low, self._high = np.array(config.command.low), np.array(config.command.high)
        self._velocity = np.zeros(3)
        self._command = Command(
            np.zeros(robot.nu), fitted.default.copy(), None, fitted.stiffness.copy(), fitted.damping.copy()
        )
        self.readouts = {"largest_action": 0.0}

    @property
    def memory(self) -> tuple[str, ...]:
        """Names of the states that the network keeps between two updates."""
        return self._network.memory

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
            MeasurementError: The IMU gives no attitude.
        """
        self._network.reset()
        self._input.reset()
        self._velocity[:] = 0.0
        self._view.action[:] = 0.0
        self._began = observation.t
        if not self._base.read(observation, self._view.base_angular_velocity, self._view.gravity):
            raise MeasurementError("the IMU gives no attitude, so the direction of gravity is unknown", "policy")

    def update(self, observation: Observation) -> Command:
        """Return the targets until the next update, which overwrites the arrays.

        Raises:
            MeasurementError: The IMU no longer gives an attitude.
        """
        view, config, fitted = self._view, self.config, self._fitted
        view.seen = observation
        if not self._base.read(observation, view.base_angular_velocity, view.gravity):
            raise MeasurementError("the IMU gives no attitude any more", "policy")
        view.command = self._velocity
        view.phase = ((observation.t - self._began + config.clock.start) / config.clock.period) % 1.0
        view.still = float(np.linalg.norm(self._velocity)) < config.clock.still_below
        action = self._network(self._input.take(view, config.clip)).astype(np.float64)
        if config.action.clip is not None:
            np.clip(action, *config.action.clip, out=action)
        view.action = action
        target = fitted.action_offset + fitted.action_scale * action
        position = self._command.position
        assert position is not None
        position[fitted.moved] = np.clip(target, fitted.least, fitted.most)
        self.readouts["largest_action"] = float(np.abs(action).max())
        return self._command


def _find(name: str, robot: Robot) -> Path:
    """Return the path of a file, relative to the current folder if it exists there, else to robot.yaml's."""
    path = Path(name).expanduser()
    beside = robot.source.parent / path
    return beside if not path.exists() and beside.exists() else path


class _NetworkInput:
    """Assemble the input of the network, including its history.

    Args:
        fitted: The terms.
        frames: Number of updates in the input.
        newest_first: Whether the newest frame comes first.
        repeats: Whether the first update fills the history with itself, and not with zeros.

    Attributes:
        all: (frames * fitted.frame,) input of the network.
    """

    def __init__(self, fitted: ResolvedPolicy, frames: int, newest_first: bool, repeats: bool) -> None:
        self._terms: list[tuple[ResolvedTerm, Single]] = []
        self._frame = np.zeros(fitted.frame, dtype=np.float32)
        begin = 0
        for term in fitted.terms:
            end = begin + term.size * term.history
            self._terms.append((term, self._frame[begin:end].reshape(term.history, term.size)))
            begin = end
        self._frames = np.zeros((frames, fitted.frame), dtype=np.float32)
        self.all = self._frames.reshape(-1)
        self._newest_first, self._repeats = newest_first, repeats
        self._fresh = True

    def reset(self) -> None:
        """Clear the history."""
        self._frame[:] = 0.0
        self.all[:] = 0.0
        self._fresh = True

    def take(self, view: TermInputs, clip: tuple[float, float] | None) -> Single:
        """Update the input of the network and return it, live."""
        first = self._fresh and self._repeats
        self._fresh = False
        for term, rows in self._terms:
            values: Array = np.asarray(term.values(view, term.joints), dtype=np.float64)
            if term.clip is not None:
                values = np.clip(values, *term.clip)
            rows[:-1] = rows[1:]
            rows[-1] = term.scale * values
            if clip is not None:
                np.clip(rows[-1], *clip, out=rows[-1])
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
        return self.all
