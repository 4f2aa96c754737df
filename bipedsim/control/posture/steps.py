"""A slow gait: paths of the CoM and the feet over time, for the postures of mode ``steps``.

Phases alternate. In double support the centre of pressure moves from one foot to the other. In single support it stays
under the middle of the stance foot while the other foot makes its step.

The height of the CoM is constant. The CoM therefore obeys the linear inverted pendulum x'' = g / z (x - p) with the
planned centre of pressure p. The angular momentum of the limbs about the CoM shifts p; a second pass corrects for it
(Kajita et al. 2003).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin
import scipy  # it imports its submodules at their first use

from bipedsim.control.posture.motions import STEPS, PostureMotion, TimeLawParams
from bipedsim.errors import ConfigError
from bipedsim.model import Chains, Robot, reach, sole_placements
from bipedsim.numerics import Array, Integers, quintic

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

PHASE_KNOTS = 16
"""Number of postures solved per phase."""
PENDULUM_STEP = 2e-3
"""Largest grid step [s] of the pendulum's boundary value problem; its error is of second order."""
FORWARD = (0.1, 0.85)
"""Shares of single support between which the foot moves forward, so that it leaves and meets the ground vertically."""
LENGTH, HEIGHT = 0.2, 0.06
"""Default length and height of a step as shares of the CoM's height, which is about the length of the legs."""


@dataclass(frozen=True)
class Gait:
    """Describe a gait: each step moves a foot ``step_length`` beyond the other; the last one closes the stance.

    Attributes:
        n_steps: Number of steps, the right foot first; the robot advances by (n_steps - 1) step_length.
        step_length, step_height: Length and height of a step [m].
        step_duration, step_shift: Times of single and double support [s]. The first double support, from rest, and the
            last one, to rest, take twice as long.
        touch_down_speed: Downward velocity of the foot at touchdown [m/s].
    """

    n_steps: int
    step_length: float
    step_height: float
    step_duration: float
    step_shift: float
    touch_down_speed: float

    @property
    def n_phases(self) -> int:
        """Number of phases: a double support before every step and one after the last."""
        return 2 * self.n_steps + 1

    @property
    def ends(self) -> Array:
        """(n_phases + 1,) times at which phases begin and end [s]."""
        lengths = [self.step_duration if k % 2 else self.step_shift for k in range(self.n_phases)]
        lengths[0] = lengths[-1] = 2.0 * self.step_shift
        return np.concatenate([[0.0], np.cumsum(lengths)])

    @property
    def times(self) -> Array:
        """(n_phases PHASE_KNOTS + 1,) knots [s], the same number in every phase."""
        ends = self.ends
        return np.asarray(np.interp(np.arange(self.n_phases * PHASE_KNOTS + 1) / PHASE_KNOTS, range(len(ends)), ends))

    def phase(self, t: Array) -> tuple[Integers, Array]:
        """Return the phases (n,) at times ``t`` (n,) [s] >= 0, and the elapsed share of each phase, from 0 to 1."""
        s = np.interp(t, self.ends, np.arange(self.n_phases + 1))
        k = np.minimum(s.astype(np.int64), self.n_phases - 1)
        return k, s - k

    def displacements(self, first: int) -> Array:
        """Return (n_phases + 1, 2) how far the feet are ahead at the phase boundaries [m]; foot ``first`` begins."""
        ahead = np.zeros((self.n_phases + 1, 2))
        for step in range(self.n_steps):
            moving = (first + step) % 2
            lead = self.step_length if step < self.n_steps - 1 else 0.0
            ahead[2 * step + 2 :, moving] = ahead[2 * step + 1, 1 - moving] + lead
        return ahead


@dataclass(frozen=True, eq=False)
class GaitPlan:
    """Targets that the postures of a gait must meet at its knots.

    Attributes:
        times: (n,) knots [s].
        com: (n, 3) CoM in the world [m].
        feet: Poses of both soles in the world at each of the n knots.
        share: (n,) share of the weight on the second foot of the robot.
    """

    times: Array
    com: Array
    feet: list[list[pin.SE3]]
    share: Array


