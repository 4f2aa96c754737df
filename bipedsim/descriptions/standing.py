"""Find a standing posture: knees bent, soles flat, CoM above the soles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from bipedsim.descriptions.description import GRAVITY
from bipedsim.descriptions.legs import ALONG, Leg, PosedRobot
from bipedsim.descriptions.notes import Notes
from bipedsim.model import (
    Loop,
    LoopEquations,
    Sole,
    effort_and_velocity_limits,
    place_base,
    sole_placements,
    stand,
    stand_apart,
    stand_upright,
)
from bipedsim.numerics import Array, Indices

REACH = (0.965, 0.985, 0.94, 0.995, 0.9)
"""Ratios of hip-ankle distance to leg length, in order of trial; the first bends a knee by 30 degrees. Weak knees are
bent less."""
ANGLES = 2001
"""Number of knee angles to evaluate."""
INSIDE = 1e-6
"""Distance from the joint limits at which a search starts [rad]."""
LEVEL = 0.01
"""Tilt below which a trunk counts as upright [rad]."""
SHUT = 1e-9
"""Position error below which a loop is closed [m]."""
BELOW_HIP = 0.25
"""Distance from the top of a leg at which its first pitch joint is no hip, as a fraction of the leg length."""
STRAIGHT = 0.05
"""Largest angle between the heading of a sole and straight ahead in a regular posture [rad]."""
WIDER = 0.25
"""Largest change of the distance between the soles in a regular posture, as a fraction."""
CLEAR = 0.01
"""Minimum lateral distance between the edges of the soles [m]."""
KNEE_SHARE = 0.7
"""Fraction of a knee's effort limit for static load on one foot; the rest is reserved for steps."""
BACKWARD = 0.02
"""Penalty for a knee that bends backward, as a fraction of the leg length."""
AMID = (0.5, 0.75, 1.0, 0.25)
"""Fractions of the way from the description's joint angles to the middle of their limits, in order of trial."""


def bend_knees(
    posed: PosedRobot, legs: Sequence[Leg], soles: Sequence[Sole], ahead: Array, share: float
) -> Array | None:
    """Return the configuration (nq,) with knees bent so that hip and ankle are ``share`` of the leg length apart.

    Pitch joints of a leg are the first one (hip), the last one (ankle), and the one closest to the middle (knee). If
    there are only two, the leg ends at the middle of the sole. A hip with inclined axes has no pitch joint, and keeps
    its angles. The knee bends forward if its limits allow it. The hip keeps the ankle below it, and the ankle keeps the
    orientation of the foot.

    Args:
        posed: The robot, upright.
        legs: Its legs.
        soles: Soles of the legs.
        ahead: (3,) forward direction in the world.
        share: Distance as a fraction of the length of the stretched leg.

    Returns:
        None if a leg has fewer than two pitch joints.
    """
    model = posed.model
    across = np.cross([0.0, 0.0, 1.0], ahead)
    q = posed.q.copy()
    for leg, sole in zip(legs, soles, strict=True):
        pitch = [j for j in leg.joints if posed.is_hinge(j) and abs(posed.axis(j) @ across) > ALONG]
        if len(pitch) < 2:
            return None
        positions = {j: posed.placements[j].translation for j in leg.joints}
        middle = posed.placements[sole.joint_id].act(sole.placement_joint_sole.act(np.append(sole.centre, 0.0)))
        top = positions[leg.joints[0]]
        inclined = np.linalg.norm(positions[pitch[0]] - top) > BELOW_HIP * np.linalg.norm(middle - top)
        if inclined:
            pitch.insert(0, leg.joints[leg.joints.index(pitch[0]) - 1])
        hip, ankle = pitch[0], pitch[-1] if len(pitch) > 2 else 0
        end = positions[ankle] if ankle else middle
        knees = pitch[1:-1] if ankle else pitch[1:]
        knee = max(
            knees, key=lambda j: min(np.linalg.norm(positions[j] - positions[hip]), np.linalg.norm(end - positions[j]))
        )
        sign = {j: float(np.sign(posed.axis(j) @ across)) for j in (hip, knee, *([ankle] if ankle else []))}
        i = {j: int(model.joints[j].idx_q) for j in sign}
        plane = np.vstack([ahead, [0.0, 0.0, 1.0]])
        thigh, shank = plane @ (positions[knee] - positions[hip]), plane @ (end - positions[knee])
        distance = share * (np.linalg.norm(thigh) + np.linalg.norm(shank))
        current = q[i[knee]]
        low = max(model.lowerPositionLimit[i[knee]], current - np.pi)
        high = min(model.upperPositionLimit[i[knee]], current + np.pi)
        angles = np.linspace(low, high, ANGLES)
        rotation = sign[knee] * (angles - current)
        hip_to_end = thigh + np.column_stack([np.cos(rotation), np.sin(rotation)]) @ np.array(
            [shank, [shank[1], -shank[0]]]
        )
        forward = thigh[0] * hip_to_end[:, 1] - thigh[1] * hip_to_end[:, 0] < 0.0
        error = np.abs(np.linalg.norm(hip_to_end, axis=1) - distance) + np.where(forward, 0.0, BACKWARD * distance)
        best = int(np.argmin(error))
        tilt = float(np.arctan2(hip_to_end[best, 0], -hip_to_end[best, 1]))
        q[i[knee]] = angles[best]
        if not inclined:
            q[i[hip]] += sign[hip] * tilt
        if ankle:
            q[i[ankle]] -= sign[ankle] * (tilt + rotation[best])
    return np.clip(q, *_limits(model))


