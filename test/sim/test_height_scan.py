"""The height scan: order of Isaac Lab and legged_gym, heading frame, noise, delay and snapshots."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st

from bipedsim.errors import ConfigError
from bipedsim.ground import Ground, HeightField, make_ground
from bipedsim.model import load_robot
from bipedsim.runs.faults import Fault, FaultSchedule
from bipedsim.sim import Observation, Simulator, VerticalFromImu, scan_grid, scan_points

ROBOT = load_robot("biped14")
POINTS = scan_grid((1.6, 1.0), 0.1, True)
ROUGH = make_ground({"field": {"size": [6.0, 6.0], "random_uniform": {"platform_size": 1.0}, "wave": {}}}, "rough")


def test_points_are_in_the_order_of_isaac_lab_and_legged_gym() -> None:
    x, y = np.arange(-0.8, 0.81, 0.1), np.arange(-0.5, 0.51, 0.1)
    np.testing.assert_allclose(POINTS, [(a, b) for b in y for a in x], atol=1e-9)
    np.testing.assert_allclose(scan_grid((1.6, 1.0), 0.1, False), [(a, b) for a in x for b in y], atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(at=st.tuples(st.floats(-2.0, 2.0), st.floats(-2.0, 2.0)), turn=st.tuples(*[st.floats(-1.0, 1.0)] * 3))
def test_heights_are_those_of_the_ground_in_the_heading_frame(at: tuple[float, float], turn: tuple[float, ...]) -> None:
    sim = SIM
    R = pin.rpy.rpyToMatrix(0.4 * turn[0], 0.4 * turn[1], 3.0 * turn[2])
    q = ROBOT.q_nominal.copy()
    q[:7] = pin.SE3ToXYZQUAT(pin.SE3(R, np.array([*at, 2.0])))
    seen = sim.reset(q).height_scan
    yaw = pin.rpy.matrixToRpy(R)[2]
    c, s = np.cos(yaw), np.sin(yaw)
    world = np.array(at) + POINTS @ np.array([[c, s], [-s, c]])
    np.testing.assert_allclose(seen, 2.0 - ROUGH.height(*world.T), atol=1e-12)


SIM = Simulator(ROBOT, ROUGH, height_scan=POINTS)


@settings(max_examples=30, deadline=None)
@given(at=st.tuples(st.floats(-2.0, 2.0), st.floats(-2.0, 2.0)), turn=st.tuples(*[st.floats(-1.0, 1.0)] * 3))
def test_points_in_the_base_frame_are_on_the_ground(at: tuple[float, float], turn: tuple[float, ...]) -> None:
    base = pin.SE3(pin.exp3(1.5 * np.array(turn)), np.array([*at, 2.0]))
    q = ROBOT.q_nominal.copy()
    q[:7] = pin.SE3ToXYZQUAT(base)
    seen = SIM.reset(q)
    world = scan_points(POINTS, seen.height_scan, seen.scan_up) @ base.rotation.T + base.translation
    np.testing.assert_allclose(world[:, 2], ROUGH.height(*world[:, :2].T), atol=1e-9)
    np.testing.assert_allclose(np.hypot(*(world[:, :2] - at).T), np.hypot(*POINTS.T), atol=1e-12)


@pytest.mark.parametrize("joint", [1, 5])
def test_the_vertical_follows_from_the_imu_and_the_joints(joint: int) -> None:
    """Also of an IMU on a leg."""
    placement = pin.SE3(pin.exp3(np.array([0.3, -0.5, 0.2])), np.zeros(3))
    robot = dataclasses.replace(ROBOT, imu_joint_id=joint, placement_joint_imu=placement)
    sim, vertical = Simulator(robot, height_scan=POINTS), VerticalFromImu(robot)
    rng = np.random.default_rng(2)
    for _ in range(3):
        q = robot.q_nominal + 0.2 * rng.normal(size=robot.model.nq)
        q[:7] = pin.SE3ToXYZQUAT(pin.SE3(pin.exp3(rng.normal(size=3)), np.array([0.0, 0.0, 3.0])))
        seen = sim.reset(q).copy()
        expected = seen.scan_up.copy()
        seen.scan_up.fill(np.nan)
        vertical.fill(seen)
        np.testing.assert_allclose(seen.scan_up, expected, atol=1e-12)
    seen.imu_orientation.fill(np.nan)
    vertical.fill(seen)
    assert np.isnan(seen.scan_up).all()


def test_an_observation_without_a_scan_has_no_points() -> None:
    seen = Observation.of_robot(ROBOT)
    with pytest.raises(ConfigError) as refused:
        scan_points(POINTS, np.ones(len(POINTS)), seen.scan_up)
    assert refused.value.place == "up"


def test_points_without_ground_and_with_a_vertical_base() -> None:
    points = scan_points(np.zeros((2, 2)), np.array([1.0, np.inf]), np.array([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(points, [[-1.0, 0.0, 0.0], [np.nan] * 3])


def test_the_attitude_is_as_late_as_the_heights() -> None:
    sim = Simulator(ROBOT, hardware={"measurement_delay": 0.003}, height_scan=POINTS)
    turned = ROBOT.q_nominal.copy()
    turned[:7] = pin.SE3ToXYZQUAT(pin.SE3(pin.exp3(np.array([0.3, 0.2, 0.1])), np.array([0.0, 0.0, 3.0])))
    v = np.zeros(ROBOT.model.nv)
    v[3:6] = 1.0, 2.0, 0.5
    ups, verticals = [sim.reset(turned, v).scan_up.copy()], [pin.XYZQUATToSE3(sim.q[:7]).rotation[2].copy()]
    for _ in range(8):
        ups.append(sim.step(np.zeros(ROBOT.nu)).scan_up.copy())
        verticals.append(pin.XYZQUATToSE3(sim.q[:7]).rotation[2].copy())
    assert np.linalg.norm(np.subtract(verticals[-1], verticals[0])) > 5e-3
    np.testing.assert_allclose(ups[3:], verticals[:-3], atol=1e-12)
    np.testing.assert_allclose(ups[:3], [verticals[0]] * 3, atol=1e-12)


def test_no_scan_unless_asked_and_nothing_else_changes() -> None:
    plain, scanning = Simulator(ROBOT, hardware="realistic"), Simulator(ROBOT, hardware="realistic", height_scan=POINTS)
    for _ in range(20):
        a, b = plain.step(np.zeros(ROBOT.nu)), scanning.step(np.zeros(ROBOT.nu))
        for name in a.__slots__:
            assert name in ("height_scan", "scan_up") or np.array_equal(getattr(a, name), getattr(b, name)), name
    assert a.height_scan.shape == (0,)
    assert b.height_scan.shape == (187,)


def test_noise_bias_and_delay() -> None:
    points = np.zeros((4000, 2))
    hardware = {"height_noise": 0.01, "height_bias": 0.05, "measurement_delay": 0.003}
    sim, ideal = (Simulator(ROBOT, hardware=h, seed=2, height_scan=points) for h in (hardware, "ideal"))
    biases, late = [], []
    for _ in range(3):
        seen = [sim.reset().height_scan - ideal.reset().height_scan]
        assert np.std(seen[0]) == pytest.approx(0.01, rel=0.05)
        biases.append(float(np.mean(seen[0])))
    assert max(map(abs, biases)) < 0.051
    assert np.ptp(biases) > 1e-3
    q = ROBOT.q_nominal + 0.0
    q[2] += 0.5
    first = sim.reset(q).height_scan.mean() - ideal.reset(q).height_scan[0]
    true = [float(ideal.sensors.observation.height_scan[0])]
    for _ in range(30):
        late.append(sim.step(np.zeros(ROBOT.nu)).height_scan.mean() - first)
        true.append(float(ideal.step(np.zeros(ROBOT.nu)).height_scan[0]))
    # The robot falls by more than the noise of the mean.
    np.testing.assert_allclose(late[5:], true[3:28], atol=8e-4)
    assert abs(late[-1] - true[-1]) > 8e-4 * 0.5


def test_a_copy_and_a_snapshot_continue_with_the_same_bits() -> None:
    sim = Simulator(ROBOT, ROUGH, hardware="realistic", height_scan=POINTS)
    sim.reset()
    for _ in range(5):
        sim.step(np.zeros(ROBOT.nu))
    twin, before = copy.deepcopy(sim), sim.snapshot()
    ends = []
    for one in (sim, twin):
        ends.append([one.step(np.zeros(ROBOT.nu)).height_scan.copy() for _ in range(5)])
    sim.restore(before)
    ends.append([sim.step(np.zeros(ROBOT.nu)).height_scan.copy() for _ in range(5)])
    np.testing.assert_array_equal(ends[0], ends[1])
    np.testing.assert_array_equal(ends[0], ends[2])


@pytest.mark.parametrize(("does", "value"), [("nan", np.nan), ("stuck", 1.0), ("lost", 1.0)])
def test_it_fails_as_other_sensors_do(does: str, value: float) -> None:
    faults = FaultSchedule([Fault(part="heights", does=does, at=0.002, duration=0.01)], ROBOT, 1e-3, 0)
    seen = Simulator(ROBOT, height_scan=[[0.0, 0.0]]).reset().copy()
    faults.restart(seen)
    heights = []
    for k in range(1, 4):
        seen.t, seen.height_scan[:] = k * 1e-3, [1.0, 1.0, 2.0][k - 1]
        heights.append(float(faults.sense(seen).height_scan[0]))
    assert heights[0] == 1.0
    np.testing.assert_equal(heights[2], value)


def test_there_is_no_ground_beyond_the_border() -> None:
    small = Ground(field=HeightField(np.zeros((3, 3)), 0.4))
    seen = Simulator(ROBOT, small, height_scan=[[0.0, 0.0], [1.0, 0.0]]).reset().height_scan
    assert seen.tolist() == [ROBOT.q_nominal[2], np.inf]


@pytest.mark.parametrize("points", [[1.0, 2.0], [[0.0, np.nan]], np.zeros((2, 3))])
def test_points_that_are_none_are_refused(points: object) -> None:
    with pytest.raises(ConfigError) as caught:
        Simulator(ROBOT, height_scan=points)  # type: ignore[arg-type]
    assert caught.value.place == "height_scan"
