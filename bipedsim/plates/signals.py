"""Define force-plate signals and quantities derived from them: force, moment, centre of pressure, free moment.

Plates, corners and channels follow C3D files (c3d.org, *FORCE_PLATFORM*). The corners are in the order (+x, +y),
(-x, +y), (-x, -y), (+x, -y) and define the plate's axes; manufacturers let z point into the floor. Channels are along
these axes. Moments refer to the origin of the transducers, below the surface.

**Signs.** Every method returns the *reaction* of the plate on the person by default. ``on="plate"`` gives the load of
the person on the plate, which is the opposite. The reaction on a standing person points up: it is positive along the
world's z and negative along a plate's z that points down. ``PlateGeometry.channels_on`` states the sign of the channels
themselves; in C3D files they are the reaction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array, Flags

Axes = Literal["world", "plate"]
On = Literal["person", "plate"]

CHANNELS = {
    1: ("Fx", "Fy", "Fz", "Px", "Py", "Tz"),
    2: ("Fx", "Fy", "Fz", "Mx", "My", "Mz"),
    3: ("Fx12", "Fx34", "Fy14", "Fy23", "Fz1", "Fz2", "Fz3", "Fz4"),
    4: ("Fx", "Fy", "Fz", "Mx", "My", "Mz"),
}
"""Type of a plate to its channels. Type 1 gives CoP and free moment, type 2 the wrench. Type 3 gives the forces of four
transducers, the horizontal ones in pairs. Type 4 needs a calibration matrix from channels to wrench."""
THRESHOLD = 20.0
"""Normal force up to which the CoP is undefined [N]; ezc3d and other programs use the same value."""
WALL = 0.1
"""Largest absolute z of the unit normal for a plate in a wall."""
SQUARE = 1e-3
"""Tolerated deviation of measured corners from a rectangle, as a fraction of its size."""


@dataclass(frozen=True, eq=False)
class PlateGeometry:
    """Position of a plate and meaning of its channels.

    Attributes:
        name: Name for messages and figures.
        corners: (4, 3) of the surface in the world [m], in the order (+x, +y), (-x, +y), (-x, -y), (+x, -y) of the
            plate's axes.
        kind: Type of C3D, 1, 2, 3 or 4 (:data:`CHANNELS`).
        rate: Sample rate [Hz].
        offset: (3,) from the transducers' origin to the centre of the surface in plate axes [m], the ORIGIN of C3D for
            types 2 and 4; z is negative if the plate's z points down.
        half_base: (2,) half the distances a along x and b along y between the transducers of type 3 [m].
        calibration: (6, c) matrix of type 4 from channels to the wrench at the transducers' origin [N, N.m].
        channel_names: c names, by default those of :data:`CHANNELS`.
        channels_on: Body that the force in the channels acts on: "person", as in C3D, or "plate".

    Raises:
        ConfigError: A value does not meet these conditions.
    """

    name: str
    corners: Array
    kind: int = 2
    rate: float = 1000.0
    offset: Array = field(default_factory=lambda: np.zeros(3))
    half_base: Array = field(default_factory=lambda: np.zeros(2))
    calibration: Array = field(default_factory=lambda: np.eye(6))
    channel_names: tuple[str, ...] = ()
    channels_on: On = "person"

    def __post_init__(self) -> None:
        where = f"force plate {self.name!r}"
        if self.kind not in CHANNELS:
            raise ConfigError(f"is not one of {', '.join(map(str, CHANNELS))}", f"{where}: type", self.kind)
        for name, shape in (("corners", (4, 3)), ("offset", (3,)), ("half_base", (2,))):
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.shape != shape or not np.isfinite(values).all():
                raise ConfigError(f"must be finite numbers of shape {shape}", f"{where}: {name}", values)
            object.__setattr__(self, name, values)
        calibration = np.array(self.calibration, dtype=np.float64)
        if calibration.ndim != 2 or len(calibration) != 6 or not np.isfinite(calibration).all():
            raise ConfigError(f"its shape {calibration.shape} must be finite, of six rows", f"{where}: calibration")
        object.__setattr__(self, "calibration", calibration)
        if not (math.isfinite(self.rate) and self.rate > 0.0):
            raise ConfigError("Hz must be positive", f"{where}: rate", self.rate)
        self._check_corners(where)
        if self.kind == 3 and not (self.half_base > 0.0).all():
            raise ConfigError(
                "must be half the distances of transducers, above 0", f"{where}: half_base", self.half_base
            )
        default_names = CHANNELS[self.kind]
        count = self.calibration.shape[1] if self.kind == 4 else len(default_names)
        names = tuple(self.channel_names) or (default_names if count == 6 or self.kind == 3 else _numbered(count))
        if len(names) != count:
            raise ConfigError(f"must be {count} names", f"{where}: channel_names", names)
        object.__setattr__(self, "channel_names", names)

    def _check_corners(self, where: str) -> None:
        c = self.corners
        x, y = c[0] - c[1], c[0] - c[3]
        size = max(float(np.linalg.norm(x)), float(np.linalg.norm(y)))
        shear = abs(float(x @ y))
        flat = float(np.abs(c[0] - c[1] + c[2] - c[3]).max())
        if size == 0.0 or shear > SQUARE * size * size or flat > SQUARE * size or min(self.size) < SQUARE * size:
            raise ConfigError(
                "must be those of a rectangle, in the order (+x, +y), (-x, +y), (-x, -y), (+x, -y)",
                f"{where}: corners",
                c,
            )

    @property
    def size(self) -> tuple[float, float]:
        """Lengths along the plate's x and y [m]."""
        c = self.corners
        return float(np.linalg.norm(c[0] - c[1])), float(np.linalg.norm(c[0] - c[3]))

    @property
    def centre(self) -> Array:
        """(3,) centre of the surface in the world [m]."""
        return np.asarray(self.corners.mean(axis=0))

    @property
    def rotation(self) -> Array:
        """(3, 3) plate axes x, y, z as columns, in world axes."""
        c = self.corners
        x = (c[0] - c[1] + c[3] - c[2]) / 2.0
        x /= np.linalg.norm(x)
        z = np.cross(x, (c[0] - c[3] + c[1] - c[2]) / 2.0)
        z /= np.linalg.norm(z)
        return np.column_stack([x, np.cross(z, x), z])

    @property
    def up(self) -> float:
        """1 if the plate's z points out of its surface, -1 if it points into the plate.

        Floors face up in the world. The surface of a plate in a wall (steeper than 84 degrees) is opposite to the
        transducers.
        """
        upward = float(self.rotation[2, 2])
        return float(np.sign(upward if abs(upward) > WALL else self.offset[2]) or 1.0)

    @property
    def normal(self) -> Array:
        """(3,) normal out of the surface in world axes."""
        return self.up * self.rotation[:, 2]

    @property
    def thickness(self) -> float:
        """Distance of the transducers' origin below the surface [m]."""
        return abs(float(self.offset[2]))

    @property
    def transducer_origin(self) -> Array:
        """(3,) origin of the transducers in the world [m], to which the channels' moments refer."""
        return np.asarray(self.centre - self.rotation @ self.offset)

    @property
    def matrix(self) -> Array:
        """(6, c) matrix from the channels of types 2, 3 and 4 to the wrench at the transducers' origin in plate axes.

        Raises:
            ConfigError: The plate is of type 1, with channels that are not linear in the wrench.
        """
        if self.kind == 1:
            raise ConfigError(
                f"force plate {self.name!r}: a matrix cannot convert type 1, which has a centre of pressure"
            )
        if self.kind == 2:
            return np.eye(6)
        if self.kind == 4:
            return self.calibration
        a, b = self.half_base
        return np.array(
            [
                [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
                [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
                [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0],
                [0.0, 0.0, 0.0, 0.0, b, b, -b, -b],
                [0.0, 0.0, 0.0, 0.0, -a, a, a, -a],
                [-b, b, a, -a, 0.0, 0.0, 0.0, 0.0],
            ]
        )

    @property
    def gains(self) -> Array:
        """(c, 6) matrix from the wrench to the channels of types 2, 3 and 4."""
        return np.asarray(np.linalg.pinv(self.matrix))

    def wrench(self, channels: Array) -> Array:
        """Return the reaction (n, 6) [N, N.m] at the transducers' origin in plate axes for channels (n, c)."""
        values = np.asarray(channels, dtype=np.float64)
        if self.kind == 1:
            force = values[:, :3]
            arm = self.offset + np.column_stack([values[:, 3:5], np.zeros(len(values))])
            moment = np.cross(arm, force)
            moment[:, 2] += values[:, 5]
            wrench = np.column_stack([force, moment])
        else:
            wrench = values @ self.matrix.T
        return wrench if self.channels_on == "person" else -wrench

    def channels(self, wrench: Array) -> Array:
        """Return the channels (n, c) for reactions (n, 6) at the transducers' origin in plate axes.

        With more than six channels, the result is the solution of smallest norm: that of a rigid plate on equal
        springs. The CoP of type 1 is 0 for normal forces up to ``THRESHOLD``, so the moments are lost there.
        """
        values = np.asarray(wrench, dtype=np.float64)
        values = values if self.channels_on == "person" else -values
        if self.kind != 1:
            return np.asarray(values @ self.gains.T)
        force = values[:, :3]
        moment = values[:, 3:] - np.cross(self.offset, force)
        cop, free_moment = _cop(force, moment, THRESHOLD)
        no_cop = np.isnan(free_moment)
        cop[no_cop], free_moment[no_cop] = 0.0, moment[no_cop, 2]
        return np.column_stack([force, cop, free_moment])


@dataclass(frozen=True, eq=False)
class PlateSignals:
    """Samples of a plate's amplifier.

    Attributes:
        t: (n,) times of the samples [s].
        geometry: Geometry of the plate.
        channels: (n, c) as in :attr:`PlateGeometry.channel_names`: [N], [N.m], for Px and Py of type 1 [m], for type 4
            the unit of its calibration.
        clipped: Number of values beyond the amplifier's range, over all channels.
        note: Remark for figures; may be empty.

    Raises:
        ConfigError: The shapes do not fit.
    """

    t: Array
    geometry: PlateGeometry
    channels: Array
    clipped: int = 0
    note: str = ""

    def __post_init__(self) -> None:
        expected_shape = (len(self.t), len(self.geometry.channel_names))
        if self.channels.shape != expected_shape:
            raise ConfigError(
                f"shape {self.channels.shape} must be {expected_shape}, for {', '.join(self.geometry.channel_names)}",
                f"force plate {self.geometry.name!r}: channels",
            )

    def __len__(self) -> int:
        return len(self.t)

    def wrench(self, axes: Axes = "world", on: On = "person") -> Array:
        """Return force [N] and moment at the transducers' origin [N.m], (n, 6)."""
        wrench = self.geometry.wrench(self.channels)
        if axes == "world":
            rotation = self.geometry.rotation.T
            wrench = np.hstack([wrench[:, :3] @ rotation, wrench[:, 3:] @ rotation])
        return wrench if on == "person" else -wrench

    def force(self, axes: Axes = "world", on: On = "person") -> Array:
        """Return the force (n, 3) [N]."""
        return self.wrench(axes, on)[:, :3]

    def moment(self, axes: Axes = "world", on: On = "person") -> Array:
        """Return the moment (n, 3) at the transducers' origin [N.m]."""
        return self.wrench(axes, on)[:, 3:]

    def moment_about(self, point_world: Array, on: On = "person") -> Array:
        """Return the moment (n, 3) about a world point (3,) or points (n, 3) [m], in world axes [N.m]."""
        wrench = self.wrench("world", on)
        arm = self.geometry.transducer_origin - np.asarray(point_world, dtype=np.float64)
        return np.asarray(wrench[:, 3:] + np.cross(np.broadcast_to(arm, (len(wrench), 3)), wrench[:, :3]))

    def normal_force(self) -> Array:
        """Return the reaction out of the surface (n,) [N]; it is positive under load."""
        return np.asarray(self.geometry.up * self.geometry.wrench(self.channels)[:, 2])

    def loaded(self, threshold: float = THRESHOLD) -> Flags:
        """Return which samples (n,) have a normal force above ``threshold`` [N]."""
        return np.asarray(self.normal_force() > threshold)

    def cop(self, threshold: float = THRESHOLD, axes: Axes = "world") -> Array:
        """Return the centre of pressure on the surface [m]; NaN for normal forces up to ``threshold`` [N].

        Returns:
            (n, 3) in the world, or (n, 2) in the plate's axes relative to the centre of its surface.
        """
        cop = self._at_surface(threshold)[0]
        if axes == "plate":
            return cop
        return np.asarray(self.geometry.centre + cop @ self.geometry.rotation[:, :2].T)

    def free_moment(self, threshold: float = THRESHOLD, axes: Axes = "world", on: On = "person") -> Array:
        """Return the free moment Tz (n,) [N.m] through the CoP; NaN for normal forces up to ``threshold`` [N].

        The axis is the normal out of the surface, or the plate's z with ``axes="plate"``.
        """
        moment = self._at_surface(threshold)[1]
        moment = moment if axes == "plate" else self.geometry.up * moment
        return moment if on == "person" else -moment

    def _at_surface(self, threshold: float) -> tuple[Array, Array]:
        wrench = self.geometry.wrench(self.channels)
        force = wrench[:, :3]
        moment = wrench[:, 3:] - np.cross(self.geometry.offset, force)
        return _cop(force, moment, threshold, self.geometry.up)


def _cop(force: Array, moment: Array, threshold: float, up: float = 0.0) -> tuple[Array, Array]:
    """Return the CoP (n, 2) [m] and the moment (n,) [N.m] about z through it, for forces and moments at z = 0.

    The moment at the CoP has no component in the plane: x = -M_y / F_z, y = M_x / F_z. The result is NaN for normal
    forces along ``up`` of at most ``threshold`` [N]; ``up`` = 0 accepts both signs.
    """
    normal = force[:, 2] * up if up else np.abs(force[:, 2])
    z = np.where(normal > threshold, force[:, 2], np.nan)
    x, y = -moment[:, 1] / z, moment[:, 0] / z
    return np.column_stack([x, y]), np.asarray(moment[:, 2] - (x * force[:, 1] - y * force[:, 0]))


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"{i + 1}" for i in range(count))
