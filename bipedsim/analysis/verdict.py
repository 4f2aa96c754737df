"""The outcome of a run in one line, from ground truth, updated at every tick so that nodes can report it, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from bipedsim.analysis.ending import Fall, FallKind, FallReason, outcome_line
from bipedsim.analysis.fall import OUTCOME, has_fallen
from bipedsim.analysis.loads import CARRIES, SHORTEST_SWING
from bipedsim.analysis.summary_text import length_text
from bipedsim.numerics import Array, Flags, Integers, box, entry, kernel, zeros_of
from bipedsim.sim import Simulator

WALKED = 0.1
"""Distance below which a robot has stepped in place [m]."""
ASTRAY, ASTRAY_SHARE, TURNED = 0.1, 0.05, np.deg2rad(10.0)
"""Deviations that the outcome mentions: lateral offset [m], the same as a share of the distance, and yaw [rad].

The lateral offset must exceed both limits."""
LIES = 0.01
"""Share of the weight above which a body that carries it is named as a body on which the robot lies."""
BRIEF = 0.05
"""Minimum duration of a condition [s]; friction at its limit in the tick of a touchdown is none."""
# A condition that is absent for less than GAP [s] continues. A condition that lasted BRIEF can be the reason of a fall
# if it held within RECENT [s] before the fall.
GAP, RECENT = 0.1, 0.5
# A CoP closer to the edge than this [m] is on the edge. A torque beyond this share of its limit is at the limit.
EDGE, AT_LIMIT = 1e-3, 0.999
# A joint is at its limit if the limit's torque exceeds this share of the effort limit, or the angle this excess [rad].
HELD, AT_STOP = 0.1, 1e-6
# A torque swings if it exceeded this share of its limit on one side, and then on the other. Sensor noise is smaller.
SWING = 0.5


class _OutcomeArrays(NamedTuple):
    """Packed arguments of the kernels: live arrays of the simulator, constants of the robot, and the tracked state.

    Attributes:
        com, soles: (3,), (K, 3) CoM and sole origins in the world [m].
        effort: (nu,) torques of the drives [N.m].
        command: (nu,) commanded torques within the limits of the drives [N.m].
        stop_impulse: (nv,) impulses of the joint limits in a tick [N.m.s].
        control_dt: Length of a tick [s].
        force, sliding, margin: (K, 6), (K,), (K,) of the contact result.
        idx_q, idx_v, effort_limit, lower, upper: (nu,) of the robot.
        flat: (K,) whether a foot has a face.
        carries: Load [N] above which a foot is on the ground.
        judged: Whether the robot can fall.
        upright, height: (3,), (1,) vertical in axes of the base, and height [m], at the start; 0 before.
        fell: (1,) time of the fall [s]; NaN before.
        since, last: (2 nu + K + 2,) begin of each condition, and the last time it held [s]: torque limit and joint
            limit of each joint, slip of each foot, tipping, no commands.
        up: (K,) time of lift-off of each foot [s], NaN on the ground.
        landed: (K,) whether each foot was ever on the ground.
        counts: (3,) steps, jumps, index of the foot whose touchdowns end strides.
        start: (3,) position of the base at the start [m], and its heading [rad].
        way: (3,) total length of the strides [m], and the position at the end of the last one [m].
        moving: (2,) first lift-off and last touchdown [s].
        now: (2,) position of the base [m].
        ticks: (2,) number of ticks, and of ticks with a torque at its limit.
        limited, turned: (nu,) number of ticks with the joint's torque at its limit, and of its swings.
        side: (nu,) sign of the last torque that exceeded ``SWING``.
        stopped: (nv, 4) last interval of each velocity at its joint limit: begin and end [s], impulse [N.m.s] and
            number of ticks.
    """

    com: Array
    soles: Array
    effort: Array
    command: Array
    stop_impulse: Array
    control_dt: float
    force: Array
    sliding: Flags
    margin: Array
    idx_q: Integers
    idx_v: Integers
    effort_limit: Array
    lower: Array
    upper: Array
    flat: Flags
    carries: float
    judged: bool
    upright: Annotated[Array, 3]
    height: Annotated[Array, 1]
    fell: Annotated[Array, 1]
    since: Annotated[Array, "n"]
    last: Annotated[Array, "n"]
    up: Annotated[Array, "K"]
    landed: Annotated[Flags, "K"]
    counts: Annotated[Integers, 3]
    start: Annotated[Array, 3]
    way: Annotated[Array, 3]
    moving: Annotated[Array, 2]
    now: Annotated[Array, 2]
    ticks: Annotated[Integers, 2]
    limited: Annotated[Integers, "j"]
    turned: Annotated[Integers, "j"]
    side: Annotated[Array, "j"]
    stopped: Annotated[Array, "v", 4]


@kernel
def _update_condition(w: _OutcomeArrays, c: int, t: float, holds: bool) -> None:
    """Update condition ``c`` at ``t`` [s]; ``holds`` says whether it holds."""
    if holds:
        if not t - w.last[c] <= GAP:
            w.since[c] = t
        w.last[c] = t


@kernel
def _update_feet(w: _OutcomeArrays, t: float) -> None:
    """Count steps, jumps and strides; update slip and tipping."""
    feet = w.up.shape[0]
    nu = w.idx_q.shape[0]
    latest = 0.0
    flying = True
    for k in range(feet):
        flying = flying and not np.isnan(w.up[k])
        latest = max(latest, w.up[k])
    loaded = tips = False
    at_edge = True
    for k in range(feet):
        on_ground = w.force[k, 2] > w.carries
        _update_condition(w, 2 * nu + k, t, on_ground and w.sliding[k])
        if not on_ground:
            if np.isnan(w.up[k]) and w.landed[k]:
                w.up[k] = t
                if w.counts[2] < 0:
                    w.counts[2] = k
                    w.moving[0] = t
            continue
        loaded = True
        tips = tips or w.flat[k]
        at_edge = at_edge and (not w.flat[k] or w.margin[k] < EDGE)
        if t - w.up[k] >= SHORTEST_SWING:
            w.counts[0] += 1
            w.moving[1] = t
            if flying and t - latest >= SHORTEST_SWING:
                w.counts[1] += 1
                flying = False
            if k == w.counts[2]:
                w.way[0] += np.hypot(w.now[0] - w.way[1], w.now[1] - w.way[2])
                w.way[1] = w.now[0]
                w.way[2] = w.now[1]
        w.up[k] = np.nan
        w.landed[k] = True
    _update_condition(w, 2 * nu + feet, t, loaded and tips and at_edge)


@kernel
def _update_torques(w: _OutcomeArrays) -> None:
    """Count ticks with torques at their limits, and swings of torques."""
    any_limited = False
    for j in range(w.command.shape[0]):
        torque, limit = w.command[j], w.effort_limit[j]
        if abs(torque) >= AT_LIMIT * limit:
            w.limited[j] += 1
            any_limited = True
        if abs(torque) >= SWING * limit:
            if torque * w.side[j] < 0.0:
                w.turned[j] += 1
            w.side[j] = np.sign(torque)
    w.ticks[0] += 1
    w.ticks[1] += any_limited


@kernel
def _update_stops(w: _OutcomeArrays, t: float) -> None:
    """Update the intervals of joints at their limits."""
    for i in range(w.stopped.shape[0]):
        impulse = w.stop_impulse[i]
        if impulse == 0.0:
            continue
        s = w.stopped[i]
        if s[3] == 0.0 or t - s[1] > GAP:
            s[0] = t
            s[2] = s[3] = 0.0
        s[1] = t
        s[2] += impulse
        s[3] += 1.0


@entry
def _update(boxed: Any, t: float, q: Array, idle: bool) -> None:
    """Process the tick that ended at ``t`` [s] in the configuration ``q`` (nq,)."""
    w = boxed.arrays
    _update_stops(w, t)
    if not np.isnan(w.fell[0]):
        return
    _update_torques(w)
    if not w.judged:
        return
    x, y, z, s = q[3], q[4], q[5], q[6]
    vertical = (2.0 * (x * z - y * s), 2.0 * (y * z + x * s), 1.0 - 2.0 * (x * x + y * y))
    height = w.com[2] - w.soles[:, 2].min()
    w.now[0] = q[0]
    w.now[1] = q[1]
    if w.height[0] == 0.0:
        w.height[0] = height
        for i in range(3):
            w.upright[i] = vertical[i]
        w.way[1] = w.start[0] = q[0]
        w.way[2] = w.start[1] = q[1]
        w.start[2] = np.arctan2(2.0 * (x * y + s * z), 1.0 - 2.0 * (y * y + z * z))
    nu = w.idx_q.shape[0]
    for j in range(nu):
        _update_condition(w, j, t, abs(w.effort[j]) >= AT_LIMIT * w.effort_limit[j])
        angle = q[w.idx_q[j]]
        held = abs(w.stop_impulse[w.idx_v[j]]) >= HELD * w.effort_limit[j] * w.control_dt
        _update_condition(w, nu + j, t, held or angle > w.upper[j] + AT_STOP or angle < w.lower[j] - AT_STOP)
    _update_feet(w, t)
    _update_condition(w, w.since.shape[0] - 1, t, idle)
    lean = vertical[0] * w.upright[0] + vertical[1] * w.upright[1] + vertical[2] * w.upright[2]
    if has_fallen(lean, height, w.height[0]):
        w.fell[0] = t


class Verdict:
    """Follow a run and describe its outcome: how far the robot walked or how long it stood, and whether it fell.

    The criterion of a fall is that of :func:`bipedsim.analysis.fall_time`. CoM and soles are those at the beginning of
    the last physics step. The memory does not grow with the run.

    Args:
        sim: The simulator of the run.
        under: Descriptions of injected faults.
    """

    def __init__(self, sim: Simulator, under: Sequence[str] = ()) -> None:
        self._sim = sim
        self._under = tuple(under)
        self._robot = robot = sim.robot
        # A fixed robot cannot fall, and a body without drives has no posture to fall from.
        self._judged = judged = robot.free_flyer and robot.nu > 0
        feet, nu, contact = len(robot.soles), robot.nu, sim.contact
        com, soles = sim.dynamics.com, sim.dynamics.sole_origins
        self._arrays = zeros_of(
            _OutcomeArrays,
            {"n": 2 * nu + feet + 2, "K": feet, "j": nu, "v": robot.model.nv},
            com=com,
            soles=soles,
            effort=sim.effort,
            command=sim.command.tau_joint,
            stop_impulse=sim.stop_impulse,
            control_dt=sim.control_dt,
            force=contact.wrench,
            sliding=contact.sliding,
            margin=contact.cop_margin,
            idx_q=np.ascontiguousarray(robot.idx_q, dtype=np.int64),
            idx_v=np.ascontiguousarray(robot.idx_v, dtype=np.int64),
            effort_limit=robot.effort_limit,
            lower=robot.position_lower,
            upper=robot.position_upper,
            flat=np.array([sole.n_vertices > 2 for sole in robot.soles]),
            carries=CARRIES * robot.weight,
            judged=judged,
        )
        self._box = box(self._arrays)
        self.restart()

    def restart(self) -> None:
        """Start again; the next tick gives the reference of a standing robot."""
        w = self._arrays
        for array in (w.upright, w.height, w.start, w.way, w.moving, w.now, w.since, w.landed, w.side, w.stopped):
            array[:] = 0
        for counts in (w.ticks, w.limited, w.turned):
            counts[:] = 0
        for array in (w.fell, w.last, w.up):
            array[:] = np.nan
        w.counts[:] = 0, 0, -1
        self._began = self._sim.t

    def warm_up(self) -> None:
        """Load or compile the kernel; :meth:`restart` discards the result."""
        self.tick()

    def tick(self, idle: bool = False) -> None:
        """Process the last control tick of the simulator; ``idle`` means that no commands arrive."""
        if self._robot.nu:
            _update(self._box, self._sim.t, self._sim.q, idle)

    @property
    def fell_at(self) -> float | None:
        """Time of the fall [s]; None if the robot did not or cannot fall."""
        return float(self._arrays.fell[0]) if np.isfinite(self._arrays.fell[0]) else None

    @property
    def reason(self) -> FallReason | None:
        """Reason of the fall and its begin: of the conditions that lasted until the fall, the first one; or None."""
        w, robot = self._arrays, self._robot
        # The order is that of the conditions in the arrays.
        conditions = [(FallKind.TORQUE_LIMIT, joint) for joint in robot.joint_names]
        conditions += [(FallKind.JOINT_LIMIT, joint) for joint in robot.joint_names]
        conditions += [(FallKind.SLIP, sole.name) for sole in robot.soles]
        conditions += [(FallKind.TIPPING, ""), (FallKind.NO_COMMANDS, "")]
        eligible = np.flatnonzero((w.last - w.since >= BRIEF) & (w.last >= w.fell[0] - RECENT))
        if not len(eligible):
            return None
        first = eligible[np.argmin(w.since[eligible])]
        kind, part = conditions[first]
        return FallReason(kind, part, float(w.since[first]))

    @property
    def lies_on(self) -> list[str]:
        """Links that carried part of the weight in the last tick, the most loaded first."""
        sim = self._sim
        force = np.linalg.norm(sim.body_impulse, axis=1) / sim.control_dt
        links: dict[int, str] = {}
        for shape in sim.plant.shapes.shapes if force.any() else ():
            links.setdefault(shape.joint_id, shape.name)
        order = [int(j) for j in np.argsort(-force, kind="stable") if force[j] > LIES * sim.plant.weight]
        return [links.get(j, sim.plant.model.names[j]) for j in order]

    def figures(self, until: float | None = None) -> dict[str, Any]:
        """Return the metrics :data:`OUTCOME`, whose last value is the line; unknown values are None.

        Args:
            until: End of the period described [s]; by default now. An interrupted tick has no row in the recording.
        """
        w = self._arrays
        walked = float(w.way[0] + np.hypot(*(w.now - w.way[1:])))
        fall = None if self.fell_at is None else Fall(self.fell_at, self.reason, tuple(self.lies_on))
        values = dict.fromkeys(OUTCOME) | ({} if fall is None else fall.figures())
        if self._judged:
            values |= {"steps": int(w.counts[0]), "distance_m": walked}
        if self._robot.nu:
            limited, turned = self._torque_figures()
            share = w.ticks[1] / max(w.ticks[0], 1)
            values |= {"torque_limited_fraction": share, "torque_limited": limited, "torque_swings_hz": turned}
        t = (self._sim.t if until is None else until) - self._began
        text = self._text(walked, t) if fall is None else fall.text(fall.reason)
        line = outcome_line(text, fall, values, self._under)
        return values | {"joint_stops": self._stop_figures(), "verdict": line}

    def _torque_figures(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return the share of ticks of each joint at its torque limit, and the frequency of its swings [1/s].

        Both are sorted, the largest first. Joints with 0 are left out.
        """
        w, names = self._arrays, self._robot.joint_names
        ticks = max(int(w.ticks[0]), 1)
        counters = ((w.limited, float(ticks)), (w.turned, ticks * self._sim.control_dt))
        limited, turned = (
            {names[j]: float(counts[j] / whole) for j in np.argsort(-counts, kind="stable") if counts[j]}
            for counts, whole in counters
        )
        return limited, turned

    def _stop_figures(self) -> dict[str, dict[str, float]]:
        """Return for each joint that reached its limit the last interval there [s], and the mean torque [N.m].

        The largest torques come first.
        """
        model, stops = self._sim.plant.model, {}
        for i, (begin, end, impulse, ticks) in enumerate(self._arrays.stopped):
            if ticks:
                name = next(model.names[j] for j in range(1, model.njoints) if model.joints[j].idx_v == i)
                dt = self._sim.control_dt
                stops[name] = {"from_s": begin - dt, "to_s": end, "torque_Nm": impulse / (ticks * dt)}
        order = sorted(stops, key=lambda name: -abs(stops[name]["torque_Nm"]))
        return {name: {key: float(value) for key, value in stops[name].items()} for name in order}

    def _text(self, walked: float, t: float) -> str:
        """Describe a run of ``t`` [s] without a fall, in which the robot walked ``walked`` [m]."""
        if not self._judged:
            return f"ran {length_text(t)}; nothing that could fall"
        w = self._arrays
        steps, jumps = int(w.counts[0]), int(w.counts[1])
        held = self._sim.gantry is not None and self._sim.gantry.holds
        text = f"hung in its gantry for {length_text(t)}" if held else f"stood {length_text(t)}"
        if steps and walked >= WALKED:
            speed = walked / max(w.moving[1] - w.moving[0], SHORTEST_SWING)
            text = f"walked {walked:.2f} m in {length_text(t)}, {speed:.2f} m/s while walking, {_times(steps, 'step')}"
            text += self._deviation_text(walked)
        elif jumps:
            text = f"stood {length_text(t)} with {_times(jumps, 'jump')}"
        elif steps:
            text = f"stepped in place for {length_text(t)}, {_times(steps, 'step')}"
        if held and steps:
            text += ", in its gantry to the end"
        return f"{text}, did not fall"

    def _deviation_text(self, walked: float) -> str:
        """Describe the end of a walk of ``walked`` [m] if it deviates from straight ahead in position or heading.

        The command is not known here, so a commanded turn is mentioned, too.
        """
        x, y, heading = self._arrays.start
        dx, dy = self._arrays.now - (x, y)
        aside = float(np.cos(heading) * dy - np.sin(heading) * dx)
        qx, qy, qz, qw = self._sim.q[3:7]
        turned = np.arctan2(2.0 * (qx * qy + qw * qz), 1.0 - 2.0 * (qy * qy + qz * qz)) - heading
        turned = float(np.arctan2(np.sin(turned), np.cos(turned)))
        text = ""
        if abs(aside) >= max(ASTRAY, ASTRAY_SHARE * walked):
            text = f", to {abs(aside):.2f} m {_side(aside)} of straight ahead"
        if abs(turned) >= TURNED:
            text += f", facing {np.rad2deg(abs(turned)):.0f} degrees {_side(turned)}"
        return text


def _side(value: float) -> str:
    return "left" if value > 0.0 else "right"


def _times(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' if n != 1 else ''}"
