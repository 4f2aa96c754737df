"""What became of a run, in one line: from ground truth, tick by tick, so that nodes can tell it as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from bipedsim.analysis.fall import OUTCOME, has_fallen
from bipedsim.analysis.loads import CARRIES
from bipedsim.analysis.summary_text import length_text, percent
from bipedsim.control import failed
from bipedsim.numerics import Array, Flags, Integers, box, entry, kernel, zeros_of
from bipedsim.sim import Simulator

AIR = 0.1
"""A foot that was off the ground for less [s] has bounced, and made no step."""
WALKED = 0.1
"""Who got less far [m] has stepped in place."""
ASTRAY, ASTRAY_SHARE, TURNED = 0.1, 0.05, np.deg2rad(10.0)
"""Who ends so far [m], and such a share of the way, beside straight ahead, or turned by so much [rad], is told so."""
LIES = 0.01
"""A robot lies on bodies that carry more than this share of its weight."""
_LIES = "; lies on "
BRIEF = 0.05
"""What lasted for less [s] is no condition of a robot, as friction at its limit in the tick of a landing."""
# A condition that is away for less than GAP [s] goes on; one that lasted BRIEF, and did so within RECENT [s] before a
# fall, may be its reason.
GAP, RECENT = 0.1, 0.5
# A CoP nearer to the edge than this [m] is on it; a torque or an angle beyond this share of its limit is at it.
EDGE, AT_LIMIT = 1e-3, 0.999
# A joint is at its joint limit whose stop takes this share of the torque of its drive, or that is so far beyond [rad].
HELD, AT_STOP = 0.1, 1e-6
# A torque goes from side to side that had this share of its limit on one side and has it on the other: noise of sensors
# does not take it there.
SWING = 0.5
# The line tells of a joint that was at its limit in this share of the ticks, or turned so often in a second.
OFTEN_LIMITED, OFTEN_TURNED = 0.1, 50.0


class _Watch(NamedTuple):
    """What is looked at, live arrays of the simulator first, and what is kept of it.

    Attributes:
        com, soles: (3,), (K, 3) CoM and sole origins in the world [m]. effort: (nu,) torques of the drives [N.m].
        command: (nu,) torques that the drives are asked for, within their limits [N.m].
        stop_impulse: (nv,) of the stops in a tick of ``control_dt`` [N.m.s], [s].
        force, sliding, margin: (K, 6), (K,), (K,) of the contact result.
        idx_q, idx_v, effort_limit, lower, upper: (nu,) of the robot. flat: (K,) whether a foot has a face. carries:
            Load [N] above which a foot is on the ground. judged: Whether the robot can fall.
        upright, height: (3,), (1,) vertical in axes of the base, and height [m], at the start; 0 before.
        fell: (1,) when [s]; NaN while it has not.
        since, last: (2 nu + K + 2,) when a condition began, and when it was seen last [s]: torque limit and joint limit
            of each joint, slip of each foot, tipping, no commands.
        up: (K,) when a foot left the ground [s], NaN on it. landed: (K,) whether it was ever on it.
        counts: (3,) steps, jumps, the foot whose landings end strides.
        start: (3,) where the base was at first [m], and its heading [rad].
        way: (3,) length of all strides [m], and where the last one ended. moving: (2,) first lift and last landing [s].
        now: (2,) where the base is.
        ticks: (2,) how many there were, and in how many of them a torque was at its limit.
        limited, turned: (nu,) ticks in which that of a joint was at its limit; how often it went from side to side.
        side: (nu,) sign of the last torque that was large.
        stopped: (nv, 4) of each velocity the last time in which its joint was at its stop: begin and end [s], impulse
            [N.m.s] and ticks of it.
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
def _note(w: _Watch, c: int, t: float, holds: bool) -> None:
    """Take in whether condition ``c`` holds."""
    if holds:
        if not t - w.last[c] <= GAP:
            w.since[c] = t
        w.last[c] = t


