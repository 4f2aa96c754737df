"""Find a standing posture: knees bent, soles flat, CoM above the soles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from bipedsim.descriptions.legs import ALONG, Leg, PosedRobot
from bipedsim.descriptions.notes import Notes
from bipedsim.model import Loop, LoopEquations, Sole, place_base, stand, stand_upright
from bipedsim.numerics import Array, Indices

REACH = (0.965, 0.985, 0.94, 0.995, 0.9)
"""Ratios of hip-ankle distance to leg length, in order of trial; the first bends a knee by 30 degrees."""
ANGLES = 2001
"""Number of knee angles to evaluate."""
INSIDE = 1e-6
"""Distance from the joint limits at which a search starts [rad]."""
LEVEL = 0.01
"""Tilt below which a trunk counts as upright [rad]."""
SHUT = 1e-9
"""Position error below which a loop is closed [m]."""
BACKWARD = 0.02
"""Penalty for a knee that bends backward, as a fraction of the leg length."""
AMID = (0.5, 0.75, 1.0, 0.25)
"""Fractions of the way from the description's joint angles to the middle of their limits, in order of trial."""


def bend_knees(
    posed: PosedRobot, legs: Sequence[Leg], soles: Sequence[Sole], ahead: Array, share: float
) -> Array | None:
    """Return the configuration (nq,) with knees bent so that hip and ankle are ``share`` of the leg length apart.

    Pitch joints of a leg are the first one (hip), the last one (ankle), and the one closest to the middle (knee). If
    there are only two, the leg ends at the middle of the sole. The knee bends forward if its limits allow it. The hip
    keeps the ankle below it, and the ankle keeps the orientation of the foot.

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
        positions = {j: posed.placements[j].translation for j in pitch}
        hip, ankle = pitch[0], pitch[-1] if len(pitch) > 2 else 0
        middle = sole.placement_joint_sole.act(np.append(sole.centre, 0.0))
        end = positions[ankle] if ankle else posed.placements[sole.joint_id].act(middle)
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
    for share in REACH:
        q = bend_knees(posed, legs, soles, ahead, share) if not loops else None
        if q is None:
            break
        if (q_standing := search_near(q)) is not None:
            tilt = float(np.arccos(min(1.0, pin.Quaternion(q_standing[3:7]).toRotationMatrix()[2, 2])))
            trunk = "upright" if tilt < LEVEL else f"tilted by {np.degrees(tilt):.2g} degrees"
            notes.guessed(
                f"posture: knees bent until the hip-ankle distance is {share:.1%} of the leg length, trunk {trunk}"
            )
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
