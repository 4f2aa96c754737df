"""Define the ground as patches and a height field, and convert them to arrays for the compiled kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from bipedsim.errors import ConfigError
from bipedsim.ground.field import FieldArrays, HeightField
from bipedsim.ground.patch import Patch
from bipedsim.ground.under_field import STEEPEST_FACE
from bipedsim.numerics import Array, Integers
from bipedsim.plates import PlateConfig

COPLANAR = 1e-6
"""Tolerance of normals [rad] and heights [m] for patches in one plane."""
FOOTPRINT = 0.3
"""Radius of the part of a rough height field that defines the mean plane under a robot [m]."""
STEEPEST = 1e-6
"""Smallest z of the unit normal; steeper patches are walls, which the plan view does not contain."""


class GroundArrays(NamedTuple):
    """Contiguous arrays of P patches for kernels; V is the largest number of region vertices, at least 1.

    The triangles of a height field are the last patches. Kernels look them up by position and never loop over them.

    Attributes:
        rotation: (P, 3, 3) patch axes t1, t2, n as columns, in world axes.
        point: (P, 3) origins of the patch axes in the world [m].
        region: (P, V, 2) counter-clockwise polygons in patch axes [m].
        counts: (P,) number of vertices of each region; 0 is the whole plane.
        plane: (P,) first patch in the same plane. Kernels use its axes, so a foot keeps its axes when it moves between
            patches of a plane.
        mu_static, mu_dynamic: (P,) friction coefficients; NaN for both if the sole's apply.
        circle: (P, 3) centre and radius of a circle around each region, in patch axes [m]; the radius is infinite
            without a region.
        plane_circle: (P, 3) likewise around all regions of one plane, in the axes of its first patch; without the
            triangles.
        field: The height field; without one, its ``first`` is P.
    """

    rotation: Array
    point: Array
    region: Array
    counts: Integers
    plane: Integers
    mu_static: Array
    mu_dynamic: Array
    circle: Array
    plane_circle: Array
    field: FieldArrays


@dataclass(frozen=True, eq=False)
class Ground:
    """Ground for the feet; where patches of one plane overlap, the later one is used.

    Attributes:
        patches: Patches; at least one without a field.
        source: File of the ground, for messages; may be empty.
        force_plates: Force plates in the ground.
        field: Height field. It is on top where it is higher than the patches.
    """

    patches: tuple[Patch, ...] = ()
    source: str = ""
    force_plates: tuple[PlateConfig, ...] = ()
    field: HeightField | None = None

    def __post_init__(self) -> None:
        if not self.patches and self.field is None:
            raise ConfigError("a ground has at least one; Ground.flat() is the plane z = 0", "patches")

    @classmethod
    def plane(cls, point_world: ArrayLike = (0.0, 0.0, 0.0), rotation_world_patch: ArrayLike | None = None) -> Ground:
        """Return one infinite plane through ``point_world`` (3,) [m] with axes t1, t2, n as columns (3, 3)."""
        axes = np.eye(3) if rotation_world_patch is None else np.asarray(rotation_world_patch)
        return cls((Patch(np.asarray(point_world), axes),))

    @classmethod
    def flat(cls, height: float = 0.0, **friction: float | None) -> Ground:
        """Return the horizontal plane at ``height`` [m]; ``friction`` as in :class:`Patch`."""
        return cls((Patch(np.array([0.0, 0.0, float(height)]), name="flat", **friction),))  # type: ignore[arg-type]

    @classmethod
    def slope(cls, angle: float, direction: float = 0.0, **friction: float | None) -> Ground:
        """Return the plane through the origin that rises by ``angle`` [rad] towards the heading ``direction`` [rad].

        Heading 0 is world x. t1 points uphill, t2 is level.

        Raises:
            ConfigError: The angle is not between -90 and 90 degrees.
        """
        if not (math.isfinite(direction) and abs(angle) < 0.5 * math.pi):
            raise ConfigError(f"must be within +-pi/2, and direction = {direction} finite", "slope: angle", angle)
        c, s = math.cos(angle), math.sin(angle)
        cd, sd = math.cos(direction), math.sin(direction)
        axes = np.array([[c * cd, -sd, -s * cd], [c * sd, cd, -s * sd], [s, 0.0, c]])
        return cls((Patch(rotation_world_patch=axes, name="slope", **friction),))  # type: ignore[arg-type]

    @classmethod
    def stairs(
        cls,
        rise: float,
        run: float,
        steps: int,
        width: float = 2.0,
        start: float = 0.5,
        landing: float = 0.0,
        **friction: float | None,
    ) -> Ground:
        """Return the floor z = 0 and ``steps`` treads that climb along world x.

        Args:
            rise, run: Height and depth of a step [m].
            steps: Number of treads.
            width: Width of the treads, centred on y = 0 [m].
            start: Position of the first riser along x [m].
            landing: Additional depth of the last tread [m].
            friction: As in :class:`Patch`, for floor and treads.

        Raises:
            ConfigError: A length is not positive and finite, or there are no steps.
        """
        for name, value in (("rise", rise), ("run", run), ("width", width)):
            if not (math.isfinite(value) and value > 0.0):
                raise ConfigError("m must be positive", f"stairs: {name}", value)
        if steps < 1 or not (math.isfinite(start) and math.isfinite(landing) and landing >= 0.0):
            raise ConfigError(
                f"must be at least 1, start = {start} m finite, landing = {landing} m not negative",
                "stairs: steps",
                steps,
            )
        patches = [Patch(name="floor", **friction)]  # type: ignore[arg-type]
        y = 0.5 * width
        for i in range(1, steps + 1):
            depth = run + (landing if i == steps else 0.0)
            point = np.array([start + (i - 1) * run, 0.0, i * rise])
            region = np.array([[0.0, -y], [depth, -y], [depth, y], [0.0, y]])
            patches.append(Patch(point, region=region, name=f"step {i}", **friction))  # type: ignore[arg-type]
        return cls(tuple(patches))

    def arrays(self) -> GroundArrays:
        """Return patches and triangles as arrays for the kernels."""
        count = len(self.patches)
        sizes = [0 if patch.region is None else len(patch.region) for patch in self.patches]
        region = np.zeros((count, max(1, 0 if self.field is None else 3, *sizes), 2))
        for i, patch in enumerate(self.patches):
            if patch.region is not None:
                region[i, : sizes[i]] = patch.region
        plane = [self._first_in_plane(i) for i in range(count)]
        members: list[list[Patch]] = [[] for _ in self.patches]
        for patch, first in zip(self.patches, plane, strict=True):
            members[first].append(patch)
        own = {
            "rotation": np.array([patch.rotation_world_patch for patch in self.patches]).reshape(-1, 3, 3),
            "point": np.array([patch.point_world for patch in self.patches]).reshape(-1, 3),
            "region": region,
            "counts": np.array(sizes, dtype=np.int64),
            "plane": np.array(plane, dtype=np.int64),
            "mu_static": np.array([_or_nan(patch.friction_static) for patch in self.patches]),
            "mu_dynamic": np.array([_or_nan(patch.friction_dynamic) for patch in self.patches]),
            "circle": np.array([_circle(patch, [patch]) for patch in self.patches]).reshape(-1, 3),
        }
        if self.field is not None:
            triangles = self.field.triangles(count, region.shape[1])
            own = {name: np.concatenate([array, triangles[name]]) for name, array in own.items()}
        circles = [_circle(patch, same_plane) for patch, same_plane in zip(self.patches, members, strict=True)]
        field = FieldArrays.of(self.field, count)
        return GroundArrays(**own, plane_circle=np.array(circles).reshape(-1, 3), field=field)

    def saved(self) -> dict[str, Array | Integers]:
        """Return the arrays from which :meth:`of_saved` makes this ground again, without force plates."""
        arrays = Ground(self.patches).arrays() if self.patches else None
        patches = {} if arrays is None else {k: v for k, v in arrays._asdict().items() if k != "field"}
        return patches if self.field is None else patches | self.field.saved()

    @classmethod
    def of_saved(cls, kept: Mapping[str, Any]) -> Ground:
        """Make a ground from the arrays, or lists, of :meth:`saved`.

        Raises:
            KeyError: Neither patches nor a height field are in ``kept``.
        """
        patches = []
        of_field = "field_heights" in kept
        region = np.asarray(kept.get("region", ()))
        for i, count in enumerate(kept.get("counts", ()) if of_field else kept["counts"]):
            static, dynamic = (_or_none(kept[name][i]) for name in ("mu_static", "mu_dynamic"))
            part = region[i, :count] if count else None
            patches.append(Patch(kept["point"][i], kept["rotation"][i], part, static, dynamic))
        return cls(tuple(patches), field=HeightField.of_saved(kept) if of_field else None)

    def _first_in_plane(self, i: int) -> int:
        patch = self.patches[i]
        n = patch.normal_world
        for j, other in enumerate(self.patches[:i]):
            height = abs(float(n @ (other.point_world - patch.point_world)))
            if float(np.linalg.norm(n - other.normal_world)) <= COPLANAR and height <= COPLANAR:
                return j
        return i

    def height(self, x: ArrayLike, y: ArrayLike) -> Any:
        """Return the height [m] of the highest patch or the field at (x, y) [m] in the world; NaN where there is none.

        Returns:
            A float for one point, else an array with the broadcast shape of x and y.
        """
        heights = self._heights(x, y)
        with np.errstate(invalid="ignore"):
            highest = np.where(np.isnan(heights).all(axis=0), np.nan, np.fmax.reduce(heights))
        return float(highest) if highest.ndim == 0 else highest

    def _heights(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Return the height of every patch and then of the field (P + 1, ...) at (x, y); NaN outside its region."""
        xs, ys = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
        result = np.full((len(self.patches) + 1, *xs.shape), np.nan)
        if self.field is not None:
            result[-1] = self.field.height(xs, ys)
        for i, patch in enumerate(self.patches):
            n, p = patch.normal_world, patch.point_world
            if n[2] < STEEPEST:
                continue
            z = p[2] - (n[0] * (xs - p[0]) + n[1] * (ys - p[1])) / n[2]
            on_patch = (np.stack([xs, ys, z], axis=-1) - p) @ patch.rotation_world_patch[:, :2]
            result[i] = np.where(patch.contains(on_patch), z, np.nan)
        return result

    def depth(self, points_world: ArrayLike, underside: float) -> Array:
        """Return the depth of points in the ground [m]; negative above it, -inf where there is no patch.

        Args:
            points_world: (..., 3) [m].
            underside: Depth below a bounded patch from which a point is under it, not in it [m].
        """
        points = np.asarray(points_world, dtype=np.float64)
        deepest = np.full(points.shape[:-1], -np.inf)
        for patch in self.patches:
            local = (points - patch.point_world) @ patch.rotation_world_patch
            above = patch.contains(local[..., :2])
            if patch.region is not None:
                above = above & (local[..., 2] >= -underside)
            deepest = np.where(above, np.maximum(deepest, -local[..., 2]), deepest)
        return deepest if self.field is None else np.fmax(deepest, self.field.depth(points))

    def pose_on(self, x: float, y: float, yaw: float = 0.0) -> pin.SE3:
        """Return a frame on the ground at (x, y) [m]: z along the normal, x along the heading ``yaw`` [rad].

        On a rough height field, the ground is its mean plane within ``FOOTPRINT``, without holes and walls.

        Raises:
            ConfigError: There is no ground at (x, y).
        """
        heights = self._heights(float(x), float(y))
        if np.isnan(heights).all():
            where = f"x = {x}, y = {y} m"
            where = f"{self.source}: {where}" if self.source else where
            raise ConfigError(f"there is no ground; its patches are: {self._listed()}", where)
        i = int(np.nanargmax(heights))
        patch = self._patch(x, y, i)
        z = float(heights[i])
        if self.field is not None and i == len(self.patches):
            mean = self.field.mean_plane(x, y, FOOTPRINT, STEEPEST_FACE)
            if mean is not None and (mean.normal_world != patch.normal_world).any():
                patch, z = mean, float(mean.point_world[2])
        n = patch.normal_world
        c, s = math.cos(yaw), math.sin(yaw)
        forward = np.array([c, s, -(n[0] * c + n[1] * s) / n[2]])
        forward /= np.linalg.norm(forward)
        axes = np.column_stack([forward, np.cross(n, forward), n])
        return pin.SE3(axes, np.array([float(x), float(y), z]))

    def _patch(self, x: float, y: float, i: int) -> Patch:
        """Return patch ``i`` or, as the last one, the plane of the field at (x, y) [m]."""
        plane = self.field.plane(x, y) if self.field is not None and i == len(self.patches) else None
        return self.patches[i] if plane is None else plane

    def patch_below(self, point_world: Array) -> Patch:
        """Return the plane that a foot at a point (3,) [m] is on: the nearest in height, of equal ones the last."""
        distances = abs(self._heights(*point_world[:2]) - point_world[2])
        if np.isnan(distances).all():
            return self.patches[0] if self.patches else Patch()
        i = len(distances) - 1 - int(np.nanargmin(np.round(distances[::-1], 3)))
        return self._patch(point_world[0], point_world[1], i)

    def place(self, q: ArrayLike, x: float = 0.0, y: float = 0.0, yaw: float = 0.0) -> Array:
        """Move the configuration ``q`` (nq,) of a robot on z = 0 to the ground at (x, y) [m].

        Args:
            q: Free-flyer configuration, base position and quaternion x y z w first.
            x, y, yaw: New position and heading of the world's origin and x axis, see :meth:`pose_on`.

        Raises:
            ConfigError: There is no ground at (x, y).
        """
        placed = np.array(q, dtype=np.float64)
        pose = self.pose_on(x, y, yaw)
        # The identity pose must not change any bit of q.
        if not pose.isIdentity(0.0):
            placed[:7] = pin.SE3ToXYZQUAT(pose * pin.XYZQUATToSE3(placed[:7]))
        return placed

    def _listed(self) -> str:
        return ", ".join([*(patch.name for patch in self.patches), *(() if self.field is None else ("field",))])


def _circle(axes: Patch, patches: Sequence[Patch]) -> Array:
    """Return centre and radius (3,) [m] of a circle around the regions of ``patches``, in the axes ``axes``."""
    if not patches or any(patch.region is None for patch in patches):
        return np.array([0.0, 0.0, np.inf])
    corners = np.vstack(
        [
            (patch.point_world + patch.region @ patch.rotation_world_patch[:, :2].T - axes.point_world)
            @ axes.rotation_world_patch[:, :2]
            for patch in patches
            if patch.region is not None
        ]
    )
    centre = 0.5 * (corners.min(axis=0) + corners.max(axis=0))
    # The radius includes a margin for rounding.
    return np.append(centre, np.linalg.norm(corners - centre, axis=1).max() + COPLANAR)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
