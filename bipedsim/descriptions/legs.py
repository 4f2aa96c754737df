"""Find feet and legs of a robot by the chains that reach the ground."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pinocchio as pin

from bipedsim.descriptions.notes import Notes
from bipedsim.errors import some
from bipedsim.model import Robot, Shape, split_side
from bipedsim.numerics import Array

NEAR_GROUND = 0.08
"""Maximum height of a foot's lowest point above the lowest foot, as a fraction of the robot's height."""
ON_GROUND = 4e-3
"""Height within which the body before a toe also reaches the ground [m]."""
MIRRORED = 0.02
"""Maximum deviation of the positions of mirrored joints, as a fraction of the robot's height."""
NARROW = 1e-6
"""Lateral distance below which the feet are in one plane, as a fraction of the robot's height."""
SHORTEST = 3
"""Minimum number of joints in a leg."""
ALONG = 0.85
"""Minimum absolute cosine between two axes that count as parallel."""


@dataclass(frozen=True, eq=False)
class Leg:
    """Chain of joints from the base to a foot.

    Attributes:
        side: left or right, or the name of the foot if there are not two feet.
        joints: pinocchio joints from the base to the foot.
        toes: Joints beyond the foot.
        shaped: Joint whose shapes form the sole: that of the foot, or one before it.
    """

    side: str
    joints: tuple[int, ...]
    toes: tuple[int, ...]
    shaped: int

    @property
    def foot(self) -> int:
        """Joint that moves the foot."""
        return self.joints[-1]


@dataclass(frozen=True, eq=False)
class PosedRobot:
    """A model in one configuration, with the extent of its bodies.

    Attributes:
        model, q: Model with a free flyer, and its configuration (nq,) with an upright base.
        placements: Pose of every joint in the world.
        lowest: (njoints,) height of the lowest point of each body [m]; inf for a body without extent and mass.
        touching: Joints whose bodies have collision geometry.
        height: Height from the lowest to the highest point [m].
    """

    model: pin.Model
    q: Array
    placements: list[pin.SE3]
    lowest: Array
    touching: frozenset[int]
    height: float

    @staticmethod
    def of(model: pin.Model, q: Array, touching: Sequence[Shape] = (), seen: Sequence[Shape] = ()) -> PosedRobot:
        """Return ``model`` at ``q`` (nq,) with collision and visual shapes; bodies without shapes are points."""
        data = model.createData()
        pin.forwardKinematics(model, data, q)
        placements = [pin.SE3(m) for m in data.oMi]
        lowest, highest = np.full(model.njoints, np.inf), -np.inf
        for shape in (*touching, *seen):
            z = outline(shape) @ placements[shape.joint_id].rotation[2] + placements[shape.joint_id].translation[2]
            lowest[shape.joint_id] = min(lowest[shape.joint_id], float(z.min()) - shape.radius)
            highest = max(highest, float(z.max()) + shape.radius)
        for joint in range(1, model.njoints):
            z0 = placements[joint].translation[2]
            if not np.isfinite(lowest[joint]) and model.inertias[joint].mass > 0.0:
                lowest[joint] = min(z0, placements[joint].act(model.inertias[joint].lever)[2])
            highest = max(highest, z0)
        touching_joints = frozenset(shape.joint_id for shape in touching)
        return PosedRobot(model, q, placements, lowest, touching_joints, max(highest - float(lowest.min()), 1e-3))

    def chain(self, joint: int) -> tuple[int, ...]:
        """Return the joints from the base to ``joint``, without the joint of the base."""
        return tuple(self.model.supports[joint])[2:]

    def axis(self, joint: int) -> Array:
        """Return the axis (3,) of a joint in the world."""
        model, data = self.model, self.model.createData()
        pin.computeJointJacobians(model, data, self.q)
        jacobian = pin.getJointJacobian(model, data, joint, pin.LOCAL_WORLD_ALIGNED).reshape(6, model.nv)
        column = jacobian[:, model.joints[joint].idx_v]
        return np.asarray(column[3:] if self.is_hinge(joint) else column[:3])

    def is_hinge(self, joint: int) -> bool:
        """Return whether a joint is a hinge."""
        return re.search(r"Prismatic|JointModelP[XYZ]", self.model.joints[joint].shortname()) is None


