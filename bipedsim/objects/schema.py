"""Configuration of objects: entries of scenario files, and JSON texts in node parameters."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin

from bipedsim.config import Vector, from_mapping, param, parse_json, together
from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim.objects.free_body import FreeBody
from bipedsim.objects.shapes import ObjectShape, ball, box, cylinder
from bipedsim.objects.urdf import BodyProperties, read_body

_SIZES: dict[str, tuple[str, ...]] = {
    "ball": ("mass", "radius"),
    "box": ("mass", "size"),
    "cylinder": ("mass", "radius", "length"),
    "urdf": ("urdf",),
}
_NAME = re.compile(r"[a-z][a-z0-9_]*")
MOST = 32
"""Maximum number of objects in a scenario."""
LIGHTEST, SMALLEST, LARGEST = 1e-6, 1e-4, 100.0


@dataclass(frozen=True)
class ObjectConfig:
    """A free rigid body: an entry of ``objects`` in a scenario file."""

    name: str = param("", "its name, for topics and columns: lower-case letters, digits and _", required=True)
    shape: str = param("", "what it is", choices=tuple(_SIZES), required=True)
    mass: float | None = param(None, "its mass; of a URDF that of the file", unit="kg", low=LIGHTEST, high=1e5)
    urdf: str | None = param(None, "of a URDF: path of the file, from that of the scenario, with a /", path=True)
    radius: float | None = param(None, "of a ball or cylinder", unit="m", low=SMALLEST, high=LARGEST)
    size: Vector | None = param(None, "[x, y, z] of a box", unit="m", low=SMALLEST, high=LARGEST)
    length: float | None = param(None, "of a cylinder, along its z axis", unit="m", low=SMALLEST, high=LARGEST)
    inertia: Vector | None = param(
        None, "[Ixx, Iyy, Izz] about its centre; default that of a solid of even density", unit="kg.m^2", low=1e-12
    )
    position: Vector = param(
        (0.0, 0.0, 1.0), "of its centre, or its frame, in the world at the start", unit="m", low=-1e4, high=1e4
    )
    rpy: Vector = param((0.0, 0.0, 0.0), "its attitude at the start, by roll, pitch, yaw", unit="rad")
    velocity: Vector = param((0.0, 0.0, 0.0), "of that point, in world axes", unit="m/s", low=-100.0, high=100.0)
    angular_velocity: Vector = param((0.0, 0.0, 0.0), "in world axes at the start", unit="rad/s", low=-1e5, high=1e5)
    friction_static: float = param(0.6, "Coulomb friction while sticking", low=0.0, high=10.0)
    friction_dynamic: float | None = param(None, "the same while sliding; default friction_static", low=0.0, high=10.0)
    restitution: float = param(
        0.0, "Newton's coefficient with other bodies: of two, the smaller one counts", low=0.0, high=1.0
    )
    ground_restitution: float | None = param(None, "the same with the ground; default restitution", low=0.0, high=1.0)

    def problems(self) -> Iterator[ConfigError]:
        """Yield the inconsistencies between the keys."""
        if self.name and not _NAME.fullmatch(self.name):
            yield ConfigError("must be lower-case letters, digits and _, and begin with a letter", "name", self.name)
        needed = _SIZES[self.shape]
        keys = sorted({key for keys in _SIZES.values() for key in keys})
        specified = [key for key in keys if getattr(self, key) is not None]
        for key in specified:
            if key not in needed:
                yield ConfigError(f"{self.shape} has none; it has {' and '.join(needed)}", key)
        yield from (ConfigError(f"{self.shape} needs it", key) for key in needed if key not in specified)
        if self.urdf is not None and "/" not in self.urdf:
            yield ConfigError(f"must be a path with a /, such as ./{self.urdf}", "urdf", self.urdf)
        if self.urdf is not None and self.inertia is not None:
            yield ConfigError("that of a URDF is in the file", "inertia")
        if self.friction_dynamic is not None and self.friction_dynamic > self.friction_static:
            yield ConfigError(
                f"must not be above friction_static = {self.friction_static}", "friction_dynamic", self.friction_dynamic
            )
        if self.inertia is not None:
            least, middle, most = sorted(self.inertia)
            if most > (least + middle) * (1.0 + 1e-9):
                yield ConfigError(
                    f"is that of no body: {most:g} is more than the sum of the others, {least + middle:g} kg.m^2",
                    "inertia",
                    self.inertia,
                )

    def text(self) -> str:
        """Return a JSON text from which :func:`parse_objects` restores the same values to the bit."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return json.dumps({key: value for key, value in values.items() if value is not None})

    def make(self) -> FreeBody:
        """Return the body.

        Raises:
            ConfigError: The URDF cannot be read or describes no valid body.
        """
        described = self._described()
        quaternion = pin.Quaternion(pin.rpy.rpyToMatrix(*self.rpy)).normalized().coeffs()
        dynamic = self.friction_static if self.friction_dynamic is None else self.friction_dynamic
        return FreeBody(
            name=self.name,
            mass=described.mass,
            inertia=described.inertia,
            com=described.com,
            shapes=described.shapes,
            friction_static=self.friction_static,
            friction_dynamic=dynamic,
            restitution=self.restitution,
            ground_restitution=self.restitution if self.ground_restitution is None else self.ground_restitution,
            pose=np.concatenate([self.position, quaternion]),
            twist=np.array([*self.velocity, *self.angular_velocity]),
        )

    def _described(self) -> BodyProperties:
        if self.urdf is not None:
            try:
                return read_body(Path(self.urdf))
            except ConfigError as error:
                raise error.within(f"object {self.name!r}") from error
        assert self.mass is not None
        moments = self._solid(self.mass) if self.inertia is None else np.array(self.inertia)
        return BodyProperties(self.mass, np.diag(moments), np.zeros(3), (self._shape(),))

    def _shape(self) -> ObjectShape:
        if self.size is not None:
            return box(np.array(self.size))
        assert self.radius is not None
        return ball(self.radius) if self.length is None else cylinder(self.radius, self.length)

    def _solid(self, mass: float) -> Array:
        """Return the principal moments (3,) of a solid of uniform density."""
        if self.size is not None:
            x, y, z = np.square(self.size)
            return mass / 12.0 * np.array([y + z, x + z, x + y])
        assert self.radius is not None
        square = self.radius**2
        if self.length is None:
            return np.full(3, 0.4 * mass * square)
        across = mass * (3.0 * square + self.length**2) / 12.0
        return np.array([across, across, 0.5 * mass * square])


def check_names(objects: Sequence[ObjectConfig]) -> Iterator[ConfigError]:
    """Yield the errors in the names and the number of ``objects``."""
    seen: set[str] = set()
    for config in objects:
        if config.name in seen:
            yield ConfigError("is given twice", "objects: name", config.name)
        seen.add(config.name)
    if len(objects) > MOST:
        yield ConfigError(f"{len(objects)} are more than the maximum, {MOST}", "objects")


def parse_objects(texts: Sequence[str]) -> tuple[ObjectConfig, ...]:
    """Read objects from JSON texts with the keys of a scenario file.

    Raises:
        ConfigError: A text is not valid JSON, or a value is wrong; the error lists all faults.
    """
    configs: list[ObjectConfig] = []
    faults: list[ConfigError] = []
    for i, text in enumerate(texts):
        try:
            configs.append(from_mapping(ObjectConfig, parse_json(text, f"objects[{i}]"), f"objects[{i}]"))
        except ConfigError as error:
            faults.append(error)
    together([*faults, *check_names(configs)])
    return tuple(configs)
