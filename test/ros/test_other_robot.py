"""examples/other_robot: MuJoCo's robot has the interface of any robot, so controllers cannot tell the difference."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from marks import sampled

pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install bipedsim[examples]")
pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from house_support import imports
from paths import ROOT
from ros_support import RosWorld

from bipedsim.control.controllers import make_controller
from bipedsim.model import load_robot

sys.path.insert(0, str(ROOT / "examples" / "other_robot"))

import mujoco
from geometry_msgs.msg import Twist, Vector3, WrenchStamped
from mujoco_plant import Plant, PlantParams
from robot_topics import RobotCommands
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

FOLDER = ROOT / "examples" / "other_robot"
PHYSICS = ("simulator", "contact", "dynamics", "sensors", "ground", "compiled", "bench", "controllers", "walking")


def test_it_shares_no_physics_with_bipedsim() -> None:
    own = [name for path in FOLDER.glob("*.py") for name in imports(path)]
    assert "mujoco" in own
    code = "import sys, robot_node; print(*(name for name in sys.modules if name.startswith('bipedsim')))"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(FOLDER)])}
    result = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    loaded = {*own, *result.stdout.split()}
    assert [name for name in loaded if name.startswith(tuple(f"bipedsim.{room}" for room in PHYSICS))] == []


def test_welded_joints_leave_the_robot_that_pinocchio_knows() -> None:
    """Two readers of the URDF, two ways to weld 20 joints, one mass matrix."""
    robot = load_robot("talos_legs")
    plant = Plant(robot, 1e-3, PlantParams())
    q = pin.integrate(robot.model, robot.q_nominal, 0.3 * np.random.default_rng(5).normal(size=robot.model.nv))
    joints = [plant.model.joint(name) for name in robot.joint_names]
    plant.data.qpos[:7] = q[[0, 1, 2, 6, 3, 4, 5]]
    plant.data.qpos[[joint.qposadr[0] for joint in joints]] = q[robot.idx_q]
    mujoco.mj_forward(plant.model, plant.data)
    theirs = np.zeros((plant.model.nv, plant.model.nv))
    mujoco.mj_fullM(plant.model, plant.data, theirs)
    dofs = [joint.dofadr[0] for joint in joints]
    data = robot.model.createData()
    ours = np.triu(pin.crba(robot.model, data, q))
    ours += np.triu(ours, 1).T
    np.testing.assert_allclose(theirs[np.ix_(dofs, dofs)], ours[np.ix_(robot.idx_v, robot.idx_v)], atol=1e-9)
    assert theirs[0, 0] == pytest.approx(robot.mass)


@pytest.fixture(scope="module")
def standing() -> Plant:
    """Talos after 1.5 s under the posture controller. Its IMU is upside down, so that wrong signs are detected."""
    robot = load_robot("talos")
    plant = Plant(robot, 1e-3, PlantParams())
    controller = make_controller("posture", robot, None, 1e-3)
    controller.reset(plant.observation)
    for _ in range(1500):
        plant.step(controller.update(plant.observation).tau_joint)
    return plant


def test_ankles_carry_what_is_above_them(standing: Plant) -> None:
    """Ground on foot is positive, and the moment puts the CoP where the contacts say it is."""
    robot, model = standing.robot, standing.robot.model
    feet = [sum((model.inertias[j] for j in model.subtrees[a]), pin.Inertia.Zero()) for a in robot.ankle_joint_ids]
    g = 9.81
    wrench = standing.observation.foot_wrench
    vertical, cop = standing.ground_forces()
    np.testing.assert_allclose(wrench[:, 2], vertical - [g * foot.mass for foot in feet], rtol=1e-3)
    assert wrench[:, 2].sum() == pytest.approx(robot.weight - g * sum(foot.mass for foot in feet), rel=1e-3)
    moment = np.zeros(2)
    for k, foot in enumerate(feet):
        site = standing.data.site(f"{robot.soles[k].name} ankle")
        weight = -g * foot.mass
        # Moment of the measured force about the world origin, minus the weight of the foot.
        force = site.xmat.reshape(3, 3) @ wrench[k, :3] - [0.0, 0.0, weight]
        torque = site.xmat.reshape(3, 3) @ wrench[k, 3:]
        lever = site.xmat.reshape(3, 3) @ foot.lever
        about = np.cross(site.xpos, force) + torque - np.cross(lever, [0.0, 0.0, weight])
        moment += [-about[1], about[0]]
    np.testing.assert_allclose(moment / vertical.sum(), cop, atol=5e-4)


def test_the_imu_at_rest_feels_the_ground_push_upwards(standing: Plant) -> None:
    o = standing.observation
    rotation = pin.Quaternion(o.imu_orientation).toRotationMatrix()
    np.testing.assert_allclose(rotation @ o.imu_linear_acceleration, [0.0, 0.0, 9.81], atol=0.02)
    assert o.imu_linear_acceleration[2] < -9.0
    np.testing.assert_allclose(o.imu_angular_velocity, 0.0, atol=0.01)


def test_a_push_is_an_impulse() -> None:
    """In free fall, F t = m v of the centre of mass, for any motion of the body."""
    robot = load_robot("biped14")
    plant = Plant(robot, 1e-3, PlantParams())
    plant.data.qpos[2] += 1.0
    mujoco.mj_step1(plant.model, plant.data)
    force = np.array([20.0, -35.0, 0.0])
    plant.push(force, 0.1)
    for _ in range(120):
        plant.step(np.zeros(robot.nu))
    mujoco.mj_subtreeVel(plant.model, plant.data)
    velocity = plant.data.subtree_linvel[0]
    # MuJoCo conserves momentum to the first order of its step while joints turn.
    np.testing.assert_allclose(velocity[:2], 0.1 * force[:2] / robot.mass, rtol=1e-3)
    assert velocity[2] == pytest.approx(-9.81 * 0.12, rel=1e-3)


def test_drives_refuse_unsound_commands_and_damp_when_none_comes() -> None:
    from rclpy.serialization import serialize_message

    robot = load_robot("biped14")
    commands = RobotCommands(robot, timeout=0.2, mode="damping")
    observation = Plant(robot, 1e-3, PlantParams()).observation
    observation.joint_velocity[:] = np.linspace(-1.0, 1.0, robot.nu)

    def send(values: Any, t: float) -> str:
        return commands.accept(serialize_message(Float64MultiArray(data=np.asarray(values).tolist())), t)

    assert send(2.0 * robot.effort_limit, 0.0) == ""
    assert "14 finite" in send(np.full(robot.nu, np.nan), 0.1)
    assert "3 values" in send(np.zeros(3), 0.1)
    np.testing.assert_array_equal(commands.torque(observation, 0.2), robot.effort_limit)
    expected = -robot.effort_limit / robot.velocity_limit * observation.joint_velocity
    np.testing.assert_allclose(commands.torque(observation, 0.201), expected)
    assert (commands.received, commands.dropped, commands.timeouts) == (1, 2, 1)


@pytest.mark.long
@pytest.mark.ros
def test_with_a_wall_clock_it_hangs_in_its_stand_with_live_sensors(ros: RosWorld) -> None:
    before = time.time_ns()
    states = ros.collect(JointState, "/joint_states")
    feet = ros.collect(WrenchStamped, "/left_foot_ft/wrench")
    robot = ros.start(FOLDER / "robot_node.py", rate=100.0, stamps="wall", timestep=1e-3)
    ros.until(lambda: len(states) > 20 and feet, "sensors without a controller")
    stamps = [state.header.stamp.sec * 1_000_000_000 + state.header.stamp.nanosec for state in states]
    assert before < stamps[0]
    assert sorted(set(stamps)) == stamps
    assert stamps[-1] < time.time_ns()
    assert {tuple(state.position) for state in states} == {tuple(load_robot("biped14").posture)}
    assert feet[0].wrench.force.z == 0.0
    assert ros.node.count_publishers("/clock") == 0
    assert robot.stop() == 0


@dataclass(frozen=True)
class Run:
    """A controller on the other robot, with the parameters that it has on bipedsim.

    Attributes:
        robot, controller, duration: Robot, controller and duration [s].
        parameters: Of the controller, where they differ from its defaults for that robot.
        velocity: Ahead, on /cmd_vel from the beginning [m/s].
        pushes: On the root link.
        lowered: Minimum vertical motion of the base [m].
    """

    robot: str
    controller: str
    duration: float
    parameters: dict[str, Any] = field(default_factory=dict)
    velocity: float = 0.0
    pushes: tuple[str, ...] = ()
    lowered: float = 0.0


RUNS = [
    Run("biped14", "posture", 2.0, {"mode": "squat"}, lowered=0.09),
    Run("talos", "zmp", 6.0, velocity=0.5, pushes=("4.0 0.1 0.0 90.0 0.0",)),
]
START = 3.0
"""More time [s] than a walk needs to begin: hold, shift, and acceleration at 0.4 m/s^2."""


@pytest.mark.long
@pytest.mark.ros
@pytest.mark.parametrize("run", sampled(RUNS), ids=lambda run: f"{run.robot} {run.controller}")
def test_the_same_controller_process_moves_the_other_robot(ros: RosWorld, run: Run) -> None:
    # Missing kernels are compiled here, where no node waits for them.
    make_controller(run.controller, load_robot(run.robot), run.parameters)
    own = {f"{run.controller}__{name}": value for name, value in run.parameters.items()}
    ros.start("controller_node", robot=run.robot, controller=run.controller, cmd_vel_timeout=0.0, **own)
    if run.velocity:
        steering = ros.node.create_publisher(Twist, "/cmd_vel", 1)
        ros.connected(steering)
        # Waits for the controller's first tick.
        steering.publish(Twist(linear=Vector3(x=run.velocity)))
    report = ros.folder / "report.json"
    told = {"pushes": list(run.pushes)} if run.pushes else {}
    plant = ros.start(
        FOLDER / "robot_node.py", robot=run.robot, clock="lock_step", duration=run.duration, report=str(report), **told
    )
    assert ros.ended(plant) == 0, plant.output
    result = json.loads(report.read_text(encoding="utf-8"))
    assert result["fell_at_s"] is None
    assert result["missed_commands"] == result["commands_dropped"] == 0
    assert result["commands_received"] >= round(1000 * run.duration)
    assert result["tilt_max_deg"] < 5.0
    assert result["vertical_force_mean_over_weight"] == pytest.approx(1.0, abs=0.01)
    x, y, _ = result["base_position_m"]
    assert run.velocity * (run.duration - START) - 0.05 <= x <= run.velocity * run.duration
    assert abs(y) < 0.2
    assert result["base_height_max_m"] - result["base_height_min_m"] >= run.lowered
