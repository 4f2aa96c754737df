"""Identify robots with hidden numbers and count the intervals that contain them: `--help` lists the settings.

Each draw hides masses, centres of mass, rotor inertia, friction, gains, offsets and a delay of 1 to 4 ms in a robot. It
records 10 s each of a squat, a sway and a walk with realistic noise, identifies the robot from them, and predicts a
walk at another speed. With ``--engine bipedsim-fine`` the steps of the physics are shorter than those of the
prediction, as those of a real robot are. With ``--engine mujoco`` the robot of examples/other_robot is recorded: soft
contact, other friction, hidden masses, rotor inertia, friction and delay, without noise.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from tqdm import tqdm

from bipedsim import make_controller
from bipedsim.config import RunConfig, yaml_value
from bipedsim.model import Robot, body_links, load_robot
from bipedsim.recording import Recording
from bipedsim.runs import run
from bipedsim.sim import Observation
from bipedsim_studies.gap import HORIZONS, rms_errors
from bipedsim_studies.identify.delay import command_delay
from bipedsim_studies.identify.estimation import Estimate, estimate
from bipedsim_studies.identify.judgement import DESCRIBED, HORIZON, IDENTIFIED, Judgement
from bipedsim_studies.identify.noise import sensor_noise
from bipedsim_studies.identify.overlay import Measured, overlay
from bipedsim_studies.identify.signals import signals_of

ROOT = Path(__file__).resolve().parents[1]
BIPEDSIM, FINE, MUJOCO = "bipedsim", "bipedsim-fine", "mujoco"
FINE_STEP = 2.5e-4
"""Physics step of the fine engine [s]."""
MOTIONS = {"squat": "posture", "sway": "posture", "walk": "zmp"}
"""Scenario of each recording to its controller."""
SECONDS = 10.0
"""Length of a recording [s]."""
DT = 1e-3
SPEED, OTHER_SPEED = 0.3, 0.2
"""Walking speed of the recording for the estimate, and of the one that is predicted [m/s]."""
RELATIVE = ("mass", "armature", "coulomb_friction")
"""Kinds whose errors are given as shares of the true number."""
_ASKED = {"mass": 0.02, "com": 0.003, "coulomb_friction": 0.1, "armature": 0.1}
ASKED = {
    BIPEDSIM: _ASKED,
    FINE: _ASKED,
    MUJOCO: {"mass": 0.15, "coulomb_friction": 0.15, "armature": 0.15},
}
"""Largest error that an identified number may have, in the terms of the tables."""
DELAY_ASKED = 3e-4
"""Largest error of the delay [s]."""


def hidden(robot: Robot, seed: int) -> dict[str, Any]:
    """Draw hardware with hidden numbers."""
    rng = np.random.default_rng(seed)
    joints = robot.joint_names
    bodies = {}
    for joint, link in body_links(robot.model).items():
        described = robot.model.inertias[joint]
        if joint and described.mass > 0.01 * robot.mass:
            com = described.lever + 0.02 * rng.uniform(-1.0, 1.0, 3)
            bodies[link] = {"mass": described.mass * rng.uniform(0.9, 1.1), "com": com.tolist()}

    def per_joint(low: float, high: float) -> dict[str, float]:
        return {joint: float(rng.uniform(low, high)) for joint in joints}

    shares = per_joint(0.7, 1.3)
    armature = dict(zip(joints, robot.model.armature[robot.idx_v], strict=True))
    return {
        "preset": "realistic",
        "bodies": bodies,
        "armature": {joint: float(share * armature[joint]) for joint, share in shares.items()},
        "coulomb_friction": per_joint(0.5, 1.5),
        "viscous_friction": per_joint(0.0, 1.0),
        "torque_gain": per_joint(0.98, 1.02),
        "torque_offset": per_joint(-0.5, 0.5),
        "encoder_offset": per_joint(-0.003, 0.003),
        "command_delay": float(rng.integers(1, 5)) * 1e-3,
        "imu_rotation": rng.uniform(-0.004, 0.004, 3).tolist(),
        "accelerometer_bias": 0.0,
        "accelerometer_offset": rng.uniform(-0.05, 0.05, 3).tolist(),
        "force_bias": 0.0,
        "torque_bias": 0.0,
        "foot_wrench_offset": {
            sole.name: [*rng.uniform(-3.0, 3.0, 3), *rng.uniform(-0.3, 0.3, 3)] for sole in robot.soles
        },
    }


def truth(robot: Robot, hardware: Mapping[str, Any], kind: str, owner: str, component: str) -> float | None:
    """Return the true number, in the terms of the estimate; None if it is unknown."""
    if kind in ("force_offset", "moment_offset"):
        return float(hardware["foot_wrench_offset"][owner]["xyz".index(component) + 3 * (kind == "moment_offset")])
    if kind in hardware:
        return float(hardware[kind][owner] if owner else hardware[kind]["xyz".index(component)])
    joint = next((joint for joint, link in body_links(robot.model).items() if link == owner), 0)
    described = robot.model.inertias[joint]
    body = hardware["bodies"].get(owner, {"mass": described.mass, "com": described.lever})
    if kind == "mass":
        return float(np.log(body["mass"] / described.mass))
    if kind == "com":
        axis = "xyz".index(component)
        return float(body["com"][axis] - described.lever[axis])
    return 0.0 if kind.endswith("_delay") else None


class Simulated:
    """A robot of our simulator with hidden hardware."""

    def __init__(self, robot: str, seed: int, physics_dt: float | None) -> None:
        self.robot = load_robot(robot)
        self._name, self._hardware, self._physics_dt = robot, hidden(self.robot, seed), physics_dt
        # Each recording has noise of its own, as those of a real robot have.
        self._seeds = np.random.default_rng([seed, 1])
        # The measurements are one period old, which is a part of the delay that can be seen.
        self.delay = self._hardware["command_delay"] + DT

    def record(self, motion: str, speed: float) -> Recording:
        """Return a recording of one motion."""
        scenario = motion
        with tempfile.TemporaryDirectory() as folder:
            if motion == "walk":
                schedule = [{"at": 1.0, "vx": speed}]
                scenario = str(Path(folder, "walk.yaml"))
                Path(scenario).write_text(yaml.safe_dump({"description": motion, "velocity": schedule}))
            settings = RunConfig(
                robot=self._name,
                scenario=scenario,
                controller=MOTIONS[motion],
                hardware=self._hardware,
                duration=SECONDS,
                physics_dt=self._physics_dt,
                seed=int(self._seeds.integers(2**31)),
            )
            return run(settings)[0]

    def truth(self, kind: str, owner: str, component: str) -> float | None:
        """Return a hidden number; None if it is unknown."""
        return truth(self.robot, self._hardware, kind, owner, component)


class OtherEngine:
    """A robot that MuJoCo simulates, whose commands are delayed."""

    def __init__(self, robot: str, seed: int) -> None:
        sys.path.insert(0, str(ROOT / "examples" / "other_robot"))
        module = importlib.import_module("mujoco_plant")
        self.robot = load_robot(robot)
        self._plant = module.Plant(self.robot, DT, module.PlantParams(hidden=seed + 1))
        self._ticks = int(np.random.default_rng(seed).integers(1, 5))
        self.delay = self._ticks * DT

    def record(self, motion: str, speed: float) -> Recording:
        """Return a recording of one motion."""
        robot, walks = self.robot, motion == "walk"
        controller: Any = make_controller(MOTIONS[motion], robot, {} if walks else {"mode": motion}, DT)
        observation: Observation = self._plant.reset()
        controller.reset(observation)
        rows = round(SECONDS / DT)
        recording = Recording.empty(rows, robot.joint_names, [sole.name for sole in robot.soles], robot.name)
        held = deque([np.zeros(robot.nu)] * self._ticks)
        for k in range(rows):
            if walks and k == round(1.0 / DT):
                controller.set_velocity(speed, 0.0, 0.0)
            recording.joint_command[k] = controller.update(observation).tau_joint
            held.append(recording.joint_command[k].copy())
            observation = self._plant.step(held.popleft())
            recording.t[k] = observation.t
            recording.joint_position[k] = observation.joint_position
            recording.joint_velocity[k] = observation.joint_velocity
            recording.joint_effort[k] = observation.joint_effort
            recording.ankle_wrench[k] = observation.foot_wrench
            recording.imu_orientation[k] = observation.imu_orientation
            recording.imu_angular_velocity[k] = observation.imu_angular_velocity
            recording.imu_linear_acceleration[k] = observation.imu_linear_acceleration
        return recording

    def truth(self, kind: str, owner: str, component: str) -> float | None:
        """Return a hidden number; None if it is unknown."""
        model = self._plant.model
        of_joints = {
            "armature": model.dof_armature,
            "viscous_friction": model.dof_damping,
            "coulomb_friction": model.dof_frictionloss,
        }
        if kind in of_joints:
            return float(of_joints[kind][model.joint(owner).dofadr[0]])
        if kind == "torque_gain":
            return 1.0
        if kind == "mass":
            joint = next(joint for joint, link in body_links(self.robot.model).items() if link == owner)
            return float(np.log(model.body(owner).mass[0] / self.robot.model.inertias[joint].mass))
        return 0.0 if kind.endswith(("_delay", "_offset")) or kind == "imu_rotation" else None


def draw(engine: str, name: str, seed: int) -> dict[str, Any]:
    """Identify one robot; return its numbers with the truth, the delay and the errors of predictions."""
    step = FINE_STEP if engine == FINE else None
    plant = OtherEngine(name, seed) if engine == MUJOCO else Simulated(name, seed, step)
    robot, begin = plant.robot, time.process_time()
    recordings = [plant.record(motion, SPEED) for motion in MOTIONS]
    recorded = time.process_time()
    result = estimate(robot, [signals_of(each, robot) for each in recordings])
    estimated = time.process_time()
    delays = [found for found in map(command_delay, recordings) if found is not None]
    delay = max(delays, key=lambda found: found[1], default=(float("nan"), 0.0))[0]
    text = overlay(
        robot, result, Measured([Path(motion) for motion in MOTIONS], delay, sensor_noise(recordings, robot), None)
    )
    judgement = Judgement.of(Path("other walk"), plant.record("walk", OTHER_SPEED), robot, yaml_value(text))
    at = HORIZONS.index(HORIZON)
    predictions = {
        quantity: [float(errors[label][at]) for label in (DESCRIBED, IDENTIFIED)]
        for quantity, errors in rms_errors(judgement.gaps).items()
    }
    return {
        "engine": engine,
        "robot": name,
        "seed": seed,
        "converged": result.converged,
        "identified": int(result.identified.sum()),
        "numbers": len(result.values),
        "known": list(known_numbers(plant, result)),
        "delay": [plant.delay, delay],
        "predictions": predictions,
        "seconds": {"record": recorded - begin, "estimate": estimated - recorded},
    }


def known_numbers(plant: Simulated | OtherEngine, result: Estimate) -> Iterator[dict[str, Any]]:
    """Yield each identified number whose truth is known."""
    p = result.parameters
    for i in np.flatnonzero(result.identified):
        true = plant.truth(p.kinds[i], p.owners[i], p.components[i])
        if true is not None:
            value, half = float(result.values[i]), float(result.half_width[i])
            yield {"label": p.label(int(i)), "kind": p.kinds[i], "true": true, "value": value, "half_width": half}


def error(number: Mapping[str, Any]) -> float:
    """Return the error of a number in the terms of the tables; that of a mass is a logarithm of a ratio already."""
    size = abs(number["value"] - number["true"])
    relative = number["kind"] in RELATIVE and number["kind"] != "mass"
    return float(size / abs(number["true"]) if relative else size)


def covered(numbers: Sequence[Mapping[str, Any]]) -> str:
    """Return how many of the intervals contain the truth, in words."""
    if not numbers:
        return "-"
    inside = sum(abs(each["value"] - each["true"]) <= each["half_width"] for each in numbers)
    return f"{100 * inside / len(numbers):.1f} % of {len(numbers)}"


def of_robot(draws: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the row of one robot and engine."""
    known = [number for each in draws for number in each["known"]]
    delay = [abs(found - true) for true, found in (each["delay"] for each in draws)]
    before, after = np.mean([each["predictions"]["joint position"] for each in draws], axis=0)
    worst = max((abs(each["value"] - each["true"]) / each["half_width"] for each in known), default=0.0)
    return (
        draws[0]["robot"],
        draws[0]["engine"],
        str(len(draws)),
        str(sum(each["converged"] for each in draws)),
        f"{np.mean([each['identified'] for each in draws]):.0f} of {draws[0]['numbers']}",
        covered(known),
        f"{worst:.1f}",
        f"{1e3 * np.nanmax(delay):.2f}",
        str(sum(not each <= DELAY_ASKED for each in delay)),
        f"{before:.3g}, {after:.3g}",
        f"{np.median([each['seconds']['estimate'] for each in draws]):.0f}",
    )


