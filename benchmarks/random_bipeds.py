"""Let random bipeds fall among objects under every contact model: `python benchmarks/random_bipeds.py --help`.

A biped is a box on two legs with five or six joints each. Masses, lengths, limits and the soles of 3 to 12 vertices are
random. It falls without torques, tilted and spinning, together with up to three thrown objects. The checks are
independent of the simulator: energy by pinocchio's mass matrix, depths by coal's distances, times by the process clock.
In addition, the simulator's monitors check each step (`bipedsim.sim.monitors`). The same seeds give the same bipeds.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import coal
import numpy as np
import pinocchio as pin
import yaml
from tqdm import tqdm

from bipedsim.contact import CONTACT_MODELS
from bipedsim.errors import ConfigError, DivergenceError
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import STEP_BUDGET, Array
from bipedsim.objects import ObjectConfig
from bipedsim.runs import WorkerPool
from bipedsim.sim import MONITORS, Simulator

STEP = 1e-3
SECONDS = 3.0
WARM = 20
"""Number of initial steps whose time is not checked, because their arrays are used for the first time."""
LONGEST = 0.02
"""Maximum CPU time of a step [s]."""
BALANCE = 1e-9
"""Maximum momentum error of a step without sub-steps, relative to its largest term."""
DEEPEST = 1e-3
"""Maximum depth of a body at rest in the ground or in another body [m]."""
AT_REST = 0.01
"""Maximum speed of everything over the last tenth of a run for it to be at rest [m/s, rad/s]."""
GAIN = 0.01
"""Maximum energy increase, relative to the initial energy of robot and objects above the ground."""
EVERY = 5
"""Number of steps between two checks of the energy."""
GROUND = "the ground"


@dataclass
class Outcome:
    """Results of one biped.

    Attributes:
        number, model: Number of the biped, and contact model.
        steps, unresolved: Number of physics steps, and of those without a solution.
        slowest: CPU time of the slowest step [s].
        operations: Maximum part of its operation budget that a step used.
        spent: Number of steps that used more than half of their budget.
        balance: Largest momentum error of a step without sub-steps, relative to its largest term.
        gain: Largest energy increase since the start, relative to the initial energy.
        rests: Whether everything was at rest at the end.
        depth, where: Largest final depth of a body in the ground or in another one [m], and their names.
        violations: Failed checks.
    """

    number: int
    model: str
    steps: int = 0
    unresolved: int = 0
    slowest: float = 0.0
    operations: int = 0
    spent: int = 0
    balance: float = 0.0
    gain: float = 0.0
    rests: bool = False
    depth: float = 0.0
    where: str = ""
    violations: list[str] = field(default_factory=list)


def _link(name: str, mass: float, size: Array, z: float, geometry: str = "") -> str:
    """Return a link with the inertia of a box of ``size`` (3,) and with its geometry, both at height ``z``."""
    ixx, iyy, izz = mass / 12.0 * (size @ size - size**2)
    origin = f'<origin xyz="0 0 {z}"/>'
    inertia = f'<inertia ixx="{ixx}" ixy="0" ixz="0" iyy="{iyy}" iyz="0" izz="{izz}"/>'
    shape = f"<collision>{origin}<geometry>{geometry}</geometry></collision>" if geometry else ""
    return f'<link name="{name}"><inertial>{origin}<mass value="{mass}"/>{inertia}</inertial>{shape}</link>'


def _box(size: Array) -> str:
    return f'<box size="{size[0]} {size[1]} {size[2]}"/>'


def sole(rng: np.random.Generator, length: float, width: float) -> Array:
    """Return the vertices (3 to 12, 2) of a convex sole, counter-clockwise [m]."""
    n = int(rng.integers(3, 13))
    angle = 2.0 * np.pi / n * (np.arange(n) + rng.uniform(0.0, 0.7, n))
    return 0.5 * np.column_stack([length * np.cos(angle), width * np.sin(angle)])


def write_biped(rng: np.random.Generator, folder: Path) -> Path:
    """Write a random biped and return the path of its robot.yaml."""
    mass, leg = float(np.exp(rng.uniform(np.log(4.0), np.log(120.0)))), rng.uniform(0.2, 1.0)
    fractions = rng.dirichlet([8.0, 4.0, 3.0, 1.0])
    trunk, thigh, shank, foot = mass * fractions * [1.0, 0.5, 0.5, 0.5]
    hip, knuckle = 0.02 * mass, np.full(3, 0.05 * leg + 0.02)
    size = leg * rng.uniform([0.2, 0.3, 0.3], [0.5, 0.6, 0.9])
    upper = rng.uniform(0.4, 0.6) * leg
    lower, radius = leg - upper, leg * rng.uniform(0.04, 0.09)
    block = leg * rng.uniform([0.2, 0.1, 0.04], [0.45, 0.2, 0.1])
    effort = 3.0 * mass * leg
    # Entries: name, child link, distance below the parent, axis and limits. Half of the bipeds have no yaw joint.
    chain = [
        ("hip_yaw", "y", 0.0, "0 0 1", (-0.6, 0.6)),
        ("hip_roll", "h", 0.0, "1 0 0", (-0.6, 0.6)),
        ("hip_pitch", "t", 0.0, "0 1 0", (-1.8, 1.0)),
        ("knee", "s", upper, "0 1 0", (0.0, 2.4)),
        ("ankle_pitch", "a", lower, "0 1 0", (-1.2, 1.0)),
        ("ankle_roll", "f", 0.0, "1 0 0", (-0.6, 0.6)),
    ][int(rng.random() < 0.5) :]
    parts = [_link("base", trunk, size, 0.5 * size[2], _box(size))]
    vertices = sole(rng, block[0], block[1])
    for side, y in (("l", 0.5 * size[1]), ("r", -0.5 * size[1])):
        for name, mass_of, length in (("t", thigh, upper), ("s", shank, lower)):
            size_of_box = np.array([2.0 * radius, 2.0 * radius, length])
            cylinder = f'<cylinder radius="{radius}" length="{0.7 * length}"/>'
            parts.append(_link(f"{side}_{name}", mass_of, size_of_box, -0.5 * length, cylinder))
        parts.append(_link(f"{side}_f", foot, block, -0.5 * block[2], _box(block)))
        parent = "base"
        for name, child, below, axis, (low, high) in chain:
            if child in "yha":
                parts.append(_link(f"{side}_{child}", hip, knuckle, 0.0))
            origin = f"0 {y} 0" if parent == "base" else f"0 0 {-below}"
            parts.append(
                f'<joint name="{side}_{name}" type="revolute"><parent link="{parent}"/><child link="{side}_{child}"/>'
                f'<origin xyz="{origin}"/><axis xyz="{axis}"/>'
                f'<limit lower="{low}" upper="{high}" effort="{effort}" velocity="30"/></joint>'
            )
            parent = f"{side}_{child}"
    mu = float(np.exp(rng.uniform(np.log(0.05), np.log(2.0))))
    contact = {"friction_static": mu, "friction_dynamic": float(mu * rng.uniform(0.6, 1.0))}
    # The sole is farther below the block than OF_SOLE of the simulator, so the block is always a separate body.
    place = {"xyz": [0.0, 0.0, -float(block[2]) - 0.006]}
    mirrored = (vertices * [1.0, -1.0])[::-1]
    description = {
        "name": "biped",
        "description": "a random biped",
        "urdf": "robot.urdf",
        "feet": {
            "left": {"frame": "l_f", "placement": place, "vertices": vertices.tolist(), **contact},
            "right": {"frame": "r_f", "placement": place, "vertices": mirrored.tolist(), **contact},
        },
        "imu": {"frame": "base"},
        "armature": {".*": float(1e-4 * mass * leg**2 * rng.choice([0.0, 1.0, 10.0]))},
        "joint_damping": {".*": float(1e-3 * effort * rng.choice([0.0, 1.0, 10.0]))},
        "posture": {".*_hip_pitch": -0.3, ".*_knee": 0.6, ".*_ankle_pitch": -0.3},
    }
    if rng.random() < 0.5:
        description["self_collision"] = [["l_t", "r_t"], ["l_s", "r_s"]]
    (folder / "robot.urdf").write_text(f'<robot name="biped">{"".join(parts)}</robot>', encoding="utf-8")
    path = folder / "robot.yaml"
    path.write_text(yaml.safe_dump(description), encoding="utf-8")
    return path


def objects_beside(rng: np.random.Generator, mass: float, height: float) -> list[ObjectConfig]:
    """Return up to three objects that are thrown at the robot or start near it."""
    objects = []
    for k in range(rng.integers(0, 4)):
        size = height * rng.uniform(0.05, 0.2)
        shapes: list[dict[str, Any]] = [
            {"shape": "ball", "radius": size},
            {"shape": "box", "size": tuple(size * rng.uniform(0.5, 2.0, 3))},
            {"shape": "cylinder", "radius": size, "length": size * rng.uniform(0.3, 3.0)},
        ]
        angle, distance = rng.uniform(-np.pi, np.pi), height * rng.uniform(0.8, 2.0)
        direction = np.array([np.cos(angle), np.sin(angle), 0.0])
        objects.append(
            ObjectConfig(
                name=f"object_{k}",
                mass=mass * float(10.0 ** rng.uniform(-2.5, 0.0)),
                position=tuple(distance * direction + [0.0, 0.0, 2.0 * size + 0.5 * height * k]),
                rpy=tuple(rng.uniform(-3.0, 3.0, 3)),
                velocity=tuple(rng.uniform(0.0, 6.0) * -direction + [0.0, 0.0, rng.uniform(-1.0, 2.0)]),
                angular_velocity=tuple(rng.uniform(-15.0, 15.0, 3)),
                friction_static=float(np.exp(rng.uniform(np.log(0.05), np.log(2.0)))),
                restitution=float(rng.choice([0.0, 0.5])),
                **shapes[rng.integers(3)],
            )
        )
    return objects


def sole_height(robot: Robot, q: Array) -> float:
    """Return the height of the lowest vertex of all soles at ``q`` (nq,) [m]."""
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    return min(
        float((data.oMi[sole.joint_id] * sole.placement_joint_sole).act(np.array([x, y, 0.0]))[2])
        for sole in robot.soles
        for x, y in sole.vertices
    )


def thrown(number: int, model: str, folder: Path) -> Simulator:
    """Return biped ``number`` at its start under a contact model, with all kernels loaded."""
    rng = np.random.default_rng(number)
    robot = load_robot(write_biped(rng, folder))
    height = float(robot.q_nominal[2])
    hardware = {"stop_restitution": float(rng.choice([0.0, 0.5])), "body_restitution": float(rng.choice([0.0, 0.4]))}
    objects = objects_beside(rng, robot.mass, height)
    q, v = robot.q_nominal.copy(), np.concatenate([rng.normal(size=6), 2.0 * rng.normal(size=robot.nu)])
    # Half of the bipeds are dropped with small velocities, the others are thrown.
    if rng.random() < 0.5:
        v *= 0.2
    rotation = pin.exp3(rng.normal(size=3) * rng.choice([0.3, 1.0]))
    q[3:7] = pin.Quaternion(rotation).coeffs()
    q[2] += rng.uniform(0.0, 0.5) * height
    q[2] -= min(sole_height(robot, q), 0.0)
    while True:
        try:
            sim = Simulator(robot, contact=model, physics_dt=STEP, hardware=hardware, objects=objects)
            break
        except ConfigError:
            # Two objects overlap, so one is removed.
            objects.pop()
    while True:
        try:
            sim.watch(lambda *_: None)
            sim.warm_up()
            sim.reset(q, v)
            return sim
        except ConfigError:
            # The robot overlaps the ground or an object, so it starts higher.
            q[2] += 0.1 * height


class Judge:
    """Compute energy and depths of a simulation with pinocchio and coal, independently of the simulator."""

    def __init__(self, sim: Simulator, folder: Path) -> None:
        self._sim = sim
        self._model: pin.Model = sim.plant.model
        self._data = self._model.createData()
        urdf = str(folder / "robot.urdf")
        self._geometry = pin.buildGeomFromUrdf(self._model, urdf, pin.GeometryType.COLLISION)
        self._places = pin.GeometryData(self._geometry)
        self._shapes: list[Any] = [] if sim.objects is None else [_coal(config) for config in sim.objects.configs]
        self._floor = coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
        self.begun = self.energy()

    def energy(self) -> float:
        """Return kinetic and potential energy of robot, rotors and objects above the ground [J]."""
        sim = self._sim
        M = pin.crba(self._model, self._data, sim.q)
        M = np.triu(M) + np.triu(M, 1).T
        total = 0.5 * sim.v @ M @ sim.v + pin.computePotentialEnergy(self._model, self._data, sim.q)
        if sim.objects is not None:
            b = sim.objects.world.bodies
            for k in range(len(sim.objects.names)):
                spin = b.R[k].T @ b.w[k]
                total += 0.5 * b.mass[k] * b.v[k] @ b.v[k] + 0.5 * spin @ b.inertia[k] @ spin
                total += 9.81 * b.mass[k] * b.position[k, 2]
        return float(total)

    def deepest(self) -> tuple[float, str]:
        """Return the largest depth of a body in the ground or another one [m], and their names.

        Pairs of the robot's own bodies are excluded.
        """
        sim = self._sim
        pin.updateGeometryPlacements(self._model, self._data, self._geometry, self._places, sim.q)
        named = [
            (geometry_object.name, geometry_object.geometry, self._places.oMg[i])
            for i, geometry_object in enumerate(self._geometry.geometryObjects)
        ]
        poses = np.zeros((0, 7)) if sim.objects is None else sim.objects.states()[:, :7]
        free = [
            (config.name, shape, pin.XYZQUATToSE3(pose))
            for config, shape, pose in zip(sim.objects.configs if sim.objects else (), self._shapes, poses, strict=True)
        ]
        pairs = [(body, (GROUND, self._floor, pin.SE3.Identity())) for body in [*named, *free]]
        pairs += [(body, other_body) for body in named for other_body in free]
        pairs += [(body, other_body) for i, body in enumerate(free) for other_body in free[:i]]
        worst, where = 0.0, ""
        for (name, shape, pose), (obstacle_name, obstacle, obstacle_pose) in pairs:
            result = coal.DistanceResult()
            gap = coal.distance(
                shape,
                coal.Transform3s(pose.rotation, pose.translation),
                obstacle,
                coal.Transform3s(obstacle_pose.rotation, obstacle_pose.translation),
                coal.DistanceRequest(),
                result,
            )
            if -gap > worst:
                worst, where = -gap, f"{name} in {obstacle_name}"
        return worst, where


def _coal(config: ObjectConfig) -> Any:
    if config.shape == "box":
        return coal.Box(*config.size)
    assert config.radius is not None
    return coal.Sphere(config.radius) if config.shape == "ball" else coal.Cylinder(config.radius, config.length)


def fall(number: int, model: str, seconds: float = SECONDS) -> Outcome:
    """Simulate biped ``number`` under the contact model ``model`` and return the results."""
    outcome = Outcome(number, model)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sim = thrown(number, model, folder)
        judge = Judge(sim, folder)
    assert sim.monitors is not None
    worst = sim.monitors._monitored.worst
    torque = np.zeros(sim.robot.nu)
    steps = round(seconds / STEP)
    max_speed, times = 0.0, np.zeros(steps)
    for k in range(steps):
        previous_worst = worst[0]
        worst[0] = -np.inf
        step_start = time.process_time()
        try:
            sim.advance(torque)
        except DivergenceError as error:
            outcome.violations.append(f"diverged at {sim.t:.3f} s: {error}")
            break
        times[k] = time.process_time() - step_start
        outcome.operations = max(outcome.operations, sim.operations)
        outcome.spent += sim.operations > 0.5 * STEP_BUDGET
        if sim.stepper.landed == 0.0:
            outcome.balance = max(outcome.balance, float(worst[0]))
        worst[0] = max(worst[0], previous_worst)
        outcome.steps = k + 1
        if not (np.isfinite(sim.q).all() and np.isfinite(sim.v).all()):
            outcome.violations.append(f"not finite at {sim.t:.3f} s")
            break
        if k % EVERY == 0:
            outcome.gain = max(outcome.gain, judge.energy() / judge.begun - 1.0)
        if k >= 0.9 * steps:
            speeds = [sim.v] if sim.objects is None else [sim.v, sim.objects.world.bodies.v, sim.objects.world.bodies.w]
            max_speed = max(max_speed, *(float(np.abs(array).max()) for array in speeds))
    outcome.slowest = float(times[WARM:].max(initial=0.0))
    if outcome.slowest > LONGEST:
        outcome.slowest = float(faster_times(number, model, times)[WARM:].max())
    outcome.unresolved = sim.contact.unresolved
    outcome.depth, outcome.where = judge.deepest()
    outcome.rests = max_speed < AT_REST
    outcome.violations += violations(outcome)
    # The monitor of momentum is excluded, because its check above is stricter.
    outcome.violations += [
        f"{name} {figure['worst']:.3g}"
        for name, figure in sim.monitors.figures().items()
        if figure["steps_beyond"] and name != MONITORS[0]
    ]
    return outcome


def faster_times(number: int, model: str, times: Array) -> Array:
    """Repeat a fall and return for each step the shorter of both times (N,) [s].

    Other programs displace the processor's cache. A step can then take several times longer, but rarely twice.
    """
    with tempfile.TemporaryDirectory() as name:
        sim = thrown(number, model, Path(name))
    torque, shorter = np.zeros(sim.robot.nu), times.copy()
    # Later steps are all fast, so the repetition ends at the last slow step.
    for k in range(int(np.flatnonzero(times > LONGEST)[-1]) + 1):
        step_start = time.process_time()
        sim.advance(torque)
        shorter[k] = min(times[k], time.process_time() - step_start)
    return shorter


def violations(outcome: Outcome) -> Iterator[str]:
    """Yield the failed checks."""
    if outcome.slowest > LONGEST:
        yield f"a step took {1e3 * outcome.slowest:.0f} ms"
    if outcome.balance > BALANCE:
        yield f"momentum off by {outcome.balance:.2g}"
    if outcome.gain > GAIN:
        yield f"energy {outcome.gain:.2%} above that of the start"
    if outcome.rests and outcome.depth > DEEPEST:
        yield f"{outcome.where} by {1e3 * outcome.depth:.1f} mm at rest"


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a table with a row per contact model."""
    titles = ["model", "bipeds", "steps", "unresolved", "slowest step [ms]", "budget used", "momentum"]
    titles += ["energy above the start", "at rest", "depth at rest [mm]", "with violations"]
    rows = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    for model in dict.fromkeys(outcome.model for outcome in outcomes):
        group = [outcome for outcome in outcomes if outcome.model == model]
        rest = [outcome.depth for outcome in group if outcome.rests]
        values = [
            model,
            len(group),
            sum(outcome.steps for outcome in group),
            sum(outcome.unresolved for outcome in group),
            f"{1e3 * max(outcome.slowest for outcome in group):.1f}",
            f"{max(outcome.operations for outcome in group) / STEP_BUDGET:.0%}",
            f"{max(outcome.balance for outcome in group):.1e}",
            f"{max(outcome.gain for outcome in group):.2%}",
            len(rest),
            f"{1e3 * max(rest, default=0.0):.2f}",
            sum(bool(outcome.violations) for outcome in group),
        ]
        rows.append("| " + " | ".join(map(str, values)) + " |")
    return "\n".join(rows)


