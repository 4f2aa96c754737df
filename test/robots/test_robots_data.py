"""Every registered robot: standing, physical consistency, and sources of its numbers."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import anthropometry as winter
import numpy as np
import pinocchio as pin
import pytest
from paths import STANDING
from scipy.linalg import null_space

from bipedsim.control.controllers import CONTROLLERS, make_controller
from bipedsim.model import Chains, LoopEquations, Robot, load_robot, stability_ratio
from bipedsim.model.urdf import inertia_problem

loaded = lru_cache(load_robot)

MASSES = {"biped14": 70.0, "parallel_ankles": 70.0, "talos": 90.27, "talos_legs": 90.27, "g1": 33.34, "icub": 28.35}
"""Published, or the sum over the links of the URDF [kg]."""


@pytest.fixture(params=STANDING)
def robot(request: pytest.FixtureRequest) -> Robot:
    return loaded(request.param)


def heights_and_com(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Heights of all sole vertices, the CoM, and the mean of the sole centres."""
    data = robot.model.createData()
    com = pin.centerOfMass(robot.model, data, q)
    vertices = [np.array([data.oMi[s.joint_id].act(v) for v in s.vertices_joint]) for s in robot.soles]
    return np.concatenate([v[:, 2] for v in vertices]), com, np.mean([v.mean(axis=0) for v in vertices], axis=0)


def test_stands_flat_with_the_com_over_the_support(robot: Robot) -> None:
    heights, com, centre = heights_and_com(robot, robot.q_nominal)
    assert np.abs(heights).max() < 1e-9
    assert np.hypot(*(com - centre)[:2]) < 1e-9
    assert com[2] > 0.3


def test_nominal_posture_is_within_the_limits_and_settles_to_itself(robot: Robot) -> None:
    assert (robot.posture >= robot.position_lower).all()
    assert (robot.posture <= robot.position_upper).all()
    assert robot.settle(robot.posture) == pytest.approx(robot.q_nominal, abs=1e-9)
    assert robot.q_nominal[robot.idx_q] == pytest.approx(robot.posture, abs=0.0)


def test_base_and_feet_are_upright_and_face_forward(robot: Robot) -> None:
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, robot.q_nominal)
    rotations = [data.oMi[s.joint_id].rotation @ s.placement_joint_sole.rotation for s in robot.soles]
    assert np.mean(rotations, axis=0)[:, 0] == pytest.approx([1.0, 0.0, 0.0], abs=1e-2)
    assert data.oMi[1].rotation[2, 2] > 0.999


def test_loading_twice_gives_the_same_bits(robot: Robot) -> None:
    again = load_robot(robot.name)
    assert np.array_equal(again.q_nominal, robot.q_nominal)
    assert again.joint_names == robot.joint_names


def test_bodies_are_possible_and_the_mass_matrix_is_positive_definite(robot: Robot) -> None:
    assert robot.mass == pytest.approx(MASSES[robot.name], abs=0.01)
    assert robot.weight == pytest.approx(9.81 * robot.mass)
    driven = {1, *(robot.model.getJointId(name) for name in robot.joint_names)}
    for joint, body in enumerate(robot.model.inertias):
        # Between the two axes of a universal joint there is nothing.
        assert body.mass > 0.0 or joint not in driven
        assert body.mass == 0.0 or not inertia_problem(body.mass, body.inertia)
    data = robot.model.createData()
    pin.crba(robot.model, data, robot.q_nominal)
    assert np.linalg.eigvalsh(data.M, UPLO="U")[0] > (1e-4 if robot.loops else 1e-3)


def test_limits_and_indices(robot: Robot) -> None:
    held = sum(loop.size for loop in robot.loops)
    assert robot.nu == robot.model.nv - 6 - held
    assert held or sorted(robot.idx_v) == list(range(6, robot.model.nv))
    for name, i in zip(robot.joint_names, robot.idx_v, strict=True):
        assert robot.model.joints[robot.model.getJointId(name)].idx_v == i
    assert (robot.effort_limit > 0.0).all()
    assert (robot.velocity_limit > 0.0).all()
    assert (robot.position_lower < robot.position_upper).all()
    assert (robot.joint_damping[:6] == 0.0).all()
    assert (robot.joint_damping >= 0.0).all()
    assert (robot.model.armature[robot.idx_v] > 0.0).all()
    assert (robot.model.armature[:6] == 0.0).all()


