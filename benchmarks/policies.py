"""Compare learned policies in bipedsim and in MuJoCo: `python benchmarks/policies.py --help`.

The same controller `policy` walks with the same robot in both simulators, from the same noisy states. MuJoCo's model is
built from bipedsim's: same masses, soles, reflected inertia, damping and joint limits, on a level ground. MuJoCo gets
stiff contacts, because its default ones creep. Its observations are those of ideal sensors, and its drives close their
loops at each of its steps, as bipedsim's do.

The policies come from policies.yaml, whose repositories you clone to FOLDER/OWNER+NAME. The script imports their robots
to FOLDER/robots and writes our own deployment files to FOLDER/deployments. `NAME=ROBOT=FILE` adds any other policy.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pinocchio as pin
import yaml

from bipedsim.control import Guard, make_controller
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.sim import Command, Simulator
from bipedsim.sim.sensors import Sensors
from bipedsim_studies.bench.engines.mujoco_engine import MujocoEngine
from bipedsim_studies.bench.engines.scene import Scene

LIST = Path(__file__).with_name("policies.yaml")
SETTLED = 3.0
"""Start of the evaluation of a walk [s]."""
WINDOW = 0.02
"""Averaging window of the forces [s]."""
NOISE = {"joints": 0.05, "linear": 0.1, "angular": 0.2}
"""Maximum noise of the initial state: joints [rad], base velocity [m/s], [rad/s]."""
SLOW = 0.1
"""Velocity below which the difference is absolute [m/s], [rad/s]."""
TICK = 1e-3
"""Length of a tick of the controller in both simulators [s]."""
MUJOCO_STEP = 0.5e-3
STIFF = {"cone": "elliptic", "impratio": "50"}
"""Options of MuJoCo with which friction does not creep."""
COMMANDS = {
    "stand": (0.0, 0.0, 0.0),
    "0.3 m/s": (0.3, 0.0, 0.0),
    "0.6 m/s": (0.6, 0.0, 0.0),
    "turn 0.5 rad/s": (0.0, 0.0, 0.5),
}
"""vx, vy [m/s], wz [rad/s]."""


@dataclass(frozen=True)
class Policy:
    """A policy and its robot.

    Attributes:
        name: Name in the report.
        file: Deployment file.
        robot: Name of a shipped robot, or path of a robot.yaml.
        physics_dt: Physics step of bipedsim [s].
        ground: Terrain for the command, in YAML; the comparison is on level ground.
    """

    name: str
    file: Path
    robot: str
    physics_dt: float = TICK
    ground: str = ""

    @property
    def command(self) -> str:
        """The command that runs the policy."""
        step = "" if self.physics_dt == TICK else f" --physics-dt {self.physics_dt:g}"
        ground = f" --ground '{self.ground}'" if self.ground else ""
        run = f"bipedsim run --controller policy --set file={self.file} --robot {self.robot} --scenario walk"
        return run + step + ground


@dataclass(frozen=True)
class Walk:
    """Result of a walk.

    Attributes:
        velocity: (3,) mean velocity of the base in its heading frame [m/s, m/s, rad/s].
        peak: Largest force of a foot in a step, averaged over 20 ms and divided by the weight; mean over all steps.
        fell: Time of the fall [s], or None.
    """

    velocity: tuple[float, ...]
    peak: float
    fell: float | None


class Here:
    """bipedsim, with the interface of :class:`There`.

    Args:
        robot: The robot.
        points: (S, 2) points of the height scan [m], or None.
        physics_dt: Physics step [s].
    """

    def __init__(self, robot: Robot, points: Array | None, physics_dt: float) -> None:
        self._sim = Simulator(robot, physics_dt=physics_dt, control_dt=TICK, height_scan=points)
        self._data = robot.model.createData()
        self.reset, self.step = self._sim.reset, self._sim.step

    def state(self) -> tuple[Array, Array]:
        """Return q (nq,) and the vertical force of each foot [N]."""
        sim = self._sim
        # The wrenches of the contacts are in the axes of the soles, and a foot tilts at lift-off.
        pin.forwardKinematics(sim.robot.model, self._data, sim.q)
        turns = [self._data.oMi[s.joint_id].rotation @ s.placement_joint_sole.rotation for s in sim.robot.soles]
        return sim.q, np.array([turn[2] @ w[:3] for turn, w in zip(turns, sim.contact.wrench, strict=True)])


class There:
    """MuJoCo with stiff contacts, which takes and returns the same commands and observations.

    Args:
        robot: The robot.
        points: (S, 2) points of the height scan [m], or None.
        solref: Time constant of the contacts [s]; 0 for MuJoCo's default.
    """

    def __init__(self, robot: Robot, points: Array | None, solref: float) -> None:
        self._robot = robot
        self._engine = MujocoEngine(robot, MUJOCO_STEP, STIFF if solref else {}, Scene())
        if solref:
            self._engine.model.geom_solref[:, 0] = solref
        self._sensors = Sensors(robot)
        self._sensors.observation.height_scan = np.zeros(0 if points is None else len(points))
        self._turns = [sole.placement_joint_sole.rotation for sole in robot.soles]
        self._joints = [sole.joint_id for sole in robot.soles]
        self._data = robot.model.createData()
        self._wrench = np.zeros((len(robot.soles), 6))

    def reset(self, q: Array, v: Array) -> Any:
        """Start at (q, v), and return the observation."""
        self._engine.reset(q, v)
        self._ticks = 0
        self._v = v.copy()
        return self._measure(np.zeros(self._robot.nu))

    def step(self, command: Command) -> Any:
        """Advance by a tick, and return the observation."""
        robot = self._robot
        position, velocity, joint, kp, kd, limit = command.packed(robot.effort_limit)
        self._wrench[:] = 0.0
        steps = round(TICK / MUJOCO_STEP)
        for _ in range(steps):
            q, v = self._engine.state()
            tau = joint + kp * (position - q[robot.idx_q]) + kd * (velocity - v[robot.idx_v])
            tau = np.clip(tau, -limit, limit)
            self._engine.step(tau)
            self._wrench += self._engine.wrenches() / steps
        self._ticks += 1
        return self._measure(tau)

    def _measure(self, tau: Array) -> Any:
        self._q, v = self._engine.state()
        pin.forwardKinematics(self._robot.model, self._data, self._q)
        wrench = np.zeros_like(self._wrench)
        for k, (joint, turn) in enumerate(zip(self._joints, self._turns, strict=True)):
            wrench[k] = (self._wrench[k].reshape(2, 3) @ self._data.oMi[joint].rotation @ turn).ravel()
        acceleration = (v - self._v) / TICK
        self._v = v
        contact: Any = SimpleNamespace(wrench=wrench)
        self._sensors.observation.height_scan[:] = self._q[2]
        return self._sensors.measure(self._ticks * TICK, self._q, v, acceleration, tau, contact)

    def state(self) -> tuple[Array, Array]:
        """Return q (nq,) and the vertical force of each foot [N]."""
        return self._q, self._wrench[:, 2]


def walk(
    make: Callable[[Robot, Array | None], Here | There], policy: Policy, command: str, seed: int, duration: float
) -> Walk:
    """Simulate a walk on level ground; ``make`` returns the simulator of a robot and the points of its height scan."""
    robot = load_robot(policy.robot)
    guard = Guard(make_controller("policy", robot, {"file": str(policy.file)}, TICK), robot, dt=TICK)
    sim = make(robot, guard.height_points)
    observation = sim.reset(*start(robot, seed))
    guard.reset(observation)
    guard.steer(COMMANDS[command])
    n = round(duration / TICK)
    poses, forces = np.zeros((n, 3)), np.zeros((n, len(robot.soles)))
    for i in range(n):
        observation = sim.step(guard.update(observation))
        if guard.fell_at is not None:
            return Walk((np.nan,) * 3, np.nan, guard.fell_at)
        q, forces[i] = sim.state()
        poses[i] = *q[:2], pin.rpy.matrixToRpy(pin.Quaternion(q[3:7]).toRotationMatrix())[2]
    return evaluate(poses, forces, robot.weight)


def start(robot: Robot, seed: int) -> tuple[Array, Array]:
    """Return (q, v) of the standing robot with noise, or without noise for seed 0."""
    q, v = robot.q_nominal.copy(), np.zeros(robot.model.nv)
    if seed:
        random = np.random.default_rng(seed)
        q = robot.settle(robot.posture + random.uniform(-1.0, 1.0, robot.nu) * NOISE["joints"])
        v[:3] = random.uniform(-1.0, 1.0, 3) * NOISE["linear"]
        v[3:6] = random.uniform(-1.0, 1.0, 3) * NOISE["angular"]
    return q, v


def evaluate(poses: Array, forces: Array, weight: float) -> Walk:
    """Evaluate a walk from base poses (n, 3) x, y [m], yaw [rad], and forces of the feet (n, K) [N]."""
    begin = round(SETTLED / TICK)
    poses, forces = poses[begin:], forces[begin:]
    yaw = np.unwrap(poses[:, 2])
    steps = np.diff(poses[:, :2], axis=0)
    c, s = np.cos(yaw[:-1]), np.sin(yaw[:-1])
    time = TICK * len(steps)
    forward = (c * steps[:, 0] + s * steps[:, 1]).sum() / time
    sideways = (c * steps[:, 1] - s * steps[:, 0]).sum() / time
    peaks = [peak for foot in forces.T for peak in peaks_of(foot, round(WINDOW / TICK), weight)]
    peak = float(np.mean(peaks)) if peaks else np.nan
    return Walk((forward, sideways, (yaw[-1] - yaw[0]) / time), peak, None)


def peaks_of(force: Array, n: int, weight: float) -> Iterator[float]:
    """Yield the largest mean over ``n`` samples of each stance, divided by the weight. Loads below 5 % are ignored."""
    mean = np.convolve(force, np.full(n, 1.0 / n), mode="valid") / weight
    edges = np.flatnonzero(np.diff((mean > 0.05).astype(int)))
    for first, last in pairwise(edges):
        stance = mean[first + 1 : last + 1]
        if stance.mean() > 0.05:
            yield float(stance.max())


def listed(entry: dict[str, Any], sources: Path) -> Policy:
    """Return a policy of policies.yaml; import its robot and write its deployment file if they are missing."""

    def folder(repository: str) -> Path:
        return sources / repository.replace("/", "+")

    own = folder(entry["from"])
    file = own / entry.get("file", "")
    if "deployment" in entry:
        file = sources / "deployments" / f"{entry['name']}.yaml"
        file.parent.mkdir(exist_ok=True)
        values = entry["deployment"]
        for part in (values, *values.get("encoders", {}).values()):
            part |= {key: str(own.resolve() / part[key]) for key in ("network", "extends") if key in part}
        file.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    robot = entry["robot"]
    if isinstance(robot, dict):
        target = sources / "robots" / robot["name"]
        if not (target / "robot.yaml").exists():
            source = folder(robot["from"]) / robot["file"]
            command = ("-m", "bipedsim.cli.main", "import", str(source), "--output", str(target))
            subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        robot = str(target / "robot.yaml")
    ground = json.dumps(entry["ground"]) if "ground" in entry else ""
    return Policy(entry["name"], file, robot, entry.get("physics_dt", TICK), ground)


def policies(names: list[str], sources: Path | None) -> list[Policy]:
    """Return the policies with these names, or all of the list."""
    texts = [text.split("=") for text in names if "=" in text]
    added = [Policy(name, Path(file), robot) for name, robot, file in texts]
    wanted = {name for name in names if "=" not in name}
    if sources is None:
        return added
    entries = yaml.safe_load(LIST.read_text(encoding="utf-8"))
    if unknown := sorted(wanted - {entry["name"] for entry in entries}):
        raise SystemExit(f"no such policy in {LIST.name}: {', '.join(unknown)}")
    return [listed(entry, sources) for entry in entries if entry["name"] in wanted or not names] + added


def walk_in_both(job: tuple[Policy, str, int, float, float]) -> tuple[Walk, Walk]:
    """Simulate a walk in bipedsim and in MuJoCo."""
    policy, command, seed, duration, solref = job
    sims = partial(Here, physics_dt=policy.physics_dt), partial(There, solref=solref)
    here, there = (walk(make, policy, command, seed, duration) for make in sims)
    return here, there


def row(what: str, command: str, here: list[Walk], there: list[Walk]) -> str:
    """Return a row of the table: means over the walks without a fall, and the difference along the command."""

    def mean(walks: list[Walk]) -> Array:
        rows = [(*each.velocity, each.peak) for each in walks if each.fell is None]
        return np.mean(rows, axis=0) if rows else np.full(4, np.nan)

    means = mean(here), mean(there)
    cells = [f"{x:+.3f}, {y:+.3f}, {turn:+.3f} | {peak:.2f}" for x, y, turn, peak in means]
    fallen = [f"{sum(each.fell is not None for each in walks)} of {len(walks)}" for walks in (here, there)]
    axis = int(np.argmax(np.abs(COMMANDS[command])))
    a, b = means[0][axis], means[1][axis]
    difference = f"{100.0 * (a - b) / b:+.0f} %" if abs(b) > SLOW else f"{1e3 * (a - b):+.0f} mm/s"
    if axis == 2 and abs(b) <= SLOW:
        difference = f"{a - b:+.3f} rad/s"
    return f"| {what} | {command} | {cells[0]} | {fallen[0]} | {cells[1]} | {fallen[1]} | {difference} |"


def main() -> None:
    """Simulate all walks and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("policies", nargs="*", help="names in policies.yaml, or NAME=ROBOT=FILE; default all of it")
    parser.add_argument("--sources", type=Path, metavar="FOLDER", help="folder with the clones of policies.yaml")
    parser.add_argument("--prepare", action="store_true", help="only prepare robots and files, and print the commands")
    parser.add_argument("--commands", nargs="*", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--seeds", type=int, default=1, help="starts; the first one has no noise")
    parser.add_argument("--duration", type=float, default=13.0, help=f"of a walk [s], judged from {SETTLED:g} s on")
    parser.add_argument("--physics-dt", type=float, help="physics step of bipedsim [s]; default that of the list")
    parser.add_argument(
        "--solref", type=float, default=0.005, help="time constant of MuJoCo's contacts [s]; 0 for its soft default"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON of every walk, and the table beside it")
    args = parser.parse_args()
    found = policies(args.policies, args.sources)
    if args.physics_dt:
        found = [replace(policy, physics_dt=args.physics_dt) for policy in found]
    if args.prepare:
        print(*(policy.command for policy in found), sep="\n")
        return
    rows = [(policy, command) for policy in found for command in args.commands]
    jobs = [(*each, seed, args.duration, args.solref) for each in rows for seed in range(args.seeds)]
    table = [
        "| policy | command | bipedsim: vx, vy, wz | force | fell | MuJoCo: vx, vy, wz | force | fell | difference |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    print(*table, sep="\n")
    results: dict[str, list[tuple[Walk, Walk]]] = {}
    with ProcessPoolExecutor(args.jobs) as pool:
        pairs = pool.map(walk_in_both, jobs)
        for policy, command in rows:
            walks = [next(pairs) for _ in range(args.seeds)]
            results[f"{policy.name}, {command}"] = walks
            here, there = ([pair[side] for pair in walks] for side in (0, 1))
            table.append(row(policy.name, command, here, there))
            print(table[-1], flush=True)
    if args.output:
        plain = {what: [[vars(each) for each in pair] for pair in pairs] for what, pairs in results.items()}
        args.output.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
        about = f"{args.seeds} starts each, {args.duration:g} s, time constant of MuJoCo's contacts {args.solref:g} s; "
        about += "velocities in m/s and rad/s, forces over 20 ms in weights"
        args.output.with_suffix(".md").write_text("\n".join([about, "", *table]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