def _limits(model: pin.Model) -> tuple[Array, Array]:
    lower, upper = model.lowerPositionLimit.copy(), model.upperPositionLimit.copy()
    lower[:7], upper[:7] = -np.inf, np.inf
    return lower, upper


def standing_posture(
    posed: PosedRobot,
    soles: Sequence[Sole],
    legs: Sequence[Leg],
    ahead: Array,
    loops: Sequence[Loop],
    given: bool,
    passive: Sequence[str],
    notes: Notes,
) -> Array | None:
    """Return the configuration (nq,) of a standing robot, or None.

    With flat feet, the loader accepts this configuration as standing. With point and line feet, whose normals are
    undefined, the base is upright and the CoM is above their middle if possible.

    Args:
        posed: The robot in the initial configuration of the search.
        soles, legs: Its feet.
        ahead: (3,) forward direction in the world.
        loops: Closed kinematic chains.
        given: Whether the initial configuration is a posture of the description, which is tried first.
        passive: Joints without a drive.
        notes: Receives the assumptions.
    """
    model = posed.model

    flat = max(sole.n_vertices for sole in soles) > 2

    def search_near(q: Array) -> Array | None:
        return stand(model, soles, q, loops) if flat else stand_upright(model, soles, q, loops, idle)

    idle = [int(model.joints[j].idx_v) for j in range(2, model.njoints) if model.names[j] in passive]
    if given and (q_standing := search_near(posed.q)) is not None:
        return q_standing
    side_by_side = _SideBySide(posed, soles, legs, ahead) if flat and len(soles) == 2 else None
    found: list[tuple[bool, float, float, Array]] = []
    for share in REACH:
        q = bend_knees(posed, legs, soles, ahead, share) if not loops else None
        if q is None:
            break
        q_standing = search_near(q)
        irregular = side_by_side is not None and (q_standing is None or not side_by_side.holds(q_standing))
        if side_by_side is not None and irregular and (regular := side_by_side.search(q, share)) is not None:
            q_standing, irregular = regular, False
        if q_standing is not None:
            load = knee_load(PosedRobot.of(model, q_standing), soles, legs) if flat else 0.0
            found.append((irregular, load if load > KNEE_SHARE else 0.0, share, q_standing))
            if found[-1][:2] == (False, 0.0):
                break
    if found:
        _, load, share, q_standing = min(found, key=lambda each: each[:2])
        _note_bent(q_standing, share, load, notes)
        return q_standing
    middle = _middle(posed.q, model)
    for share in (0.0, 1.0) if flat else (0.0, *AMID):
        q = posed.q + share * (middle - posed.q)
        if (q_standing := search_near(_closed(model, loops, q, idle) if loops else q)) is not None:
            where = {0.0: "as in the description", 1.0: "in the middle of their limits"}.get(
                share, f"{share:.0%} of the way from the description to the middle of their limits"
            )
            notes.guessed(
                f"posture: the joints {where}, as close as closed chains and soles allow; the knees were not bent"
            )
            return q_standing
    return None if flat else place_base(model, soles, _closed(model, loops, posed.q, idle) if loops else posed.q)


def knee_load(posed: PosedRobot, soles: Sequence[Sole], legs: Sequence[Leg]) -> float:
    """Return the largest torque of a knee on one foot, as a fraction of its effort limit.

    The weight acts at the middle of the sole. The knees are all driven joints above the ankle with a lateral axis.

    Args:
        posed: The standing robot, which faces along x.
        soles, legs: Its feet.
    """
    model, loads = posed.model, [0.0]
    effort = effort_and_velocity_limits(model)[0]
    weight = float(pin.computeTotalMass(model)) * GRAVITY
    for leg, sole in zip(legs, soles, strict=True):
        middle = posed.placements[sole.joint_id].act(sole.placement_joint_sole.act(np.append(sole.centre, 0.0)))
        for joint in [j for j in leg.joints if posed.is_hinge(j) and abs(posed.axis(j)[1]) > ALONG][:-1]:
            lever = abs(float(middle[0] - posed.placements[joint].translation[0]))
            limit = float(effort[model.joints[joint].idx_v])
            loads += [lever * weight / limit] if limit > 0.0 else []
    return max(loads)


