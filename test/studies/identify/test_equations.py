"""The equations of motion: true for a simulated robot, with the derivatives that they claim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose
from sensor_recording_support import record_sensors

from bipedsim.config.run import RunConfig
from bipedsim.control import make_controller
from bipedsim.errors import ConfigError
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.runs.runner import run
from bipedsim.sim import Simulator
from bipedsim_studies.identify.equations import Equations
from bipedsim_studies.identify.lacking import Lacking
from bipedsim_studies.identify.parameters import parameters_of
from bipedsim_studies.identify.signals import TAPS, Signals, signals_of


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


def part(signals: Signals, n: int) -> Signals:
    fields = {
        name: value[:n] for name, value in vars(signals).items() if isinstance(value, np.ndarray) and name != "noise"
    }
    return replace(signals, **fields)


@pytest.fixture(scope="module")
def squat(robot: Robot) -> Signals:
    return signals_of(run(RunConfig(scenario="squat", duration=4.0))[0], robot)


@pytest.fixture(scope="module")
def walk(robot: Robot) -> Signals:
    settings = RunConfig(scenario="walk", controller="zmp", duration=6.0)
    return signals_of(run(settings)[0], robot)


def test_the_equations_hold_for_a_simulated_robot(robot: Robot, squat: Signals) -> None:
    parameters = parameters_of(robot)
    rows = Equations(robot, parameters).rows(squat, parameters.start)
    nv = robot.model.nv
    forces = rows.residual[:, :3]
    assert np.abs(forces).max() < 1e-3 * robot.weight
    knees = rows.residual[:, robot.idx_v[[3, 10]]]
    assert np.sqrt(np.mean(knees**2)) < 2e-3 * np.abs(squat.effort[:, 3]).max()
    assert not rows.used[:, nv:].any(), "both feet are on the ground"


@pytest.mark.parametrize("name", ["talos", "g1"])
def test_the_equations_hold_with_an_imu_anywhere(name: str) -> None:
    """That of talos is turned, and above the joints of its waist, which a lateral walk moves."""
    robot = load_robot(name)
    signals = signals_of(run(RunConfig(robot=name, scenario="sideways", controller="zmp", duration=5.0))[0], robot)
    parameters = parameters_of(robot)
    rows = Equations(robot, parameters).rows(signals, parameters.start)
    spread = np.sqrt(np.mean(rows.residual[:, :3] ** 2, axis=0))
    assert spread.max() < 2e-3 * robot.weight
    assert np.sqrt(np.mean(rows.residual[:, 3:6] ** 2)) < 2e-3 * robot.weight * robot.com_height


@pytest.mark.parametrize("name", ["talos", "g1"])
def test_fast_motion_needs_the_forces_of_inverse_dynamics_in_the_world(name: str) -> None:
    """For any attitude and speed of the base, which the equations do not know."""
    robot = load_robot(name)
    model = robot.model
    data, rng = model.createData(), np.random.default_rng(4)
    q = pin.integrate(model, pin.neutral(model), rng.uniform(-1.0, 1.0, model.nv))
    v, a = 3.0 * rng.uniform(-1.0, 1.0, model.nv), 20.0 * rng.uniform(-1.0, 1.0, model.nv)
    frame = model.getFrameId(robot.imu_frame)
    pin.forwardKinematics(model, data, q, v, a)
    pose = pin.updateFramePlacement(model, data, frame)
    local = pin.ReferenceFrame.LOCAL
    gyro = pin.getFrameVelocity(model, data, frame, local).angular
    turns = pin.getFrameAcceleration(model, data, frame, local).angular
    felt = pin.getFrameClassicalAcceleration(model, data, frame, local).linear
    felt = felt - pose.rotation.T @ model.gravity.linear

    def same(*shape: int, value: Any = 0.0) -> Array:
        return np.broadcast_to(value, (TAPS, *shape)).copy()

    joints = {name: same(robot.nu, value=x) for name, x in (("q", q[robot.idx_q]), ("v", v[robot.idx_v]))}
    none = {name: same(robot.nu) for name in ("effort", "effort_rate", "dry")}
    signals = Signals(
        t=np.arange(TAPS) / 50.0,
        a=same(robot.nu, value=a[robot.idx_v]),
        wrench=same(2, 6),
        wrench_rate=same(2, 6),
        gyro=same(3, value=gyro),
        gyro_rate=same(3, value=turns),
        gyro_jerk=same(3),
        accelerometer=same(3, value=felt),
        accelerometer_rate=same(3),
        airborne=np.zeros((TAPS, 2), dtype=bool),
        held=np.zeros(TAPS, dtype=bool),
        noise=np.zeros(6 + robot.nu + 12),
        correlation=np.ones((1, 6 + robot.nu + 12)),
        lacking=Lacking(np.zeros(robot.nu, dtype=bool), np.zeros((2, 6), dtype=bool)),
        **joints,
        **none,
    )
    parameters = parameters_of(robot)
    residual = Equations(robot, parameters).rows(signals, parameters.start).residual[0, : model.nv]
    above = pin.Model(model)
    for joint in robot.ankle_joint_ids:
        above.inertias[joint] = pin.Inertia.Zero()
    expected = pin.rnea(above, above.createData(), q, v, a) + robot.joint_damping * v
    assert_allclose(residual, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("cells", [(True, True), (True, False)])
def test_the_equations_hold_with_load_cells_in_the_soles(robot: Robot, cells: tuple[bool, bool]) -> None:
    """Their wrenches contain no weight of the foot, which then belongs to the robot above them."""
    soles = [replace(sole, load_cell=cell) for sole, cell in zip(robot.soles, cells, strict=True)]
    other = replace(robot, soles=tuple(soles))
    controller = make_controller("posture", other, {"mode": "squat"}, 1e-3)
    sim = Simulator(other, control_dt=1e-3)
    first = sim.reset()
    controller.reset(first)
    recording = record_sensors(
        other, 3000, first, lambda observation: sim.step(controller.update(observation).tau_joint)
    )
    parameters = parameters_of(other)
    rows = Equations(other, parameters).rows(signals_of(recording, other), parameters.start)
    foot = robot.model.inertias[robot.ankle_joint_ids[0]].mass * 9.81
    assert np.abs(rows.residual[:, :3]).max() < 0.1 * foot


def test_a_foot_in_the_air_weighs_what_its_sensor_says(robot: Robot, walk: Signals) -> None:
    parameters = parameters_of(robot)
    rows = Equations(robot, parameters).rows(walk, parameters.start)
    nv = robot.model.nv
    foot = robot.model.inertias[robot.ankle_joint_ids[0]].mass * 9.81
    swing = rows.used[:, nv]
    assert swing.sum() > 10
    assert np.abs(rows.residual[swing, nv : nv + 3]).max() < 0.02 * foot


@pytest.mark.ci
def test_the_slopes_are_the_derivatives_of_the_residuals(robot: Robot, walk: Signals) -> None:
    parameters = parameters_of(robot)
    equations = Equations(robot, parameters)
    rng = np.random.default_rng(3)
    some = part(walk, TAPS + 2)
    values = parameters.start + 0.3 * parameters.spread * rng.uniform(-1.0, 1.0, len(parameters))
    slope = equations.rows(some, values).slope
    one_of_each = [indices.ravel()[rng.integers(indices.size)] for indices in parameters.at.values()]
    for i in [*one_of_each, *rng.choice(len(parameters), 20, replace=False)]:
        step = np.zeros(len(parameters))
        step[i] = 1e-3 * parameters.spread[i]
        ahead, behind = (equations.rows(some, values + sign * step).residual for sign in (1.0, -1.0))
        expected = (ahead - behind) / (2.0 * step[i])
        if parameters.kinds[i] in ("encoder_offset", "accelerometer_offset", "imu_rotation", "imu_delay"):
            # Left out on purpose: the weight of a foot hardly depends on them.
            expected[:, robot.model.nv :] = 0.0
        scale = np.abs(expected).max()
        # The delay of the IMU also turns its angular velocity, and an encoder its lever: effects of second order.
        tolerance = 2e-2 if parameters.kinds[i] in ("imu_delay", "imu_rotation") else 1e-4
        assert_allclose(slope[..., i], expected, atol=tolerance * scale + 1e-9, err_msg=parameters.label(i))


def test_robots_that_the_equations_do_not_describe_are_refused() -> None:
    for name in ("parallel_ankles", "compass"):
        other = load_robot(name)
        with pytest.raises(ConfigError):
            Equations(other, parameters_of(other))
    robot = load_robot("biped14")
    passive = replace(robot, joint_names=robot.joint_names[1:], idx_q=robot.idx_q[1:], idx_v=robot.idx_v[1:])
    with pytest.raises(ConfigError):
        Equations(passive, parameters_of(robot))


@pytest.mark.long
def test_the_forces_of_a_gantry_enter_no_equation_that_is_used() -> None:
    """It holds the torso of g1, which is on three joints of the waist."""
    robot = load_robot("g1")
    hanging = run(RunConfig(robot="g1", scenario="hang", controller="posture", hardware="realistic", duration=3.0))[0]
    parameters = parameters_of(robot)
    used = Equations(robot, parameters).rows(signals_of(hanging, robot), parameters.start).used
    waist = [robot.idx_v[i] for i, joint in enumerate(robot.joint_names) if joint.startswith("waist")]
    assert len(waist) == 3
    assert not used[:, [*range(6), *waist]].any()


@pytest.mark.long
@pytest.mark.parametrize("upper", [True, False])
def test_a_joint_at_its_limit_is_not_used(upper: bool) -> None:
    """The torque of the limit is not measured."""
    robot = load_robot("biped14")
    squat = run(RunConfig(scenario="squat", controller="posture", hardware="realistic", duration=4.0))[0]
    signals, parameters = signals_of(squat, robot), parameters_of(robot)
    knee = robot.joint_names.index("l_knee")
    equations = Equations(robot, parameters)
    free = equations.rows(signals, parameters.start).used[:, robot.idx_v[knee]]
    limits = robot.model.upperPositionLimit if upper else robot.model.lowerPositionLimit
    limits[robot.idx_q[knee]] = signals.q[:, knee].max() if upper else signals.q[:, knee].min()
    limited = Equations(robot, parameters).rows(signals, parameters.start).used[:, robot.idx_v[knee]]
    assert 0 < limited.sum() < free.sum()
