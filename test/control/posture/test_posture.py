"""The posture controller on every robot of the table: stand, squat, be pushed, land."""

from __future__ import annotations

import warnings
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml
from hypothesis import given, settings, strategies as st
from marks import sampled
from measured_support import measured
from paths import STANDING
from refusals import check_fields, refusal
from scipy.linalg import null_space

from bipedsim.config.read import from_mapping
from bipedsim.control.controllers import CONTROLLERS, make_controller
from bipedsim.control.posture.posture import PostureController, PostureParams
from bipedsim.control.posture.static_support import StaticSupport
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import LoopEquations, Robot, inverse_inertia, load_robot, stability_ratio
from bipedsim.sim.simulator import Simulator

loaded = lru_cache(load_robot)


@pytest.fixture(params=sampled(STANDING))
def robot(request: pytest.FixtureRequest) -> Robot:
    return loaded(request.param)


class Run:
    """A closed loop and its recorded results."""

    def __init__(self, robot: Robot, q: np.ndarray | None = None, **params: Any) -> None:
        self.robot = robot
        self.sim = Simulator(robot)
        self.controller = make_controller("posture", robot, params, 1e-3)
        self.observation = self.sim.reset(q)
        self.controller.reset(self.observation)
        self.force: list[float] = []
        self.com: list[np.ndarray] = []
        self.torque: list[np.ndarray] = []
        self.data = robot.model.createData()

    def go(self, seconds: float) -> Run:
        for _ in range(round(seconds / self.sim.control_dt)):
            self.torque.append(self.controller.update(self.observation).tau_joint.copy())
            self.observation = self.sim.step(self.torque[-1])
            self.force.append(float(self.sim.contact.wrench[:, 2].sum()))
            self.com.append(pin.centerOfMass(self.robot.model, self.data, self.sim.q).copy())
        return self


@pytest.mark.long
@pytest.mark.parametrize("name", STANDING)
def test_stands_quietly_for_ten_seconds(name: str) -> None:
    robot = loaded(name)
    run = Run(robot).go(10.0)
    assert run.sim.contact.state_changes == 0
    assert np.abs(np.array(run.force) - robot.weight).max() < 1e-3
    assert np.abs(run.sim.q[robot.idx_q] - robot.posture).max() < 1e-9
    assert np.abs(run.sim.v).max() < 1e-9


def test_squats_without_jolt_over_the_support(robot: Robot) -> None:
    run = Run(robot, mode="squat").go(5.0)
    depth = robot.controllers["posture"]["squat_depth"]
    com = np.array(run.com)
    settled = com[3000:]
    assert run.sim.contact.state_changes == 0
    assert np.ptp(settled[:, 2]) == pytest.approx(depth, rel=0.03)
    assert np.abs(settled[:, :2]).max() < 0.01
    # The vertical force is that of the mass accelerating, at every step, the first included.
    assert np.abs(np.array(run.force) - robot.weight).max() < 1.1 * robot.mass * depth / 2 * (2 * np.pi) ** 2
    assert abs(run.force[0] - robot.weight) < 0.01 * robot.weight
    steps = np.abs(np.diff(run.force))
    assert steps.max() < 0.003 * robot.weight
    saturated = np.abs(np.array(run.torque)) >= robot.effort_limit
    assert not saturated.any()


@pytest.mark.parametrize("line", [[[0.16, 0.0], [-0.08, 0.0]], [[-0.08, 0.0], [0.16, 0.0]]])
def test_legs_of_five_joints_squat_on_blades(tmp_path: Path, line: list[list[float]]) -> None:
    """Tilted legs roll over the contact lines. Constraining all six coordinates of a foot would be one too many."""
    source = load_robot("biped14").source
    config = yaml.safe_load(source.read_text())
    missing = [side + joint for side in "lr" for joint in ("_ankle_roll", "_ankle_yaw")]
    leaning = {"l_hip_roll": 0.05, "r_hip_roll": -0.05}
    config |= {
        "urdf": str(source.parent / "robot.urdf"),
        "joints": [name for name in config["joints"] if name not in missing],
        "locked": dict.fromkeys(missing, 0.0) | {"l_ankle_roll": -0.05, "r_ankle_roll": 0.05},
        "posture": config["posture"] | leaning,
        "feet": {side: foot | {"vertices": line} for side, foot in config["feet"].items()},
    }
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(config))
    run = Run(load_robot(path), mode="squat", squat_depth=0.1)
    before = run.sim.ground_truth().pose_world_sole[:, :3].copy()
    run.go(3.0)
    assert np.ptp(np.array(run.com)[:, 2]) == pytest.approx(0.1, rel=0.03)
    np.testing.assert_allclose(run.sim.ground_truth().pose_world_sole[:, :3], before, atol=1e-4)
    assert run.sim.contact.unresolved == 0


