"""Targets of the tasks of a walking robot in one tick: swing foot, CoM by feedback on the DCM, base."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.control.walking.body import BodyArrays, FootStates
from bipedsim.control.walking.dcm import DcmPlan, evaluate
from bipedsim.control.walking.kicking import POINTS, along_route
from bipedsim.control.walking.supervision import measured_zmp
from bipedsim.control.walking.swing import SwingStep, along_path, along_rise, bending, forward, height
from bipedsim.control.walking.whole_body import STANCE, TaskTargets
from bipedsim.model import Sole
from bipedsim.numerics import Array, Integers, clamp, entry, hull_corners, kernel, margin, quintic

APART = 1e-9
"""Minimum distance of two corners of the support polygon [m]."""


class SolePolygons(NamedTuple):
    """Contact polygons of the soles about their centres.

    Attributes:
        vertices: (2, N, 2) [m].
        counts: (2,) number of valid vertices.
        centres: (2, 2) centres of the soles in their own frames [m].
    """

    vertices: Array
    counts: Integers
    centres: Array

    @classmethod
    def of(cls, soles: Sequence[Sole], polygons: Sequence[Array]) -> SolePolygons:
        """Collect the usable ``polygons`` (N, 2) [m] of the two soles of a robot, each about the centre of its sole."""
        vertices = np.zeros((2, max(map(len, polygons)), 2))
        for row, polygon in zip(vertices, polygons, strict=True):
            row[: len(polygon)] = polygon
        return cls(vertices, np.array([len(polygon) for polygon in polygons]), np.array([s.centre for s in soles]))


class Reference(NamedTuple):
    """Results of a tick; the next tick overwrites them.

    Attributes:
        zmp, xi: (2,) planned ZMP and DCM [m].
        xi_now: (2,) measured DCM [m].
        zmp_goal: (2,) commanded ZMP of all forces [m].
        shift: (2,) part of zmp_goal beyond the ZMP of the pendulum [m].
        hull: (H, 2) support polygon.
        n: (1,) number of its corners; 0 in the air.
        corners: (N, 2) scratch.
        error: (1,) error of the DCM [m].
        zmp_now: (2,) measured ZMP [m].
        margin: (1,) distance of the measured ZMP from the edge [m], NaN if there is no ZMP.
    """

    zmp: Annotated[Array, 2]
    xi: Annotated[Array, 2]
    xi_now: Annotated[Array, 2]
    zmp_goal: Annotated[Array, 2]
    shift: Annotated[Array, 2]
    hull: Annotated[Array, "H", 2]
    n: Annotated[Integers, 1]
    corners: Annotated[Array, "N", 2]
    error: Annotated[Array, 1]
    zmp_now: Annotated[Array, 2]
    margin: Annotated[Array, 1]


class WalkArrays(NamedTuple):
    """Packed arguments and results of :func:`aim`; see the classes.

    Attributes:
        tilt: (3,) rotation vector [rad] from upright to the base at the start, in the axes of the base.
    """

    body: BodyArrays
    feet: FootStates
    goal: TaskTargets
    ref: Reference
    plan: DcmPlan
    step: SwingStep
    soles: SolePolygons
    tilt: Array
    law: WalkLaw


class WalkLaw(NamedTuple):
    """Constants of the control law; see the parameters of the controller."""

    omega: float
    dcm_gain: float
    edge: float
    height_stiffness: float
    height_damping: float
    step_height: float
    late_speed: float
    swing_inertia: float


class TickScalars(NamedTuple):
    """Scalars of the present tick.

    Attributes:
        t: Time [s].
        since: Time since lift-off of the swing foot [s].
        flying: The swing foot, or -1.
        height: Height of the CoM over the ground [m].
        before, after: Heights [m] of the ground under the feet between which the weight shifts.
        share: Progress of the shift, 0 to 1.
        rate, bend: Derivatives of the share [1/s], [1/s^2], on a map of the ground.
        tilted: Remaining share of the tilt at the start, 1 to 0.
        counter: Weight of the counter-swing of arms and waist, 0 to 1.
        least: Minimum force on the soles [N] for a ZMP.
    """

    t: float
    since: float
    flying: int
    height: float
    before: float
    after: float
    share: float
    rate: float
    bend: float
    tilted: float
    counter: float
    least: float


@kernel
def turn(R, x, y, z, share) -> None:  # type: ignore[no-untyped-def]
    """Rotate R (3, 3) in place by ``share`` of the rotation vector (x, y, z) [rad] in world axes."""
    angle = math.sqrt(x * x + y * y + z * z)
    if angle < 1e-12:
        return
    x /= angle
    y /= angle
    z /= angle
    c = math.cos(share * angle)
    s = math.sin(share * angle)
    for k in range(3):
        r0 = R[0, k]
        r1 = R[1, k]
        r2 = R[2, k]
        along = (1.0 - c) * (x * r0 + y * r1 + z * r2)
        R[0, k] = c * r0 + s * (y * r2 - z * r1) + along * x
        R[1, k] = c * r1 + s * (z * r0 - x * r2) + along * y
        R[2, k] = c * r2 + s * (x * r1 - y * r0) + along * z


@kernel
def _swing(step: SwingStep, law: WalkLaw, since, goal: TaskTargets, k) -> None:  # type: ignore[no-untyped-def]
    """Fill the target of the swing foot ``k``; after the planned touchdown it continues downwards."""
    time = step.time[0]
    x, v, a = forward(since, time, step.window[0], step.window[1])
    for i in range(2):
        distance = step.land_p[i] - step.start_p[i]
        goal.p[k, i] = step.start_p[i] + x * distance
        goal.twist[k, i] = v * distance
        goal.acceleration[k, i] = a * distance
    if step.path_time[1] > 0.0:
        late = since - step.path_time[0]
        along_path(step.path, late, step.path_time[1], goal.p[k], goal.twist[k], goal.acceleration[k])
    top = max(step.start_p[2], step.land_p[2]) + law.step_height + step.lift[0]
    z, vz, az = height(since, time, step.start_p[2], top, step.land_p[2], step.window[2], step.window[3])
    if step.retimed[0]:
        late = since - step.path_time[0]
        x, v, a = quintic(late, step.path_time[1])
        z, vz, az = along_rise(step.rise, late, step.path_time[1])
    goal.p[k, 2] = z
    goal.twist[k, 2] = vz
    goal.acceleration[k, 2] = az
    if step.route[POINTS - 1, 0] > 0.0:
        along_route(step.route, since, goal.p[k], goal.twist[k], goal.acceleration[k])
        for i in range(3):
            goal.p[k, i] += step.start_p[i]
    if since > time:
        goal.p[k, 2] -= law.late_speed * (since - time)
        goal.twist[k, 2] = -law.late_speed
    for i in range(3):
        for j in range(3):
            goal.R[k, i, j] = step.start_R[i, j]
    turn(goal.R[k], step.turn[0], step.turn[1], step.turn[2], x)
    for i in range(3):
        goal.twist[k, 3 + i] = v * step.turn[i]
        goal.acceleration[k, 3 + i] = a * step.turn[i]


@kernel
def _base(feet: FootStates, goal: TaskTargets, tilt, now: TickScalars) -> None:  # type: ignore[no-untyped-def]
    """Fill the target of the base: upright, heading between the feet, blended from its tilt at the start."""
    first = goal.R[0] if now.flying == 0 else feet.R[0]
    second = goal.R[1] if now.flying == 1 else feet.R[1]
    yaw = math.atan2(first[1, 0], first[0, 0])
    apart = math.atan2(second[1, 0], second[0, 0]) - yaw
    heading = yaw + 0.5 * math.atan2(math.sin(apart), math.cos(apart))
    c = math.cos(heading)
    s = math.sin(heading)
    R = goal.R_base
    R[0, 0], R[0, 1], R[0, 2] = c, -s, 0.0
    R[1, 0], R[1, 1], R[1, 2] = s, c, 0.0
    R[2, 0], R[2, 1], R[2, 2] = 0.0, 0.0, 1.0
    turn(R, c * tilt[0] - s * tilt[1], s * tilt[0] + c * tilt[1], tilt[2], now.tilted)
    goal.w_base[0] = 0.0
    goal.w_base[1] = 0.0
    goal.w_base[2] = 0.5 * goal.twist[now.flying, 5] if now.flying >= 0 else 0.0


@kernel
def _support(feet: FootStates, goal: TaskTargets, soles: SolePolygons, ref: Reference) -> None:
    """Fill the support polygon of the stance feet, projected onto the horizontal plane."""
    n = 0
    for k in range(soles.counts.shape[0]):
        if goal.foot[k] == STANCE:
            for i in range(soles.counts[k]):
                for x in range(2):
                    along = feet.R[k, x, 0] * soles.vertices[k, i, 0] + feet.R[k, x, 1] * soles.vertices[k, i, 1]
                    ref.corners[n, x] = feet.p[k, x] + along
                n += 1
    ref.n[0] = hull_corners(ref.corners, n, APART, ref.hull) if n else 0


@entry
def aim(walk, wrench, numbers):  # type: ignore[no-untyped-def]
    """Fill ``goal`` and ``ref`` for one tick, and measure the ZMP; ``goal.foot`` defines the stance feet.

    The commanded ZMP is p + (1 + k) (xi - xi_ref), shifted for the swing leg and clamped to the support polygon. The
    pendulum gives the acceleration of the CoM for it.

    Args:
        walk: A boxed :class:`WalkArrays`.
        wrench: (K, 6) ground reaction on the soles, in their frames at their origins.
        numbers: (12,) the fields of :class:`TickScalars`.
    """
    w = walk.arrays
    body, feet, goal, ref, step, law = w.body, w.feet, w.goal, w.ref, w.step, w.law
    t, since, flying, height, before, after, share, rate, bend, tilted, counter, least = numbers
    now = TickScalars(t, since, int(flying), height, before, after, share, rate, bend, tilted, counter, least)
    evaluate(w.plan, law.omega, now.t, ref.zmp, ref.xi)
    if now.flying >= 0:
        _swing(step, law, now.since, goal, now.flying)
    _base(feet, goal, w.tilt, now)
    goal.pivot[:] = ref.zmp
    goal.counter[0] = now.counter
    _support(feet, goal, w.soles, ref)
    bent = bending(now.since, step.time[0], step.window[0], step.window[1]) if now.flying >= 0 else 0.0
    for i in range(2):
        shift = law.swing_inertia * goal.acceleration[now.flying, i] + bent * step.knee[i] if now.flying >= 0 else 0.0
        ref.shift[i] = shift
        ref.xi_now[i] = body.com[i] + feet.v_com[i] / law.omega
        ref.zmp_goal[i] = ref.zmp[i] + (1.0 + law.dcm_gain) * (ref.xi_now[i] - ref.xi[i]) + shift
    ref.error[0] = math.hypot(ref.xi_now[0] - ref.xi[0], ref.xi_now[1] - ref.xi[1])
    if ref.n[0]:
        clamp(ref.hull, ref.n[0], law.edge, ref.zmp_goal)
    # The height of the CoM refers to the plane of the ground through the planned ZMP.
    z = now.before + now.share * (now.after - now.before) + now.height
    rise = now.rate * (now.after - now.before)
    for i in range(2):
        goal.com[i] = law.omega * law.omega * (body.com[i] - (ref.zmp_goal[i] - ref.shift[i]))
        z -= step.normal[i] * (body.com[i] - ref.zmp[i]) / step.normal[2]
        rise -= step.normal[i] * feet.v_com[i] / step.normal[2]
    goal.com[2] = law.height_stiffness * (z - body.com[2]) + law.height_damping * (rise - feet.v_com[2])
    goal.com[2] += now.bend * (now.after - now.before)
    ref.margin[0] = math.nan
    if ref.n[0] and measured_zmp(feet, wrench, w.soles.centres, now.least, ref.zmp_now):
        ref.margin[0] = margin(ref.hull, ref.n[0], ref.zmp_now[0], ref.zmp_now[1])
