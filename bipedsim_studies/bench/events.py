"""What a step costs in which a vertex lands, or a body of the robot touches the ground, beside a standing one."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.contact import CONTACT_MODELS, make_contact_model
from bipedsim.control import Guard, make_controller
from bipedsim.dynamics import Projection
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.sim import Observation, Simulator, Snapshot
from bipedsim_studies.bench.engines import Soles
from bipedsim_studies.bench.hold import Hold
from bipedsim_studies.bench.measure import SETTLE_SECONDS, one_core

Row = dict[str, Any]

ROBOTS = ("biped14", "talos", "g1")
STANDING = "standing"
LEAD = 3
"""Steps before the timed one that are taken and not timed: what they leave in caches is what a run leaves there."""
MOST = 24
"""Steps of a kind that are timed, spread over all that there are."""
SECONDS = {STANDING: 0.3, "flat": 0.15, "tilted": 0.3, "touch-down": 4.0, "bodies": 3.0}
"""How long each kind of step is looked for [s]: in standing, landings of all vertices of both soles at once, landings
on a vertex or an edge, touch-downs of a walk, and falls."""
HEIGHTS = (0.002, 0.005, 0.01, 0.02)
"""Clearance of the soles in drops [m]."""
WALKS_AFTER, WALK = 0.3, (0.3, 0.0, 0.0)
"""When the walk begins [s], and how fast it is [m/s, m/s, rad/s]."""
TILTS = ((0.05, 0.0), (0.0, 0.05), (0.04, 0.03), (-0.03, 0.04))
"""Roll and pitch of the tilted ones [rad]."""


@dataclass(frozen=True)
class Moment:
    """A step that can be taken again, with the ``LEAD`` before it.

    Attributes:
        begun: Where the first of them begins.
        torques: (nu,) of each of them.
    """

    begun: Snapshot
    torques: tuple[Array, ...]


def velocity_level(robot: Robot) -> tuple[str, ...]:
    """Return the contact models that look for the velocity after the step: those whose landings are in parts."""
    projection = Projection.of_soles(robot.soles)
    return tuple(name for name in CONTACT_MODELS if make_contact_model(name, projection, 1e-3).late is None)


def event_pieces(blocks: int) -> int:
    """Return how often :func:`measure_events` ticks."""
    return sum(len(velocity_level(load_robot(name))) * len(SECONDS) + blocks for name in ROBOTS)


def measure_events(dt: float, blocks: int, tick: Callable[[str], None]) -> dict[str, dict[str, Row]]:
    """Return per robot and contact model the mean time of a standing step [us], and of each kind of event over it.

    Every step is recorded once and taken again from its snapshot, ``blocks`` times, all kinds and models in turn; the
    least time of each counts, the mean over those of a kind is told.
    """
    result: dict[str, dict[str, Row]] = {}
    for name in ROBOTS:
        robot = load_robot(name)
        simulators = {}
        moments: dict[tuple[str, str], list[Moment]] = {}
        for model in velocity_level(robot):
            simulators[model] = simulator = Simulator(robot, contact=model, physics_dt=dt)
            simulator.warm_up()
            for kind in SECONDS:
                found = [moment for run in _runs(simulator, kind, dt) for moment in run]
                picked = np.unique(np.linspace(0, len(found) - 1, min(MOST, len(found))).round().astype(int))
                moments[model, kind] = [found[i] for i in picked]
                tick(f"events: {name}, {model}, {kind}")
        times = {key: np.full(len(those), np.inf) for key, those in moments.items()}
        with one_core():
            for _ in range(blocks):
                for (model, kind), those in moments.items():
                    least = times[model, kind]
                    for i, moment in enumerate(those):
                        least[i] = min(least[i], _time(simulators[model], moment))
                tick(f"events: {name}, step time")
                gc.collect()
        result[name] = {model: _row(times, model) for model in simulators}
    return result


def _row(times: dict[tuple[str, str], Array], model: str) -> Row:
    standing = float(times[model, STANDING].mean())
    kinds = [kind for kind in SECONDS if kind != STANDING]
    return {
        "standing_us": standing,
        "event_ratio": {k: float(times[model, k].mean()) / standing if len(times[model, k]) else None for k in kinds},
        "steps": {kind: len(times[model, kind]) for kind in kinds},
    }


def _time(simulator: Simulator, moment: Moment) -> float:
    """Take a step again and return how long it took [us]."""
    simulator.restore(moment.begun)
    *before, last = moment.torques
    for torque in before:
        simulator.advance(torque)
    start = perf_counter_ns()
    simulator.advance(last)
    return (perf_counter_ns() - start) / 1e3


def _runs(simulator: Simulator, kind: str, dt: float) -> Iterator[Iterator[Moment]]:
    """Yield the steps of a ``kind`` of each run that is made for it."""
    robot = simulator.robot
    hold = Hold(robot, dt)

    def stand(observation: Observation) -> Array:
        return hold.torque(simulator.q, simulator.v)

    if kind == STANDING:
        observation = simulator.reset()
        for _ in range(round(SETTLE_SECONDS / dt)):
            observation = simulator.step(stand(observation))
        yield _steps(simulator, kind, observation, stand)
    elif kind in ("flat", "tilted"):
        soles = Soles(robot)
        for roll, pitch in TILTS if kind == "tilted" else ((0.0, 0.0),):
            for height in HEIGHTS:
                q = robot.q_nominal.copy()
                turned = pin.rpy.rpyToMatrix(roll, pitch, 0.0) @ pin.Quaternion(q[3:7]).matrix()
                q[3:7] = pin.Quaternion(turned).coeffs()
                q[2] += height + soles.depth(q)
                yield _steps(simulator, kind, simulator.reset(q), stand)
    elif kind == "touch-down":
        guard = Guard(make_controller("zmp", robot, {}, dt), robot)
        start = simulator.reset()
        guard.reset(start)

        def walk(observation: Observation) -> Array:
            if simulator.t >= WALKS_AFTER:
                guard.steer(WALK)
            torque = guard.update(observation).tau_joint
            return np.clip(torque, -robot.effort_limit, robot.effort_limit)

        yield _steps(simulator, kind, start, walk)
    else:
        start = simulator.reset()
        simulator.push(robot.weight * np.array([0.3, 0.1, 0.0, 0.0, 0.0, 0.0]), duration=0.2)
        idle = np.zeros(robot.nu)
        yield _steps(simulator, kind, start, lambda observation: idle)


def _steps(
    simulator: Simulator, kind: str, observation: Observation, drive: Callable[[Observation], Array]
) -> Iterator[Moment]:
    """Simulate on, and yield the steps of a ``kind``."""
    last: list[tuple[Snapshot, Array]] = []
    for _ in range(round(SECONDS[kind] / simulator.physics_dt)):
        torque = drive(observation).copy()
        last = [*last[-LEAD:], (simulator.snapshot(), torque)]
        observation = simulator.step(torque)
        found = (
            simulator.reactions.body_impulse.any()
            if kind == "bodies"
            else kind == STANDING or simulator.stepper.landed > 0.0
        )
        if found and len(last) > LEAD:
            yield Moment(last[0][0], tuple(torque for _, torque in last))
