"""Use an external ROS node in any language as a controller: for runs without a launch, studies and scores.

    bipedsim score bipedsim_ros.bringup:ExternalNode --set 'command=ros2 run my_package walker' --robot talos

The run publishes the measurements and waits for the command, like a simulator in lock step.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bipedsim.config import param
from bipedsim.errors import BipedSimError, ConfigError, either
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.recording.bag import NS_PER_S
from bipedsim.runs import PERIOD_NS
from bipedsim.sim import Command, Observation
from bipedsim_ros.bringup.processes import environment
from bipedsim_ros.loop import wrong_sign
from bipedsim_ros.wire import ClaimedDomain, require_rclpy, topics

_LOOK_NS = 100_000_000
"""Interval between two checks whether the node still runs, during a wait [ns]."""
_REPEAT_NS = 500_000_000
"""Interval at which the first state is repeated until both directions of the connection work [ns]."""
_QUIET_NS = 200_000_000
"""Maximum delay of answers to repeated states [ns]."""
_PATIENCE_S = 2.0
"""Time for the node to end after a signal [s]."""
_LINES = 5
"""Number of lines of the node's output in an error message."""


@dataclass(frozen=True)
class ExternalNodeParams:
    """Command that starts the node, and its timeouts."""

    command: str = param("", "words that start the node, as a shell takes them: 'python3 my_node.py'", required=True)
    decimation: int = param(1, "ticks for which one command stands: 20 for a node that works at 50 Hz", low=1)
    start_timeout: float = param(60.0, "wall time within which the node must be there", unit="s", low=0.1)
    timeout: float = param(10.0, "wall time within which each answer must come", unit="s", low=0.01)
    ft_sign: float = param(1.0, "-1 if the node takes foot wrenches as the foot exerts them on the ground")

    def problems(self) -> Iterator[ConfigError]:
        """Yield an error message for each invalid field."""
        yield from wrong_sign(self.ft_sign)


class ExternalNode:
    """Starts an external node, publishes observations to it and waits for the command that answers each.

    Every instance has its own local ROS domain, and restarts the node at each :meth:`reset`.

    Args:
        robot: The robot.
        params: Command that starts the node, and timeouts.
        dt: Period of a tick [s].

    Raises:
        ConfigError: ROS is not installed, or there is no command.
    """

    Params = ExternalNodeParams

    def __init__(self, robot: Robot, params: ExternalNodeParams, dt: float) -> None:
        require_rclpy()
        self._words = shlex.split(params.command)
        if not self._words:
            raise ConfigError("it starts no program; such as --set 'command=python3 my_node.py'", "command")
        self._robot, self._params, self._dt = robot, params, dt
        self.decimation = params.decimation
        self._connection: _NodeConnection | None = None
        self._end: weakref.finalize[Any, ExternalNode] | None = None

    def set_velocity(self, vx: float, vy: float, wz: float) -> None:
        """Publish a velocity command on /cmd_vel."""
        assert self._connection is not None
        self._connection.steer((vx, vy, wz))

    def reset(self, observation: Observation) -> None:
        """Start the node, and wait until it is connected."""
        if self._end is not None:
            self._end()
        self._connection = _NodeConnection(self._robot, self._params, self._words, self._dt)
        self._end = weakref.finalize(self, self._connection.close)
        self._connection.meet()

    def update(self, observation: Observation) -> Command:
        """Return the node's answer to an observation.

        Raises:
            BipedSimError: The node has ended, does not answer, or has sent an invalid command.
        """
        assert self._connection is not None
        values = self._connection.ask(observation)
        if values.ndim == 1:
            return Command(values)
        position, velocity, effort, stiffness, damping, _limit = values
        return Command(effort, position, velocity, stiffness, damping)