def test_left_and_right_foot_mirror_each_other(robot: Robot) -> None:
    left, right = robot.soles
    assert (left.name, right.name) == ("left", "right")
    mirrored = right.vertices * [1.0, -1.0]
    assert {tuple(v) for v in np.round(mirrored, 9)} == {tuple(v) for v in np.round(left.vertices, 9)}
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, robot.q_nominal)
    a, b = ((data.oMi[s.joint_id] * s.placement_joint_sole).translation for s in robot.soles)
    assert a == pytest.approx(b * [1.0, -1.0, 1.0], abs=1e-3)
    assert a[1] > 0.0


def test_limits_armature_and_posture_are_symmetric(robot: Robot) -> None:
    swaps = {"left": "right", "l_": "r_"}
    for i, name in enumerate(robot.joint_names):
        for left, right in swaps.items():
            other = name.replace(left, right, 1)
            if other != name and other in robot.joint_names and (left == "left" or name.startswith(left)):
                j = robot.joint_names.index(other)
                assert robot.effort_limit[i] == robot.effort_limit[j]
                assert robot.velocity_limit[i] == robot.velocity_limit[j]
                assert robot.model.armature[robot.idx_v[i]] == robot.model.armature[robot.idx_v[j]]
                assert abs(robot.posture[i]) == pytest.approx(abs(robot.posture[j]), abs=5e-3)


def test_weight_is_carried_within_the_effort_limits(robot: Robot) -> None:
    """Static torques of standing, with the weight shared by the feet, stay below half of the drive limits."""
    model, data = robot.model, robot.model.createData()
    torque = pin.computeGeneralizedGravity(model, data, robot.q_nominal).copy()
    pin.computeJointJacobians(model, data, robot.q_nominal)
    for sole in robot.soles:
        joint = data.oMi[sole.joint_id]
        arm = (joint * sole.placement_joint_sole).act(np.append(sole.centre, 0.0)) - joint.translation
        force = np.array([0.0, 0.0, robot.weight / len(robot.soles)])
        wrench = np.concatenate([force, np.cross(arm, force)])
        torque -= pin.getJointJacobian(model, data, sole.joint_id, pin.LOCAL_WORLD_ALIGNED).T @ wrench
    if robot.loops:
        chains = Chains(robot)
        chains.follow(robot.posture, np.zeros(robot.nu))
        chains.carry(torque)
    assert np.abs(torque[:6]).max() < 1e-9 * robot.weight
    assert (np.abs(torque[robot.idx_v]) < 0.5 * robot.effort_limit).all()


def test_sources_are_named_and_nothing_is_odd(robot: Robot) -> None:
    assert {"armature", "soles"} <= set(robot.sources)
    assert robot.description
    assert robot.source == Path(robot.source).parent / "robot.yaml"
    assert robot.source.parent.name == robot.name
    assert not [w for w in robot.warnings if "inertia" not in w]


def test_controllers_of_every_robot_accept_its_parameters(robot: Robot) -> None:
    assert set(robot.controllers) <= set(CONTROLLERS)
    for name in robot.controllers:
        make_controller(name, robot, {}, 1e-3)


def test_stability_ratio_is_that_of_the_free_robot(robot: Robot) -> None:
    """Unit torque on one joint in the air accelerates it by 1 / I_eff, and I_eff is at least the rotor's.

    In closed chains, by the motion that keeps them closed (Gauss's principle).
    """
    ratio = stability_ratio(robot, np.full(robot.nu, 2.0), 1e-3)
    data = robot.model.createData()
    i_eff = 2e-3 / ratio
    assert (i_eff >= robot.model.armature[robot.idx_v] - 1e-12).all()
    zero = np.zeros(robot.model.nv)
    rest = pin.aba(robot.model, data, robot.q_nominal, zero, zero).copy()
    if robot.loops:
        pin.crba(robot.model, data, robot.q_nominal)
        M = np.triu(data.M) + np.triu(data.M, 1).T
        motions = null_space(LoopEquations(robot.model, robot.loops).at(robot.q_nominal)[1])
        rates = motions @ np.linalg.solve(motions.T @ M @ motions, motions.T)
        np.testing.assert_allclose(np.diag(rates)[robot.idx_v], 1.0 / i_eff, rtol=1e-6)
        return
    for k in range(0, robot.nu, 5):
        tau = zero.copy()
        tau[robot.idx_v[k]] = 1.0
        a = pin.aba(robot.model, data, robot.q_nominal, zero, tau) - rest
        assert 1.0 / a[robot.idx_v[k]] == pytest.approx(i_eff[k], rel=1e-6)


