"""Free rigid bodies beside the robot of a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import together
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground
from bipedsim.numerics import Array
from bipedsim.objects import ObjectConfig, World, check_names


class Objects:
    """The objects of a simulation.

    Args:
        configs: At least one.
        taken: Names that the robot's frames have.
        ground, physics_dt: Of the simulation. gravity: (3,) [m/s^2].

    Attributes:
        configs: As they were given.
        names: Theirs.
        world: What moves them.

    Raises:
        ConfigError: A name is given twice or that of a frame of the robot, or something begins within something else.
    """

    def __init__(
        self, configs: Sequence[ObjectConfig], taken: Sequence[str], ground: Ground, physics_dt: float, gravity: Array
    ) -> None:
        faults = list(check_names(configs))
        faults += [f"objects: the robot has a frame {one.name!r}, too" for one in configs if one.name in taken]
        together([ConfigError(fault) for fault in faults])
        self.configs = tuple(configs)
        self.names = tuple(one.name for one in configs)
        self.world = World([one.make() for one in configs], ground, physics_dt, gravity)
        together([ConfigError(fault) for fault in self.world.overlaps()])

    def begin(self) -> None:
        """Forget the pushes of the last step."""
        b = self.world.bodies
        b.force[:] = 0.0
        b.torque[:] = 0.0

    def poses(self) -> Array:
        """Return the poses (M, 7) in the world: position [m], quaternion x y z w."""
        return self.world.poses()

    def twists(self) -> Array:
        """Return linear [m/s] and angular [rad/s] velocities (M, 6), each in the axes of its object."""
        return self.world.twists()

    def states(self) -> Array:
        """Return poses and twists side by side (M, 13)."""
        return np.hstack([self.poses(), self.twists()])

    def state(self) -> dict[str, NDArray[Any]]:
        """Return a copy of all that the next step depends on."""
        return self.world.state()

    def set_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Go back to what :meth:`state` returned."""
        self.world.set_state(state)
