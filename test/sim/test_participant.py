"""A participant from outside takes part in everything: steps, runs, snapshots, copies of the list."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim.sim import Participant, Simulation, Simulator


class Counter(Participant):
    """Counts steps and ticks, and lifts the robot by a constant force at its base."""

    name = "counter"
    adds_force = True

    def __init__(self, force: float) -> None:
        self.force = force
        self.ticks = self.steps = self.judged = -1
        self.calls = 0

    def reset(self, sim: Simulation) -> None:
        self.ticks = self.steps = self.judged = 0

    def begin_tick(self, sim: Simulation) -> None:
        self.ticks += 1
        self.calls += 1

    def before_step(self, sim: Simulation) -> None:
        sim.dynamics.push[2] += self.force

    def judge(self, sim: Simulation, q: Array, v: Array, share: float) -> None:
        self.judged += q is sim.q

    def after_step(self, sim: Simulation) -> None:
        self.steps += 1

    def state(self) -> dict[str, Any]:
        return {"counts": np.array([self.ticks, self.steps, self.judged])}

    def set_state(self, state: dict[str, Any], sim: Simulation) -> None:
        self.ticks, self.steps, self.judged = state["counts"].tolist()


def standing(force: float) -> tuple[Simulator, Counter]:
    sim = Simulator(load_robot("biped14"), physics_dt=1e-3, control_dt=2e-3)
    counter = Counter(force)
    sim.add(counter)
    return sim, counter


def test_its_methods_are_called_in_every_step_and_tick() -> None:
    sim, counter = standing(0.0)
    for _ in range(5):
        sim.step(np.zeros(sim.robot.nu))
    assert (counter.ticks, counter.steps, counter.judged) == (5, 10, 10)
    sim.reset()
    assert (counter.ticks, counter.steps, counter.judged) == (0, 0, 0)


def test_its_force_acts_once_in_every_step() -> None:
    """An upward force of the weight leaves nothing on the feet, and twice the weight accelerates by g: m a = m g."""
    sim, counter = standing(0.0)
    counter.force = 2.0 * sim.robot.weight
    for _ in range(10):
        sim.step(np.zeros(sim.robot.nu))
    g = sim.robot.weight / sim.robot.mass
    before, t = sim.v.copy(), sim.t
    com = np.empty((2, 3))
    com[0] = sim.dynamics.com
    for _ in range(10):
        sim.step(np.zeros(sim.robot.nu))
    com[1] = sim.dynamics.com
    assert not sim.contact.impulse.any()
    assert before[2] > 0.0
    # The CoM rises by g t^2 / 2, from the first force on.
    rise = 0.5 * g * ((sim.t - sim.physics_dt) ** 2 - (t - sim.physics_dt) ** 2)
    assert com[1, 2] - com[0, 2] == pytest.approx(rise, rel=0.01)


def test_its_state_is_part_of_snapshots() -> None:
    sim, counter = standing(3.0)
    for _ in range(3):
        sim.step(np.zeros(sim.robot.nu))
    snapshot = sim.snapshot()
    after = [sim.step(np.zeros(sim.robot.nu)).joint_velocity.copy() for _ in range(3)]
    sim.restore(snapshot)
    assert (counter.ticks, counter.steps) == (3, 6)
    again = [sim.step(np.zeros(sim.robot.nu)).joint_velocity.copy() for _ in range(3)]
    np.testing.assert_array_equal(after, again)
    with pytest.raises(ConfigError):
        Simulator(load_robot("biped14"), physics_dt=1e-3, control_dt=2e-3).restore(snapshot)


def test_a_removed_one_leaves_the_run_as_it_would_be_without() -> None:
    sim, counter = standing(500.0)
    sim.step(np.zeros(sim.robot.nu))
    sim.remove(counter)
    assert sim.reset().t == 0.0
    other = Simulator(load_robot("biped14"), physics_dt=1e-3, control_dt=2e-3)
    other.reset()
    for _ in range(5):
        one, two = sim.step(np.zeros(sim.robot.nu)), other.step(np.zeros(sim.robot.nu))
        np.testing.assert_array_equal(one.imu_linear_acceleration, two.imu_linear_acceleration)
    assert counter.steps == 2


def test_a_warm_up_calls_none_of_its_hooks_and_keeps_its_state() -> None:
    sim, counter = standing(3.0)
    sim.step(np.zeros(sim.robot.nu))
    sim.warm_up()
    assert (counter.ticks, counter.steps, counter.judged, counter.calls) == (1, 2, 2, 1)
    sim.step(np.zeros(sim.robot.nu))
    assert counter.calls == 2, "its hooks are called again"


def test_a_copy_goes_on_without_it_with_the_same_bits() -> None:
    sim, _ = standing(0.0)
    for _ in range(3):
        sim.step(np.zeros(sim.robot.nu))
    for other in (copy.deepcopy(sim), pickle.loads(pickle.dumps(sim))):
        assert "counter" not in other.participants
        assert other.step(np.zeros(sim.robot.nu)).t == pytest.approx(sim.t + sim.control_dt)
    sim.step(np.zeros(sim.robot.nu))
    np.testing.assert_array_equal(other.q, sim.q)
    np.testing.assert_array_equal(other.v, sim.v)


def test_two_of_one_name_are_refused() -> None:
    sim, _ = standing(0.0)
    with pytest.raises(ConfigError):
        sim.add(Counter(0.0))
