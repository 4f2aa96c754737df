"""The set of all contacts between two bodies: bodies of the robot, the world, and free objects."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from bipedsim.numerics import Array, Integers, kernel, mul, zeros_of

WORLD = 0
"""The body that does not move."""
MARGIN = 1e-3
"""Bodies within this distance [m] may be in contact at any speed."""


class Contacts(NamedTuple):
    """Contacts in one step, at most C.

    A body is given by a number: ``WORLD`` is the ground, j >= 1 is joint j of the robot's model with its body, and
    -1 - k is the free object k. In a step with the robot, joint limits are contacts too. If the model has ``bodies``
    joints, the world included, number ``bodies`` + j is the limit of joint j.

    Attributes:
        used: (1,) number of contacts.
        dropped: (1,) number of contacts that exceeded the capacity.
        a, b: (C,) the two bodies.
        point: (C, 3) contact point, in the world [m].
        axes: (C, 3, 3) columns t1, t2, n in the world; n points from b to a.
        gap: (C,) distance [m], negative where the bodies overlap.
        mu: (C,) Coulomb's coefficient.
        mu_slips: (C,) Coulomb's coefficient while the contact slips; equal to ``mu`` unless the caller of :func:`add`
            sets another value.
        drift: (C, 2) target velocities along t1 and t2 [m/s], zero unless the caller of :func:`add` sets others.
        restitution: (C,) Newton's coefficient.
        key: (C,) number that identifies the same contact in the next step, -1 for none.
        impulse: (C, 3) on a, along the axes, over the step [N.s].
        velocity: (C, 3) of a relative to b after the step, along the axes [m/s].
        late: (C,) fraction of the step that remains when the bodies meet and rebound; 1 for all other contacts.
        n_before, key_before, before: (1,), (C,), (C, 3) number, keys and impulses of the last step.
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
    drift: Annotated[Array, "C", 2]
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
        """Return an empty set with memory for ``capacity`` contacts."""
        return zeros_of(cls, {"C": capacity})


class ObjectContacts(NamedTuple):
    """M free bodies in addition to the robot; all axes are the world's.

    Attributes:
        position: (M, 3) centre of mass [m].
        root: (M, 6, 6) S of M^-1 = S S^T at the centre of mass.
        before: (M, 6) velocity before the step (linear of the centre of mass, angular).
        free: (M, 6) velocity after the step without contact.
        after: (M, 6) resulting velocity after the step.
    """

    position: Annotated[Array, "M", 3]
    root: Annotated[Array, "M", 6, 6]
    before: Annotated[Array, "M", 6]
    free: Annotated[Array, "M", 6]
    after: Annotated[Array, "M", 6]

    @classmethod
    def of_number(cls, number: int) -> ObjectContacts:
        """Return ``number`` objects, all zero."""
        return zeros_of(cls, {"M": number})


@kernel
def may_touch(gap: float, speed: float, h: float) -> bool:
    """Return whether two bodies may come into contact: they nearly are, or will be within two steps.

    Args:
        gap: Distance of the bodies [m].
        speed: Rate at which the distance grows [m/s].
        h: Step [s].
    """
    return gap <= MARGIN - 2.0 * h * min(speed, 0.0)


@kernel
def clear(c: Contacts) -> None:
    """Store the impulses of the last step as initial values for the next one, and empty the set."""
    c.n_before[0] = c.used[0]
    for m in range(c.used[0]):
        c.key_before[m] = c.key[m]
        for a in range(3):
            c.before[m, a] = c.impulse[m, a]
    c.used[0] = 0
    c.dropped[0] = 0


@kernel
def add(
    c: Contacts, bodies: tuple[int, int], point: Array, axes: Array, gap: float, mu: float, restitution: float, key: int
) -> bool:
    """Add a contact with the impulse that it had in the last step; return False if the set is full.

    Args:
        c, gap, mu, restitution, key: See :class:`Contacts`.
        bodies: ``a`` and ``b``.
        point: (3,) contact point.
        axes: (3, 3) contact axes.
    """
    m = c.used[0]
    if m >= c.a.shape[0]:
        c.dropped[0] += 1
        return False
    c.used[0] = m + 1
    c.a[m], c.b[m] = bodies
    c.gap[m], c.mu[m], c.restitution[m], c.key[m] = gap, mu, restitution, key
    c.mu_slips[m] = mu
    c.drift[m, 0] = c.drift[m, 1] = 0.0
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


@kernel
def add_impulses(c: Contacts, out: Array) -> None:
    """Add the impulses of all contacts on the bodies of the robot to ``out`` (joints, 3), in the world [N.s]."""
    for m in range(c.used[0]):
        f = mul(c.axes[m], c.impulse[m])
        for a in range(3):
            if WORLD < c.a[m] < out.shape[0]:
                out[c.a[m], a] += f[a]
            if WORLD < c.b[m] < out.shape[0]:
                out[c.b[m], a] -= f[a]


def clear_history(c: Contacts) -> None:
    """Delete all contacts and the impulses of the last step."""
    c.used[:] = c.n_before[:] = c.dropped[:] = 0
    c.impulse[:] = 0.0
