"""A learned policy: a network from a file, and what it sees and gives as its deployment file says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bipedsim.config import param
from bipedsim.control.base import refuse_loops
from bipedsim.control.policy.fit import Fitted, Seen, fit
from bipedsim.control.policy.network import Network, Single, open_network
from bipedsim.control.policy.readers import read_deployment
from bipedsim.control.policy.terms import BaseSensor, View
from bipedsim.errors import ConfigError, MeasurementError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Command, Observation


@dataclass(frozen=True)
class PolicyParams:
    """Parameters of :class:`PolicyController`; a relative path counts from the current folder, else from robot.yaml."""

    file: str = param("", "deployment file of the policy; must be given")
    network: str = param("", "file of the network, where it is not the one that the deployment file names")
    period: float = param(0.0, "between two updates, where it is not the deployment file's", unit="s", low=0.0)


class PolicyController:
    """Asks a network for targets of the joints, at its own rate; the drives follow them at every physics step.

    Args:
        robot: Free-flying.
        params: See :class:`PolicyParams`.
        dt: Control period [s].

    Attributes:
        decimation: Ticks between two updates.
        readouts: Updated in place: ``largest_action``, of what the network gives.

    Raises:
        ConfigError: File, robot and network do not fit; all of it is told at once.
    """

    Params = PolicyParams

    def __init__(self, robot: Robot, params: PolicyParams, dt: float) -> None:
        if not robot.free_flyer:
            raise ConfigError(f"controller 'policy' needs a free-flying robot, {robot.name!r} is fixed to the world")
        refuse_loops(robot, "policy")
        if not params.file:
            raise ConfigError("controller 'policy' needs its deployment file: --set file=PATH")
        path = _find(params.file, robot)
        network = _find(params.network, robot) if params.network else None
        config = read_deployment(path, robot, network, params.period)
        self.config = config
        opened: list[Network] = []

        def open_it() -> Network:
            opened.append(open_network(Path(config.network), config.input, config.output, config.states))
            return opened[0]

        self._fitted: Fitted = fit(config, str(path), robot, dt, open_it)
        self._network = opened[0]
        fitted = self._fitted
        self.decimation = fitted.decimation
        self._base = BaseSensor(robot)
        self._sight = _Sight(fitted, config.frames.count, config.frames.newest_first, config.history_start == "first")
        seen, nothing = Observation.zeros(robot.nu, len(robot.soles)), np.zeros(3)
        action = np.zeros(len(fitted.moved))
        self._view = View(seen, nothing, nothing.copy(), nothing.copy(), action, 0.0, False, robot.weight)
        self._low, self._high = np.array(config.command.low), np.array(config.command.high)
        self._velocity = np.zeros(3)
        self._command = Command(
            np.zeros(robot.nu), fitted.default.copy(), None, fitted.stiffness.copy(), fitted.damping.copy()
        )
        self.readouts = {"largest_action": 0.0}

    @property
    def memory(self) -> tuple[str, ...]:
        """Names of what the network remembers between two updates."""
        return self._network.memory

    @property
    def seen(self) -> Single:
        """What the network saw at the last update; a copy."""
        return self._sight.all.copy()

    def set_velocity(self, vx: float, vy: float, wz: float) -> None:
        """Take a velocity command [m/s, m/s, rad/s], cut to what the deployment file says."""
        self._velocity[:] = vx, vy, wz
        np.clip(self._velocity, self._low, self._high, out=self._velocity)

    def reset(self, observation: Observation) -> None:
        """Forget everything; the clock starts.

        Raises:
            MeasurementError: The IMU gives no attitude.
        """
        self._network.reset()
        self._sight.reset()
        self._velocity[:] = 0.0
        self._view.action[:] = 0.0
        self._began = observation.t
        if not self._base.read(observation, self._view.base_angular_velocity, self._view.gravity):
            raise MeasurementError("policy: the IMU gives no attitude, which tells where down is")

    def update(self, observation: Observation) -> Command:
        """Return the targets until the next update; the arrays are reused by it.

        Raises:
            MeasurementError: The IMU gives no attitude any more.
        """
        view, config, fitted = self._view, self.config, self._fitted
        view.seen = observation
        if not self._base.read(observation, view.base_angular_velocity, view.gravity):
            raise MeasurementError("policy: the IMU gives no attitude any more")
        view.command = self._velocity
        view.phase = ((observation.t - self._began + config.clock.start) / config.clock.period) % 1.0
        view.still = float(np.linalg.norm(self._velocity)) < config.clock.still_below
        action = self._network(self._sight.take(view, config.clip)).astype(np.float64)
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
    """Return the path of a file that is named from the current folder, or else from that of robot.yaml."""
    path = Path(name).expanduser()
    beside = robot.source.parent / path
    return beside if not path.exists() and beside.exists() else path


class _Sight:
    """What the network sees, with its past.

    Args:
        fitted: The terms.
        frames: How often all of them are seen.
        newest_first: Whether the newest frame comes first.
        repeats: Whether the past of the first update is that update, and not zeros.

    Attributes:
        all: (frames * fitted.frame,) what the network takes.
    """

    def __init__(self, fitted: Fitted, frames: int, newest_first: bool, repeats: bool) -> None:
        self._terms: list[tuple[Seen, Single]] = []
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
        """Forget the past."""
        self._frame[:] = 0.0
        self.all[:] = 0.0
        self._fresh = True

    def take(self, view: View, clip: tuple[float, float] | None) -> Single:
        """Return what the network takes now, live."""
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
