"""What follows from an instant: where bodies, soles and CoM are, what touches the ground."""

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
"""Kind of the contact of a foot of which nobody knows whether it touches."""


@dataclass(frozen=True, eq=False)
class State:
    """What the scene needs beside the instant itself.

    Attributes:
        data: Of pinocchio, at its configuration.
        soles: Of each foot the sole in the world.
        com: (3,) [m].
        capture: (3,) the capture point, on the ground [m]; NaN without velocities.
        ground: Height of the ground below the CoM [m]; that of the lowest sole where there is none.
        kinds: Of each foot the kind of its contact mode, see :data:`bipedsim.view.plot_contact.MODE_COLOURS`;
            :data:`UNKNOWN` where neither mode nor force are known.
        touching: Of each foot which vertices touch (N,).
    """

    data: pin.Data
    soles: Sequence[pin.SE3]
    com: Array
    capture: Array
    ground: float
    kinds: tuple[str, ...]
    touching: tuple[Flags, ...]


def state_of(robot: Robot, ground: Ground, data: pin.Data, instant: Instant) -> State:
    """Return what follows from ``instant``, whose configuration is finite; ``data`` is overwritten."""
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
    return State(data, soles, com, capture, height, kinds, touching)


def _contact(instant: Instant, k: int, sole: Sole, weight: float) -> tuple[str, Flags]:
    """Return the kind of the contact of foot ``k``, and which of its vertices (N,) touch."""
    n = sole.n_vertices
    mode = -1 if instant.mode is None else int(instant.mode[k])
    if mode < 0:
        # A robot knows no modes: its foot is down where it carries.
        force = np.nan if instant.wrench is None else float(instant.wrench[k, 2])
        down = force > CARRIES * weight
        return (UNKNOWN if np.isnan(force) else "face" if down else "in the air"), np.full(n, down)
    polygon = n if instant.n_vertices is None else int(instant.n_vertices[k]) or n
    kind, _ = mode_kind(mode, polygon)
    bits = -1 if instant.clamped is None else int(instant.clamped[k])
    # A foot partly beyond an edge of the ground stands on another polygon, whose corners are not those of the sole.
    if polygon != n or bits < 0:
        return kind, np.full(n, mode > 0)
    return kind, np.array([bool(bits >> i & 1) for i in range(n)])


def mode_text(instant: Instant, k: int, sole: Sole, kind: str) -> str:
    """Return the contact mode of foot ``k`` in words, such as ``edge 0-1 slide``."""
    from bipedsim.contact import mode_name

    mode = -1 if instant.mode is None else int(instant.mode[k])
    if mode < 0:
        return {"face": "down", UNKNOWN: "not known"}.get(kind, kind)
    polygon = sole.n_vertices if instant.n_vertices is None else int(instant.n_vertices[k]) or sole.n_vertices
    sliding = instant.sliding is not None and bool(instant.sliding[k])
    return mode_name(mode, sliding, polygon) if mode > 0 else "in the air"
