"""Monitors of the physics: is what a step did what mechanics allows? One compiled call beside the step.

They judge what came out, from the equations and not from what the contact model computed on its way: momentum of every
joint, work of the contact, friction cone, pulls, forces from afar, depth, CoP, joint limits and their stops, loops.
What a model may do beyond the ideal is declared with the model (:class:`bipedsim.contact.Promises`).
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
from bipedsim.dynamics import Dynamics, Foothold, Loops, Projection, Stops, Tree
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
"""What the monitors measure, in the order of these numbers; the momentum error is a share of what is balanced."""
SAID = (
    "momentum is not balanced",
    "contact gives energy",
    "friction is beyond its cone",
    "contact pulls",
    "a foot pushes from afar",
    "a foot is too deep in the ground",
    "the CoP is outside the sole",
    "a joint is beyond its limits",
    "stops of joints give energy",
    "a stop pulls its joint",
    "a loop is open",
)
BALANCED = 1e-7
"""Rounding of the equations of motion, as a share of their largest term; of forces, as a share of the weight."""
INSIDE = 1e-4
"""How far outside [m] the CoP may be, beyond what friction at different heights makes of it."""
PUSHES = 1e-6
"""A vertex that begins or ends the step lower than this [m] may have pushed in it."""
LEVEL = 0.9
"""Cosine of the tilt up to which the CoP is looked for: near a tilt of atan(1 / mu) the force lies in the sole."""
GIVES = 1e-3
"""How far beyond its limit [rad] a joint without stops gets that a drive holds at it: drives give way."""
HELD = 1e-6
"""The same of a joint that has stops [rad]."""
CLOSED = 1e-9
"""How far the two ends of a loop may be apart [m], or turned [rad]."""


class _Monitored(NamedTuple):
    """What is looked at, live, and what was found.

    Attributes:
        tree, feet, projection, result: Of dynamics and contact.
        torque: (nu,) what the dynamics took as the joints' torques [N.m].
        stops: The stops of the joints, which may be none. loops: The loops, the same. loop: (M,) to which one each of
            their rows belongs. idx_q, lower, upper: (nu,) limits of the joints [rad].
        touch, gained: (nv,), (1,) generalised impulse of all other contacts [N.s, N.m.s], and what they gave [J].
        weight: Of the robot [N]. springs: Whether contacts hold energy. stored: (1,) the most that they hold now [J].
        residual, cop, cop_ground: (nv,), (2,), (3,) work.
        limit, worst, when, where, hits: Per monitor: what is allowed, the worst value, its time [s], its foot or joint,
            and how many steps were beyond the limit.
        broken, new: (1,) what this step violates, and what it was the first to violate, one bit each.
        before: (nv,) velocity at the end of the last step that was looked at: where the next one begins. held: (S,)
            which stops carried then.
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
    """Take in the value of monitor ``i``."""
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


# Of two numbers the larger one by `if`: max() of the compiler minds NaN, which takes ten times as long.
@kernel
def _momentum(m: _Monitored, v: Array, share: float) -> float:
    """Return the largest |M dv / h + share (nle + D v+ - tau - push) - J^T f / h - s / h|, beside the largest term.

    f are the impulses of the contact and of all that touches besides, s those of stops and loops.
    """
    t, p, r = m.tree, m.residual, m.result
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
    if m.stops.near[0]:
        for j in range(m.stops.impulse.shape[0]):
            p[m.stops.idx_v[j]] -= m.stops.impulse[j] / h
            if abs(m.stops.impulse[j]) > largest * h:
                largest = abs(m.stops.impulse[j]) / h
    for held in range(m.loops.impulse.shape[0]):
        for i in range(v.shape[0]):
            pull = m.loops.rows[held, i] * m.loops.impulse[held] / h
            p[i] -= pull
            if abs(pull) > largest:
                largest = abs(pull)
    for i in range(v.shape[0]):
        # Whole rows as they lie in memory are faster than only the entries that are not zero.
        row, own, rest = t.M_rows[i], dv[i], 0.0
        for d in range(i):
            p[d] += row[d] * own
        for d in range(i):
            rest += row[d] * dv[d]
        own *= row[i]
        p[i] += own + rest
        if abs(own) > largest:
            largest = abs(own)
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
    worst = 0.0
    for i in range(v.shape[0]):
        if abs(p[i]) > worst:
            worst = abs(p[i])
    return worst / largest if largest > 0.0 else 0.0


@kernel
def _look_at_foot(m: _Monitored, k: int, w: tuple[float, ...], t: float, begins: bool) -> float:
    """Note what foot ``k``, which ends the step with the velocities ``w`` (6,), did; return how deep it began [m]."""
    p, r, h = m.projection, m.result, m.tree.h
    f = r.impulse[k]
    _note(m, PULL, -f[2] / h, k, t)
    # Within the step a foot may begin to slide, and friction fall from static to dynamic.
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
            # What pushes within the step may arrive in it, and leave.
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
            # Friction of one vertex about another one that is higher or lower is part of the torque.
            outside = max(outside - max(p.mu_static[k], p.mu_dynamic[k]) * (high - low), 0.0)
        _note(m, COP, outside, k, t)
    return deepest


