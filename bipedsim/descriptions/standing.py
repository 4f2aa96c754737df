"""A posture that stands: knees bent, soles flat, the CoM over them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from bipedsim.descriptions.legs import ALONG, Figure, Leg
from bipedsim.descriptions.notes import Notes
from bipedsim.model import Loop, LoopEquations, Sole, place_base, stand, stand_upright
from bipedsim.numerics import Array, Indices

REACH = (0.965, 0.985, 0.94, 0.995, 0.9)
"""Distances from hip to ankle over that of a stretched leg, as they are tried; the first has 30 degrees in a knee."""
ANGLES = 2001
"""Angles of the knee that are looked at."""
INSIDE = 1e-6
"""Distance [rad] from its limits at which a search begins."""
LEVEL = 0.01
"""Tilt [rad] of a trunk that is upright."""
SHUT = 1e-9
"""Distance [m] below which a loop is closed."""
BACKWARD = 0.02
"""Share of the leg that a knee which bends backwards counts as off."""
AMID = (0.5, 0.75, 1.0, 0.25)
"""Shares of the way from where the description has the joints to the middle of their limits, as they are tried."""


def bent(figure: Figure, legs: Sequence[Leg], soles: Sequence[Sole], ahead: Array, share: float) -> Array | None:
    """Return the configuration (nq,) with both knees bent so that hip and ankle are ``share`` of the leg apart.

    The joints across the robot are hip, knee and ankle: the first, the one nearest to the middle, and the last. Of a
    leg with two of them the end is the middle of the sole. The knee goes ahead where its limits let it. The hip turns
    the ankle below it, the ankle the foot to where it was.

    Args:
        figure: The robot, upright.
        legs: Its legs.
        soles: Of the legs.
        ahead: (3,) in the world.
        share: Of the length of the stretched leg.

    Returns:
        None where a leg has fewer such joints.
    """
    model = figure.model
    across = np.cross([0.0, 0.0, 1.0], ahead)
    q = figure.q.copy()
    for leg, sole in zip(legs, soles, strict=True):
        pitch = [j for j in leg.joints if figure.turns(j) and abs(figure.axis(j) @ across) > ALONG]
        if len(pitch) < 2:
            return None
        places = {j: figure.places[j].translation for j in pitch}
        hip, ankle = pitch[0], pitch[-1] if len(pitch) > 2 else 0
        middle = sole.placement_joint_sole.act(np.append(sole.centre, 0.0))
        end = places[ankle] if ankle else figure.places[sole.joint_id].act(middle)
        knees = pitch[1:-1] if ankle else pitch[1:]
        knee = max(knees, key=lambda j: min(np.linalg.norm(places[j] - places[hip]), np.linalg.norm(end - places[j])))
        sign = {j: float(np.sign(figure.axis(j) @ across)) for j in (hip, knee, *([ankle] if ankle else []))}
        i = {j: int(model.joints[j].idx_q) for j in sign}
        plane = np.vstack([ahead, [0.0, 0.0, 1.0]])
        thigh, shank = plane @ (places[knee] - places[hip]), plane @ (end - places[knee])
        wanted = share * (np.linalg.norm(thigh) + np.linalg.norm(shank))
        now = q[i[knee]]
        low = max(model.lowerPositionLimit[i[knee]], now - np.pi)
        high = min(model.upperPositionLimit[i[knee]], now + np.pi)
        angles = np.linspace(low, high, ANGLES)
        turned = sign[knee] * (angles - now)
        way = thigh + np.column_stack([np.cos(turned), np.sin(turned)]) @ np.array([shank, [shank[1], -shank[0]]])
        forward = thigh[0] * way[:, 1] - thigh[1] * way[:, 0] < 0.0
        miss = np.abs(np.linalg.norm(way, axis=1) - wanted) + np.where(forward, 0.0, BACKWARD * wanted)
        best = int(np.argmin(miss))
        lean = float(np.arctan2(way[best, 0], -way[best, 1]))
        q[i[knee]] = angles[best]
        q[i[hip]] += sign[hip] * lean
        if ankle:
            q[i[ankle]] -= sign[ankle] * (lean + turned[best])
    return np.clip(q, *_limits(model))


def _limits(model: pin.Model) -> tuple[Array, Array]:
    lower, upper = model.lowerPositionLimit.copy(), model.upperPositionLimit.copy()
    lower[:7], upper[:7] = -np.inf, np.inf
    return lower, upper


def standing_posture(
    figure: Figure,
    soles: Sequence[Sole],
    legs: Sequence[Leg],
    ahead: Array,
    loops: Sequence[Loop],
    given: bool,
    passive: Sequence[str],
    notes: Notes,
) -> Array | None:
    """Return the configuration (nq,) in which a robot stands, or None.

    On flat feet that is one in which the loader finds it standing. On points and blades the base is upright and the CoM
    over their middle, if that can be; the normals of these soles say nothing.

    Args:
        figure: The robot where the search begins.
        soles, legs: Its feet.
        ahead: (3,) in the world.
        loops: What closes chains.
        given: Whether the figure is a posture of the description, which is tried first.
        passive: Joints without a drive.
        notes: Takes what was guessed.
    """
    model = figure.model

    flat = max(sole.n_vertices for sole in soles) > 2

    def found_near(q: Array) -> Array | None:
        return stand(model, soles, q, loops) if flat else stand_upright(model, soles, q, loops, idle)

    idle = [int(model.joints[j].idx_v) for j in range(2, model.njoints) if model.names[j] in passive]
    if given and (found := found_near(figure.q)) is not None:
        return found
    for share in REACH:
        q = bent(figure, legs, soles, ahead, share) if not loops else None
        if q is None:
            break
        if (found := found_near(q)) is not None:
            tilt = float(np.arccos(min(1.0, pin.Quaternion(found[3:7]).toRotationMatrix()[2, 2])))
            trunk = "upright" if tilt < LEVEL else f"tilted by {np.degrees(tilt):.2g} degrees"
            notes.guessed(f"posture: knees bent until hip and ankle are {share:.1%} of the leg apart, trunk {trunk}")
            return found
    middle = _middle(figure.q, model)
    for share in (0.0, 1.0) if flat else (0.0, *AMID):
        q = figure.q + share * (middle - figure.q)
        if (found := found_near(_closed(model, loops, q, idle) if loops else q)) is not None:
            where = {0.0: "where the description has them", 1.0: "amid their limits"}.get(
                share, f"{share:.0%} of the way from where the description has them to the middle of their limits"
            )
            notes.guessed(f"posture: the joints {where}, as near as loops and soles let them be; no knees were bent")
            return found
    return None if flat else place_base(model, soles, _closed(model, loops, figure.q, idle) if loops else figure.q)


def _closed(model: pin.Model, loops: Sequence[Loop], q: Array, idle: Sequence[int]) -> Array:
    """Return the configuration (nq,) near ``q`` within the limits whose loops are closed, as well as they can be.

    Joints without a drive (``idle``, columns of the velocity) go where loops put them; all joints where that does not
    close them.
    """
    from scipy.optimize import least_squares

    equations = LoopEquations(model, loops)
    lower, upper = _limits(model)
    whole = q.copy()
    for columns in (np.array(idle, dtype=np.intp), np.arange(6, model.nv, dtype=np.intp)):
        moved = columns + 1

        def error(angles: Array, moved: Indices = moved) -> Array:
            whole[moved] = angles
            return equations.at(whole)[0]

        def rate(angles: Array, moved: Indices = moved, columns: Indices = columns) -> Array:
            whole[moved] = angles
            return equations.at(whole)[1][:, columns]

        low, high = lower[moved], upper[moved]
        inside = np.clip(q[moved], low + INSIDE, high - INSIDE)
        found = least_squares(error, inside, rate, bounds=(low, high), xtol=1e-15, ftol=1e-15, gtol=1e-15)
        whole[moved] = found.x
        if np.abs(found.fun).max() < SHUT:
            break
    return whole


def _middle(q: Array, model: pin.Model) -> Array:
    """Return ``q`` with all joints in the middle of their limits, if they have any."""
    lower, upper = _limits(model)
    middle = q.copy()
    limited = np.isfinite(lower) & np.isfinite(upper)
    middle[limited] = 0.5 * (lower[limited] + upper[limited])
    return middle
