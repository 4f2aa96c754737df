"""Run a manufacturer's program on the simulated robot: `python benchmarks/vendor_program.py --help`.

The benchmark launches a robot with the interface `unitree`, a gantry, a recorder and a script for the remote control.
It runs the unmodified program at the same time. The bag then shows the walk of the robot and the rate of the commands.
With `--echo`, it measures the round trip instead. The benchmark answers each rt/lowstate at once with the measured
position of a swinging joint. The bag shows the age of this position when the drives follow it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from cyclonedds.core import InstanceState, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from rosbags.highlevel import AnyReader

from bipedsim import __version__
from bipedsim.control.policy import pairs_along
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.recording import Recording, load_recording
from bipedsim_ros.interfaces.unitree import idl
from bipedsim_ros.interfaces.unitree.dds import COMMAND, LIBRARY, STATE, configuration
from bipedsim_ros.interfaces.unitree.layout import Cdr
from bipedsim_ros.interfaces.unitree.machine import machine_for

REMOTE = "[1 start, 3.5 gantry=lower, 7 A, 9 gantry=release, 10 ly=0.625, 40 ly=0, 42 select]"
"""Script for deploy_real.py: its posture, to the ground, its policy, release of the gantry, 0.625 of 0.8 m/s, end."""
WALK = (12.0, 36.0)
"""Start and end of the evaluated part of a walk, in the robot's time [s]."""
SWING = 3.0
"""Amplitude of the torque that swings the joint for the echo [N.m]."""
OLDEST = 200
"""Maximum age of a recognised answer of the echo [ms]."""


def arrivals(bag: Path, topic: str) -> Array:
    """Return the times at which the recorder received the messages of a topic, by the wall clock [s]."""
    with AnyReader([bag]) as reader:
        connections = [connection for connection in reader.connections if connection.topic == topic]
        return np.array([stamp for _, stamp, _ in reader.messages(connections)], dtype=float) * 1e-9


def spread(values: Array) -> list[float]:
    """Return median, 99th percentile and maximum."""
    return [round(float(x), 2) for x in (*np.quantile(values, (0.5, 0.99)), values.max())]


def evaluate_walk(recording: Recording, bag: Path) -> dict[str, Any]:
    """Return the statistics of the robot's walk, and of the rate of commands by the wall clock."""
    begin, end = WALK
    rows = (recording.t >= begin) & (recording.t <= end)
    pose, t = recording.base_pose[rows], recording.t[rows]
    x, y, z, w = pose[:, 3:].T
    yaw = np.unwrap(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y**2 + z**2)))
    steps = np.diff(pose[:, :2], axis=0)
    ahead = (np.cos(yaw[:-1]) * steps[:, 0] + np.sin(yaw[:-1]) * steps[:, 1]).sum()
    states, commands = (arrivals(bag, f"/{name}") for name in ("joint_states", "impedance_controller/commands"))
    first, last = np.interp(WALK, recording.t, states[-len(recording.t) :])
    gaps = np.diff(commands[(commands >= first) & (commands <= last)])
    held = np.flatnonzero(np.nan_to_num(recording.gantry_force).any(axis=1))
    return {
        "speed, m/s": round(float(ahead / (t[-1] - t[0])), 3),
        "base, m": [round(float(h), 3) for h in (pose[:, 2].min(), pose[:, 2].max())],
        "rope until, s": round(float(recording.t[held[-1]]), 2) if len(held) else None,
        "commands, Hz": round(float(1.0 / gaps.mean()), 1),
        "apart, ms": spread(gaps * 1e3),
    }


def evaluate_echo(recording: Recording, joint: int) -> dict[str, Any]:
    """Return the age of a measurement when the drives follow the answer to it, in the robot's time [ms]."""
    setpoint = recording.setpoint[:, 0, joint].astype(np.float32)
    measured = recording.joint_position[:, joint].astype(np.float32)
    changes = np.flatnonzero(np.r_[False, setpoint[1:] != setpoint[:-1]] & (recording.t > 1.0))
    ages = []
    for row in changes:
        before = measured[max(row - OLDEST, 0) : row][::-1]
        matches = np.flatnonzero(before == setpoint[row])
        if len(matches):
            # The row of tick n has the setpoint of the step that starts at tick n - 1.
            ages.append(float(matches[0]))
    return {"answers": len(changes), "recognised": len(ages), "old, ms": spread(np.array(ages))}


def echo(robot: Robot, domain: int, brought_up: subprocess.Popen[str]) -> int:
    """Answer every rt/lowstate while the robot runs. Return the index of the swinging joint."""
    machine = machine_for(robot.joint_names, pairs_along(robot))
    network = Domain(domain, configuration("lo"))
    participant = DomainParticipant(domain)
    command_type, state_type = idl.TYPES[machine.family.name]
    writer = DataWriter(participant, Topic(participant, COMMAND, command_type))
    reader = DataReader(participant, Topic(participant, STATE, state_type))
    wait_set = WaitSet(participant)
    new_samples = ReadCondition(reader, SampleState.NotRead | ViewState.Any | InstanceState.Any)
    wait_set.attach(new_samples)
    command, state = Cdr(machine.family.low_cmd), Cdr(machine.family.low_state)
    motors = command.values["motor_cmd"]
    motors["mode"] = machine.family.on[0]
    joint = int(np.flatnonzero(machine.motor == 0)[0])
    while brought_up.poll() is None:
        wait_set.wait(100_000_000)
        for sample in reader.take(16):
            if hasattr(sample, "data") and state.read(sample.data) is None:
                if "mode_machine" in (machine.family.low_cmd.names or ()):
                    command.values["mode_machine"] = state.values["mode_machine"]
                motors["q"][0] = state.values["motor_state"]["q"][0]
                motors["tau"][0] = SWING * np.sin(3e-3 * float(state.values["tick"]))
                writer.write(command_type.of(command.serialized()))
    del network
    return joint


