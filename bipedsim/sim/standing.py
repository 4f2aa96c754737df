"""Place a robot on the ground, so that no foot and no body is in a rough height field."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.spatial import Delaunay

from bipedsim.errors import ConfigError
from bipedsim.ground import Ground
from bipedsim.model import Robot, Sole, sole_placements
from bipedsim.numerics import Array
from bipedsim.sim.reactions import Reactions

CLEAR = 1e-6
"""Depth in a height field [m] up to which a robot is not raised; it is the rounding on level fields."""
SPACING = 0.005
"""Distance of the points of a sole that have to be above a height field [m]."""
ATTEMPTS = 20
"""Largest number of times that a robot is raised, by the depth of its deepest body each time."""


class Standing(Protocol):
    """Describe the part of a :class:`Simulator` that places a robot."""

    robot: Robot
    ground: Ground

    @property
    def reactions(self) -> Reactions: ...


def placed(sim: Standing, q: Array) -> Array:
    """Return ``q`` (nq,) of a simulated robot on z = 0, moved to the ground at the origin.

    On a rough height field the robot is then raised along the vertical, until its soles and bodies are above it.

    Args:
        sim: The simulation.
        q: Free-flyer configuration (nq,).

    Raises:
        ConfigError: There is no ground at the origin, or the robot is still in it after ``ATTEMPTS``.
    """
    ground, touching = sim.ground, sim.reactions.touching
    q = ground.place(q)
    if ground.field is None:
        return q
    for _ in range(ATTEMPTS):
        depth = _sole_depth(sim.robot, ground, q)
        if touching is not None:
            depth = max(depth, *touching.depths(q).values(), 0.0)
        if depth <= CLEAR:
            break
        q[2] += depth
    else:
        problem = f"m after raising the robot {ATTEMPTS} times. Start on a more level part of the ground"
        raise ConfigError(problem, f"{ground.source or 'ground'}: depth of the robot at the start", f"{depth:.3g}")
    return q


def _sole_depth(robot: Robot, ground: Ground, q: Array) -> float:
    """Return the largest height of the ground above a point of a sole [m]; 0 if all points are above the ground."""
    deepest = 0.0
    poses = sole_placements(robot.model, robot.model.createData(), robot.soles, q)
    for sole, pose in zip(robot.soles, poses, strict=True):
        points = _points(sole) @ pose.rotation.T + pose.translation
        above = ground.height(points[:, 0], points[:, 1]) - (points[:, 2] - sole.radius)
        deepest = max(deepest, float(np.max(above, initial=0.0, where=np.isfinite(above))))
    return deepest


def _points(sole: Sole) -> Array:
    """Return the vertices of a sole, and points on its edges and inside, in the sole frame (n, 3) [m]."""
    corners = sole.vertices
    ends = np.roll(corners, -1, axis=0)
    longest = float(np.linalg.norm(ends - corners, axis=1).max())
    share = np.linspace(0.0, 1.0, int(longest / SPACING) + 2)[:, None, None]
    points = [(corners + share * (ends - corners)).reshape(-1, 2)]
    if len(corners) > 2:
        low, high = corners.min(axis=0), corners.max(axis=0)
        axes = [np.arange(a, b, SPACING) for a, b in zip(low, high, strict=True)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        points.append(grid[Delaunay(corners).find_simplex(grid) >= 0])
    flat = np.concatenate(points)
    return np.column_stack([flat, np.zeros(len(flat))])