def rest_to_rest(x: Array) -> Array:
    """Evaluate the quintic from 0 to 1, at rest at both ends, at shares ``x`` of its time."""
    return np.array([quintic(share, 1.0)[0] for share in x])


def swing(gait: Gait, x: Array) -> tuple[Array, Array]:
    """Return the progress of the swing foot, from 0 to 1, and its height [m], at shares ``x`` of single support.

    The height is one quintic up and one down, at rest at the top. The second one ends with the touchdown velocity.
    """
    begin, end = FORWARD
    down = np.clip(2.0 * x - 1.0, 0.0, 1.0)
    bump = down**3 * (4.0 + down * (-7.0 + 3.0 * down))
    height = gait.step_height * rest_to_rest(2.0 * x) * (1.0 - rest_to_rest(down))
    return rest_to_rest((x - begin) / (end - begin)), height + 0.5 * gait.step_duration * gait.touch_down_speed * bump


def pendulum(times: Array, p: Array, omega: float) -> Array:
    """Solve x'' = omega^2 (x - p) for x (n, 2), with x = p at both ends.

    Args:
        times: (n,) equidistant [s].
        p: (n, 2) centre of pressure [m].
        omega: sqrt(g / z) [1/s].
    """
    h = times[1] - times[0]
    n = len(times)
    k = (omega * h) ** 2
    bands = np.vstack([np.full(n, 1.0), np.full(n, -2.0 - k), np.full(n, 1.0)])
    bands[1, [0, -1]] = 1.0
    bands[0, 1] = bands[2, -2] = 0.0
    right = -k * p
    right[[0, -1]] = p[[0, -1]]
    return np.asarray(scipy.linalg.solve_banded((1, 1), bands, right))


