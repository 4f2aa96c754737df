"""``robot_node``: a robot that is not bipedsim, behind the same topics. MuJoCo is its hardware.

    python examples/other_robot/robot_node.py --ros-args -p robot:=talos -p clock:=lock_step -p duration:=10.0

See README.md next to this file, and docs/other_robot.md.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mujoco_plant import Plant, PlantParams
from rclpy.node import Node
from robot_report import Report, write_json
from robot_topics import RobotCommands, RobotTopics

from bipedsim.config import param
from bipedsim.errors import ConfigError, DivergenceError
from bipedsim.model import load_robot
from bipedsim.recording.bag import NS_PER_S
from bipedsim.runs import parse_pushes
from bipedsim_ros.loop import Background, Histogram, Inbox, RateKeeper, sleep_on_time
from bipedsim_ros.nodes import Parameters, run_node
from bipedsim_ros.wire import topics

_WAIT_NS = 20_000_000
# While the simulated clock is stopped, the node repeats the state for late subscribers [ns].
_REPEAT_NS = 500_000_000
# Time without an answer after which no more answers to repeated states are expected [ns].
_QUIET_NS = 200_000_000
_WARN_EVERY_S = 5.0


@dataclass(frozen=True)
class RobotNodeParams:
    """Parameters of the node, those of the engine aside."""

    robot: str = param("biped14", "name of a robot, or path of a robot.yaml")
    rate: float = param(1000.0, "states per second", unit="Hz", low=10.0, high=5000.0)
    clock: str = param(
        "real_time",
        "real_time keeps `rate` on the wall clock; lock_step waits for one command per state",
        choices=("real_time", "lock_step"),
    )
    stamps: str = param(
        "simulated",
        "simulated: stamps count from 0 and /clock is published; wall: the system's time as on a real robot, no /clock",
        choices=("simulated", "wall"),
    )
    start: str = param(
        "wait_for_command",
        "before the first command the robot hangs in its stand (wait_for_command), or is let go (immediately)",
        choices=("wait_for_command", "immediately"),
    )
    command_timeout: float = param(
        0.2, "time without a sound command after which timeout_mode acts", unit="s", low=0.0, high=1e9
    )
    timeout_mode: str = param(
        "damping", "what the joints do after command_timeout", choices=("damping", "zero", "hold")
    )
    lock_step_timeout: float = param(
        1.0, "lock_step: wall time to wait for a command before the step is taken", unit="s", low=1e-3, high=1e6
    )
    pushes: tuple[str, ...] = param(
        (), "scheduled pushes 'start duration fx fy fz [root world|heading]' on the root link, in s, s and N"
    )
    ft_sign: float = param(1.0, "1: the wrench of the ground on the foot; -1: the reverse", low=-1.0, high=1.0)
    duration: float = param(0.0, "time after which the node ends; 0 is never", unit="s", low=0.0, high=1e9)
    report: str = param("", "JSON file for what happened")
    picture: str = param("", "PNG for height, forces and CoP")
    viewer: bool = param(False, "show the robot; needs a display")


class RobotNode:
    """Plant, topics and loop.

    Raises:
        ConfigError: A parameter is wrong.
    """

    def __init__(self) -> None:
        self._node = node = Node("robot_node", automatically_declare_parameters_from_overrides=True)
        parameters = Parameters(node, "parameters of robot_node")
        self._params = params = parameters.declare(RobotNodeParams)
        engine = parameters.declare(PlantParams)
        parameters.refuse_unknown()
        if abs(params.ft_sign) != 1.0:
            raise ConfigError(f"parameters of robot_node: ft_sign = {params.ft_sign} must be 1 or -1")
        if params.clock == "lock_step" and params.stamps == "wall":
            raise ConfigError("parameters of robot_node: clock = lock_step needs stamps = simulated")
        robot = load_robot(params.robot)
        self._plant = Plant(robot, 1.0 / params.rate, engine)
        self._pushes = deque(parse_pushes(params.pushes, ()))
        self._report = Report(self._plant, params.rate)
        self._topics = RobotTopics(node, robot, params.ft_sign, clock=params.stamps == "simulated")
        self._commands = RobotCommands(robot, params.command_timeout, params.timeout_mode)
        self._inbox = Inbox(node, topics.COMMANDS)
        self._background = Background(node)
        self._keeper = RateKeeper(1.0 / params.rate)
        self._round_trip = Histogram()
        self._missed = 0
        self._stop = False
        self._viewer = self._open_viewer() if params.viewer else None
        node.get_logger().info(f"{robot.name} ({robot.mass:.1f} kg), {params.rate:g} Hz {params.clock}, on MuJoCo")

    def run(self) -> int:
        """Be a robot until :meth:`stop` or the end of ``duration``; return the exit code, 1 if MuJoCo gave up."""
        params, plant = self._params, self._plant
        self._background.start()
        sleep_on_time()
        error = ""
        try:
            # From here on each state is published once: in lock-step each answer must be one to the state before it.
            if params.start == "wait_for_command":
                self._hold()
            else:
                self._publish()
            begin = time.monotonic_ns()
            self._keeper.start()
            while not self._stop and not (params.duration and plant.t >= params.duration - 0.5 / params.rate):
                self._tick()
            wall = (time.monotonic_ns() - begin) * 1e-9
        except DivergenceError as failure:
            error, wall = str(failure), float("nan")
            self._node.get_logger().error(error)
        finally:
            self._background.stop()
        self._finish(wall, error)
        return 1 if error else 0

    def stop(self) -> None:
        """End :meth:`run`; called from a signal handler."""
        self._stop = True
        self._inbox.wake()

    def destroy_node(self) -> None:
        """Release the node."""
        if self._viewer is not None:
            self._viewer.close()
        self._node.destroy_node()

    def _publish(self) -> None:
        simulated = self._params.stamps == "simulated"
        self._topics.publish(self._plant.observation, round(self._plant.t * NS_PER_S) if simulated else time.time_ns())

    def _take(self) -> bool:
        """Take the newest command, if one is there; return whether it was sound."""
        data = self._inbox.take()
        if data is None:
            return False
        fault = self._commands.accept(data, self._plant.t)
        if fault:
            self._node.get_logger().warning(f"command dropped: {fault}", throttle_duration_sec=_WARN_EVERY_S)
        return not fault

    def _hold(self) -> None:
        """Hang in the stand until the first command: sensors live, time standing still if it is simulated."""
        simulated = self._params.stamps == "simulated"
        repeat_at, connected = 0, False
        while not (self._stop or self._commands.started):
            now = time.monotonic_ns()
            met = self._topics.listeners() > 0 and self._inbox.publishers() > 0
            if not simulated:
                self._keeper.wait()
            if not simulated or now >= repeat_at or (met and not connected):
                self._publish()
                repeat_at, connected = now + _REPEAT_NS, met
            self._inbox.wait(_WAIT_NS if simulated else 0)
            self._take()
        # Each repetition may bring an answer, and none of them is one to the states that follow.
        end = time.monotonic_ns() + NS_PER_S
        while simulated and not self._stop and time.monotonic_ns() < end and self._inbox.wait(_QUIET_NS):
            self._take()

    def _tick(self) -> None:
        params, plant = self._params, self._plant
        expected = self._commands.started
        while self._pushes and plant.t >= self._pushes[0].at - 0.5 / params.rate:
            push = self._pushes.popleft()
            plant.push(push.world_wrench(plant.robot, plant.base_configuration())[:3], push.duration)
        plant.step(self._commands.torque(plant.observation, plant.t))
        self._publish()
        sent = time.monotonic_ns()
        self._report.after()
        self._show()
        if params.clock == "lock_step":
            end = sent + round(params.lock_step_timeout * NS_PER_S)
            answered = self._await(lambda: end - time.monotonic_ns(), sent)
        else:
            answered = self._await(self._keeper.sleep_budget_ns, sent)
            self._keeper.wait()
            # A command of the last microseconds is in time, too. Of several commands, the last one counts.
            answered = self._take() or answered
        if expected and not answered:
            self._missed += 1

    def _await(self, budget_ns: Callable[[], int], sent_ns: int) -> bool:
        """Wait for a sound command as long as there is time left; return whether one came."""
        while not self._stop and (budget := budget_ns()) > 0:
            # Signals reach Python between two waits only.
            if self._inbox.wait(min(budget, _WAIT_NS)) and self._take():
                self._round_trip.record(time.monotonic_ns() - sent_ns)
                return True
        return False

    def _finish(self, wall: float, error: str) -> None:
        params, commands = self._params, self._commands
        result = self._report.summary() | {
            "clock": params.clock,
            "rate_hz": params.rate,
            "real_time_factor": self._plant.t / wall if wall > 0.0 else None,
            "overruns": self._keeper.overruns,
            "commands_received": commands.received,
            "commands_dropped": commands.dropped,
            "missed_commands": self._missed,
            "command_timeouts": commands.timeouts,
            "round_trip_us": self._round_trip.summary_us() if self._round_trip.count else None,
            "error": error,
        }
        fell = result["fell_at_s"]
        end = "on its feet" if fell is None else f"fell at {fell:.3f} s"
        print(f"{result['robot']}: {result['duration_s']:.3f} s, {end}")
        if params.report:
            write_json(Path(params.report), result)
        if params.picture:
            self._report.plot(Path(params.picture))

    def _open_viewer(self) -> Any:
        if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            self._node.get_logger().warning("viewer = true, but there is no display")
            return None
        import mujoco.viewer

        return mujoco.viewer.launch_passive(self._plant.model, self._plant.data)

    def _show(self) -> None:
        if self._viewer is not None and round(self._plant.t * self._params.rate) % round(self._params.rate / 50.0) == 0:
            self._viewer.sync()


def main(args: Sequence[str] | None = None) -> int:
    """Run the robot; return 0, 1 after a failure, or 2 after bad parameters."""
    return run_node(RobotNode, args)


if __name__ == "__main__":
    sys.exit(main())
