"""Gears between the rotors of motors and the joints that they drive, from couplings and tendons of an MJCF file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bipedsim.numerics import Array

TIGHT = 0.1
"""Largest backlash of a joint at which a tendon couples its joints rigidly [rad or m]."""
CENTRED = 1e-3
"""Largest distance of the CoM of a rotor from its axis [m]."""
SINGULAR = 1e-6
"""Smallest singular value of the ratios of a gear."""


@dataclass
class Gears:
    """Joints without an actuator that gears couple to rotors.

    A rotor is a hinge with an actuator. Its body carries no other body, has its CoM on the axis, and collides with
    nothing.

    Attributes:
        driven: Driven joint to its rotors, and the turns of each rotor per turn of the joint.
        couplings: Equalities that are gears.
        tendons: Tendons that are gears.
    """

    driven: dict[int, dict[int, float]] = field(default_factory=dict)
    couplings: set[int] = field(default_factory=set)
    tendons: set[int] = field(default_factory=set)

    @property
    def rotors(self) -> list[int]:
        """All rotors of the gears."""
        return sorted({rotor for ratios in self.driven.values() for rotor in ratios})


@dataclass(frozen=True)
class _Relation:
    """A linear relation of joint angles: the sum of ``factors`` times angles is constant."""

    kind: str
    index: int
    factors: Mapping[int, float]


def find_gears(mj: Any, m: Any, actuated: set[int]) -> Gears:
    """Find gears with as many driven joints as rotors.

    With q_driven = R q_rotor, virtual work gives the torques R^-T tau_rotor on the driven joints.

    Args:
        mj: The module mujoco.
        m: MuJoCo's model.
        actuated: Joints with an actuator.
    """
    gears = Gears()
    relations = [each for each in _relations(mj, m) if any(_is_rotor(mj, m, joint, actuated) for joint in each.factors)]
    while relations:
        group = [relations.pop()]
        joints = set(group[0].factors)
        while more := [each for each in relations if joints & set(each.factors)]:
            group += more
            relations = [each for each in relations if each not in more]
            joints |= {joint for each in more for joint in each.factors}
        rotors = sorted(joint for joint in joints if _is_rotor(mj, m, joint, actuated))
        driven = sorted(joints - set(rotors))
        if set(driven) & actuated or not len(rotors) == len(driven) == len(group):
            continue
        # The relations are A q_driven + B q_rotor = 0, so that the rotors turn by -B^-1 A per turn of the joints.
        A, B = (np.array([[each.factors.get(j, 0.0) for j in side] for each in group]) for side in (driven, rotors))
        if min(np.linalg.svd(matrix, compute_uv=False)[-1] for matrix in (A, B)) < SINGULAR:
            continue
        turns: Array = -np.linalg.solve(B, A)
        for k, joint in enumerate(driven):
            gears.driven[joint] = {rotor: float(turns[i, k]) for i, rotor in enumerate(rotors) if turns[i, k]}
        gears.couplings |= {each.index for each in group if each.kind == "equality"}
        gears.tendons |= {each.index for each in group if each.kind == "tendon"}
    return gears


def _relations(mj: Any, m: Any) -> Iterator[_Relation]:
    for i in range(m.neq):
        two = int(m.eq_type[i]) == int(mj.mjtEq.mjEQ_JOINT) and int(m.eq_obj2id[i]) >= 0
        if m.eq_active0[i] and two and m.eq_data[i, 1] and not np.any(m.eq_data[i, 2:5]):
            yield _Relation("equality", i, {int(m.eq_obj1id[i]): 1.0, int(m.eq_obj2id[i]): -float(m.eq_data[i, 1])})
    for i in range(m.ntendon):
        wraps = range(int(m.tendon_adr[i]), int(m.tendon_adr[i]) + int(m.tendon_num[i]))
        fixed = all(int(m.wrap_type[k]) == int(mj.mjtWrap.mjWRAP_JOINT) for k in wraps)
        factors = {int(m.wrap_objid[k]): float(m.wrap_prm[k]) for k in wraps if fixed and m.wrap_prm[k]}
        if not (factors and m.tendon_limited[i]):
            continue
        # A joint alone moves by the width of the range over its coefficient.
        if float(np.ptp(m.tendon_range[i])) / min(map(abs, factors.values())) <= TIGHT:
            yield _Relation("tendon", i, factors)


def _is_rotor(mj: Any, m: Any, joint: int, actuated: set[int]) -> bool:
    if joint not in actuated or int(m.jnt_type[joint]) != int(mj.mjtJoint.mjJNT_HINGE):
        return False
    body = int(m.jnt_bodyid[joint])
    if np.any(m.body_parentid == body) or int(m.body_jntnum[body]) != 1:
        return False
    if np.linalg.norm(np.cross(m.jnt_axis[joint], m.body_ipos[body] - m.jnt_pos[joint])) > CENTRED:
        return False
    geoms = np.flatnonzero(m.geom_bodyid == body)
    paired = np.isin(geoms, [*m.pair_geom1, *m.pair_geom2])
    return not np.any((m.geom_contype[geoms] != 0) | (m.geom_conaffinity[geoms] != 0) | paired)
