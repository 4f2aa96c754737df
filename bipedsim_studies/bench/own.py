"""Measure bipedsim's contact models over the number of vertices, and in motion."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import numpy as np

from bipedsim.contact import CONTACT_MODELS
from bipedsim.control import make_controller
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim_studies.bench.engines import make_engine
from bipedsim_studies.bench.hold import Hold
from bipedsim_studies.bench.measure import (
    UNTIMED_STEPS,
    block_times,
    measure_rest,
    one_core,
    polygon_soles,
    record_torques,
    time_alternating,
)

Row = dict[str, Any]

ROBOT = "biped14"
VERTICES = (4, 8, 16, 32)
MOTIONS = ("squat", "sway", "jump")
MOTION_SECONDS = 3.0
STRETCH = 200
"""Steps of a motion that are timed together. Each segment runs undisturbed at some time, but never a whole motion."""


def scaling_pieces(blocks: int) -> int:
    """Return the number of calls of ``tick`` by :func:`measure_scaling`."""
    return len(VERTICES) * len(CONTACT_MODELS) * (1 + blocks)


def motion_pieces(blocks: int) -> int:
    """Return the number of calls of ``tick`` by :func:`measure_motion`."""
    return len(MOTIONS) * len(CONTACT_MODELS) * (1 + blocks)


def measure_scaling(dt: float, blocks: int, steps: int, tick: Callable[[str], None]) -> dict[str, dict[str, Row]]:
    """Return the standing step time per contact model and number of vertices, and its ratio to the smallest number."""
    robot = load_robot(ROBOT)
    hold = Hold(robot, dt)
    keys = {f"{model} {n}": (model, n) for model in CONTACT_MODELS for n in VERTICES}
    engines, rests, torques = {}, {}, {}
    for key, (model, n) in keys.items():
        engine = engines[key] = make_engine(model, polygon_soles(robot, n), dt)
        rests[key] = measure_rest(engine, hold)
        torques[key] = record_torques(engine, hold, rests[key], UNTIMED_STEPS + steps)
        tick(f"scaling: {key} vertices")
    times = time_alternating(engines, rests, torques, blocks, lambda: tick("scaling: step time"))
    result: dict[str, dict[str, Row]] = {model: {} for model in CONTACT_MODELS}
    for key, (model, n) in keys.items():
        baseline = times[f"{model} {VERTICES[0]}"]
        ratio = float(times[key].min() / baseline.min())
        result[model][str(n)] = {"step_us": block_times(times[key]), f"ratio_to_{VERTICES[0]}": ratio}
    return result


class MotionReplay:
    """Motion of the posture controller with one contact model, recorded once and repeated with identical results.

    Attributes:
        q_end: (nq,) recorded final configuration.
        state_changes, unresolved: Counters of the contact model after the motion.
    """

    def __init__(self, robot: Robot, model: str, motion: str, dt: float) -> None:
        self._simulator = simulator = Simulator(robot, contact=model, physics_dt=dt)
        simulator.warm_up()
        controller = make_controller("posture", robot, {"mode": motion}, dt)
        observation = simulator.reset()
        controller.reset(observation)
        self._torques = []
        for _ in range(round(MOTION_SECONDS / dt)):
            torque = controller.update(observation).tau_joint.copy()
            self._torques.append(torque)
            observation = simulator.step(torque)
        self.q_end = simulator.q.copy()
        self.state_changes = simulator.contact.state_changes
        self.unresolved = simulator.contact.unresolved

    @property
    def q(self) -> Array:
        """Current configuration (nq,)."""
        return self._simulator.q

    def time(self) -> Array:
        """Return the mean step time of each segment of the motion [us]."""
        self._simulator.reset()
        step = self._simulator.advance
        times = []
        for first in range(0, len(self._torques), STRETCH):
            segment = self._torques[first : first + STRETCH]
            start = perf_counter_ns()
            for torque in segment:
                step(torque)
            times.append((perf_counter_ns() - start) / (1e3 * len(segment)))
        return np.array(times)


def measure_motion(dt: float, blocks: int, tick: Callable[[str], None]) -> dict[str, dict[str, Row]]:
    """Return the mean step time per motion and contact model, and its ratio to ``one_step``.

    Each motion is recorded once per model with the posture controller, and repeated without it. The models alternate.
    """
    robot = load_robot(ROBOT)
    result: dict[str, dict[str, Row]] = {}
    for motion in MOTIONS:
        replays = {}
        for model in CONTACT_MODELS:
            replays[model] = MotionReplay(robot, model, motion, dt)
            tick(f"motion: {motion}, {model}")
        times: dict[str, list[Array]] = {model: [] for model in replays}
        with one_core():
            for _ in range(blocks):
                for model, replay in replays.items():
                    times[model].append(replay.time())
                    tick(f"motion: {motion}")
                gc.collect()
        shortest = {model: float(np.min(us, axis=0).mean()) for model, us in times.items()}
        result[motion] = {
            model: {
                "step_us": {"min": shortest[model], "median": float(np.median(times[model], axis=0).mean())},
                "ratio_to_one_step": shortest[model] / shortest["one_step"],
                "state_changes": replay.state_changes,
                "unresolved": replay.unresolved,
            }
            for model, replay in replays.items()
        }
    return result