@kernel
def _look_at_feet(w: _Watch, t: float) -> None:
    """Count steps, jumps and strides; note slip and tipping."""
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
        _note(w, 2 * nu + k, t, on_ground and w.sliding[k])
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
        if t - w.up[k] >= AIR:
            w.counts[0] += 1
            w.moving[1] = t
            if flying and t - latest >= AIR:
                w.counts[1] += 1
                flying = False
            if k == w.counts[2]:
                w.way[0] += np.hypot(w.now[0] - w.way[1], w.now[1] - w.way[2])
                w.way[1] = w.now[0]
                w.way[2] = w.now[1]
        w.up[k] = np.nan
        w.landed[k] = True
    _note(w, 2 * nu + feet, t, loaded and tips and at_edge)


@kernel
def _look_at_torques(w: _Watch) -> None:
    """Count the torques that are at their limits, and those that go from side to side."""
    some = False
    for j in range(w.command.shape[0]):
        torque, limit = w.command[j], w.effort_limit[j]
        if abs(torque) >= AT_LIMIT * limit:
            w.limited[j] += 1
            some = True
        if abs(torque) >= SWING * limit:
            if torque * w.side[j] < 0.0:
                w.turned[j] += 1
            w.side[j] = np.sign(torque)
    w.ticks[0] += 1
    w.ticks[1] += some


@kernel
def _look_at_stops(w: _Watch, t: float) -> None:
    """Note which joints are at their stops."""
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
def _look(boxed: Any, t: float, q: Array, idle: bool) -> None:
    """Take in the tick that ended at ``t`` [s] in the configuration ``q`` (nq,)."""
    w = boxed.arrays
    _look_at_stops(w, t)
    if not np.isnan(w.fell[0]):
        return
    _look_at_torques(w)
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
        _note(w, j, t, abs(w.effort[j]) >= AT_LIMIT * w.effort_limit[j])
        angle = q[w.idx_q[j]]
        held = abs(w.stop_impulse[w.idx_v[j]]) >= HELD * w.effort_limit[j] * w.control_dt
        _note(w, nu + j, t, held or angle > w.upper[j] + AT_STOP or angle < w.lower[j] - AT_STOP)
    _look_at_feet(w, t)
    _note(w, w.since.shape[0] - 1, t, idle)
    lean = vertical[0] * w.upright[0] + vertical[1] * w.upright[1] + vertical[2] * w.upright[2]
    if has_fallen(lean, height, w.height[0]):
        w.fell[0] = t


