"""Measure steps with a touch-down or with contact of another body, and compare them with steps while standing."""

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
from bipedsim_studies.bench.measure import FALL_PUSH, FALL_PUSH_SECONDS, SETTLE_SECONDS, one_core

Row = dict[str, Any]

ROBOTS = ("biped14", "talos", "g1")
STANDING = "standing"
LEAD = 3
"""Untimed steps before the timed one, which fill the caches as in a normal run."""
MOST = 24
"""Maximum number of timed steps of each kind, spread over all recorded ones."""
SECONDS = {STANDING: 0.3, "flat": 0.15, "tilted": 0.3, "touch-down": 4.0, "bodies": 3.0}
"""Simulated time for each kind of step [s]: standing, touch-downs of both entire soles, touch-downs on a vertex or an
edge, touch-downs during a walk, and falls."""
HEIGHTS = (0.002, 0.005, 0.01, 0.02)
"""Initial clearance of the soles in drops [m]."""
WALKS_AFTER, WALK = 0.3, (0.3, 0.0, 0.0)
"""Start time of the walk [s], and its velocity [m/s, m/s, rad/s]."""
TILTS = ((0.05, 0.0), (0.0, 0.05), (0.04, 0.03), (-0.03, 0.04))
"""Roll and pitch angles of the tilted drops [rad]."""


@dataclass(frozen=True)
class RecordedStep:
    """A step that can be repeated, with the ``LEAD`` steps before it.

    Attributes:
        begun: Snapshot at the start of the first of these steps.
        torques: (nu,) torques of each step.
    """

    begun: Snapshot
    torques: tuple[Array, ...]


def velocity_level(robot: Robot) -> tuple[str, ...]:
    """Return the contact models that solve for the velocity after the step and divide a step with a touch-down."""
    projection = Projection.of_soles(robot.soles)
    return tuple(name for name in CONTACT_MODELS if make_contact_model(name, projection, 1e-3).late is None)


def event_pieces(blocks: int) -> int:
    """Return the number of calls of ``tick`` by :func:`measure_events`."""
    return sum(len(velocity_level(load_robot(name))) * len(SECONDS) + blocks for name in ROBOTS)


def measure_events(dt: float, blocks: int, tick: Callable[[str], None]) -> dict[str, dict[str, Row]]:
    """Return for each robot and contact model the mean step time while standing [us], and ratios for each event.

    Every step is recorded once and repeated ``blocks`` times from its snapshot, with all kinds and models in turn. The
    result is the mean over the steps of a kind of the shortest time of each step.
    """
    result: dict[str, dict[str, Row]] = {}
    for name in ROBOTS:
        robot = load_robot(name)
        simulators = {}
        moments: dict[tuple[str, str], list[RecordedStep]] = {}
        for model in velocity_level(robot):
            simulators[model] = simulator = Simulator(robot, contact=model, physics_dt=dt)
            simulator.warm_up()
            for kind in SECONDS:
                candidates = [step for sequence in _step_sequences(simulator, kind, dt) for step in sequence]
                selected = np.unique(
                    np.linspace(0, len(candidates) - 1, min(MOST, len(candidates))).round().astype(int)
                )
                moments[model, kind] = [candidates[i] for i in selected]
                tick(f"events: {name}, {model}, {kind}")
        times = {key: np.full(len(recorded_steps), np.inf) for key, recorded_steps in moments.items()}
        with one_core():
            for _ in range(blocks):
                for (model, kind), recorded_steps in moments.items():
                    shortest = times[model, kind]
                    for i, moment in enumerate(recorded_steps):
                        shortest[i] = min(shortest[i], _time(simulators[model], moment))
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


def _time(simulator: Simulator, moment: RecordedStep) -> float:
    """Repeat a step and return its duration [us]."""
    simulator.restore(moment.begun)
    *before, last = moment.torques
    for torque in before:
        simulator.advance(torque)
    start = perf_counter_ns()
    simulator.advance(last)
    return (perf_counter_ns() - start) / 1e3


def _step_sequences(simulator: Simulator, kind: str, dt: float) -> Iterator[Iterator[RecordedStep]]:
    """Simulate the runs for a ``kind`` of step, and yield the steps of each run."""
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
                rotation = pin.rpy.rpyToMatrix(roll, pitch, 0.0) @ pin.Quaternion(q[3:7]).matrix()
                q[3:7] = pin.Quaternion(rotation).coeffs()
                q[2] += height + soles.depth(q)
                yield _steps(simulator, kind, simulator.reset(q), stand)
    elif kind == "touch-down":
        start = simulator.reset()
        yield _steps(simulator, kind, start, walking(simulator, start))
    else:
        start = simulator.reset()
        simulator.push(robot.weight * np.append(FALL_PUSH, np.zeros(3)), duration=FALL_PUSH_SECONDS)
        idle = np.zeros(robot.nu)
        yield _steps(simulator, kind, start, lambda observation: idle)


def walking(simulator: Simulator, start: Observation) -> Callable[[Observation], Array]:
    """Return the torques (nu,) of the controller ``zmp``, which stands at first and then walks."""
    robot = simulator.robot
    guard = Guard(make_controller("zmp", robot, {}, simulator.physics_dt), robot)
    guard.reset(start)

    def walk(observation: Observation) -> Array:
        if simulator.t >= WALKS_AFTER:
            guard.steer(WALK)
        torque = guard.update(observation).tau_joint
        return np.clip(torque, -robot.effort_limit, robot.effort_limit)

    return walk


def _steps(
    simulator: Simulator, kind: str, observation: Observation, drive: Callable[[Observation], Array]
) -> Iterator[RecordedStep]:
    """Continue the simulation and yield the steps of a ``kind``."""
    recent: list[tuple[Snapshot, Array]] = []
    for _ in range(round(SECONDS[kind] / simulator.physics_dt)):
        torque = drive(observation).copy()
        recent = [*recent[-LEAD:], (simulator.snapshot(), torque)]
        observation = simulator.step(torque)
        matches = (
            simulator.body_impulse.any() if kind == "bodies" else kind == STANDING or simulator.stepper.landed > 0.0
        )
        if matches and len(recent) > LEAD:
            yield RecordedStep(recent[0][0], tuple(torque for _, torque in recent))
