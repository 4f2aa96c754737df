"""Random bodies dropped under every contact model: `python benchmarks/drops.py --help`.

A drop is a prism of 3 to 12 sides, whose bottom and top are soles, thrown onto flat ground, tilted and spinning. It is
judged by the monitors of the physics (`bipedsim.sim.monitors`): from the equations of motion, and from what the theory
of the contact model promises. The same numbers give the same drops. With `--kept FILE` what is done is kept there, and
the same command goes on where it was ended.
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
"""Drops that a process takes at a time."""
NOTHING = np.zeros(0)
AT_REST = 1e-6
"""A foot that slips by less in a step [m] may have any friction within its limits."""
ON_GROUND = 1e-6
"""A vertex that ends the step lower than this [m] may push."""
CORNERS = 64
"""Of the pyramid around the friction cone of a vertex at rest."""
MUCH = 0.01
"""Error of the forces of a step without a set of modes, as a share of the weight, that is told."""
SAME = 1e-9
"""How far apart a step may end that is taken twice [m, m/s], beside the largest velocity."""
RANGES = (("0.2 to 1", 0.0, 1.0), ("1 to 2", 1.0, 2.0))


@dataclass(frozen=True)
class Drop:
    """How one drop went.

    Attributes:
        model, number: Which.
        sides, friction: Of the prism.
        steps, unresolved: Physics steps, and those without an answer.
        pointwise: Solves that no set of modes answered, but forces of single vertices.
        errors: Of each of both, how far its forces are from what they should be, as a share of the weight; see
            :func:`force_error`.
        solves: The most sets of modes that a step was solved with.
        beyond: Monitors that were beyond their limits, with the worst value.
        stopped: Why it ended early, empty if it did not.
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