def test_biped14_urdf_is_what_the_tables_give() -> None:
    assert loaded("biped14").urdf_path.read_text(encoding="utf-8") == winter.biped14()


def test_parallel_ankles_urdf_is_what_the_tables_give() -> None:
    assert loaded("parallel_ankles").urdf_path.read_text(encoding="utf-8") == winter.parallel_ankles()


@pytest.mark.parametrize("side", ["l", "r"])
def test_rods_and_cranks_are_taken_out_of_the_shank(side: str) -> None:
    """With the ankle, all that moves with the knee and not with the foot makes up the tabulated shank."""
    model = loaded("parallel_ankles").model
    data = model.createData()
    pin.forwardKinematics(model, data, pin.neutral(model))
    origin = data.oMi[model.getJointId(f"{side}_knee")]
    total = pin.Inertia.Zero()
    names = [f"{part}_{which}{end}" for which in ("outer", "inner") for part, end in (("crank", ""), ("rod", "_roll"))]
    for name in ("knee", "ankle_pitch", *names):
        i = model.getJointId(f"{side}_{name}")
        total += (origin.inverse() * data.oMi[i]).act(model.inertias[i])
    body = winter.shank()
    assert total.mass == pytest.approx(body.mass, rel=1e-8)
    assert total.lever == pytest.approx(body.centre, abs=1e-8)
    assert np.diag(total.inertia) == pytest.approx(np.diag(body.inertia), abs=1e-8)


@pytest.mark.parametrize(
    ("joint", "parts", "body"),
    [
        ("l_hip_yaw", ("l_hip_yaw", "l_hip_roll", "l_hip_pitch"), winter.thigh()),
        ("r_hip_yaw", ("r_hip_yaw", "r_hip_roll", "r_hip_pitch"), winter.thigh()),
        ("l_knee", ("l_knee", "l_ankle_yaw", "l_ankle_pitch"), winter.shank()),
        ("r_knee", ("r_knee", "r_ankle_yaw", "r_ankle_pitch"), winter.shank()),
        ("r_ankle_roll", ("r_ankle_roll",), winter.foot()),
        ("root_joint", ("root_joint",), winter.trunk()),
    ],
)
def test_biped14_housings_and_links_make_up_the_tabulated_segment(
    joint: str, parts: tuple[str, ...], body: winter.Body
) -> None:
    model = loaded("biped14").model
    data = model.createData()
    pin.forwardKinematics(model, data, pin.neutral(model))
    origin = data.oMi[model.getJointId(joint)]
    total = pin.Inertia.Zero()
    for part in parts:
        i = model.getJointId(part)
        total += (origin.inverse() * data.oMi[i]).act(model.inertias[i])
    assert total.mass == pytest.approx(body.mass, rel=1e-8)
    assert total.lever == pytest.approx(body.centre, abs=1e-8)
    assert total.inertia == pytest.approx(body.inertia, abs=1e-8)


def test_biped14_is_adult_sized() -> None:
    robot = loaded("biped14")
    assert robot.nu == 14
    assert pytest.approx(0.84) == winter.THIGH_LENGTH + winter.SHANK_LENGTH
    assert 1.6 < winter.HEIGHT < 1.8
    fractions = winter.TRUNK_FRACTION + 2 * (winter.THIGH_FRACTION + winter.SHANK_FRACTION + winter.FOOT_FRACTION)
    assert fractions == pytest.approx(1.0)
    for sole in robot.soles:
        assert np.ptp(sole.vertices, axis=0) == pytest.approx([0.24, 0.13])
    names = {f.name for f in robot.model.frames}
    assert {"base_link", "imu_link", "l_sole", "r_sole", "l_ankle", "r_ankle"} <= names
