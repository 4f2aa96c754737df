"""Random scenes of free objects: `python benchmarks/object_scenes.py --help`.

A scene has 1 to 32 balls, boxes and cylinders over flat ground, at rest or thrown at up to 100 m/s and 5000 rad/s, with
masses that differ by up to 1e4. Every step is judged by its own balance, the end by other code than the simulator's:

- no step takes more than 50 ms of CPU time, and nothing is ever not finite;
- what a step changes in the momentum of each body is what gravity and the contacts gave it, to 1e-9 of both;
- energy rises by no more than an integrator of second order may give (see below);
- of two bodies at rest, and of one and the ground, neither is more than 1 mm deep in the other;
- from a state that was kept, the same steps follow to the bit, in a new world as well.

The bound on energy follows from the method. An impulse P of contact does the work P (u0 + u1) / 2, u being the normal
speeds before and after. Where it takes an overlap back, u1 is known, and so is that energy. Else u is at most g h / 2:
slower points do not bounce, and bodies that turn far get that speed. So each body may get P g h / 2. A body also turns
by the angle a = w h meanwhile. Its arms r are those of the middle of the step, so that the work is off by P dw dr / 4,
with dr = a r. Contact that makes up for the turning changes w by dw = a w. Then P r dw is twice the energy of that
change, 2 a^2 T, where T is the kinetic energy of the body. So the work is off by a^3 T / 2 at most.

The same numbers give the same scenes. The program prints a table, and ends with 1 if anything does not hold.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import coal
import numpy as np
import pinocchio as pin

from bipedsim.ground import Ground
from bipedsim.numerics import Array
from bipedsim.objects import ObjectConfig, World

STEP, SECONDS = 1e-3, 1.0
GRAVITY = np.array([0.0, 0.0, -9.81])
SLOWEST = 0.05
"""CPU time [s] of a step at most."""
BALANCE = 1e-9
"""Share of the momentum and of the impulses of a step that its balance may be off by."""
FAR = 0.3
"""Angle [rad] of a step beyond which contacts act as impacts, and no longer on a body that turns meanwhile."""
ROUNDING = 1e-9
"""Share of the energy of a scene that is rounding in a step."""
DEEPEST, REST = 1e-3, 1e-2
"""Depth [m] of what rests, and speed [m/s] of its fastest point below which it does."""
AGAIN = 25
"""Steps that are repeated from a state that was kept."""


@dataclass
class Scene:
    """How one scene went.

    Attributes:
        number, objects: Which, and how many it has.
        slowest, mean: CPU time of a step [ms].
        risen: Energy [J] that the worst step made beyond its bound. made: That of all its steps that the bound allowed.
        begun: Energy at the start [J].
        unbalanced: Largest share of momentum that a step got from nowhere.
        at_rest: Bodies at rest in the end. depth: Of the deepest of them [m].
        unresolved: Problems without a solution.
        faults: What does not hold.
    """

    number: int
    objects: int
    slowest: float = 0.0
    mean: float = 0.0
    risen: float = 0.0
    made: float = 0.0
    begun: float = 0.0
    unbalanced: float = 0.0
    at_rest: int = 0
    depth: float = 0.0
    unresolved: int = 0
    faults: list[str] = field(default_factory=list)


def _log(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _direction(rng: np.random.Generator) -> Array:
    n = rng.normal(size=3)
    return np.asarray(n / np.linalg.norm(n))


def scene(number: int, seed: int) -> list[ObjectConfig]:
    """Return the objects of a scene."""
    rng = np.random.default_rng([seed, number])
    count = int(rng.integers(1, 33))
    width = 0.5 + 0.35 * np.sqrt(count) * rng.uniform(0.5, 1.5)
    found: list[ObjectConfig] = []
    balls: list[tuple[Array, float]] = []
    while len(found) < count:
        shape = ("ball", "box", "cylinder")[rng.integers(3)]
        size = _log(rng, 0.005, 0.2)
        sides = size * np.exp(rng.uniform(-0.7, 0.7, 3))
        keys = {"box": {"size": tuple(sides)}, "ball": {"radius": 0.5 * size}}.get(
            shape, {"radius": 0.5 * float(sides[0]), "length": float(sides[2])}
        )
        bound = 0.5 * float(np.linalg.norm(sides)) if shape != "ball" else 0.5 * size
        bound = max(bound, float(np.hypot(0.5 * sides[0], 0.5 * sides[2])))
        place = np.array([*rng.uniform(-width, width, 2), bound + 1e-3 + rng.uniform(0.0, 1.0)])
        if any(np.linalg.norm(place - other) < bound + reach + 1e-3 for other, reach in balls):
            width *= 1.02
            continue
        balls.append((place, bound))
        thrown, spun = rng.random(2) < 0.5
        friction = rng.uniform(0.0, 1.2)
        found.append(
            ObjectConfig(
                name=f"o{len(found)}",
                shape=shape,
                mass=_log(rng, 0.01, 100.0),
                position=tuple(place),
                rpy=tuple(rng.uniform(-np.pi, np.pi, 3)),
                velocity=tuple(_direction(rng) * _log(rng, 0.1, 100.0)) if thrown else (0.0, 0.0, 0.0),
                angular_velocity=tuple(_direction(rng) * _log(rng, 1.0, 5000.0)) if spun else (0.0, 0.0, 0.0),
                friction_static=friction,
                friction_dynamic=friction * rng.uniform(0.5, 1.0),
                restitution=float(rng.choice([0.0, rng.uniform(0.0, 1.0)])),
                **keys,
            )
        )
    return found


def world_of(objects: Sequence[ObjectConfig]) -> World:
    """Return the objects of a scene over flat ground."""
    return World([one.make() for one in objects], Ground.flat(), STEP, GRAVITY)


def _momenta(w: World) -> tuple[Array, Array, Array]:
    """Return momenta (N, 3), angular momenta about the centres (N, 3), and energies, all and kinetic (2, N)."""
    b = w.bodies
    R, turn = b.R[: len(b.mass)], b.w[: len(b.mass)]
    spins = np.einsum("nij,njk,nlk,nl->ni", R, b.inertia, R, turn)
    linear = b.mass[:, None] * b.v[: len(b.mass)]
    kinetic = 0.5 * ((spins * turn).sum(axis=1) + (linear * b.v).sum(axis=1))
    return linear, spins, np.stack([kinetic - b.mass * (b.position @ GRAVITY), kinetic])


def _shape(one: ObjectConfig) -> coal.ShapeBase:
    if one.size is not None:
        return coal.Box(*one.size)
    assert one.radius is not None
    return coal.Sphere(one.radius) if one.length is None else coal.Cylinder(one.radius, one.length)


def _lowest(one: ObjectConfig, pose: Array) -> float:
    """Return the height of the lowest point of an object [m]."""
    R = pin.Quaternion(pose[3:]).toRotationMatrix()
    if one.size is not None:
        return float(pose[2] - 0.5 * np.abs(R[2]) @ np.array(one.size))
    assert one.radius is not None
    if one.length is None:
        return float(pose[2] - one.radius)
    return float(pose[2] - 0.5 * abs(R[2, 2]) * one.length - one.radius * np.hypot(R[2, 0], R[2, 1]))


def _deepest(objects: Sequence[ObjectConfig], w: World) -> tuple[int, float]:
    """Return how many bodies rest, and how deep the deepest of them is in the ground or in another one [m]."""
    poses, twists = w.poses(), w.twists()
    reach = np.array([one.reach for one in w.free])
    rests = np.linalg.norm(twists[:, :3], axis=1) + reach * np.linalg.norm(twists[:, 3:], axis=1) < REST
    those = np.flatnonzero(rests)
    depth = max([0.0, *(-_lowest(objects[i], poses[i]) for i in those)])
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.enable_signed_distance = True
    shapes = [_shape(one) for one in objects]
    places = [coal.Transform3s(pin.Quaternion(pose[3:]).toRotationMatrix(), pose[:3]) for pose in poses]
    for n, i in enumerate(those):
        for j in those[n + 1 :]:
            if np.linalg.norm(poses[i, :3] - poses[j, :3]) < reach[i] + reach[j]:
                result.clear()
                depth = max(depth, -coal.distance(shapes[i], places[i], shapes[j], places[j], request, result))
    return len(those), depth


def _same(w: World, objects: Sequence[ObjectConfig]) -> bool:
    """Return whether steps are repeated to the bit from where ``w`` is, by itself and by a new world."""
    begin = w.state()
    ends = []
    for one in (w, w, world_of(objects)):
        one.set_state(begin)
        for _ in range(AGAIN):
            one.step()
        ends.append(b"".join(array.tobytes() for array in one.state().values()))
    w.set_state(begin)
    return ends[0] == ends[1] == ends[2]


def run(number: int, seed: int, seconds: float = SECONDS, slowest: float = SLOWEST) -> Scene:
    """Simulate a scene, and judge it; a step may take ``slowest`` seconds of CPU time."""
    objects = scene(number, seed)
    w = world_of(objects)
    w.warm_up()
    b, steps = w.bodies, round(seconds / STEP)
    found = Scene(number, len(objects))
    reach = np.array([one.reach for one in w.free])
    kept = set(np.random.default_rng([seed, number, 1]).integers(0, steps, 2).tolist())
    linear, spins, energies = _momenta(w)
    found.begun = float(energies[0].sum())
    scale = float(energies[1].sum() + (b.mass * np.abs(b.position @ GRAVITY)).sum())
    turns, took = np.linalg.norm(b.w, axis=1), 0.0
    for k in range(steps):
        if k in kept and not _same(w, objects):
            found.faults.append(f"step {k}: is not repeated to the bit")
        began = time.process_time()
        refused = w.step()
        spent = time.process_time() - began
        took += spent
        found.slowest = max(found.slowest, 1e3 * spent)
        if spent > slowest:
            found.faults.append(f"step {k}: {1e3 * spent:.0f} ms")
        if refused or not np.isfinite(w.poses()).all():
            found.faults.append(f"step {k}: {refused or 'not finite'}")
            return found
        weight = STEP * b.mass[:, None] * GRAVITY
        new_linear, new_spins, new_energies = _momenta(w)
        gave = b.contact[:, :3] + weight
        size = np.abs(new_linear).max(axis=1) + np.abs(linear).max(axis=1) + np.abs(weight).max(axis=1)
        off = np.abs(new_linear - linear - gave).max(axis=1) / size
        # What turns a body acts on arms as long as it is.
        size = reach * size + np.abs(new_spins).max(axis=1) + np.abs(spins).max(axis=1)
        off = np.maximum(off, np.abs(new_spins - spins - b.contact[:, 3:]).max(axis=1) / size)
        found.unbalanced = max(found.unbalanced, float(off.max()))
        touched = np.abs(b.contact).max(axis=1) > 0.0
        new_turns = np.linalg.norm(b.w, axis=1)
        angle = np.minimum(STEP * np.maximum(turns, new_turns), FAR)
        turned = 0.5 * angle**3 * np.maximum(energies[1], new_energies[1])
        slow = 0.5 * STEP * np.linalg.norm(GRAVITY) * np.linalg.norm(b.contact[:, :3], axis=1)
        bound = float(w.given[0] + (touched * turned + slow).sum()) + ROUNDING * scale
        rise = float(new_energies[0].sum() - energies[0].sum())
        found.made += min(max(rise, 0.0), bound)
        if rise > bound and rise - bound > found.risen:
            found.risen = rise - bound
            found.faults.append(f"step {k}: energy rises by {rise:.3g} J, {bound:.3g} J are allowed")
        linear, spins, energies, turns = new_linear, new_spins, new_energies, new_turns
    found.mean = 1e3 * took / steps
    found.at_rest, found.depth = _deepest(objects, w)
    found.unresolved = w.unresolved
    if found.unbalanced > BALANCE:
        found.faults.append(f"momentum is off by {found.unbalanced:.2g} of itself")
    if found.depth > DEEPEST:
        found.faults.append(f"at rest {1e3 * found.depth:.3g} mm deep")
    return found


def table(scenes: Sequence[Scene]) -> str:
    """Return the figures of all scenes, by the number of objects."""
    lines = [
        (
            "| objects | scenes | step, mean | step, slowest | momentum off | energy beyond its bound | energy made of "
            "that at the start | at rest | depth at rest | unresolved | faults |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for low, high in ((1, 4), (5, 8), (9, 16), (17, 24), (25, 32), (1, 32)):
        those = [one for one in scenes if low <= one.objects <= high]
        if not those:
            continue
        lines.append(
            f"| {low} to {high} | {len(those)} | {np.mean([one.mean for one in those]):.2f} ms "
            f"| {max(one.slowest for one in those):.1f} ms | {max(one.unbalanced for one in those):.1e} "
            f"| {max(one.risen for one in those):.1e} J | {max(one.made / one.begun for one in those):.1e} "
            f"| {sum(one.at_rest for one in those)} | {1e3 * max(one.depth for one in those):.3f} mm "
            f"| {sum(one.unresolved for one in those)} | {sum(len(one.faults) for one in those)} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scenes; return 1 if anything does not hold."""
    parser = argparse.ArgumentParser(description="Random scenes of free objects, each step judged.")
    parser.add_argument("--scenes", type=int, default=200, help="how many (default 200)")
    parser.add_argument("--seed", type=int, default=0, help="of all scenes (default 0)")
    given = parser.parse_args(arguments)
    scenes = []
    for number in range(given.scenes):
        one = run(number, given.seed)
        scenes.append(one)
        for fault in one.faults[:5]:
            print(f"scene {number} of {one.objects} objects: {fault}", flush=True)
    print(table(scenes))
    return 1 if any(one.faults for one in scenes) else 0


if __name__ == "__main__":
    sys.exit(main())
