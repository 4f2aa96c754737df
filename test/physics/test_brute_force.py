"""Exact selection against all (2N + 2)^K combinations of sets, solved by other code than its own."""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter

import numpy as np
import pinocchio as pin
import pytest
from physics_support import standing_torque
from reference_contact import Step, solve_candidates, torsional_radius
from reference_rules import brute_force

from bipedsim.contact.base import UNRESOLVED, ContactModel
from bipedsim.contact.models import make_contact_model
from bipedsim.contact.selection.search import ORDINARY
from bipedsim.dynamics.step import Dynamics
from bipedsim.ground.ground import Ground
from bipedsim.model import Robot, load_robot

H = 1e-3
TOLERANCE = 1e-6

# (feet, vertices): states; 400 in all. The cost of a state grows with (2N + 2)^K.
STATES = {(1, n): 35 for n in range(3, 9)} | {(2, 3): 50, (2, 4): 60, (2, 5): 30, (2, 6): 20, (2, 7): 15, (2, 8): 15}


def polygonal(robot: Robot, feet: int, n: int, rng: np.random.Generator) -> Robot:
    """Return the robot with ``feet`` feet of ``n`` vertices each on a turned and stretched ellipse."""
    soles = []
    for sole in robot.soles[:feet]:
        angles = 2.0 * np.pi * (np.arange(n) + rng.uniform(-0.2, 0.2, n) + rng.random()) / n
        ring = np.column_stack([0.04 + 0.11 * np.cos(angles), 0.06 * np.sin(angles)])
        soles.append(dataclasses.replace(sole, vertices=ring, friction_static=0.5, friction_dynamic=0.4))
    return dataclasses.replace(robot, soles=tuple(soles))


class States:
    """Random states near the ground: feet tilted by milliradians, at rest, landing slowly and landing fast."""

    def __init__(self, feet: int, n: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.robot = polygonal(load_robot("biped14"), feet, n, self._rng)
        self._dynamics = Dynamics(self.robot, Ground.flat(), H)
        self.model: ContactModel = make_contact_model("exact", self._dynamics.projection, H)
        self._static = standing_torque(load_robot("biped14"))

    def next(self) -> Step:
        """Return the next step; half of them come after a step at rest in the same place."""
        rng, robot = self._rng, self.robot
        nv = robot.model.nv
        wiggle = np.concatenate([np.zeros(3), 3e-3 * rng.normal(size=nv - 3)])
        q = pin.integrate(robot.model, robot.q_nominal, wiggle)
        still = np.zeros(nv)
        lowest = self._lowest(q)
        kind = rng.random()
        if kind < 0.4:
            q[2] += -lowest + rng.uniform(-1e-3, 1e-4)
            v = 0.01 * rng.normal(size=nv)
        elif kind < 0.8:
            q[2] += -lowest + rng.uniform(-2e-4, 1e-3)
            v = 0.3 * rng.normal(size=nv)
            v[2] -= rng.uniform(0.2, 2.0)
        else:
            q[2] += -lowest + rng.uniform(0.0, 5e-3)
            v = 0.3 * rng.normal(size=nv)
            v[2] -= 5.0
        self.model.reset()
        remembers = rng.random() < 0.5
        if remembers:
            before = self.model.solve(self._dynamics.project(q, still, self._static))
        step = Step.fresh(self._dynamics.project(q, v, self._static + 20.0 * rng.normal(size=robot.nu)), robot.soles, H)
        if remembers:
            step.was_sliding = before.sliding.copy()
        return step

    def _lowest(self, q: np.ndarray) -> float:
        projection = self._dynamics.project(q, np.zeros(self.robot.model.nv), self._static)
        step = Step.fresh(projection, self.robot.soles, H)
        return min(float(step.heights(k).min()) for k in range(len(self.robot.soles)))


UNSETTLED = pytest.mark.xfail(strict=True, reason="the slip of the judge rests within 1e-7 in state 0, not 1e-12")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("feet", "n"), [pytest.param(*key, marks=UNSETTLED) if key == (2, 6) else key for key in STATES]
)
def test_exact_finds_a_set_without_violation_where_brute_force_finds_one(feet: int, n: int) -> None:
    states = States(feet, n, seed=100 * feet + n)
    found: Counter[int] = Counter()
    missed, unnoticed, differing, worst, unconverged, backwards = [], [], [], 0.0, 0, 0
    for i in range(STATES[feet, n]):
        step = states.next()
        unresolved = states.model.result.unresolved
        result = copy.deepcopy(states.model.solve(step.projection))
        unresolved = result.unresolved - unresolved
        candidates, verdict = brute_force(step)
        valid = verdict.holds(TOLERANCE) & candidates.converged
        found[int(valid.sum())] += 1
        unconverged += int((verdict.holds(TOLERANCE) & ~candidates.converged).sum())
        backwards += int(candidates.backwards[valid].sum())
        matches = valid & (candidates.modes == result.mode).all(axis=1)
        if verdict.holds(1e-9).any() and not matches.any():
            missed.append(i)
        if not valid.any() and unresolved != 1:
            unnoticed.append(i)
        same = solve_candidates(step, result.mode[None].astype(np.int64))
        if (same.sliding[0] != result.sliding).any():
            differing.append(i)
        scale = max(float(np.abs(result.impulse).max()), 1e-6)
        worst = max(worst, float(np.abs(same.impulse[0] - result.impulse).max()) / scale)
    print(
        f"\nK = {feet}, N = {n}: violation-free sets in {dict(sorted(found.items()))}; missed {missed}, unnoticed "
        f"{unnoticed}, friction differs {differing}, wrenches {worst:.1e}, not converged {unconverged}, {backwards} "
        "slips driven by friction"
    )
    assert (missed, unnoticed, differing, unconverged, backwards) == ([], [], [], 0, 0)
    assert worst < 1e-8


def test_one_step_searches_where_its_resolves_do_not_settle() -> None:
    states = States(2, 4, seed=204)
    projection = states._dynamics.projection
    models = [make_contact_model("one_step", projection, H, {"candidates": count}) for count in (0, 100)]
    vertices = [0, 0]
    for _ in range(40):
        step = states.next()
        for i, model in enumerate(models):
            begun = states.model.state()
            model.set_state(begun)
            model.solve(step.projection)
            assert model.result.unresolved == begun["counters"][UNRESOLVED]
            vertices[i] += int(model.state()["pointwise"][0] > begun["pointwise"][0])
    assert vertices[0] > 0, "of single vertices, where the search finds a set"
    assert vertices[1] == 0


def test_where_no_rule_leads_to_the_set_single_vertices_do() -> None:
    """A landing of two feet with eight vertices each. A search over neighbours of failed sets takes 23 solves."""
    states = States(2, 8, seed=208)
    step = states.next()
    before = states.model.result.candidates
    states.model.solve(step.projection)
    assert ORDINARY < states.model.result.candidates - before <= 2 * ORDINARY
    assert states.model.state()["pointwise"][0] == 0


def test_the_judge_knows_torsion_of_known_shapes() -> None:
    square = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    points = np.array([[0.0, 0.0], [1.0, 0.5], [1.0, 1.0]])
    edge = 2.0 * 0.5 * 1.5 / 2.0
    np.testing.assert_allclose(torsional_radius(square, points), [np.sqrt(2.0), edge, 0.0], atol=1e-12)
    np.testing.assert_allclose(torsional_radius(square[:2], np.array([[0.5, 1.0]])), edge)
