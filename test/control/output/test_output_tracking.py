"""Computed torque, sliding and PFL: errors follow their design to closed forms, and the model is the simulator's."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import pytest
from physics_support import special_robot
from refusals import refusal

from bipedsim.control.controllers import make_controller
from bipedsim.control.output.output_tracking import linear_sum
from bipedsim.control.output.pfl import swing_curve
from bipedsim.control.output.supported import SupportedDynamics
from bipedsim.errors import UnknownNameError
from bipedsim.model import Robot, load_robot
from bipedsim.sim.io import Observation
from bipedsim.sim.simulator import Simulator
from bipedsim_studies.planar.finite_time import finite_time_feedback, settling_time
from bipedsim_studies.reproduce.adubredu.ideal_walker import WALKER

TRACKING = ("computed_torque", "sliding", "pfl", "finite_time")
START = np.array([0.4, -0.3])
WAVE = {"shoulder": 0.3, "elbow": -0.5}
RATE = 4.0
BOTH = {"left": "hip", "right": "-hip"}

LINK = """<link name="{name}"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="0.0834" ixy="0" ixz="0" iyy="0.0833" iyz="0" izz="0.0002"/></inertial></link>"""
JOINT = """<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/><origin xyz="0 0 {z}"/>
<axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="200" velocity="50"/></joint>"""
YAML = """name: arm
description: double pendulum with two drives, whose tip never touches anything
urdf: arm.urdf
root: fixed
feet: {tip: {frame: lower, vertices: [[0.0, 0.0]], placement: {xyz: [0.0, 0.0, -1.0]}}}
imu: {frame: lower}
"""


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    folder = tmp_path_factory.mktemp("arm")
    parts = [LINK.format(name=name) for name in ("upper", "lower")]
    parts += [
        JOINT.format(name="shoulder", parent="world", child="upper", z=5.0),
        JOINT.format(name="elbow", parent="upper", child="lower", z=-1.0),
    ]
    (folder / "arm.urdf").write_text(f'<robot name="arm"><link name="world"/>{"".join(parts)}</robot>')
    (folder / "robot.yaml").write_text(YAML)
    return load_robot(folder / "robot.yaml")


@pytest.fixture(scope="module")
def biped14() -> Robot:
    return load_robot("biped14")


class Track(NamedTuple):
    """Times (n,), errors (n, 2) and torques (n, 2) of the arm."""

    t: np.ndarray
    error: np.ndarray
    torque: np.ndarray


def scaled(robot: Robot, share: float) -> Robot:
    """Return ``robot`` with all masses and inertias times ``share``."""
    for joint in range(1, robot.model.njoints):
        body = robot.model.inertias[joint]
        robot = robot.with_inertia(joint, pin.Inertia(share * body.mass, body.lever, share * body.inertia))
    return robot


def swing_arm(arm: Robot, name: str, dt: float, duration: float, plant: Robot | None = None, **params: object) -> Track:
    """Let the arm follow sines from rest at ``START``, away from where they begin."""
    sim = Simulator(plant or arm, physics_dt=dt)
    observation = sim.reset(START.copy())
    tracked = {"ramp": 0.0, "wave": WAVE, "wave_period": 2.0 * np.pi / RATE, **params}
    controller = make_controller(name, arm, tracked, dt)
    controller.reset(observation)
    rows = []
    for _ in range(round(duration / dt)):
        torque = controller.update(observation).tau_joint.copy()
        target = np.array([WAVE["shoulder"], WAVE["elbow"]]) * np.sin(RATE * observation.t)
        rows.append((observation.t, *(observation.joint_position - target), *torque))
        observation = sim.step(torque)
    table = np.array(rows)
    return Track(table[:, 0], table[:, 1:3], table[:, 3:])


def closed_form(t: np.ndarray, frequency: float, ratio: float) -> np.ndarray:
    """Return the solution (n, 2) of e'' + 2 z w e' + w^2 e = 0 for the start of :func:`swing_arm`."""
    e0, v0 = START, -RATE * np.array([WAVE["shoulder"], WAVE["elbow"]])
    A = np.array([[0.0, 1.0], [-(frequency**2), -2.0 * ratio * frequency]])
    values, vectors = np.linalg.eig(A + 1e-9 * np.array([[0.0, 0.0], [1.0, 0.0]]))
    weights = np.linalg.solve(vectors, np.vstack([e0, v0]).astype(complex))
    return np.real(np.einsum("m,tm,mk->tk", vectors[0], np.exp(np.outer(t, values)), weights))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "params", "frequency", "ratio"),
    [
        ("computed_torque", {"frequency": 6.0, "damping_ratio": 0.5}, 6.0, 0.5),
        ("pfl", {"kp": 64.0, "kd": 24.0}, 8.0, 1.5),
    ],
)
def test_errors_decay_with_the_poles_that_were_asked_for(
    arm: Robot, name: str, params: dict[str, float], frequency: float, ratio: float
) -> None:
    """Of a double pendulum, first order in the step: that is all that is left between the error and its closed form."""
    off = []
    for dt in (2e-3, 1e-3):
        run = swing_arm(arm, name, dt, 1.5, **params)
        off.append(float(np.abs(run.error - closed_form(run.t, frequency, ratio)).max()))
    assert off[1] < 4e-3
    assert off[0] / off[1] == pytest.approx(2.0, abs=0.15)