def _from_rest_to_rest(gait: Gait, under: Array, com: Array, stop: Array, omega: float, beyond: Array) -> PPoly:
    """Plan the horizontal path of the CoM over time.

    Args:
        gait: The gait.
        under: (n_steps, 2) middle of the stance foot of each step [m].
        com, stop: (2,) CoM at rest at the beginning and the end [m].
        omega: sqrt(g / z) [1/s].
        beyond: See :func:`plan`.
    """
    begin, end = gait.ends[1], gait.ends[-2]
    grid = np.linspace(begin, end, int(np.ceil((end - begin) / PENDULUM_STEP)) + 1)
    k, x = gait.phase(grid)
    before, after = np.maximum((k - 1) // 2, 0), np.minimum(k // 2, gait.n_steps - 1)
    p = under[before] + np.where(k % 2 == 0, rest_to_rest(x), 0.0)[:, None] * (under[after] - under[before])
    p -= np.column_stack([np.interp(grid, gait.times, column) for column in beyond.T])
    middle = scipy.interpolate.CubicSpline(grid, pendulum(grid, p, omega))
    # Quintics lead to the pendulum motion and back to rest; their centre of pressure stays between the feet.
    still = np.zeros(2)
    ends = ([com, still, still], [middle(begin, i) for i in range(3)], [middle(end, i) for i in range(3)])
    first = scipy.interpolate.BPoly.from_derivatives([0.0, begin], ends[:2])
    last = scipy.interpolate.BPoly.from_derivatives([end, gait.ends[-1]], [ends[2], [stop, still, still]])
    path = scipy.interpolate.PPoly.from_bernstein_basis(first)
    degree = len(path.c)
    cubics = np.concatenate([np.zeros((degree - 4, *middle.c.shape[1:])), middle.c])
    path.extend(cubics, grid[1:])
    path.extend(scipy.interpolate.PPoly.from_bernstein_basis(last).c, gait.ends[-1:])
    return path


def plan(gait: Gait, soles: Sequence[pin.SE3], centres: Array, com: Array, g: float, beyond: Array) -> GaitPlan:
    """Plan the gait of a robot that stands with its CoM over the middle between its feet, heading along x.

    Args:
        gait: The gait.
        soles: Poses of the two soles in the world.
        centres: (2, 3) centres of the soles in the world [m].
        com: (3,) CoM in the world [m].
        g: Gravity [m/s^2].
        beyond: (n, 2) shift of the centre of pressure at the knots [m], from :func:`limb_inertia` for the postures of
            this gait; 0 in the first pass.
    """
    first = int(np.argmin(centres[:, 1]))
    ahead = gait.displacements(first)
    stance_feet = [(first + step + 1) % 2 for step in range(gait.n_steps)]
    under = np.array([centres[foot, :2] + (ahead[2 * step + 1, foot], 0.0) for step, foot in enumerate(stance_feet)])
    stop = np.array([com[0] + ahead[-1].mean(), com[1]])
    path = _from_rest_to_rest(gait, under, com[:2], stop, np.sqrt(g / com[2]), beyond)
    times = gait.times
    xy = path(times)
    p = xy - path(times, 2) * com[2] / g + beyond
    index, x = gait.phase(times)
    progress, height = swing(gait, x)
    feet, share = [], np.zeros(len(times))
    for i, k in enumerate(index):
        offset = np.zeros((2, 3))
        offset[:, 0] = ahead[k]
        if k % 2:
            offset[:, 0] += progress[i] * (ahead[k + 1] - ahead[k])
            offset[(first + k // 2) % 2, 2] = height[i]
            share[i] = stance_feet[k // 2]
        else:
            line = (centres[1] + offset[1] - centres[0] - offset[0])[:2]
            share[i] = np.clip((p[i] - centres[0, :2] - offset[0, :2]) @ line / (line @ line), 0.0, 1.0)
        feet.append([pin.SE3(m.rotation, m.translation + d) for m, d in zip(soles, offset, strict=True)])
    return GaitPlan(times, np.column_stack([xy, np.full(len(times), com[2])]), feet, share)


def splines(gait: Gait, columns: Array) -> PPoly:
    """Fit cubics over time through ``columns`` (n, m) at the knots.

    Each touchdown ends one spline and begins the next, because velocities jump there. The motion begins and ends at
    rest.
    """
    times = gait.times
    cuts = [0, *(k * PHASE_KNOTS for k in range(2, gait.n_phases, 2)), len(times) - 1]
    pieces = []
    at_rest = (1, np.zeros(columns.shape[1]))
    for a, b in pairwise(cuts):
        ends = (at_rest if a == 0 else "not-a-knot", at_rest if b == cuts[-1] else "not-a-knot")
        pieces.append(scipy.interpolate.CubicSpline(times[a : b + 1], columns[a : b + 1], bc_type=ends).c)
    return scipy.interpolate.PPoly(np.concatenate(pieces, axis=1), times)


def coefficients(gait: Gait, columns: Array) -> Array:
    """Return the :func:`splines` (4, n - 1, m) over the phase, which grows by 1 per phase, instead of time."""
    per_time = splines(gait, columns).c
    length = np.repeat(np.diff(gait.ends), PHASE_KNOTS)
    return np.ascontiguousarray(per_time * length[:, None] ** np.arange(3, -1, -1)[:, None, None])


def limb_inertia(robot: Robot, gait: Gait, postures: Array, share: Array) -> tuple[Array, Array]:
    """Return torques and CoP shift that the motion of the limbs relative to the CoM adds to the pendulum's forces.

    If all bodies had the acceleration of the CoM, the forces would be those of statics in a tilted gravity. The
    remaining inverse dynamics is a moment L' on the whole robot, and torques. The feet share the moment as they share
    the weight. In closed kinematic chains the drives also apply the torques of the passive joints.

    Args:
        robot: The robot.
        gait: Its gait.
        postures: (n, nq) at the knots.
        share: (n,) share of the weight on the second foot.

    Returns:
        (n, nu) joint torques [N.m], and (n, 2) shift of the centre of pressure from the pendulum's [m].
    """
    model = pin.Model(robot.model)
    model.gravity.linear = np.zeros(3)
    data = model.createData()
    chains = Chains(robot) if robot.loops else None
    moving = np.arange(6, model.nv) if chains else robot.idx_v
    path = splines(gait, postures[:, 7:] if chains else postures[:, robot.idx_q])
    velocities, accelerations = path(gait.times, 1), path(gait.times, 2)
    torques, beyond = np.zeros((len(postures), robot.nu)), np.zeros((len(postures), 2))
    v, a = np.zeros(model.nv), np.zeros(model.nv)
    for i, q in enumerate(postures):
        # The foot with the larger load does not move, which determines the motion of the base.
        ankle = robot.soles[int(share[i] > 0.5)].joint_id
        v[:6] = a[:6] = 0.0
        v[moving] = velocities[i]
        rows = pin.computeJointJacobian(model, data, q, ankle)
        v[:6] = -np.linalg.solve(rows[:, :6], rows @ v)
        a[moving] = 0.0
        pin.forwardKinematics(model, data, q, v, a)
        drift = data.a[ankle].vector.copy()
        a[moving] = accelerations[i]
        a[:6] = -np.linalg.solve(rows[:, :6], rows @ a + drift)
        pin.centerOfMass(model, data, q, v, a)
        uniform = np.zeros(model.nv)
        base = pin.XYZQUATToSE3(q[:7]).rotation
        uniform[:3] = base.T @ data.acom[0]
        residual = pin.rnea(model, data, q, v, a).copy() - pin.rnea(model, data, q, np.zeros(model.nv), uniform)
        moment = base @ residual[3:6]
        for sole, foot_share in zip(robot.soles, (1.0 - share[i], share[i]), strict=True):
            rows = pin.computeJointJacobian(model, data, q, sole.joint_id)
            residual -= foot_share * rows[3:].T @ (data.oMi[sole.joint_id].rotation.T @ moment)
        if chains:
            chains.follow(q[robot.idx_q], np.zeros(robot.nu))
            chains.carry(residual)
        torques[i] = residual[robot.idx_v]
        beyond[i] = np.array([-moment[1], moment[0]]) / robot.weight
    return torques, beyond


def steps(robot: Robot, goal: Array, gait: Gait, delay: float, ramp: float) -> PostureMotion:
    """Plan the motion that takes steps from standing with the joints at ``goal`` (nu,).

    Args:
        robot: The robot, with two feet.
        goal: Standing posture [rad].
        gait: Its gait; a length or height of 0 selects the default.
        delay, ramp: Delay and ramp of the motion [s].

    Raises:
        ConfigError: The robot does not have two feet, or cannot take one of the postures.
    """
    if len(robot.soles) != 2:
        raise ConfigError(f"two feet are needed, {robot.name!r} has {len(robot.soles)}", "posture: steps")
    q = robot.settle(goal)
    data = robot.model.createData()
    com = pin.centerOfMass(robot.model, data, q).copy()
    soles = [pin.SE3(m) for m in sole_placements(robot.model, data, robot.soles, q)]
    centres = np.array([m.act(np.append(s.centre, 0.0)) for m, s in zip(soles, robot.soles, strict=True)])
    length, height = gait.step_length or LENGTH * com[2], gait.step_height or HEIGHT * com[2]
    gait = replace(gait, step_length=length, step_height=height)
    beyond = np.zeros((len(gait.times), 2))
    for _ in range(2):
        planned = plan(gait, soles, centres, com, robot.weight / robot.mass, beyond)
        postures = np.array(reach(robot.model, robot.soles, q, planned.com, planned.feet, loops=robot.loops))
        if len(postures) < len(planned.times):
            raise ConfigError(
                f"more than {robot.name} can within joint limits, from {planned.times[len(postures)]:.2f} s on; "
                "take shorter or lower steps",
                f"posture: step_length = {length:.3g} m and step_height = {height:.3g} m",
            )
        torques, beyond = limb_inertia(robot, gait, postures, planned.share)
    columns = np.column_stack([postures[:, robot.idx_q], planned.com[:, :2], planned.share, torques])
    knots = np.arange(len(planned.times)) / PHASE_KNOTS
    numbers = TimeLawParams(float(gait.n_phases), gait.step_shift, delay, ramp, gait.step_duration)
    return PostureMotion(STEPS, numbers, knots, coefficients(gait, columns), columns[0, : robot.nu])