def main() -> int:
    """Simulate all falls. Return 1 if a check failed, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bipeds", type=int, default=300, metavar="N", help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="number of the first (default: %(default)s)")
    parser.add_argument(
        "--model", nargs="+", default=list(CONTACT_MODELS), choices=list(CONTACT_MODELS), help="all by default"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the outcomes as JSON, and a table beside it")
    args = parser.parse_args()
    outcomes: list[Outcome] = []
    work = [(number, model) for number in range(args.seed, args.seed + args.bipeds) for model in args.model]
    with WorkerPool(args.jobs) as pool:
        jobs = [pool.submit(fall, *item, args.seconds) for item in work]
        for job in tqdm(as_completed(jobs), total=len(jobs), unit="fall"):
            outcome = job.result()
            outcomes.append(outcome)
            if outcome.violations:
                repeat = f"--seed {outcome.number} --bipeds 1 --model {outcome.model}"
                tqdm.write(f"{repeat}: {'; '.join(outcome.violations)}")
    outcomes.sort(key=lambda outcome: (args.model.index(outcome.model), outcome.number))
    print(table(outcomes))
    if args.output is not None:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1) + "\n", encoding="utf-8")
        args.output.with_suffix(".md").write_text(table(outcomes) + "\n", encoding="utf-8")
    return int(any(outcome.violations for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