def sliding_variable(run: Track, slope: float) -> np.ndarray:
    rate = np.gradient(run.error, run.t, axis=0)
    return rate + slope * run.error


@pytest.mark.long
def test_the_surface_is_reached_in_the_time_that_reach_says(arm: Robot) -> None:
    """s falls by ``reach`` per second down to the layer and decays exponentially in it: a closed form."""
    slope, reach, layer = 5.0, 8.0, 0.2
    run = swing_arm(arm, "sliding", 5e-4, 2.0, slope=slope, reach=reach, layer=layer)
    s = sliding_variable(run, slope)[1:-1]
    t = run.t[1:-1, None]
    s0 = slope * START - RATE * np.array([WAVE["shoulder"], WAVE["elbow"]])
    late = t - (np.abs(s0) - layer) / reach
    expected = np.sign(s0) * np.where(late < 0.0, np.abs(s0) - reach * t, layer * np.exp(-reach / layer * late))
    assert (np.abs(s0) > 2.0 * layer).any()
    np.testing.assert_allclose(s, np.where(np.abs(s0) < layer, s0 * np.exp(-reach / layer * t), expected), atol=0.02)


@pytest.mark.slow
def test_sliding_stays_in_its_layer_with_a_tenth_more_or_less_mass(arm: Robot) -> None:
    """Mass errors cause a disturbance d of y'', and u / share brings reach / share: |s| <= layer d share / reach.

    The effect of sampling is measured with the correct masses. |e| <= |s| / slope, and no torque changes its sign at
    every tick.
    """
    slope, reach, layer = 10.0, 40.0, 0.5
    size = np.array([WAVE["shoulder"], WAVE["elbow"]])
    data = arm.model.createData()
    sampled = 0.0
    for share in (1.0, 0.9, 1.1):
        run = swing_arm(arm, "sliding", 1e-3, 2.8, scaled(arm, share), slope=slope, reach=reach, layer=layer)
        settled = run.t > 1.2
        disturbance = 0.0
        for t in run.t[settled][::10]:
            q, v = size * np.sin(RATE * t), RATE * size * np.cos(RATE * t)
            torque = pin.rnea(arm.model, data, q, v, -(RATE**2) * q)
            moved = pin.aba(arm.model, data, q, v, torque / share)
            disturbance = max(disturbance, float(np.abs(moved + RATE**2 * q).max()))
        s = np.abs(sliding_variable(run, slope)[settled][1:-1]).max()
        sampled = sampled or s
        bound = sampled + 1.05 * layer * disturbance * share / reach
        assert sampled < 0.3 * bound or share == 1.0
        assert s <= bound
        assert np.abs(run.error[settled]).max() <= bound / slope
        steps = np.sign(np.diff(run.torque[settled], axis=0))
        assert (steps[1:] * steps[:-1] < 0.0).mean(axis=0).max() < 0.02


@pytest.mark.parametrize("power", [0.5, 0.7, 0.9])
def test_settling_times_are_a_closed_form_on_the_curve_and_homogeneous(power: float) -> None:
    """Where p = 0, w' = -sig(w)^a alone; and a start larger by r in w takes r^(1 - a) of the time."""
    w, scale = 0.6, 0.2
    on_curve = -(w ** (2.0 - power)) / (2.0 - power)
    expected = scale * w ** (1.0 - power) / (1.0 - power)
    assert settling_time(on_curve, w / scale, power, scale) == pytest.approx(expected, rel=1e-9)
    once = settling_time(0.3, -0.2 / scale, power, scale)
    larger = settling_time(0.3 * 2.0 ** (2.0 - power), -0.4 / scale, power, scale)
    assert larger == pytest.approx(2.0 ** (1.0 - power) * once, rel=1e-6)
    assert settling_time(0.0, 0.0, power, scale) == 0.0
    x, v, h = 0.3, -0.2 / scale, 1e-5
    for _ in range(round(1.01 * once / h)):
        v += h * float(finite_time_feedback(x, v, power, scale))
        x += h * v
    assert abs(x) < 1e-5


