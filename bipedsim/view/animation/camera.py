"""Compute the views of an animation, and how they follow the robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.numerics import Array, Indices
from bipedsim.view.animation.motion import MotionFrames
from bipedsim.view.animation.skeleton import Skeleton

FOLLOW = 1.0
"""The camera follows the mean of the CoM over this time [s], so that steps do not shake the image."""
STILL = 0.75
"""The camera is fixed along an axis if the CoM stays within this fraction of the robot's size."""
ARROW = 0.35
"""Length of the arrow for a force of body weight, as a fraction of the robot's size."""
LONGEST = 3.0
"""Maximum length of arrows, in body weights; the force of an impact lasts a tick and is a hundred times larger."""
AZIMUTH, ELEVATION = np.deg2rad(-60.0), np.deg2rad(18.0)
"""Direction to the viewer in the 3d view: ahead of the robot, to its right, and above it [rad]."""


def _axes(azimuth: float, elevation: float) -> Array:
    """Return the rows right, up and towards the viewer in the direction ``azimuth``, ``elevation`` [rad]."""
    ca, sa, ce, se = np.cos(azimuth), np.sin(azimuth), np.cos(elevation), np.sin(elevation)
    return np.array([[-sa, ca, 0.0], [-se * ca, -se * sa, ce], [ce * ca, ce * sa, se]])


AXES = {"side": _axes(-0.5 * np.pi, 0.0), "front": _axes(0.0, 0.0), "3d": _axes(AZIMUTH, ELEVATION)}
"""Orthographic views: the rows right, up and towards the viewer, in world axes."""
VIEWS = {"side": ("side",), "front": ("front",), "both": ("side", "front"), "3d": ("3d",)}
"""Names of views, and the images next to each other in each view."""


@dataclass(frozen=True, eq=False)
class Camera:
    """An orthographic view that follows the robot with a window of one size.

    Attributes:
        axes: (3, 3) rows right, up and towards the viewer in world axes.
        target: (F, 3) point in the world at the centre of each frame [m].
        window: (4,) left, right, bottom, top of the image relative to the target [m].
    """

    axes: Array
    target: Array
    window: Array

    def project(self, points: Array) -> Array:
        """Project ``points`` (..., 3) in the world to the image, (..., 2) [m]."""
        return np.asarray(points @ self.axes[:2].T)

    def depth(self, points: Array) -> Array:
        """Return the distance of ``points`` (..., 3) from the world origin towards the viewer, (...) [m]."""
        return np.asarray(points @ self.axes[2])

    def limits(self, i: int) -> Array:
        """Return left, right, bottom, top (4,) [m] of frame ``i``."""
        x, y = self.project(self.target[i])
        return np.asarray(self.window + np.array([x, x, y, y]))


def robot_size(motion: MotionFrames) -> float:
    """Return the largest extent of the robot along a world axis in all frames, at least 0.1 m."""
    return max(0.1, float(np.ptp(motion.points, axis=1).max())) if motion.points.size else 0.1


def follow(motion: MotionFrames, size: float, each: bool = False) -> Array:
    """Return the target points (F, 3) [m] of the camera; with ``each``, their x and y are those of the CoM."""
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
    """Return a camera whose window contains the given points in all frames.

    Args:
        view: Key of :data:`AXES`.
        shown: (F, N, 3) points that must be visible [m]; NaN is ignored.
        target: (F, 3) target points [m].
        size: Size of the robot [m].
    """
    axes = AXES[view]
    pictured = ((shown - target[:, None]) @ axes[:2].T).reshape(-1, 2)
    low, high = np.nanmin(pictured, axis=0), np.nanmax(pictured, axis=0)
    # The minimum width shows some ground around a slim robot.
    middle, half = 0.5 * (low + high), np.maximum(0.5 * (high - low) + 0.07 * size, 0.4 * size)
    left, bottom = middle - half
    right, top = middle + half
    return Camera(axes, target, np.array([left, right, bottom - 0.05 * size, top]))


def arrows(motion: MotionFrames, weight: float, size: float) -> Array:
    """Return the arrow vectors (F, A, 3) [m]: ``ARROW`` times ``size`` for a force of ``weight`` [N]."""
    vectors = motion.force * (ARROW * size / weight)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    longest = LONGEST * ARROW * size
    return np.asarray(vectors * np.where(lengths > longest, longest / np.maximum(lengths, 1e-12), 1.0))


def drawn_skeleton(skeleton: Skeleton, camera: Camera, points: Array) -> tuple[Array, Indices]:
    """Return the lines (L, 2, 2) [m] in the image, sorted from far to near, and their order (L,).

    Args:
        skeleton: The skeleton.
        camera: The camera.
        points: (P, 3) points of the skeleton in the world [m].
    """
    ends = points[skeleton.lines]
    order = np.argsort(camera.depth(ends).mean(axis=1), kind="stable")
    return camera.project(ends[order]), order
