"""Objects beside a robot: apart they change nothing, and where they meet, momentum is exchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from paths import BODIES
from theory import MODELS, THEORY, Theory

from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import load_robot
from bipedsim.objects import ObjectConfig
from bipedsim.sim.simulator import Simulator
from bipedsim_studies.reproduce.adubredu import walk_and_kick

G, H = 9.81, 1e-3
VELOCITY_LEVEL = [name for name in MODELS if THEORY.get(name, Theory()).rigid]


def ball(**keys: Any) -> ObjectConfig:
    """Return a ball, far away unless told otherwise."""
    usual: dict[str, Any] = {"name": "ball", "shape": "ball", "mass": 0.4, "radius": 0.1, "position": (5.0, 0.0, 0.1)}
    return ObjectConfig(**{**usual, **keys})


def held(sim: Simulator) -> np.ndarray:
    """Return torques that hold the posture (nu,)."""
    robot = sim.robot
    return 600.0 * (robot.q_nominal[robot.idx_q] - sim.q[robot.idx_q]) - 20.0 * sim.v[robot.idx_v]


def test_the_robot_does_not_notice_objects_that_are_away() -> None:
    robot = load_robot("biped14")
    alone, beside = Simulator(robot), Simulator(robot, objects=[ball(velocity=(-1.0, 0.0, 3.0))])
    for _ in range(60):
        alone.step(held(alone))
        beside.step(held(beside))
    assert alone.q.tobytes() == beside.q.tobytes()
    assert alone.v.tobytes() == beside.v.tobytes()


@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_a_ball_that_hits_the_shin_exchanges_momentum(model: str) -> None:
    """Newton's law and friction's cone at the contact are those of the ball's momentum; the robot gets the opposite."""
    robot = load_robot("biped14")
    e, mu = 0.6, 0.3
    keys = {"position": (0.32, 0.1, 0.25), "velocity": (-3.0, 0.0, 0.0), "restitution": e, "friction_static": mu}
    sim = Simulator(robot, contact=model, objects=[ball(**keys)])
    assert sim.objects is not None
    assert sim.touching is not None
    b = sim.objects.world.bodies
    for _ in range(60):
        before, q, v = b.v[0].copy(), sim.q.copy(), sim.v.copy()
        sim.step(held(sim))
        gained = 0.4 * (b.v[0] - before - [0.0, 0.0, -G * H])
        if gained[0] > 0.1:
            break
    assert gained[0] > 1.0
    R = pin.Quaternion(q[3:7]).toRotationMatrix()
    np.testing.assert_allclose(R @ sim.touching.force[:3], -gained, atol=1e-9)
    used = sim.touching.contacts.used[0]
    assert used == 1
    normal, across = sim.touching.contacts.impulse[0, 2], np.linalg.norm(sim.touching.contacts.impulse[0, :2])
    assert np.hypot(normal, across) == pytest.approx(np.linalg.norm(gained), abs=1e-9)
    assert across <= min(mu, 0.5) * normal + 1e-9
    c, data = sim.touching.contacts, robot.model.createData()
    joint = int(max(c.a[0], c.b[0]))
    assert robot.model.names[joint] == "l_knee"
    pin.forwardKinematics(robot.model, data, q, v)
    shin = pin.getVelocity(robot.model, data, joint, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
    met = shin.linear + np.cross(shin.angular, c.point[0] - data.oMi[joint].translation)
    # Between the begin of the step and the impact, and from there on, forces of finite size act.
    assert abs(c.velocity[0, 2]) == pytest.approx(e * abs((before - met) @ c.axes[0, :, 2]), abs=2e-3)


def swung(h: float, at: float) -> np.ndarray:
    """Return the velocity (2,) of a ball that a leg hits, in flight, after 0.1 s; the ball begins at x = ``at``."""
    robot = load_robot(BODIES / "kicking_walker")
    keys = {"mass": 0.04, "radius": 0.2, "position": (at, 0.0, 4.2), "restitution": 0.5, "friction_static": 0.3}
    sim = Simulator(robot, physics_dt=h, control_dt=h, objects=[ball(**keys)])
    assert sim.objects is not None
    sim.reset(np.array([0.0, 5.0, -0.05, -0.2]), np.zeros(4))
    for _ in range(round(0.1 / h)):
        sim.advance(np.array([50.0]))
    return sim.objects.world.bodies.v[0, [0, 2]].copy()


def test_a_leg_hits_a_ball_when_and_where_it_gets_there() -> None:
    """The leg gets 14 mm and 0.03 rad further in a step: its velocity and the direction are those of the impact."""
    for at in 0.5 + 0.002 * np.arange(8):
        exact = swung(1e-4, at)
        assert np.linalg.norm(exact) > 20.0
        assert np.linalg.norm(swung(1e-3, at) - exact) < 0.1


def test_a_walker_under_pfl_walks_up_to_a_ball_and_kicks_it() -> None:
    """One kick of ``reproduce adubredu walk_and_kick``; its studies have the others."""
    found = walk_and_kick.kick(90.0, after=0.02)
    assert len(found.touch_downs) == 3
    assert found.unbalanced < 1e-6
    np.testing.assert_allclose(np.diff(found.touch_downs), 0.405, rtol=0.15)
    assert np.arctan2(*found.velocity[::-1]) == pytest.approx(found.leg, abs=0.05)
    table = np.hypot(*walk_and_kick.TABLE[90.0])
    assert np.hypot(*found.velocity) / table == pytest.approx(10.5 / np.sqrt(90.0), rel=0.02)


def test_a_snapshot_holds_the_objects() -> None:
    sim = Simulator(load_robot("biped14"), objects=[ball(position=(0.3, 0.1, 0.25), velocity=(-3.0, 0.0, 0.0))])
    assert sim.objects is not None
    for _ in range(20):
        sim.step(held(sim))
    kept = sim.snapshot()
    ends = []
    for _ in range(2):
        sim.restore(kept)
        for _ in range(60):
            sim.step(held(sim))
        ends.append((sim.q.tobytes(), sim.objects.states().tobytes()))
    assert ends[0] == ends[1]


def test_a_push_has_its_impulse_and_ends_no_push_of_the_robot() -> None:
    sim = Simulator(load_robot("biped14"), objects=[ball(position=(5.0, 0.0, 20.0))])
    assert sim.objects is not None
    sim.push(np.array([0.0, 10.0, 0.0, 0.0, 0.0, 0.0]), duration=1.0)
    sim.push(np.array([2.0, 0.0, 0.0, 0.0, 0.0, 0.01]), "ball", duration=0.0105)
    for _ in range(20):
        sim.step(held(sim))
    b = sim.objects.world.bodies
    assert b.v[0, 0] == pytest.approx(2.0 * 0.0105 / 0.4, abs=1e-12)
    assert b.w[0, 2] == pytest.approx(0.01 * 0.0105 / (0.4 * 0.4 * 0.1**2), abs=1e-9)
    assert abs(sim.v[1]) > 1e-4
    with pytest.raises(UnknownNameError, match="ball"):
        sim.push(np.zeros(6), "bal")


def test_starts_within_something_and_names_of_frames_are_refused() -> None:
    robot = load_robot("biped14")
    with pytest.raises(ConfigError, match="'ball' begins 20 mm deep in the ground"):
        Simulator(robot, objects=[ball(position=(5.0, 0.0, 0.08))])
    with pytest.raises(ConfigError, match="shank"):
        Simulator(robot, objects=[ball(position=(0.0, 0.1, 0.25))])
    with pytest.raises(ConfigError, match="frame"):
        Simulator(robot, objects=[ball(name="base_link")])
