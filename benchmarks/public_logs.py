"""Identify real robots from public logs: `python benchmarks/public_logs.py --help`.

The list :data:`LOGS` names repositories, commits and files. Clone a repository yourself; nothing of it is stored here.
The script converts a log to the CSV table of docs/recording.md and splits it in time. It identifies the robot from the
first part, and evaluates the equations of motion on the second part, which is held out.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import yaml
from scipy.signal import savgol_filter

from bipedsim.analysis import aligned
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array, Flags
from bipedsim.recording import Recording, export_csv, load_recording
from bipedsim_studies.identify import Estimate, Signals, estimate, parameters_of, signals_of
from bipedsim_studies.identify.equations import Equations
from bipedsim_studies.identify.lacking import undetermined
from bipedsim_studies.identify.selection import select, without_data

RATE = 100.0
"""Rate of the converted log [1/s]."""
SMOOTHED = 31
"""Samples of the filter for the motion of the trunk."""


@dataclass(frozen=True)
class Log:
    """A public log.

    Attributes:
        source: Repository.
        commit: Commit that contains the files.
        folder: Folder of the files there.
        licence: Licence of the repository.
        foot: Foot that is on the floor all the time; its leg gives the attitude of the trunk.
        air: Log of the same session in which this foot is in the air.
        begin, split, end: Begin of the part for the estimate, begin of the part that is held out, and its end [s].
    """

    source: str
    commit: str
    folder: str
    licence: str
    foot: str
    air: str
    begin: float
    split: float
    end: float


LOGS = {
    "icub": Log(
        "robotology-playground/insitu-ft-analysis",
        "11a0cda2741cb50f1a602628538764e3e01ff6ee",
        "data/dumperLeftLegNoIMU/icub",
        "none",
        "left",
        "data/dumperRightLegNoIMU/icub",
        16.0,
        24.0,
        30.0,
    )
}
LEG = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
TORSO = ("torso_yaw", "torso_roll", "torso_pitch")
"""Order of the joints of iCub's torso in its messages."""
_POSITION, _VELOCITY, _TORQUE = 0, 1, 6
"""Parts of a message of extended states."""
IN_AIR = 0.25
"""Share of the spread of the vertical force below its largest value within which the foot is in the air."""


def icub(robot: Robot, git: Path, log: Log) -> Recording:
    """Return the recording of iCub: joints of legs and torso, and force-torque sensors of the feet.

    The zeros of the sensors are unknown. They are taken where a foot is in the air, with its weight as described. The
    log has no IMU: the leg on the floor gives attitude and motion of the trunk. The arms are welded in the
    nominal posture, because their part of the log cannot be had.
    """
    states = {
        part: _states(git, log, f"{log.folder}/{part}/stateExt:o/data.log")
        for part in ("left_leg", "right_leg", "torso")
    }
    wrenches = {side: _table(git, log, f"{log.folder}/{side}_foot/analog:o/data.log") for side in ("left", "right")}
    begin = max(t[0] for t, _ in [*states.values(), *wrenches.values()])
    end = min(t[-1] for t, _ in [*states.values(), *wrenches.values()])
    t = begin + np.arange(int((end - begin) * RATE)) / RATE
    run = Recording.empty(len(t), robot.joint_names, [sole.name for sole in robot.soles])
    run.t[:] = t - begin
    run.joint_position[:] = robot.q_nominal[robot.idx_q]
    run.joint_velocity[:] = 0.0
    names = {"left_leg": [f"l_{j}" for j in LEG], "right_leg": [f"r_{j}" for j in LEG], "torso": list(TORSO)}
    for part, (times, values) in states.items():
        for k, joint in enumerate(names[part]):
            at = robot.joint_names.index(joint)
            for target, kind, unit in (
                (run.joint_position, _POSITION, np.pi / 180.0),
                (run.joint_velocity, _VELOCITY, np.pi / 180.0),
                (run.joint_effort, _TORQUE, 1.0),
            ):
                target[:, at] = unit * np.interp(t, times, values[:, kind, k])
    for k, side in enumerate(("left", "right")):
        times, values = wrenches[side]
        folder = log.air if side == log.foot else log.folder
        zero = _zero(robot, k, _table(git, log, f"{folder}/{side}_foot/analog:o/data.log")[1])
        for axis in range(6):
            run.ankle_wrench[:, k, axis] = np.interp(t, times, values[:, axis]) - zero[axis]
    _add_imu(robot, run, [sole.name for sole in robot.soles].index(log.foot))
    return run


