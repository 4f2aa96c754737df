"""A controller that is a node of anybody's, in any language: for runs without a bring-up, studies and scores.

    bipedsim score bipedsim_ros.bringup:ExternalNode --set 'command=ros2 run my_package walker' --robot talos

The run publishes what the robot measures and waits for the answer, as a simulator in lock step does.
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
from bipedsim.errors import BipedSimError, ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.runs import PERIOD_NS
from bipedsim.sim import Command, Observation
from bipedsim_ros.bringup.processes import environment, require_rclpy
from bipedsim_ros.loop import wrong_sign
from bipedsim_ros.wire import NS_PER_S, ClaimedDomain, topics

_LOOK_NS = 100_000_000
"""How long a wait goes on before it is seen whether the node still runs."""
_REPEAT_NS = 500_000_000
"""The first state is repeated so often: the node may not hear it yet, or not be heard."""
_QUIET_NS = 200_000_000
"""Answers to repeated states come within this."""
_PATIENCE_S = 2.0
"""How long a node may take to end once it is told to."""
_LINES = 5
"""Of the node's output that a message shows."""


@dataclass(frozen=True)
class ExternalNodeParams:
    """How the node is started, and when it counts as silent."""

    command: str = param("", "words that start the node, as a shell takes them: 'python3 my_node.py'", required=True)
    decimation: int = param(1, "ticks for which one command stands: 20 for a node that works at 50 Hz", low=1)
    start_timeout: float = param(60.0, "wall time within which the node must be there", unit="s", low=0.1)
    timeout: float = param(10.0, "wall time within which each answer must come", unit="s", low=0.01)
    ft_sign: float = param(1.0, "-1 if the node takes foot wrenches as the foot exerts them on the ground")

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with single fields."""
        yield from wrong_sign(self.ft_sign)


class ExternalNode:
    """Publishes observations, waits for the command that answers each, and ends with the node that it started.

    Every instance has a ROS domain of this machine for itself, and starts the node anew at each :meth:`reset`.

    Args:
        robot: The robot.
        params: How the node is started.
        dt: Time from one tick to the next [s].

    Raises:
        ConfigError: There is no ROS, or no command.
    """

    Params = ExternalNodeParams

    def __init__(self, robot: Robot, params: ExternalNodeParams, dt: float) -> None:
        require_rclpy()
        self._words = shlex.split(params.command)
        if not self._words:
            raise ConfigError("command: it starts no program; such as --set 'command=python3 my_node.py'")
        self._robot, self._params, self._dt = robot, params, dt
        self.decimation = params.decimation
        self._link: _Link | None = None
        self._end: weakref.finalize[Any, ExternalNode] | None = None

    def set_velocity(self, vx: float, vy: float, wz: float) -> None:
        """Publish a velocity command on /cmd_vel."""
        assert self._link is not None
        self._link.steer((vx, vy, wz))

    def reset(self, observation: Observation) -> None:
        """Start the node, and wait until it takes part."""
        if self._end is not None:
            self._end()
        self._link = _Link(self._robot, self._params, self._words, self._dt)
        self._end = weakref.finalize(self, self._link.close)
        self._link.meet()

    def update(self, observation: Observation) -> Command:
        """Return the node's answer to an observation.

        Raises:
            BipedSimError: The node has ended, is silent, or sent what no drive can follow.
        """
        assert self._link is not None
        found = self._link.ask(observation)
        if found.ndim == 1:
            return Command(found)
        position, velocity, effort, stiffness, damping, _limit = found
        return Command(effort, position, velocity, stiffness, damping)


class _Link:
    """The node's process, and our end of its topics."""

    def __init__(self, robot: Robot, params: ExternalNodeParams, words: list[str], dt: float) -> None:
        self._params = params
        self._said = ""
        self._wanted, self._steer_at = (0.0, 0.0, 0.0), 0
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
            raise ConfigError(f"command: {words[0]!r} cannot be started ({error.strerror})") from error
        with _as_environment(env):
            self._join(robot, dt)

    def _join(self, robot: Robot, dt: float) -> None:
        import rclpy
        from std_msgs.msg import String

        from bipedsim_ros.loop import Commands, Inbox, SensorPublishers, SimParams
        from bipedsim_ros.wire import TwistWriter, conversions, publisher

        self._context = rclpy.Context()
        self._context.init(domain_id=self._domain.id)
        self._node = rclpy.create_node(
            "external_node", context=self._context, enable_rosout=False, start_parameter_services=False
        )
        self._sensors = SensorPublishers(self._node, robot, self._params.ft_sign)
        self._clock, self._clock_writer = publisher(self._node, topics.CLOCK), conversions.ClockWriter()
        self._velocity, self._velocity_writer = publisher(self._node, topics.VELOCITY), TwistWriter()
        self._description = publisher(self._node, topics.ROBOT_DESCRIPTION)
        self._description.publish(String(data=robot.urdf_xml))
        self._inbox = Inbox(self._node, *topics.COMMAND_KINDS)
        # Silence is judged here, by the wall clock.
        settings = replace(SimParams(), physics_dt=dt, command_timeout=float("inf"))
        self._commands = Commands(robot, settings, self._hear)

    def _hear(self, text: str) -> None:
        self._said = text

    def steer(self, velocity: tuple[float, float, float]) -> None:
        """Have /cmd_vel say so from the next state on."""
        self._wanted = velocity

    def meet(self) -> None:
        """Wait until the node hears the joint states, and we its commands."""
        end = time.monotonic() + self._params.start_timeout
        while not (self._sensors.subscribers() and self._inbox.publishers()):
            self._check_alive()
            if time.monotonic() > end:
                lacks = [
                    text
                    for text, there in (
                        (f"subscribes to {topics.JOINT_STATES.name}", self._sensors.subscribers()),
                        (f"publishes on {topics.either(topics.COMMAND_KINDS)}", self._inbox.publishers()),
                    )
                    if not there
                ]
                self._fail(f"nobody {' or '.join(lacks)} after {self._params.start_timeout:g} s")
            time.sleep(0.01)

    def ask(self, observation: Observation) -> Array:
        """Return what the drives are to do (nu,) or (6, nu), rows as in ``SETPOINT``, in answer to an observation."""
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
            # Before the state, so that who reads both in turn has what holds for it.
            self._velocity.publish(self._velocity_writer.write(self._wanted))
            self._steer_at = t_ns + PERIOD_NS
        self._clock.publish(self._clock_writer.write(t_ns))
        self._sensors.publish(observation, t_ns)

    def _take(self, t: float) -> bool:
        """Take all commands that have come; return whether there were any."""
        found = False
        while (message := self._inbox.take_any()) is not None:
            topic, data = message
            if not self._commands.accept(data, t, topic):
                raise BipedSimError(self._said)
            found = True
        return found

    def _check_alive(self) -> None:
        code = self._process.poll()
        if code is not None:
            self._fail(f"it has ended (exit code {code})")

    def _fail(self, text: str) -> None:
        lines = self._output.read_text(errors="replace").splitlines()[-_LINES:]
        said = "".join(f"\n  {line}" for line in lines)
        raise BipedSimError(f"node {self._params.command!r}: {text}" + (f"; it said last:{said}" if said else ""))

    def close(self) -> None:
        """End the node and what it has started, and leave its domain."""
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
    """Have this process take part as its nodes do: ROS reads it from the environment alone, when it begins."""
    before = dict(os.environ)
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
