"""Flight of robots: momentum to rounding and all else of second order, against closed forms and other integrators."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from physics_support import box_robot, loaded
from scipy.special import ellipj

from bipedsim.contact.models import CONTACT_MODELS
from bipedsim.model import Robot
from bipedsim.model.loops import Loop
from bipedsim.numerics import Array
from bipedsim.sim import Command, Simulator

MODELS = list(CONTACT_MODELS)
FREE = {"joint_stops": False, "body_contact": False}
UP = {"planar_biped": 1}
"""Coordinate that lifts a robot, where it is not the third."""


def without_friction(name: str) -> Robot:
    robot = loaded(name)
    return replace(robot, joint_damping=np.zeros(robot.model.nv))


def thrown(robot: Robot, h: float, model: str = "one_step", speed: float = 1.0, **given: object) -> Simulator:
    """Return a simulation of a robot high above the ground with random velocities; its chains stay closed."""
    sim = Simulator(robot, contact=model, physics_dt=h, hardware=FREE | given)
    q, v = robot.q_nominal.copy(), speed * np.random.default_rng(1).normal(size=robot.model.nv)
    q[UP.get(robot.name, 2)] += 5.0
    if robot.loops:
        # The joints that loops turn follow the drives.
        e = 1e-6
        drives = robot.q_nominal[robot.idx_q]
        ahead, behind = (robot.settle(drives + s * e * v[robot.idx_v]) for s in (1.0, -1.0))
        v[6:] = pin.difference(robot.model, behind, ahead)[6:] / (2.0 * e)
    sim.reset(q, v)
    return sim


def energy(robot: Robot, data: pin.Data, sim: Simulator) -> float:
    kinetic = pin.computeKineticEnergy(robot.model, data, sim.q, sim.v)
    return float(kinetic + pin.computePotentialEnergy(robot.model, data, sim.q))


def eulers_top(inertia: Array, w: Array, t: Array) -> Array:
    """Return the angular velocity (n, 3) of a free body, in its axes, at times t (Landau and Lifshitz I, section 37).

    Moments of inertia ascend; at t = 0 it does not turn about the middle axis, and L^2 > 2 E I_2.
    """
    one, two, three = inertia
    twice, square = float(inertia @ w**2), float((inertia * w) @ (inertia * w))
    assert w[1] == 0.0
    assert square > twice * two
    rate = np.sqrt((three - two) * (square - twice * one) / (one * two * three))
    m = (two - one) * (twice * three - square) / ((three - two) * (square - twice * one))
    sn, cn, dn, _ = ellipj(rate * t, m)
    return np.column_stack(
        [
            np.sqrt((twice * three - square) / (one * (three - one))) * cn,
            np.sqrt((twice * three - square) / (two * (three - two))) * sn,
            np.sqrt((square - twice * one) / (three * (three - one))) * dn,
        ]
    )


INERTIA = np.array([0.02, 0.05, 0.06])


def test_a_rigid_robot_turns_over_as_eulers_top(tmp_path: Path) -> None:
    """About its middle axis at 15 rad/s, for two flips: in time by the square of the step, without loss of energy."""
    robot = box_robot(tmp_path, [[0.1, 0.1], [-0.1, 0.1], [-0.1, -0.1], [0.1, -0.1]], inertia=INERTIA)
    begun = np.array([11.9, 0.0, 12.0])
    errors = []
    for h in (4e-3, 2e-3, 1e-3):
        sim = Simulator(robot, physics_dt=h)
        q = robot.q_nominal.copy()
        q[2] += 50.0
        sim.reset(q, [0, 0, 0, *begun])
        spin = pin.Quaternion(sim.q[3:]).matrix() @ (INERTIA * begun)
        found = []
        for _ in range(round(2.0 / h)):
            sim.advance(np.zeros(0))
            found.append(sim.v[3:].copy())
            np.testing.assert_allclose(pin.Quaternion(sim.q[3:]).matrix() @ (INERTIA * sim.v[3:]), spin, atol=1e-12)
            assert INERTIA @ sim.v[3:] ** 2 == pytest.approx(INERTIA @ begun**2, rel=1e-10)
        turned = np.array(found)
        expected = eulers_top(INERTIA, begun, h * np.arange(1, len(turned) + 1))
        assert (np.diff(np.sign(expected[:, 1])) != 0).sum() >= 2, "it turns over twice"
        assert np.abs(expected[:, 1]).max() > 15.0, "about its middle axis"
        errors.append(np.abs(turned - expected).max())
    assert errors[2] < 1e-2
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.1)
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.3)


@pytest.mark.parametrize("name", ["biped14", "parallel_ankles", "planar_biped"])
def test_energy_is_of_second_order_and_momentum_stays(name: str) -> None:
    """Robots with joints, with closed chains, and in a plane. pinocchio computes the reference."""
    robot = without_friction(name)
    model, data = robot.model, robot.model.createData()
    kept = [0, 2, 4] if name in UP else range(6)
    worst = []
    for h in (4e-3, 2e-3):
        sim = thrown(robot, h)
        begun, of = energy(robot, data, sim), pin.computeCentroidalMomentum(model, data, sim.q, sim.v).vector.copy()
        com, rate = pin.centerOfMass(model, data, sim.q).copy(), of[:3] / robot.mass
        errors = []
        for _ in range(round(0.3 / h)):
            sim.advance(np.zeros(robot.nu))
            errors.append(abs(energy(robot, data, sim) - begun))
            gained = np.append(sim.t * robot.mass * model.gravity.linear, np.zeros(3))
            momentum = pin.computeCentroidalMomentum(model, data, sim.q, sim.v).vector
            np.testing.assert_allclose((momentum - of - gained)[kept], 0.0, atol=1e-10)
            place = com + sim.t * rate + 0.5 * sim.t**2 * model.gravity.linear
            np.testing.assert_allclose((pin.centerOfMass(model, data, sim.q) - place)[kept[:2]], 0.0, atol=1e-11)
        worst.append(max(errors))
    assert worst[0] < 1e-5 * begun
    assert worst[0] / worst[1] == pytest.approx(4.0, rel=0.15)


def spring_gain(robot: Robot, h: float, stiffness: float, way: str) -> tuple[float, float]:
    """Return the energy [J] that springs in all joints give a robot in flight, and the integral of k h |v|^2 / 2."""
    sim, data, joints = thrown(robot, h), robot.model.createData(), robot.idx_q
    k = np.full(robot.nu, stiffness)

    def total() -> float:
        return energy(robot, data, sim) + 0.5 * stiffness * float(np.sum((sim.q[joints] - robot.posture) ** 2))

    before, expected = total(), 0.0
    for _ in range(round(0.3 / h)):
        v = sim.v[robot.idx_v].copy()
        bent = sim.q[joints] - robot.posture
        commands = {
            "controller": Command(-k * bent),
            "drive": Command(np.zeros(robot.nu), position=robot.posture, stiffness=k),
            "middle": Command(-k * (bent + 0.5 * h * v)),
            "damped drive": Command(np.zeros(robot.nu), position=robot.posture, stiffness=k, damping=0.5 * h * k),
        }
        sim.advance(commands[way])
        expected += 0.5 * stiffness * h**2 * float(v @ v)
    return total() - before, expected


@pytest.mark.parametrize("way", ["controller", "drive"])
def test_a_spring_held_over_a_step_gives_energy_as_a_negative_damper(way: str) -> None:
    """Of first order: k q at the begin of a step is k times the angle at its middle, minus k h / 2 times the rate."""
    gains = [spring_gain(without_friction("biped14"), h, 20.0, way) for h in (4e-3, 2e-3, 1e-3)]
    for gained, expected in gains:
        assert gained == pytest.approx(expected, rel=0.01)
    for (longer, _), (shorter, _) in pairwise(gains):
        assert longer / shorter == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("way", ["middle", "damped drive"])
def test_a_spring_at_the_middle_of_a_step_keeps_energy_to_second_order(way: str) -> None:
    gains = [spring_gain(without_friction("biped14"), h, 20.0, way) for h in (4e-3, 2e-3, 1e-3)]
    for gained, held in gains:
        assert abs(gained) < 5e-3 * held
    for (longer, _), (shorter, _) in pairwise(gains):
        assert longer / shorter == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize("damping", [0.0, 0.5])
def test_joints_move_as_another_integrator_has_it(damping: float) -> None:
    """Runge and Kutta's classical method on pinocchio's forward dynamics, with friction and constant torques."""
    robot = loaded("biped14")
    model, data, nv = robot.model, robot.model.createData(), robot.model.nv
    friction = np.append(np.zeros(6), np.full(nv - 6, damping))
    robot = replace(robot, joint_damping=friction)
    tau = 5.0 * np.sin(np.arange(robot.nu))
    torque = np.zeros(nv)
    torque[robot.idx_v] = tau

    def acceleration(q: Array, v: Array) -> Array:
        return np.asarray(pin.aba(model, data, q, v, torque - friction * v)).copy()

    begun = thrown(robot, 1e-3)
    q, v, dt = begun.q.copy(), begun.v.copy(), 1e-3
    for _ in range(200):
        # In the coordinates of the previous configuration, the derivative of the displacement is v, up to terms of the
        # order of the displacement.
        a = acceleration(q, v)
        b = acceleration(pin.integrate(model, q, 0.5 * dt * v), v + 0.5 * dt * a)
        c = acceleration(pin.integrate(model, q, 0.5 * dt * (v + 0.5 * dt * a)), v + 0.5 * dt * b)
        d = acceleration(pin.integrate(model, q, dt * (v + 0.5 * dt * b)), v + dt * c)
        q = pin.integrate(model, q, dt * v + dt**2 / 6.0 * (a + b + c))
        v = v + dt / 6.0 * (a + 2.0 * b + 2.0 * c + d)
    errors = []
    for h in (4e-3, 2e-3):
        sim = thrown(robot, h)
        for _ in range(round(0.2 / h)):
            sim.advance(tau)
        errors.append((np.abs(pin.difference(model, q, sim.q)).max(), np.abs(sim.v - v).max()))
    for place, speed in [np.divide(*errors)]:
        assert place == pytest.approx(4.0, rel=0.3)
        assert speed == pytest.approx(4.0, rel=0.3)


def test_friction_far_beyond_the_step_takes_a_velocity_without_a_change_of_sign() -> None:
    """With r = h D over the inertia, 1 / (1 + r + r^2 / 2) of it is left; a trapezoid would leave nearly -1."""
    robot = loaded("biped14")
    joint = robot.model.nv - 1
    friction = np.zeros(robot.model.nv)
    friction[joint] = 1e4
    sim = thrown(replace(robot, joint_damping=friction), 1e-3, speed=0.0)
    v = np.zeros(robot.model.nv)
    v[joint] = 1.0
    sim.reset(sim.q, v)
    speeds = [1.0]
    for _ in range(5):
        sim.advance(np.zeros(robot.nu))
        speeds.append(float(sim.v[joint]))
    assert (np.array(speeds) > -1e-9).all()
    assert speeds[1] < 1e-2


@pytest.mark.parametrize(("name", "rounding"), [("biped14", 0.0), ("parallel_ankles", 1e-12)])
def test_contact_models_have_no_part_in_flight(name: str, rounding: float) -> None:
    """To the bit; where chains are closed, the first step alone is solved in another way under forces within it."""
    robot = loaded(name)
    ends = []
    for model in MODELS:
        sim = thrown(robot, 1e-3, model, joint_stops=True)
        for _ in range(50):
            sim.advance(np.zeros(robot.nu))
        ends.append(np.concatenate([sim.q, sim.v]))
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], rtol=0.0, atol=rounding)


def test_flight_is_repeated_to_the_bit_from_any_of_its_steps() -> None:
    """This includes closed chains, for which the next step depends on whether the last one was in flight."""
    robot = loaded("parallel_ankles")
    sim, other = thrown(robot, 1e-3), Simulator(robot, hardware=FREE)
    for _ in range(20):
        sim.advance(np.zeros(robot.nu))
    other.restore(sim.snapshot())
    for _ in range(20):
        for each in (sim, other):
            each.advance(np.zeros(robot.nu))
        np.testing.assert_array_equal(other.q, sim.q)
        np.testing.assert_array_equal(other.v, sim.v)


def test_a_robot_that_a_loop_holds_to_the_world_is_not_in_free_flight() -> None:
    """A body on a ball joint at the trunk of a flying robot stays there, and swings without loss."""
    robot = without_friction("biped14")
    begun = thrown(robot, 1e-3, speed=0.0).q
    held = Loop("pin", "connect", (0, 1), (pin.SE3(np.eye(3), begun[:3]), pin.SE3.Identity()))
    robot = replace(robot, loops=(held,), q_nominal=begun)
    sim, data = Simulator(robot, hardware=FREE), robot.model.createData()
    v = np.zeros(robot.model.nv)
    v[3:] = np.random.default_rng(2).normal(size=robot.model.nv - 3)
    sim.reset(begun, v)
    before = energy(robot, data, sim)
    for _ in range(200):
        sim.advance(np.zeros(robot.nu))
        np.testing.assert_allclose(sim.q[:3], begun[:3], atol=1e-12)
    assert energy(robot, data, sim) == pytest.approx(before, abs=0.05)


@pytest.mark.parametrize(("speed", "found"), [(200.0, True), (3000.0, False)])
def test_an_attitude_that_is_not_found_is_counted(tmp_path: Path, speed: float, found: bool) -> None:
    """Where a robot turns by radians in a step, the iteration does not converge: energy is wrong, and it is counted."""
    robot = box_robot(tmp_path, [[0.1, 0.1], [-0.1, 0.1], [-0.1, -0.1], [0.1, -0.1]], inertia=INERTIA)
    sim = Simulator(robot, physics_dt=1e-3)
    q = robot.q_nominal.copy()
    q[2] += 50.0
    begun = speed * np.array([0.3, 0.8, 0.5])
    sim.reset(q, [0, 0, 0, *begun])
    for _ in range(20):
        sim.advance(np.zeros(0))
    assert (INERTIA @ sim.v[3:] ** 2 == pytest.approx(INERTIA @ begun**2, rel=1e-8)) == found
    assert (sim.contact.unresolved == 0) == found