def _show(git: Path, log: Log, path: str) -> list[str]:
    command = ["git", f"--git-dir={git}", "show", f"{log.commit}:{path}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def _states(git: Path, log: Log, path: str) -> tuple[Array, Array]:
    """Return times (n,) and values (n, parts, joints) of messages with extended states of joints."""
    lines = [line.split(None, 2) for line in _show(git, log, path)]
    values = [[list(map(float, part.split())) for part in re.findall(r"\(([^)]*)\)", line[2])] for line in lines]
    return np.array([float(line[1]) for line in lines]), np.array(values)


def _table(git: Path, log: Log, path: str) -> tuple[Array, Array]:
    """Return times (n,) and values (n, 6) of a force-torque sensor."""
    numbers = np.array([list(map(float, line.split())) for line in _show(git, log, path)])
    return numbers[:, 1], numbers[:, 2:]


def _zero(robot: Robot, foot: int, values: Array) -> Array:
    """Return the reading (6,) of a sensor without any load, from the time in which the foot is in the air and level."""
    vertical = values[:, 2]
    # The z axis of the sensor points downwards, so the largest reading is that of a foot in the air.
    threshold = np.quantile(vertical, 0.99) - IN_AIR * np.ptp(np.quantile(vertical, [0.01, 0.99]))
    reading = np.median(values[vertical > threshold], axis=0)
    body = robot.model.inertias[robot.ankle_joint_ids[foot]]
    placement = robot.placement_joint_ankle[foot]
    weight = robot.model.gravity.linear * body.mass
    felt = placement.actInv(pin.Force(weight, np.cross(body.lever, weight)))
    return np.asarray(reading - felt.vector)


def _add_imu(robot: Robot, run: Recording, foot: int) -> None:
    """Compute what an IMU would measure, if the sole of a foot stays flat on the floor."""
    model, data = robot.model, robot.model.createData()
    q = pin.neutral(model)
    sole = robot.soles[foot]
    poses = np.empty((len(run), 4, 4))
    for k in range(len(run)):
        q[robot.idx_q] = run.joint_position[k]
        pin.forwardKinematics(model, data, q)
        on_floor = data.oMi[sole.joint_id] * sole.placement_joint_sole
        poses[k] = (on_floor.inverse() * data.oMi[robot.imu_joint_id] * robot.placement_joint_imu).homogeneous

    def smooth(values: Array, derivative: int) -> Array:
        result: Array = savgol_filter(values, SMOOTHED, 3, deriv=derivative, delta=1.0 / RATE, axis=0)
        return result

    rotation, turning = poses[:, :3, :3], smooth(poses[:, :3, :3], 1)
    acceleration = smooth(poses[:, :3, 3], 2) - model.gravity.linear
    for k in range(len(run)):
        spin = rotation[k].T @ turning[k]
        run.imu_angular_velocity[k] = [spin[2, 1], spin[0, 2], spin[1, 0]]
        run.imu_linear_acceleration[k] = rotation[k].T @ acceleration[k]
        run.imu_orientation[k] = pin.Quaternion(rotation[k]).coeffs()


def described(name: str, folder: Path) -> Robot:
    """Return the robot of a log, with the sensors of the machine; numbers are those of the shipped robot."""
    shipped = load_robot(name)
    config = yaml.safe_load(Path(shipped.source).read_text(encoding="utf-8"))
    for side, foot in config["feet"].items():
        foot["ankle_frame"] = f"{side[0]}_foot_ft_sensor"
    # The log has no arms, so they are welded in the nominal posture.
    arms = [name for name in config["joints"] if name[2:] not in LEG and name not in TORSO]
    posture = dict(zip(shipped.joint_names, shipped.q_nominal[shipped.idx_q], strict=True))
    config["locked"] = {name: float(posture[name]) for name in arms}
    config["joints"] = [name for name in config["joints"] if name not in arms]
    config = {key: config[key] for key in ("name", "urdf", "joints", "locked", "feet", "imu")}
    config["armature"] = {"._(hip|knee|ankle).*": 0.1367, "torso_.*": 0.1367}
    path = folder / "robot.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return load_robot(str(path))


def unexplained(robot: Robot, signals: Signals, result: Estimate, values: Array) -> dict[str, float]:
    """Return the rms residuals of the equations of motion: force and moment on the robot, torques of joints."""
    rows = Equations(robot, result.parameters).rows(signals, values)

    def rms(columns: Sequence[int]) -> float:
        used: Flags = rows.used[:, columns]
        return float(np.sqrt(np.mean(rows.residual[:, columns][used] ** 2))) if used.any() else float("nan")

    joints = {name: int(i) for name, i in zip(robot.joint_names, robot.idx_v, strict=True)}
    nv = robot.model.nv
    groups = {
        "force on the robot [N]": [0, 1, 2],
        "moment on the robot [N.m]": [3, 4, 5],
        "torques of the left leg [N.m]": [joints[f"l_{j}"] for j in LEG],
        "torques of the right leg [N.m]": [joints[f"r_{j}"] for j in LEG],
        "force on feet in the air [N]": [nv + 6 * k + i for k in range(2) for i in range(3)],
    }
    return {name: rms(columns) for name, columns in groups.items()}


def main() -> None:
    """Convert one log, identify, and print the held-out errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", choices=LOGS)
    parser.add_argument("git", type=Path, help="git directory of a clone of the log's repository")
    parser.add_argument("folder", type=Path, help="folder for robot.yaml and the CSV table")
    parser.add_argument("--output", type=Path, help="results (.json)")
    args = parser.parse_args()
    log = LOGS[args.log]
    args.folder.mkdir(parents=True, exist_ok=True)
    robot = described(args.log, args.folder)
    table = args.folder / f"{args.log}.csv"
    export_csv(icub(robot, args.git, log), table)
    spans = (log.begin, log.split), (log.split, log.end)
    parts = [load_recording(table, start=start, stop=stop) for start, stop in spans]
    signals = [signals_of(part, robot, str(table)) for part in parts]
    lacking = [each.lacking for each in signals]
    for note in lacking[0].notes(robot):
        print(f"note: {note}")
    parameters = select(robot, parameters_of(robot), ["imu_delay", "accelerometer_offset", "imu_rotation"])
    parameters = without_data(parameters, undetermined(parameters, lacking))
    result = estimate(robot, signals[:1], None, parameters)
    p = result.parameters
    at = p.at["mass"][:, 0]
    masses = p.masses * np.exp(result.values[at])
    deviation = float(np.sqrt(masses @ result.covariance[np.ix_(at, at)] @ masses))
    content: dict[str, Any] = {
        "converged": result.converged,
        "identified": [p.label(int(i)) for i in np.flatnonzero(result.identified)],
        "mass_described": float(robot.mass),
        "mass": float(robot.mass + masses.sum() - p.masses.sum()),
        "mass_half_width": 1.96 * deviation,
        "errors": {},
    }
    rows = [["rms residual", "described", "identified", "held out: described", "identified"]]
    errors = [unexplained(robot, each, result, values) for each in signals for values in (p.start, result.values)]
    for name in errors[0]:
        content["errors"][name] = [each[name] for each in errors]
        rows.append([name, *(f"{each[name]:.3g}" for each in errors)])
    print(f"{len(content['identified'])} of {int(p.estimated.sum())} numbers are identified")
    for i in np.flatnonzero(result.identified):
        print(f"  {p.label(int(i))}: {result.values[i]:.4g} +- {result.half_width[i]:.2g}")
    print(f"mass: {content['mass']:.2f} +- {content['mass_half_width']:.2f} kg, described {robot.mass:.2f} kg")
    print("\n".join(aligned(rows, numbers=True)))
    if args.output:
        args.output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
