"""Compare the cost of each way to drive a robot with a simulation step: `python benchmarks/ways_in.py`.

The results are the shortest times of many calls. All ways alternate in one process, so that load on the machine affects
none of them alone. The time to another process and back is the median round trip of a launch with ``posture`` in lock
step.
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
    """Return an impedance command that holds the standing posture."""
    stiffness, damping = drive_gains(robot, 1e-3)
    return Command(standing_torque(robot), robot.posture, None, stiffness, damping)


class Nothing:
    """A user's class without computations, to measure the cost of its host."""

    def __init__(self, robot: Robot, params: None, dt: float) -> None:
        self._command = Command(standing_torque(robot))

    def reset(self, observation: Observation) -> None:
        """Do nothing, since there is no state."""

    def update(self, observation: Observation) -> Command:
        """Return the command that holds the posture."""
        return self._command


def ways(robot: Robot, policy: Path | None) -> dict[str, Callable[[], Any]]:
    """Return the functions to measure, by name."""
    impedance, sim, drive_sim = stand(robot), Simulator(robot), Simulator(robot)
    packed = impedance.packed(robot.effort_limit)
    torque = standing_torque(robot)
    observation = sim.reset()
    calls: dict[str, Callable[[], Any]] = {
        "a step under torques": lambda: sim.step(torque),
        "a step whose drives close their loops": lambda: drive_sim.step(packed),
    }

    def hosted(name: str, controller: Any) -> None:
        guard = Guard(controller, robot)
        guard.reset(observation)
        calls[name] = lambda: guard.update(observation)

    hosted("a class that does nothing, hosted", Nothing(robot, None, 1e-3))
    hosted("posture", make_controller("posture", robot))
    hosted("zmp", make_controller("zmp", robot))
    if policy is not None:
        controller: Any = make_controller("policy", robot, {"file": str(policy)})
        controller.reset(observation)
        every = controller.decimation
        # Guard calls the controller only every few ticks. Here, each call evaluates the network.
        calls[f"policy, at each {every}th tick"] = lambda: controller.update(observation)
    try:
        from bipedsim_ros.wire import ImpedanceWriter
    except ImportError:
        return calls
    writer = ImpedanceWriter(robot.nu)
    calls["an impedance as a message"] = lambda: writer.write(impedance)
    from bipedsim.control.policy import pairs_along
    from bipedsim.errors import ConfigError
    from bipedsim_ros.interfaces.unitree.layout import Cdr
    from bipedsim_ros.interfaces.unitree.low_commands import LowCommands
    from bipedsim_ros.interfaces.unitree.low_state import LowStateWriter
    from bipedsim_ros.interfaces.unitree.machine import machine_for

    try:
        machine = machine_for(robot.joint_names, pairs_along(robot))
    except ConfigError:
        return calls
    state, commands, message = LowStateWriter(machine), LowCommands(machine), Cdr(machine.family.low_cmd)
    if "mode_machine" in (machine.family.low_cmd.names or ()):
        message.values["mode_machine"] = machine.mode_machine
    data = message.serialized()
    calls["rt/lowstate"] = lambda: state.serialized(observation, 1, bytes(40))
    calls["rt/lowcmd"] = lambda: commands.read(data)
    return calls


def round_trip(robot: str) -> float:
    """Return the median time from the publication of a state to the command of another process [s]."""
    command = [sys.executable, "-m", "bipedsim.cli.main", "up", "--robot", robot, "--clock", "lock_step"]
    output = subprocess.run([*command, "--duration", "3"], check=True, stdout=subprocess.PIPE, text=True).stdout
    median = re.search(r"^round_trip_us +p50 ([0-9.]+)", output, re.MULTILINE)
    if median is None:
        raise RuntimeError(f"the bring-up told no round trip: {output}")
    return float(median[1]) * 1e-6


def processor() -> str:
    """Return the name and number of the processors, and the version of Python."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return f"{os.cpu_count()} x {names[0] if names else platform.machine()}, Python {platform.python_version()}"


def main() -> None:
    """Run the measurement, and print and store the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--robot", default="g1")
    parser.add_argument("--policy", type=Path, help="deployment file for the robot")
    parser.add_argument("--output", type=Path, help="Markdown, with date and machine")
    args = parser.parse_args()
    measured = ways(load_robot(args.robot), args.policy)
    shortest = dict.fromkeys(measured, np.inf)
    for call in measured.values():
        call()
    for _ in range(ROUNDS):
        for name, call in measured.items():
            for _ in range(CALLS):
                begin = time.perf_counter()
                call()
                shortest[name] = min(shortest[name], time.perf_counter() - begin)
    try:
        import rclpy  # noqa: F401
    except ImportError:
        pass
    else:
        shortest["the way to another process and back"] = round_trip(args.robot)
    step = shortest["a step under torques"]
    lines = ["| | µs | of a step |", "| --- | --- | --- |"]
    lines += [f"| {name} | {1e6 * seconds:.3g} | {seconds / step:.2f} |" for name, seconds in shortest.items()]
    print("\n".join(lines))
    if args.output:
        date = datetime.now(timezone.utc).date().isoformat()
        command_line = [
            "python benchmarks/ways_in.py",
            "--robot",
            args.robot,
            *(["--policy", "FILE"] if args.policy else []),
        ]
        head = [f"`{' '.join(command_line)}`, {date}, {processor()}:", ""]
        args.output.write_text("\n".join(["# Ways in", "", *head, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