@pytest.mark.long
def test_errors_end_at_the_settling_time_and_stay_ended(arm: Robot) -> None:
    """Both joints, coupled as they are; under ``pfl`` with the same effort at the start they never end."""
    power, scale = 0.6, 0.15
    rates = -RATE * np.array([WAVE["shoulder"], WAVE["elbow"]])
    ends = [settling_time(e, v, power, scale) for e, v in zip(START, rates, strict=True)]
    run = swing_arm(arm, "finite_time", 5e-4, 1.2, power=power, time_scale=scale)
    for error, end in zip(run.error.T, ends, strict=True):
        # The sampling leaves 1e-5 and 2e-5 of it; just before the end there is five times as much.
        assert np.abs(error[run.t > end]).max() < 2.5e-5
        assert np.abs(error[run.t < 0.9 * end]).min() > 1e-4
    other = swing_arm(arm, "pfl", 5e-4, 1.2, kp=1.0 / scale**2)
    for error, end in zip(other.error.T, ends, strict=True):
        assert np.abs(error[other.t > 1.02 * end]).max() > 1e-2


def test_a_layer_that_is_crossed_within_a_tick_is_refused(arm: Robot) -> None:
    with refusal(place="sliding: reach", value=100.0):
        make_controller("sliding", arm, {"reach": 100.0, "layer": 0.05}, 1e-3)


@pytest.mark.long
@pytest.mark.parametrize("name", TRACKING)
def test_a_biped_stands_and_squats(biped14: Robot, name: str) -> None:
    """Both feet stay sticking faces, and the joints follow their targets with the foot constraint in the model."""
    depth, period, ramp = 0.1, 1.0, 0.4
    sim = Simulator(biped14)
    observation = sim.reset()
    params = {"mode": "squat", "squat_depth": depth, "squat_period": period, "squat_delay": 0.2, "ramp": ramp}
    controller = make_controller(name, biped14, params)
    controller.reset(observation)
    data = biped14.model.createData()
    heights, error = [], 0.0
    for _ in range(1800):
        observation = sim.step(controller.update(observation).tau_joint)
        heights.append(pin.centerOfMass(biped14.model, data, sim.q)[2])
        error = max(error, controller.readouts["tracking_error"])
    assert sim.contact.state_changes == 0
    assert error < 3e-3
    assert max(heights) - min(heights) == pytest.approx(depth, rel=0.03)


@pytest.mark.slow
def test_the_trunk_follows_a_virtual_constraint(biped14: Robot) -> None:
    """The trunk nods by a sine, absolutely, and the knees stay alike: two constraints on eight degrees of freedom."""
    sim = Simulator(biped14)
    observation = sim.reset()
    outputs = {"nod": "pitch", "lean": "roll", "knees": "l_knee - r_knee"}
    params = {"outputs": outputs, "wave": {"nod": 0.05}, "wave_period": 1.6}
    controller = make_controller("computed_torque", biped14, params)
    controller.reset(observation)
    pitch, error = [], []
    for _ in range(2600):
        observation = sim.step(controller.update(observation).tau_joint)
        turned = pin.Quaternion(sim.q[3:7]).toRotationMatrix() @ pin.Quaternion(biped14.q_nominal[3:7]).matrix().T
        pitch.append(pin.rpy.matrixToRpy(turned)[1])
        error.append(controller.readouts["tracking_error"])
    assert sim.contact.state_changes == 0
    assert max(error) < 2e-4
    assert np.ptp(pitch[1000:]) == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize("case", ["both", "left", "air"])
