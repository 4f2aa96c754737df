"""Random bodies dropped under every contact model: `python benchmarks/drops.py --help`.

A drop is a prism of 3 to 12 sides, whose bottom and top are soles, thrown onto flat ground, tilted and spinning. It is
judged by the monitors of the physics (`bipedsim.sim.monitors`): from the equations of motion, and from what the theory
of the contact model promises. The same numbers give the same drops.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from tqdm import tqdm

from bipedsim.contact import CONTACT_MODELS
from bipedsim.errors import DivergenceError
from bipedsim.model import Robot, Sole, load_robot
from bipedsim.numerics import Array
from bipedsim.runs import WorkerPool
from bipedsim.sim import Simulator

STEP = 1e-3
BATCH = 50
"""Drops that a process takes at a time."""
NOTHING = np.zeros(0)


@dataclass(frozen=True)
class Drop:
    """How one drop went.

    Attributes:
        model, number: Which.
        sides, friction: Of the prism.
        steps, unresolved: Physics steps, and those without a set of modes free of violations, or not converged.
        beyond: Monitors that were beyond their limits, with the worst value.
        stopped: Why it ended early, empty if it did not.
    """

    model: str
    number: int
    sides: int
    friction: float
    steps: int
    unresolved: int
    beyond: dict[str, float]
    stopped: str


@cache
def body() -> Robot:
    """Return a body to make others of."""
    return load_robot("ball_3d")


def prism(rng: np.random.Generator) -> tuple[Robot, Array, float]:
    """Return a random prism, the corners of its two soles (2 N, 3) in its frame [m], and its friction coefficient."""
    n = int(rng.integers(3, 13))
    angle = 2.0 * np.pi / n * (np.arange(n) + rng.uniform(0.0, 0.6, n))
    ring = rng.uniform(0.04, 0.2) * np.column_stack([np.cos(angle), rng.uniform(0.4, 1.0) * np.sin(angle)])
    half, mass, mu = rng.uniform(0.01, 0.2), rng.uniform(0.2, 10.0), float(0.2 * 10.0 ** rng.random())
    # Somewhere inside, as heavy as a box around it at most.
    x, y = 0.5 * np.ptp(ring, axis=0)
    inertia = mass / 3.0 * rng.uniform(0.3, 1.0) * np.diag([y * y + half**2, x * x + half**2, x * x + y * y])
    lever = np.append(rng.dirichlet(np.full(n, 3.0)) @ ring, rng.uniform(-0.5, 0.5) * half)
    template = body()
    model = pin.Model(template.model)
    model.inertias[1] = pin.Inertia(mass, lever, inertia)
    flip = pin.SE3(pin.rpy.rpyToMatrix(np.pi, 0.0, 0.0), np.array([0.0, 0.0, half]))
    places = pin.SE3(np.eye(3), np.array([0.0, 0.0, -half])), flip
    # Seen from above, the upper sole's corners go round the other way.
    rings = ring, (ring * [1.0, -1.0])[::-1]
    soles = tuple(
        Sole(name, "body", 1, place, corners, mu, mu)
        for name, place, corners in zip(("bottom", "top"), places, rings, strict=True)
    )
    corners = [
        place.act(np.append(point, 0.0)) for place, points in zip(places, rings, strict=True) for point in points
    ]
    robot = replace(
        template,
        model=model,
        soles=soles,
        ankle_joint_ids=(1, 1),
        placement_joint_ankle=(pin.SE3.Identity(), pin.SE3.Identity()),
        q_nominal=np.array([0.0, 0.0, half, 0.0, 0.0, 0.0, 1.0]),
    )
    return robot, np.array(corners), mu


def let_go(model: str, number: int) -> tuple[Simulator, float]:
    """Return the drop ``number`` at its beginning under the contact model ``model``, and its friction coefficient."""
    rng = np.random.default_rng(number)
    robot, corners, mu = prism(rng)
    axis = rng.normal(size=3)
    rotation = pin.exp3(axis / np.linalg.norm(axis) * rng.uniform(0.0, np.pi))
    pose = pin.SE3(rotation, np.zeros(3))
    pose.translation[2] = rng.uniform(0.0, 0.1) - (corners @ rotation.T)[:, 2].min()
    v = np.concatenate([rotation.T @ rng.uniform([-2.0, -2.0, -2.0], [2.0, 2.0, 0.0]), rng.uniform(-8.0, 8.0, 3)])
    sim = Simulator(robot, contact=model, physics_dt=STEP)
    sim.reset(pin.SE3ToXYZQUAT(pose), v)
    return sim, mu


def drop(model: str, number: int, seconds: float) -> Drop:
    """Return how the drop ``number`` went under the contact model ``model``."""
    sim, mu = let_go(model, number)
    monitors = sim.watch(lambda *_: None)
    stopped, steps = "", 0
    try:
        for _ in range(round(seconds / STEP)):
            sim.advance(NOTHING)
            steps += 1
    except DivergenceError as error:
        stopped = str(error)
    beyond = {name: figure["worst"] for name, figure in monitors.figures().items() if figure["steps_beyond"]}
    return Drop(model, number, sim.robot.soles[0].n_vertices, mu, steps, int(sim.contact.unresolved), beyond, stopped)


def batch(work: tuple[str, int, int, float]) -> list[Drop]:
    """Return the drops ``first`` to ``last`` of a model, each of so many seconds."""
    model, first, last, seconds = work
    return [drop(model, number, seconds) for number in range(first, last)]


def figures(drops: Sequence[Drop]) -> dict[str, Any]:
    """Return what is told of some drops under one model."""
    worst: dict[str, float] = {}
    for name, value in (item for one in drops for item in one.beyond.items()):
        worst[name] = max(worst.get(name, value), value)
    return {
        "drops": len(drops),
        "unresolved_share": sum(one.unresolved > 0 for one in drops) / max(len(drops), 1),
        "unresolved_steps": sum(one.unresolved for one in drops),
        "steps": sum(one.steps for one in drops),
        "stopped": [one.number for one in drops if one.stopped],
        "beyond": {name: sum(name in one.beyond for one in drops) for name in worst},
        "worst": worst,
        "first_unresolved": [one.number for one in drops if one.unresolved][:20],
        "first_beyond": [one.number for one in drops if one.beyond][:20],
    }


def table(results: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Return the figures as a table of Markdown."""
    lines = ["| model | friction | drops | with unresolved steps | such steps | stopped | beyond what is promised |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for model, ranges in results.items():
        for name, found in ranges.items():
            beyond = ", ".join(f"{k} {n} (worst {found['worst'][k]:.3g})" for k, n in found["beyond"].items())
            lines.append(
                f"| {model} | {name} | {found['drops']} | {found['unresolved_share']:.2%} | "
                f"{found['unresolved_steps']} of {found['steps']} | {len(found['stopped'])} | {beyond} |"
            )
    return "\n".join(lines)


def main() -> int:
    """Drop the bodies; return 0, or 1 where a drop stopped or was beyond what its model promises."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="contact models whose name holds this")
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="drops per model (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.4, help="of each drop (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the figures as JSON, and a table beside it")
    args = parser.parse_args()
    models = [model for model in CONTACT_MODELS if args.only in model]
    if not models:
        print(f"drops.py: no contact model holds {args.only!r}; there are {', '.join(CONTACT_MODELS)}", file=sys.stderr)
        return 2
    end = args.first + args.count
    work = [
        (model, first, min(first + BATCH, end), args.seconds)
        for model in models
        for first in range(args.first, end, BATCH)
    ]
    drops: list[Drop] = []
    with WorkerPool(args.jobs) as pool, tqdm(total=len(models) * args.count, unit="drop") as progress:
        for done in as_completed([pool.submit(batch, item) for item in work]):
            drops += done.result()
            progress.update(len(done.result()))
    drops.sort(key=lambda one: one.number)
    results = {
        model: {
            name: figures([one for one in drops if one.model == model and low < one.friction <= high])
            for name, low, high in (("0.2 to 1", 0.0, 1.0), ("1 to 2", 1.0, 2.0))
        }
        for model in models
    }
    print(table(results))
    if args.output is not None:
        args.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        args.output.with_suffix(".md").write_text(table(results) + "\n", encoding="utf-8")
    bad = any(found["stopped"] or found["beyond"] for ranges in results.values() for found in ranges.values())
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