def outline(shape: Shape) -> Array:
    """Return the points (n, 3) of a shape in the frame of its joint: rings as 16 points, without radii of balls."""
    if shape.ring == 0.0:
        return shape.points
    side = np.linalg.svd(shape.axis[None])[2][1:]
    turn = np.arange(16) * (np.pi / 8.0)
    circle = shape.ring * (np.outer(np.cos(turn), side[0]) + np.outer(np.sin(turn), side[1]))
    return np.vstack([point + circle for point in shape.points])


def find_legs(figure: PosedRobot, notes: Notes) -> tuple[list[Leg], Array]:
    """Return the legs, left first, and the forward direction (3,) in the world.

    Feet are the ends of chains near the robot's lowest point. If the body before the last one also reaches the ground,
    it is the foot, and the bodies beyond are toes. Of more than two feet, the function selects the two with the longest
    mirrored chains. There are no legs if nothing reaches the ground.
    """
    model = figure.model
    parents = np.asarray(model.parents)
    ground = float(figure.lowest[2:].min()) if model.njoints > 2 else np.inf
    ends: dict[int, list[int]] = {}
    for joint in range(2, model.njoints):
        if joint in parents[2:] or figure.lowest[joint] > ground + NEAR_GROUND * figure.height:
            continue
        foot, toes = joint, []
        while figure.lowest[parents[foot]] < ground + ON_GROUND and len(figure.chain(foot)) > SHORTEST:
            toes.append(foot)
            foot = int(parents[foot])
        ends.setdefault(foot, []).extend(toes)
    names = [model.names[foot] for foot in ends]
    if len(ends) > 2:
        feet = _best_pair(figure, list(ends))
        others = [model.names[foot] for foot in ends if foot not in feet]
        notes.doubts(
            f"chains that end at {some(others)} also reach the ground. The two longest mirrored chains are used as legs"
        )
    else:
        feet = tuple(ends)
    if len(feet) < 2:
        notes.doubts(f"no two chains reach the ground: {some(names) if names else 'none does'}")
        ahead = np.array([1.0, 0.0, 0.0])
        return [Leg("foot", figure.chain(foot), tuple(ends[foot]), foot) for foot in feet], ahead
    places = [figure.placements[foot].translation for foot in feet]
    across = places[0] - places[1]
    across[2] = 0.0
    if np.linalg.norm(across) < NARROW * figure.height:
        notes.doubts("both feet are in one plane, as in a planar robot. Left and right are taken from their names")
        across = np.array([0.0, 1.0, 0.0])
    across /= max(float(np.linalg.norm(across)), 1e-9)
    left_first = _left_first([_names_of(figure, foot) for foot in feet], across, notes)
    if not left_first:
        feet, across = feet[::-1], -across
    if abs(across[0]) > abs(across[1]):
        notes.doubts("the robot faces along y with all joints at 0. Left and right are taken from link names")
    # Rounding to an axis avoids a rotation by feet that are not exactly side by side.
    across = np.round(across / np.abs(across).max()) if np.abs(across).max() > 0.95 else across
    ahead = np.cross(across, [0.0, 0.0, 1.0])
    sides = zip(("left", "right"), feet, strict=True)
    legs = [Leg(side, figure.chain(foot), tuple(ends[foot]), foot) for side, foot in sides]
    if len({len(leg.joints) for leg in legs}) == 2 and len({len(leg.joints) + len(leg.toes) for leg in legs}) == 1:
        depth = max(len(leg.joints) for leg in legs)
        shaped = some([model.names[leg.foot] for leg in legs])
        extended = [_extended(figure, leg, depth) for leg in legs]
        about = f"the shapes of the feet are on joints that do not mirror each other, {shaped}"
        if extended == legs:
            notes.doubts(f"{about}, and so are the soles; check the feet in robot.yaml")
        else:
            legs = extended
            notes.mended(f"{about}; the soles are on {some([model.names[leg.foot] for leg in legs])}")
    return legs, np.asarray(ahead / np.linalg.norm(ahead))


