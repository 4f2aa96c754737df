"""Drop random bodies under every contact model: `python benchmarks/drops.py --help`.

A drop is a prism of 3 to 12 sides with a sole at bottom and top. It is thrown onto flat ground, tilted and spinning.
The monitors of the physics (`bipedsim.sim.monitors`) check it with the equations of motion and with the theoretical
limits of the contact model. The same seeds give the same drops. With `--kept FILE`, the results are stored in a file,
and the same command continues an interrupted run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pinocchio as pin
from scipy.optimize import nnls
from tqdm import tqdm

import bipedsim
from bipedsim.contact import CONTACT_MODELS, RECOVERY, ContactModel, ContactResult
from bipedsim.dynamics import Projection
from bipedsim.errors import DivergenceError
from bipedsim.model import Robot, Sole, load_robot
from bipedsim.numerics import Array, Kept as Copies, box, entry, keep, kept, put_back
from bipedsim.runs import WorkerPool
from bipedsim.sim import Simulator
from bipedsim.sim.participant import Hooks

STEP = 1e-3
BATCH = 50
"""Number of drops per batch of a process."""
NOTHING = np.zeros(0)
AT_REST = 1e-6
"""Sliding distance per step below which a vertex may have any friction force within its limits [m]."""
ON_GROUND = 1e-6
"""Height at the end of the step below which a vertex may exert force [m]."""
CORNERS = 64
"""Number of corners of the pyramid around the friction cone of a vertex at rest."""
MUCH = 0.01
"""Force error that is reported for a step without a mode set, as a fraction of the weight."""
SAME = 1e-9
"""Maximum difference between two computations of the same step, relative to the largest velocity [m, m/s]."""
RANGES = (("0.2 to 1", 0.0, 1.0), ("1 to 2", 1.0, 2.0))


@dataclass(frozen=True)
class Drop:
    """Results of one drop.

    Attributes:
        model, number: Contact model, and number of the drop.
        sides, friction: Number of sides and friction coefficient of the prism.
        steps, unresolved: Number of physics steps, and of those without a solution.
        pointwise: Number of solves without a valid mode set that used forces at single vertices instead.
        errors: Force error of each unresolved or pointwise solve, as a fraction of the weight; see
            :func:`force_error`.
        solves: Largest number of mode sets tried in one step.
        beyond: Worst values of the monitors that exceeded their limits.
        stopped: Reason for an early end; empty if there was none.
    """

    model: str
    number: int
    sides: int
    friction: float
    steps: int
    unresolved: int
    pointwise: int = 0
    errors: list[float] = field(default_factory=list)
    solves: int = 0
    beyond: dict[str, float] = field(default_factory=dict)
    stopped: str = ""


@cache
def body() -> Robot:
    """Return a robot of one body as a template."""
    return load_robot("ball_3d")


def prism(rng: np.random.Generator) -> tuple[Robot, Array, float]:
    """Return a random prism, the corners of its two soles (2 N, 3) in its frame [m], and its friction coefficient."""
    n = int(rng.integers(3, 13))
    angle = 2.0 * np.pi / n * (np.arange(n) + rng.uniform(0.0, 0.6, n))
    ring = rng.uniform(0.04, 0.2) * np.column_stack([np.cos(angle), rng.uniform(0.4, 1.0) * np.sin(angle)])
    half, mass, mu = rng.uniform(0.01, 0.2), rng.uniform(0.2, 10.0), float(0.2 * 10.0 ** rng.random())
    # The CoM is somewhere inside. The inertia is at most that of the bounding box.
    x, y = 0.5 * np.ptp(ring, axis=0)
    inertia = mass / 3.0 * rng.uniform(0.3, 1.0) * np.diag([y * y + half**2, x * x + half**2, x * x + y * y])
    lever = np.append(rng.dirichlet(np.full(n, 3.0)) @ ring, rng.uniform(-0.5, 0.5) * half)
    template = body()
    model = pin.Model(template.model)
    model.inertias[1] = pin.Inertia(mass, lever, inertia)
    flip = pin.SE3(pin.rpy.rpyToMatrix(np.pi, 0.0, 0.0), np.array([0.0, 0.0, half]))
    places = pin.SE3(np.eye(3), np.array([0.0, 0.0, -half])), flip
    # The upper sole faces downwards in its own frame, so the order of its corners is reversed.
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
    """Return drop ``number`` at its start under the contact model ``model``, and its friction coefficient."""
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


def force_error(p: Projection, impulse: Array, h: float) -> float:
    """Return the distance of the impulses (K, 6) of a solve from any that Coulomb's law permits [N.s].

    The result is the largest of two errors:

    - for a vertex that sinks deeper into the ground, the impulse that would stop it, from its mobility;
    - for a foot, the distance of its wrench from all wrenches of permitted vertex forces. Permitted forces push at
      vertices that end the step on the ground. Their friction opposes the sliding, or has any direction without
      sliding. Torques are divided by the size of the foot.

    Args:
        p: Projection given to the contact model.
        impulse: Solution of the contact model.
        h: Step [s].
    """
    w = (p.w_free + p.G @ impulse.ravel()).reshape(-1, 6)
    worst = 0.0
    for k, f in enumerate(impulse):
        forces: list[Array] = []
        for r, lifted in zip(p.offsets[k, : p.n_vertices[k]], p.lifted[k], strict=False):
            row = np.array([0.0, 0.0, 1.0, r[1], -r[0], 0.0])
            height, rate = p.position[k, 2] + r[2] + lifted, float(row @ w[k])
            after = height + h * rate
            if rate < 0.0 and after < -1e-9:
                sinks = min(-rate, -after / h)
                worst = max(worst, sinks / float(row @ p.G[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] @ row))
            if after < ON_GROUND or (height < 0.0 and rate < (1.0 + 1e-6) * RECOVERY):
                slip = w[k, :2] + np.array([w[k, 4] * r[2] - w[k, 5] * r[1], w[k, 5] * r[0] - w[k, 3] * r[2]])
                for force in friction_of(slip, p.mu_dynamic[k], h):
                    forces.append(np.concatenate([force, np.cross(r, force)]))
        size = np.hypot(*p.vertices[k, : p.n_vertices[k]].T).max()
        scale = np.array([1.0, 1.0, 1.0, 1.0 / size, 1.0 / size, 1.0 / size])
        scaled_wrench = scale * f
        worst = max(
            worst, nnls((scale * forces).T, scaled_wrench)[1] if forces else float(np.linalg.norm(scaled_wrench))
        )
    return worst


def friction_of(slip: Array, mu: float, h: float) -> Array:
    """Return forces (n, 3) at a vertex that ends the step with sliding velocity ``slip`` (2,) [m/s], per unit load.

    At rest, they are the corners of a pyramid around the friction cone, which is 0.1 % too wide.
    """
    speed = np.hypot(*slip)
    if speed > AT_REST / h:
        return np.array([[*(-mu / speed * slip), 1.0]])
    angle = 2.0 * np.pi / CORNERS * np.arange(CORNERS)
    reach = mu / np.cos(np.pi / CORNERS)
    return np.column_stack([reach * np.cos(angle), reach * np.sin(angle), np.ones(CORNERS)])


def without_set(contact: ContactModel) -> int:
    """Return the number of solves so far without a valid mode set: unresolved, or solved at single vertices."""
    return contact.result.unresolved + int(getattr(contact, "pointwise", 0))


class _Memory(NamedTuple):
    kept: Copies


@entry
def _remember(boxed: Any) -> None:
    keep(boxed.arrays.kept)


@entry
def _recall(boxed: Any) -> None:
    put_back(boxed.arrays.kept)


class Judge:
    """Check the forces in those steps of a drop that no mode set solved.

    The check repeats the step from its start and calls the contact model from Python. A step with a touch-down calls it
    three times. The repetition must give the same result except for rounding, because the compiler optimises the model
    differently there.
    """

    def __init__(self, sim: Simulator) -> None:
        self._sim = sim
        self._contact = cast(Any, sim.solver)
        arrays = *self._contact._memory().values(), *sim.contact.arrays().values(), *sim.dynamics.memory()
        self._begun, self._ended = box(_Memory(kept(arrays))), box(_Memory(kept(arrays)))
        self._q, self._v = sim.q, sim.v.copy()
        self._before = 0

    def begin(self) -> None:
        """Store the state at the start of a step."""
        sim = self._sim
        # A step makes a new array q, but modifies v in place.
        self._q = sim.q
        self._v[:] = sim.v
        self._before = without_set(self._contact)
        _remember(self._begun)

    def errors(self) -> list[float]:
        """Return the :func:`force_error` of each unsolved case in the current step, as a fraction of the weight.

        Raises:
            RuntimeError: The repeated step has a different result.
        """
        if without_set(self._contact) == self._before:
            return []
        sim, contact, dynamics, stepping = self._sim, self._contact, self._sim.dynamics, self._sim.stepper
        found: list[float] = []

        def solve_and_check(p: Projection) -> ContactResult:
            before = without_set(contact)
            result: ContactResult = solve(p)
            if without_set(contact) > before:
                found.append(float(force_error(p, result.impulse, STEP) / STEP / sim.plant.weight))
            return result

        q, v, solve = sim.q, sim.v.copy(), contact.solve
        hooks, remembers = sim._hooks, stepping._remembers
        sim.q, sim.step_count = self._q, sim.step_count - 1
        # The monitors have already processed this step, so they are excluded from the repetition.
        sim._hooks = Hooks.of(
            [participant for participant in sim.participants.values() if participant is not sim.monitors]
        )
        sim.v[:] = self._v
        _remember(self._ended)
        _recall(self._begun)
        stepping._remembers, contact.solve = True, solve_and_check
        dynamics._take(contact, in_python=True)
        sim.advance(NOTHING)
        stepping._remembers, sim._hooks = remembers, hooks
        dynamics._take(contact)
        del contact.solve
        deviation = max(np.abs(q - sim.q).max(), np.abs(v - sim.v).max())
        if not deviation < SAME * max(1.0, np.abs(v).max()):
            raise RuntimeError(f"a step at {sim.t:.3f} s ends {deviation:.3g} from where it ended before")
        # Restore the original result, so that the repetition does not affect the drop.
        _recall(self._ended)
        sim.q = q
        sim.v[:] = v
        return found


def drop(model: str, number: int, seconds: float) -> Drop:
    """Simulate drop ``number`` under the contact model ``model``, and return its results."""
    sim, mu = let_go(model, number)
    monitors = sim.watch(lambda *_: None)
    judge = Judge(sim)
    stopped, steps, candidates_before, max_solves = "", 0, 0, 0
    errors: list[float] = []
    try:
        for _ in range(round(seconds / STEP)):
            judge.begin()
            contact = sim.advance(NOTHING)
            steps += 1
            max_solves, candidates_before = max(max_solves, contact.candidates - candidates_before), contact.candidates
            errors += judge.errors()
    except DivergenceError as error:
        stopped = str(error)
    beyond = {name: figure["worst"] for name, figure in monitors.figures().items() if figure["steps_beyond"]}
    sides = sim.robot.soles[0].n_vertices
    unresolved, pointwise = sim.contact.unresolved, without_set(sim.solver) - sim.contact.unresolved
    return Drop(model, number, sides, mu, steps, unresolved, pointwise, errors, max_solves, beyond, stopped)


def batch(work: tuple[str, int, int, float]) -> list[Drop]:
    """Simulate the drops from ``first`` to before ``last`` of a model, each for the given time [s]."""
    model, first, last, seconds = work
    return [drop(model, number, seconds) for number in range(first, last)]


def code() -> str:
    """Return a digest of the simulator's sources."""
    root = Path(bipedsim.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class DropStore:
    """Append-only file of finished drops with one line per batch.

    Args:
        path: The file; None stores nothing.
        seconds: Duration of a drop [s].
        earlier: Files of other versions of the sources, whose drops are not repeated.

    Attributes:
        drops: Finished drops by model and number.

    Raises:
        ValueError: The file is of other sources, or a file has drops of another duration.
    """

    def __init__(self, path: Path | None, seconds: float, earlier: Sequence[Path] = ()) -> None:
        self.drops: dict[tuple[str, int], Drop] = {}
        self._path = path
        header = {"sources": code(), "seconds": seconds}
        for earlier_path in earlier:
            lines = earlier_path.read_text(encoding="utf-8").splitlines()
            if not lines or json.loads(lines[0])["seconds"] != seconds:
                raise ValueError(f"{earlier_path} holds no drops of {seconds} s")
            self._read(earlier_path, lines)
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        if not lines:
            path.write_text(json.dumps(header) + "\n", encoding="utf-8")
            return
        if json.loads(lines[0]) != header:
            problem = f"{path} was begun with {lines[0]}, and this is {json.dumps(header)}"
            raise ValueError(f"{problem}; give another --kept, and this one as --earlier if its drops shall count")
        self._read(path, lines)
        # A last line that was cut short has no newline, so the file is rewritten before appending.
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _read(self, path: Path, lines: Sequence[str]) -> None:
        """Read the drops from the lines of a file."""
        for i, line in enumerate(lines[1:], start=2):
            try:
                results = [Drop(**entry) for entry in json.loads(line)]
            except (ValueError, TypeError):
                print(f"{path}:{i}: cut short; these drops are made again", file=sys.stderr)
                continue
            self.drops |= {(drop.model, drop.number): drop for drop in results}

    def add(self, drops: Sequence[Drop]) -> None:
        """Store a batch of drops."""
        self.drops |= {(drop.model, drop.number): drop for drop in drops}
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([asdict(drop) for drop in drops]) + "\n")