def test_squats_repeat_after_one_period(robot: Robot) -> None:
    force = np.array(Run(robot, mode="squat", squat_period=0.8).go(5.6).force)
    assert force[-800:] == pytest.approx(force[-1600:-800], abs=0.01 * robot.weight)


def test_forces_of_both_feet_hold_the_whole_robot(robot: Robot) -> None:
    """In the standing posture the six equations of the base are balanced: the robot is in static equilibrium."""
    support = StaticSupport(robot, balance=0.3)
    torque = support.torque(measured(robot, robot.q_nominal))
    assert np.abs(torque[:6]).max() < 1e-9 * robot.weight
    assert (np.abs(torque[robot.idx_v]) < robot.effort_limit).all()


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(STANDING), st.integers(0, 2**32 - 1))
def test_statics_know_no_base_pose(name: str, seed: int) -> None:
    """The measurements and torques do not change if the robot is moved or turned about the vertical.

    A tilted robot also supports itself.
    """
    robot = loaded(name)
    random = np.random.default_rng(seed)
    q = robot.q_nominal.copy()
    q[robot.idx_q] += 0.02 * random.standard_normal(robot.nu)
    q = robot.settle(q[robot.idx_q])
    lean = pin.exp6(np.concatenate([np.zeros(3), 0.05 * random.standard_normal(2), [0.0]]))
    q[:7] = pin.SE3ToXYZQUAT(lean * pin.XYZQUATToSE3(q[:7]))
    turn = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, random.uniform(-3, 3)), random.standard_normal(3))
    moved = q.copy()
    moved[:7] = pin.SE3ToXYZQUAT(turn * pin.XYZQUATToSE3(q[:7]))
    here, there = StaticSupport(robot, 0.0), StaticSupport(robot, 0.0)
    torque = here.torque(measured(robot, q)).copy()
    assert there.torque(measured(robot, moved)) == pytest.approx(torque, abs=1e-9 * robot.weight)
    # The force equations always balance. The moment equations do so unless the CoM has left the soles.
    assert np.abs(torque[:3]).max() < 1e-9 * robot.weight


def test_without_support_there_is_only_the_pd(robot: Robot) -> None:
    controller = make_controller("posture", robot, {"support": False}, 1e-3)
    assert isinstance(controller, PostureController)
    observation = measured(robot, robot.q_nominal)
    controller.reset(observation)
    observation.t = 2.0
    observation.joint_position += 1e-3
    observation.joint_velocity[:] = 1e-2
    expected = -1e-3 * controller._kp - 1e-2 * controller._kd
    tau = controller.update(observation).tau_joint
    assert tau == pytest.approx(np.clip(expected, -robot.effort_limit, robot.effort_limit), rel=1e-9)


def test_jumps_without_turning() -> None:
    """Postures of a jump have no angular momentum about the pitch axis along their path, so that it lands flat."""
    robot = loaded("biped14")
    run = Run(robot, mode="jump")
    data = robot.model.createData()
    turning = []
    while run.sim.t < 1.5:
        run.go(1e-3)
        if (run.sim.contact.mode == 0).all():
            pin.ccrba(robot.model, data, run.sim.q, run.sim.v)
            turning.append(data.hg.angular[1] / data.Ig.inertia[1, 1])
    assert len(turning) > 100
    assert np.abs(turning).max() < 0.1


