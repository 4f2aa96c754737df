"""A headless run: robot, controller, scenario and contact model in one process, without ROS."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from bipedsim.analysis.fall import fall_time
from bipedsim.analysis.feet import sole_depth, sole_drift
from bipedsim.analysis.force_plate import summary
from bipedsim.controllers import find_controller, make_controller
from bipedsim.controllers.base import Controller, checked_torque
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground, get_ground
from bipedsim.hardware import IDEAL
from bipedsim.recording import Recording
from bipedsim.robot import Robot, load_robot
from bipedsim.scenarios import Scenario, get_scenario
from bipedsim.simulator import Simulator, whole_ratio

Array = NDArray[np.float64]

SETTLE = 1.0
"""Time [s] at the start that figures of standing leave out."""


@dataclass(frozen=True)
class RunSettings:
    """What to run.

    Attributes:
        robot: Name or path of a robot.yaml.
        controller: Name in ``CONTROLLERS``.
        scenario: Name in ``SCENARIOS``.
        duration: Simulated time [s].
        contact_model: Name in ``CONTACT_MODELS``.
        ground: Name of a ground, or path of a ground YAML.
        rate: Control rate [Hz].
        physics_dt: Physics step [s]; one per control tick if None.
        hardware: As :class:`Simulator` takes it.
        seed: Of the sensors' noise.
        controller_params, contact_params: What differs from the defaults.
    """

    robot: str = "biped14"
    controller: str = "posture"
    scenario: str = "stand"
    duration: float = 10.0
    contact_model: str = "one_step"
    ground: str = "flat"
    rate: float = 1000.0
    physics_dt: float | None = None
    hardware: str | Mapping[str, Any] = IDEAL
    seed: int = 0
    controller_params: Mapping[str, Any] = field(default_factory=dict)
    contact_params: Mapping[str, Any] = field(default_factory=dict)


class Observer(Protocol):
    """Who looks into a run while it goes on: what the recording does not hold."""

    def start(self, sim: Simulator) -> None:
        """Take in the simulator, at rest in its first state."""
        ...

    def tick(self, tau_joint: Array, seconds: float) -> None:
        """Take in that the simulator made a step under ``tau_joint`` (nu,) [N.m], which took ``seconds``."""
        ...


@dataclass(frozen=True, eq=False)
class Prepared:
    """What the settings name, found and checked.

    Attributes:
        robot, ground, scenario: The things themselves.
        controller: A new one, told what the scenario needs and what the settings say.
        control_dt, physics_dt: Periods [s]; their ratio is whole.
        ticks: Control ticks of the run.
    """

    robot: Robot
    ground: Ground
    scenario: Scenario
    controller: Controller
    control_dt: float
    physics_dt: float
    ticks: int


def prepare(settings: RunSettings) -> Prepared:
    """Find and check everything that the settings name, but for the contact model.

    Raises:
        ConfigError: Something in the settings is wrong.
    """
    for name in ("duration", "rate"):
        value = getattr(settings, name)
        if not (np.isfinite(value) and value > 0.0):
            raise ConfigError(f"{name} = {value} must be positive and finite")
    control_dt = 1.0 / settings.rate
    physics_dt = control_dt if settings.physics_dt is None else settings.physics_dt
    whole_ratio(control_dt, physics_dt)
    robot = load_robot(settings.robot)
    scenario = get_scenario(settings.scenario)
    # A scenario speaks to the controllers that know its words; one of the user's own need not.
    known = getattr(find_controller(settings.controller)[1], "Params", None)
    fields = {f.name for f in dataclasses.fields(known)} if known is not None else set()
    told = {key: value for key, value in scenario.controller.items() if key in fields}
    return Prepared(
        robot=robot,
        ground=get_ground(settings.ground),
        scenario=scenario,
        controller=make_controller(settings.controller, robot, {**told, **settings.controller_params}, control_dt),
        control_dt=control_dt,
        physics_dt=physics_dt,
        ticks=max(1, round(settings.duration * settings.rate)),
    )


def run_headless(
    settings: RunSettings, progress: bool = False, observer: Observer | None = None, label: str = ""
) -> tuple[Recording, dict[str, Any]]:
    """Run and return the recording, one row per control tick, and the summary with the keys of summary.json.

    The effort limits of the robot are applied to every command, as its drives would.

    Args:
        settings: What to run.
        progress: Show a bar on stderr.
        observer: Looks on.
        label: Stands before the bar.

    Raises:
        ConfigError: Something in the settings is wrong.
        DivergenceError: The simulation left the finite numbers.
    """
    prepared = prepare(settings)
    robot, ground, scenario, ticks = prepared.robot, prepared.ground, prepared.scenario, prepared.ticks
    sim = Simulator(
        robot,
        ground,
        contact=settings.contact_model,
        physics_dt=prepared.physics_dt,
        control_dt=prepared.control_dt,
        contact_params=settings.contact_params,
        hardware=settings.hardware,
        seed=settings.seed,
    )
    controller = prepared.controller
    sim.warm_up()
    observation = sim.reset(_start(prepared))
    controller.reset(observation)
    controller.update(observation)
    controller.reset(observation)
    if observer is not None:
        observer.start(sim)
    builder = Recording.Builder(robot, ticks)
    limit = robot.effort_limit
    tau = np.zeros(robot.nu)
    push = scenario.push
    push_tick = -1 if push is None else round(push.start * settings.rate)

    started = time.perf_counter()
    for tick in tqdm(range(ticks), desc=label or None, unit="tick", disable=not progress, leave=False):
        if push is not None and tick == push_tick:
            force = robot.weight * np.array(push.force_over_weight)
            sim.push(np.concatenate([force, np.zeros(3)]), duration=push.duration)
        np.clip(checked_torque(controller.update(observation), observation), -limit, limit, out=tau)
        before = time.perf_counter()
        observation = sim.step(tau)
        seconds = time.perf_counter() - before
        truth = sim.ground_truth()
        builder.append(observation.t, observation, sim.contact, sim.q, truth.cop_world, truth.pose_world_sole)
        if observer is not None:
            observer.tick(tau, seconds)
    elapsed = time.perf_counter() - started

    recording = builder.build()
    recording.about = _about(settings)
    counted = {
        "duration_s": ticks * prepared.control_dt,
        "rate_hz": settings.rate,
        "real_time_factor": ticks * prepared.control_dt / elapsed,
        "overruns": 0,
        "missed_commands": 0,
        "commands_dropped": 0,
        "round_trip_us": None,
    }
    # Counted on every physics step and across the whole run, where the recording only sees control ticks.
    exact = {"state_changes": sim.contact.state_changes, "unresolved_steps": sim.contact.unresolved}
    motion = {
        "foot_drift_m": sole_drift(recording, SETTLE),
        "penetration_m": float(sole_depth(recording, robot, ground).max()),
        "fell_at_s": fall_time(recording, robot),
    }
    return recording, {"robot": robot.name, **summary(recording, settle=SETTLE), **counted, **exact, **motion}


def _start(prepared: Prepared) -> Array:
    """Return the configuration (nq,) in which the run begins."""
    robot = prepared.robot
    if not robot.free_flyer:
        return robot.q_nominal.copy()
    q = prepared.ground.place(robot.q_nominal)
    q[2] += prepared.scenario.drop_height
    return q


def _about(settings: RunSettings) -> dict[str, str]:
    """Return what a picture says of the run; a file's name without its folders."""
    return {
        "scenario": settings.scenario,
        "controller": settings.controller,
        "contact_model": settings.contact_model,
        "ground": Path(settings.ground).stem,
    }