def figures(drops: Sequence[Drop]) -> dict[str, Any]:
    """Return the statistics of drops under one model."""
    worst: dict[str, float] = {}
    errors = [error for drop in drops for error in drop.errors]
    for name, value in (item for drop in drops for item in drop.beyond.items()):
        worst[name] = max(worst.get(name, value), value)
    return {
        "drops": len(drops),
        "unresolved_share": sum(drop.unresolved > 0 for drop in drops) / max(len(drops), 1),
        "unresolved_steps": sum(drop.unresolved for drop in drops),
        "pointwise": sum(drop.pointwise for drop in drops),
        "much_in_error": sum(error > MUCH for error in errors),
        "largest_error": max(errors, default=0.0),
        "most_solves": max((drop.solves for drop in drops), default=0),
        "steps": sum(drop.steps for drop in drops),
        "stopped": [drop.number for drop in drops if drop.stopped],
        "beyond": {name: sum(name in drop.beyond for drop in drops) for name in worst},
        "worst": worst,
        "first_unresolved": [drop.number for drop in drops if drop.unresolved][:20],
        "first_beyond": [drop.number for drop in drops if drop.beyond][:20],
    }


def table(results: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Return the statistics as a Markdown table."""
    titles = ["model", "friction", "drops", "with unresolved steps", "such steps", "answered at vertices"]
    titles += ["of both > 1 % of the weight in error", "most solves of a step", "stopped", "beyond what is promised"]
    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    for model, ranges in results.items():
        for name, summary in ranges.items():
            beyond = ", ".join(f"{k} {n} (worst {summary['worst'][k]:.3g})" for k, n in summary["beyond"].items())
            lines.append(
                f"| {model} | {name} | {summary['drops']} | {summary['unresolved_share']:.2%} | "
                f"{summary['unresolved_steps']} of {summary['steps']} | {summary['pointwise']} | "
                f"{summary['much_in_error']} (largest {summary['largest_error']:.2g}) | "
                f"{summary['most_solves']} | {len(summary['stopped'])} | {beyond} |"
            )
    return "\n".join(lines)


def dropped(work: Sequence[tuple[str, int, int, float]], jobs: int, end: float) -> Iterator[list[Drop]]:
    """Yield each finished batch of drops. Start no batch after ``end`` on the monotonic clock [s]."""
    remaining = iter(work)
    with WorkerPool(jobs) as pool:
        running: set[Future[list[Drop]]] = set()
        while True:
            while len(running) < 2 * jobs and time.monotonic() < end and (item := next(remaining, None)) is not None:
                running.add(pool.submit(batch, item))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for batch_result in done:
                yield batch_result.result()


def main() -> int:
    """Simulate the drops. Return 1 if a drop stopped or exceeded the limits of its model, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="contact models whose names hold one of these"
    )
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="drops per model (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.4, help="of each drop (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin no further drops after so many")
    parser.add_argument("--kept", type=Path, metavar="FILE", help="keep what is done, and go on with what is kept")
    parser.add_argument(
        "--earlier", type=Path, nargs="+", default=[], metavar="FILE", help="count in what other sources have kept"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the figures as JSON, and a table beside it")
    args = parser.parse_args()
    models = [model for model in CONTACT_MODELS if any(text in model for text in args.only)]
    if not models:
        model_names = ", ".join(CONTACT_MODELS)
        print(f"drops.py: no contact model holds any of {args.only}; there are {model_names}", file=sys.stderr)
        return 2
    try:
        store = DropStore(args.kept, args.seconds, args.earlier)
    except (ValueError, OSError) as error:
        print(f"drops.py: {error}", file=sys.stderr)
        return 2
    end = args.first + args.count
    work = [
        (model, first, min(first + BATCH, end), args.seconds)
        for first in range(args.first, end, BATCH)
        for model in models
        if any((model, number) not in store.drops for number in range(first, min(first + BATCH, end)))
    ]
    count = len(models) * args.count
    with tqdm(total=count, initial=count - sum(last - first for _, first, last, _ in work), unit="drop") as progress:
        for done in dropped(work, args.jobs, time.monotonic() + 60.0 * args.minutes):
            store.add(done)
            progress.update(len(done))
    drops = sorted(store.drops.values(), key=lambda drop: drop.number)
    drops = [drop for drop in drops if drop.model in models and args.first <= drop.number < end]
    results = {
        model: {
            name: figures([drop for drop in drops if drop.model == model and low < drop.friction <= high])
            for name, low, high in RANGES
        }
        for model in models
    }
    print(table(results))
    if args.output is not None:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        args.output.with_suffix(".md").write_text(table(results) + "\n", encoding="utf-8")
    bad = any(
        figures_of_range["stopped"] or figures_of_range["beyond"]
        for ranges in results.values()
        for figures_of_range in ranges.values()
    )
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