class _NodeConnection:
    """Process of the external node, and the topics to and from it."""

    def __init__(self, robot: Robot, params: ExternalNodeParams, words: list[str], dt: float) -> None:
        self._params = params
        self._warning = ""
        self._velocity_command, self._steer_at = (0.0, 0.0, 0.0), 0
        self._stack = ExitStack()
        self._domain = ClaimedDomain()
        self._stack.callback(self._domain.release)
        self._output = Path(self._stack.enter_context(tempfile.TemporaryDirectory()), "output.txt")
        env = {**environment("localhost"), "ROS_DOMAIN_ID": str(self._domain.id)}
        try:
            with self._output.open("wb") as output:
                self._process = subprocess.Popen(
                    words,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            self._stack.close()
            raise ConfigError(f"cannot be started ({error.strerror})", "command", words[0]) from error
        with _as_environment(env):
            self._join(robot, dt)

    def _join(self, robot: Robot, dt: float) -> None:
        import rclpy
        from std_msgs.msg import String

        from bipedsim_ros.loop import Commands, Inbox, SensorPublishers, SimParams
        from bipedsim_ros.wire import TwistWriter, publisher

        self._context = rclpy.Context()
        self._context.init(domain_id=self._domain.id)
        self._node = rclpy.create_node(
            "external_node", context=self._context, enable_rosout=False, start_parameter_services=False
        )
        self._sensors = SensorPublishers(self._node, robot, self._params.ft_sign)
        self._clock, self._clock_encoder = publisher(self._node, topics.CLOCK), topics.CLOCK.encoder()
        self._velocity, self._velocity_writer = publisher(self._node, topics.VELOCITY), TwistWriter()
        self._description = publisher(self._node, topics.ROBOT_DESCRIPTION)
        self._description.publish(String(data=robot.urdf_xml))
        self._inbox = Inbox(self._node, *topics.COMMAND_KINDS)
        # This class has its own timeout in wall time, so Commands needs none.
        settings = replace(SimParams(), physics_dt=dt, command_timeout=float("inf"))
        self._commands = Commands(robot, settings, self._store_warning)

    def _store_warning(self, text: str) -> None:
        self._warning = text

    def steer(self, velocity: tuple[float, float, float]) -> None:
        """Publish this velocity on /cmd_vel from the next state on."""
        self._velocity_command = velocity

    def meet(self) -> None:
        """Wait until the node subscribes to the joint states and publishes commands."""
        end = time.monotonic() + self._params.start_timeout
        while not (self._sensors.subscribers() and self._inbox.publishers()):
            self._check_alive()
            if time.monotonic() > end:
                missing = [
                    text
                    for text, count in (
                        (f"subscribes to {topics.JOINT_STATES.name}", self._sensors.subscribers()),
                        (
                            f"publishes on {either([kind.name for kind in topics.COMMAND_KINDS])}",
                            self._inbox.publishers(),
                        ),
                    )
                    if not count
                ]
                self._fail(f"no node {' or '.join(missing)} after {self._params.start_timeout:g} s")
            time.sleep(0.01)

    def ask(self, observation: Observation) -> Array:
        """Publish an observation; return the answer: torques (nu,), or setpoints (6, nu), rows as in ``SETPOINT``."""
        first = not self._commands.started
        end = time.monotonic_ns() + round(self._params.timeout * NS_PER_S)
        repeat = 0
        while not self._take(observation.t):
            now = time.monotonic_ns()
            if now > end:
                self._fail(f"no command within {self._params.timeout:g} s for the state at t = {observation.t:.3f} s")
            if now >= repeat:
                self._publish(observation)
                repeat = now + _REPEAT_NS if first else end + 1
            if not self._inbox.wait(min(_LOOK_NS, end - now)):
                self._check_alive()
        if first:
            while self._inbox.wait(_QUIET_NS):
                self._take(observation.t)
        return self._commands.command(observation, observation.t)

    def _publish(self, observation: Observation) -> None:
        t_ns = round(observation.t * NS_PER_S)
        if t_ns >= self._steer_at:
            # The velocity precedes the state, so that a node that reads both in order uses the current velocity.
            self._velocity.publish(self._velocity_writer.write(self._velocity_command))
            self._steer_at = t_ns + PERIOD_NS
        self._clock.publish(self._clock_encoder.data(t_ns))
        self._sensors.publish(observation, t_ns)

    def _take(self, t: float) -> bool:
        """Accept all commands that have arrived; return whether there were any."""
        accepted = False
        while (message := self._inbox.take_any()) is not None:
            topic, data = message
            if not self._commands.accept(data, t, topic):
                raise BipedSimError(self._warning)
            accepted = True
        return accepted

    def _check_alive(self) -> None:
        code = self._process.poll()
        if code is not None:
            self._fail(f"it has ended (exit code {code})")

    def _fail(self, text: str) -> None:
        lines = self._output.read_text(errors="replace").splitlines()[-_LINES:]
        output = "".join(f"\n  {line}" for line in lines)
        raise BipedSimError(text + (f"; it said last:{output}" if output else ""), f"node {self._params.command!r}")

    def close(self) -> None:
        """End the node and its child processes, and release its domain."""
        for number in (signal.SIGINT, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE_S)
                break
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._node.destroy_node()
        self._context.try_shutdown()
        self._stack.close()


@contextmanager
def _as_environment(env: dict[str, str]) -> Iterator[None]:
    """Apply an environment temporarily to this process, because ROS reads its settings only from the environment."""
    before = dict(os.environ)
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