def of_kinds(draws: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each kind of number of one robot and engine."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for each in draws:
        for number in each["known"]:
            kinds.setdefault(number["kind"], []).append(number)
    for kind, numbers in kinds.items():
        errors = [error(number) for number in numbers]
        asked = ASKED[draws[0]["engine"]].get(kind)
        yield (
            draws[0]["robot"],
            draws[0]["engine"],
            kind,
            f"{len(numbers) / len(draws):.1f}",
            covered(numbers),
            f"{np.sqrt(np.mean(np.square(errors))):.2g}",
            f"{max(errors):.2g}",
            "" if asked is None else f"{asked:g}",
            "" if asked is None else str(sum(value > asked for value in errors)),
        )


ROBOT_HEADS = (
    "robot",
    "engine",
    "draws",
    "converged",
    "identified",
    "intervals with the truth",
    "largest error [half widths]",
    "largest error of the delay [ms]",
    f"delays beyond {1e3 * DELAY_ASKED:g} ms, or not found",
    "joint angles after 200 ms: described, identified [rad]",
    "estimate [s of CPU]",
)
KIND_HEADS = (
    "robot",
    "engine",
    "kind",
    "per draw",
    "intervals with the truth",
    "rms error",
    "largest error",
    "asked",
    "beyond",
)


def report(draws: Sequence[Mapping[str, Any]]) -> str:
    """Return the tables of the report."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for each in draws:
        groups.setdefault((each["engine"], each["robot"]), []).append(each)

    def table(heads: Sequence[str], rows: Iterator[tuple[str, ...]]) -> list[str]:
        return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]

    return "\n".join(
        [
            "# Identified robots with hidden numbers",
            "",
            *table(ROBOT_HEADS, (of_robot(each) for each in groups.values())),
            "",
            "Identified numbers whose truth is known; errors of masses, rotor inertia and dry friction are shares:",
            "",
            *table(KIND_HEADS, (row for each in groups.values() for row in of_kinds(each))),
            "",
        ]
    )


def main() -> None:
    """Identify some robots and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", action="append", help="robot; repeat it for several (default: biped14)")
    parser.add_argument("--engine", choices=(BIPEDSIM, FINE, MUJOCO), default=BIPEDSIM)
    parser.add_argument("--draws", type=int, default=20, help="robots to draw of each kind (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="default: one per core")
    parser.add_argument(
        "--output", type=Path, required=True, help="JSON with all draws, which a further call completes"
    )
    args = parser.parse_args()
    draws = json.loads(args.output.read_text())["draws"] if args.output.exists() else []
    done = {(each["engine"], each["robot"], each["seed"]) for each in draws}
    wanted = [(args.engine, robot, seed) for seed in range(args.draws) for robot in args.robot or ["biped14"]]
    with ProcessPoolExecutor(args.processes) as pool:
        pending = {pool.submit(draw, *each): each for each in wanted if each not in done}
        for future in tqdm(as_completed(pending), total=len(pending), unit="robot"):
            try:
                draws.append(future.result())
            except Exception as failure:
                raise RuntimeError("draw {} of {} on {}".format(*reversed(pending[future]))) from failure
            draws.sort(key=lambda each: (each["engine"], each["robot"], each["seed"]))
            args.output.write_text(json.dumps({"draws": draws}, indent=1))
    text = report(draws)
    args.output.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