class Verdict:
    """Follows a run and says what became of it: how far it walked or how long it stood, and whether it fell.

    A fall is that of :func:`bipedsim.analysis.fall_time`. CoM and soles are looked at where the last physics step
    began. Nothing grows with the run.

    Args:
        sim: The simulator of the run.
        under: What fails on purpose, in words.
    """

    def __init__(self, sim: Simulator, under: Sequence[str] = ()) -> None:
        self._sim = sim
        self._under = _under(under)
        self._robot = robot = sim.robot
        # What is fixed cannot fall, and a body without drives has no posture to fall from.
        self._judged = judged = robot.free_flyer and robot.nu > 0
        feet, nu, contact = len(robot.soles), robot.nu, sim.contact
        com, soles = sim.places()
        self._watch = zeros_of(
            _Watch,
            {"n": 2 * nu + feet + 2, "K": feet, "j": nu, "v": robot.model.nv},
            com=com,
            soles=soles,
            effort=sim.effort,
            command=sim.command.tau_joint,
            stop_impulse=sim.reactions.stop_impulse,
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
        self._box = box(self._watch)
        self.restart()

    def restart(self) -> None:
        """Begin again: the next tick shows how the robot stands."""
        w = self._watch
        for array in (w.upright, w.height, w.start, w.way, w.moving, w.now, w.since, w.landed, w.side, w.stopped):
            array[:] = 0
        for counts in (w.ticks, w.limited, w.turned):
            counts[:] = 0
        for array in (w.fell, w.last, w.up):
            array[:] = np.nan
        w.counts[:] = 0, 0, -1
        self._began = self._sim.t

    def warm_up(self) -> None:
        """Load or compile the kernel; :meth:`restart` forgets what it saw."""
        self.tick()

    def tick(self, idle: bool = False) -> None:
        """Take in the control tick that the simulator made last; ``idle`` says that commands stay away."""
        if self._robot.nu:
            _look(self._box, self._sim.t, self._sim.q, idle)

    @property
    def fell_at(self) -> float | None:
        """When the robot fell [s]; None if it did not, or cannot."""
        return float(self._watch.fell[0]) if np.isfinite(self._watch.fell[0]) else None

    @property
    def reason(self) -> str:
        """Why it fell and from when on, where that can be told: of what lasted until then, what began first."""
        w, robot = self._watch, self._robot
        names = [f"{joint} at its torque limit" for joint in robot.joint_names]
        names += [f"{joint} at its joint limit" for joint in robot.joint_names]
        names += [f"{sole.name} foot slipping" for sole in robot.soles]
        names += ["tipping over the edge of what it stands on", "no commands"]
        eligible = np.flatnonzero((w.last - w.since >= BRIEF) & (w.last >= w.fell[0] - RECENT))
        if not len(eligible):
            return ""
        first = eligible[np.argmin(w.since[eligible])]
        return f"{names[first]} from {w.since[first]:.1f} s"

    @property
    def lies_on(self) -> list[str]:
        """The bodies that carried some of its weight in the last tick, by link, those that carry most first."""
        sim = self._sim
        force = np.linalg.norm(sim.reactions.body_impulse, axis=1) / sim.control_dt
        links: dict[int, str] = {}
        for shape in sim.plant.shapes.shapes if force.any() else ():
            links.setdefault(shape.joint_id, shape.name)
        order = [int(j) for j in np.argsort(-force, kind="stable") if force[j] > LIES * sim.plant.weight]
        return [links.get(j, sim.plant.model.names[j]) for j in order]

    def figures(self, until: float | None = None) -> dict[str, Any]:
        """Return :data:`OUTCOME`: the last one is the line; what cannot be told is None.

        Args:
            until: End of what is told of [s], if it is not now: of a tick that an interrupt cut short there is no row.
        """
        w = self._watch
        walked = float(w.way[0] + np.hypot(*(w.now - w.way[1:])))
        told = (int(w.counts[0]), walked) if self._judged else (None, None)
        line = self._line(walked, (self._sim.t if until is None else until) - self._began)
        limited, turned = self._torques()
        torques = (w.ticks[1] / max(w.ticks[0], 1), limited, turned) if self._robot.nu else (None, None, None)
        # A joint that is the reason of the fall has been told.
        told_of = "at its torque limit" in line
        line += _of_torques({} if told_of else limited, turned) + self._under
        return dict(zip(OUTCOME, (self.fell_at, *told, *torques, self._stops(), line), strict=True))

    def _torques(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return in what share of the ticks each joint was at its torque limit, and how often its torque went from
        side to side [1/s], most first; joints of which neither is true are left out.
        """
        w, names = self._watch, self._robot.joint_names
        ticks = max(int(w.ticks[0]), 1)
        found = ((w.limited, float(ticks)), (w.turned, ticks * self._sim.control_dt))
        limited, turned = (
            {names[j]: float(counts[j] / whole) for j in np.argsort(-counts, kind="stable") if counts[j]}
            for counts, whole in found
        )
        return limited, turned

    def _stops(self) -> dict[str, dict[str, float]]:
        """Return when each joint that ever was at its stop was there last [s], and the mean torque of the stop [N.m].

        The largest torques first.
        """
        model, found = self._sim.plant.model, {}
        for i, (begin, end, impulse, ticks) in enumerate(self._watch.stopped):
            if ticks:
                name = next(model.names[j] for j in range(1, model.njoints) if model.joints[j].idx_v == i)
                dt = self._sim.control_dt
                found[name] = {"from_s": begin - dt, "to_s": end, "torque_Nm": impulse / (ticks * dt)}
        order = sorted(found, key=lambda name: -abs(found[name]["torque_Nm"]))
        return {name: {key: float(value) for key, value in found[name].items()} for name in order}

    def _line(self, walked: float, t: float) -> str:
        if not self._judged:
            return f"ran {length_text(t)}; nothing that could fall"
        if self.fell_at is not None:
            said = f"fell at {self.fell_at:.1f} s" + (f": {self.reason}" if self.reason else "")
            return said + (f"{_LIES}{', '.join(self.lies_on)}" if self.lies_on else "")
        w = self._watch
        steps, jumps = int(w.counts[0]), int(w.counts[1])
        held = self._sim.gantry is not None and self._sim.gantry.holds
        said = f"hung in its gantry for {length_text(t)}" if held else f"stood {length_text(t)}"
        if steps and walked >= WALKED:
            speed = walked / max(w.moving[1] - w.moving[0], AIR)
            said = f"walked {walked:.2f} m in {length_text(t)}, {speed:.2f} m/s while walking, {_times(steps, 'step')}"
            said += self._astray(walked)
        elif jumps:
            said = f"stood {length_text(t)} with {_times(jumps, 'jump')}"
        elif steps:
            said = f"stepped in place for {length_text(t)}, {_times(steps, 'step')}"
        if held and steps:
            said += ", in its gantry to the end"
        return f"{said}, did not fall"

    def _astray(self, walked: float) -> str:
        """Return where a walk of ``walked`` [m] ended, unless it is straight ahead of where it began, as it began.

        What was asked for is not known here: a robot that was told to turn has turned, too.
        """
        x, y, heading = self._watch.start
        dx, dy = self._watch.now - (x, y)
        aside = float(np.cos(heading) * dy - np.sin(heading) * dx)
        qx, qy, qz, qw = self._sim.q[3:7]
        turned = np.arctan2(2.0 * (qx * qy + qw * qz), 1.0 - 2.0 * (qy * qy + qz * qz)) - heading
        turned = float(np.arctan2(np.sin(turned), np.cos(turned)))
        said = ""
        if abs(aside) >= max(ASTRAY, ASTRAY_SHARE * walked):
            said = f", to {abs(aside):.2f} m {_side(aside)} of straight ahead"
        if abs(turned) >= TURNED:
            said += f", facing {np.rad2deg(abs(turned)):.0f} degrees {_side(turned)}"
        return said


def with_stop(outcome: Mapping[str, Any], at: float | None, why: str, under: Sequence[str] = ()) -> dict[str, Any]:
    """Return the figures of a verdict, whose line says that the controller was stopped where it would not be told.

    Args:
        outcome: :meth:`Verdict.figures`.
        at, why: ``fell_at`` and ``reason`` of the :class:`~bipedsim.control.Guard`.
        under: What fails on purpose, in words.
    """
    fell_at = outcome.get("fell_at_s")
    if at is None or not outcome.get("verdict") or (fell_at is not None and not (failed(why) and at <= fell_at)):
        return dict(outcome)
    stop = f"the controller was stopped at t = {at:.3f} s{f': {why}' if why else ''}"
    if fell_at is None:
        return {**outcome, "verdict": f"{outcome['verdict']}, but {stop}"}
    # What the joints did next is no reason.
    _, lies, bodies = str(outcome["verdict"]).removesuffix(_under(under)).partition(_LIES)
    return {**outcome, "verdict": f"fell at {fell_at:.1f} s: {stop}{lies}{bodies}{_under(under)}"}


def _of_torques(limited: Mapping[str, float], turned: Mapping[str, float]) -> str:
    """Return what the line says of torques that were often at their limits, and of torques that chatter."""
    said = ""
    often = [joint for joint, share in limited.items() if share >= OFTEN_LIMITED]
    if often:
        more = f" ({len(often) - 1} more {'joints' if len(often) > 2 else 'joint'})" if len(often) > 1 else ""
        said = f"; {often[0]} at its torque limit in {percent(limited[often[0]])} of ticks{more}"
    joint, rate = next(iter(turned.items()), ("", 0.0))
    if rate >= OFTEN_TURNED:
        said += " and" if often[:1] == [joint] else f"; {joint}"
        said += f" driven from side to side {rate:.0f} times a second"
    return said


def _under(faults: Sequence[str]) -> str:
    return f", under {'; '.join(faults)}" if faults else ""


def _side(value: float) -> str:
    return "left" if value > 0.0 else "right"


def _times(n: int, what: str) -> str:
    return f"{n} {what}{'s' if n != 1 else ''}"
