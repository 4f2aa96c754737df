"""Compare learned policies in bipedsim and in MuJoCo: `python benchmarks/policies.py --help`.

A policy walks with the same robot in both simulators. bipedsim runs it with the controller `policy` and its deployment
file. For MuJoCo, this program has a loop that is equivalent to unitree_rl_gym's deploy_mujoco.py. Both start from the
same noisy states.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.control import Guard, make_controller
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.sim import Simulator

SETTLED = 3.0
"""Start of the evaluation of a walk [s]."""
WINDOW = 0.02
"""Averaging window of the forces [s]."""
NOISE = {"joints": 0.05, "linear": 0.1, "angular": 0.2}
"""Maximum noise of the initial state: joints [rad], base velocity [m/s], [rad/s]."""
FRICTION_LOSS = 0.1
"""Dry friction of every joint in the manufacturer's MJCF [N.m]."""


@dataclass(frozen=True)
class Walk:
    """Result of a walk.

    Attributes:
        velocity: (3,) mean velocity of the base in its heading frame [m/s, m/s, rad/s].
        peak: Largest force of a foot in a step, averaged over 20 ms and divided by the weight; mean over all steps.
        highest: Maximum of these forces over all steps.
        fell: Time of the fall [s], or None.
    """

    velocity: tuple[float, ...]
    peak: float
    highest: float
    fell: float | None


def start(robot: Robot, seed: int) -> tuple[Array, Array]:
    """Return (q, v) of the standing robot with noise, or without noise for seed 0."""
    q, v = robot.q_nominal.copy(), np.zeros(robot.model.nv)
    if seed:
        random = np.random.default_rng(seed)
        q = robot.settle(robot.posture + random.uniform(-1.0, 1.0, robot.nu) * NOISE["joints"])
        v[:3] = random.uniform(-1.0, 1.0, 3) * NOISE["linear"]
        v[3:6] = random.uniform(-1.0, 1.0, 3) * NOISE["angular"]
    return q, v


def evaluate(dt: float, poses: Array, forces: Array, weight: float, fell: float | None) -> Walk:
    """Evaluate a walk from base poses (n, 3) x, y [m], yaw [rad], and forces of the feet (n, 2) [N]."""
    if fell is not None:
        return Walk((np.nan,) * 3, np.nan, np.nan, fell)
    begin = round(SETTLED / dt)
    poses, forces = poses[begin:], forces[begin:]
    yaw = np.unwrap(poses[:, 2])
    steps = np.diff(poses[:, :2], axis=0)
    c, s = np.cos(yaw[:-1]), np.sin(yaw[:-1])
    time = dt * len(steps)
    forward = (c * steps[:, 0] + s * steps[:, 1]).sum() / time
    sideways = (c * steps[:, 1] - s * steps[:, 0]).sum() / time
    n = round(WINDOW / dt)
    peaks = [peak for foot in forces.T for peak in peaks_of(foot, n, weight)]
    return Walk((forward, sideways, (yaw[-1] - yaw[0]) / time), float(np.mean(peaks)), float(np.max(peaks)), None)


def peaks_of(force: Array, n: int, weight: float) -> Iterator[float]:
    """Yield the largest mean over ``n`` samples of each stance, divided by the weight. Loads below 5 % are ignored."""
    mean = np.convolve(force, np.full(n, 1.0 / n), mode="valid") / weight
    edges = np.flatnonzero(np.diff((mean > 0.05).astype(int)))
    for first, last in pairwise(edges):
        stance = mean[first + 1 : last + 1]
        if stance.mean() > 0.05:
            yield float(stance.max())


