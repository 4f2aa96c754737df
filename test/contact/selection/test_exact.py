"""Exact selection against one-step selection: the same choice in nearly every step of every motion."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from motion_support import Motion

from bipedsim.contact.modes import mode_name
from bipedsim.contact.selection.arrays import Queue
from bipedsim.contact.selection.search import _better
from bipedsim.model import load_robot
from bipedsim.numerics import box, entry, zeros_of
from bipedsim.runs.scenario import SCENARIOS
from bipedsim.sim.simulator import Simulator

SECONDS = {
    "drop": 2.0,
    "jump": 3.0,
    "push": 3.5,
    "squat": 2.5,
    "stand": 1.0,
    "steps": 3.0,
    "sway": 3.0,
    "toe_fall": 4.0,
}


def differences(name: str, scenario: str, seconds: float) -> tuple[int, Counter[str], int]:
    """Run under `exact`; return the number of steps, the steps in which one_step chose another set from the same state,
    and those in which `exact` was better.

    `exact` is better if it finds a state without violation and the search finds none.
    """
    robot = load_robot(name)
    motion = Motion(robot, SCENARIOS[scenario], "exact", tilt=0.02 if scenario == "drop" else 0.0)
    other = Simulator(robot, contact="one_step")
    sizes = [len(sole.vertices) for sole in robot.soles]
    steps, better, differing = 0, 0, Counter[str]()
    while steps < round(seconds / 1e-3) and not motion.fallen:
        tau = motion.torque()
        other.restore(motion.sim.snapshot())
        unresolved = other.contact.unresolved
        theirs = other.advance(tau)
        mine = motion.step(tau)
        steps += 1
        better += mine.unresolved > unresolved == theirs.unresolved
        if (mine.mode != theirs.mode).any() or (mine.sliding != theirs.sliding).any():
            pairs = []
            for result in (mine, theirs):
                pairs.append(
                    [mode_name(int(m), bool(s), n) for m, s, n in zip(result.mode, result.sliding, sizes, strict=True)]
                )
            differing[f"{' + '.join(pairs[0])}, one_step {' + '.join(pairs[1])}"] += 1
    return steps, differing, better


@pytest.mark.long
@pytest.mark.parametrize("name", ["biped14", *(pytest.param(name, marks=pytest.mark.slow) for name in ("talos", "g1"))])
@pytest.mark.parametrize("scenario", sorted(name for name, entry in SCENARIOS.items() if entry.controller == "posture"))
def test_one_step_chooses_what_exact_chooses(name: str, scenario: str) -> None:
    steps, differing, better = differences(name, scenario, SECONDS.get(scenario, 5.0))
    wrong = sum(differing.values())
    print(f"\n{name} {scenario}: {wrong} of {steps} steps differ; one_step better in {better}")
    for what, count in differing.most_common(6):
        print(f"   {count} x {what}")
    assert wrong <= 1e-3 * steps
    assert better == 0


@entry
def _ranks_before(boxed, a, b):
    return _better(boxed.arrays, a, b)


def test_candidates_rank_by_what_they_violate_then_by_how_much_then_by_freedom_then_by_their_turn() -> None:
    queue = zeros_of(Queue, {"C": 2, "K": 2})
    rank = box(queue)
    assert _ranks_before(rank, 0, 1)
    assert not _ranks_before(rank, 1, 0)
    worse = queue.scores[0]
    for column in reversed(range(7)):
        worse[column] += 1.0
        assert _ranks_before(rank, 1, 0), column
        assert not _ranks_before(rank, 0, 1), column
        queue.scores[1, column + 1 :] = np.inf
        assert _ranks_before(rank, 1, 0), "what comes later in the order does not outweigh it"
        queue.scores[1] = 0.0
