"""Simulate random scenes of free objects and check every step: `python benchmarks/object_scenes.py --help`.

A scene has 1 to 32 balls, boxes and cylinders over flat ground. They are at rest, or thrown at up to 100 m/s and
5000 rad/s. Their masses differ by factors up to 1e4. Every step is checked by its own balance, and the final state by
code that is independent of the simulator:

- No step takes more than 50 ms of CPU time, and all values are finite.
- The momentum of each body changes by the impulses of gravity and contacts, to a relative error of 1e-9.
- Energy rises by no more than the bound for an integrator of second order (see below).
- No body at rest is more than 1 mm deep in the ground or in another body at rest.
- From a stored state, the same steps give identical results, also in a new world.

The bound on energy follows from the method. A contact impulse P does the work P (u0 + u1) / 2, where u0 and u1 are the
normal speeds before and after. There are two cases:

- If the contact removes an overlap, u1 is known, and so is its energy.
- Otherwise, u is at most g h / 2. Slower points do not bounce, and bodies that turn far receive this speed. Each body
  can therefore gain P g h / 2.

A body also turns by the angle a = w h during the step. Its lever arms r are those in the middle of the step, so the
error of the work is P dw dr / 4 with dr = a r. Contact that compensates the turning changes w by dw = a w. P r dw is
then twice the energy of that change, 2 a^2 T, where T is the kinetic energy of the body. The error of the work is
therefore at most a^3 T / 2.

The same seeds give the same scenes. The program prints a table, and returns 1 if a check fails.
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
"""Maximum CPU time of a step [s]."""
BALANCE = 1e-9
"""Maximum error of the momentum balance of a step, relative to momenta and impulses."""
FAR = 0.3
"""Turning angle per step above which contacts are impacts, and a turning body receives no contact forces [rad]."""
ROUNDING = 1e-9
"""Rounding error of the energy in a step, relative to the energy of the scene."""
DEEPEST, REST = 1e-3, 1e-2
"""Maximum depth of a body at rest [m], and maximum speed of its fastest point [m/s]."""
AGAIN = 25
"""Number of steps that are repeated from a stored state."""


@dataclass
class Scene:
    """Results of one scene.

    Attributes:
        number, objects: Number of the scene, and number of its objects.
        slowest, mean: Largest and mean CPU time of a step [ms].
        risen: Largest energy increase of a step beyond its bound [J].
        made: Sum of the energy increases of all steps within their bounds [J].
        begun: Initial energy [J].
        unbalanced: Largest relative momentum error of a step.
        at_rest: Number of bodies at rest at the end. depth: Depth of the deepest of them [m].
        unresolved: Number of problems without a solution.
        faults: Failed checks.
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
    """Return the objects of a random scene."""
    rng = np.random.default_rng([seed, number])
    count = int(rng.integers(1, 33))
    width = 0.5 + 0.35 * np.sqrt(count) * rng.uniform(0.5, 1.5)
    objects: list[ObjectConfig] = []
    balls: list[tuple[Array, float]] = []
    while len(objects) < count:
        shape = ("ball", "box", "cylinder")[rng.integers(3)]
        size = _log(rng, 0.005, 0.2)
        sides = size * np.exp(rng.uniform(-0.7, 0.7, 3))
        keys = {"box": {"size": tuple(sides)}, "ball": {"radius": 0.5 * size}}.get(
            shape, {"radius": 0.5 * float(sides[0]), "length": float(sides[2])}
        )
        bound = 0.5 * float(np.linalg.norm(sides)) if shape != "ball" else 0.5 * size
        bound = max(bound, float(np.hypot(0.5 * sides[0], 0.5 * sides[2])))
        position = np.array([*rng.uniform(-width, width, 2), bound + 1e-3 + rng.uniform(0.0, 1.0)])
        if any(np.linalg.norm(position - other_position) < bound + reach + 1e-3 for other_position, reach in balls):
            width *= 1.02
            continue
        balls.append((position, bound))
        thrown, spun = rng.random(2) < 0.5
        friction = rng.uniform(0.0, 1.2)
        objects.append(
            ObjectConfig(
                name=f"o{len(objects)}",
                shape=shape,
                mass=_log(rng, 0.01, 100.0),
                position=tuple(position),
                rpy=tuple(rng.uniform(-np.pi, np.pi, 3)),
                velocity=tuple(_direction(rng) * _log(rng, 0.1, 100.0)) if thrown else (0.0, 0.0, 0.0),
                angular_velocity=tuple(_direction(rng) * _log(rng, 1.0, 5000.0)) if spun else (0.0, 0.0, 0.0),
                friction_static=friction,
                friction_dynamic=friction * rng.uniform(0.5, 1.0),
                restitution=float(rng.choice([0.0, rng.uniform(0.0, 1.0)])),
                **keys,
            )
        )
    return objects