def _extended(figure: PosedRobot, leg: Leg, depth: int) -> Leg:
    """Return a leg of ``depth`` joints, with the same shapes and the remaining toes."""
    beyond = {len(figure.chain(toe)): toe for toe in leg.toes}
    if depth not in beyond:
        return leg
    toes = tuple(toe for toe in leg.toes if len(figure.chain(toe)) > depth)
    return Leg(leg.side, figure.chain(beyond[depth]), toes, leg.shaped)


def _best_pair(figure: PosedRobot, feet: list[int]) -> tuple[int, ...]:
    """Return the two feet with the longest chains side by side; feet with collision geometry have priority."""

    def rank(pair: tuple[int, int]) -> tuple[int, int, float]:
        a, b = (figure.placements[foot].translation for foot in pair)
        joints = len(figure.chain(pair[0])) + len(figure.chain(pair[1]))
        return len(figure.touching & set(pair)), joints, -float(abs(a[0] - b[0]) + abs(a[2] - b[2]))

    pairs = combinations(feet, 2)
    mirrored = [pair for pair in pairs if len(figure.chain(pair[0])) == len(figure.chain(pair[1]))]
    return max(mirrored or list(combinations(feet, 2)), key=rank)


def _names_of(figure: PosedRobot, foot: int) -> list[str]:
    model = figure.model
    links = [f.name for f in model.frames if f.type == pin.BODY and f.parentJoint == foot]
    return [*links, *(model.names[joint] for joint in reversed(figure.chain(foot)))]


def _left_first(names: list[list[str]], across: Array, notes: Notes) -> bool:
    """Return whether the first of two feet is the left one, by its names or else by its position."""
    sides_in_names = [[split_side(name)[0] for name in foot_names] for foot_names in names]
    sides = [next(filter(None, foot_sides), "") for foot_sides in sides_in_names]
    if "left" in sides and sides[0] != sides[1]:
        return sides[0] == "left"
    if "right" in sides and sides[0] != sides[1]:
        return sides[1] == "right"
    notes.guessed("the left foot is the one at positive y, because no link or joint name says left or right")
    return bool(across[1] > 0.0)


def mirrored_joints(figure: PosedRobot, ahead: Array) -> dict[str, tuple[str, int]]:
    """Return the mirrored joint of each joint and the sign of its angle, from positions and axes.

    The mirror plane contains the base and the forward direction. Reflection R maps a rotation about axis a to one
    about -R a.
    """
    model = figure.model
    across = np.cross([0.0, 0.0, 1.0], ahead)
    reflect = np.eye(3) - 2.0 * np.outer(across, across)
    points = np.array([m.translation for m in figure.placements])
    axes = np.array([figure.axis(j) if j > 1 else np.zeros(3) for j in range(model.njoints)])
    mirrors: dict[str, tuple[str, int]] = {}
    for joint in range(2, model.njoints):
        sign = -1.0 if figure.is_hinge(joint) else 1.0
        mirrored = sign * reflect @ axes[joint]
        distance = np.linalg.norm(points - reflect @ points[joint], axis=1)
        alignment = axes @ mirrored
        depth = len(figure.chain(joint))
        for other in map(int, np.argsort(distance + 0.1 * (1.0 - np.abs(alignment)))):
            if other < 2 or distance[other] > MIRRORED * figure.height or len(figure.chain(other)) != depth:
                continue
            if abs(alignment[other]) > ALONG and figure.is_hinge(other) == figure.is_hinge(joint):
                mirrors[model.names[joint]] = (model.names[other], 1 if alignment[other] > 0.0 else -1)
                break
    return mirrors


def mirrors(robot: Robot, q: Array) -> dict[str, tuple[str, int]]:
    """Return the mirrored joint of each joint and the sign of its angle, found at the configuration ``q`` (nq,)."""
    return mirrored_joints(PosedRobot.of(robot.model, q), np.array([1.0, 0.0, 0.0]))