def walk_here(robot: Robot, file: Path, command: Array, seed: int, duration: float, contact: str) -> Walk:
    """Simulate a walk in bipedsim."""
    dt = 1e-3
    sim = Simulator(robot, contact=contact, physics_dt=dt, control_dt=dt, hardware={"coulomb_friction": FRICTION_LOSS})
    guard = Guard(make_controller("policy", robot, {"file": str(file)}, dt), robot)
    observation = sim.reset(*start(robot, seed))
    guard.reset(observation)
    guard.steer(tuple(command.tolist()))
    n = round(duration / dt)
    poses, forces = np.zeros((n, 3)), np.zeros((n, 2))
    for i in range(n):
        observation = sim.step(guard.update(observation))
        if guard.fell_at is not None:
            return evaluate(dt, poses, forces, robot.weight, guard.fell_at)
        poses[i] = *sim.q[:2], pin.rpy.matrixToRpy(pin.Quaternion(sim.q[3:7]).toRotationMatrix())[2]
        forces[i] = sim.contact.wrench[:, 2]
    return evaluate(dt, poses, forces, robot.weight, None)


def walk_there(robot: Robot, file: Path, command: Array, seed: int, duration: float, solref: float = 0.0) -> Walk:
    """Simulate a walk in MuJoCo with a configuration of unitree_rl_gym; ``solref`` is described in the options."""
    import mujoco
    import torch
    import yaml

    torch.set_num_threads(1)
    values = yaml.safe_load(file.read_text())
    root = str(file.resolve().parents[3])
    model = mujoco.MjModel.from_xml_path(values["xml_path"].replace("{LEGGED_GYM_ROOT_DIR}", root))
    substeps = max(1, round(values["simulation_dt"] / (0.1 * solref))) if solref else 1
    if solref:
        model.geom_solref[:, 0] = solref
    dt = model.opt.timestep = values["simulation_dt"] / substeps
    data = mujoco.MjData(model)
    policy = torch.jit.load(values["policy_path"].replace("{LEGGED_GYM_ROOT_DIR}", root))
    kp, kd, default = (np.array(values[key]) for key in ("kps", "kds", "default_angles"))
    q, v = start(robot, seed)
    # pinocchio expresses the linear velocity of the base in the base frame, MuJoCo in the world.
    data.qpos[:] = [*q[:3], q[6], *q[3:6], *q[7:]]
    data.qvel[:] = [*pin.Quaternion(q[3:7]).toRotationMatrix() @ v[:3], *v[3:]]
    feet = [model.jnt_bodyid[model.joint(name).id] for name in _last_joints(robot)]
    n, every = round(duration / dt), values["control_decimation"] * substeps
    poses, forces = np.zeros((n, 3)), np.zeros((n, 2))
    action, target = np.zeros(len(default), dtype=np.float32), default.copy()
    wrench, rotation = np.zeros(6), np.zeros(9)
    for i in range(n):
        if i % every == 0:
            mujoco.mju_quat2Mat(rotation, data.qpos[3:7])
            angle = 2.0 * np.pi * ((i + every) * dt % 0.8) / 0.8
            observation_parts = [
                data.qvel[3:6] * values["ang_vel_scale"],
                -rotation[6:],
                command * values["cmd_scale"],
                (data.qpos[7:] - default) * values["dof_pos_scale"],
                data.qvel[6:] * values["dof_vel_scale"],
                action,
                [np.sin(angle), np.cos(angle)],
            ]
            with torch.no_grad():
                output = policy(torch.from_numpy(np.concatenate(observation_parts).astype(np.float32)).unsqueeze(0))
            action = output.numpy().squeeze()
            target = action * values["action_scale"] + default
        data.ctrl[:] = (target - data.qpos[7:]) * kp - data.qvel[6:] * kd
        mujoco.mj_step(model, data)
        mujoco.mju_quat2Mat(rotation, data.qpos[3:7])
        if rotation[8] < 0.5:
            return evaluate(dt, poses, forces, robot.weight, i * dt)
        poses[i] = *data.qpos[:2], np.arctan2(rotation[3], rotation[0])
        for k in range(data.ncon):
            bodies = model.geom_bodyid[data.contact[k].geom]
            for side, foot in enumerate(feet):
                if foot in bodies and 0 in bodies:
                    mujoco.mj_contactForce(model, data, k, wrench)
                    forces[i, side] += wrench[0]
    return evaluate(dt, poses, forces, robot.weight, None)


