"""Robots that fall and come to rest, and one that gets to its knees. pinocchio computes the reference from the states
alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
import pytest
from marks import sampled
from theory import MODELS, THEORY, Theory

from bipedsim.model import Robot, load_robot, lowest_point
from bipedsim.numerics import Array, Flags
from bipedsim.sim.simulator import Simulator

VELOCITY_LEVEL = [name for name in MODELS if THEORY.get(name, Theory()).rigid]
H = 1e-3
PUSHED = 0.2
"""How long a push lasts [s]."""
AT_REST = 0.2
"""End of a fall [s] over which the robot has to lie still."""


@dataclass(frozen=True, eq=False)
class Followed:
    """A motion of n steps.

    Attributes:
        robot, sim: Robot and simulator at the end of the motion.
        energy: (n + 1,) kinetic and potential [J], before and after each step.
        equation: (n,) residual of A(q) (v+ - v) + h A'(q, v) v minus all external impulses [N.s]. A is the
            centroidal momentum matrix at the beginning of the step. momentum: (n,) the same for the change of momentum
            between states.
        parts: (n,) whether an impact divided the step. pushed: (n,) whether the step had a push.
        force: (n, 3) of the ground on the whole robot [N]. work: (n,) of the drives [J].
        beyond: (n,) how far a joint is beyond its limits [rad]. depth: (n,) the deepest a body is in the ground [m].
    """

    robot: Robot
    sim: Simulator
    energy: Array
    equation: Array
    momentum: Array
    parts: Flags
    pushed: Flags
    force: Array
    work: Array
    beyond: Array
    depth: Array


def fall(name: str, model: str, seconds: float, push: float = 0.3, h: float = H) -> Followed:
    """Let a robot without torques fall, after a push forward and slightly sideways by a fraction of its weight."""
    robot = load_robot(name)
    sim = Simulator(robot, contact=model, physics_dt=h)
    sim.reset()
    wrench = push * robot.weight * np.array([1.0, 0.3, 0.0, 0.0, 0.0, 0.0])
    if push:
        sim.push(wrench, duration=PUSHED)
    idle = np.zeros(robot.nu)
    return follow(sim, seconds, lambda: idle, wrench)


def follow(sim: Simulator, seconds: float, drive: Callable[[], Array], wrench: Array) -> Followed:
    """Simulate on, with the torques that ``drive`` gives and a push of ``wrench`` for the first ``PUSHED`` seconds."""
    robot, h = sim.robot, sim.physics_dt
    sim.watch(lambda monitor, said, begun: None)
    data, n = robot.model.createData(), round(seconds / h)
    energy, equation, momentum = np.zeros(n + 1), np.zeros(n), np.zeros(n)
    parts, pushed = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    force, work, beyond, depth = np.zeros((n, 3)), np.zeros(n), np.zeros(n), np.zeros(n)
    weight = np.array([0.0, 0.0, -robot.weight])
    energy[0] = energy_of(robot, data, sim)
    for i in range(n):
        v = sim.v.copy()
        pin.dccrba(robot.model, data, sim.q, v)
        A, before, drift = data.Ag[:3].copy(), data.hg.linear.copy(), data.dAg[:3] @ v
        pushed[i] = bool(wrench.any()) and sim.t < PUSHED - 0.5 * h
        torque = drive()
        sim.advance(torque)
        work[i] = 0.5 * h * torque @ (v + sim.v)[robot.idx_v]
        feet = sum(axes @ f[:3] for axes, f in zip(sim.dynamics.ground_axes, sim.contact.impulse, strict=True))
        force[i] = (feet + sim.body_impulse.sum(axis=0)) / h
        outside = h * (force[i] + weight + pushed[i] * wrench[:3])
        energy[i + 1] = energy_of(robot, data, sim)
        pin.ccrba(robot.model, data, sim.q, sim.v)
        equation[i] = np.abs(A @ (sim.v - v) + h * drift - outside).max()
        momentum[i] = np.abs(data.hg.linear - before - outside).max()
        parts[i] = sim.stepper._landed
        angles = sim.q[robot.idx_q]
        beyond[i] = np.maximum(robot.position_lower - angles, angles - robot.position_upper).max()
        if sim.reactions.touching is not None and (i % 5 == 0 or i > n - round(AT_REST / h)):
            depth[i] = max(sim.reactions.touching.depths(sim.q).values(), default=0.0)
    return Followed(robot, sim, energy, equation, momentum, parts, pushed, force, work, beyond, depth)


def energy_of(robot: Robot, data: pin.Data, sim: Simulator) -> float:
    """Return kinetic and potential energy [J]."""
    kinetic = pin.computeKineticEnergy(robot.model, data, sim.q, sim.v)
    return float(kinetic + pin.computePotentialEnergy(robot.model, data, sim.q))


def check(done: Followed, rises: float, creeps: float = 1e-3) -> None:
    """Check the properties of every fall.

    Args:
        done: The fall.
        rises: Energy that the integration of fast joints may add in a step [J].
        creeps: Horizontal force [N] that remains while a joint still creeps.
    """
    check_balance(done)
    # At rest, only the ground supports the weight, until a creeping joint moves the robot off its edge.
    level, load = np.abs(done.force[:, :2]).max(axis=1), done.force[:, 2]
    carried = (np.abs(load - done.robot.weight) < 1e-3) & (level < creeps)
    last = round(AT_REST / done.sim.physics_dt)
    ends = np.flatnonzero(np.convolve(carried, np.ones(last), "valid") > last - 0.5)
    assert len(ends), "it never lies still"
    rest = slice(ends[-1], ends[-1] + last)
    assert done.momentum[rest].max() < 1e-8
    assert done.sim.q[2] > 0.0
    assert done.depth[rest].max() < 1e-5
    gained = np.diff(done.energy)
    assert gained[~done.pushed].max() < rises
    assert gained[rest].max() < 1e-9
    assert done.energy[-1] < 0.5 * done.energy[0]


def check_balance(done: Followed) -> None:
    """Check every motion: balance of momentum, work of contact, depth and joint limits."""
    # With contact the equation of motion holds, in flight momentum itself; of steps in parts see the monitors.
    balance = np.minimum(done.equation, done.momentum)
    assert balance[~done.parts].max() < 1e-8
    assert done.parts.mean() < 0.1
    assert done.sim.monitors is not None
    figures = done.sim.monitors.figures()
    assert figures["momentum_error"]["worst"] < 1e-10
    assert figures["contact_work_J"]["worst"] <= 1e-9
    assert done.depth.max() < 1e-4
    assert done.beyond.max() < 1e-15


@pytest.mark.long
@pytest.mark.parametrize("model", sampled(VELOCITY_LEVEL))
def test_a_pushed_biped_falls_and_comes_to_rest(model: str) -> None:
    check(fall("biped14", model, 3.0), rises=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("push", [0.0, 0.3])
@pytest.mark.parametrize(
    ("name", "seconds"), [("biped14", 10.0), ("talos", 8.0), ("g1", 8.0), ("icub", 8.0)], ids=lambda x: str(x)
)
@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_a_robot_falls_and_comes_to_rest(name: str, seconds: float, model: str, push: float) -> None:
    """It comes to rest 1.3 to 8 s after the start. Without a push, biped14 first balances on the fallen posture for 4
    s.

    Joints with little damping may creep on and swing again, such as the grippers of talos and the wrists of g1.
    """
    check(fall(name, model, seconds, push), rises=5e-2, creeps=1e-2)


@pytest.mark.long
def test_what_the_energy_rises_by_is_the_error_of_the_integration() -> None:
    """In a step it falls with the square of its length, up to the first impact of a body: contact gives nothing."""
    worst = []
    for h in (1e-3, 5e-4, 2.5e-4):
        done = fall("biped14", "one_step", 0.55, h=h)
        worst.append(np.diff(done.energy)[~done.pushed].max())
    assert worst[0] > 3.0 * worst[1] > 9.0 * worst[2]


def test_momentum_from_state_to_state_is_of_first_order_through_impacts() -> None:
    """M and the bias are those at the beginning of a step. The sum of the residuals of a fall halves with the step."""
    robot = load_robot("biped14")
    model = robot.model
    data = model.createData()
    weight = robot.weight * np.array([0.0, 0.0, -1.0])
    v = np.zeros(model.nv)
    v[0], v[4] = 0.4, 0.3
    left = []
    for h in (1e-3, 5e-4, 2.5e-4):
        sim = Simulator(robot, physics_dt=h)
        sim.reset(sim.q, v)
        begun = pin.computeCentroidalMomentum(model, data, sim.q, sim.v).linear
        given = np.zeros(3)
        while sim.t < 1.0 - 0.5 * h:
            sim.advance(np.zeros(robot.nu))
            given += h * weight + sim.contact.impulse[:, :3].sum(axis=0) + sim.body_impulse.sum(axis=0)
        assert sim.body_impulse.any(), "it lies on its bodies"
        left.append(np.linalg.norm(pin.computeCentroidalMomentum(model, data, sim.q, sim.v).linear - begun - given))
    order = np.log2(np.divide(left[:-1], left[1:]))
    assert order.min() > 0.7
    assert order.max() < 1.5
    assert left[0] < 1e-2 * np.linalg.norm(given)


KNEELING = ((0.0, 0.0, 0.02, 0.7), (0.2, 0.0, 0.02, 0.7), (1.4, -2.05, 1.6, 0.7), (2.0, -2.05, 1.6, 0.7))
"""When [s] hips, knees and ankles of either leg are where [rad]."""


@pytest.mark.parametrize("model", sampled(VELOCITY_LEVEL))
def test_a_robot_that_lies_gets_to_its_knees(model: str) -> None:
    """It lies on its front and pulls its knees under itself. Knees and trunk then support it, 0.3 m higher."""
    robot = load_robot("biped14")
    sim = Simulator(robot, contact=model)
    times, angles = np.array(KNEELING)[:, 0], np.array(KNEELING)[:, 1:].T
    chain = ("hip_pitch", "knee", "ankle_pitch")
    moved = [[robot.joint_names.index(f"{side}_{joint}") for side in "lr"] for joint in chain]

    def wanted(t: float) -> Array:
        posture = np.zeros(robot.nu)
        for joints, course in zip(moved, angles, strict=True):
            posture[joints] = np.interp(t, times, course)
        return posture

    def drive() -> Array:
        torque = 1500.0 * (wanted(sim.t) - sim.q[robot.idx_q]) - 60.0 * sim.v[robot.idx_v]
        return np.clip(torque, -robot.effort_limit, robot.effort_limit)

    q = placed_on_its_front(robot, wanted(0.0))
    sim.reset(q)
    done = follow(sim, 2.0, drive, np.zeros(6))
    check_balance(done)
    assert done.sim.contact.unresolved == 0
    # Neither sole has a part in it.
    assert not done.sim.contact.impulse.any()
    carried = np.linalg.norm(sim.body_impulse, axis=1) > 0.1 * robot.weight * H
    shapes = {shape.name for shape in robot.shapes.shapes if carried[shape.joint_id]}
    assert "base_link" in shapes
    assert len(shapes) == 3
    assert done.force[-200:].mean(axis=0) == pytest.approx([0.0, 0.0, robot.weight], abs=1e-2 * robot.weight)
    assert sim.q[2] - q[2] > 0.3
    # The energy from the drives is in the robot, or friction took it.
    gained = done.energy[-1] - done.energy[0]
    assert 0.09 * robot.weight < gained < done.work.sum() + 1e-3 * robot.weight


def placed_on_its_front(robot: Robot, joints: Array) -> Array:
    """Return a configuration (nq,) of a robot that lies face down with a level trunk, its lowest point on z = 0."""
    q = np.zeros(robot.model.nq)
    q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(0.0, 0.5 * np.pi, 0.0)).coeffs()
    q[robot.idx_q] = joints
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    q[2] = -min(
        lowest_point(data.oMi[shape.joint_id], point, shape.radius, shape.ring, shape.axis)[2]
        for shape in robot.shapes.shapes
        for point in shape.points
    )
    return q
