"""The guard around a controller: the definition of a fall, and the behaviour of the joints after it."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from paths import BODIES
from user_controllers import EchoParams, NotFinite, Rest, Steered

from bipedsim.config import RunConfig
from bipedsim.control.monitor import Guard
from bipedsim.control.stop import StopKind, StopReason
from bipedsim.errors import ConfigError, InvalidCommandError
from bipedsim.model import Robot, load_robot
from bipedsim.runs import run
from bipedsim.sim.io import Command, Observation


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("talos")


def standing(robot: Robot, turn: pin.SE3 | None = None) -> Observation:
    """Return the measurements in the standing posture, with the whole robot turned by ``turn``."""
    observation = Observation.zeros(robot.nu, len(robot.soles))
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, robot.q_nominal)
    pose = (turn or pin.SE3.Identity()) * data.oMi[robot.imu_joint_id] * robot.placement_joint_imu
    observation.imu_orientation[:] = pin.SE3ToXYZQUAT(pose)[3:]
    observation.joint_velocity[:] = np.linspace(-40.0, 40.0, robot.nu)
    return observation


def turned(axis: list[float], angle: float, yaw: float = 0.7) -> pin.SE3:
    rotation = pin.exp3(yaw * np.array([0.0, 0.0, 1.0])) @ pin.exp3(angle * np.array(axis))
    return pin.SE3(rotation, np.zeros(3))


@pytest.mark.parametrize("axis", [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.6, 0.8, 0.0]])
def test_falls_by_tilt_from_the_standing_posture_to_any_side_and_never_by_turning(
    robot: Robot, axis: list[float]
) -> None:
    guard = Guard(Rest(robot, EchoParams(), 1e-3), robot, fall_tilt=0.8)
    guard.reset(standing(robot))
    for turn in (turned(axis, 0.79), turned([0.0, 0.0, 1.0], 3.0)):
        assert not guard.update(standing(robot, turn)).tau_joint.any()
        assert not guard.fallen
    late = standing(robot, turned(axis, 0.81))
    late.t = 2.5
    guard.update(late)
    assert guard.fell_at == 2.5
    assert guard.reason == StopReason(StopKind.TILTED, "46")
    assert not guard.reason.kind.failed


def test_a_fallen_robot_is_damped_within_its_limits_until_the_reset(robot: Robot) -> None:
    guard = Guard(NotFinite(robot, EchoParams(), 1e-3), robot)
    observation = standing(robot)
    guard.reset(observation)
    limit = robot.effort_limit
    for _ in range(2):
        tau = guard.update(observation).tau_joint
        expected = np.clip(-limit * observation.joint_velocity / robot.velocity_limit, -limit, limit)
        np.testing.assert_allclose(tau, expected, rtol=1e-12)
        assert (tau == limit).any()
    assert guard.reason == StopReason(StopKind.NOT_FINITE, "torque of leg_left_1_joint is nan")
    assert guard.reason.kind.failed
    guard.reset(observation)
    assert not guard.fallen
    assert guard.reason is None


def test_what_a_controller_raises_goes_on_and_ends_it(robot: Robot) -> None:
    class Raises(Rest):
        def update(self, observation: Observation) -> Command:
            raise KeyError("l_knee")

    guard = Guard(Raises(robot, EchoParams(), 1e-3), robot)
    observation = standing(robot)
    guard.reset(observation)
    observation.t = 1.25
    with pytest.raises(KeyError, match="l_knee"):
        guard.update(observation)
    assert (guard.fell_at, guard.reason) == (1.25, StopReason(StopKind.RAISED, "KeyError: 'l_knee'"))
    assert guard.reason.kind.failed
    assert (guard.update(observation).tau_joint * observation.joint_velocity <= 0.0).all(), "damped"
    guard.reset(observation)
    assert not guard.fallen


def test_what_a_controller_returns_and_cannot_be_sent_ends_it(robot: Robot) -> None:
    class Short(Rest):
        def update(self, observation: Observation) -> Command:
            return Command(np.zeros(3))

    guard = Guard(Short(robot, EchoParams(), 1e-3), robot)
    observation = standing(robot)
    guard.reset(observation)
    with pytest.raises(InvalidCommandError) as raised:
        guard.update(observation)
    assert raised.value.received == "tau_joint of shape (3,)"
    assert guard.reason == StopReason(StopKind.RETURNED, raised.value.detail)
    assert guard.reason.kind.failed


def test_an_error_that_sounds_like_an_invalid_command_is_one_that_the_controller_raised(robot: Robot) -> None:
    class Mimics(Rest):
        def update(self, observation: Observation) -> Command:
            raise ConfigError("the controller's update returned nothing")

    guard = Guard(Mimics(robot, EchoParams(), 1e-3), robot)
    observation = standing(robot)
    guard.reset(observation)
    with pytest.raises(ConfigError):
        guard.update(observation)
    assert guard.reason is not None
    assert guard.reason.kind is StopKind.RAISED


def test_every_kind_of_stop_has_its_own_sentence_and_comes_back_from_its_value() -> None:
    assert len({str(StopReason(kind, "x")) for kind in StopKind}) == len(StopKind)
    assert [StopKind.read(kind.value) for kind in StopKind] == list(StopKind)
    assert StopKind.read(None) is StopKind.read("later") is None
    assert {kind for kind in StopKind if not kind.failed} == {StopKind.TILTED, StopKind.GAVE_UP}


def test_the_controller_may_give_up_by_itself_and_begin_again(robot: Robot) -> None:
    controller = Steered(robot, EchoParams(), 1e-3)
    guard = Guard(controller, robot)
    observation = standing(robot)
    guard.reset(observation)
    assert guard.set_velocity is not None
    guard.set_velocity(0.0, 0.0, 10.0)
    guard.update(observation)
    assert guard.reason == StopReason(StopKind.GAVE_UP)
    guard.reset(observation)
    guard.set_velocity(0.0, 0.0, 1.0)
    guard.update(observation)
    assert not guard.fallen
    assert guard.readouts["wz"] == 1.0
    assert guard.estimate is controller.estimate


def test_after_a_reset_the_velocity_of_before_is_a_new_one(robot: Robot) -> None:
    """The reset controller no longer has the velocity, so the same command must be sent to it again."""
    guard = Guard(Steered(robot, EchoParams(), 1e-3), robot)
    for _ in range(2):
        guard.reset(standing(robot))
        assert guard.readouts["vx"] == 0.0
        guard.steer((0.3, 0.0, 0.0))
        assert guard.readouts["vx"] == 0.3


def test_after_a_reset_a_controller_is_asked_at_once_and_at_its_beat(robot: Robot) -> None:
    class Slow(Rest):
        decimation = 4

    def asked(guard: Guard, ticks: int) -> list[bool]:
        observation = standing(robot)
        guard.reset(observation)
        fresh = []
        for tick in range(ticks):
            observation.t = 1e-3 * tick
            guard.update(observation)
            fresh.append(guard.fresh)
        return fresh

    guard = Guard(Slow(robot, EchoParams(), 1e-3), robot, dt=1e-3)
    expected = [tick % 4 == 0 for tick in range(9)]
    for before in range(5):
        asked(guard, before)
        assert asked(guard, 9) == expected


def test_what_cannot_be_seen_is_no_fall(robot: Robot) -> None:
    """An IMU without attitude, a robot fixed to the world, and a limit of zero."""
    blind = standing(robot)
    blind.imu_orientation[:] = np.nan
    lying = standing(robot, turned([1.0, 0.0, 0.0], 1.6))
    fixed = load_robot(BODIES / "double_pendulum")
    hanging = Observation.zeros(fixed.nu, len(fixed.soles))
    hanging.imu_orientation[:] = lying.imu_orientation
    for body, observation, limit in ((robot, blind, 1.0), (robot, lying, 0.0), (fixed, hanging, 1.0)):
        guard = Guard(Rest(body, EchoParams(), 1e-3), body, limit)
        guard.reset(observation)
        guard.update(observation)
        assert not guard.fallen
    bare = Guard(Rest(robot, EchoParams(), 1e-3), robot)
    assert bare.set_velocity is None
    assert bare.set_footsteps is None
    assert bare.estimate is None
    assert bare.readouts == {}


class Rebinding(Rest):
    """Shows a new dict in every update, the second time without one of its numbers."""

    def __init__(self, robot: Robot, params: EchoParams, dt: float) -> None:
        super().__init__(robot, params, dt)
        self.readouts = {"time": 0.0, "depth": 0.0}

    def update(self, observation: Observation) -> Command:
        self.readouts = {"time": observation.t} if observation.t > 0.0015 else {"time": observation.t, "depth": 2.0}
        return super().update(observation)


def test_what_a_new_dict_of_readouts_lacks_is_not_a_number(robot: Robot) -> None:
    controller = Rebinding(robot, EchoParams(), 1e-3)
    guard = Guard(controller, robot)
    assert guard.readouts is controller.readouts
    controller.readouts = {"time": 3.0}
    assert guard.readouts["time"] == 3.0
    assert np.isnan(guard.readouts["depth"])


def test_a_dict_of_readouts_in_the_place_of_the_first_one_counts() -> None:
    recording, _ = run(RunConfig(controller=f"{__name__}:Rebinding", duration=0.005))
    # The last row has no answer.
    shown, t = recording.readouts, recording.t[:-1]
    np.testing.assert_allclose(shown["time"][:-1], t, atol=1e-12)
    np.testing.assert_array_equal(np.isfinite(shown["depth"][:-1]), t < 0.0015)