def _last_joints(robot: Robot) -> list[str]:
    return [robot.model.names[sole.joint_id] for sole in robot.soles]


def _walk_in_both(job: tuple[str, Path, Path, tuple[float, ...], int, float, str, float]) -> tuple[Walk, Walk]:
    _, robot_file, policy, command, seed, duration, contact, solref = job
    robot = load_robot(str(robot_file))
    velocity = np.array(command)
    return (
        walk_here(robot, policy, velocity, seed, duration, contact),
        walk_there(robot, policy, velocity, seed, duration, solref),
    )


COMMANDS = {
    "stand": (0.0, 0.0, 0.0),
    "0.5 m/s": (0.5, 0.0, 0.0),
    "1.0 m/s": (1.0, 0.0, 0.0),
    "turn 0.5 rad/s": (0.0, 0.0, 0.5),
    "side 0.3 m/s": (0.0, 0.3, 0.0),
}


def row(what: str, here: list[Walk], there: list[Walk]) -> str:
    """Return a row of the table with means over the walks without a fall."""

    def mean(walks: list[Walk], value_of: Any) -> Any:
        values = [value_of(walk) for walk in walks if walk.fell is None]
        return np.mean(values, axis=0) if values else np.full(3, np.nan)

    def cells(walks: list[Walk]) -> str:
        velocity = mean(walks, lambda walk: walk.velocity)
        speeds = ", ".join(f"{x:+.3f}" for x in velocity)
        peak, highest = mean(walks, lambda walk: (walk.peak, walk.highest, 0.0))[:2]
        fell = sum(walk.fell is not None for walk in walks)
        return f"{speeds} | {peak:.2f}, {highest:.2f} | {len(walks) - fell} of {len(walks)}"

    return f"| {what} | {cells(here)} | {cells(there)} |"


def main() -> None:
    """Simulate all walks and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "robots", nargs="+", help="NAME=ROBOT.YAML=CONFIG: a robot and its file of deploy/deploy_mujoco/configs"
    )
    parser.add_argument("--commands", nargs="*", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--seeds", type=int, default=1, help="starts; the first one has no noise")
    parser.add_argument("--duration", type=float, default=13.0, help=f"of a walk [s], judged from {SETTLED:g} s on")
    parser.add_argument("--contact-model", default="one_step")
    parser.add_argument(
        "--solref",
        type=float,
        default=0.0,
        help="time constant of MuJoCo's contacts [s], with steps of a tenth of it; default the model's, 0.02",
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON of every walk, and the table beside it")
    args = parser.parse_args()
    jobs = []
    for text in args.robots:
        name, robot, policy = text.split("=")
        for command in args.commands:
            for seed in range(args.seeds):
                label = f"{name}, {command}"
                files = Path(robot), Path(policy)
                settings = args.duration, args.contact_model, args.solref
                jobs.append((label, *files, COMMANDS[command], seed, *settings))
    table = [
        "| | bipedsim: vx, vy, wz | peak, highest | upright | MuJoCo: vx, vy, wz | peak, highest | upright |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    print(*table, sep="\n")
    results: dict[str, list[tuple[Walk, Walk]]] = {}
    with ProcessPoolExecutor(args.jobs) as pool:
        for job, pair in zip(jobs, pool.map(_walk_in_both, jobs), strict=True):
            results.setdefault(job[0], []).append(pair)
            if len(results[job[0]]) == args.seeds:
                here, there = map(list, zip(*results[job[0]], strict=True))
                table.append(row(job[0], here, there))
                print(table[-1], flush=True)
    if args.output:
        plain = {what: [[vars(walk) for walk in pair] for pair in pairs] for what, pairs in results.items()}
        args.output.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
        about = f"{args.seeds} starts each, {args.duration:g} s, contact model {args.contact_model}, MuJoCo's solref "
        about += f"{args.solref or 'of the model'}; velocities in m/s and rad/s, forces over 20 ms in weights"
        args.output.with_suffix(".md").write_text("\n".join([about, "", *table]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
