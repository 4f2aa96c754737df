"""benchmarks/random_bipeds.py: a few of its bipeds, and tests that its checks find errors."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from benchmark_modules import benchmark

from bipedsim.contact import CONTACT_MODELS
from bipedsim.numerics import STEP_BUDGET
from bipedsim.sim import Simulator


@pytest.fixture(scope="module")
def bipeds() -> ModuleType:
    """Return the benchmark."""
    return benchmark("random_bipeds")


@pytest.mark.parametrize(("number", "model"), list(enumerate(CONTACT_MODELS)))
def test_a_random_biped_falls_as_it_must(bipeds: ModuleType, number: int, model: str) -> None:
    outcome = bipeds.fall(number, model, 0.6)
    # The speed of this machine is not tested here.
    assert [one for one in outcome.violations if "ms" not in one] == []
    assert outcome.steps == 600


def spoilt(sim: Simulator, spoil: Any) -> Simulator:
    """Return the simulator with a hook: it calls ``spoil`` after every step."""
    advance = sim.advance

    def wrong(command: Any) -> Any:
        contact = advance(command)
        spoil(sim)
        return contact

    sim.advance = wrong  # type: ignore[method-assign]
    return sim


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda sim: sim.v.__imul__(1.002), "above that of the start"),
        (lambda sim: sim.q.__setitem__(0, np.nan), "not finite"),
    ],
)
def test_the_judges_see_a_simulator_that_is_broken(
    bipeds: ModuleType, monkeypatch: pytest.MonkeyPatch, spoil: Any, said: str
) -> None:
    sound = bipeds.thrown
    monkeypatch.setattr(bipeds, "thrown", lambda *work: spoilt(sound(*work), spoil))
    assert any(said in one for one in bipeds.fall(0, "one_step", 0.3).violations)


@pytest.mark.parametrize(
    ("value", "said"),
    [({"slowest": 0.0211}, "21 ms"), ({"balance": 2e-9}, "momentum off"), ({"rests": True, "depth": 2e-3}, "2.0 mm")],
)
def test_a_value_beyond_its_limit_is_a_violation(bipeds: ModuleType, value: dict[str, float], said: str) -> None:
    assert list(bipeds.violations(bipeds.Outcome(0, "exact"))) == []
    (violation,) = bipeds.violations(bipeds.Outcome(0, "exact", **value))
    assert said in violation


def test_depths_are_those_of_bodies_that_are_put_into_the_ground(bipeds: ModuleType, tmp_path: Path) -> None:
    sim = bipeds.thrown(3, "one_step", tmp_path)
    judge = bipeds.Judge(sim, tmp_path)
    q = sim.robot.q_nominal.copy()
    # Upright on its soles, and 2 cm deeper. The boxes of the feet end 6 mm above the soles.
    q[2] -= 0.02
    sim.q[:] = q
    if sim.objects is not None:
        sim.objects.world.bodies.position[:, 2] += 10.0
    depth, where = judge.deepest()
    assert depth == pytest.approx(0.02 - 0.006, abs=1e-6)
    assert where in ("l_f_0 in the ground", "r_f_0 in the ground")


@pytest.mark.parametrize(("number", "model", "steps"), [(9, "ncp", 95), (15, "exact", 745)])
def test_the_worst_steps_keep_to_their_budget(
    bipeds: ModuleType, tmp_path: Path, number: int, model: str, steps: int
) -> None:
    """These falls had steps of 53 and 80 ms."""
    sim = bipeds.thrown(number, model, tmp_path)
    most = 0
    for _ in range(steps):
        sim.advance(np.zeros(sim.robot.nu))
        most = max(most, sim.operations)
    # The budget is checked after each solve, so the last iterations may exceed it.
    assert STEP_BUDGET // 10 < most < 1.05 * STEP_BUDGET


def test_feet_that_leave_as_points_do_not_push(bipeds: ModuleType, tmp_path: Path) -> None:
    """They used to push with a force within the tolerance, 16 um above the ground."""
    sim = bipeds.thrown(9, "exact", tmp_path)
    left = 0
    for _ in range(970):
        sim.advance(np.zeros(sim.robot.nu))
        left += sim.stepper.touched and bool((sim.contact.impulse[:, 2] == 0.0).any())
    assert sim.monitors.figures()["push_gap_m"]["steps_beyond"] == 0
    assert left > 0
