"""Contacts with two sides, in one set: bodies of the robot, the world, and free objects."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from bipedsim.numerics import Array, Integers, kernel, zeros_of

WORLD = 0
"""The side that does not move."""
MARGIN = 1e-3
"""What is no farther apart [m] may touch whatever its speed."""


class Contacts(NamedTuple):
    """Contacts in one step, C at most.

    A side is a number: j >= 1 is a joint of the robot's model, with its body, ``WORLD`` the ground, and -1 - k the free
    object k. Stops of joints are among them in a step with the robot: with as many bodies as the model has joints, the
    world included, side ``bodies`` + j is stop j.

    Attributes:
        used: (1,) how many there are. dropped: (1,) how many had no room.
        a, b: (C,) sides.
        point: (C, 3) where they touch, in the world [m].
        axes: (C, 3, 3) columns t1, t2, n in the world; n points from b to a.
        gap: (C,) distance [m], negative where they overlap.
        mu, restitution: (C,) Coulomb's coefficient and Newton's. mu_slips: (C,) the first where it slips, as ``mu``
            unless whoever added the contact says another.
        key: (C,) number by which the same contact is found again in the next step, -1 for none.
        impulse: (C, 3) on a, along the axes, over the step [N.s].
        velocity: (C, 3) of a beside b after the step, along the axes [m/s].
        late: (C,) share of the step that is left when they meet and rebound; 1 of all others.
        n_before, key_before, before: (1,), (C,), (C, 3) used, keys and impulses of the last step.
    """

    used: Annotated[Integers, 1]
    dropped: Annotated[Integers, 1]
    a: Annotated[Integers, "C"]
    b: Annotated[Integers, "C"]
    point: Annotated[Array, "C", 3]
    axes: Annotated[Array, "C", 3, 3]
    gap: Annotated[Array, "C"]
    mu: Annotated[Array, "C"]
    mu_slips: Annotated[Array, "C"]
    restitution: Annotated[Array, "C"]
    key: Annotated[Integers, "C"]
    impulse: Annotated[Array, "C", 3]
    velocity: Annotated[Array, "C", 3]
    late: Annotated[Array, "C"]
    n_before: Annotated[Integers, 1]
    key_before: Annotated[Integers, "C"]
    before: Annotated[Array, "C", 3]

    @classmethod
    def of_size(cls, capacity: int) -> Contacts:
        """Return an empty set with room for ``capacity`` contacts."""
        return zeros_of(cls, {"C": capacity})


class Objects(NamedTuple):
    """M free bodies beside the robot; all axes are the world's.

    Attributes:
        position: (M, 3) centre of mass [m].
        root: (M, 6, 6) S of M^-1 = S S^T at the centre of mass.
        before, free: (M, 6) velocity (linear of the centre of mass, angular) before the step, and after it without
            contact. after: (M, 6) what comes out.
    """

    position: Annotated[Array, "M", 3]
    root: Annotated[Array, "M", 6, 6]
    before: Annotated[Array, "M", 6]
    free: Annotated[Array, "M", 6]
    after: Annotated[Array, "M", 6]

    @classmethod
    def of_number(cls, number: int) -> Objects:
        """Return ``number`` objects, all zero."""
        return zeros_of(cls, {"M": number})


@kernel
def may_touch(gap: float, speed: float, h: float) -> bool:
    """Whether two things may touch in a step: nearly do, or get there in two of them.

    Args:
        gap: Between them [m]. speed: At which it grows [m/s]. h: Step [s].
    """
    return gap <= MARGIN - 2.0 * h * min(speed, 0.0)


@kernel
def clear(c: Contacts) -> None:
    """Keep what the last step found for the next one to begin from, and empty the set."""
    c.n_before[0] = c.used[0]
    for m in range(c.used[0]):
        c.key_before[m] = c.key[m]
        for a in range(3):
            c.before[m, a] = c.impulse[m, a]
    c.used[0] = 0
    c.dropped[0] = 0


@kernel
def add(
    c: Contacts, a: int, b: int, point: Array, axes: Array, gap: float, mu: float, restitution: float, key: int
) -> bool:
    """Add a contact, with the impulse that the same one had in the last step; return False where there is no room.

    Args:
        c, a, b, gap, mu, restitution, key: See :class:`Contacts`.
        point: Three numbers. axes: (3, 3).
    """
    m = c.used[0]
    if m >= c.a.shape[0]:
        c.dropped[0] += 1
        return False
    c.used[0] = m + 1
    c.a[m], c.b[m], c.gap[m], c.mu[m], c.restitution[m], c.key[m] = a, b, gap, mu, restitution, key
    c.mu_slips[m] = mu
    c.late[m] = 1.0
    for i in range(3):
        c.point[m, i] = point[i]
        c.impulse[m, i] = 0.0
        for j in range(3):
            c.axes[m, i, j] = axes[i, j]
    for k in range(c.n_before[0]):
        if key >= 0 and c.key_before[k] == key:
            for i in range(3):
                c.impulse[m, i] = c.before[k, i]
            break
    return True


def forget(c: Contacts) -> None:
    """Forget the last step."""
    c.used[:] = c.n_before[:] = c.dropped[:] = 0
    c.impulse[:] = 0.0
