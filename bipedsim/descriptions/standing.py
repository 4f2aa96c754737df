"""A posture that stands: knees bent, soles flat, the CoM over them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from bipedsim.descriptions.legs import ALONG, Figure, Leg
from bipedsim.descriptions.notes import Notes
from bipedsim.model import Loop, Sole, place_base, stand
from bipedsim.numerics import Array

REACH = (0.965, 0.985, 0.94, 0.995, 0.9)
"""Distance from hip to ankle over that of a stretched leg, in the order in which they are tried: 30 degrees in the
knee at first."""


def bent(figure: Figure, legs: Sequence[Leg], ahead: Array, share: float) -> Array | None:
    """Return the configuration (nq,) with both knees bent so that hip and ankle are ``share`` of the leg apart.

    The joints across the robot are hip, knee and ankle: the first, the one nearest to the middle, and the last. The
    knee goes ahead where its limits let it. The hip turns the ankle below it, the ankle the foot to where it was.

    Args:
        figure: The robot, upright.
        legs: Its legs.
        ahead: (3,) in the world.
        share: Of the length of the stretched leg.

    Returns:
        None where a leg has not three such joints.
    """
    model = figure.model
    across = np.cross([0.0, 0.0, 1.0], ahead)
    q = figure.q.copy()
    for leg in legs:
        pitch = [j for j in leg.joints if figure.turns(j) and abs(figure.axis(j) @ across) > ALONG]
        if len(pitch) < 3:
            return None
        places = {j: figure.places[j].translation for j in pitch}
        hip, ankle = pitch[0], pitch[-1]
        knee = max(
            pitch[1:-1],
            key=lambda j: min(np.linalg.norm(places[j] - places[hip]), np.linalg.norm(places[ankle] - places[j])),
        )
        signs = {j: float(np.sign(figure.axis(j) @ across)) for j in (hip, knee, ankle)}
        thigh, shank = places[knee] - places[hip], places[ankle] - places[knee]
        plane = np.vstack([ahead, [0.0, 0.0, 1.0]])
        a, b = plane @ thigh, plane @ shank
        wanted = share * (np.linalg.norm(a) + np.linalg.norm(b))
        # A turn about `across` by an angle takes ahead towards down.
        i = {j: model.joints[j].idx_q for j in (hip, knee, ankle)}
        low, high = model.lowerPositionLimit[i[knee]], model.upperPositionLimit[i[knee]]
        angles = np.linspace(max(low, q[i[knee]] - np.pi), min(high, q[i[knee]] + np.pi), 2001)
        turned = signs[knee] * (angles - q[i[knee]])
        way = a + np.column_stack([_turned(b, t) for t in turned]).T
        distance = np.linalg.norm(way, axis=1)
        forward = a[0] * way[:, 1] - a[1] * way[:, 0] < 0.0
        miss = np.abs(distance - wanted) + np.where(forward, 0.0, 0.02 * wanted)
        best = int(np.argmin(miss))
        lean = float(np.arctan2(way[best, 0], -way[best, 1]))
        # To bring (ahead, up) = (sin, -cos) of `lean` below the hip, turn by it.
        q[i[knee]] = angles[best]
        q[i[hip]] += signs[hip] * lean
        q[i[ankle]] -= signs[ankle] * (lean + turned[best])
    return np.clip(q, *_limits(model))


def _turned(vector: Array, angle: float) -> Array:
    """Return (ahead, up) turned about the axis to the left by ``angle``: what is ahead goes down."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * vector[0] + s * vector[1], -s * vector[0] + c * vector[1]])


def _limits(model: pin.Model) -> tuple[Array, Array]:
    lower, upper = model.lowerPositionLimit.copy(), model.upperPositionLimit.copy()
    lower[:7], upper[:7] = -np.inf, np.inf
    return lower, upper


def standing_posture(
    figure: Figure, soles: Sequence[Sole], legs: Sequence[Leg], ahead: Array, loops: Sequence[Loop], given: bool,
    notes: Notes
) -> Array | None:
    """Return the configuration (nq,) in which a robot of flat feet stands, or None.

    Args:
        figure: The robot where the search begins.
        soles, legs: Its feet.
        ahead: (3,) in the world.
        loops: What closes chains.
        given: Whether the figure is a posture of the description, which is tried first.
        notes: Takes what was guessed.
    """
    model = figure.model
    flat = max(sole.n_vertices for sole in soles) > 2
    if given:
        found = stand(model, soles, figure.q, loops) if flat else place_base(model, soles, figure.q)
        if found is not None:
            return found
    for share in REACH:
        q = bent(figure, legs, ahead, share) if not loops else None
        if q is None:
            break
        found = stand(model, soles, q, loops) if flat else place_base(model, soles, q)
        if found is not None:
            notes.guessed(f"posture: knees bent until hip and ankle are {share:.1%} of the leg apart, the trunk upright")
            return found
    found = stand(model, soles, figure.q, loops) if flat else place_base(model, soles, figure.q)
    if found is not None:
        notes.guessed("posture: the joints where the description has them, as no knees were found to bend")
    return found