def test_without_ground_only_gravity_is_held(robot: Robot) -> None:
    support = StaticSupport(robot, balance=0.3)
    observation = measured(robot, robot.q_nominal, contact=0.0)
    support.torque(observation)
    torque = support.torque(observation)
    gravity = pin.computeGeneralizedGravity(robot.model, robot.model.createData(), robot.q_nominal)
    # In motions that keep the chains closed, the drives do the work of gravity.
    motions = np.eye(robot.model.nv)[6:]
    if robot.loops:
        rows = LoopEquations(robot.model, robot.loops).at(robot.q_nominal)[1]
        motions[:, 6:] = null_space(rows[:, 6:]) @ null_space(rows[:, 6:]).T
    held = np.zeros(robot.model.nv)
    held[robot.idx_v] = torque[robot.idx_v]
    assert motions @ held == pytest.approx(motions @ gravity, abs=1e-9 * robot.weight)


def test_sways_to_rest_after_a_push(robot: Robot) -> None:
    """Half of m w (distance to the toe): the impulse that moves the capture point to the toe."""
    run = Run(robot).go(0.5)
    toe = min(v[0] for v in (s.vertices.max(axis=0) for s in robot.soles)) - np.mean([s.centre[0] for s in robot.soles])
    impulse = 0.5 * robot.mass * np.sqrt(9.81 / run.com[-1][2]) * toe
    run.sim.push(np.array([impulse / 0.05, 0.0, 0.0, 0.0, 0.0, 0.0]), duration=0.05)
    run.go(6.0)
    assert np.abs(run.sim.q[robot.idx_q] - robot.posture).max() < 5e-3
    assert np.abs(run.sim.v).max() < 2e-3
    assert abs(run.force[-1] - robot.weight) < 0.1


def test_balance_damps_sway() -> None:
    def residue(balance: float) -> float:
        run = Run(loaded("biped14"), balance=balance).go(0.2)
        run.sim.push(np.array([100.0, 0.0, 0.0, 0.0, 0.0, 0.0]), duration=0.1)
        return float(np.ptp(np.array(run.go(4.0).com)[-1000:, 0]))

    assert residue(0.2) < 0.05 * residue(0.0)


def test_lands_and_stands_after_a_drop(robot: Robot) -> None:
    q = robot.q_nominal.copy()
    q[2] += 0.02
    run = Run(robot, q).go(4.0)
    assert abs(run.force[-1] - robot.weight) < 0.1
    assert np.abs(run.sim.q[robot.idx_q] - robot.posture).max() < 5e-3


def test_comes_from_another_posture_without_a_step_in_torque() -> None:
    robot = loaded("biped14")
    away = robot.posture.copy()
    for joint, offset in (("hip_pitch", -0.1), ("knee", 0.2), ("ankle_pitch", -0.1)):
        for side in "lr":
            away[robot.joint_names.index(f"{side}_{joint}")] += offset
    run = Run(robot, robot.settle(away), ramp=0.5).go(3.0)
    assert abs(run.force[0] - robot.weight) < 0.02 * robot.weight
    assert np.abs(run.sim.q[robot.idx_q] - robot.posture).max() < 1e-3
    assert run.sim.contact.state_changes == 0


@pytest.mark.parametrize("delay", [0.0, 1.25])
def test_targets_are_smooth_and_their_velocity_is_their_derivative(delay: float) -> None:
    robot = loaded("biped14")
    controller = PostureController(robot, PostureParams(mode="squat", squat_depth=0.08, squat_delay=delay), 1e-3)
    observation = measured(robot, robot.settle(robot.posture + 0.01))
    controller.reset(observation)
    goals, rates = [], []
    for k in range(3000):
        observation.t = 1e-3 * k
        controller.update(observation)
        goals.append(controller._aim.q_goal.copy())
        rates.append(controller._aim.v_goal.copy())
    q, v = np.array(goals), np.array(rates)
    assert q[0] == pytest.approx(observation.joint_position, abs=1e-12)
    assert v[0] == pytest.approx(np.zeros(robot.nu), abs=1e-12)
    central = (q[2:] - q[:-2]) / 2e-3
    assert central == pytest.approx(v[1:-1], abs=1e-3)
    assert np.abs(np.diff(v, axis=0)).max() < 0.06
    assert (np.ptp(q[1000:1250], axis=0).max() == 0.0) == (delay == 1.25)
    assert np.ptp(q[2000:], axis=0).max() > 0.1


