"""The rules of a valid contact state, evaluated again, and brute force over all combinations of sets."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from reference_contact import Candidates, Step, cross2, solve_candidates, table_one

from bipedsim.numerics import Array, Flags


def distance_outside(polygon: Array, cop: Array) -> Array:
    """Return the distance of each CoP (C, 2) outside the clamped vertices, 0 inside [m].

    On an edge it is the distance beyond its ends. Across the edge, a load with zero torque about the horizontal line
    through it meets a tilted sole slightly next to it.
    """
    if len(polygon) < 2:
        return np.zeros(len(cop))
    edge = np.roll(polygon, -1, axis=0) - polygon
    length = np.linalg.norm(edge, axis=1)
    along = ((cop[:, None] - polygon) * edge).sum(axis=2) / length
    if len(polygon) == 2:
        return np.maximum(0.0, -along.min(axis=1))
    across = cross2(cop[:, None] - polygon, edge) / length
    share = np.clip(along / length, 0.0, 1.0)
    nearest: Array = np.linalg.norm(cop[:, None] - polygon - share[..., None] * edge, axis=2).min(axis=1)
    return np.where(across.max(axis=1) > 0.0, nearest, 0.0)


@dataclass
class Verdict:
    """How far every candidate is from violating nothing: each (C,), 0 where the rule holds.

    Attributes:
        cop: Distance of a CoP outside the clamped vertices [m].
        pull: Impulse with which the ground would have to pull [N.s].
        passing: Depth of a free vertex that sinks below the ground within the step [m].
        deep: Depth below the threshold of a free vertex [m].
    """

    cop: Array
    pull: Array
    passing: Array
    deep: Array

    def holds(self, tolerance: float) -> Flags:
        """Return which candidates violate nothing, lengths up to ``tolerance`` [m]."""
        lengths = np.maximum(np.maximum(self.cop, self.passing), self.deep)
        return (lengths <= tolerance) & (self.pull <= 0.0)


def judge(step: Step, candidates: Candidates, threshold: float) -> Verdict:
    """Evaluate the rules for the candidates, with all vertices of all feet."""
    count = len(candidates.modes)
    verdict = Verdict(*(np.zeros(count) for _ in range(4)))
    for k, sole in enumerate(step.soles):
        table = table_one(len(sole.vertices))
        arms, heights = step.arms(k), step.heights(k)
        w = candidates.velocity[:, k]
        rising = w[:, 2:3] + np.cross(w[:, None, 3:], arms[None])[:, :, 2]
        after = heights + step.h * rising
        free = np.array([[i not in clamped for i in range(len(heights))] for clamped in table])[candidates.modes[:, k]]
        passing = np.where(free & (rising < 0.0), np.maximum(-after, 0.0), 0.0).max(axis=1)
        verdict.passing = np.maximum(verdict.passing, passing)
        deep = np.where(free, np.maximum(-threshold - heights, 0.0), 0.0).max(axis=1)
        verdict.deep = np.maximum(verdict.deep, deep)
        verdict.pull = np.maximum(verdict.pull, -candidates.impulse[:, k, 2])
        for mode, clamped in enumerate(table):
            pressed = np.flatnonzero((candidates.modes[:, k] == mode) & (candidates.impulse[:, k, 2] > 0.0))
            outside = distance_outside(sole.vertices[list(clamped)], candidates.cop[pressed, k])
            verdict.cop[pressed] = np.maximum(verdict.cop[pressed], outside)
    return verdict


def brute_force(step: Step, threshold: float = 1e-3) -> tuple[Candidates, Verdict]:
    """Solve and evaluate every combination of sets of all feet; return those that are almost valid.

    All are solved roughly. Those that violate no rule by more than 1 mm, or would not come to rest, are solved to the
    last digit.
    """
    sizes = [range(len(table_one(len(sole.vertices)))) for sole in step.soles]
    modes = np.array(list(itertools.product(*sizes)), dtype=np.int64)
    rough = solve_candidates(step, modes, iterations=60, tolerance=1e-5)
    verdict = judge(step, rough, threshold)
    verdict.pull = np.where(verdict.pull < 1e-3, 0.0, verdict.pull)
    candidates = solve_candidates(step, modes[verdict.holds(1e-3) | ~rough.converged])
    return candidates, judge(step, candidates, threshold)