def force_error(p: Projection, impulse: Array, h: float) -> float:
    """Return how far the impulses (K, 6) of a solve are from any that Coulomb's law allows [N.s].

    That is the largest of: what would stop a vertex that sinks deeper into the ground, at its mobility; and over the
    feet the distance of the wrench from those of vertex forces that push, at vertices that end the step on the ground,
    with friction against the slip, or of any direction where there is none; torques count over the size of the foot.

    Args:
        p: What the contact model was asked.
        impulse: What it answered.
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
                for way in friction_of(slip, p.mu_dynamic[k], h):
                    forces.append(np.concatenate([way, np.cross(r, way)]))
        size = np.hypot(*p.vertices[k, : p.n_vertices[k]].T).max()
        scale = np.array([1.0, 1.0, 1.0, 1.0 / size, 1.0 / size, 1.0 / size])
        left = scale * f
        worst = max(worst, nnls((scale * forces).T, left)[1] if forces else float(np.linalg.norm(left)))
    return worst


def friction_of(slip: Array, mu: float, h: float) -> Array:
    """Return (n, 3) the forces at a vertex that ends the step with ``slip`` (2,) [m/s] for a load of 1.

    At rest these are the corners of a pyramid around the cone, 0.1 % too wide.
    """
    speed = np.hypot(*slip)
    if speed > AT_REST / h:
        return np.array([[*(-mu / speed * slip), 1.0]])
    angle = 2.0 * np.pi / CORNERS * np.arange(CORNERS)
    reach = mu / np.cos(np.pi / CORNERS)
    return np.column_stack([reach * np.cos(angle), reach * np.sin(angle), np.ones(CORNERS)])


def without_set(contact: ContactModel) -> int:
    """Return how many solves no set of modes has answered so far: unresolved, or answered at single vertices."""
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
    """Judges the forces of those steps of a drop that no set of modes answered.

    Such a step is taken again from where it began, with the contact model asked from Python: a step with a landing asks
    it three times. It has to end where it did, but for rounding: the compiler had other code around the model.
    """

    def __init__(self, sim: Simulator) -> None:
        self._sim = sim
        self._contact = cast(Any, sim.solver)
        arrays = *self._contact._memory().values(), *sim.contact.arrays().values(), *sim.dynamics.memory()
        self._begun, self._ended = box(_Memory(kept(arrays))), box(_Memory(kept(arrays)))
        self._q, self._v = sim.q, sim.v.copy()
        self._before = 0

    def begin(self) -> None:
        """Take note of where a step begins."""
        sim = self._sim
        # A step makes a new q, and changes v in place.
        self._q = sim.q
        self._v[:] = sim.v
        self._before = without_set(self._contact)
        _remember(self._begun)

    def errors(self) -> list[float]:
        """Return the :func:`force_error` of every such solve of the step that was begun, as a share of the weight.

        Raises:
            RuntimeError: The step ends elsewhere when it is taken again.
        """
        if without_set(self._contact) == self._before:
            return []
        sim, contact, dynamics, stepping = self._sim, self._contact, self._sim.dynamics, self._sim.stepper
        found: list[float] = []

        def ask(p: Projection) -> ContactResult:
            before = without_set(contact)
            result: ContactResult = solve(p)
            if without_set(contact) > before:
                found.append(float(force_error(p, result.impulse, STEP) / STEP / sim.plant.weight))
            return result

        q, v, solve = sim.q, sim.v.copy(), contact.solve
        hooks, remembers = sim._hooks, stepping._remembers
        sim.q, sim.step_count = self._q, sim.step_count - 1
        # The monitors have seen this step.
        sim._hooks = Hooks.of([one for one in sim.participants.values() if one is not sim.monitors])
        sim.v[:] = self._v
        _remember(self._ended)
        _recall(self._begun)
        stepping._remembers, contact.solve = True, ask
        dynamics._take(contact, in_python=True)
        sim.advance(NOTHING)
        stepping._remembers, sim._hooks = remembers, hooks
        dynamics._take(contact)
        del contact.solve
        off = max(np.abs(q - sim.q).max(), np.abs(v - sim.v).max())
        if not off < SAME * max(1.0, np.abs(v).max()):
            raise RuntimeError(f"a step at {sim.t:.3f} s ends {off:.3g} from where it ended before")
        # The drop goes on from where it was.
        _recall(self._ended)
        sim.q = q
        sim.v[:] = v
        return found


def drop(model: str, number: int, seconds: float) -> Drop:
    """Return how the drop ``number`` went under the contact model ``model``."""
    sim, mu = let_go(model, number)
    monitors = sim.watch(lambda *_: None)
    judge = Judge(sim)
    stopped, steps, tried, most = "", 0, 0, 0
    errors: list[float] = []
    try:
        for _ in range(round(seconds / STEP)):
            judge.begin()
            contact = sim.advance(NOTHING)
            steps += 1
            most, tried = max(most, contact.candidates - tried), contact.candidates
            errors += judge.errors()
    except DivergenceError as error:
        stopped = str(error)
    beyond = {name: figure["worst"] for name, figure in monitors.figures().items() if figure["steps_beyond"]}
    sides = sim.robot.soles[0].n_vertices
    unresolved, pointwise = sim.contact.unresolved, without_set(sim.solver) - sim.contact.unresolved
    return Drop(model, number, sides, mu, steps, unresolved, pointwise, errors, most, beyond, stopped)


def batch(work: tuple[str, int, int, float]) -> list[Drop]:
    """Return the drops ``first`` to ``last`` of a model, each of so many seconds."""
    model, first, last, seconds = work
    return [drop(model, number, seconds) for number in range(first, last)]


def code() -> str:
    """Return what the sources of the simulator are known by."""
    root = Path(bipedsim.__file__).parent
    known = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        known.update(path.read_bytes())
    return known.hexdigest()[:16]


class Kept:
    """The drops that are done, in a file of one line a batch that is only added to.

    Args:
        path: The file; none keeps nothing.
        seconds: Length of a drop.
        earlier: Files of other sources, whose drops are not made again.

    Attributes:
        drops: By model and number.

    Raises:
        ValueError: The file was begun by other sources, or one of them with drops of another length.
    """

    def __init__(self, path: Path | None, seconds: float, earlier: Sequence[Path] = ()) -> None:
        self.drops: dict[tuple[str, int], Drop] = {}
        self._path = path
        begun = {"sources": code(), "seconds": seconds}
        for other in earlier:
            lines = other.read_text(encoding="utf-8").splitlines()
            if not lines or json.loads(lines[0])["seconds"] != seconds:
                raise ValueError(f"{other} holds no drops of {seconds} s")
            self._read(other, lines)
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        if not lines:
            path.write_text(json.dumps(begun) + "\n", encoding="utf-8")
            return
        if json.loads(lines[0]) != begun:
            said = f"{path} was begun with {lines[0]}, and this is {json.dumps(begun)}"
            raise ValueError(f"{said}; give another --kept, and this one as --earlier if its drops shall count")
        self._read(path, lines)
        # What follows a line that was cut short has to begin one.
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _read(self, path: Path, lines: Sequence[str]) -> None:
        """Take in the drops in the lines of a file."""
        for i, line in enumerate(lines[1:], start=2):
            try:
                done = [Drop(**one) for one in json.loads(line)]
            except (ValueError, TypeError):
                print(f"{path}:{i}: cut short; these drops are made again", file=sys.stderr)
                continue
            self.drops |= {(one.model, one.number): one for one in done}

    def add(self, done: Sequence[Drop]) -> None:
        """Take in a batch."""
        self.drops |= {(one.model, one.number): one for one in done}
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([asdict(one) for one in done]) + "\n")


def figures(drops: Sequence[Drop]) -> dict[str, Any]:
    """Return what is told of some drops under one model."""
    worst: dict[str, float] = {}
    errors = [error for one in drops for error in one.errors]
    for name, value in (item for one in drops for item in one.beyond.items()):
        worst[name] = max(worst.get(name, value), value)
    return {
        "drops": len(drops),
        "unresolved_share": sum(one.unresolved > 0 for one in drops) / max(len(drops), 1),
        "unresolved_steps": sum(one.unresolved for one in drops),
        "pointwise": sum(one.pointwise for one in drops),
        "much_in_error": sum(error > MUCH for error in errors),
        "largest_error": max(errors, default=0.0),
        "most_solves": max((one.solves for one in drops), default=0),
        "steps": sum(one.steps for one in drops),
        "stopped": [one.number for one in drops if one.stopped],
        "beyond": {name: sum(name in one.beyond for one in drops) for name in worst},
        "worst": worst,
        "first_unresolved": [one.number for one in drops if one.unresolved][:20],
        "first_beyond": [one.number for one in drops if one.beyond][:20],
    }


def table(results: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Return the figures as a table of Markdown."""
    titles = ["model", "friction", "drops", "with unresolved steps", "such steps", "answered at vertices"]
    titles += ["of both > 1 % of the weight in error", "most solves of a step", "stopped", "beyond what is promised"]
    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    for model, ranges in results.items():
        for name, found in ranges.items():
            beyond = ", ".join(f"{k} {n} (worst {found['worst'][k]:.3g})" for k, n in found["beyond"].items())
            lines.append(
                f"| {model} | {name} | {found['drops']} | {found['unresolved_share']:.2%} | "
                f"{found['unresolved_steps']} of {found['steps']} | {found['pointwise']} | "
                f"{found['much_in_error']} (largest {found['largest_error']:.2g}) | "
                f"{found['most_solves']} | {len(found['stopped'])} | {beyond} |"
            )
    return "\n".join(lines)


