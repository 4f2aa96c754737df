"""Measure step times in alternation, creep under a side load, force at rest, and penetration."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from bipedsim.errors import BipedSimError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim_studies.bench.engines import Engine, Soles
from bipedsim_studies.bench.hold import Hold

SETTLE_SECONDS = 2.0
REST_SECONDS = 1.0
PUSH_RAMP_SECONDS = 2.0
"""Duration of the quintic ramp of the push [s]. A sudden push would make the robot rock on the edges of its feet."""
PUSH_SETTLE_SECONDS = 2.0
"""Settling time after the ramp [s]."""
FALL_PUSH, FALL_PUSH_SECONDS = np.array([0.3, 0.1, 0.0]), 0.2
"""Push at the root link that starts a fall, as fractions of the robot's weight, and its duration [s]."""
UNTIMED_STEPS = 50
"""Untimed steps at the start of a block, for caches and warm starts."""


@dataclass(frozen=True)
class Rest:
    """Result of a standing robot.

    Attributes:
        q, v: Final state.
        force_error: Largest |sum f_z - m g| over the last second [N].
        penetration: Depth of the deepest vertex below the ground over the last second [m].
    """

    q: Array
    v: Array
    force_error: float
    penetration: float


@dataclass(frozen=True)
class Creep:
    """Result of the feet under a constant side load.

    Attributes:
        speed: Mean horizontal speed of the foot that moves most [m/s].
        displacement: Horizontal displacement of that foot [m].
        friction_used: Largest final |f_t| / (mu f_z) of a foot. The load is inside the friction cone below 1.
    """

    speed: float
    displacement: float
    friction_used: float


class FellError(BipedSimError):
    """The robot fell."""


def run(engine: Engine, hold: Hold, steps: int, on_step: Callable[[], None] | None = None) -> None:
    """Advance the engine under the controller, and call ``on_step`` after every step."""
    for _ in range(steps):
        engine.step(hold.torque(*engine.state()))
        if on_step:
            on_step()


def measure_rest(engine: Engine, hold: Hold) -> Rest:
    """Stand in the nominal posture, and return the result over the last second.

    Raises:
        FellError: The robot fell.
    """
    robot = engine.robot
    soles = Soles(robot)
    engine.reset(robot.q_nominal, np.zeros(robot.model.nv))
    run(engine, hold, round(SETTLE_SECONDS / engine.dt))
    _check_upright(engine)
    force_error, depth = 0.0, -np.inf

    def record_worst() -> None:
        nonlocal force_error, depth
        force_error = max(force_error, abs(float(engine.wrenches()[:, 2].sum()) - robot.weight))
        depth = max(depth, soles.depth(engine.state()[0]))

    run(engine, hold, round(REST_SECONDS / engine.dt), record_worst)
    q, v = engine.state()
    return Rest(q.copy(), v.copy(), force_error, depth)


def measure_creep(engine: Engine, hold: Hold, rest: Rest, force: float, seconds: float) -> Creep:
    """Push the root link sideways, and return the motion of the feet after the transient.

    Args:
        engine, hold: Engine and controller.
        rest: Initial state.
        force: Side load along the world's y axis [N].
        seconds: Duration of the measurement [s].

    Raises:
        FellError: The robot fell.
    """
    engine.reset(rest.q, rest.v)
    ramp = round(PUSH_RAMP_SECONDS / engine.dt)
    for fraction in np.linspace(0.0, 1.0, ramp):
        engine.push(np.array([0.0, force * fraction**3 * (10.0 - 15.0 * fraction + 6.0 * fraction**2), 0.0]))
        run(engine, hold, 1)
    run(engine, hold, round(PUSH_SETTLE_SECONDS / engine.dt))
    _check_upright(engine)
    soles = Soles(engine.robot)
    start = soles.positions(engine.state()[0])
    steps = round(seconds / engine.dt)
    run(engine, hold, steps)
    _check_upright(engine)
    displacements = soles.positions(engine.state()[0]) - start
    displacement = float(np.hypot(displacements[:, 0], displacements[:, 1]).max())
    wrenches = engine.wrenches()
    mu = np.array([sole.friction_static for sole in engine.robot.soles])
    with np.errstate(divide="ignore", invalid="ignore"):
        used = np.hypot(wrenches[:, 0], wrenches[:, 1]) / (mu * wrenches[:, 2])
    friction_used = float(np.where(wrenches[:, 2] > 0.0, used, 0.0).max())
    engine.push(np.zeros(3))
    return Creep(displacement / (steps * engine.dt), displacement, friction_used)


