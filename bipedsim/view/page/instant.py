"""What the page shows at one instant, wherever it comes from: a recording, a simulator, the topics of a robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from bipedsim.numerics import Array, Flags, Integers
from bipedsim.recording import Plan


@dataclass(frozen=True, eq=False)
class Pushed:
    """A force from outside that acts on the robot.

    Attributes:
        force: (3,) in the world [N].
        point: (3,) where it acts in the world [m]; None: at the origin of ``frame``.
        frame: Frame of the URDF that is pushed; empty: the root link.
    """

    force: Array
    point: Array | None = None
    frame: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Instant:
    """A robot with nu joints and K feet at one time.

    Only ``t`` and ``q`` are needed; what is not known is None, or NaN where a part of an array is. A robot that keeps
    the contract knows joints, IMU, ankle wrenches and the odometry of its controller, and nothing else.

    Attributes:
        t: Time [s].
        q: (nq,) configuration of pinocchio's model; NaN hides the robot.
        v: (nv,) velocities of it; without them there is no capture point.
        wrench: (K, 6) of the ground on the foot at the sole's origin, in the sole frame [N, N.m].
        cop: (K, 2) in the sole frame [m]; NaN in the air.
        mode: (K,) contact mode (``contact/modes.py``); -1: not known.
        clamped: (K,) bits, one a vertex; -1: not known.
        sliding: (K,) whether friction is dynamic.
        cop_margin: (K,) of the CoP to the nearest edge [m], positive inside.
        friction_used: (K,) force along the ground over mu f_z.
        n_vertices: (K,) of the polygon that modes and bits refer to.
        vertex_forces: Of each foot the forces at its vertices (N, 3) in the sole frame [N].
        joint_position, joint_velocity, joint_effort, joint_command: (nu,) measured [rad, rad/s, N.m], and the torque
            that was asked for [N.m].
        body_forces: (nu + 1, 3) of all that touches the body of the root, soles aside, and those that the joints move,
            in the world [N]; NaN where nothing does.
        objects: Name of a free object to its pose in the world (7,).
        push: Forces from outside.
        plan: What the controller intends.
        readouts: What the controller shows.
        estimated: Whether the base is where the controller took it to be, and not where it was.
        notes: What a reader should know of this instant, such as ``"fallen"``.
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
