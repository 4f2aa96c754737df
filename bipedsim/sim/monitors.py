"""Monitors of the physics: check every step against the laws of mechanics, in one compiled call.

The monitors evaluate the result of a step with the equations of motion. They use no intermediate values of the contact
model. They check the momentum balance of every joint, the work and the CoP of the contact, and its friction cone. They
detect adhesion, forces at a distance and penetration. They also check the joint limits with their impulses, and closed
chains. A contact model declares its deviations from the ideal (:class:`bipedsim.contact.Promises`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import boolean, float64, int64
from numpy.typing import NDArray

from bipedsim.contact import (
    RECOVERY,
    ContactModel,
    ContactResult,
    Promises,
    centre_of_pressure,
    distance_outside,
    for_kernels,
)
from bipedsim.dynamics import Dynamics, Foothold, Loops, Projection, Stops, Tree, energy_added
from bipedsim.model import Robot
from bipedsim.numerics import Array, Integers, box, cross, entry, kernel, mul, zeros_of
from bipedsim.sim.participant import Participant, Simulation
from bipedsim.touch import Touching

BALANCE, WORK, FRICTION, PULL, GAP, DEPTH, COP, JOINT, STOP_WORK, STOP_PULL, LOOP = range(11)
MONITORS = (
    "momentum_error",
    "contact_work_J",
    "friction_excess_N",
    "pull_N",
    "push_gap_m",
    "depth_m",
    "cop_outside_m",
    "joint_limit_rad",
    "stop_work_J",
    "stop_pull_Nm",
    "loop_gap_m",
)
"""Names of the monitors, in the order of these indices; the momentum error is relative to the largest term."""
SAID = (
    "momentum is not balanced",
    "contact gives energy",
    "friction is beyond its cone",
    "contact pulls",
    "a foot without contact exerts a force",
    "a foot is too deep in the ground",
    "the CoP is outside the sole",
    "a joint is beyond its limits",
    "joint limits add energy",
    "a joint limit pulls its joint",
    "a loop is open",
)
BALANCED = 1e-7
"""Tolerance for rounding: of the equations of motion relative to their largest term, of forces to the weight."""
INSIDE = 1e-4
"""Allowed distance of the CoP outside the sole [m], in addition to the effect of friction at different heights."""
PUSHES = 1e-6
"""Height [m] below which a vertex at the beginning or the end of a step may have been in contact in it."""
LEVEL = 0.9
"""Cosine of the largest tilt for which the CoP is checked; near atan(1 / mu) the force is in the plane of the sole."""
GIVES = 1e-3
"""Allowed angle of a joint beyond its limit [rad] if the simulation has no joint stops: a drive there is compliant."""
HELD = 1e-6
"""Allowed angle of a joint beyond its limit [rad] if the simulation has joint stops."""
CLOSED = 1e-9
"""Allowed gap [m] or rotation [rad] between the two ends of a loop."""


class _Monitored(NamedTuple):
    """Store the live inputs of the monitors and their findings.

    Attributes:
        tree, feet, projection, result: Arrays of dynamics and contact.
        torque: (nu,) joint torques that the dynamics used [N.m].
        stops: Joint limits, possibly none. loops: closed chains, possibly none. loop: (M,) index of the chain of each
            row. idx_q, lower, upper: (nu,) limits of the joints [rad].
        touch, gained: (nv,), (1,) generalised impulse of all other contacts [N.s, N.m.s], and energy that they add [J].
        weight: Weight of the robot [N]. springs: whether contacts store energy. stored: (1,) upper bound of the energy
            that they store now [J].
        residual, cop, cop_ground: (nv,), (2,), (3,) work arrays.
        limit, worst, when, where, hits: Per monitor: allowed value, worst value, its time [s], its foot or joint, and
            number of steps above the limit.
        broken, new: (1,) monitors that this step violates, and those that it is the first to violate, one bit each.
        before: (nv,) velocity at the end of the last step examined, at which the next one begins. held: (S,) joint
            limits that were active then.
    """

    tree: Tree
    feet: Foothold
    projection: Projection
    result: ContactResult
    torque: Array
    stops: Stops
    loops: Loops
    loop: Integers
    idx_q: Integers
    lower: Array
    upper: Array
    touch: Array
    gained: Array
    weight: float
    springs: bool
    stored: Annotated[Array, 1]
    residual: Annotated[Array, "v"]
    cop: Annotated[Array, 2]
    cop_ground: Annotated[Array, 3]
    limit: Array
    worst: Annotated[Array, "n"]
    when: Annotated[Array, "n"]
    where: Annotated[Integers, "n"]
    hits: Annotated[Integers, "n"]
    broken: Annotated[Integers, 1]
    new: Annotated[Integers, 1]
    before: Annotated[Array, "v"]
    held: Annotated[Integers, "S"]


@kernel
def _note(m: _Monitored, i: int, value: float, where: int, t: float) -> None:
    """Record the value of monitor ``i`` at foot or joint ``where``; count it if it exceeds the limit."""
    if value > m.worst[i]:
        m.worst[i] = value
        m.when[i] = t
        m.where[i] = where
    if value > m.limit[i]:
        if not m.broken[0] >> i & 1:
            m.hits[i] += 1
            m.broken[0] |= 1 << i
        if m.hits[i] == 1:
            m.new[0] |= 1 << i


# These kernels compare with `if`, because numba's max() handles NaN and takes ten times as long.
@kernel
def _subtract_feet(m: _Monitored, largest: float) -> float:
    """Subtract J^T f / h of the feet from the residual; return the largest term so far, ``largest`` included."""
    t, p, r, h = m.tree, m.residual, m.result, m.tree.h
    for k in range(t.leaf.shape[0]):
        force = mul(m.feet.axes[k], r.impulse[k])
        torque = mul(m.feet.axes[k], r.impulse[k, 3:])
        moment = cross(m.feet.sole_origin[k], force)
        f = (force[0] / h, force[1] / h, force[2] / h)
        n = ((torque[0] + moment[0]) / h, (torque[1] + moment[1]) / h, (torque[2] + moment[2]) / h)
        for d in range(t.depth[t.leaf[k]]):
            i = t.ancestors[t.leaf[k], d]
            J = t.J_rows[i]
            got = J[0] * f[0] + J[1] * f[1] + J[2] * f[2] + J[3] * n[0] + J[4] * n[1] + J[5] * n[2]
            p[i] -= got
            if abs(got) > largest:
                largest = abs(got)
    return largest


@kernel
def _subtract_constraints(m: _Monitored, largest: float) -> float:
    """Subtract s / h of joint limits and loops from the residual; return the largest term so far."""
    p, h = m.residual, m.tree.h
    if m.stops.near[0]:
        for j in range(m.stops.impulse.shape[0]):
            p[m.stops.idx_v[j]] -= m.stops.impulse[j] / h
            if abs(m.stops.impulse[j]) > largest * h:
                largest = abs(m.stops.impulse[j]) / h
    for held in range(m.loops.impulse.shape[0]):
        for i in range(p.shape[0]):
            pull = m.loops.rows[held, i] * m.loops.impulse[held] / h
            p[i] -= pull
            if abs(pull) > largest:
                largest = abs(pull)
    return largest


@kernel
def _momentum(m: _Monitored, v: Array, share: float) -> float:
    """Return the largest error of the momentum balance, relative to its largest term.

    The error is |M dv / h + share (nle + D v+ - tau - push) - J^T f / h - s / h|. Here f are the impulses of the feet
    and of all other contacts, and s those of joint limits and loops.
    """
    t, p = m.tree, m.residual
    dv, h = t.acceleration, t.h
    largest = 0.0
    for i in range(v.shape[0]):
        p[i] = share * (t.nle[i] + t.damping[i] * v[i] - t.push[i]) - m.touch[i] / h
        if abs(t.nle[i]) > largest:
            largest = abs(t.nle[i])
    for j in range(m.torque.shape[0]):
        p[t.actuated[j]] -= share * m.torque[j]
        if abs(m.torque[j]) > largest:
            largest = abs(m.torque[j])
    largest = _subtract_constraints(m, largest)
    for i in range(v.shape[0]):
        # Contiguous loops over whole rows are faster than loops over only the nonzero entries.
        row, own, rest = t.M_rows[i], dv[i], 0.0
        for d in range(i):
            p[d] += row[d] * own
        for d in range(i):
            rest += row[d] * dv[d]
        own *= row[i]
        p[i] += own + rest
        if abs(own) > largest:
            largest = abs(own)
    largest = _subtract_feet(m, largest)
    worst = 0.0
    for i in range(v.shape[0]):
        if abs(p[i]) > worst:
            worst = abs(p[i])
    return worst / largest if largest > 0.0 else 0.0


@kernel
def _look_at_foot(m: _Monitored, k: int, w: tuple[float, ...], t: float, begins: bool) -> float:
    """Check foot ``k``, which ends the step with the velocity ``w`` (6,); return its initial penetration [m]."""
    p, r, h = m.projection, m.result, m.tree.h
    f = r.impulse[k]
    _note(m, PULL, -f[2] / h, k, t)
    # A foot may start to slide within the step, and its friction then drops from static to dynamic.
    mu = p.mu_dynamic[k] if r.sliding[k] and not m.springs else max(p.mu_static[k], p.mu_dynamic[k])
    _note(m, FRICTION, (np.sqrt(f[0] * f[0] + f[1] * f[1]) - mu * max(f[2], 0.0)) / h, k, t)
    deepest = 0.0
    nearest = np.inf
    low, high = np.inf, -np.inf
    for i in range(p.n_vertices[k]):
        c = p.offsets[k, i]
        z = p.position[k, 2] + c[2]
        after = z + h * (w[2] + w[3] * c[1] - w[4] * c[0])
        if -z > deepest:
            deepest = -z
        near = after
        if m.springs:
            # With forces within the step, a vertex may touch down and lift off in the same step.
            b = p.w_before[6 * k :]
            near = min(after, z, z + h * (b[2] + b[3] * c[1] - b[4] * c[0]))
        if near < nearest:
            nearest = near
        if min(z, near) < PUSHES:
            low, high = min(low, z), max(high, z)
    if begins:
        _note(m, DEPTH, deepest, k, t)
    if f[2] > 0.0:
        _note(m, GAP, nearest, k, t)
    if f[2] > BALANCED * m.weight * h and p.rotation[k, 2, 2] > LEVEL:
        n = p.n_vertices[k]
        centre_of_pressure(f, p.rotation[k], m.cop, m.cop_ground)
        outside = distance_outside(p.vertices[k], p.edges[k], n, (0, n), m.cop[0], m.cop[1])
        if outside > 0.0 and high > low:
            # Friction at vertices of different heights contributes to the torque and so shifts the CoP.
            outside = max(outside - max(p.mu_static[k], p.mu_dynamic[k]) * (high - low), 0.0)
        _note(m, COP, outside, k, t)
    return deepest


@kernel
def _look_at_stops(m: _Monitored, contact: float, t: float) -> None:
    """Check the work and the sign of the impulses of the joint limits.

    The energy of the ``contact`` [J] counts as well, because the contact may be the reason for the active limits. It
    does not count for models with springs.
    """
    rows = m.tree.rows
    if rows.used[0] > 0:
        energy = rows.given[0]
        if not m.springs:
            energy = energy_added(rows, m.loops.error.shape[0], m.result.impulse) + contact
        _note(m, STOP_WORK, energy, 0, t)
    for j in range(m.stops.impulse.shape[0]):
        _note(m, STOP_PULL, m.stops.held[j] * m.stops.impulse[j] / m.tree.h, j, t)


@entry
def _check(boxed: Any, steps: int, q: Array, v: Array, share: float, begins: bool) -> int:
    """Check step number ``steps`` from (q, before) to ``v``; return the monitors that it is the first to violate.

    If there are any, ``before`` and ``held`` stay unchanged. The function checks joint limits and penetration only if
    ``begins`` is set. The beginning of a later part of a step is no state of the robot.
    """
    m = boxed.arrays
    p, r = m.projection, m.result
    t = steps * m.tree.h
    m.broken[0] = m.new[0] = 0
    _note(m, BALANCE, _momentum(m, v, share), 0, t)
    work, allowed = m.gained[0], 0.0
    touching = False
    for k in range(r.impulse.shape[0]):
        w = (_after(m, 6 * k), _after(m, 6 * k + 1), _after(m, 6 * k + 2),
             _after(m, 6 * k + 3), _after(m, 6 * k + 4), _after(m, 6 * k + 5))  # fmt: skip
        f = r.impulse[k]
        for a in range(6):
            # The work is relative to the same step without contact, and exact for any step size.
            work += 0.5 * f[a] * (p.w_free[6 * k + a] + w[a])
        depth = _look_at_foot(m, k, w, t, begins)
        # A damped spring that is unloaded fast has no force for a while, but is still compressed.
        touching = touching or f[2] != 0.0 or depth > 0.0
        allowed += f[2] * min(depth / m.tree.h, RECOVERY)
    if m.stops.near[0]:
        _look_at_stops(m, work - allowed, t)
    for n in range(m.loop.shape[0]):
        _note(m, LOOP, abs(m.loops.error[n]), m.loop[n], t)
    if m.springs:
        # A spring returns at most the energy that it received since the feet were last in the air.
        gain = work - m.stored[0]
        m.stored[0] = max(m.stored[0] - work, 0.0) if touching else 0.0
        work = gain
    _note(m, WORK, work - allowed, 0, t)
    if begins:
        for j in range(m.idx_q.shape[0]):
            angle = q[m.idx_q[j]]
            below, above = m.lower[j] - angle, angle - m.upper[j]
            _note(m, JOINT, below if below > above else above, j, t)
    if m.new[0] == 0:
        for i in range(v.shape[0]):
            m.before[i] = v[i]
        for j in range(m.held.shape[0]):
            m.held[j] = m.stops.held[j]
    return m.new[0]


@kernel
def _after(m: _Monitored, row: int) -> float:
    """Return entry ``row`` of the foot velocities after the step."""
    p, r = m.projection, m.result
    total = p.w_free[row]
    for k in range(r.impulse.shape[0]):
        for a in range(6):
            total += p.G[row, 6 * k + a] * r.impulse[k, a]
    return total


Report = Callable[[str, str, dict[str, NDArray[Any]]], None]


class Monitors(Participant):
    """Check the steps of one simulation, with constant memory.

    Args:
        plant: The simulated robot.
        dynamics, contact: Its dynamics and its contact model.
        torque: (nu,) joint torques that the dynamics use [N.m], live.
        touching: All contacts except those of the soles; None if there cannot be any.
        report: Called once for each kind of violation since reset; see :meth:`Simulator.watch`.

    Attributes:
        before: (nv,) velocity at the beginning of the next step, or of the first step that violated a limit.
        held: (S,) joint limits that were active in the step before it, see :class:`bipedsim.dynamics.Stops`.
        look: ``look(steps, q, v, share, begins)`` checks the step from the configuration q (nq,) to the velocity v
            (nv,). ``steps`` is its number since reset, ``share`` the fraction of the step during which forces other
            than contact act, and ``begins`` whether the step, and not only a part of it, begins at q. The result is
            the set of monitors that the step is the first to violate, bit i for entry i of :data:`MONITORS`.
    """

    name = "monitors"
    look: Callable[[int, Array, Array, float, bool], int]

    def __init__(
        self,
        plant: Robot,
        dynamics: Dynamics,
        contact: ContactModel,
        torque: Array,
        touching: Touching | None = None,
        report: Report | None = None,
    ) -> None:
        self._report = report
        self._plant = plant
        self._stopped = dynamics.stopped_joints
        promises: Promises = getattr(contact, "promises", Promises())
        limit = np.full(len(MONITORS), INSIDE)
        limit[BALANCE], limit[JOINT] = BALANCED, HELD if len(dynamics.stops.held) else GIVES
        limit[[FRICTION, PULL, STOP_PULL]] = BALANCED * plant.weight
        limit[[WORK, STOP_WORK]] = promises.lift * plant.weight
        limit[GAP], limit[DEPTH], limit[LOOP] = promises.gap, promises.depth, CLOSED
        self._monitored = zeros_of(
            _Monitored,
            {"v": plant.model.nv, "n": len(MONITORS), "S": len(dynamics.stops.held)},
            tree=dynamics.tree,
            feet=dynamics.foothold,
            projection=dynamics.projection,
            result=for_kernels(contact.result),
            torque=torque,
            stops=dynamics.stops,
            loops=dynamics.loops,
            loop=np.array([k for k, loop in enumerate(plant.loops) for _ in range(loop.size)], dtype=np.int64),
            idx_q=np.ascontiguousarray(plant.idx_q, dtype=np.int64),
            lower=plant.position_lower,
            upper=plant.position_upper,
            touch=np.zeros(plant.model.nv) if touching is None else touching.force,
            gained=np.zeros(1) if touching is None else touching.gained,
            weight=plant.weight,
            springs=promises.springs,
            limit=limit,
        )
        self.before, self.held = self._monitored.before, self._monitored.held
        boxed = box(self._monitored)
        # The compiled function is bound directly, since a dispatch by types takes as long as the monitors.
        types = (boxed.type, int64, float64[::1], float64[::1], float64, boolean)
        self.look = partial(_check.compile(types), boxed)

    def reset(self, sim: Simulation) -> None:
        """Clear the violations of the last run."""
        self.restart(sim.v)

    def judge(self, sim: Simulation, q: Array, v: Array, share: float) -> None:
        """Check a step, or a part of one, and report new violations."""
        new = self.look(sim.step_count + 1, q, v, share, q is sim.q)
        if not new:
            return
        begun: dict[str, NDArray[Any]] = {
            "q": sim.q.copy(),
            "v": self.before.copy(),
            "torque": self._monitored.torque.copy(),
            "push": sim.dynamics.push.copy(),
            "damping": sim.dynamics.tree.damping.copy(),
            "held": self.held.copy(),
        }
        self.go_on(sim.v)
        assert self._report is not None
        for name, text in self.described(new):
            self._report(name, text, begun)

    def after_step(self, sim: Simulation) -> None:
        """Update the velocity if the step ended with a velocity that :meth:`judge` has not seen."""
        if sim.stepper.unseen:
            self.go_on(sim.v)

    def set_state(self, state: None, sim: Simulation) -> None:
        """Continue from the state of ``sim``; the findings so far stay."""
        self.go_on(sim.v)

    def restart(self, v: Array) -> None:
        """Clear all findings; the next step begins with the velocity ``v`` (nv,)."""
        m = self._monitored
        for array in (m.stored, m.when, m.where, m.hits):
            array[:] = 0
        m.worst[:] = -np.inf
        # These monitors run only near joint limits; without a check their value is 0.
        m.worst[[STOP_WORK, STOP_PULL]] = 0.0
        self.go_on(v)

    def go_on(self, v: Array) -> None:
        """Set the velocity ``v`` (nv,) with which the next step begins."""
        self.before[:] = v
        self.held[:] = self._monitored.stops.held

    def described(self, bits: int) -> Iterator[tuple[str, str]]:
        """Yield the name of each monitor in ``bits``, and a description of its worst value."""
        m = self._monitored
        for i, violation in enumerate(SAID):
            if bits >> i & 1:
                unit = MONITORS[i].rpartition("_")[2] if i != BALANCE else "of the largest term"
                finding = f"{m.worst[i]:.3g} {unit}, limit {m.limit[i]:.3g}"
                yield MONITORS[i], f"{violation} at t = {m.when[i]:.6f} s{self._where(i)}: {finding}"

    def _where(self, i: int) -> str:
        where = int(self._monitored.where[i])
        if i == JOINT:
            return f" ({self._plant.joint_names[where]})"
        if i == STOP_PULL:
            return f" ({self._stopped[where]})"
        if i == LOOP:
            return f" ({self._plant.loops[where].name})"
        return f" ({self._plant.soles[where].name} foot)" if i in (FRICTION, PULL, GAP, DEPTH, COP) else ""

    def figures(self) -> dict[str, dict[str, Any]]:
        """Return for each monitor the worst value, its time [s], the limit, and the number of steps above the limit."""
        m = self._monitored
        return {
            name: {
                "worst": float(m.worst[i]) if np.isfinite(m.worst[i]) else None,
                "at_s": float(m.when[i]) if np.isfinite(m.worst[i]) else None,
                "allowed": float(m.limit[i]),
                "steps_beyond": int(m.hits[i]),
            }
            for i, name in enumerate(MONITORS)
        }
