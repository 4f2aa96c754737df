"""Define the data that the page shows at one instant, from any source: recording, simulator or topics of a robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from bipedsim.numerics import Array, Flags, Integers
from bipedsim.recording import Plan


@dataclass(frozen=True, eq=False)
class Pushed:
    """External force on the robot.

    Attributes:
        force: (3,) force in the world frame [N].
        point: (3,) point of action in the world frame [m]; None for the origin of ``frame``.
        frame: URDF frame on which the force acts; empty for the root link.
    """

    force: Array
    point: Array | None = None
    frame: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Instant:
    """State of a robot with nu joints and K feet at one time.

    Only ``t`` and ``q`` are required. Unknown values are None, or NaN for parts of an array. A real robot provides only
    joint states, IMU, ankle wrenches and the odometry of its controller.

    Attributes:
        t: Time [s].
        q: (nq,) configuration of the pinocchio model; NaN hides the robot.
        v: (nv,) velocities of the model; without them there is no capture point.
        wrench: (K, 6) of the ground on the foot at the sole's origin, in the sole frame [N, N.m].
        cop: (K, 2) in the sole frame [m]; NaN in the air.
        mode: (K,) contact mode (``contact/modes.py``); -1 if unknown.
        clamped: (K,) bit mask of the vertices in contact; -1 if unknown.
        sliding: (K,) whether friction is dynamic.
        cop_margin: (K,) distance of the CoP from the nearest edge [m], positive inside.
        friction_used: (K,) tangential force over mu f_z.
        n_vertices: (K,) number of vertices of the polygon to which modes and bits refer.
        vertex_forces: For each foot the forces at its vertices (N, 3) in the sole frame [N].
        joint_position, joint_velocity, joint_effort, joint_command: (nu,) measurements [rad, rad/s, N.m], and commanded
            torque [N.m].
        body_forces: (nu + 1, 3) total contact force on the root body, without its soles, and on the bodies that the
            joints move, in the world frame [N]; NaN without a contact.
        objects: Name of a free object to its pose in the world (7,).
        push: External forces.
        plan: Plan of the controller.
        readouts: Telemetry of the controller.
        estimated: Whether the base pose is the controller's estimate and not the ground truth.
        notes: Notes on this instant for the user, such as ``"fallen"``.
    """

    t: float
    q: Array
    v: Array | None = None
    wrench: Array | None = None
    cop: Array | None = None
    mode: Integers | None = None
    clamped: Integers | None = None
    sliding: Flags | None = None
    cop_margin: Array | None = None
    friction_used: Array | None = None
    n_vertices: Integers | None = None
    vertex_forces: tuple[Array, ...] | None = None
    joint_position: Array | None = None
    joint_velocity: Array | None = None
    joint_effort: Array | None = None
    joint_command: Array | None = None
    body_forces: Array | None = None
    objects: Mapping[str, Array] = field(default_factory=dict)
    push: tuple[Pushed, ...] = ()
    plan: Plan | None = None
    readouts: Mapping[str, float] = field(default_factory=dict)
    estimated: bool = False
    notes: tuple[str, ...] = ()

    @property
    def placed(self) -> bool:
        """Whether the robot can be drawn."""
        return bool(np.isfinite(self.q).all())
