"""The filter around controllers: feet do not slip or tip, and small commands pass unchanged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bipedsim.control.base import Controller
from bipedsim.control.controllers import make_controller
from bipedsim.control.monitor import Guard
from bipedsim.control.stop import StopKind, StopReason
from bipedsim.ground.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.sim.io import Command, Observation
from bipedsim.sim.simulator import Simulator
from bipedsim_studies.feasibility.filter import Sticking, StickingParams

ICE = 0.1
TICKS = 400


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


def asks(robot: Robot, wave: dict[str, float]) -> Controller:
    """Return computed torque that lets joints swing, at a rate of 2 rad/s, from one tick to the next."""
    return make_controller("computed_torque", robot, {"wave": wave, "wave_period": 3.0, "ramp": 0.2})


def disturbed_ticks(robot: Robot, controller: Controller, mu: float) -> int:
    """Return in how many ticks a foot slid or lifted a vertex, on a floor of friction ``mu``."""
    sim = Simulator(robot, Ground.flat(friction_static=mu, friction_dynamic=mu))
    observation = sim.reset()
    controller.reset(observation)
    count = 0
    for _ in range(TICKS):
        tau = np.clip(controller.update(observation).tau_joint, -robot.effort_limit, robot.effort_limit)
        observation = sim.step(tau)
        count += bool(sim.contact.sliding.any() or (sim.contact.clamped < sim.contact.n_vertices).any())
    return count


WAVES = {
    "tips sideways": {"l_hip_roll": 0.05, "r_hip_roll": 0.05, "l_ankle_roll": -0.05, "r_ankle_roll": -0.05},
    "turns": {"l_hip_yaw": 0.2, "r_hip_yaw": 0.2, "l_ankle_yaw": -0.2, "r_ankle_yaw": -0.2},
}


@pytest.mark.parametrize("wave", WAVES.values(), ids=list(WAVES))
def test_a_controller_that_asks_too_much_is_kept_on_its_feet_on_ice(robot: Robot, wave: dict[str, float]) -> None:
    assert disturbed_ticks(robot, asks(robot, wave), ICE) > 50
    filtered = Sticking(asks(robot, wave), robot, StickingParams(friction=ICE))
    assert disturbed_ticks(robot, filtered, ICE) == 0


def test_it_keeps_a_planar_robot_from_slipping() -> None:
    planar = load_robot("planar_biped")
    wave = {"l_hip": 0.1, "r_hip": 0.1}
    assert disturbed_ticks(planar, asks(planar, wave), 0.02) > 50
    filtered = Sticking(asks(planar, wave), planar, StickingParams(friction=0.02))
    assert disturbed_ticks(planar, filtered, 0.02) == 0


def test_a_controller_that_stands_is_left_alone(robot: Robot) -> None:
    sim = Simulator(robot)
    plain, hosted = make_controller("posture", robot), make_controller("posture", robot)
    filtered = Sticking(hosted, robot)
    observation = sim.reset()
    plain.reset(observation)
    filtered.reset(observation)
    for _ in range(100):
        tau = plain.update(observation).tau_joint
        np.testing.assert_array_equal(filtered.update(observation).tau_joint, tau)
        assert filtered.readouts["sticking_change"] == 0.0
        assert filtered.readouts["sticking_margin"] > 1.0
        observation = sim.step(tau)


class Lifts:
    """Asks one leg to be pulled up, and has every optional member of a controller."""

    def __init__(self, robot: Robot) -> None:
        self._stand = make_controller("posture", robot)
        self._knee = robot.joint_names.index("r_hip_pitch")
        self.readouts = {"asked": 0.0}
        self.fallen = False
        self.true_velocity, self.height_points = np.full(3, np.nan), np.zeros((4, 2))
        self.commands: list[tuple[float, float, float]] = []

    def reset(self, observation: Observation) -> None:
        self._stand.reset(observation)

    def set_velocity(self, vx: float, vy: float, wz: float) -> None:
        self.commands.append((vx, vy, wz))

    def update(self, observation: Observation) -> Command:
        tau = self._stand.update(observation).tau_joint.copy()
        tau[self._knee] -= 200.0
        self.readouts["asked"] += 1.0
        return Command(tau)


def test_a_foot_may_lift_only_where_it_is_let(robot: Robot) -> None:
    sim = Simulator(robot)
    observation = sim.reset()
    loads = {}
    for may_lift in (False, True):
        filtered = Sticking(Lifts(robot), robot, replace(StickingParams(), may_lift=may_lift))
        filtered.reset(observation)
        sim.reset()
        sim.step(filtered.update(observation).tau_joint)
        loads[may_lift] = float(sim.contact.wrench[1, 2])
    assert loads[False] > 0.04 * robot.weight
    assert loads[True] == 0.0


def test_what_a_controller_has_its_filter_has(robot: Robot) -> None:
    controller = Lifts(robot)
    guard = Guard(Sticking(controller, robot), robot)
    guard.steer((0.1, 0.0, 0.0))
    assert controller.commands == [(0.1, 0.0, 0.0)]
    assert not guard.has_estimate
    assert guard.true_velocity is controller.true_velocity
    assert guard.height_points is controller.height_points
    observation = Simulator(robot).reset()
    guard.reset(observation)
    guard.update(observation)
    assert guard.readouts["asked"] == 1.0
    assert guard.readouts["sticking_change"] > 1.0
    controller.fallen = True
    guard.update(observation)
    assert guard.reason == StopReason(StopKind.GAVE_UP)
    without = Sticking(make_controller("posture", robot), robot)
    optional = ("set_velocity", "set_footsteps", "fallen", "estimate", "height_points", "true_velocity")
    assert not any(hasattr(without, name) for name in optional)


def test_it_is_hosted_by_name(robot: Robot) -> None:
    name = "bipedsim_studies.feasibility.filter:StickingController"
    hosted = make_controller(name, robot, {"controller": "posture", "controller_params": {"mode": "squat"}})
    assert disturbed_ticks(robot, hosted, 0.45) == 0
