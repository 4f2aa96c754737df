"""Define the parameters of a robot that its recordings can identify, and what is expected before any data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bipedsim.model import Robot, body_links
from bipedsim.numerics import Array, Flags, Indices

LIGHTEST = 2e-4
"""Bodies below this share of the robot's mass keep the parameters of the description."""


@dataclass(frozen=True)
class Kind:
    """Kind of parameters.

    Attributes:
        unit: SI unit; empty for a ratio.
        doc: Meaning of the numbers.
        components: Names of the numbers, if there are several.
        precise, relative: Half width of a 95 % interval up to which a number is called identified, in its unit and as a
            share of the number; the larger one counts.
        positive: Whether the number cannot be negative. That of a mass can, since it is a logarithm.
    """

    unit: str
    doc: str
    components: tuple[str, ...] = ("",)
    precise: float = 0.0
    relative: float = 0.0
    positive: bool = False


_XYZ = ("x", "y", "z")
KINDS: Mapping[str, Kind] = {
    "armature": Kind("kg.m^2", "reflected inertia of the drive", relative=0.1, positive=True),
    "viscous_friction": Kind("N.m.s/rad", "viscous friction of the joint", precise=0.05, relative=0.1, positive=True),
    "coulomb_friction": Kind("N.m", "dry friction of the joint", precise=0.05, relative=0.1, positive=True),
    "torque_gain": Kind("", "torque at the joint over the measured effort", precise=0.01),
    "torque_offset": Kind("N.m", "torque at the joint at no measured effort", precise=0.2),
    "encoder_offset": Kind("rad", "measured minus true angle", precise=2e-3),
    "mass": Kind("kg", "mass of the body", relative=0.02),
    "com": Kind("m", "centre of mass in the frame of the joint", _XYZ, precise=3e-3),
    "strain": Kind("", "logarithmic strain of the mass about its centre", ("xx", "yy", "zz", "xy", "xz", "yz"), 0.1),
    "force_offset": Kind("N", "measured minus true force of the ankle sensor", _XYZ, precise=1.0),
    "moment_offset": Kind("N.m", "measured minus true moment of the ankle sensor", _XYZ, precise=0.1),
    "accelerometer_offset": Kind("m/s^2", "measured minus true acceleration", _XYZ, precise=0.03),
    "imu_rotation": Kind(
        "rad", "rotation vector from the measured to the described axes of the IMU", _XYZ, precise=3e-3
    ),
    "imu_delay": Kind("s", "age of the measurements of the IMU relative to the encoders", precise=3e-4),
    "effort_delay": Kind("s", "age of the efforts relative to the encoders", precise=3e-4),
    "wrench_delay": Kind("s", "age of the ankle wrenches relative to the encoders", precise=3e-4),
}
"""Name to kind, in the order of the vector of parameters."""


OF_JOINTS = (
    "armature",
    "viscous_friction",
    "coulomb_friction",
    "torque_gain",
    "torque_offset",
    "encoder_offset",
)
"""Kinds per joint; they have the names of hardware parameters."""