def side_load(robot: Robot, fraction: float) -> float:
    """Return a fraction of the force along y at the root link that tips or moves the standing robot [N].

    The rigid robot tips over the outer edge of its soles, or its feet slip; the smaller force counts.
    """
    q = robot.q_nominal
    com = pin.centerOfMass(robot.model, robot.model.createData(), q)
    edge = max(
        float((sole.vertices @ placement.rotation[1, :2]).max() + placement.translation[1])
        for sole, placement in zip(robot.soles, Soles(robot).placements(q), strict=True)
    )
    tips = (edge - float(com[1])) / float(q[2])
    slips = min(sole.friction_static for sole in robot.soles)
    return fraction * robot.weight * min(tips, slips)


def _check_upright(engine: Engine) -> None:
    height, nominal = float(engine.state()[0][2]), float(engine.robot.q_nominal[2])
    if not abs(height - nominal) < 0.2 * abs(nominal):
        raise FellError(f"the robot fell: its base is at {height:.3g} m instead of {nominal:.3g} m")


def record_torques(engine: Engine, hold: Hold, rest: Rest, steps: int) -> list[Array]:
    """Return the torques of ``steps`` closed-loop steps from ``rest``, one array (nu,) each."""
    engine.reset(rest.q, rest.v)
    torques = []
    for _ in range(steps):
        torque = hold.torque(*engine.state())
        engine.step(torque)
        torques.append(torque)
    return torques


@contextmanager
def one_core() -> Iterator[int | None]:
    """Pin this process to one core and disable garbage collection. Yield the core, or None if it is unknown."""
    affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    collecting = gc.isenabled()
    gc.disable()
    try:
        if affinity is not None:
            os.sched_setaffinity(0, {max(affinity)})
        yield None if affinity is None else max(affinity)
    finally:
        if affinity is not None:
            os.sched_setaffinity(0, affinity)
        if collecting:
            gc.enable()


def time_alternating(
    engines: Mapping[str, Engine],
    rests: Mapping[str, Rest],
    torques: Mapping[str, list[Array]],
    blocks: int,
    tick: Callable[[], None],
) -> dict[str, Array]:
    """Time the same standing steps of all engines, alternating between blocks.

    A block starts from the engine's rest state and replays the recorded torques, so that no controller runs between the
    steps. The timed code is a Python loop over :meth:`Engine.step`.

    Returns:
        Mean step time of each block (blocks,) per engine [us].
    """
    times = {name: np.zeros(blocks) for name in engines}
    with one_core():
        for block in range(blocks):
            for name, engine in engines.items():
                engine.reset(rests[name].q, rests[name].v)
                for torque in torques[name][:UNTIMED_STEPS]:
                    engine.step(torque)
                timed = torques[name][UNTIMED_STEPS:]
                times[name][block] = engine.time_block(timed) / (1e3 * len(timed))
                tick()
            gc.collect()
    return times


def block_times(us: Array) -> dict[str, float]:
    """Return minimum and median of the blocks' mean step times [us]."""
    return {"min": float(us.min()), "median": float(np.median(us))}


def polygon_soles(robot: Robot, n: int) -> Robot:
    """Return the robot with soles of ``n`` vertices on the ellipse inscribed in the bounding box of each sole."""
    angles = 2.0 * np.pi * (np.arange(n) + 0.5) / n
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    soles = []
    for sole in robot.soles:
        low, high = sole.vertices.min(axis=0), sole.vertices.max(axis=0)
        soles.append(replace(sole, vertices=0.5 * (low + high) + 0.5 * (high - low) * circle))
    return replace(robot, soles=tuple(soles))
