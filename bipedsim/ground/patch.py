"""Define a patch: part of a plane with contact axes (t1, t2, n), normal last, and friction."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from bipedsim.errors import ConfigError
from bipedsim.model import checked_polygon
from bipedsim.numerics import Array, Flags

ORTHONORMAL = 1e-9
"""Largest entry of R^T R - 1 that counts as rounding."""
FRICTION_MAX = 10.0
"""Largest plausible friction coefficient, as in robot.yaml."""


@dataclass(frozen=True, eq=False)
class Patch:
    """Part of a plane in the world.

    Attributes:
        point_world: (3,) origin of the patch axes, a point of the plane [m].
        rotation_world_patch: (3, 3), columns t1, t2, n of the patch in world axes; n points out of the ground.
        region: (P, 2) strictly convex polygon in (t1, t2) [m], counter-clockwise; None is the whole plane.
        friction_static: Coulomb coefficient of sticking feet on this patch, instead of the sole's; None uses the
            sole's.
        friction_dynamic: Coulomb coefficient of sliding feet, at most ``friction_static``, which is also its default.
        name: Name for messages and plots.

    Raises:
        ConfigError: A value does not meet these conditions.
    """

    point_world: Array = field(default_factory=lambda: np.zeros(3))
    rotation_world_patch: Array = field(default_factory=lambda: np.eye(3))
    region: Array | None = None
    friction_static: float | None = None
    friction_dynamic: float | None = None
    name: str = "ground"

    def __post_init__(self) -> None:
        where = f"patch {self.name!r}"
        point = _numbers(self.point_world, (3,), f"{where}: point_world")
        rotation = _numbers(self.rotation_world_patch, (3, 3), f"{where}: rotation_world_patch")
        if np.abs(rotation.T @ rotation - np.eye(3)).max() > ORTHONORMAL or np.linalg.det(rotation) < 0.0:
            raise ConfigError(
                "must be a rotation: columns t1, t2, n of length 1, at right angles, with n = t1 x t2",
                f"{where}: rotation_world_patch",
                rotation.tolist(),
            )
        region = None
        if self.region is not None:
            region = checked_polygon(self.region, f"{where}: region")
            if len(region) < 3:
                raise ConfigError(
                    "must have three vertices at least; leave it out for the whole plane",
                    f"{where}: region",
                    region.tolist(),
                )
        static, dynamic = checked_friction(self.friction_static, self.friction_dynamic, where)
        values = {
            "point_world": point,
            "rotation_world_patch": rotation,
            "region": region,
            "friction_static": static,
            "friction_dynamic": dynamic,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def normal_world(self) -> Array:
        """(3,) outward normal in world axes."""
        return self.rotation_world_patch[:, 2]

    def contains(self, xy: ArrayLike) -> Flags:
        """Return whether points (..., 2) in patch axes [m] are in the region or on its border."""
        p = np.asarray(xy, dtype=np.float64)
        if self.region is None:
            return np.asarray(np.isfinite(p).all(axis=-1))
        edge = np.roll(self.region, -1, axis=0) - self.region
        offset = p[..., None, :] - self.region
        return np.asarray((edge[:, 0] * offset[..., 1] - edge[:, 1] * offset[..., 0] >= 0.0).all(axis=-1))


def _numbers(values: ArrayLike, shape: tuple[int, ...], where: str) -> Array:
    """Return a copy of ``values`` as finite numbers of this shape."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"must be numbers of shape {shape}", where, values) from error
    if array.shape != shape or not np.isfinite(array).all():
        raise ConfigError(f"must be finite numbers of shape {shape}", where, array.tolist())
    return array


def checked_friction(static: float | None, dynamic: float | None, where: str) -> tuple[float | None, float | None]:
    """Check and return both coefficients, or None for both; the sole and the patch are never mixed."""
    for key, value in (("friction_static", static), ("friction_dynamic", dynamic)):
        if value is not None and not (math.isfinite(value) and 0.0 <= value <= FRICTION_MAX):
            raise ConfigError(f"must be in [0, {FRICTION_MAX:g}]", f"{where}: {key}", value)
    if static is None:
        if dynamic is not None:
            raise ConfigError("without friction_static. Set both", f"{where}: friction_dynamic", dynamic)
        return None, None
    if dynamic is None:
        dynamic = static
    if dynamic > static:
        raise ConfigError(
            f"is above friction_static = {static}; sliding friction cannot exceed sticking friction",
            f"{where}: friction_dynamic",
            dynamic,
        )
    return float(static), float(dynamic)


def axes_of_normal(normal: ArrayLike) -> Array:
    """Return the axes t1, t2, n (3, 3) of a plane; t1 points along world x, or along y if n is along x.

    Args:
        normal: (3,) in world axes, of any length but zero.

    Raises:
        ConfigError: The normal is zero or not finite.
    """
    n = _numbers(normal, (3,), "normal")
    length = float(np.linalg.norm(n))
    if length < 1e-12:
        raise ConfigError("has no direction; give for example [0, 0, 1]", "normal", n.tolist())
    n = n / length
    along = np.array([1.0, 0.0, 0.0]) if abs(n[0]) < 0.99 else np.array([0.0, 1.0, 0.0])
    t1 = along - n * (n @ along)
    t1 /= np.linalg.norm(t1)
    return np.column_stack([t1, np.cross(n, t1), n])
