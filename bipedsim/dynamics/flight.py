"""Free flight: what no force from outside changes stays as it is, and the centre of mass follows its parabola.

A semi-implicit step keeps neither: velocities are those of the base and the joints, whose sum of momenta goes with the
configuration, and positions go with the velocity at the end of the step. After a step in which no foot carries, the
robot as a whole is therefore given the velocity and the place that its momentum demands; its posture and how that
changes are left alone.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.dynamics.tree import Tree
from bipedsim.model import Robot
from bipedsim.numerics import (
    Array,
    Box,
    Flags,
    assign,
    box,
    cross,
    entry,
    from_quaternion,
    kernel,
    mul,
    mul_t,
    solve_cholesky,
    zeros_of,
)


class Flight(NamedTuple):
    """A robot that may fly.

    Attributes:
        aloft: (1,) whether no foot carried in the last step.
        free: Whether it has a free-flyer. slides: (n,) gravity along the prismatic joints that carry all of a robot
            that has none [m/s^2]; these go along the parabola, and their momentum is their velocity.
        mass: Of the robot [kg]. com: (3,) its centre of mass in the world where the step begins [m].
        R: (3, 3) axes of its base in the world, as columns.
        momentum, spin: (3,) wanted momentum [N.s] and angular momentum about the centre of mass [N.m.s], in the world.
        place: (3,) where the centre of mass is wanted [m].
        inertia, factor: (3, 3) of the robot about its centre of mass, in the world [kg.m^2], work.
        error, turn: (3,) by how much the spin is off, and what mends it [rad/s].
    """

    aloft: Annotated[Flags, 1]
    free: bool
    slides: Array
    mass: float
    com: Array
    R: Annotated[Array, 3, 3]
    momentum: Annotated[Array, 3]
    spin: Annotated[Array, 3]
    place: Annotated[Array, 3]
    inertia: Annotated[Array, 3, 3]
    factor: Annotated[Array, 3, 3]
    error: Annotated[Array, 3]
    turn: Annotated[Array, 3]


@kernel
def look_ahead(f: Flight, t: Tree, v: Array) -> None:
    """Fill what is wanted at the end of the step that begins with ``v``, from what acts from outside.

    With the mass matrix M of a free-flyer, the first six of M v are the momentum and that about the origin of the base,
    in its axes; so are the first six of the push, its wrench.
    """
    if not f.free:
        return
    h = t.h
    pose = t.poses[1]
    for a in range(3):
        linear = angular = 0.0
        for i in range(v.shape[0]):
            linear += (t.M_rows[i, a] if i > a else t.M_rows[a, i]) * v[i]
            angular += (t.M_rows[i, 3 + a] if i > 3 + a else t.M_rows[3 + a, i]) * v[i]
        f.momentum[a] = linear
        f.spin[a] = angular
        for b in range(3):
            f.R[b, a] = pose[3 * a + b]
    assign(f.momentum, mul(f.R, f.momentum))
    assign(f.spin, mul(f.R, f.spin))
    arm = (f.com[0] - pose[9], f.com[1] - pose[10], f.com[2] - pose[11])
    moment = cross(arm, f.momentum)
    force = mul(f.R, t.push)
    torque = mul(f.R, t.push[3:])
    of_force = cross(arm, force)
    for a in range(3):
        rate = f.mass * t.gravity[a] + force[a]
        f.place[a] = f.com[a] + h / f.mass * (f.momentum[a] + 0.5 * h * rate)
        f.momentum[a] += h * rate
        f.spin[a] += h * (torque[a] - of_force[a]) - moment[a]


@kernel
def slide(f: Flight, t: Tree) -> None:
    """Have the way of a semi-implicit step follow the parabola where prismatic joints carry the robot."""
    for i in range(f.slides.shape[0]):
        t.step[i] -= 0.5 * t.h * t.h * (f.slides[i] + t.push[i] / f.mass)


@entry
def _correct(boxed: Any, q: Array, v: Array, com: Array, momentum: Array, tree: Any) -> None:
    """Move the robot at (q, v) as a whole to the wanted place and velocity.

    Args:
        boxed: Of :class:`Flight`, ``inertia`` filled.
        q, v: (nq,), (nv,) at the end of the step; changed in place.
        com: (3,) centre of mass at q [m].
        momentum: (6,) that of v about it: linear, angular, in the world.
        tree: Of :class:`Tree`; its acceleration is what an IMU feels, and goes with the velocity.
    """
    f = boxed.arrays
    t = tree.arrays
    for a in range(3):
        f.error[a] = f.spin[a] - momentum[3 + a]
    if not solve_cholesky(f.inertia, f.error, 3, f.factor, f.turn):
        f.turn[:] = 0.0
    swing = cross(f.turn, (q[0] - com[0], q[1] - com[1], q[2] - com[2]))
    shift = (
        swing[0] + (f.momentum[0] - momentum[0]) / f.mass,
        swing[1] + (f.momentum[1] - momentum[1]) / f.mass,
        swing[2] + (f.momentum[2] - momentum[2]) / f.mass,
    )
    from_quaternion(q[3:7], f.R)
    linear = mul_t(f.R, shift)
    angular = mul_t(f.R, f.turn)
    for a in range(3):
        v[a] += linear[a]
        v[3 + a] += angular[a]
        t.acceleration[a] += linear[a] / t.h
        t.acceleration[3 + a] += angular[a] / t.h
        q[a] += f.place[a] - com[a]


class Momentum:
    """Keeps the momentum of a robot in flight.

    Args:
        robot: The robot. tree: The joint side of its steps. com: (3,) its centre of mass where a step begins [m], live.

    Attributes:
        flight: What a step fills for it.
    """

    def __init__(self, robot: Robot, tree: Tree, com: Array) -> None:
        self._model = model = robot.model
        self._data = model.createData()
        slides = [] if robot.free_flyer else _slides(robot)
        mass = pin.computeTotalMass(model)
        self.flight: Flight = zeros_of(Flight, {}, free=robot.free_flyer, slides=np.array(slides), mass=mass, com=com)
        self._boxed: Box = box(self.flight)
        self._tree: Box = box(tree)

    def correct(self, q: Array, v: Array) -> None:
        """Correct the end (q, v) of a step in place: (nq,), (nv,)."""
        data = self._data
        pin.ccrba(self._model, data, q, v)
        np.copyto(self.flight.inertia, data.Ig.inertia)
        _correct(self._boxed, q, v, data.com[0], data.hg.vector, self._tree)


def _slides(robot: Robot) -> list[float]:
    """Return gravity along the free prismatic joints one after the other from the root, before anything else moves."""
    model = robot.model
    data = model.createData()
    J = pin.computeJointJacobians(model, data, pin.neutral(model)).reshape(6, model.nv)
    along: list[float] = []
    for joint in range(1, model.njoints):
        i = len(along)
        held = i in robot.idx_v or robot.joint_damping[i] != 0.0
        if held or model.nvs[joint] != 1 or model.parents[joint] != joint - 1 or J[3:, i].any():
            break
        along.append(float(J[:3, i] @ model.gravity.linear))
    return along
