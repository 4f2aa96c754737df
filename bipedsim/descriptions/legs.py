"""Feet and legs of a robot that nobody has named: by what reaches the ground."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pinocchio as pin

from bipedsim.descriptions.notes import Notes
from bipedsim.errors import some
from bipedsim.model import Shape, split_side
from bipedsim.numerics import Array

NEAR_GROUND = 0.08
"""Share of the robot's height within which the lowest point of a foot is from that of the lowest one."""
ON_GROUND = 4e-3
"""Height [m] within which the body before a toe reaches the ground, too."""
MIRRORED = 0.02
"""Share of the robot's height by which places of mirrored joints may differ."""
NARROW = 1e-6
"""Share of the robot's height by which feet are apart that are side by side."""
SHORTEST = 3
"""Joints that a leg has at least."""
ALONG = 0.85
"""Cosine from which two axes count as parallel."""


@dataclass(frozen=True, eq=False)
class Leg:
    """A leg.

    Attributes:
        side: left or right, or the name of the foot where there are not two.
        joints: pinocchio joints from the base to the foot.
        toes: Joints beyond the foot.
    """

    side: str
    joints: tuple[int, ...]
    toes: tuple[int, ...]

    @property
    def foot(self) -> int:
        """The joint that carries the foot."""
        return self.joints[-1]


@dataclass(frozen=True, eq=False)
class Figure:
    """A model in one configuration, with what its bodies are like from outside.

    Attributes:
        model, q: The model, with a free flyer, and its configuration (nq,), upright.
        places: Pose of every joint in the world.
        lowest: (njoints,) height of the lowest point of each body [m]; inf of one without any.
        touching: Joints whose bodies have collision geometry.
        height: From the lowest point to the highest one [m].
    """

    model: pin.Model
    q: Array
    places: list[pin.SE3]
    lowest: Array
    touching: frozenset[int]
    height: float

    @staticmethod
    def of(model: pin.Model, q: Array, touching: Sequence[Shape] = (), seen: Sequence[Shape] = ()) -> Figure:
        """Return the figure of ``model`` at ``q`` (nq,) with what touches and what is seen; other bodies are points."""
        data = model.createData()
        pin.forwardKinematics(model, data, q)
        places = [pin.SE3(m) for m in data.oMi]
        lowest, highest = np.full(model.njoints, np.inf), -np.inf
        for shape in (*touching, *seen):
            z = outline(shape) @ places[shape.joint_id].rotation[2] + places[shape.joint_id].translation[2]
            lowest[shape.joint_id] = min(lowest[shape.joint_id], float(z.min()) - shape.radius)
            highest = max(highest, float(z.max()) + shape.radius)
        for joint in range(1, model.njoints):
            z0 = places[joint].translation[2]
            if not np.isfinite(lowest[joint]) and model.inertias[joint].mass > 0.0:
                lowest[joint] = min(z0, places[joint].act(model.inertias[joint].lever)[2])
            highest = max(highest, z0)
        feel = frozenset(shape.joint_id for shape in touching)
        return Figure(model, q, places, lowest, feel, max(highest - float(lowest.min()), 1e-3))

    def chain(self, joint: int) -> tuple[int, ...]:
        """Return the joints from the base to ``joint``, that of the base left out."""
        return tuple(self.model.supports[joint])[2:]

    def axis(self, joint: int) -> Array:
        """Return the axis (3,) of a joint in the world."""
        model, data = self.model, self.model.createData()
        pin.computeJointJacobians(model, data, self.q)
        jacobian = pin.getJointJacobian(model, data, joint, pin.LOCAL_WORLD_ALIGNED).reshape(6, model.nv)
        column = jacobian[:, model.joints[joint].idx_v]
        return np.asarray(column[3:] if self.turns(joint) else column[:3])

    def turns(self, joint: int) -> bool:
        """Whether a joint is a hinge."""
        return re.search(r"Prismatic|JointModelP[XYZ]", self.model.joints[joint].shortname()) is None


def outline(shape: Shape) -> Array:
    """Return the points (n, 3) of a shape in the frame of its joint, rings by sixteen of theirs; balls not added."""
    if shape.ring == 0.0:
        return shape.points
    side = np.linalg.svd(shape.axis[None])[2][1:]
    turn = np.arange(16) * (np.pi / 8.0)
    circle = shape.ring * (np.outer(np.cos(turn), side[0]) + np.outer(np.sin(turn), side[1]))
    return np.vstack([point + circle for point in shape.points])