def test_default_gains_are_stable_at_their_rate(robot: Robot) -> None:
    """dt M^-1 Kd, all joints at once, has the largest eigenvalue that was asked for."""
    for dt in (1e-3, 2e-3):
        controller = PostureController(robot, PostureParams(), dt)
        modes = np.linalg.eigvals(dt * inverse_inertia(robot) * controller._kd)
        assert np.abs(modes).max() == pytest.approx(0.25)
        assert (stability_ratio(robot, controller._kd, dt) < 0.25).all()


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_stands_with_torques_that_arrive_late(robot: Robot, delay: int) -> None:
    """A real-time loop over a network has a delay of one to three ticks.

    A push during the delay uses the full margin.
    """
    run = Run(robot)
    late = [run.controller.update(run.observation).tau_joint.copy()] * (delay + 1)
    run.sim.push(np.array([0.3 * robot.weight, 0.0, 0.0, 0.0, 0.0, 0.0]), duration=0.03)
    for _ in range(4000):
        late.append(run.controller.update(run.observation).tau_joint.copy())
        run.observation = run.sim.step(late.pop(0))
    assert abs(run.sim.contact.wrench[:, 2].sum() - robot.weight) < 0.5
    assert np.abs(run.sim.v).max() < 5e-3
    assert np.abs(run.sim.q[robot.idx_q] - robot.posture).max() < 5e-3


def test_gains_that_would_diverge_are_warned_of(robot: Robot) -> None:
    joint = robot.joint_names[0]
    with pytest.warns(UserWarning, match=rf"kd dt / I_eff is above 1.*{joint}"):
        make_controller("posture", robot, {"kd": {joint: 2000.0}}, 1e-3)


def test_gains_by_joint_and_by_expression() -> None:
    robot = loaded("biped14")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        controller = make_controller("posture", robot, {"kp": {"._knee": 700.0}, "kd": {".*": 10.0, "l_knee": 15.0}})
    assert isinstance(controller, PostureController)
    left, right = robot.joint_names.index("l_knee"), robot.joint_names.index("r_knee")
    assert controller._kp[[left, right]].tolist() == [700.0, 700.0]
    assert controller._kd[[left, right]].tolist() == [15.0, 10.0]


def test_torque_stays_within_the_limits(robot: Robot) -> None:
    controller = make_controller("posture", robot, {"ramp": 1e-3}, 1e-3)
    observation = measured(robot, robot.q_nominal)
    controller.reset(observation)
    observation.joint_position += 2.0
    observation.t = 1.0
    tau = controller.update(observation).tau_joint
    assert (np.abs(tau) <= robot.effort_limit).all()
    assert (np.abs(tau) == robot.effort_limit).any()


@pytest.mark.parametrize(
    ("params", "key", "value"),
    [
        ({"mode": "jmp"}, "", "jmp"),
        ({"kp": {"elbow": 1.0}}, "kp", "elbow"),
        ({"kd": {"l_knee": -1.0}}, "kd.l_knee", -1.0),
        ({"posture": {"l_knee": -1.0}}, "posture.l_knee", -1.0),
        ({"squat_depth": 2.0}, "squat_depth", 2.0),
        ({"mode": "squat", "squat_depth": 0.6}, "squat_depth = 0.6 m", None),
        ({"mode": "sway", "sway_amplitude": 2.1}, "sway_amplitude", 2.1),
        ({"mode": "jump", "jump_height": 1.0}, "jump_height", None),
        ({"ramp": 0.0}, "ramp", 0.0),
        ({"speed": 1.0}, "", "speed"),
    ],
)
def test_wrong_parameters_are_named(params: dict[str, Any], key: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        make_controller("posture", loaded("biped14"), params, 1e-3)
    check_fields(caught.value, place=key or "controller 'posture' of 'biped14'")
    assert getattr(caught.value, "name", caught.value.value) == value


def test_controllers_are_found_by_name() -> None:
    robot = loaded("biped14")
    with refusal(UnknownNameError, name="postur", meant="posture"):
        make_controller("postur", robot, {}, 1e-3)
    for cls in CONTROLLERS.values():
        assert all(f.metadata["doc"] for f in fields(cls.Params))
        assert from_mapping(cls.Params, {}, "defaults") == cls.Params()


def test_robot_parameters_and_overrides_merge_by_key() -> None:
    robot = loaded("biped14")
    before = dict(robot.controllers["posture"])
    make_controller("posture", robot, {"mode": "squat", "squat_depth": 0.03}, 1e-3)
    assert robot.controllers["posture"] == before