def dropped(work: Sequence[tuple[str, int, int, float]], jobs: int, end: float) -> Iterator[list[Drop]]:
    """Yield the drops of each batch as they are done; begin none after ``end`` on the monotonic clock [s]."""
    left = iter(work)
    with WorkerPool(jobs) as pool:
        running: set[Future[list[Drop]]] = set()
        while True:
            while len(running) < 2 * jobs and time.monotonic() < end and (item := next(left, None)) is not None:
                running.add(pool.submit(batch, item))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for one in done:
                yield one.result()


def main() -> int:
    """Drop the bodies; return 0, or 1 where a drop stopped or was beyond what its model promises."""
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
        known = ", ".join(CONTACT_MODELS)
        print(f"drops.py: no contact model holds any of {args.only}; there are {known}", file=sys.stderr)
        return 2
    try:
        kept = Kept(args.kept, args.seconds, args.earlier)
    except (ValueError, OSError) as error:
        print(f"drops.py: {error}", file=sys.stderr)
        return 2
    end = args.first + args.count
    work = [
        (model, first, min(first + BATCH, end), args.seconds)
        for first in range(args.first, end, BATCH)
        for model in models
        if any((model, number) not in kept.drops for number in range(first, min(first + BATCH, end)))
    ]
    count = len(models) * args.count
    with tqdm(total=count, initial=count - sum(last - first for _, first, last, _ in work), unit="drop") as progress:
        for done in dropped(work, args.jobs, time.monotonic() + 60.0 * args.minutes):
            kept.add(done)
            progress.update(len(done))
    drops = sorted(kept.drops.values(), key=lambda one: one.number)
    drops = [one for one in drops if one.model in models and args.first <= one.number < end]
    results = {
        model: {
            name: figures([one for one in drops if one.model == model and low < one.friction <= high])
            for name, low, high in RANGES
        }
        for model in models
    }
    print(table(results))
    if args.output is not None:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        args.output.with_suffix(".md").write_text(table(results) + "\n", encoding="utf-8")
    bad = any(found["stopped"] or found["beyond"] for ranges in results.values() for found in ranges.values())
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
