"""Random states for the conditions of sticking and of impacts, in space and in a plane."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.ground.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim_studies.feasibility.support import Support, SupportReader

EACH = 5
"""States of one configuration."""


@pytest.fixture(scope="module", params=["biped14", "planar_biped"])
def each_biped(request: pytest.FixtureRequest) -> Robot:
    """A robot in space and one in a plane, on two feet each."""
    return load_robot(request.param)


@dataclass
class Stance:
    """A state on the ground.

    Attributes:
        q, v: The state.
        support: As :class:`SupportReader` has it.
        keep: Foot to vertices that are to stick, of those that touch.
    """

    q: Array
    v: Array
    support: Support
    keep: dict[str, tuple[int, ...]]


class Stances:
    """Random states of a robot on level ground with some of its vertices touching, and some of these to stick.

    Args:
        robot: The robot.
        seed: Of everything.
    """

    def __init__(self, robot: Robot, seed: int) -> None:
        self.robot = robot
        self.reader = SupportReader(robot, Ground.flat())
        self.rng = np.random.default_rng(seed)

    def resting(self, h: float) -> Iterator[Stance]:
        """Yield states that have moved for ``h`` [s] since the touching vertices were at rest: J v = h J' v."""
        model, rng = self.robot.model, self.rng
        for q, touching in self._placements():
            rows = vertex_rows(self.reader.at(q, np.zeros(model.nv)), touching)
            resting = np.eye(model.nv) - np.linalg.pinv(rows, rcond=1e-9) @ rows
            for _ in range(EACH):
                v = resting @ (0.5 * rng.normal(size=model.nv))
                moved = self._on_ground(pin.integrate(model, q, h * v), touching)
                yield Stance(moved, v, self.reader.at(moved, v), self._kept(touching))

    def landing(self) -> Iterator[Stance]:
        """Yield states in which all touching vertices are at z = 0: some hit, and one foot may be at rest."""
        model, rng = self.robot.model, self.rng
        for q, touching in self._placements():
            rows = vertex_rows(self.reader.at(q, np.zeros(model.nv)), (touching[0], *([()] * (len(touching) - 1))))
            resting = np.eye(model.nv) - np.linalg.pinv(rows, rcond=1e-9) @ rows
            for _ in range(EACH):
                v = rng.choice([0.3, 1.0]) * rng.normal(size=model.nv)
                if any(touching[1:]) and rng.random() < 0.5:
                    v = resting @ v
                yield Stance(q, v, self.reader.at(q, v), self._kept(touching))

    def _placements(self) -> Iterator[tuple[Array, tuple[tuple[int, ...], ...]]]:
        while True:
            placed = self._placed()
            if placed is not None:
                yield placed

    def _kept(self, touching: tuple[tuple[int, ...], ...]) -> dict[str, tuple[int, ...]]:
        """Return a random subset of the contacts that can be held."""
        rng = self.rng
        keep = {}
        for sole, vertices in zip(self.robot.soles, touching, strict=True):
            choice = rng.random()
            if not vertices or (choice < 0.15 and sum(map(bool, touching)) > 1):
                continue
            if choice < 0.3 and len(vertices) > 2:
                i = int(rng.integers(len(vertices)))
                vertices = (vertices[i - 1], vertices[i])
            elif choice < 0.35:
                vertices = (int(rng.choice(vertices)),)
            keep[sole.name] = tuple(vertices)
        return keep

    def _placed(self) -> tuple[Array, tuple[tuple[int, ...], ...]] | None:
        """Return a configuration with some vertices at z = 0 and the rest above; None for one that did not work."""
        model, rng = self.robot.model, self.rng
        step = 0.12 * rng.normal(size=model.nv)
        if self.robot.free_flyer:
            step[:3] = 0.0
        q = pin.integrate(model, self.robot.q_nominal, step)
        wanted = []
        for sole in self.robot.soles:
            n = sole.n_vertices
            i = int(rng.integers(n))
            edge = (i,) if n == 1 else (i, (i + 1) % n)
            options = [tuple(range(n)), tuple(range(n)), edge, (i,), ()]
            wanted.append(options[rng.integers(len(options))])
        if not any(wanted):
            return None
        q = self._on_ground(q, tuple(wanted))
        support = self.reader.at(q, np.zeros(model.nv))
        for foot, vertices in zip(support.feet, wanted, strict=True):
            others = np.setdiff1d(np.arange(foot.n_vertices), vertices)
            if (np.abs(foot.heights[list(vertices)]) > 1e-12).any() or (foot.heights[others] < 3e-3).any():
                return None
        return q, tuple(wanted)

    def _on_ground(self, q: Array, touching: tuple[tuple[int, ...], ...]) -> Array:
        """Return ``q`` moved, by Newton's method, to where the heights of the touching vertices are zero."""
        for _ in range(12):
            support = self.reader.at(q, np.zeros(self.robot.model.nv))
            pairs = zip(support.feet, touching, strict=True)
            z = np.concatenate([foot.heights[list(vertices)] for foot, vertices in pairs])
            if np.abs(z).max() < 1e-14:
                break
            rows = vertex_rows(support, touching)[2::3]
            q = pin.integrate(self.robot.model, q, -np.linalg.pinv(rows, rcond=1e-9) @ z)
        return q


def vertex_rows(support: Support, vertices: tuple[tuple[int, ...], ...]) -> Array:
    """Return the rows (3 m, nv) of the velocities of vertices along t1, t2 and n, by foot."""
    rows = [np.zeros((0, support.J.shape[1]))]
    for k, (foot, chosen) in enumerate(zip(support.feet, vertices, strict=True)):
        for i in chosen:
            rows.append(support.J[6 * k : 6 * k + 3] - pin.skew(foot.offsets[i]) @ support.J[6 * k + 3 : 6 * k + 6])
    return np.vstack(rows)
