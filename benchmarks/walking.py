"""Measure the performance of the walking controller: `python benchmarks/walking.py --help`.

Every row is one run of the `zmp` controller without ROS, evaluated with the true state of the simulation. Rows run in
separate processes. The same seed gives the same results.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from tqdm import tqdm

from bipedsim.contact import CONTACT_MODELS
from bipedsim.control import make_controller
from bipedsim.control.walking import ZmpController
from bipedsim.errors import DivergenceError
from bipedsim.ground import Ground, Patch, get_ground, tiles
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.runs import WorkerPool
from bipedsim.sim import Simulator

Command = tuple[float, float, float, float]

SPEEDS = {"biped14": 1.2, "talos": 0.9, "g1": 0.8}
"""Commanded velocity of the straight walks [m/s]."""
ROUGH = {"biped14": 0.5, "talos": 0.45}
"""Commanded velocity on slopes and tiles [m/s]."""
START = 1.2
"""Time of the first command [s]."""
IMPACT = 0.05
"""Time after an impact, touchdown or lift-off in which the ZMP is not evaluated [s]."""
STRAIGHT = 10.0
"""Length of the walk whose errors are evaluated [m]."""


@dataclass(frozen=True)
class Case:
    """Settings of one run.

    Attributes:
        what: Description, for the first column.
        robot: Name of the robot.
        command: Times [s] and the velocities (vx, vy, wz) from then on.
        duration: Duration [s].
        hardware, contact, seed: Arguments of the simulator.
        ground: ``flat``; ``slope DIRECTION`` of 5 degrees; ``tiles SEED`` of up to 20 mm; ``leaning SEED`` for tiles
            of +-20 mm with a tilt of up to 5 degrees; ``slippery SEED`` for patches of mu 0.2; or a name.
        mapped: Whether the controller knows the ground, by that name.
    """

    what: str
    robot: str
    command: tuple[Command, ...]
    duration: float
    hardware: dict[str, Any] = field(default_factory=lambda: {"preset": "ideal"})
    contact: str = "one_step"
    ground: str = "flat"
    seed: int = 0
    mapped: bool = False


def straight(robot: str, speed: float, seconds: float) -> tuple[tuple[Command, ...], float]:
    """Return command and duration of a walk straight ahead for ``seconds``, followed by a stop."""
    return ((START, speed, 0.0, 0.0), (START + seconds, 0.0, 0.0, 0.0)), START + seconds + 4.0 + 4.0 * abs(speed)


def cases(seed: int) -> Iterator[Case]:
    """Yield the standard cases."""
    for robot, speed in SPEEDS.items():
        for preset in ("ideal", "realistic"):
            hardware = {"preset": preset}
            yield Case(f"50 steps, {preset}", robot, *straight(robot, speed, 42.0), hardware, seed=seed)
    for robot, speed in SPEEDS.items():
        velocities = ((START, 0.5 * speed, 0.0, 0.0), (4.0, 0.2, 0.0, 0.25), (12.0, 0.0, 0.0, 0.0))
        yield Case("turn", robot, velocities, 16.0)
        velocities = ((START, 0.0, 0.1, 0.0), (6.0, 0.0, -0.1, 0.0), (11.0, 0.0, 0.0, 0.0))
        yield Case("side-steps", robot, velocities, 15.0)
        yield Case("backwards", robot, *straight(robot, -0.2, 6.0))
    for robot, speed in ROUGH.items():
        for direction, name in ((0, "up"), (180, "down"), (90, "across")):
            yield Case(f"slope {name}", robot, *straight(robot, speed, 12.0), ground=f"slope {direction}")
        for number in range(3):
            yield Case(f"tiles {number}", robot, *straight(robot, speed, 14.0), ground=f"tiles {number}")
        walk = straight(robot, SPEEDS[robot], 16.0)
        for name, change in (
            ("5 ms of delay", {"measurement_delay": 0.002, "command_delay": 0.003}),
            ("mass +10 %", {"mass_scale": 1.1}),
            ("mass -10 %", {"mass_scale": 0.9}),
            ("CoM +20 mm", {"com_shift": [0.02, 0.0, 0.0]}),
            ("CoM -20 mm", {"com_shift": [-0.02, 0.0, 0.0]}),
            ("CoM 20 mm left", {"com_shift": [0.0, 0.02, 0.0]}),
        ):
            yield Case(name, robot, *walk, {"preset": "realistic", **change}, seed=seed)
    for contact in CONTACT_MODELS:
        yield Case(f"under {contact}", "biped14", *straight("biped14", 0.6, 10.0), contact=contact)


def stairs(seeds: int) -> Iterator[Case]:
    """Yield walks with a map up and down ten steps of 0.15 m (G1: 0.1 m), for the given number of seeds."""
    for robot, height in (*((robot, "high") for robot in ROUGH), ("g1", "middle")):
        for description, ground in (("stairs up", f"{height}_stairs"), ("stairs down", f"{height}_stairs_down")):
            for seed in range(seeds):
                walk, hardware = straight(robot, 0.3, 21.0), {"preset": "realistic"}
                yield Case(f"{description}, seed {seed}", robot, *walk, hardware, ground=ground, seed=seed, mapped=True)


def uneven(seeds: int) -> Iterator[Case]:
    """Yield walks over ground that the controller does not know. The number of ``seeds`` is that of grounds."""
    for description, ground in (("leaning tiles", "leaning"), ("slippery patches", "slippery")):
        for robot in SPEEDS:
            for preset in ("ideal", "realistic"):
                for seed in range(seeds):
                    walk, hardware = straight(robot, 0.3, 12.0), {"preset": preset}
                    name = f"{description}, {preset}, seed {seed}"
                    yield Case(name, robot, *walk, hardware, ground=f"{ground} {seed}", seed=seed)


def slippery(seed: int) -> Ground:
    """Return a floor with slippery bands of mu 0.2. Lengths and distances are uniformly random from 0.3 to 0.8 m."""
    rng = np.random.default_rng(seed)
    patches, x = [Patch()], 0.5
    while x < 6.0:
        length = float(rng.uniform(0.3, 0.8))
        region = np.array([[0.0, -2.0], [length, -2.0], [length, 2.0], [0.0, 2.0]])
        patches.append(Patch(np.array([x, 0.0, 0.0]), region=region, friction_static=0.2, friction_dynamic=0.2))
        x += length + float(rng.uniform(0.3, 0.8))
    return Ground(tuple(patches))


def ground_of(name: str) -> Ground:
    """Return the ground with the name of a case."""
    kind, _, number = name.partition(" ")
    if kind == "slope":
        return Ground.slope(np.deg2rad(5.0), np.deg2rad(float(number)))
    if kind == "leaning":
        return tiles(0.04, 0.4, 16, 8, seed=int(number), tilt=np.deg2rad(5.0))
    if kind == "slippery":
        return slippery(int(number))
    return tiles(0.02, 0.4, 30, 8, seed=int(number)) if number else get_ground(name)


def knees(robot: Robot) -> list[int]:
    """Return the indices of the knees in q: for each leg, the joint with the largest angle in the standing posture."""
    knee_indices = []
    for joint in robot.ankle_joint_ids:
        above = set(robot.model.supports[joint])
        leg = [i for i, q in enumerate(robot.idx_q) if robot.model.getJointId(robot.joint_names[i]) in above]
        knee_indices.append(int(robot.idx_q[max(leg, key=lambda i: robot.posture[i])]))
    return knee_indices


class Log:
    """Record the quantities for the metrics in every tick of a run."""

    def __init__(self, sim: Simulator, controller: ZmpController) -> None:
        self._sim, self._controller = sim, controller
        self._knees = knees(sim.robot)
        self._loaded = np.ones(2, dtype=bool)
        self._touched = -np.inf
        self._base = sim.q[:7].copy()
        self.rows: list[tuple[float, ...]] = []
        self.start = sim.ground_truth().pose_world_sole[:, :2].mean(axis=0)
        # The controller's estimate starts at the origin, so the initial position is its offset.
        self._origin = self._base[:3] - controller.estimate.q[:3]

    def note(self, tau: Array) -> None:
        """Record a tick. ``tau`` (nu,) is the command for the state before the simulator's last step."""
        sim, controller = self._sim, self._controller
        robot, readouts = sim.robot, controller.readouts
        loaded = sim.contact.wrench[:, 2] > 0.05 * robot.weight
        if (loaded != self._loaded).any() or sim.contact.impact.any():
            self._touched = sim.t
        self._loaded = loaded
        estimate = controller.estimate.q
        position_error = estimate[:3] + self._origin - self._base[:3]
        rotation_error = pin.Quaternion(self._base[3:7]).conjugate() * pin.Quaternion(estimate[3:7])
        effort_share = np.abs(tau / robot.effort_limit).max()
        self.rows.append(
            (
                sim.t,
                *sim.ground_truth().pose_world_sole[:, :2].mean(axis=0),
                readouts["dcm_error"],
                readouts["zmp_margin"] if sim.t > self._touched + IMPACT else np.inf,
                float(effort_share),
                float(sim.q[self._knees].min()),
                float(np.linalg.norm(position_error)),
                float(np.linalg.norm(pin.log3(rotation_error.toRotationMatrix()))),
                float(np.abs(sim.v[robot.idx_v]).max()),
            )
        )
        self._base = sim.q[:7].copy()