def find_legs(figure: Figure, notes: Notes) -> tuple[list[Leg], Array]:
    """Return the legs, left first, and the direction ahead (3,) in the world; no legs where nothing reaches the ground.

    Feet are the ends of chains that come near the lowest point of the robot; a body before the last that reaches the
    ground, too, is the foot, and what is beyond it are toes. Of more than two, those two are taken whose chains are
    longest and mirrored.
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
        notes.doubts(f"chains that end at {some(others)} reach the ground, too; feet are the two longest mirrored ones")
    else:
        feet = tuple(ends)
    if len(feet) < 2:
        notes.doubts(f"no two chains reach the ground: {some(names) if names else 'none does'}")
        ahead = np.array([1.0, 0.0, 0.0])
        return [Leg("foot", figure.chain(foot), tuple(ends[foot])) for foot in feet], ahead
    places = [figure.places[foot].translation for foot in feet]
    across = places[0] - places[1]
    across[2] = 0.0
    if np.linalg.norm(across) < NARROW * figure.height:
        notes.doubts("both feet are in one plane, as those of a planar robot: which is left is told by names alone")
        across = np.array([0.0, 1.0, 0.0])
    across /= max(float(np.linalg.norm(across)), 1e-9)
    left_first = _left_first([_names_of(figure, foot) for foot in feet], across, notes)
    if not left_first:
        feet, across = feet[::-1], -across
    if abs(across[0]) > abs(across[1]):
        notes.doubts("the robot looks along y where all joints are at 0: feet are named by their links")
    # Along an axis, from which feet that are not quite abreast would turn it.
    across = np.round(across / np.abs(across).max()) if np.abs(across).max() > 0.95 else across
    ahead = np.cross(across, [0.0, 0.0, 1.0])
    ends_at = [len(figure.chain(foot)) + len(ends[foot]) for foot in feet]
    if len(figure.chain(feet[0])) != len(figure.chain(feet[1])) and ends_at[0] == ends_at[1]:
        names = [model.names[foot] for foot in feet]
        notes.doubts(f"the soles move with joints that are no mirrors of each other: {some(names)}; look at the shapes")
    sides = zip(("left", "right"), feet, strict=True)
    legs = [Leg(side, figure.chain(foot), tuple(ends[foot])) for side, foot in sides]
    return legs, np.asarray(ahead / np.linalg.norm(ahead))


def _best_pair(figure: Figure, feet: list[int]) -> tuple[int, ...]:
    """Return the two feet with the longest chains that stand side by side; those that can touch come first."""

    def rank(pair: tuple[int, int]) -> tuple[int, int, float]:
        a, b = (figure.places[foot].translation for foot in pair)
        joints = len(figure.chain(pair[0])) + len(figure.chain(pair[1]))
        return len(figure.touching & set(pair)), joints, -float(abs(a[0] - b[0]) + abs(a[2] - b[2]))

    pairs = combinations(feet, 2)
    mirrored = [pair for pair in pairs if len(figure.chain(pair[0])) == len(figure.chain(pair[1]))]
    return max(mirrored or list(combinations(feet, 2)), key=rank)


def _names_of(figure: Figure, foot: int) -> list[str]:
    model = figure.model
    links = [f.name for f in model.frames if f.type == pin.BODY and f.parentJoint == foot]
    return [*links, *(model.names[joint] for joint in reversed(figure.chain(foot)))]


def _left_first(names: list[list[str]], across: Array, notes: Notes) -> bool:
    """Return whether the first of two feet is the left one: by its names, or by where it is."""
    said = [[split_side(name)[0] for name in some_names] for some_names in names]
    sides = [next(filter(None, some_sides), "") for some_sides in said]
    if "left" in sides and sides[0] != sides[1]:
        return sides[0] == "left"
    if "right" in sides and sides[0] != sides[1]:
        return sides[1] == "right"
    notes.guessed("left is the foot at positive y: no names of links or joints say so")
    return bool(across[1] > 0.0)


def mirrored_joints(figure: Figure, ahead: Array) -> dict[str, tuple[str, int]]:
    """Return of each joint which one mirrors it, and with which sign of its angle: by places and axes.

    The mirror is the plane through the base that looks ahead. A rotation about an axis a becomes in it one about -R a
    where R reflects vectors.
    """
    model = figure.model
    across = np.cross([0.0, 0.0, 1.0], ahead)
    reflect = np.eye(3) - 2.0 * np.outer(across, across)
    points = np.array([m.translation for m in figure.places])
    axes = np.array([figure.axis(j) if j > 1 else np.zeros(3) for j in range(model.njoints)])
    found: dict[str, tuple[str, int]] = {}
    for joint in range(2, model.njoints):
        sign = -1.0 if figure.turns(joint) else 1.0
        mirrored = sign * reflect @ axes[joint]
        apart = np.linalg.norm(points - reflect @ points[joint], axis=1)
        same = axes @ mirrored
        depth = len(figure.chain(joint))
        for other in map(int, np.argsort(apart + 0.1 * (1.0 - np.abs(same)))):
            if other < 2 or apart[other] > MIRRORED * figure.height or len(figure.chain(other)) != depth:
                continue
            if abs(same[other]) > ALONG and figure.turns(other) == figure.turns(joint):
                found[model.names[joint]] = (model.names[other], 1 if same[other] > 0.0 else -1)
                break
    return found
