"""Features out of reach do not change any bit: objects, patches of ground, force plates, and a released gantry."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from theory import MODELS

from bipedsim.ground import Ground, Patch
from bipedsim.model import Robot, load_robot
from bipedsim.objects import ObjectConfig
from bipedsim.plates import PlateConfig
from bipedsim.sim import GantryConfig, Simulator

AWAY = 40.0
ROBOTS = ("biped14", "parallel_ankles", "compass", "kicking_walker")
"""A floating and a planar base, closed chains, point feet, and bodies that collide with obstacles."""

load = cache(load_robot)


def ground(far: bool) -> Ground:
    """Return flat ground, with a step far away if asked for."""
    half = 0.2
    region = np.array([[-half, -half], [half, -half], [half, half], [-half, half]])
    step = Patch(np.array([AWAY, 0.0, 0.1]), np.eye(3), region=region)
    flat = Ground.flat(friction_static=0.6, friction_dynamic=0.4)
    return Ground((*flat.patches, step)) if far else flat


def things() -> list[ObjectConfig]:
    """Return objects that roll, fall and lie on each other, all out of reach."""
    box = {"shape": "box", "size": (0.2, 0.3, 0.2), "mass": 2.0}
    return [
        ObjectConfig(
            name="ball", shape="ball", mass=1.0, radius=0.1, position=(AWAY, 1.0, 0.3), velocity=(3.0, 0.0, 0.0)
        ),
        ObjectConfig(name="low", position=(AWAY, 3.0, 0.1), **box),
        ObjectConfig(name="high", position=(AWAY, 3.0, 0.3), **box),
    ]


def fall(sim: Simulator, ticks: int, seed: int) -> bytes:
    """Let a robot that is pushed fall under torques by chance; return all bits of its way and of its contacts."""
    rng = np.random.default_rng(seed)
    robot = sim.robot
    limit = np.minimum(robot.effort_limit, 0.05 * robot.weight)
    found = []
    for _ in range(ticks):
        sim.step(rng.uniform(-1.0, 1.0, robot.nu) * limit)
        c = sim.contact
        found += [
            sim.q.tobytes(),
            sim.v.tobytes(),
            c.wrench.tobytes(),
            c.sliding.tobytes(),
            sim.body_impulse.tobytes(),
        ]
    return b"".join(found)


def pushed(robot: Robot, model: str, far: bool) -> Simulator:
    """Return a simulation of a robot that is pushed off its feet, with or without company far away."""
    plates = [PlateConfig(name="plate", size=(0.4, 0.6), position=(-AWAY, 0.0, 0.0))] if far else []
    sim = Simulator(robot, ground(far), contact=model, objects=things() if far else [], force_plates=plates)
    sim.push(np.array([0.4, 0.1, 0.0, 0.0, 0.0, 0.0]) * robot.weight, duration=0.2)
    return sim


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ROBOTS)
def test_what_is_out_of_reach_changes_no_bit(name: str, model: str) -> None:
    robot = load(name)
    alone, company = (fall(pushed(robot, model, far), 150, seed=3) for far in (False, True))
    assert alone == company


@pytest.mark.parametrize("name", ["biped14", "parallel_ankles"])
def test_bodies_on_the_ground_notice_nothing_of_what_is_out_of_reach(name: str) -> None:
    """This holds until the robot lies on the ground. Then its bodies are in contact, and share kernels with objects."""
    robot = load(name)
    sims = [pushed(robot, "one_step", far) for far in (False, True)]
    alone, company = (fall(sim, 1300, seed=3) for sim in sims)
    assert alone == company
    assert sims[0].reactions.body_impulse.any(), "it has come down"


@pytest.mark.parametrize("model", MODELS)
def test_a_gantry_that_has_let_go_changes_no_bit(model: str) -> None:
    robot = load("biped14")
    hung, free = Simulator(robot, contact=model, gantry=GantryConfig(clearance=0.0)), Simulator(robot, contact=model)
    hung.hang("release")
    fall(hung, 520, seed=1)
    assert hung.gantry is not None
    assert not hung.gantry.holds
    snapshot = hung.snapshot()
    others = {name: state for name, state in snapshot.participants.items() if name != "gantry"}
    free.restore(replace(snapshot, participants=others))
    assert fall(hung, 100, seed=2) == fall(free, 100, seed=2)
