"""Where a picture looks from, and how it follows the robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.numerics import Array, Indices
from bipedsim.view.animation.motion import Motion
from bipedsim.view.animation.skeleton import Skeleton

FOLLOW = 1.0
"""The camera follows the mean of the CoM over this time [s], so that a step does not shake it."""
STILL = 0.75
"""It does not move along an axis in which the CoM stays within this share of the robot's size."""
ARROW = 0.35
"""Length of the arrow of a force of body weight, as a share of the robot's size."""
LONGEST = 3.0
"""Arrows end here, in body weights: an impact lasts a tick and is a hundred times that."""
AZIMUTH, ELEVATION = np.deg2rad(-60.0), np.deg2rad(18.0)
"""Where the viewer of the 3d view stands: ahead of the robot and to its right, and above it."""


def _axes(azimuth: float, elevation: float) -> Array:
    """Return the rows right, up and towards the viewer, who stands at ``azimuth`` and ``elevation`` [rad]."""
    ca, sa, ce, se = np.cos(azimuth), np.sin(azimuth), np.cos(elevation), np.sin(elevation)
    return np.array([[-sa, ca, 0.0], [-se * ca, -se * sa, ce], [ce * ca, ce * sa, se]])


AXES = {"side": _axes(-0.5 * np.pi, 0.0), "front": _axes(0.0, 0.0), "3d": _axes(AZIMUTH, ELEVATION)}
"""Orthographic views: what rows right, up and towards the viewer are in world axes."""
VIEWS = {"side": ("side",), "front": ("front",), "both": ("side", "front"), "3d": ("3d",)}
"""Names of views, and the pictures beside each other that they are made of."""


@dataclass(frozen=True, eq=False)
class Camera:
    """An orthographic view that follows the robot with a window of one size.

    Attributes:
        axes: (3, 3) rows right, up and towards the viewer in world axes.
        target: (F, 3) the point of the world that each frame looks at [m].
        window: (4,) left, right, bottom, top of the picture from the target [m].
    """

    axes: Array
    target: Array
    window: Array

    def project(self, points: Array) -> Array:
        """Return ``points`` (..., 3) of the world in the picture, (..., 2) [m]."""
        return np.asarray(points @ self.axes[:2].T)

    def depth(self, points: Array) -> Array:
        """Return how near to the viewer ``points`` (..., 3) are, (...) [m] from the world origin."""
        return np.asarray(points @ self.axes[2])

    def limits(self, i: int) -> Array:
        """Return left, right, bottom, top (4,) [m] of frame ``i``."""
        x, y = self.project(self.target[i])
        return np.asarray(self.window + np.array([x, x, y, y]))


def robot_size(motion: Motion) -> float:
    """Return the largest extent [m] of the robot along a world axis over all frames; 0.1 m at least."""
    return max(0.1, float(np.ptp(motion.points, axis=1).max())) if motion.points.size else 0.1


def follow(motion: Motion, size: float, each: bool = False) -> Array:
    """Return the points (F, 3) [m] that the camera looks at; with ``each`` it is in the plan view at every CoM."""
    target = motion.com.copy()
    steps = np.diff(motion.t)
    frames = max(1, round(FOLLOW / float(np.median(steps)))) if len(steps) and np.median(steps) > 0.0 else 1
    for axis in range(3):
        values = motion.com[:, axis]
        if each and axis < 2:
            continue
        if np.ptp(values) < STILL * size:
            target[:, axis] = 0.5 * (values.min() + values.max())
        else:
            around = np.pad(values, (frames // 2, frames - 1 - frames // 2), mode="edge")
            target[:, axis] = np.convolve(around, np.full(frames, 1.0 / frames), mode="valid")
    return target


def make_camera(view: str, shown: Array, target: Array, size: float) -> Camera:
    """Return a camera whose window holds what is shown in all frames.

    Args:
        view: Key of :data:`AXES`.
        shown: (F, N, 3) points that must be seen [m]; NaN need not.
        target: (F, 3) what it looks at [m].
        size: Of the robot [m].
    """
    axes = AXES[view]
    pictured = ((shown - target[:, None]) @ axes[:2].T).reshape(-1, 2)
    low, high = np.nanmin(pictured, axis=0), np.nanmax(pictured, axis=0)
    # A slim robot still stands on some ground.
    middle, half = 0.5 * (low + high), np.maximum(0.5 * (high - low) + 0.07 * size, 0.4 * size)
    left, bottom = middle - half
    right, top = middle + half
    return Camera(axes, target, np.array([left, right, bottom - 0.05 * size, top]))


def arrows(motion: Motion, weight: float, size: float) -> Array:
    """Return the vectors (F, A, 3) [m] of the arrows: ``ARROW`` times ``size`` for a force of ``weight`` [N]."""
    vectors = motion.force * (ARROW * size / weight)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    longest = LONGEST * ARROW * size
    return np.asarray(vectors * np.where(lengths > longest, longest / np.maximum(lengths, 1e-12), 1.0))


def drawn_skeleton(skeleton: Skeleton, camera: Camera, points: Array) -> tuple[Array, Indices]:
    """Return the lines (L, 2, 2) [m] in the picture, the far ones first, and their order (L,).

    Args:
        skeleton: What is drawn.
        camera: Who looks.
        points: (P, 3) of the skeleton in the world [m].
    """
    ends = points[skeleton.lines]
    order = np.argsort(camera.depth(ends).mean(axis=1), kind="stable")
    return camera.project(ends[order]), order