def world_of(objects: Sequence[ObjectConfig]) -> World:
    """Return a world with the objects of a scene over flat ground."""
    return World([config.make() for config in objects], Ground.flat(), STEP, GRAVITY)


def _momenta(w: World) -> tuple[Array, Array, Array]:
    """Return momenta (N, 3), angular momenta about the centres (N, 3), and total and kinetic energies (2, N)."""
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
    """Return the number of bodies at rest, and the depth of the deepest in the ground or in another one [m]."""
    poses, twists = w.poses(), w.twists()
    reach = np.array([one.reach for one in w.free])
    rests = np.linalg.norm(twists[:, :3], axis=1) + reach * np.linalg.norm(twists[:, 3:], axis=1) < REST
    resting = np.flatnonzero(rests)
    depth = max([0.0, *(-_lowest(objects[i], poses[i]) for i in resting)])
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.enable_signed_distance = True
    shapes = [_shape(config) for config in objects]
    places = [coal.Transform3s(pin.Quaternion(pose[3:]).toRotationMatrix(), pose[:3]) for pose in poses]
    for n, i in enumerate(resting):
        for j in resting[n + 1 :]:
            if np.linalg.norm(poses[i, :3] - poses[j, :3]) < reach[i] + reach[j]:
                result.clear()
                depth = max(depth, -coal.distance(shapes[i], places[i], shapes[j], places[j], request, result))
    return len(resting), depth


def _is_repeatable(w: World, objects: Sequence[ObjectConfig]) -> bool:
    """Return whether repeated steps from the current state are identical, also in a new world."""
    begin = w.state()
    ends = []
    for world in (w, w, world_of(objects)):
        world.set_state(begin)
        for _ in range(AGAIN):
            world.step()
        ends.append(b"".join(array.tobytes() for array in world.state().values()))
    w.set_state(begin)
    return ends[0] == ends[1] == ends[2]


