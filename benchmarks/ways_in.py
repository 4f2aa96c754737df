"""What each way to drive a robot costs, beside a step of the simulation: `python benchmarks/ways_in.py`.

Least times of many calls, all ways in turn in one process, so that a busy machine spoils none of them alone. The way to
another process and back is the median round trip of a bring-up with ``posture`` in lock step.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.control import Guard, make_controller
from bipedsim.model import Robot, drive_gains, load_robot, standing_torque
from bipedsim.sim import Command, Observation, Simulator

ROUNDS, CALLS = 40, 50


def stand(robot: Robot) -> Command:
    """Return an impedance that keeps the standing posture."""
    stiffness, damping = drive_gains(robot, 1e-3)
    return Command(standing_torque(robot), robot.posture, None, stiffness, damping)


class Nothing:
    """A class of a user that does nothing: what is left is what hosts it."""

    def __init__(self, robot: Robot, params: None, dt: float) -> None:
        self._command = Command(standing_torque(robot))

    def reset(self, observation: Observation) -> None:
        """Forget nothing."""

    def update(self, observation: Observation) -> Command:
        """Return what holds the posture."""
        return self._command


def ways(robot: Robot, policy: Path | None) -> dict[str, Callable[[], Any]]:
    """Return what is measured, by name."""
    asked, sim, closing = stand(robot), Simulator(robot), Simulator(robot)
    packed = asked.packed(robot.effort_limit)
    torque = standing_torque(robot)
    observation = sim.reset()
    found: dict[str, Callable[[], Any]] = {
        "a step under torques": lambda: sim.step(torque),
        "a step whose drives close their loops": lambda: closing.step(packed),
    }

    def hosted(name: str, controller: Any) -> None:
        guard = Guard(controller, robot)
        guard.reset(observation)
        found[name] = lambda: guard.update(observation)

    hosted("a class that does nothing, hosted", Nothing(robot, None, 1e-3))
    hosted("posture", make_controller("posture", robot))
    hosted("zmp", make_controller("zmp", robot))
    if policy is not None:
        controller: Any = make_controller("policy", robot, {"file": str(policy)})
        controller.reset(observation)
        every = controller.decimation
        # Guard asks only every so many ticks: here each call is one of the network.
        found[f"policy, at each {every}th tick"] = lambda: controller.update(observation)
    try:
        from bipedsim_ros.wire import ImpedanceWriter
    except ImportError:
        return found
    writer = ImpedanceWriter(robot.nu)
    found["an impedance as a message"] = lambda: writer.write(asked)
    from bipedsim.control.policy import pairs_along
    from bipedsim.errors import ConfigError
    from bipedsim_ros.interfaces.unitree.layout import Cdr
    from bipedsim_ros.interfaces.unitree.low_commands import LowCommands
    from bipedsim_ros.interfaces.unitree.low_state import LowStateWriter
    from bipedsim_ros.interfaces.unitree.machine import machine_for

    try:
        machine = machine_for(robot.joint_names, pairs_along(robot))
    except ConfigError:
        return found
    state, commands, message = LowStateWriter(machine), LowCommands(machine), Cdr(machine.family.low_cmd)
    if "mode_machine" in (machine.family.low_cmd.names or ()):
        message.values["mode_machine"] = machine.mode_machine
    data = message.serialized()
    found["rt/lowstate"] = lambda: state.serialized(observation, 1, bytes(40))
    found["rt/lowcmd"] = lambda: commands.read(data)
    return found


def round_trip(robot: str) -> float:
    """Return the median time [s] from a state that is published to the command of another process."""
    command = [sys.executable, "-m", "bipedsim.cli.main", "up", "--robot", robot, "--clock", "lock_step"]
    said = subprocess.run([*command, "--duration", "3"], check=True, stdout=subprocess.PIPE, text=True).stdout
    median = re.search(r"^round_trip_us +p50 ([0-9.]+)", said, re.MULTILINE)
    if median is None:
        raise RuntimeError(f"the bring-up told no round trip: {said}")
    return float(median[1]) * 1e-6


def processor() -> str:
    """Return what the processor calls itself, and how many there are."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return f"{os.cpu_count()} x {names[0] if names else platform.machine()}, Python {platform.python_version()}"


def main() -> None:
    """Print the table, and keep it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--robot", default="g1")
    parser.add_argument("--policy", type=Path, help="deployment file for the robot")
    parser.add_argument("--output", type=Path, help="Markdown, with date and machine")
    args = parser.parse_args()
    measured = ways(load_robot(args.robot), args.policy)
    least = dict.fromkeys(measured, np.inf)
    for call in measured.values():
        call()
    for _ in range(ROUNDS):
        for name, call in measured.items():
            for _ in range(CALLS):
                begin = time.perf_counter()
                call()
                least[name] = min(least[name], time.perf_counter() - begin)
    try:
        import rclpy  # noqa: F401
    except ImportError:
        pass
    else:
        least["the way to another process and back"] = round_trip(args.robot)
    step = least["a step under torques"]
    lines = ["| | µs | of a step |", "| --- | --- | --- |"]
    lines += [f"| {name} | {1e6 * seconds:.3g} | {seconds / step:.2f} |" for name, seconds in least.items()]
    print("\n".join(lines))
    if args.output:
        day = datetime.now(timezone.utc).date().isoformat()
        words = ["python benchmarks/ways_in.py", "--robot", args.robot, *(["--policy", "FILE"] if args.policy else [])]
        head = [f"`{' '.join(words)}`, {day}, {processor()}:", ""]
        args.output.write_text("\n".join(["# Ways in", "", *head, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