@kernel
def _look_at_stops(m: _Monitored, contact: float, t: float) -> None:
    """Note what the stops did, beside what the ``contact`` gave [J], which may be the reason why they carry.

    Of models with springs, what these give is no part of it.
    """
    if m.tree.rows.used[0] > 0:
        given = m.tree.rows.given[0]
        _note(m, STOP_WORK, given if m.springs else given + contact, 0, t)
    for j in range(m.stops.impulse.shape[0]):
        _note(m, STOP_PULL, m.stops.held[j] * m.stops.impulse[j] / m.tree.h, j, t)


@entry
def _check(boxed: Any, steps: int, q: Array, v: Array, share: float, begins: bool) -> int:
    """Judge the step number ``steps`` from (q, before) to ``v``; return the monitors that it is the first to violate.

    ``before`` and ``held`` are kept where there are such. Where a part of a step begins, no state of the robot is:
    joint limits and depths are judged where a step ``begins``.
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
            # Against the same step without contact, exact at any length of the step.
            work += 0.5 * f[a] * (p.w_free[6 * k + a] + w[a])
        depth = _look_at_foot(m, k, w, t, begins)
        # A spring that is left faster than it follows has no force for a while, and is not yet slack.
        touching = touching or f[2] != 0.0 or depth > 0.0
        allowed += f[2] * min(depth / m.tree.h, RECOVERY)
    if m.stops.near[0]:
        _look_at_stops(m, work - allowed, t)
    for n in range(m.loop.shape[0]):
        _note(m, LOOP, abs(m.loops.error[n]), m.loop[n], t)
    if m.springs:
        # A spring gives back no more than what went in since the feet were last in the air.
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
    """Return velocity ``row`` of the feet after the step."""
    p, r = m.projection, m.result
    total = p.w_free[row]
    for k in range(r.impulse.shape[0]):
        for a in range(6):
            total += p.G[row, 6 * k + a] * r.impulse[k, a]
    return total


Report = Callable[[str, str, dict[str, NDArray[Any]]], None]


class Monitors(Participant):
    """The monitors of one simulation; nothing in them grows with it.

    Args:
        plant: What is simulated.
        dynamics, contact: Its dynamics and its contact model.
        torque: (nu,) what the dynamics take as the joints' torques [N.m], live.
        touching: All contacts but those of the soles, if there may be any.
        report: Called once for each kind of violation since reset; see :meth:`Simulator.watch`.

    Attributes:
        before: (nv,) velocity from which the next step begins, or began the one that was the first to violate a limit.
        held: (S,) the stops that carried in the step before it, see :class:`bipedsim.dynamics.Stops`.
        look: ``look(steps, q, v, share, begins)`` judges the step from the configuration q (nq,) to the velocity v
            (nv,), number ``steps`` since reset, for whose ``share`` more than contact acts; ``begins`` if it begins at
            q, and not a part of it. It returns the monitors that the step is the first to violate, bit i for number i
            of :data:`MONITORS`.
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
        # Called as what was compiled: to look up for which types takes as long as the monitors themselves.
        types = (boxed.type, int64, float64[::1], float64[::1], float64, boolean)
        self.look = partial(_check.compile(types), boxed)

    def reset(self, sim: Simulation) -> None:
        """Forget the violations of the last run."""
        self.restart(sim.v)

    def judge(self, sim: Simulation, q: Array, v: Array, share: float) -> None:
        """Examine a step, or a part of one, and report new violations."""
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
        """Update the velocity if the step ended with another one than :meth:`judge` got."""
        if sim.stepper.unseen:
            self.go_on(sim.v)

    def set_state(self, state: None, sim: Simulation) -> None:
        """Continue from the state of ``sim``; what was found before stays."""
        self.go_on(sim.v)

    def restart(self, v: Array) -> None:
        """Forget what was found; the next step begins with the velocity ``v`` (nv,)."""
        m = self._monitored
        for array in (m.stored, m.when, m.where, m.hits):
            array[:] = 0
        m.worst[:] = -np.inf
        # Of what did nothing.
        m.worst[[STOP_WORK, STOP_PULL]] = 0.0
        self.go_on(v)

    def go_on(self, v: Array) -> None:
        """Take in that the next step begins with the velocity ``v`` (nv,)."""
        self.before[:] = v
        self.held[:] = self._monitored.stops.held

    def described(self, bits: int) -> Iterator[tuple[str, str]]:
        """Yield the monitors in ``bits``, and in words what each found worst."""
        m = self._monitored
        for i, said in enumerate(SAID):
            if bits >> i & 1:
                unit = MONITORS[i].rpartition("_")[2] if i != BALANCE else "of the largest term"
                found = f"{m.worst[i]:.3g} {unit}, where {m.limit[i]:.3g} is allowed"
                yield MONITORS[i], f"{said} at t = {m.when[i]:.6f} s{self._where(i)}: {found}"

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
        """Return the worst value of each monitor, its time [s], what is allowed, and how many steps were beyond it."""
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