def run(number: int, seed: int, seconds: float = SECONDS, slowest: float = SLOWEST) -> Scene:
    """Simulate and check a scene. A step may take ``slowest`` seconds of CPU time."""
    objects = scene(number, seed)
    w = world_of(objects)
    w.warm_up()
    b, steps = w.bodies, round(seconds / STEP)
    result = Scene(number, len(objects))
    reach = np.array([one.reach for one in w.free])
    repeat_steps = set(np.random.default_rng([seed, number, 1]).integers(0, steps, 2).tolist())
    linear, spins, energies = _momenta(w)
    result.begun = float(energies[0].sum())
    scale = float(energies[1].sum() + (b.mass * np.abs(b.position @ GRAVITY)).sum())
    turns, total_time = np.linalg.norm(b.w, axis=1), 0.0
    for k in range(steps):
        if k in repeat_steps and not _is_repeatable(w, objects):
            result.faults.append(f"step {k}: is not repeated to the bit")
        start_time = time.process_time()
        error_message = w.step()
        cpu_time = time.process_time() - start_time
        total_time += cpu_time
        result.slowest = max(result.slowest, 1e3 * cpu_time)
        if cpu_time > slowest:
            result.faults.append(f"step {k}: {1e3 * cpu_time:.0f} ms")
        if error_message or not np.isfinite(w.poses()).all():
            result.faults.append(f"step {k}: {error_message or 'not finite'}")
            return result
        weight = STEP * b.mass[:, None] * GRAVITY
        new_linear, new_spins, new_energies = _momenta(w)
        expected_change = b.contact[:, :3] + weight
        size = np.abs(new_linear).max(axis=1) + np.abs(linear).max(axis=1) + np.abs(weight).max(axis=1)
        errors = np.abs(new_linear - linear - expected_change).max(axis=1) / size
        # An angular impulse acts on lever arms up to the size of the body.
        size = reach * size + np.abs(new_spins).max(axis=1) + np.abs(spins).max(axis=1)
        errors = np.maximum(errors, np.abs(new_spins - spins - b.contact[:, 3:]).max(axis=1) / size)
        result.unbalanced = max(result.unbalanced, float(errors.max()))
        touched = np.abs(b.contact).max(axis=1) > 0.0
        new_turns = np.linalg.norm(b.w, axis=1)
        angle = np.minimum(STEP * np.maximum(turns, new_turns), FAR)
        turning_work = 0.5 * angle**3 * np.maximum(energies[1], new_energies[1])
        impact_work = 0.5 * STEP * np.linalg.norm(GRAVITY) * np.linalg.norm(b.contact[:, :3], axis=1)
        bound = float(w.given[0] + (touched * turning_work + impact_work).sum()) + ROUNDING * scale
        rise = float(new_energies[0].sum() - energies[0].sum())
        result.made += min(max(rise, 0.0), bound)
        if rise > bound and rise - bound > result.risen:
            result.risen = rise - bound
            result.faults.append(f"step {k}: energy rises by {rise:.3g} J, {bound:.3g} J are allowed")
        linear, spins, energies, turns = new_linear, new_spins, new_energies, new_turns
    result.mean = 1e3 * total_time / steps
    result.at_rest, result.depth = _deepest(objects, w)
    result.unresolved = w.unresolved
    if result.unbalanced > BALANCE:
        result.faults.append(f"momentum is off by {result.unbalanced:.2g} of itself")
    if result.depth > DEEPEST:
        result.faults.append(f"at rest {1e3 * result.depth:.3g} mm deep")
    return result


def table(scenes: Sequence[Scene]) -> str:
    """Return the statistics of all scenes, grouped by the number of objects."""
    lines = [
        (
            "| objects | scenes | step, mean | step, slowest | momentum off | energy beyond its bound | energy made of "
            "that at the start | at rest | depth at rest | unresolved | faults |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for low, high in ((1, 4), (5, 8), (9, 16), (17, 24), (25, 32), (1, 32)):
        group = [s for s in scenes if low <= s.objects <= high]
        if not group:
            continue
        lines.append(
            f"| {low} to {high} | {len(group)} | {np.mean([s.mean for s in group]):.2f} ms "
            f"| {max(s.slowest for s in group):.1f} ms | {max(s.unbalanced for s in group):.1e} "
            f"| {max(s.risen for s in group):.1e} J | {max(s.made / s.begun for s in group):.1e} "
            f"| {sum(s.at_rest for s in group)} | {1e3 * max(s.depth for s in group):.3f} mm "
            f"| {sum(s.unresolved for s in group)} | {sum(len(s.faults) for s in group)} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate the scenes. Return 1 if a check fails."""
    parser = argparse.ArgumentParser(description="Random scenes of free objects, each step judged.")
    parser.add_argument("--scenes", type=int, default=200, help="how many (default 200)")
    parser.add_argument("--seed", type=int, default=0, help="of all scenes (default 0)")
    args = parser.parse_args(arguments)
    scenes = []
    for number in range(args.scenes):
        result = run(number, args.seed)
        scenes.append(result)
        for fault in result.faults[:5]:
            print(f"scene {number} of {result.objects} objects: {fault}", flush=True)
    print(table(scenes))
    return 1 if any(result.faults for result in scenes) else 0


if __name__ == "__main__":
    sys.exit(main())
