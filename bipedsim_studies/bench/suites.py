"""Time every single step of falls, drops, hits and walks, in bipedsim and in other engines with the same contacts."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.contact import CONTACT_MODELS
from bipedsim.model import Robot
from bipedsim.numerics import STEP_BUDGET, Array
from bipedsim.objects import ObjectConfig
from bipedsim.sim import Simulator
from bipedsim_studies.bench.engines import (
    ENGINES,
    REFERENCE,
    Engine,
    EngineUnavailableError,
    Scene,
    Soles,
    box_heap,
    make_engine,
    not_supported,
)
from bipedsim_studies.bench.events import SECONDS, TILTS, velocity_level, walking
from bipedsim_studies.bench.hold import Hold
from bipedsim_studies.bench.measure import FALL_PUSH, FALL_PUSH_SECONDS, one_core

Row = dict[str, Any]

FALL_SECONDS, LYING_SECONDS = 3.0, 0.5
"""Duration of a fall, and of lying afterwards [s]."""
LOAD_SECONDS = 0.1
"""Time at the end over which the contact forces of a lying robot are averaged [s]."""
SUITES = ("fall", "drop", "heap", "kick", "walk")
"""Names of the suites."""
IDLE, HOLD, WALK = "idle", "hold", "walk"
"""Torques of a suite: none, those that hold the nominal posture, and those of the controller ``zmp``."""
DROP_HEIGHT = 0.02
"""Clearance of the soles in a drop [m]."""
BOXES, BOX_SIDE, BOX_MASS = 8, 0.1, 1.0
HEAP_DISTANCE = 0.5
"""Lateral distance of the heap from the outer foot [m]."""
BALL_RADIUS, BALL_MASS, BALL_SPEED = 0.1, 0.4, 3.5
BALL_DISTANCE = 0.5
"""Initial distance of the ball in front of the foot [m]."""
BALL_HEIGHT = 0.35
"""Height of the ball, as a fraction of the height of the CoM."""


@dataclass(frozen=True)
class Suite:
    """Runs whose steps are timed.

    Attributes:
        seconds: Duration of each run [s].
        torque: ``IDLE``, ``HOLD`` or ``WALK``.
        starts: Initial configurations (nq,).
        push: Whether ``FALL_PUSH`` acts at the start.
        objects: Objects in addition to the robot.
    """

    seconds: float
    torque: str
    starts: tuple[Array, ...]
    push: bool = False
    objects: tuple[ObjectConfig, ...] = ()


def suites(robot: Robot) -> dict[str, Suite]:
    """Return the suites of a robot by name."""
    nominal = robot.q_nominal
    soles = Soles(robot)
    feet = soles.positions(nominal)
    foot = feet[int(feet[:, 1].argmax())]
    heap = box_heap(BOXES, BOX_SIDE, BOX_MASS, (float(foot[0]), float(foot[1]) + HEAP_DISTANCE))
    ball = ObjectConfig(
        name="ball",
        shape="ball",
        mass=BALL_MASS,
        radius=BALL_RADIUS,
        position=(float(foot[0]) + BALL_DISTANCE, float(foot[1]), BALL_HEIGHT * robot.com_height),
        velocity=(-BALL_SPEED, 0.0, 0.5),
    )
    drops = tuple(_dropped(robot, soles, roll, pitch) for roll, pitch in ((0.0, 0.0), *TILTS))
    return {
        "fall": Suite(FALL_SECONDS + LYING_SECONDS, IDLE, (nominal,), push=True),
        "drop": Suite(0.3, HOLD, drops),
        "heap": Suite(1.5, HOLD, (nominal,), objects=heap),
        "kick": Suite(0.6, HOLD, (nominal,), objects=(ball,)),
        "walk": Suite(SECONDS["touch-down"], WALK, (nominal,)),
    }


def _dropped(robot: Robot, soles: Soles, roll: float, pitch: float) -> Array:
    """Return a tilted configuration (nq,) above the ground."""
    q = robot.q_nominal.copy()
    q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(roll, pitch, 0.0) @ pin.Quaternion(q[3:7]).matrix()).coeffs()
    q[2] += DROP_HEIGHT + soles.depth(q)
    return q


class SuiteReplay:
    """A suite in one engine, recorded once and repeated with the same torques.

    Args:
        engine: The engine, made with the scene of the suite.
        suite: The suite.

    Attributes:
        load: (T,) vertical contact force on the robot in each step of the recording [N].
        unresolved: (T,) whether bipedsim found no solution in the step.
        operations: (T,) operations of bipedsim's solvers in the step, 0 in other engines.
        depth: (T,) largest depth of a sole or body in the ground after a step without a solution, otherwise 0 [m].

    Raises:
        EngineUnavailableError: The engine has no controller for the suite.
    """

    def __init__(self, engine: Engine, suite: Suite) -> None:
        self._engine, self._suite = engine, suite
        self._push_steps = round(FALL_PUSH_SECONDS / engine.dt) if suite.push else -1
        self._torques: list[list[Array]] = []
        loads, unresolved, operations, depths = [], [], [], []
        simulator, soles = engine.simulator, Soles(engine.robot)
        steps = round(suite.seconds / engine.dt)
        for start in suite.starts:
            self._begin(start)
            advance = self._driver(start)
            torques = []
            for i in range(steps):
                self._end_push(i)
                before = simulator.contact.unresolved if simulator else 0
                torques.append(advance())
                loads.append(engine.load()[2])
                unresolved.append(simulator is not None and simulator.contact.unresolved > before)
                operations.append(simulator.operations if simulator else 0)
                depths.append(0.0)
                if simulator and unresolved[-1]:
                    depths[-1] = max(0.0, soles.depth(simulator.q), *_depths(simulator))
            self._torques.append(torques)
        self.load, self.unresolved = np.array(loads), np.array(unresolved)
        self.operations, self.depth = np.array(operations), np.array(depths)

    @property
    def counts(self) -> bool:
        """Whether the engine reports steps without a solution."""
        return self._engine.simulator is not None

    def _begin(self, start: Array) -> None:
        engine = self._engine
        engine.reset(start, np.zeros(engine.robot.model.nv))
        if self._suite.push:
            engine.push(engine.robot.weight * FALL_PUSH)

    def _end_push(self, i: int) -> None:
        if i == self._push_steps:
            self._engine.push(np.zeros(3))

    def _driver(self, start: Array) -> Callable[[], Array]:
        """Return a function that takes a step under the torques (nu,) of the suite and returns them."""
        engine = self._engine
        if self._suite.torque == WALK:
            if engine.simulator is None:
                raise not_supported("the controller walks only in bipedsim", "walk")
            return _walker(engine.simulator, start)
        hold, nothing = Hold(engine.robot, engine.dt), np.zeros(engine.robot.nu)

        def advance() -> Array:
            torque = hold.torque(*engine.state()) if self._suite.torque == HOLD else nothing
            engine.step(torque)
            return torque

        return advance

    def time(self) -> Array:
        """Repeat the runs and return the duration of each step [us]."""
        step = self._engine.step
        times = []
        for start, torques in zip(self._suite.starts, self._torques, strict=True):
            self._begin(start)
            for i, torque in enumerate(torques):
                self._end_push(i)
                begun = perf_counter_ns()
                step(torque)
                times.append(perf_counter_ns() - begun)
        return np.array(times) / 1e3


def _depths(simulator: Simulator) -> list[float]:
    """Return the depths of the robot's bodies in the ground [m]."""
    touching = simulator.reactions.touching
    return list(touching.depths(simulator.q).values()) if touching else []