def test_the_model_accelerates_as_pinocchio_says(biped14: Robot, case: str) -> None:
    """a = A u + b for any torque and a moving base, whichever feet rest: state and constraints at once."""
    rng = np.random.default_rng(3)
    model = biped14.model
    q = biped14.q_nominal.copy()
    if case == "left":
        for joint, bend in (("r_hip_pitch", -0.2), ("r_knee", 0.4), ("r_ankle_pitch", -0.2)):
            q[biped14.idx_q[biped14.joint_names.index(joint)]] += bend
    resting = np.array([case != "air", case == "both"])
    v = 0.3 * rng.standard_normal(model.nv)
    data = model.createData()
    pin.computeJointJacobians(model, data, q)
    feet = [sole for sole, rests in zip(biped14.soles, resting, strict=True) if rests]
    frames = [(sole.joint_id, sole.placement_joint_sole) for sole in feet]
    if frames:
        J = np.vstack([pin.getFrameJacobian(model, data, *frame, pin.LOCAL) for frame in frames])
        v -= np.linalg.pinv(J) @ (J @ v)
    observation = Simulator(biped14).reset(q, v)
    dynamics = SupportedDynamics(biped14)
    dynamics.place(observation)
    dynamics.update(observation, resting)
    if case == "air":
        # The base velocity of an airborne robot is not observable, and its joints do not depend on it.
        np.testing.assert_allclose(dynamics.v[3:], v[3:], atol=1e-9)
    else:
        np.testing.assert_allclose(dynamics.v, v, atol=1e-9)
    torque = 20.0 * rng.standard_normal(biped14.nu)
    tau = -biped14.joint_damping * v
    tau[biped14.idx_v] += torque
    constraints, solved = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for frame in frames:
        constraints.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, model, *frame, pin.LOCAL))
        solved.append(constraints[-1].createData())
    pin.initConstraintDynamics(model, data, constraints, solved)
    expected = pin.constraintDynamics(model, data, q, v, tau, constraints, solved)
    found = dynamics.A @ torque + dynamics.b
    np.testing.assert_allclose(found[biped14.idx_v], expected[biped14.idx_v], atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("right", [False, True])
def test_the_compass_is_known_from_its_load_cells_and_its_imu(right: bool) -> None:
    """The passive joints follow from an IMU on one leg, whichever leg stands."""
    robot = load_robot("compass")
    q, v = WALKER.robot_state(np.array([0.1, -0.3, -0.35, 0.4]))
    if right:
        # The legs change roles: the right leg takes the state of the left one.
        turn, rate = q[2] + q[3], v[2] + v[3]
        q[2], q[3], v[2], v[3] = turn, -q[3], rate, -v[3]
    sim = Simulator(robot, physics_dt=1e-5)
    model = SupportedDynamics(robot)
    observation: Observation = sim.reset(q, v)
    model.place(observation)
    np.testing.assert_array_equal(model.lowest_feet(), [not right, right])
    model.update(observation, np.array([not right, right]))
    np.testing.assert_allclose(model.q[2:], q[2:], atol=1e-12)
    np.testing.assert_allclose(model.v, v, atol=1e-12)


def test_swings_begin_as_measured_and_end_at_rest() -> None:
    curve = swing_curve(-0.3, 0.7, 0.25, 0.8)
    first, second = np.polyder(curve), np.polyder(curve, 2)
    ends = [[np.polyval(c, t) for c in (curve, first, second)] for t in (0.0, 0.8)]
    np.testing.assert_allclose(ends, [[-0.3, 0.7, 0.0], [0.25, 0.0, 0.0]], atol=1e-12)


def test_sums_are_read_as_written() -> None:
    names = ("hip", "left_knee", "right_knee")
    np.testing.assert_array_equal(linear_sum("left_knee - 0.5 * right_knee", names, "x"), [0.0, 1.0, -0.5])
    np.testing.assert_array_equal(linear_sum("-hip+2e-1*hip + right_knee", names, "x"), [-0.8, 0.0, 1.0])
    with refusal(UnknownNameError, place="x", name="ankle"):
        linear_sum("ankle", names, "x")
    for text in ("", "hip hip", "hip * 2", "2", "hip -"):
        with refusal(place="x", value=text):
            linear_sum(text, names, "x")


def test_parameters_that_do_not_fit_are_named(arm: Robot, biped14: Robot) -> None:
    with refusal(UnknownNameError, place="pfl: outputs.nod", name="pitch"):
        make_controller("pfl", biped14, {"outputs": {"nod": "pitch"}})
    with refusal(UnknownNameError, place="finite_time: phase", name="middle"):
        make_controller("finite_time", load_robot("compass"), {"phase": {"middle": "hip"}})
    with refusal(place="finite_time: swing_angle and phase"):
        make_controller("finite_time", replace(load_robot("compass"), controllers={}), {"swing_angle": BOTH})
    with refusal(UnknownNameError, place="computed_torque: wave", name="wrist"):
        make_controller("computed_torque", arm, {"wave": {"wrist": 0.1}})
    with refusal(place="sliding: mode"):
        make_controller("sliding", arm, {"mode": "squat"})
    with refusal(place="computed_torque: posture.elbow", value=4.0):
        make_controller("computed_torque", arm, {"posture": {"elbow": 4.0}})
    with refusal(place="controller 'computed_torque'"):
        make_controller("computed_torque", special_robot("ball"))