def _note_bent(q: Array, share: float, load: float, notes: Notes) -> None:
    """Note how far the knees of a standing configuration (nq,) are bent, and a ``load`` above their share."""
    tilt = float(np.arccos(min(1.0, pin.Quaternion(q[3:7]).toRotationMatrix()[2, 2])))
    trunk = "upright" if tilt < LEVEL else f"tilted by {np.degrees(tilt):.2g} degrees"
    notes.guessed(f"posture: knees bent until the hip-ankle distance is {share:.1%} of the leg length, trunk {trunk}")
    if load:
        notes.doubts(f"standing on one foot needs {load:.0%} of the effort limit of a knee, so walking is unlikely")


class _SideBySide:
    """A regular posture: trunk upright, and the feet straight ahead at the distance that the description gives them.

    Args:
        posed: The robot in the initial configuration of the search.
        soles, legs: Its two feet.
        ahead: (3,) forward direction in the world.
    """

    def __init__(self, posed: PosedRobot, soles: Sequence[Sole], legs: Sequence[Leg], ahead: Array) -> None:
        self._model, self._soles = posed.model, soles
        self._heading = pin.rpy.rpyToMatrix(0.0, 0.0, -float(np.arctan2(ahead[1], ahead[0])))
        data = posed.model.createData()
        across = np.cross([0.0, 0.0, 1.0], ahead)
        placements = sole_placements(posed.model, data, soles, posed.q)
        centres = [m.act(np.append(s.centre, 0.0)) for m, s in zip(placements, soles, strict=True)]
        sides = [(s.vertices - s.centre)[:, 1] for s in soles]
        self._least = float(sides[1].max() - sides[0].min()) + CLEAR
        tops = [posed.placements[leg.joints[0]].translation for leg in legs]
        widths = [float((ends[0] - ends[1]) @ across) for ends in (centres, tops)]
        self._width = next((width for width in widths if width >= self._least), self._least)
        com = pin.centerOfMass(posed.model, data, posed.q)
        self._height = float(com[2] - np.mean([centre[2] for centre in centres]))
        self._leg = float(np.linalg.norm(tops[0] - posed.placements[legs[0].foot].translation))

    def holds(self, q: Array) -> bool:
        """Return whether a standing configuration (nq,) from the loader's search is regular."""
        placements = sole_placements(self._model, self._model.createData(), self._soles, q)
        left, right = (m.act(np.append(s.centre, 0.0)) for m, s in zip(placements, self._soles, strict=True))
        width = float(left[1] - right[1])
        upright = pin.Quaternion(q[3:7]).toRotationMatrix()[2, 2] > np.cos(LEVEL)
        straight = all(abs(m.rotation[1, 0]) < STRAIGHT for m in placements)
        return bool(upright and straight and abs(width - self._width) < WIDER * self._width and width >= self._least)

    def search(self, q: Array, share: float) -> Array | None:
        """Return the regular posture near ``q`` (nq,), or None.

        The CoM is lower than in the initial configuration by ``1 - share`` of the leg length.
        """
        start = q.copy()
        start[:7] = pin.SE3ToXYZQUAT(pin.SE3(self._heading, np.zeros(3)))
        height = self._height - (1.0 - share) * self._leg
        return stand_apart(self._model, self._soles, start, self._width, height)


def _closed(model: pin.Model, loops: Sequence[Loop], q: Array, idle: Sequence[int]) -> Array:
    """Return a configuration (nq,) near ``q`` within the limits that closes the loops as well as possible.

    The joints without a drive (``idle``, velocity indices) move first. If they cannot close the loops, all joints move.
    """
    from scipy.optimize import least_squares

    equations = LoopEquations(model, loops)
    lower, upper = _limits(model)
    solution_q = q.copy()
    for columns in (np.array(idle, dtype=np.intp), np.arange(6, model.nv, dtype=np.intp)):
        moved = columns + 1

        def error(angles: Array, moved: Indices = moved) -> Array:
            solution_q[moved] = angles
            return equations.at(solution_q)[0]

        def rate(angles: Array, moved: Indices = moved, columns: Indices = columns) -> Array:
            solution_q[moved] = angles
            return equations.at(solution_q)[1][:, columns]

        low, high = lower[moved], upper[moved]
        inside = np.clip(q[moved], low + INSIDE, high - INSIDE)
        if len(moved):
            limits = low, high
            inside = least_squares(error, inside, rate, bounds=limits, xtol=1e-15, ftol=1e-15, gtol=1e-15).x
        # The last call of ``error`` inside the solver may have been for other angles.
        if np.abs(error(inside)).max() < SHUT:
            break
    return solution_q


def _middle(q: Array, model: pin.Model) -> Array:
    """Return ``q`` with all limited joints in the middle of their limits."""
    lower, upper = _limits(model)
    middle = q.copy()
    limited = np.isfinite(lower) & np.isfinite(upper)
    middle[limited] = 0.5 * (lower[limited] + upper[limited])
    return middle