AGES = ("imu_delay", "effort_delay", "wrench_delay")
"""Kinds of ages of measurements, which are no hardware parameters."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """Describe the parameters of a robot: a vector of p numbers.

    A mass is the logarithm of its ratio to that of the description, a centre of mass its shift.

    Attributes:
        kinds, owners, components: (p,) kind of each number, the joint, body or foot that has it, and its component.
        start: (p,) values of the description.
        spread: (p,) standard deviation of the true values about ``start``, as expected before any data.
        bodies: Joints that carry the bodies with parameters.
        masses: Masses of these bodies in the description [kg].
        free: (m,) numbers that are estimated by themselves.
        basis: (p, m) changes of all numbers due to changes of the free ones; zero for numbers that stay as described.
        unseen: (p,) numbers that stay as described because no recording shows them.
    """

    kinds: tuple[str, ...]
    owners: tuple[str, ...]
    components: tuple[str, ...]
    start: Array
    spread: Array
    bodies: tuple[int, ...]
    masses: Array
    free: Indices
    basis: Array
    unseen: Flags

    def __len__(self) -> int:
        return len(self.kinds)

    @cached_property
    def at(self) -> Mapping[str, Indices]:
        """Indices (owners, components) of the numbers of each kind."""
        kinds = np.array(self.kinds)
        return {name: np.flatnonzero(kinds == name).reshape(-1, len(kind.components)) for name, kind in KINDS.items()}

    @cached_property
    def estimated(self) -> Flags:
        """Whether each number (p,) is estimated; the others stay as described."""
        return np.any(self.basis != 0.0, axis=1)

    @cached_property
    def positive(self) -> Flags:
        """Whether each number (p,) cannot be negative."""
        return np.array([KINDS[kind].positive for kind in self.kinds])

    @cached_property
    def of_body(self) -> Indices:
        """Indices (bodies, 10) of the numbers of each body: mass, CoM (3), strain (6)."""
        return np.hstack([self.at[kind] for kind in ("mass", "com", "strain")])

    def with_free(self, free: Array) -> Array:
        """Return all numbers (p,) for these free ones (m,); those that cannot be negative are at least 0.

        If numbers are tied, a limit of one holds for both.
        """
        limited = np.where(self.positive[self.free], np.maximum(free, 0.0), free)
        values = self.start + self.basis @ (limited - self.start[self.free])
        return np.asarray(np.where(self.positive, np.maximum(values, 0.0), values))

    def in_units(self, values: Array) -> Array:
        """Return ``values`` (p,) with masses in kg instead of logarithms of ratios."""
        result = values.copy()
        mass = self.at["mass"][:, 0]
        result[mass] = self.masses * np.exp(values[mass])
        return result

    def label(self, i: int) -> str:
        """Return number ``i`` in words, such as ``com x of l_knee``."""
        words = f"{self.kinds[i]} {self.components[i]}".strip()
        return f"{words} of {self.owners[i]}" if self.owners[i] else words


def parameters_of(robot: Robot) -> Parameters:
    """Return the parameters of a robot. Friction and offsets are expected to be near zero."""
    model = robot.model
    bodies = tuple(i for i in range(1, model.njoints) if model.inertias[i].mass > LIGHTEST * robot.mass)
    links, feet = body_links(model), [sole.name for sole in robot.soles]
    names = [links[i] for i in bodies]
    joints, robot_itself = robot.joint_names, ("",)
    efforts = np.minimum(robot.effort_limit, robot.weight)
    armature = model.armature[robot.idx_v]
    expected: Sequence[tuple[str, Sequence[str], float | Array, float | Array]] = (
        ("armature", joints, armature, 0.3 * armature + 1e-3),
        ("viscous_friction", joints, 0.0, 0.01 * efforts),
        ("coulomb_friction", joints, 0.0, 0.02 * efforts),
        ("torque_gain", joints, 1.0, 0.03),
        ("torque_offset", joints, 0.0, 0.005 * efforts),
        ("encoder_offset", joints, 0.0, 0.005),
        ("mass", names, 0.0, 0.1),
        ("com", names, 0.0, 0.02),
        ("strain", names, 0.0, 0.2),
        ("force_offset", feet, 0.0, 0.005 * robot.weight),
        ("moment_offset", feet, 0.0, 5e-4 * robot.weight),
        ("accelerometer_offset", robot_itself, 0.0, 0.05),
        ("imu_rotation", robot_itself, 0.0, 0.005),
        ("imu_delay", robot_itself, 0.0, 5e-4),
        ("effort_delay", robot_itself, 0.0, 5e-4),
        ("wrench_delay", robot_itself, 0.0, 5e-4),
    )
    rows = [
        (kind, owner, component, value, deviation)
        for kind, owners, start, spread in expected
        for owner, value, deviation in zip(
            owners, np.broadcast_to(start, len(owners)), np.broadcast_to(spread, len(owners)), strict=True
        )
        for component in KINDS[kind].components
    ]
    kinds, owners, components, starts, spreads = zip(*rows, strict=True)
    masses = np.array([model.inertias[i].mass for i in bodies])
    free, basis = np.arange(len(kinds)), np.eye(len(kinds))
    vectors, unseen = (np.array(starts), np.array(spreads)), np.zeros(len(kinds), dtype=np.bool_)
    return Parameters(kinds, owners, components, *vectors, bodies, masses, free, basis, unseen)
