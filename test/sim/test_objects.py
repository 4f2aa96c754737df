"""Objects next to a robot: no interaction when apart, and exchange of momentum at contact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from paths import BODIES
from refusals import refusal
from theory import MODELS, THEORY, Theory

from bipedsim.errors import DivergenceError, UnknownNameError
from bipedsim.model import load_robot
from bipedsim.objects import ObjectConfig, World
from bipedsim.sim.simulator import Simulator
from bipedsim_studies.reproduce.adubredu import walk_and_kick

G, H = 9.81, 1e-3
VELOCITY_LEVEL = [name for name in MODELS if THEORY.get(name, Theory()).rigid]


def ball(**keys: Any) -> ObjectConfig:
    """Return a ball, far away by default."""
    usual: dict[str, Any] = {"name": "ball", "shape": "ball", "mass": 0.4, "radius": 0.1, "position": (5.0, 0.0, 0.1)}
    return ObjectConfig(**{**usual, **keys})


def held(sim: Simulator) -> np.ndarray:
    """Return torques that hold the posture (nu,)."""
    robot = sim.robot
    return 600.0 * (robot.q_nominal[robot.idx_q] - sim.q[robot.idx_q]) - 20.0 * sim.v[robot.idx_v]


def shin_velocity(sim: Simulator, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the velocity of the robot at (q, v) where its first contact of the last step was (3,)."""
    assert sim.reactions.touching is not None
    c, model = sim.reactions.touching.contacts, sim.robot.model
    joint, data = int(max(c.a[0], c.b[0])), model.createData()
    pin.forwardKinematics(model, data, q, v)
    shin = pin.getVelocity(model, data, joint, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
    return np.asarray(shin.linear + np.cross(shin.angular, c.point[0] - data.oMi[joint].translation))


def test_the_robot_does_not_notice_objects_that_are_away() -> None:
    robot = load_robot("biped14")
    alone, beside = Simulator(robot), Simulator(robot, objects=[ball(velocity=(-1.0, 0.0, 3.0))])
    for _ in range(60):
        alone.step(held(alone))
        beside.step(held(beside))
    assert alone.q.tobytes() == beside.q.tobytes()
    assert alone.v.tobytes() == beside.v.tobytes()


@pytest.mark.parametrize("model", MODELS)
def test_objects_that_are_away_have_the_bits_of_a_world_without_a_robot(model: str) -> None:
    """Therefore the results of `test/physics/test_objects.py` on rolling, impacts and stacks hold under every model."""
    things = [ball(name="one", position=(4.0, 0.0, 0.1), velocity=(2.0, 0.0, 0.0), friction_static=0.3)]
    things += [ball(name="two", position=(4.3, 0.0, 0.1), restitution=0.9)]
    for i in range(3):
        place = (4.0, 1.0, 0.1 + 0.2 * i)
        box: dict[str, Any] = {"shape": "box", "size": (0.2, 0.2, 0.2), "radius": None, "position": place}
        things.append(ball(name=f"box_{i}", **box))
    sim = Simulator(load_robot("biped14"), contact=model, objects=things)
    assert sim.objects is not None
    alone = World([thing.make() for thing in things], sim.ground, H, np.array([0.0, 0.0, -G]))
    for _ in range(300):
        sim.step(held(sim))
        alone.step()
    assert sim.objects.poses().tobytes() == alone.poses().tobytes()
    assert abs(alone.bodies.v[1, 0]) > 0.5


@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_a_ball_that_hits_the_shin_exchanges_momentum(model: str) -> None:
    """Newton's law and friction's cone at the contact are those of the ball's momentum; the robot gets the opposite."""
    robot = load_robot("biped14")
    e, mu = 0.6, 0.3
    keys = {"position": (0.32, 0.1, 0.25), "velocity": (-3.0, 0.0, 0.0), "restitution": e, "friction_static": mu}
    sim = Simulator(robot, contact=model, objects=[ball(**keys)])
    assert sim.objects is not None
    assert sim.reactions.touching is not None
    b = sim.objects.world.bodies
    for _ in range(60):
        before, q, v = b.v[0].copy(), sim.q.copy(), sim.v.copy()
        sim.step(held(sim))
        gained = 0.4 * (b.v[0] - before - [0.0, 0.0, -G * H])
        if gained[0] > 0.1:
            break
    assert gained[0] > 1.0
    R = pin.Quaternion(q[3:7]).toRotationMatrix()
    np.testing.assert_allclose(R @ sim.reactions.touching.force[:3], -gained, atol=1e-9)
    used = sim.reactions.touching.contacts.used[0]
    assert used == 1
    normal, across = (
        sim.reactions.touching.contacts.impulse[0, 2],
        np.linalg.norm(sim.reactions.touching.contacts.impulse[0, :2]),
    )
    assert np.hypot(normal, across) == pytest.approx(np.linalg.norm(gained), abs=1e-9)
    assert across <= min(mu, 0.5) * normal + 1e-9
    c = sim.reactions.touching.contacts
    assert robot.model.names[int(max(c.a[0], c.b[0]))] == "l_knee"
    met = shin_velocity(sim, q, v)
    # Between the begin of the step and the impact, and from there on, forces of finite size act.
    assert abs(c.velocity[0, 2]) == pytest.approx(e * abs((before - met) @ c.axes[0, :, 2]), abs=2e-3)


@pytest.mark.parametrize("e", [0.6, 0.0])
def test_what_slips_at_the_shin_has_dynamic_friction_from_its_first_step_on(e: float) -> None:
    """By the momentum and the spin of a ball that falls along the shin as it hits it."""
    still, slips = 0.1, 0.02
    robot = load_robot("biped14")
    keys = {"position": (0.28, 0.1, 0.4), "velocity": (-3.0, 0.0, -3.0), "restitution": e}
    sim = Simulator(robot, objects=[ball(**keys, friction_static=still, friction_dynamic=slips)])
    assert sim.objects is not None
    b = sim.objects.world.bodies
    for _ in range(60):
        before = b.v[0].copy()
        sim.step(held(sim))
        gained = 0.4 * (b.v[0] - before - [0.0, 0.0, -G * H])
        if gained[0] > 0.1:
            break
    assert sim.reactions.touching is not None
    c = sim.reactions.touching.contacts
    assert c.used[0] == 1
    assert np.linalg.norm(c.velocity[0, :2]) > 0.5
    normal = abs(gained @ c.axes[0, :, 2])
    assert np.linalg.norm(gained) == pytest.approx(np.hypot(1.0, slips) * normal, rel=1e-6)


def test_a_brick_that_turns_and_hits_the_shin_is_turned_by_where_it_was_hit() -> None:
    """Its angular momentum changes by the moment of the impulse. The corner rebounds with e, including the spin."""
    robot = load_robot("biped14")
    e = 0.5
    brick = ObjectConfig(
        name="brick", shape="box", mass=0.8, size=(0.2, 0.1, 0.06), position=(0.42, 0.13, 0.3), rpy=(0.3, 0.5, 0.2),
        velocity=(-3.0, 0.0, 0.0), angular_velocity=(4.0, 12.0, -6.0), restitution=e, friction_static=0.0,
    )  # fmt: skip
    sim = Simulator(robot, objects=[brick])
    assert sim.objects is not None
    assert sim.reactions.touching is not None
    b, c = sim.objects.world.bodies, sim.reactions.touching.contacts

    def spin() -> np.ndarray:
        return np.asarray(b.R[0] @ b.inertia[0] @ b.R[0].T @ b.w[0])

    for _ in range(80):
        place, v, w, turning = b.position[0].copy(), b.v[0].copy(), b.w[0].copy(), spin()
        begun = sim.q.copy(), sim.v.copy()
        sim.step(held(sim))
        if np.linalg.norm(b.v[0] - v) > 0.2:
            break
    assert c.used[0] == 1
    sign = 1.0 if c.a[0] < 0 else -1.0
    got = sign * c.axes[0] @ c.impulse[0]
    np.testing.assert_allclose(0.8 * (b.v[0] - v + [0.0, 0.0, G * H]), got, atol=1e-12)
    # Until it is hit within the step, the brick goes on.
    arm = c.point[0] - place - 0.5 * H * v
    np.testing.assert_allclose(spin() - turning, np.cross(arm, got), atol=0.02 * np.linalg.norm(got) * 0.1)
    normal = sign * c.axes[0, :, 2]
    closing = (v + np.cross(w, arm) - shin_velocity(sim, *begun)) @ normal
    assert abs(np.cross(w, arm) @ normal) > 0.2
    # Up to the impact the corner turns further.
    assert c.velocity[0, 2] == pytest.approx(-e * closing, rel=0.02)


def thrown(config: ObjectConfig, h: float, further: float, ticks: int) -> np.ndarray:
    """Return where an object is that was thrown at the shin, and its velocities, after so many ticks (9,).

    It begins ``further`` ahead [m], and the physics step is ``h`` [s].
    """
    x, y, z = config.position
    one = replace(config, position=(x + further, y, z))
    sim = Simulator(load_robot("biped14"), physics_dt=h, control_dt=H, objects=[one])
    assert sim.objects is not None
    for _ in range(ticks):
        sim.step(held(sim))
    b = sim.objects.world.bodies
    return np.concatenate([b.position[0], b.v[0], b.w[0]])


def test_a_ball_comes_back_from_the_shin_in_time_wherever_in_a_step_it_meets_it() -> None:
    """Its place after the hit is linear in that at the start, over a way of one step; a step's end were 2 mm off."""
    thing = ball(position=(0.24, 0.1, 0.25), velocity=(-3.0, 0.0, 0.0), restitution=0.6, friction_static=0.0)
    starts = 6e-4 * np.arange(6)
    places = [thrown(thing, H, start, 20)[0] for start in starts]
    line = np.polyfit(starts, places, 1)
    assert line[0] < 0.0
    np.testing.assert_allclose(places, np.polyval(line, starts), atol=1e-5)


def test_a_brick_that_turns_meets_the_shin_as_it_is_then() -> None:
    """The reference uses steps of a tenth. In a step, a corner moves by 1 mm, and the brick by 3 mm."""
    brick = ObjectConfig(
        name="brick", shape="box", mass=0.8, size=(0.2, 0.1, 0.06), position=(0.32, 0.13, 0.3), rpy=(0.3, 0.5, 0.2),
        velocity=(-3.0, 0.0, 0.0), angular_velocity=(4.0, 12.0, -6.0), restitution=0.5, friction_static=0.0,
    )  # fmt: skip
    for start in 6e-4 * np.arange(5):
        ticks = 35
        rough, fine = (thrown(brick, h, start, ticks) for h in (H, 0.1 * H))
        assert abs(fine[3] + 3.0) > 0.5
        np.testing.assert_allclose(rough[3:6], fine[3:6], atol=0.1)
        np.testing.assert_allclose(rough[6:], fine[6:], atol=1.0)


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


@pytest.mark.long
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
    with refusal(UnknownNameError, name="bal", meant="ball"):
        sim.push(np.zeros(6), "bal")


def test_starts_within_something_and_names_of_frames_are_refused() -> None:
    robot = load_robot("biped14")
    with refusal(place="object 'ball'"):
        Simulator(robot, objects=[ball(position=(5.0, 0.0, 0.08))])
    with refusal(place="object 'ball'"):
        Simulator(robot, objects=[ball(position=(0.0, 0.1, 0.25))])
    with refusal(place="objects: name", value="base_link"):
        Simulator(robot, objects=[ball(name="base_link")])


def test_a_fast_ball_hits_once() -> None:
    """A ball of 50 g at 80 m/s leaves with 1500 rad/s.

    The robot receives the momentum that the ball loses, in one impact.
    """
    sim = Simulator(
        load_robot("biped14"),
        objects=[ball(mass=0.05, radius=0.02, position=(1.0, 0.1, 0.25), velocity=(-80.0, 0.0, 0.0), restitution=0.5)],
    )
    assert sim.objects is not None
    b = sim.objects.world.bodies
    got = []
    for k in range(60):
        sim.step(held(sim))
        if sim.body_impulse.any():
            got.append(sim.body_impulse.sum(axis=0))
            lost = 0.05 * (np.array([-80.0, 0.0, 0.0]) - b.v[0] - [0.0, 0.0, G * H * (k + 1)])
            np.testing.assert_allclose(got[-1], lost, atol=1e-9)
    assert len(got) == 1
    assert 4.0 <= np.linalg.norm(got) <= 6.1


def test_what_diverges_is_named_and_nothing_has_moved() -> None:
    sim = Simulator(load_robot("biped14"), objects=[ball(), ball(name="other", position=(5.0, 1.0, 0.1))])
    assert sim.objects is not None
    for _ in range(5):
        sim.step(held(sim))
    sim.push(np.array([3e7, 0.0, 0.0, 0.0, 0.0, 0.0]), "other", duration=1e-3)
    before = sim.t, sim.q.tobytes(), sim.v.tobytes(), sim.objects.states().tobytes()
    for _ in range(2):
        with pytest.raises(DivergenceError, match="other"):
            sim.step(held(sim))
        assert before == (sim.t, sim.q.tobytes(), sim.v.tobytes(), sim.objects.states().tobytes())
    sim.reset()
    sim.step(held(sim))


def test_thirty_objects_on_the_ground_leave_room_for_one_that_hits_the_robot() -> None:
    """All contacts are one problem in that step: 4 points of each crate."""
    keys: dict[str, Any] = {"shape": "box", "size": (0.2, 0.2, 0.2), "radius": None}
    crates = [ball(name=f"c{i}", position=(5.0 + 0.5 * (i % 6), 0.5 * (i // 6), 0.1), **keys) for i in range(30)]
    sim = Simulator(
        load_robot("biped14"), objects=[ball(position=(0.32, 0.1, 0.25), velocity=(-3.0, 0.0, 0.0)), *crates]
    )
    assert sim.objects is not None
    for _ in range(60):
        sim.step(held(sim))
    assert sim.reactions.touching is not None
    assert sim.contact.unresolved == 0
    places = sim.objects.poses()[1:]
    np.testing.assert_allclose(places[:, 2], 0.1, atol=1e-9)
    assert abs(sim.objects.twists()[0, 0] + 3.0) > 0.5, "the ball has hit"
