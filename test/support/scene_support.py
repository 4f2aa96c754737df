"""Random scenes: robot, contact model, ground, start, objects, gantry, force plates, pushes, faults and hardware."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin
from paths import STANDING

from bipedsim.config import RunConfig
from bipedsim.contact.models import CONTACT_MODELS
from bipedsim.errors import ConfigError
from bipedsim.ground import GROUNDS, Ground, get_ground
from bipedsim.model import ROBOTS, Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.objects import ObjectConfig
from bipedsim.plates import PlateConfig
from bipedsim.runs import Fault, Scenario
from bipedsim.runs.faults import IMUS, POSSIBLE, SWITCHES
from bipedsim.runs.pushes import Push
from bipedsim.runs.runner import Run, prepare

AMOUNTS = {"late": 0.004, "offset": 0.1, "scaled": 0.5}
TRIES = 8
NO_FEET = {"double_pendulum", "juggler", "mass_damper", "pendulum_damper", "three_balls"}
# Robots of several legs come twice as often as the bodies of experiments.
NAMES = sorted([*STANDING, *(ROBOTS.keys() - NO_FEET)])
MODELS = sorted(CONTACT_MODELS)


@dataclass(frozen=True)
class Scene:
    """A run at its start.

    Attributes:
        described: All random choices, to repeat the run.
        run: The run.
    """

    described: str
    run: Run


def random_scene(number: int) -> Scene:
    """Return the scene ``number``; the same number is the same scene."""
    rng = np.random.default_rng(number)
    # Numbers in a row have all models and all robots; later ones pair them otherwise.
    name, model = NAMES[number % len(NAMES)], MODELS[(number + number // len(NAMES)) % len(MODELS)]
    robot = load_robot(name)
    # Plates lie flush in a floor.
    kind = rng.choice(["named", "slope", "plates"], p=[0.5, 0.2, 0.3])
    ground = get_ground(str(rng.choice(sorted(GROUNDS)))) if kind == "named" else Ground.flat()
    if kind == "slope":
        ground = Ground.slope(rng.uniform(-0.3, 0.3))
    substeps = int(rng.integers(1, 4))
    settings = RunConfig(
        robot=name,
        contact_model=model,
        controller=f"user_controllers:{rng.choice(['Rest', 'Feedback', 'Stiff'][: 3 if robot.nu else 1])}",
        rate=float(rng.choice([500.0, 1000.0])),
        hardware=_hardware(rng),
        seed=number,
    )
    settings = replace(settings, physics_dt=1.0 / settings.rate / substeps)
    if settings.robot in STANDING and rng.random() < 0.3:
        settings = replace(settings, controller="posture")
    gantry: dict[str, Any] = {"lower_at": 0.01, "release_at": 0.02, "speed": 1.0}
    hangs = robot.free_flyer and rng.random() < 0.3
    scenario = Scenario(
        pushes=tuple(_push(rng) for _ in range(rng.integers(0, 3))),
        faults=tuple(_fault(rng) for _ in range(rng.integers(0, 3))),
        gantry=gantry if hangs else "",
        force_plates=_plates(rng) if kind == "plates" else (),
    )
    objects = [_object(rng, k) for k in range(rng.integers(0, 6))]
    thrown = robot.free_flyer and not hangs and rng.random() < 0.6
    start = _thrown(rng, robot) if thrown else None
    for attempt in range(TRIES):
        # Objects that overlap with the robot, or with one another, begin further out.
        placed = tuple(
            replace(one, position=tuple(np.array(one.position) * [1.0 + attempt, 1.0 + attempt, 1.0]))
            for one in objects[: len(objects) * (TRIES - 1 - attempt) // (TRIES - 1)]
        )
        here = replace(scenario, objects=placed)
        described = f"scene {number}: {settings}, {here}, thrown {start}, on a {kind} {ground.source}"
        try:
            run = Run(prepare(settings, here, ground))
            if start is not None:
                q, v = start
                lifted = q + np.r_[0.0, 0.0, 0.4 * attempt, np.zeros(len(q) - 3)]
                run.observation = run.sim.reset(lifted, v)
        except ConfigError:
            if attempt == TRIES - 1:
                raise
        else:
            return Scene(described, run)
    raise AssertionError("unreachable")


def _hardware(rng: np.random.Generator) -> dict[str, Any]:
    every: dict[str, Any] = {
        "preset": str(rng.choice(["ideal", "realistic"])),
        "body_contact": bool(rng.random() < 0.85),
        "body_friction": rng.uniform(0.0, 1.0),
        "body_restitution": rng.uniform(0.0, 0.8),
        "joint_stops": bool(rng.random() < 0.85),
        "stop_restitution": rng.uniform(0.0, 0.8),
        "mass_scale": rng.uniform(0.8, 1.2),
        "command_delay": 0.002,
        "measurement_delay": 0.003,
        "coulomb_friction": 0.1,
        "viscous_friction": 0.1,
    }
    return {key: value for key, value in every.items() if key == "preset" or rng.random() < 0.4}


def _push(rng: np.random.Generator) -> Push:
    return Push(
        at=rng.uniform(0.0, 0.03), duration=rng.uniform(1e-3, 0.05), impulse_over_mass=tuple(rng.uniform(-1.0, 1.0, 3))
    )


def _fault(rng: np.random.Generator) -> Fault:
    # No robot that ships has additional sensors.
    part = str(rng.choice(sorted(POSSIBLE.keys() - {IMUS, SWITCHES})))
    does = str(rng.choice(POSSIBLE[part]))
    return Fault(part, does, at=rng.uniform(0.0, 0.02), duration=0.02, amount=AMOUNTS.get(does))


def _plates(rng: np.random.Generator) -> tuple[PlateConfig, ...]:
    return tuple(
        PlateConfig(
            name=f"plate_{k}",
            model=str(rng.choice(["bertec_fit", "kistler_9281c", "force_treadmill", ""])),
            size=(0.6, 0.4),
            range=3000.0,
            position=(0.0, 3.0 * k, 0.0),
            yaw=rng.uniform(-1.0, 1.0),
        )
        for k in range(rng.integers(1, 3))
    )


def _object(rng: np.random.Generator, k: int) -> ObjectConfig:
    size = rng.uniform(0.02, 0.15)
    shape: dict[str, Any] = [
        {"shape": "ball", "radius": size},
        {"shape": "box", "size": tuple(size * rng.uniform(0.5, 2.0, 3))},
        {"shape": "cylinder", "radius": size, "length": size * rng.uniform(0.2, 3.0)},
    ][rng.integers(3)]
    angle, far = rng.uniform(-np.pi, np.pi), rng.choice([0.3, 0.6, 8.0])
    away = np.array([np.cos(angle), np.sin(angle), 0.0])
    return ObjectConfig(
        name=f"body_{k}",
        mass=float(10.0 ** rng.uniform(-2.0, 1.5)),
        position=tuple(far * away + [0.0, 0.0, 2.0 * size + 0.4 * k]),
        rpy=tuple(rng.uniform(-3.0, 3.0, 3)),
        velocity=tuple(rng.uniform(0.0, 8.0) * -away + [0.0, 0.0, rng.uniform(-1.0, 1.0)]),
        angular_velocity=tuple(rng.uniform(-20.0, 20.0, 3)),
        friction_static=rng.uniform(0.0, 1.5),
        restitution=rng.uniform(0.0, 0.9),
        **shape,
    )


def _thrown(rng: np.random.Generator, robot: Robot) -> tuple[Array, Array]:
    """Return a start (q, v) anyhow turned, above the ground and on its way down."""
    q = robot.q_nominal.copy()
    axis = rng.normal(size=3)
    q[3:7] = pin.Quaternion(pin.exp3(axis / np.linalg.norm(axis) * rng.uniform(0.0, np.pi))).coeffs()
    v = np.concatenate([rng.uniform(-3.0, 3.0, 6), rng.uniform(-3.0, 3.0, robot.model.nv - 6)])
    if robot.loops:
        v[6:] = 0.0
    return q, v
