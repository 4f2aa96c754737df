"""Semi-implicit Euler is of first order. The test is a squat whose torques do not depend on the step."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from physics_support import SELECTION_MODELS, standing_torque

from bipedsim.model import Robot, load_robot
from bipedsim.sim.simulator import Simulator

DURATION = 0.4
STEPS = (2e-4, 5e-4, 1e-3, 2e-3)
REFERENCE = 5e-5


def squat(robot: Robot, model: str, h: float) -> tuple[np.ndarray, float]:
    """Return (centre of mass and joint angles, energy [J]) after one squat under torques smooth in time and state."""
    sim = Simulator(robot, contact=model, physics_dt=h)
    static = standing_torque(robot)
    names = list(robot.joint_names)
    bend = np.zeros(robot.nu)
    for side in ("l", "r"):
        for joint, share in (("hip_pitch", -1.0), ("knee", 2.0), ("ankle_pitch", -1.0)):
            bend[names.index(f"{side}_{joint}")] = share
    w = 2.0 * np.pi / DURATION
    for _ in range(round(DURATION / h)):
        t = sim.t
        depth, rate = 0.05 * (1.0 - np.cos(w * t)), 0.05 * w * np.sin(w * t)
        goal, speed = robot.posture + depth * bend, rate * bend
        angle, velocity = sim.q[robot.idx_q], sim.v[robot.idx_v]
        contact = sim.advance(static + 400.0 * (goal - angle) + 20.0 * (speed - velocity))
    assert contact.state_changes == 0
    assert not contact.sliding.any()
    model_, data = robot.model, robot.model.createData()
    energy = pin.computeMechanicalEnergy(model_, data, sim.q, sim.v)
    com = pin.centerOfMass(model_, data, sim.q)
    return np.concatenate([com, sim.q[robot.idx_q]]), float(energy)


@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_trajectory_and_energy_converge_to_first_order(model: str) -> None:
    robot = load_robot("biped14")
    place, energy = squat(robot, model, REFERENCE)
    moved = np.linalg.norm(
        place
        - np.concatenate([pin.centerOfMass(robot.model, robot.model.createData(), robot.q_nominal), robot.posture])
    )
    errors = []
    for h in STEPS:
        p, e = squat(robot, model, h)
        errors.append((np.linalg.norm(p - place), abs(e - energy)))
    slopes = [np.polyfit(np.log(STEPS), np.log(column), 1)[0] for column in np.transpose(errors)]
    print(f"\n{model}: moved {moved:.3g}, errors of (trajectory, energy [J]) at {STEPS}: {errors}, slopes {slopes}")
    assert 0.8 < slopes[0] < 1.2
    assert 0.8 < slopes[1] < 1.2


@pytest.mark.parametrize("h", [2e-3, 1e-3, 2e-4, 5e-5])
@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_a_standing_robot_is_held_from_the_first_step_whatever_its_length(model: str, h: float) -> None:
    """In a short step a foot sinks by less than any fixed tolerance. It must not fall because of that."""
    robot = load_robot("biped14")
    sim = Simulator(robot, contact=model, physics_dt=h)
    torque = standing_torque(robot)
    for _ in range(20):
        contact = sim.advance(torque)
        assert contact.wrench[:, 2].sum() == pytest.approx(robot.weight, rel=0.01)