def run_once(args: argparse.Namespace, robot: Robot, folder: Path) -> dict[str, Any]:
    """Launch the robot once with its program, and return the results."""
    bring_up = [sys.executable, "-m", "bipedsim.cli.main", "up", "--robot", args.robot, "--controller", "unitree"]
    bring_up += ["--scenario", "hang", "--record", str(folder), "--overwrite", "--duration", str(args.duration)]
    bring_up += ["--real-time-factor", str(args.real_time_factor), "--set", f"unitree.domain={args.domain}"]
    if not args.echo:
        bring_up += ["--set", f"unitree.remote={args.remote}"]
    program: subprocess.Popen[bytes] | None = None
    with subprocess.Popen(bring_up, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, text=True) as up:
        try:
            if args.echo:
                joint = echo(robot, args.domain, up)
            else:
                path = os.pathsep.join(str(Path(folder).resolve()) for folder in args.path)
                program = subprocess.Popen(
                    args.program, cwd=args.folder, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.DEVNULL
                )
        except BaseException:
            up.send_signal(signal.SIGINT)
            raise
        up.wait()
    code = None
    if program is not None:
        try:
            code = program.wait(timeout=10.0)
        except subprocess.TimeoutExpired:
            program.kill()
            code = program.wait()
    summary = json.loads((folder / "summary.json").read_text())
    recording = load_recording(folder / "bag")
    result = (
        evaluate_echo(recording, joint)
        if args.echo
        else {"program's exit code": code, **evaluate_walk(recording, folder / "bag")}
    )
    # If the gantry holds it, or its program has ended, a robot that lies or hangs obliquely has not fallen.
    fell = summary["fell_at_s"] if not args.echo else None
    return {
        **result,
        **(
            {}
            if args.echo
            else {"fell, s": fell, "commanded until, s": (summary["command_silences_s"] or [[None]])[0][0]}
        ),
        "real-time factor": round(summary["real_time_factor"], 3),
        "late ticks": f"{summary['overruns']} of {summary['ticks']}",
    }


def cell_text(value: object) -> str:
    """Return the text of a table cell."""
    return ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


def main() -> int:
    """Run the benchmark, and print and store the table. Return 1 if a robot fell while it received commands."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], usage="%(prog)s ROBOT [options] (--echo | -- PROGRAM ...)"
    )
    parser.add_argument("robot", help="name, or path of a robot.yaml")
    parser.add_argument("--echo", action="store_true", help="answer the states, in place of a program")
    parser.add_argument("--folder", type=Path, default=Path(), help="in which the program runs")
    parser.add_argument("--path", nargs="*", default=[], help="its PYTHONPATH")
    parser.add_argument("--remote", default=REMOTE, help="script of the remote control")
    parser.add_argument("--duration", type=float, default=42.0, help="of a run, of the robot's time [s]")
    parser.add_argument("--real-time-factor", type=float, default=1.0)
    parser.add_argument("--domain", type=int, default=0, help="of DDS; the vendor's programs are on 0")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON of every run, and a table beside it")
    arguments = sys.argv[1:]
    separator = arguments.index("--") if "--" in arguments else len(arguments)
    args = parser.parse_args(arguments[:separator], argparse.Namespace(program=arguments[separator + 1 :]))
    if bool(args.program) == args.echo:
        parser.error("give a program behind --, or --echo")
    about = {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "bipedsim": __version__,
        "program": "echo" if args.echo else " ".join([Path(args.program[0]).name, *args.program[1:]]),
        "library": LIBRARY,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
    if not args.echo:
        about["remote"] = args.remote
    robot = load_robot(args.robot)
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bipedsim_vendor_") as folder:
        for _ in range(args.runs):
            runs.append(run_once(args, robot, Path(folder) / "run"))
            rows = [f"| {' | '.join(runs[0])} |", "| --- " * len(runs[0]) + "|"]
            rows += [f"| {' | '.join(map(cell_text, run.values()))} |" for run in runs]
            text = "\n".join([", ".join(f"{key} {value}" for key, value in about.items()), "", *rows]) + "\n"
            if args.output:
                args.output.write_text(json.dumps({"about": about, "runs": runs}, indent=1) + "\n", encoding="utf-8")
                args.output.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text, end="")
    fallen = [run for run in runs if run.get("fell, s") is not None]
    return int(any(run["commanded until, s"] is None or run["fell, s"] < run["commanded until, s"] for run in fallen))


if __name__ == "__main__":
    sys.exit(main())
