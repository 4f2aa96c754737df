"""A vendor's program on the simulated machine: `python benchmarks/vendor_program.py --help`.

Brings a robot up with the interface `unitree`, in a gantry, with a recorder and a script for the remote control, runs
the program beside it, unmodified, and says from the bag how the robot walked and how often it was commanded. `--echo`
measures the way out and back instead: rt/lowstate is answered at once by what it says of a joint that swings, and the
bag says how old that is when the drives follow it.
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
"""For deploy_real.py: its posture, the ground, its policy, the rope away, 0.625 of 0.8 m/s, and the end."""
WALK = (12.0, 36.0)
"""Between which times of the robot a walk is judged [s]."""
SWING = 3.0
"""Torque that swings the joint of the echo [N.m]."""
OLDEST = 200
"""Beyond which an answer of the echo is none [ms]."""


def arrivals(bag: Path, topic: str) -> Array:
    """Return when the recorder got the messages of a topic [s], by the wall clock."""
    with AnyReader([bag]) as reader:
        found = [one for one in reader.connections if one.topic == topic]
        return np.array([stamp for _, stamp, _ in reader.messages(found)], dtype=float) * 1e-9


def spread(values: Array) -> list[float]:
    """Return median, 99 % and largest."""
    return [round(float(x), 2) for x in (*np.quantile(values, (0.5, 0.99)), values.max())]


def walked(recording: Recording, bag: Path) -> dict[str, Any]:
    """Return how the robot walked, and how often it was commanded meanwhile, by the wall clock."""
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


def answered(recording: Recording, joint: int) -> dict[str, Any]:
    """Return how old a measurement is when the drives follow what answers it [ms of the robot's time]."""
    said = recording.setpoint[:, 0, joint].astype(np.float32)
    measured = recording.joint_position[:, joint].astype(np.float32)
    new = np.flatnonzero(np.r_[False, said[1:] != said[:-1]] & (recording.t > 1.0))
    ages = []
    for row in new:
        before = measured[max(row - OLDEST, 0) : row][::-1]
        same = np.flatnonzero(before == said[row])
        if len(same):
            # The row of tick n holds what was followed over the step that begins at tick n - 1.
            ages.append(float(same[0]))
    return {"answers": len(new), "recognised": len(ages), "old, ms": spread(np.array(ages))}


def echo(robot: Robot, domain: int, brought_up: subprocess.Popen[str]) -> int:
    """Answer every rt/lowstate while the robot is up; return the index of the joint that swings."""
    machine = machine_for(robot.joint_names, pairs_along(robot))
    network = Domain(domain, configuration("lo"))
    participant = DomainParticipant(domain)
    command_type, state_type = idl.TYPES[machine.family.name]
    writer = DataWriter(participant, Topic(participant, COMMAND, command_type))
    reader = DataReader(participant, Topic(participant, STATE, state_type))
    waits = WaitSet(participant)
    news = ReadCondition(reader, SampleState.NotRead | ViewState.Any | InstanceState.Any)
    waits.attach(news)
    command, state = Cdr(machine.family.low_cmd), Cdr(machine.family.low_state)
    motors = command.values["motor_cmd"]
    motors["mode"] = machine.family.on[0]
    joint = int(np.flatnonzero(machine.motor == 0)[0])
    while brought_up.poll() is None:
        waits.wait(100_000_000)
        for sample in reader.take(16):
            if hasattr(sample, "data") and state.read(sample.data) is None:
                if "mode_machine" in (machine.family.low_cmd.names or ()):
                    command.values["mode_machine"] = state.values["mode_machine"]
                motors["q"][0] = state.values["motor_state"]["q"][0]
                motors["tau"][0] = SWING * np.sin(3e-3 * float(state.values["tick"]))
                writer.write(command_type.of(command.serialized()))
    del network
    return joint


def one(args: argparse.Namespace, robot: Robot, folder: Path) -> dict[str, Any]:
    """Bring the robot up once with its program, and return what became of it."""
    bring_up = [sys.executable, "-m", "bipedsim.cli.main", "up", "--robot", args.robot, "--interface", "unitree"]
    bring_up += ["--gantry", "hang", "--record", str(folder), "--overwrite", "--duration", str(args.duration)]
    bring_up += ["--real-time-factor", str(args.real_time_factor), "--interface-set", f"domain={args.domain}"]
    if not args.echo:
        bring_up += ["--interface-set", f"remote={args.remote}"]
    program: subprocess.Popen[bytes] | None = None
    with subprocess.Popen(bring_up, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, text=True) as up:
        try:
            if args.echo:
                joint = echo(robot, args.domain, up)
            else:
                path = os.pathsep.join(str(Path(one).resolve()) for one in args.path)
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
    found = (
        answered(recording, joint) if args.echo else {"program's exit code": code, **walked(recording, folder / "bag")}
    )
    # Where the gantry holds it, or after the end of its program, a robot that lies or hangs askew has not fallen.
    fell = summary["fell_at_s"] if not args.echo else None
    return {
        **found,
        **(
            {}
            if args.echo
            else {"fell, s": fell, "commanded until, s": (summary["command_silences_s"] or [[None]])[0][0]}
        ),
        "real-time factor": round(summary["real_time_factor"], 3),
        "late ticks": f"{summary['overruns']} of {summary['ticks']}",
    }


def said(value: object) -> str:
    """Return a cell of the table."""
    return ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


def main() -> int:
    """Print the table, and keep it; return 1 where a robot fell while it was commanded."""
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
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    args = parser.parse_args(given[:cut], argparse.Namespace(program=given[cut + 1 :]))
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
            runs.append(one(args, robot, Path(folder) / "run"))
            rows = [f"| {' | '.join(runs[0])} |", "| --- " * len(runs[0]) + "|"]
            rows += [f"| {' | '.join(map(said, run.values()))} |" for run in runs]
            text = "\n".join([", ".join(f"{key} {value}" for key, value in about.items()), "", *rows]) + "\n"
            if args.output:
                args.output.write_text(json.dumps({"about": about, "runs": runs}, indent=1) + "\n", encoding="utf-8")
                args.output.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text, end="")
    fallen = [run for run in runs if run.get("fell, s") is not None]
    return int(any(run["commanded until, s"] is None or run["fell, s"] < run["commanded until, s"] for run in fallen))


if __name__ == "__main__":
    sys.exit(main())