def run(case: Case) -> dict[str, Any]:
    """Simulate one case and return its metrics."""
    robot = load_robot(case.robot)
    controller = make_controller("zmp", robot, {"terrain": case.ground} if case.mapped else None)
    assert isinstance(controller, ZmpController)
    sim = Simulator(robot, ground_of(case.ground), case.contact, hardware=case.hardware, seed=case.seed)
    sim.warm_up()
    observation = sim.reset()
    controller.reset(observation)
    log, diverged = Log(sim, controller), ""
    for _ in range(round(case.duration / sim.control_dt)):
        current_commands = [command for command in case.command if command[0] <= observation.t]
        controller.set_velocity(*(current_commands[-1][1:] if current_commands else (0.0, 0.0, 0.0)))
        tau = controller.update(observation).tau_joint
        if controller.fallen:
            break
        try:
            observation = sim.step(np.clip(tau, -robot.effort_limit, robot.effort_limit))
        except DivergenceError as error:
            # The metrics of the other runs remain useful, so the exception is only recorded.
            diverged = str(error)
            break
        log.note(tau)
    figures = _figures(case, controller, np.array(log.rows), log.start)
    figures["diverged"] = diverged.partition(":")[0]
    height = float(sim.ground_truth().pose_world_sole[:, 2].mean())
    return {"what": case.what, "robot": case.robot, **figures, **({"climbed_m": height} if case.mapped else {})}


