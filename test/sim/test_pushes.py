"""Pushes with a point and a ramp: their impulse, their moment, and what a snapshot keeps of them."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim.objects import ObjectConfig
from bipedsim.sim import Simulator

ROBOT = load_robot("biped14")
BALL = ObjectConfig(name="ball", shape="ball", mass=3.0, radius=0.1, position=(4.0, 0.0, 20.0))
INERTIA = 0.4 * 3.0 * 0.1**2


def thrown(ticks: int, wrench: list[float], **push: object) -> Array:
    """Return linear and angular velocity (ticks, 6) of a falling ball that is pushed."""
    sim = Simulator(ROBOT, objects=[BALL])
    sim.reset()
    sim.push(np.array(wrench), "ball", **push)  # type: ignore[arg-type]
    twists = []
    for _ in range(ticks):
        sim.step(np.zeros(ROBOT.nu))
        assert sim.objects is not None
        twists.append(sim.objects.twists()[0].copy())
    return np.array(twists)


@pytest.mark.parametrize(("duration", "ramp"), [(0.02, 0.005), (0.02, 0.01), (0.0203, 0.0017), (0.0007, 0.0003)])
def test_a_ramp_shortens_the_impulse_by_its_length(duration: float, ramp: float) -> None:
    """The area of a trapezoid: force times duration less one ramp."""
    speed = thrown(30, [6.0, 0.0, 0.0, 0.0, 0.0, 0.0], duration=duration, ramp=ramp)[-1, 0]
    assert speed == pytest.approx(6.0 * (duration - ramp) / 3.0, rel=1e-9)


def test_a_ramp_rises_and_falls_in_straight_lines() -> None:
    speed = thrown(22, [6.0, 0.0, 0.0, 0.0, 0.0, 0.0], duration=0.02, ramp=0.005)[:, 0]
    force = 3.0 * np.diff(speed, prepend=0.0) / 1e-3
    rise = 6.0 * (np.arange(5) + 0.5) / 5
    np.testing.assert_allclose(force, [*rise, *[6.0] * 10, *rise[::-1], 0.0, 0.0], atol=1e-9)


def test_a_force_at_a_point_turns_an_object_and_not_its_velocity() -> None:
    twist = thrown(1, [3.0, 0.0, 0.0, 0.0, 0.0, 0.0], duration=0.001, point=np.array([0.0, 0.05, 0.0]))[0]
    np.testing.assert_allclose(twist[0], 3.0 * 0.001 / 3.0, rtol=1e-9)
    np.testing.assert_allclose(twist[3:], [0.0, 0.0, -0.05 * 3.0 * 0.001 / INERTIA], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("body", ["l_knee", "base_link"])
def test_a_force_at_a_point_of_the_robot_is_a_wrench_at_the_origin(body: str) -> None:
    """The point moves with the body: the moment is taken anew at every step."""
    force, point = np.array([5.0, 20.0, -3.0]), np.array([0.1, -0.2, 0.3])
    sim, other = Simulator(ROBOT), Simulator(ROBOT)
    frame = ROBOT.model.getFrameId(body)
    data = ROBOT.model.createData()
    for one in (sim, other):
        one.reset()
    sim.push(np.append(force, np.zeros(3)), body, 0.05, point=point)
    for _ in range(80):
        if other.t < 0.05 - 1e-9:
            pin.framesForwardKinematics(ROBOT.model, data, other.q)
            moment = np.cross(data.oMf[frame].rotation @ point, force)
            other.push(np.append(force, moment), body, other.physics_dt)
        for one in (sim, other):
            one.step(-5.0 * one.v[ROBOT.idx_v])
        np.testing.assert_allclose(sim.q, other.q, rtol=0.0, atol=1e-12)


def test_a_snapshot_within_a_ramp_continues_with_the_same_bits() -> None:
    sim = Simulator(ROBOT)
    sim.reset()
    sim.push(np.array([30.0, 0.0, 0.0, 0.0, 0.0, 0.0]), "base_link", 0.02, point=np.array([0.0, 0.0, 0.2]), ramp=0.008)

    def go_on(ticks: int) -> bytes:
        for _ in range(ticks):
            sim.step(-5.0 * sim.v[ROBOT.idx_v])
        return sim.q.tobytes()

    go_on(5)
    snapshot = sim.snapshot()
    expected = go_on(30)
    sim.restore(snapshot)
    assert go_on(30) == expected


@pytest.mark.parametrize(
    "push",
    [
        {"ramp": 0.06},
        {"ramp": -0.01},
        {"ramp": np.nan},
        {"point": np.array([0.0, np.inf, 0.0])},
        {"point": np.zeros(2)},
    ],
)
def test_a_push_that_cannot_be_is_refused(push: dict[str, object]) -> None:
    sim = Simulator(ROBOT)
    with pytest.raises(ConfigError):
        sim.push(np.ones(6), "base_link", 0.1, **push)  # type: ignore[arg-type]
    assert sim.pushes.state() == ()


STATE = np.array([2.0, 0.5, 1.0, 0.0, 0.0, np.sin(0.5), np.cos(0.5), 0.1, 0.2, 0.3, 1.0, 2.0, 3.0])


def test_an_object_moves_at_once_and_falls_from_there() -> None:
    sim = Simulator(ROBOT, objects=[BALL])
    sim.reset()
    moved: list[object] = []
    assert sim.objects is not None
    sim.objects.on_move = moved.append
    sim.objects.move(sim, {"ball": STATE})
    np.testing.assert_allclose(sim.objects.states()[0], STATE, atol=1e-12)
    assert len(moved) == 1
    for _ in range(100):
        sim.step(np.zeros(ROBOT.nu))
    rise = STATE[9] - 9.81 * 0.1
    np.testing.assert_allclose(sim.objects.poses()[0, 2], 1.0 + 0.5 * (STATE[9] + rise) * 0.1, rtol=1e-3)


@pytest.mark.parametrize(
    "states",
    [
        {"bal": STATE},
        {"ball": STATE[:12]},
        {"ball": np.where(np.arange(13) == 3, 0.5, STATE)},
        {"ball": np.where(np.arange(13) == 2, 0.05, STATE)},
        {"ball": np.array([0.0, 0.0, 0.9, 0.0, 0.0, 0.0, 1.0, *[0.0] * 6])},
    ],
)
def test_a_state_that_cannot_be_is_refused_and_nothing_moves(states: dict[str, Array]) -> None:
    """An unknown name, too few numbers, no rotation, within the ground, within the robot."""
    sim = Simulator(ROBOT, objects=[BALL])
    sim.reset()
    assert sim.objects is not None
    before = {name: array.tobytes() for name, array in sim.objects.state().items()}
    with pytest.raises(ConfigError):
        sim.objects.move(sim, states)
    assert {name: array.tobytes() for name, array in sim.objects.state().items()} == before
