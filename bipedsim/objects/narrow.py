"""Collision detection of shapes with the ground and with each other in closed form; hulls.py covers the other pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.ground import UNDERSIDE, GroundArrays, is_beside
from bipedsim.numerics import Array, Integers, assign, cross, dot, kernel, mul, mul_t, zeros_of
from bipedsim.objects.bodies import Bodies, turns_far
from bipedsim.objects.contacts import PAIRS, POINTS, WORLD, PairContacts, add_point, fill_axes, open_pair
from bipedsim.objects.crossing import Crossing
from bipedsim.objects.free_body import FreeBody, Link
from bipedsim.objects.nearest import Nearest
from bipedsim.objects.shapes import BALL, BOX, CYLINDER, ObjectShape, ObjectShapes, carry, carry_to_end, corner

MARGIN = 1e-3
"""Points farther apart than this [m], plus their possible displacement in a step, are ignored."""
MOMENT = 1e-7
"""Time [s] for finite differences of normals."""
FLAT_RIM = 1e-2
"""Sine of the tilt below which a rim counts as flat, so that its lowest point is not defined."""
ROUND, SHARES = 0.15, 6
"""Maximum rotation [rad] of the lowest point of a rim per sub-step, and factor for the maximum in the remaining time.

Beyond these, the contact point does not follow the lowest point.
"""
DEEPER = 1e-5
"""Penetration [m] beyond the predicted contacts at which a sub-step ends early."""
LEVEL = 1e-4
"""Sine of the tilt below which the corners of a cap follow the axes of the cylinder."""
CAPPED = 0.7
"""Cosine of the angle between cylinder axis and a direction above which a cap faces the direction, not the side."""
ON_EDGE = 1e-9
"""A corner within this distance of an edge is on it [m].

