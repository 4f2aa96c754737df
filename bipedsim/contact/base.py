"""What every contact model takes and returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bipedsim.sole import Sole

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Projection:
    """One step of the dynamics as the feet see it; arrays are reused from step to step.

    K feet, N vertices at most; ground axes (t1, t2, n); (u, w) is the velocity of the sole origin [m/s] and its
    angular velocity [rad/s].

    Attributes:
        G: (6K, 6K) Delassus matrix J M^-1 J^T.
        w_free: (6K,) velocities (u, w) after the step if no contact acts.
        rotation: (K, 3, 3) sole axes as columns, in ground axes.
        offsets: (K, N, 3) vertices relative to the sole origin [m].
        position: (K, 3) sole origins, ground axes [m].
    """

    G: Array
    w_free: Array
    rotation: Array
    offsets: Array
    position: Array


@dataclass(slots=True, eq=False)
class ContactResult:
    """What the ground did to the feet over one step; arrays are reused from step to step.

    Attributes:
        impulse: (K, 6) impulse of the ground on each foot at the sole origin, ground axes: linear [N.s], angular
            [N.m.s].
        wrench: (K, 6) the same over the step, in the sole frame: force [N], torque [N.m]. An impact counts as force
            over the step.
        cop: (K, 2) centre of pressure in the sole frame [m], NaN without normal force.
        cop_margin: (K,) distance of the CoP to the nearest edge of the sole [m], positive inside, NaN without normal
            force.
        friction_used: (K,) |f_t| / (mu f_z), NaN without normal force.
        mode: (K,) contact mode (contact/modes.py).
        clamped: (K,) the same as bits, bit i for vertex i (the first 63).
        sliding: (K,) whether friction is dynamic.
        state_changes: Changes of mode or of friction state since reset, over all feet.
        unresolved: Steps since reset that ended without a violation-free state.
    """

    impulse: Array
    wrench: Array
    cop: Array
    cop_margin: Array
    friction_used: Array
    mode: Integers
    clamped: Integers
    sliding: NDArray[np.bool_]
    state_changes: int = 0
    unresolved: int = 0

    @classmethod
    def empty(cls, n_feet: int) -> ContactResult:
        """Return the result of a robot in the air."""
        return cls(
            impulse=np.zeros((n_feet, 6)),
            wrench=np.zeros((n_feet, 6)),
            cop=np.full((n_feet, 2), np.nan),
            cop_margin=np.full(n_feet, np.nan),
            friction_used=np.full(n_feet, np.nan),
            mode=np.zeros(n_feet, dtype=np.int64),
            clamped=np.zeros(n_feet, dtype=np.int64),
            sliding=np.zeros(n_feet, dtype=np.bool_),
        )


class ContactModel(Protocol):
    """A contact model: from the projection of one step to impulses.

    The table entry is a class whose constructor takes ``(soles: tuple[Sole, ...], params: Params, physics_dt:
    float)``, with the dataclass of its parameters as the class attribute ``Params``.
    """

    result: ContactResult

    def reset(self) -> None:
        """Forget contacts, anchors and counters."""
        ...

    def solve(self, projection: Projection) -> ContactResult:
        """Return the contact impulses of one step; the result is overwritten by the next call."""
        ...

    def state(self) -> dict[str, Any]:
        """Return a copy of everything that the next step depends on."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        ...


def padded_vertices(soles: tuple[Sole, ...]) -> tuple[Array, Integers]:
    """Return all sole polygons as one array (K, N, 2) [m], and the number of vertices of each (K,)."""
    counts = np.array([len(sole.vertices) for sole in soles], dtype=np.int64)
    vertices = np.zeros((len(soles), int(counts.max(initial=1)), 2))
    for k, sole in enumerate(soles):
        vertices[k, : counts[k]] = sole.vertices
    return vertices, counts
