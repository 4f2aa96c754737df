"""A headless run: robot, controller, scenario and contact model in one process, without ROS."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tqdm import tqdm

from bipedsim.analysis.force_plate import summary
from bipedsim.contact.footing import UNDERSIDE
from bipedsim.controllers import find_controller, make_controller
from bipedsim.controllers.base import checked_torque
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground, get_ground
from bipedsim.recording import Recording
from bipedsim.robot import Robot, load_robot
from bipedsim.scenarios import get_scenario
from bipedsim.simulator import Simulator

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
    controller_params: Mapping[str, Any] = field(default_factory=dict)
    contact_params: Mapping[str, Any] = field(default_factory=dict)


def run_headless(settings: RunSettings, progress: bool = False) -> tuple[Recording, dict[str, Any]]:
    """Run and return the recording, one row per control tick, and the summary with the keys of summary.json.

    The effort limits of the robot are applied to every command, as its drives would.

    Raises:
        ConfigError: Something in the settings is wrong.
        DivergenceError: The simulation left the finite numbers.
    """
    for name in ("duration", "rate"):
        value = getattr(settings, name)
        if not (np.isfinite(value) and value > 0.0):
            raise ConfigError(f"{name} = {value} must be positive and finite")
    robot = load_robot(settings.robot)
    ground = get_ground(settings.ground)
    scenario = get_scenario(settings.scenario)
    control_dt = 1.0 / settings.rate
    sim = Simulator(
        robot,
        ground,
        contact=settings.contact_model,
        physics_dt=control_dt if settings.physics_dt is None else settings.physics_dt,
        control_dt=control_dt,
        contact_params=settings.contact_params,
    )
    # A scenario speaks to the controllers that know its words; one of the user's own need not.
    known = getattr(find_controller(settings.controller)[1], "Params", None)
    fields = {f.name for f in dataclasses.fields(known)} if known is not None else set()
    told = {key: value for key, value in scenario.controller.items() if key in fields}
    overrides = {**told, **settings.controller_params}
    controller = make_controller(settings.controller, robot, overrides, control_dt)
    sim.warm_up()
    ticks = max(1, round(settings.duration * settings.rate))
    q = ground.place(robot.q_nominal) if robot.free_flyer else robot.q_nominal.copy()
    q[2] += scenario.drop_height
    observation = sim.reset(q)
    controller.reset(observation)
    controller.update(observation)
    controller.reset(observation)
    builder = Recording.Builder(robot, ticks)
    limit = robot.effort_limit
    tau = np.zeros(robot.nu)
    push = scenario.push
    push_tick = -1 if push is None else round(push.start * settings.rate)

    started = time.perf_counter()
    for tick in tqdm(range(ticks), unit="tick", disable=not progress, leave=False):
        if push is not None and tick == push_tick:
            force = robot.weight * np.array(push.force_over_weight)
            sim.push(np.concatenate([force, np.zeros(3)]), duration=push.duration)
        np.clip(checked_torque(controller.update(observation), observation), -limit, limit, out=tau)
        observation = sim.step(tau)
        truth = sim.ground_truth()
        builder.append(observation.t, observation, sim.contact, sim.q, truth.cop_world, truth.pose_world_sole)
    elapsed = time.perf_counter() - started

    recording = builder.build()
    figures = summary(recording, settle=SETTLE)
    counted = {
        "duration_s": ticks * control_dt,
        "rate_hz": settings.rate,
        "real_time_factor": ticks * control_dt / elapsed,
        "overruns": 0,
        "missed_commands": 0,
        "commands_dropped": 0,
        "round_trip_us": None,
    }
    # Counted on every physics step and across the whole run, where the recording only sees control ticks.
    exact = {"state_changes": sim.contact.state_changes, "unresolved_steps": sim.contact.unresolved}
    return recording, {"robot": robot.name, **figures, **counted, **exact, **_foot_motion(recording, robot, ground)}


def _foot_motion(recording: Recording, robot: Robot, ground: Ground) -> dict[str, float]:
    """Return how far the soles moved after settling, and how deep a vertex went into the ground, in metres."""
    settled = recording.t - recording.t[0] >= min(SETTLE, 0.5 * recording.duration)
    positions = recording.sole_poses[settled, :, :3]
    drift = float(np.linalg.norm(positions - positions[0], axis=2).max())
    depth = 0.0
    for k, sole in enumerate(robot.soles):
        x, y, z, w = recording.sole_poses[:, k, 3:].T
        # The first two columns of the rotation of the sole, (3, 2, n).
        axes = np.array(
            [
                [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z)],
                [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z)],
                [2.0 * (x * z - w * y), 2.0 * (y * z + w * x)],
            ]
        )
        points = recording.sole_poses[:, None, k, :3] + np.einsum("abt,vb->tva", axes, sole.vertices)
        depth = max(depth, float(ground.depth(points, UNDERSIDE).max()) + sole.radius)
    return {"foot_drift_m": drift, "penetration_m": depth}