def _figures(case: Case, controller: ZmpController, rows: Array, start: Array) -> dict[str, Any]:
    """Return the metrics of one run.

    Args:
        case: The case.
        controller: The controller after the run.
        rows: (n, 10) rows of :class:`Log`.
        start: (2,) initial position between the feet [m].
    """
    t, x, y, dcm, margin, effort, knee, position, orientation, speed = rows.T
    x, y = x - start[0], y - start[1]
    settled = t > START
    steady = (t > START + 5.0) & (t < case.command[-1][0])
    ahead = np.hypot(x, y)
    in_straight = ahead <= STRAIGHT
    # The average spans two steps, in which the centre of the feet completes one lateral cycle.
    window = np.ones(1400) / 1400
    path = np.convolve(y, window, mode="valid") if len(y) > len(window) else y
    figures = {
        "steps": controller.steps,
        "fell_s": round(float(t[-1]), 2) if controller.fallen else None,
        "speed_m_s": float((ahead[steady][-1] - ahead[steady][0]) / np.ptp(t[steady])) if steady.sum() > 1 else None,
        "dcm_error_mm": 1e3 * float(dcm[settled].max()),
        "zmp_margin_mm": 1e3 * float(margin[settled].min()),
        "effort": float(effort.max()),
        "saturated_ticks": int((effort >= 1.0 - 1e-6).sum()),
        "knee_rad": float(knee.min()),
        "lateral_mm": 1e3 * float(np.abs(path[in_straight[: len(path)]]).max()),
        "estimate_mm": 1e3 * float(position[in_straight].max()),
        "attitude_deg": float(np.rad2deg(orientation[in_straight].max())),
        "at_rest_rad_s": float(speed[-500:].max()),
    }
    return figures


def table(results: Sequence[dict[str, Any]]) -> str:
    """Return the metrics as a Markdown table."""
    keys = list(results[0])
    lines = ["| " + " | ".join(keys) + " |", "|" + " --- |" * len(keys)]
    for result in results:
        texts = [f"{v:.3g}" if isinstance(v, float) else "" if v is None else str(v) for v in result.values()]
        lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines)


def main() -> int:
    """Run the cases. Return 1 if a robot fell, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="TEXT", help="cases whose name and robot hold all of these"
    )
    parser.add_argument("--stairs", type=int, metavar="N", help="instead, stairs with a map, N seeds each")
    parser.add_argument(
        "--uneven", type=int, metavar="N", help="instead, tiles and slippery patches without a map, N seeds each"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the realistic hardware (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the figures as JSON, and a table beside it")
    args = parser.parse_args()
    if args.uneven is not None:
        all_cases = list(uneven(args.uneven))
    else:
        all_cases = list(cases(args.seed) if args.stairs is None else stairs(args.stairs))
    chosen = [case for case in all_cases if all(text in f"{case.what} {case.robot}" for text in args.only)]
    if not chosen:
        names = ", ".join(sorted({case.what for case in all_cases}))
        print(f"walking.py: no case holds {' and '.join(args.only)!r}; there are {names}", file=sys.stderr)
        return 2
    with WorkerPool(args.jobs) as pool:
        results = list(tqdm(pool.map(run, chosen), total=len(chosen), unit="run"))
    print(table(results))
    if args.output is not None:
        args.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        args.output.with_suffix(".md").write_text(table(results) + "\n", encoding="utf-8")
    return int(any(result["fell_s"] is not None or result["diverged"] for result in results))


if __name__ == "__main__":
    sys.exit(main())
