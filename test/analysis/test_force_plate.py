"""Force plate against closed forms: known loads at known points give known CoP, free moment and totals."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, strategies as st
from recording_support import SOLE, standing
from refusals import refusal

from bipedsim.analysis.plates import (
    centre_of_pressure,
    force_plate,
    low_pass,
    margin,
    sample_rate,
    standing_rows,
    summary,
    world_wrench,
)
from bipedsim.recording.recording import Recording

small = st.floats(-0.5, 0.5)
vector = st.tuples(small, small, small).map(np.array)
force = st.tuples(st.floats(-200, 200), st.floats(-200, 200), st.floats(50, 900)).map(np.array)


@given(force, small, small, st.floats(-0.2, 0.3), st.floats(-20, 20))
def test_point_load_and_twist_come_back(f: np.ndarray, x: float, y: float, height: float, twist: float) -> None:
    moment = np.cross([x, y, height], f) + np.array([0.0, 0.0, twist])
    cop, free = centre_of_pressure(f, moment, height)
    np.testing.assert_allclose(cop, [x, y], atol=1e-12)
    assert free == pytest.approx(twist, abs=1e-9)


def test_sign_convention_on_the_ground() -> None:
    # Pushed down at (0.1, 0.2): the moment of the ground is r x f = (y f_z, -x f_z, 0).
    cop, _ = centre_of_pressure(np.array([0.0, 0.0, 100.0]), np.array([20.0, -10.0, 0.0]))
    np.testing.assert_allclose(cop, [0.1, 0.2])


def test_no_load_has_no_centre() -> None:
    cop, free = centre_of_pressure(np.array([[0.0, 0, 0], [0, 0, 5.0]]), np.ones((2, 3)), threshold=10.0)
    assert np.isnan(cop).all()
    assert np.isnan(free).all()


@given(vector, vector, force, vector)
def test_world_wrench_is_that_of_pinocchio(
    axis: np.ndarray, position: np.ndarray, f: np.ndarray, tau: np.ndarray
) -> None:
    placement = pin.SE3(pin.exp3(axis), position)
    expected = placement.act(pin.Force(f, tau))
    got_force, got_moment = world_wrench(np.concatenate([f, tau]), pin.SE3ToXYZQUAT(placement))
    np.testing.assert_allclose(got_force, expected.linear, atol=1e-10)
    np.testing.assert_allclose(got_moment, expected.angular, atol=1e-10)


def test_total_centre_is_the_weighted_mean_of_the_feet() -> None:
    r = standing(10)
    r.wrench[:, 0] = [0, 0, 300, 0, -3.0, 0]  # CoP of the left foot at x = 0.01
    r.wrench[:, 1] = [0, 0, 100, 2.0, 0, 0.5]  # of the right foot at y = 0.02 before its pose
    plate = force_plate(r)
    np.testing.assert_allclose(plate.cop[0], [[0.01, 0.1], [0.0, -0.08]], atol=1e-12)
    np.testing.assert_allclose(plate.total_cop[0], [0.0075, (300 * 0.1 - 100 * 0.08) / 400], atol=1e-12)
    np.testing.assert_allclose(plate.free_moment[0], [0.0, 0.5], atol=1e-12)
    np.testing.assert_allclose(plate.total_force[0], [0, 0, 400])


def test_a_turned_foot_turns_its_force() -> None:
    r = standing(5)
    r.sole_poses[:, 0, 3:] = [0, 0, np.sqrt(0.5), np.sqrt(0.5)]  # 90 degrees to the left
    r.wrench[:, 0] = [10.0, 0, 350, 0, 0, 0]
    np.testing.assert_allclose(force_plate(r).force[0, 0], [0, 10, 350], atol=1e-12)


def test_a_foot_in_the_air_does_not_spoil_the_other() -> None:
    r = standing(10)
    r.wrench[:, 1] = np.nan
    plate = force_plate(r)
    assert np.isnan(plate.cop[:, 1]).all()
    np.testing.assert_allclose(plate.total_cop, plate.cop[:, 0])


def test_without_poses_there_is_no_plate() -> None:
    r = standing(10)
    r.sole_poses[:] = np.nan
    with refusal(place="sole poses"):
        force_plate(r)


@pytest.mark.parametrize("order", [1, 2, 5])
@pytest.mark.parametrize(("zero_phase", "gain"), [(True, 0.5), (False, np.sqrt(0.5))])
def test_low_pass_gain_at_the_cutoff(order: int, zero_phase: bool, gain: float) -> None:
    t = np.arange(8000) / 1000.0
    passed = low_pass(np.sin(2 * np.pi * 20.0 * t), 1000.0, 20.0, order, zero_phase)[3000:5000]
    # Over forty whole periods, the samples miss the peaks but give the exact mean square.
    assert np.sqrt(2.0 * np.mean(passed**2)) == pytest.approx(gain, rel=1e-6)


@pytest.mark.parametrize("zero_phase", [True, False])
def test_low_pass_keeps_constants_and_slow_signals(zero_phase: bool) -> None:
    constant = np.full((500, 2, 3), 7.0)
    np.testing.assert_allclose(low_pass(constant, 1000.0, zero_phase=zero_phase), constant, rtol=1e-9)
    t = np.arange(4000) / 1000.0
    slow = np.sin(2 * np.pi * t)
    filtered = low_pass(slow, 1000.0, zero_phase=True)
    np.testing.assert_allclose(filtered[500:-500], slow[500:-500], atol=1e-6)


def test_low_pass_delays_only_when_causal() -> None:
    pulse = np.zeros(2001)
    pulse[1000] = 1.0
    assert np.argmax(low_pass(pulse, 1000.0)) == 1000
    assert np.argmax(low_pass(pulse, 1000.0, zero_phase=False)) > 1010


@pytest.mark.parametrize("cutoff", [0.0, -1.0, 500.0, np.nan])
def test_low_pass_refuses_a_senseless_cutoff(cutoff: float) -> None:
    with refusal(place="cutoff", value=cutoff):
        low_pass(np.zeros(100), 1000.0, cutoff)


def test_filter_acts_before_the_quotient() -> None:
    # A filtered 50 Hz ripple on f_z alone does not move the CoP. The moment is constant, and then the CoP is as well.
    r = standing(4000)
    r.wrench[:, :, 2] += 100.0 * np.sin(2 * np.pi * 100.0 * r.t)[:, None]
    raw, filtered = force_plate(r), force_plate(r, cutoff=10.0)
    assert np.ptp(raw.cop[500:-500, 0, 0]) > 1e-3
    assert np.ptp(filtered.cop[500:-500, 0, 0]) < 1e-6


@given(st.tuples(st.floats(-0.3, 0.3), st.floats(-0.3, 0.3)).map(np.array))
def test_margin_of_a_rectangle(p: np.ndarray) -> None:
    expected = min(0.12 - abs(p[0]), 0.065 - abs(p[1]))
    assert margin(p, SOLE) == pytest.approx(expected, abs=1e-12)


def test_margin_of_point_and_blade() -> None:
    assert margin(np.array([0.3, 0.4]), np.zeros((1, 2))) == pytest.approx(-0.5)
    blade = np.array([[0.0, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(margin(np.array([[0.5, 0.2], [1.5, 0.0], [0.3, 0.0]]), blade), [-0.2, -0.5, 0.0])


def test_summary_of_standing() -> None:
    r = standing(3000)
    r.wrench[2000, 0, 2] += 1.5
    r.cop[2500, 1] = [0.0, 0.066]  # 1 mm outside
    r.mode[100:200, 1] = 5
    r.sliding[1000:, 0] = True
    got = summary(r)
    assert got["duration_s"] == pytest.approx(2.999)
    assert got["rate_hz"] == 1000.0
    assert got["ticks"] == 3000
    assert got["fz_max_error_N"] == pytest.approx(1.5)
    assert got["fz_mean_over_mg"] == pytest.approx(1.0 + 1.5 / 700.0 / 2000)
    assert got["standing_s"] == pytest.approx(2.0)
    assert got["cop_inside_fraction"] == pytest.approx(1.0 - 1.0 / 6000.0)
    assert got["state_changes"] == 3


def test_summary_counts_only_standing_still() -> None:
    r = standing(3000)
    r.joint_velocity[1500, 2] = 0.5
    r.wrench[1450:1550, :, 2] += 40.0
    rows = standing_rows(r)
    assert not rows[:1000].any()
    assert rows[1000:1400].all()
    assert not rows[1401:1600].any()
    assert rows[1601:].all()
    assert summary(r)["fz_max_error_N"] == pytest.approx(0.0)


@pytest.mark.parametrize("foot", [0, 1])
def test_a_robot_on_one_foot_does_not_stand(foot: int) -> None:
    r = standing(3000)
    r.wrench[1500, foot] = 0.0
    rows = standing_rows(r)
    assert not rows[1500]
    assert rows[1000:1400].all()
    assert rows[1601:].all()


def test_noise_of_the_velocities_does_not_hide_that_the_robot_stands() -> None:
    r = standing(3000)
    r.joint_velocity[:] = np.random.Generator(np.random.Philox(1)).normal(0.0, 0.02, r.joint_velocity.shape)
    assert standing_rows(r)[1000:].all()
    r.joint_velocity[2000:2300, 1] += 0.04
    rows = standing_rows(r)
    assert not rows[1950:2350].any()
    assert rows[1000:1850].all()
    assert rows[2450:].all()


def test_summary_of_a_tilted_sole_takes_the_vertical() -> None:
    r = standing(3000)
    placement = pin.SE3(pin.exp3(np.array([0.0, 0.3, 0.0])), np.array([0.0, 0.1, 0.0]))
    r.sole_poses[:, 0] = pin.SE3ToXYZQUAT(placement)
    r.wrench[:, 0, :3] = placement.rotation.T @ [0.0, 0.0, 350.0]
    assert summary(r)["fz_max_error_N"] == pytest.approx(0.0, abs=1e-9)


def test_a_lost_pose_is_no_level_sole() -> None:
    """If the robot is on its back, the soles push down in their own axes."""
    r = standing()
    r.sole_poses[:] = pin.SE3ToXYZQUAT(pin.SE3(pin.rpy.rpyToMatrix(np.pi, 0.0, 0.0), np.zeros(3)))
    r.wrench[:, :, 2] *= -1.0
    whole = summary(r)["fz_N"]
    assert whole["min"] > 0.0
    r.sole_poses[1::7] = np.nan
    assert summary(r)["fz_N"] == pytest.approx(whole, rel=1e-12)


def test_a_lost_pose_spoils_no_mean() -> None:
    r = standing(3000)
    whole = summary(r)
    r.sole_poses[2::7] = np.nan
    holed = summary(r)
    for name in ("fz_N", "fz_mean_over_mg", "fz_max_error_N"):
        assert holed[name] == pytest.approx(whole[name], rel=1e-12, abs=1e-9)


def test_summary_says_none_where_nothing_is_known() -> None:
    got = summary(Recording.empty(0, ["a"], ["left"]))
    assert got["rate_hz"] is None
    assert got["fz_mean_over_mg"] is None
    assert got["cop_inside_fraction"] is None
    assert got["state_changes"] is None
    assert got["duration_s"] == 0.0


def test_sample_rate_ignores_gaps() -> None:
    t = np.delete(np.arange(1000) / 500.0, slice(300, 400))
    assert sample_rate(t) == 500.0
