"""Derive the poses of bodies, soles and CoM, and the vertices in contact, from an instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from bipedsim.analysis import CARRIES, capture_point
from bipedsim.ground import Ground
from bipedsim.model import Robot, Sole, sole_placements
from bipedsim.numerics import Array, Flags
from bipedsim.view.page.instant import Instant
from bipedsim.view.plot_contact import mode_kind

UNKNOWN = "unknown"
"""Kind of the contact of a foot without a known mode or force."""


@dataclass(frozen=True, eq=False)
class DerivedState:
    """Data that the scene needs in addition to the instant.

    Attributes:
        data: Data of pinocchio, at the configuration of the instant.
        soles: Pose of each sole in the world.
        com: (3,) centre of mass [m].
        capture: (3,) capture point on the ground [m]; NaN without velocities.
        ground: Height of the ground below the CoM [m]; height of the lowest sole if there is no ground.
        kinds: Kind of the contact mode of each foot, see :data:`bipedsim.view.palette.MODE_COLOURS`;
            :data:`UNKNOWN` without a known mode and force.
        touching: For each foot the vertices in contact (N,).
    """

    data: pin.Data
    soles: Sequence[pin.SE3]
    com: Array
    capture: Array
    ground: float
    kinds: tuple[str, ...]
    touching: tuple[Flags, ...]


def state_of(robot: Robot, ground: Ground, data: pin.Data, instant: Instant) -> DerivedState:
    """Derive the state of ``instant``, whose configuration must be finite; ``data`` is overwritten."""
    model = robot.model
    moves = instant.v is not None and bool(np.isfinite(instant.v).all())
    if moves:
        pin.centerOfMass(model, data, instant.q, instant.v)
    else:
        pin.centerOfMass(model, data, instant.q)
    soles = sole_placements(model, data, robot.soles, instant.q)
    com = data.com[0].copy()
    height = float(ground.height(com[0], com[1]))
    if not np.isfinite(height):
        height = min((float(sole.translation[2]) for sole in soles), default=0.0)
    capture = np.full(3, np.nan)
    if moves and com[2] > height:
        gravity = float(np.linalg.norm(model.gravity.linear))
        capture = np.array([*capture_point(com[:2], data.vcom[0][:2], com[2] - height, gravity), height])
    contacts = [_contact(instant, k, sole, robot.weight) for k, sole in enumerate(robot.soles)]
    kinds, touching = tuple(kind for kind, _ in contacts), tuple(touches for _, touches in contacts)
    return DerivedState(data, soles, com, capture, height, kinds, touching)


def _contact(instant: Instant, k: int, sole: Sole, weight: float) -> tuple[str, Flags]:
    """Return the kind of the contact of foot ``k``, and its vertices in contact (N,)."""
    n = sole.n_vertices
    mode = -1 if instant.mode is None else int(instant.mode[k])
    if mode < 0:
        # A real robot reports no contact modes, so a loaded foot counts as in contact.
        force = np.nan if instant.wrench is None else float(instant.wrench[k, 2])
        down = force > CARRIES * weight
        return (UNKNOWN if np.isnan(force) else "face" if down else "in the air"), np.full(n, down)
    polygon = n if instant.n_vertices is None else int(instant.n_vertices[k]) or n
    kind, _ = mode_kind(mode, polygon)
    bits = -1 if instant.clamped is None else int(instant.clamped[k])
    # A foot partly beyond an edge of the ground has another contact polygon, whose corners are not those of the sole.
    if polygon != n or bits < 0:
        return kind, np.full(n, mode > 0)
    return kind, np.array([bool(bits >> i & 1) for i in range(n)])


def mode_text(instant: Instant, k: int, sole: Sole, kind: str) -> str:
    """Return the contact mode of foot ``k`` as a text, such as ``edge 0-1 slide``."""
    from bipedsim.contact import mode_name

    mode = -1 if instant.mode is None else int(instant.mode[k])
    if mode < 0:
        return {"face": "down", UNKNOWN: "not known"}.get(kind, kind)
    polygon = sole.n_vertices if instant.n_vertices is None else int(instant.n_vertices[k]) or sole.n_vertices
    sliding = instant.sliding is not None and bool(instant.sliding[k])
    return mode_name(mode, sliding, polygon) if mode > 0 else "in the air"