def _walker(simulator: Simulator, start: Array) -> Callable[[], Array]:
    """Return a function that takes a step of a walk and returns its torques (nu,)."""
    observation = simulator.reset(start)
    walk = walking(simulator, observation)

    def advance() -> Array:
        nonlocal observation
        torque = walk(observation).copy()
        observation = simulator.step(torque)
        return torque

    return advance


def suite_engines(robot: Robot, engines: Sequence[str]) -> tuple[str, ...]:
    """Return those of ``engines`` that can run suites: MuJoCo, and bipedsim's models at velocity level."""
    levels = velocity_level(robot)
    return tuple(
        name
        for name in engines
        if ENGINES[name].scenes and (ENGINES[name].package or (name in levels and name in CONTACT_MODELS))
    )


def suite_pieces(engines: Sequence[str], repetitions: int) -> int:
    """Return the maximum number of calls of ``tick`` by :func:`measure_suites` for one robot."""
    return len(SUITES) * (len(engines) + repetitions) if repetitions else 0


def measure_suites(
    robot: Robot, engines: Sequence[str], dt: float, repetitions: int, tick: Callable[[str], None]
) -> dict[str, dict[str, Row]]:
    """Return for each suite and engine the step times [us]: mean, 99th percentile and worst.

    The time of a step is its minimum over ``repetitions``, in which the engines alternate. The steps are identical in
    all of them, so that a worst step is work and not noise.
    """
    result: dict[str, dict[str, Row]] = {}
    for name, suite in suites(robot).items():
        rows: dict[str, Row] = {}
        replays: dict[str, SuiteReplay] = {}
        for engine_name in engines:
            row: Row = {"label": ENGINES[engine_name].label, "status": "ok", "note": ""}
            rows[engine_name] = row
            try:
                engine = make_engine(engine_name, robot, dt, Scene(suite.objects))
                replays[engine_name] = SuiteReplay(engine, suite)
            except EngineUnavailableError as error:
                row.update(status=error.status, note=str(error))
            except Exception as error:  # A failure of one engine must not stop the others.
                row.update(status="failed", note=f"{type(error).__name__}: {error}")
            tick(f"{robot.name}: {name}, {engine_name}")
        times = _fastest(replays, repetitions, partial(tick, f"{robot.name}: {name}, step time"))
        parts = {name: slice(None)}
        if name == "fall":
            n = round(FALL_SECONDS / dt)
            parts = {"fall": slice(0, n), "lying": slice(n, None)}
        for part, steps in parts.items():
            result[part] = {key: dict(row) for key, row in rows.items()}
            for key, us in times.items():
                row = result[part][key]
                row["step_us"] = step_times(us[steps])
                if replays[key].counts:
                    row["unresolved"] = int(replays[key].unresolved[steps].sum())
                    row["unresolved_depth_um"] = float(1e6 * replays[key].depth[steps].max())
                    row["budget_used"] = float(replays[key].operations[steps].max() / STEP_BUDGET)
                if part == "lying":
                    load = replays[key].load[-round(LOAD_SECONDS / dt) :].mean()
                    row["load_error_N"] = abs(float(load) - robot.weight)
            _add_ratios(result[part])
    return result


def _fastest(replays: Mapping[str, SuiteReplay], repetitions: int, tick: Callable[[], None]) -> dict[str, Array]:
    """Return the minimum time of each step [us] of each replay."""
    times: dict[str, Array] = {}
    with one_core():
        for _ in range(repetitions):
            for key, replay in replays.items():
                us = replay.time()
                times[key] = np.minimum(times.get(key, us), us)
            tick()
            gc.collect()
    return times


def step_times(us: Array) -> dict[str, float]:
    """Return mean, 99th percentile and worst of single steps [us]."""
    return {"mean": float(us.mean()), "p99": float(np.percentile(us, 99.0)), "worst": float(us.max())}


def _add_ratios(rows: dict[str, Row]) -> None:
    """Add the ratios of all times to those of the reference engine."""
    reference = rows.get(REFERENCE, {}).get("step_us")
    for row in rows.values():
        if reference and "step_us" in row:
            row["ratio_to_mujoco"] = {key: row["step_us"][key] / reference[key] for key in reference}
