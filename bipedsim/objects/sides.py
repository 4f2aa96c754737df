"""Transfer of the contacts of objects to the contacts of a robot (:mod:`bipedsim.touch`)."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from bipedsim.contact import fill_root
from bipedsim.numerics import Array, Integers, entry, kernel
from bipedsim.objects.contacts import WORLD
from bipedsim.objects.narrow import Near
from bipedsim.touch import WORLD as STILL, Contacts, ObjectContacts, add

KEYS = 1 << 40
"""First contact key of objects."""


class Sides(NamedTuple):
    """Arrays of the objects and of the robot's contacts.

    Attributes:
        near: Collision detection of the objects.
        contacts, objects: Contacts of the robot, and objects in them.
        joints: (L,) joints of the links.
        ahead: (1,) time after the beginning of the step at which contacts were detected [s].
        given: (M,) for each transferred contact, the index of the object contact.
        axes: (3, 3) work array.
    """

    near: Near
    contacts: Contacts
    objects: ObjectContacts
    joints: Integers
    ahead: Array
    given: Annotated[Integers, "M"]
    axes: Annotated[Array, 3, 3]


@kernel
def _side(a: Sides, body: int) -> int:
    """Return the body number in the robot's contacts.

    It is 0 for the world, the joint of a link, and -1 - i for object i.
    """
    free = a.near.bodies.mass.shape[0]
    if body == WORLD:
        return STILL
    return -1 - body if body < free else a.joints[body - free]


@kernel
def _fill_objects(a: Sides) -> None:
    """Fill positions, roots of the inverse masses, and velocities before the step and without contact."""
    b = a.near.bodies
    o = a.objects
    for i in range(b.mass.shape[0]):
        fill_root(b.mass[i], b.mobility_free[i], o.root[i])
        for r in range(3):
            o.position[i, r] = b.position[i, r] + a.ahead[0] * b.v[i, r]
            o.before[i, r] = b.v[i, r]
            o.before[i, 3 + r] = b.w[i, r]
            o.free[i, r] = b.v_free[i, r]
            o.free[i, 3 + r] = b.w_free[i, r]


@entry
def give_contacts(boxed: Any) -> int:
    """Add the active contacts of the objects to those of the robot; return the index of the first one."""
    a = boxed.arrays
    c = a.near.contacts
    _fill_objects(a)
    first = a.contacts.used[0]
    for m in range(c.points[0]):
        if not c.active[m]:
            continue
        p = c.pair[m]
        for i in range(3):
            for j in range(3):
                a.axes[i, j] = c.axes[p, j, i]
        mu = c.mu[m, 0] if c.sticking[m] else c.mu[m, 1]
        key = KEYS + ((c.shapes[p, 0] * 4096 + c.shapes[p, 1] + 2048) << 20) + c.key[m] + 1
        n = a.contacts.used[0]
        bodies = _side(a, c.first[p]), _side(a, c.second[p])
        if add(a.contacts, bodies, c.where[m], a.axes, c.gap[m], mu, c.restitution[p], key):
            a.given[n - first] = m
            a.contacts.mu_slips[n] = min(mu, c.mu[m, 1])
        else:
            c.active[m] = 0
            c.lost[0] += 1
    return first