Otherwise, faces with common edges would have two points at such a corner, others in each step.
"""
CORNERS, CAP = 8, 16
"""Number of corners of the polygon that approximates a flat cap: on the ground, and on a face."""


class Surface(NamedTuple):
    """Surface properties of A bodies.

    Attributes:
        mu_static, mu_dynamic: (A,) static and dynamic friction.
        restitution, ground_restitution: (A,) Newton's coefficient with other bodies, and with the ground.
    """

    mu_static: Annotated[Array, "A"]
    mu_dynamic: Annotated[Array, "A"]
    restitution: Annotated[Array, "A"]
    ground_restitution: Annotated[Array, "A"]

    @classmethod
    def of(cls, free: Sequence[FreeBody], links: Sequence[Link]) -> Surface:
        """Collect the surface properties of free bodies and of the links of a robot."""
        return cls(
            np.array([*(body.friction_static for body in free), *(link.friction for link in links)]),
            np.array([*(body.friction_dynamic for body in free), *(link.friction for link in links)]),
            # With a restitution of 1, the restitution of a link pair is that of the object.
            np.array([*(body.restitution for body in free), *(1.0 for _ in links)]),
            np.array([body.ground_restitution for body in free]),
        )


class Near(NamedTuple):
    """Arrays of the collision detection.

    Attributes:
        bodies, shapes, surface, ground, contacts: Bodies with their shapes and surfaces, the ground, and the contacts.
        crossing: Work arrays of a pair that meets at one point.
        nearest: Nearest points of the current pair.
        links: (1,) whether links of the robot are included.
        ask: (Q, 2) pairs of shapes near each other that have no closed form.
        asked: (1,) number of these pairs.
        room: (Q,) their distances [m].
        check: (Q,) which of them must be checked at the end of the sub-step.
        left: (1,) remaining time of the step [s].
        span: (1,) longest sub-step for which rims can be followed [s].
        whole: (1,) whether the sub-step must take all of the remaining time.
        reach: (1,) maximum distance of points of the current pair [m].
        polygon, spare, side: (C, 3) work arrays.
        keys, spare_keys: (C,) work arrays.
        own, other: (3,) work arrays.
        rim: (3, 3) axes of the frame of a rim, as rows.
        rim_rate: (3, 3) their rates of change [1/s].
        longest: (1,) longest sub-step for which these are accurate [s].
    """

    bodies: Bodies
    shapes: ObjectShapes
    surface: Surface
    ground: GroundArrays
    contacts: PairContacts
    crossing: Crossing
    nearest: Nearest
    links: Annotated[Integers, 1]
    ask: Annotated[Integers, "Q", 2]
    asked: Annotated[Integers, 1]
    room: Annotated[Array, "Q"]
    check: Annotated[Integers, "Q"]
    left: Annotated[Array, 1]
    span: Annotated[Array, 1]
    whole: Annotated[Integers, 1]
    reach: Annotated[Array, 1]
    polygon: Annotated[Array, "C", 3]
    spare: Annotated[Array, "C", 3]
    keys: Annotated[Integers, "C"]
    spare_keys: Annotated[Integers, "C"]
    side: Annotated[Array, "C", 3]
    rim: Annotated[Array, 3, 3]
    rim_rate: Annotated[Array, 3, 3]
    longest: Annotated[Array, 1]
    own: Annotated[Array, 3]
    other: Annotated[Array, 3]

    @classmethod
    def of(
        cls, bodies: Bodies, shapes: Sequence[tuple[int, ObjectShape]], surface: Surface, ground: GroundArrays
    ) -> Near:
        """Return the arrays for ``shapes``, each with its body, and the capacity for the first contacts."""
        links = np.zeros((len(bodies.position) - len(bodies.com), 3))
        flat = ObjectShapes.of(shapes, np.vstack([bodies.com, links]))
        pairs = len(shapes) * (len(shapes) - 1) // 2
        corners = 2 * max(flat.faces.shape[2], CAP) + ground.region.shape[1]
        contacts = zeros_of(PairContacts, {"P": PAIRS, "M": POINTS})
        parts = {"bodies": bodies, "shapes": flat, "surface": surface, "ground": ground, "contacts": contacts}
        work = {"crossing": zeros_of(Crossing, {}), "nearest": zeros_of(Nearest, {})}
        return zeros_of(cls, {"Q": max(pairs, 1), "C": corners}, **parts, **work)


@kernel
def find_contacts(a: Near, s: float) -> None:
    """Detect the contacts that may be loaded in the next ``s`` seconds, and list the pairs without a closed form."""
    sh = a.shapes
    c = a.contacts
    c.pairs[0] = 0
    c.points[0] = 0
    c.lost[0] = 0
    a.asked[0] = 0
    a.left[0] = a.span[0] = s
    carry(a.bodies, sh, s)
    free = a.bodies.mass.shape[0]
    for i in range(sh.body.shape[0]):
        for g in range(a.ground.field.first):
            if a.ground.plane[g] == g and sh.body[i] < free:
                _on_plane(a, i, g)
    for i in range(sh.body.shape[0]):
        for j in range(i + 1, sh.body.shape[0]):
            # Shapes of links have the highest indices.
            if sh.body[i] != sh.body[j] and sh.body[i] < free and (a.links[0] or sh.body[j] < free):
                _find_between(a, i, j)


@kernel
def _find_between(a: Near, i: int, j: int) -> None:
    """Detect contacts between two shapes if their bounding spheres are near each other."""
    sh = a.shapes
    dx = sh.p[i, 0] - sh.p[j, 0]
    dy = sh.p[i, 1] - sh.p[j, 1]
    dz = sh.p[i, 2] - sh.p[j, 2]
    a.reach[0] = MARGIN + sh.sweep[i] + sh.sweep[j]
    far = sh.bound[i] + sh.bound[j] + a.reach[0]
    if dx * dx + dy * dy + dz * dz > far * far:
        return
    if sh.kind[i] == BALL and sh.kind[j] == BALL:
        _balls(a, i, j)
    elif sh.kind[i] == BALL and (sh.kind[j] == BOX or sh.kind[j] == CYLINDER):
        _ball_on(a, i, j)
    elif sh.kind[j] == BALL and (sh.kind[i] == BOX or sh.kind[i] == CYLINDER):
        _ball_on(a, j, i)
    elif a.asked[0] < a.ask.shape[0]:
        a.ask[a.asked[0], 0] = i
        a.ask[a.asked[0], 1] = j
        a.asked[0] += 1
    else:
        a.contacts.lost[0] += 1


@kernel
def begin_pair(a: Near, i: int, j: int, n) -> int:
    """Add the pair of shapes ``i`` and ``j`` with the normal ``n``; the smaller restitution of both applies."""
    sh = a.shapes
    first = sh.body[i]
    second = sh.body[j]
    p = open_pair(a.contacts, first, second, i, j)
    if p >= 0:
        fill_axes(a.contacts, p, n)
        a.contacts.restitution[p] = min(a.surface.restitution[first], a.surface.restitution[second])
    return p


@kernel
def put_point(a: Near, p: int, point, gap: float, key: int, moving, own: int = WORLD) -> int:
    """Add a point of a pair that moves with ``moving`` (3,) or is fixed to the body ``own``; the smaller mu applies."""
    c = a.contacts
    m = add_point(c, p, point, gap, key)
    if m < 0:
        return m
    if m == 0 or c.pair[m - 1] != p:
        assign(c.origin[p], point)
    first = c.first[p]
    second = c.second[p]
    s = a.surface
    c.mu[m, 0] = s.mu_static[first]
    c.mu[m, 1] = s.mu_dynamic[first]
    if second != WORLD:
        c.mu[m, 0] = min(c.mu[m, 0], s.mu_static[second])
        c.mu[m, 1] = min(c.mu[m, 1], s.mu_dynamic[second])
    c.own[m] = own
    assign(c.moving[m], moving)
    return m


@kernel
def velocity(b: Bodies, i: int, point):
    """Return the velocity of the material point of body ``i`` at ``point`` (3,) in the world [m/s]."""
    if i == WORLD:
        return 0.0, 0.0, 0.0
    x = b.position[i]
    turning = cross(b.w[i], (point[0] - x[0], point[1] - x[1], point[2] - x[2]))
    return b.v[i, 0] + turning[0], b.v[i, 1] + turning[1], b.v[i, 2] + turning[2]


@kernel
def _balls(a: Near, i: int, j: int) -> None:
    sh = a.shapes
    n = (sh.p[i, 0] - sh.p[j, 0], sh.p[i, 1] - sh.p[j, 1], sh.p[i, 2] - sh.p[j, 2])
    distance = np.sqrt(n[0] ** 2 + n[1] ** 2 + n[2] ** 2)
    gap = distance - sh.size[i, 0] - sh.size[j, 0]
    if gap > a.reach[0]:
        return
    if distance > 0.0:
        n = (n[0] / distance, n[1] / distance, n[2] / distance)
        one = velocity(a.bodies, sh.body[i], sh.p[i])
        two = velocity(a.bodies, sh.body[j], sh.p[j])
        u = (one[0] - two[0], one[1] - two[1], one[2] - two[2])
        along = u[0] * n[0] + u[1] * n[1] + u[2] * n[2]
        rate = ((u[0] - along * n[0]) / distance, (u[1] - along * n[1]) / distance, (u[2] - along * n[2]) / distance)
    else:
        n = (0.0, 0.0, 1.0)
        rate = (0.0, 0.0, 0.0)
    _put_ball(a, i, j, n, rate, gap)


@kernel
def _put_ball(a: Near, i: int, j: int, n, rate, gap: float) -> None:
    """Add the point of ball ``i`` on shape ``j``; its normal ``n`` (3,) changes at ``rate`` (3,) [1/s]."""
    sh = a.shapes
    p = begin_pair(a, i, j, n)
    if p < 0:
        return
    r = sh.size[i, 0] + 0.5 * gap
    u = velocity(a.bodies, sh.body[i], sh.p[i])
    point = (sh.p[i, 0] - r * n[0], sh.p[i, 1] - r * n[1], sh.p[i, 2] - r * n[2])
    assign(a.contacts.turn[p], rate)
    put_point(a, p, point, gap, 0, (u[0] - r * rate[0], u[1] - r * rate[1], u[2] - r * rate[2]))


@kernel
def _ball_on(a: Near, i: int, j: int) -> None:
    """Detect the contact of ball ``i`` with box or cylinder ``j``."""
    sh = a.shapes
    q = mul_t(sh.R[j], (sh.p[i, 0] - sh.p[j, 0], sh.p[i, 1] - sh.p[j, 1], sh.p[i, 2] - sh.p[j, 2]))
    local, distance = _exit_direction(sh, j, q)
    gap = distance - sh.size[i, 0]
    if gap > a.reach[0]:
        return
    # The rate of the normal follows from the position of the ball's centre a moment later.
    one = velocity(a.bodies, sh.body[i], sh.p[i])
    two = velocity(a.bodies, sh.body[j], sh.p[i])
    u = mul_t(sh.R[j], (one[0] - two[0], one[1] - two[1], one[2] - two[2]))
    later, _ = _exit_direction(sh, j, (q[0] + MOMENT * u[0], q[1] + MOMENT * u[1], q[2] + MOMENT * u[2]))
    change = ((later[0] - local[0]) / MOMENT, (later[1] - local[1]) / MOMENT, (later[2] - local[2]) / MOMENT)
    n = mul(sh.R[j], local)
    change = mul(sh.R[j], change)
    turning = cross(a.bodies.w[sh.body[j]], n)
    rate = (change[0] + turning[0], change[1] + turning[1], change[2] + turning[2])
    _put_ball(a, i, j, n, rate, gap)


@kernel
def _exit_direction(sh: ObjectShapes, j: int, q):
    """Return the direction out of box or cylinder ``j`` from the point ``q`` (3,), and the signed distance [m]."""
    if sh.kind[j] == BOX:
        return _out_of_box(q, sh.size[j])
    return _out_of_cylinder(q, sh.size[j])


@kernel
def _out_of_box(q, half):
    """Return the direction out of a box from the point ``q`` (3,) in its axes, and the signed distance [m]."""
    out = (
        q[0] - min(max(q[0], -half[0]), half[0]),
        q[1] - min(max(q[1], -half[1]), half[1]),
        q[2] - min(max(q[2], -half[2]), half[2]),
    )
    distance = np.sqrt(out[0] ** 2 + out[1] ** 2 + out[2] ** 2)
    if distance > 0.0:
        return (out[0] / distance, out[1] / distance, out[2] / distance), distance
    x, y, z = half[0] - abs(q[0]), half[1] - abs(q[1]), half[2] - abs(q[2])
    if x <= y and x <= z:
        return (1.0 if q[0] >= 0.0 else -1.0, 0.0, 0.0), -x
    if y <= z:
        return (0.0, 1.0 if q[1] >= 0.0 else -1.0, 0.0), -y
    return (0.0, 0.0, 1.0 if q[2] >= 0.0 else -1.0), -z


@kernel
def _out_of_cylinder(q, size):
    """Return the direction out of a cylinder from the point ``q`` (3,) in its axes, and the signed distance [m]."""
    radial = np.sqrt(q[0] * q[0] + q[1] * q[1])
    ex, ey = (q[0] / radial, q[1] / radial) if radial > 0.0 else (1.0, 0.0)
    side = 1.0 if q[2] >= 0.0 else -1.0
    outside = radial - size[0]
    above = abs(q[2]) - size[1]
    if outside <= 0.0 and above <= 0.0:
        if above >= outside:
            return (0.0, 0.0, side), above
        return (ex, ey, 0.0), outside
    r = max(outside, 0.0)
    h = max(above, 0.0)
    distance = np.sqrt(r * r + h * h)
    return (ex * r / distance, ey * r / distance, side * h / distance), distance


@kernel
def _on_plane(a: Near, i: int, g: int) -> None:
    """Detect the contacts of shape ``i`` with the plane of patch ``g``, its first one."""
    sh = a.shapes
    ground = a.ground
    n = (ground.rotation[g, 0, 2], ground.rotation[g, 1, 2], ground.rotation[g, 2, 2])
    height = _height(ground, g, sh.p[i])
    a.reach[0] = MARGIN + sh.sweep[i]
    if height - sh.bound[i] > a.reach[0] or _is_beside(ground, g, ground.plane_circle, sh, i):
        return
    p = -1
    if sh.kind[i] == BALL:
        r = sh.size[i, 0]
        point = (sh.p[i, 0] - r * n[0], sh.p[i, 1] - r * n[1], sh.p[i, 2] - r * n[2])
        _add_ground_point(a, p, i, g, point, height - r, 0)
    elif sh.kind[i] == CYLINDER:
        _cylinder_on_plane(a, i, g, n)
    elif ground.plane_circle[g, 2] < np.inf:
        _face_on_patches(a, i, g, n)
    else:
        for k in range(sh.n_vertices[i]):
            point = corner(sh, i, k)
            p = _add_ground_point(a, p, i, g, point, _height(ground, g, point), k)


@kernel
def spare_room(a: Near, s: float) -> float:
    """Move the shapes to the end of a sub-step of ``s`` seconds; return the remaining distance [m].

    The distance is negative if the rim of a cylinder is deeper in the ground than its contacts allow.
    """
    sh = a.shapes
    b = a.bodies
    c = a.contacts
    carry_to_end(b, sh, s)
    least = np.inf
    for p in range(c.pairs[0]):
        i = c.shapes[p, 0]
        if c.second[p] != WORLD or sh.kind[i] != CYLINDER or turns_far(b, c.first[p], s):
            continue
        before = 0.0
        followed = False
        for m in range(c.begin[p], c.end[p]):
            before = min(before, c.gap[m])
            followed = c.own[m] == WORLD
        if not followed:
            continue
        g = -1 - c.shapes[p, 1]
        n = c.axes[p, 2]
        R = sh.R[i]
        down = (-n[0], -n[1], -n[2])
        low = lowest_on_rim(sh, i, down)
        end = -sh.size[i, 1] if R[0, 2] * n[0] + R[1, 2] * n[1] + R[2, 2] * n[2] > 0.0 else sh.size[i, 1]
        radius = sh.size[i, 0]
        point = (
            sh.p[i, 0] + end * R[0, 2] + radius * low[0],
            sh.p[i, 1] + end * R[1, 2] + radius * low[1],
            sh.p[i, 2] + end * R[2, 2] + radius * low[2],
        )
        if _patch_under(a.ground, g, point) >= 0:
            least = min(least, _height(a.ground, g, point) - before + DEEPER)
    return least


@kernel
def mark_pairs(a: Near, s: float) -> None:
    """Mark the listed pairs that may be deeper after ``s`` seconds, from their motion."""
    sh = a.shapes
    b = a.bodies
    for q in range(a.asked[0]):
        i, j = a.ask[q, 0], a.ask[q, 1]
        moves = sh.sweep[i] + sh.sweep[j] > max(a.room[q], 0.0) + DEEPER
        a.check[q] = moves and not turns_far(b, sh.body[i], s) and not turns_far(b, sh.body[j], s)


@kernel
def _is_beside(ground: GroundArrays, g: int, circles: Array, sh: ObjectShapes, i: int) -> bool:
    """Return whether no point of shape ``i`` is over or under the circle around patch ``g``."""
    x, y, z = sh.p[i]
    return is_beside(ground.rotation[g], ground.point[g], circles[g], x, y, z, sh.bound[i])


@kernel
def _height(ground: GroundArrays, g: int, point) -> float:
    """Return the height of ``point`` (3,) over the plane of patch ``g`` [m]."""
    total = 0.0
    for a in range(3):
        total += ground.rotation[g, a, 2] * (point[a] - ground.point[g, a])
    return total


@kernel
def _patch_under(ground: GroundArrays, g: int, point) -> int:
    """Return the topmost patch of the plane of ``g`` under ``point`` (3,), -1 for none."""
    for k in range(ground.field.first - 1, -1, -1):
        if ground.plane[k] != g:
            continue
        x = y = 0.0
        for a in range(3):
            x += ground.rotation[k, a, 0] * (point[a] - ground.point[k, a])
            y += ground.rotation[k, a, 1] * (point[a] - ground.point[k, a])
        inside = True
        for e in range(ground.counts[k]):
            start = ground.region[k, e]
            end = ground.region[k, e + 1 if e + 1 < ground.counts[k] else 0]
            inside = inside and (end[0] - start[0]) * (y - start[1]) - (end[1] - start[1]) * (x - start[0]) >= 0.0
        if inside:
            return k
    return -1


@kernel
def _add_ground_point(a: Near, p: int, i: int, g: int, point, gap: float, key: int, over: int = -1) -> int:
    """Add a point of shape ``i`` on the plane of ``g`` to pair ``p``; return the pair.

    A new pair is started if ``p`` is -1.

    Points that are far from the plane, outside its patches, or below a bounded patch are ignored. ``over`` is the
    patch if it is known.
    """
    ground = a.ground
    if gap > a.reach[0]:
        return p
    patch = over if over >= 0 else _patch_under(ground, g, point)
    if patch < 0 or (ground.counts[patch] > 0 and gap < -UNDERSIDE):
        return p
    c = a.contacts
    body = a.shapes.body[i]
    if p < 0:
        p = open_pair(c, body, WORLD, i, -1 - g)
        if p < 0:
            return p
        for k in range(3):
            for d in range(3):
                c.axes[p, k, d] = ground.rotation[g, d, k]
        c.restitution[p] = a.surface.ground_restitution[body]
    if a.shapes.kind[i] == BALL:
        m = put_point(a, p, point, gap, key, velocity(a.bodies, body, a.shapes.p[i]))
    else:
        m = put_point(a, p, point, gap, key, velocity(a.bodies, body, point), body)
    if m >= 0 and not np.isnan(ground.mu_static[patch]):
        c.mu[m, 0] = ground.mu_static[patch]
        c.mu[m, 1] = ground.mu_dynamic[patch]
    return p


@kernel
def fill_rim(a: Near, i: int, n, turn) -> bool:
    """Fill the frame of the rims of cylinder ``i`` over a plane with normal ``n`` (3,) that changes at ``turn`` (3,).

    Its axes are the cylinder axis, the direction of the lowest points of the rims, and their cross product.

    Returns:
        Whether the frame moves with the lowest points; otherwise it is fixed to the cylinder.
    """
    R = a.shapes.R[i]
    w = a.bodies.w[a.shapes.body[i]]
    axis = (R[0, 2], R[1, 2], R[2, 2])
    c = dot(axis, n)
    turning = cross(w, axis)
    fast = np.sqrt(dot(turning, turning)) + np.sqrt(dot(turn, turn))
    sine = np.sqrt(max(1.0 - c * c, 0.0))
    followed = sine > FLAT_RIM and fast * a.left[0] < ROUND * sine * (1 if a.whole[0] else SHARES)
    d = lowest_on_rim(a.shapes, i, (-n[0], -n[1], -n[2])) if sine > LEVEL else (R[0, 0], R[1, 0], R[2, 0])
    d_rate = cross(w, d)
    if followed:
        # The direction d = (c axis - n) / sine changes as the axis and the plane rotate.
        rate = dot(turning, n) + dot(axis, turn)
        back = c * rate / (sine * sine)
        d_rate = (
            (rate * axis[0] + c * turning[0] - turn[0]) / sine + back * d[0],
            (rate * axis[1] + c * turning[1] - turn[1]) / sine + back * d[1],
            (rate * axis[2] + c * turning[2] - turn[2]) / sine + back * d[2],
        )
    one, two = cross(turning, d), cross(axis, d_rate)
    for k, v in enumerate((axis, d, cross(axis, d))):
        assign(a.rim[k], v)
    for k, v in enumerate((turning, d_rate, (one[0] + two[0], one[1] + two[1], one[2] + two[2]))):
        assign(a.rim_rate[k], v)
    a.longest[0] = ROUND * sine / max(fast, 1e-9) if followed else np.inf
    return followed


@kernel
def follow_rim(a: Near, i: int, m: int, at) -> None:
    """Let contact point ``m`` move along the rim of cylinder ``i``; ``at`` (3,) is its position in the rim frame."""
    c = a.contacts
    c.own[m] = WORLD
    assign(c.moving[m], velocity(a.bodies, a.shapes.body[i], a.shapes.p[i]))
    for k in range(3):
        rate = a.rim_rate[k]
        # Centripetal acceleration of the rotating unit vectors.
        pull = dot(rate, rate)
        for x in range(3):
            c.moving[m, x] += at[k] * rate[x]
            c.bow[m, x] -= at[k] * pull * a.rim[k, x]
    a.span[0] = min(a.span[0], a.longest[0])


@kernel
def _cylinder_on_plane(a: Near, i: int, g: int, n) -> None:
    """Add the lowest point of each rim.

    The lower rim also gets the points at 90 and 180 degrees from its lowest point.

    A cap gets corners that are fixed to it if it is flat, or if its lowest point moves too fast.
    """
    sh = a.shapes
    radius, half = sh.size[i, 0], sh.size[i, 1]
    followed = fill_rim(a, i, n, (0.0, 0.0, 0.0))
    lower = -half if dot(a.rim[0], n) >= 0.0 else half
    count = 4 if followed else CORNERS
    p = -1
    for k in range(count + 1):
        # The last point is on the upper rim.
        end = -lower if k == count else lower
        at = (end, radius * np.cos(2.0 * np.pi * k / count), radius * np.sin(2.0 * np.pi * k / count))
        x = sh.p[i]
        point = (
            x[0] + at[0] * a.rim[0, 0] + at[1] * a.rim[1, 0] + at[2] * a.rim[2, 0],
            x[1] + at[0] * a.rim[0, 1] + at[1] * a.rim[1, 1] + at[2] * a.rim[2, 1],
            x[2] + at[0] * a.rim[0, 2] + at[1] * a.rim[1, 2] + at[2] * a.rim[2, 2],
        )
        key = 4 * k + (2 if followed else 0) + (1 if end > 0.0 else 0)
        m = a.contacts.points[0]
        p = _add_ground_point(a, p, i, g, point, _height(a.ground, g, point), key)
        if followed and a.contacts.points[0] > m:
            follow_rim(a, i, m, at)


@kernel
def lowest_on_rim(sh: ObjectShapes, i: int, d):
    """Return the unit vector from the axis of cylinder ``i`` to the point of its rims farthest along ``d`` (3,)."""
    R = sh.R[i]
    x = R[0, 0] * d[0] + R[1, 0] * d[1] + R[2, 0] * d[2]
    y = R[0, 1] * d[0] + R[1, 1] * d[1] + R[2, 1] * d[2]
    length = np.sqrt(x * x + y * y)
    # A flat cap has no lowest point, so the axes of the cylinder are used.
    if length < 1e-6:
        x, y, length = 1.0, 0.0, 1.0
    x /= length
    y /= length
    return R[0, 0] * x + R[0, 1] * y, R[1, 0] * x + R[1, 1] * y, R[2, 0] * x + R[2, 1] * y


@kernel
def fill_face(a: Near, i: int, d) -> tuple[int, int]:
    """Fill ``polygon`` and its keys with the face of box, cylinder or hull ``i`` that faces ``d`` (3,) most.

    Returns:
        Number of corners (two for the side of a cylinder), and number of the face (-1 for a cylinder).
    """
    sh = a.shapes
    if sh.kind[i] == CYLINDER:
        return _cylinder_face(a, i, d), -1
    local = mul_t(sh.R[i], d)
    best = -np.inf
    face = 0
    for f in range(sh.n_faces[i]):
        dot = sh.normals[i, f, 0] * local[0] + sh.normals[i, f, 1] * local[1] + sh.normals[i, f, 2] * local[2]
        if dot > best:
            best = dot
            face = f
    for k in range(sh.n_corners[i, face]):
        assign(a.polygon[k], corner(sh, i, sh.faces[i, face, k]))
        a.keys[k] = sh.faces[i, face, k]
    return sh.n_corners[i, face], face


@kernel
def _cylinder_face(a: Near, i: int, d) -> int:
    sh = a.shapes
    R = sh.R[i]
    radius, half = sh.size[i, 0], sh.size[i, 1]
    axis = (R[0, 2], R[1, 2], R[2, 2])
    along = axis[0] * d[0] + axis[1] * d[1] + axis[2] * d[2]
    u = lowest_on_rim(sh, i, d)
    side = 1.0 if along >= 0.0 else -1.0
    if abs(along) < CAPPED:
        for k in range(2):
            end = side * half * (1.0 - 2.0 * k)
            for x in range(3):
                a.polygon[k, x] = sh.p[i, x] + end * axis[x] + radius * u[x]
            a.keys[k] = k
        return 2
    w = (axis[1] * u[2] - axis[2] * u[1], axis[2] * u[0] - axis[0] * u[2], axis[0] * u[1] - axis[1] * u[0])
    for k in range(CAP):
        angle = side * 2.0 * np.pi * k / CAP
        cosine = radius * np.cos(angle)
        sine = radius * np.sin(angle)
        for x in range(3):
            a.polygon[k, x] = sh.p[i, x] + side * half * axis[x] + cosine * u[x] + sine * w[x]
        a.keys[k] = k
    return CAP


@kernel
def clip(a: Near, count: int, normal, level: float, edge: int) -> int:
    """Clip ``polygon`` to normal . x <= level; return its number of corners. Keys of new corners contain ``edge``."""
    total = 0
    edges = count if count > 2 else count - 1
    for i in range(count):
        here = _beyond(a.polygon[i], normal, level)
        if here <= 0.0 and total < a.spare.shape[0]:
            assign(a.spare[total], a.polygon[i])
            a.spare_keys[total] = a.keys[i]
            total += 1
        if i >= edges:
            continue
        j = i + 1 if i + 1 < count else 0
        there = _beyond(a.polygon[j], normal, level)
        if (here < 0.0 < there or there < 0.0 < here) and total < a.spare.shape[0]:
            t = here / (here - there)
            for x in range(3):
                a.spare[total, x] = a.polygon[i, x] + t * (a.polygon[j, x] - a.polygon[i, x])
            inner = a.keys[i] if here < 0.0 else a.keys[j]
            a.spare_keys[total] = 4096 * (edge + 1) + inner % 4096
            total += 1
    for i in range(total):
        assign(a.polygon[i], a.spare[i])
        a.keys[i] = a.spare_keys[i]
    return total


@kernel
def _beyond(x: Array, normal, level: float) -> float:
    """Return the distance of ``x`` (3,) beyond a plane, which is zero up to ``ON_EDGE`` [m]."""
    distance = dot(normal, x) - level
    return distance if abs(distance) > ON_EDGE else 0.0


@kernel
def _face_on_patches(a: Near, i: int, g: int, n) -> None:
    """Add the part of the lowest face of shape ``i`` that is above each patch of a bounded plane."""
    ground = a.ground
    p = -1
    sh = a.shapes
    for k in range(ground.field.first):
        if ground.plane[k] != g or _is_beside(ground, k, ground.circle, sh, i):
            continue
        count, _ = fill_face(a, i, (-n[0], -n[1], -n[2]))
        for e in range(ground.counts[k]):
            start = ground.region[k, e]
            end = ground.region[k, e + 1 if e + 1 < ground.counts[k] else 0]
            # Outward normal, in the axes of the patch and in the world.
            ox, oy = end[1] - start[1], start[0] - end[0]
            length = np.sqrt(ox * ox + oy * oy)
            ox /= length
            oy /= length
            out = (
                ground.rotation[k, 0, 0] * ox + ground.rotation[k, 0, 1] * oy,
                ground.rotation[k, 1, 0] * ox + ground.rotation[k, 1, 1] * oy,
                ground.rotation[k, 2, 0] * ox + ground.rotation[k, 2, 1] * oy,
            )
            level = ox * start[0] + oy * start[1]
            for x in range(3):
                level += out[x] * ground.point[k, x]
            count = clip(a, count, out, level, e)
        for m in range(count):
            height = _height(ground, g, a.polygon[m])
            p = _add_ground_point(a, p, i, g, a.polygon[m], height, 65536 * k + a.keys[m], k)
