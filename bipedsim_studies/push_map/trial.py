"""One situation of a push map: its run without a push, and runs with one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from bipedsim.analysis import CARRIES, fall_time, rotate
from bipedsim.config import RunConfig
from bipedsim.control import ControllerError, controller_traceback, raised_line
from bipedsim.errors import ConfigError, DivergenceError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.recording import Recording
from bipedsim.runs import HEADING, Prepared, Push, Run, append, heading_of, prepare
from bipedsim_studies.push_map.capture import Stance, leg_of, support_polygon
from bipedsim_studies.push_map.steps import Stride

ROW_TICKS = 10
"""A row of the recording of a trial is this many ticks apart."""


@dataclass(frozen=True)
class PushKind:
    """What the pushes of a map have in common.

    Attributes:
        duration: How long they last [s].
        body: Where they act; empty for the root link.
        settle: How long after the push a robot must not have fallen [s].
    """

    duration: float = 0.1
    body: str = ""
    settle: float = 3.0


@dataclass(frozen=True, eq=False)
class Situation:
    """When a scenario's robot is pushed, and how it stands then.

    Attributes:
        settings: The run.
        at: When the push begins [s].
        walking: Whether it walks.
        stance: How it stands.
        phase: Share of the step at which it is pushed, since a foot left the ground; NaN where none was asked for.
        stride: What its next steps begin with, or None of a robot that has not two feet.
    """

    settings: RunConfig
    at: float
    walking: bool
    stance: Stance
    phase: float = math.nan
    stride: Stride | None = None


def situation(settings: RunConfig, at: float | None) -> Situation:
    """Return the only one of :func:`situations`."""
    return situations(settings, at)[0]


def situations(settings: RunConfig, at: float | None, phases: int = 0) -> tuple[Situation, ...]:
    """Run the scenario of ``settings`` without a push and return when and how it is to be pushed.

    Args:
        settings: The run; its duration and the pushes of its scenario are not used.
        at: When to push [s]. A walking robot is pushed in the middle of the first single support that begins after
            that. By default 2 s after the start, or 3 s after the first velocity command.
        phases: Into how many equal parts the step of a walking robot is cut, from where that single support begins to
            the next one; it is pushed in the middle of each. 0: as said above.

    Raises:
        ConfigError: The robot falls by itself, is never on one foot although it walks, or something in the settings is
            wrong.
    """
    prepared = _undisturbed(settings)
    robot, steps = prepared.robot, prepared.scenario.velocity
    moving = sorted(step.at for step in steps if (step.vx, step.vy, step.wz) != (0.0, 0.0, 0.0))
    earliest = at if at is not None else (moving[0] + 3.0 if moving else 2.0)
    until = earliest + (3.0 if moving else 0.0)
    run = Run(prepared)
    recording = _recorded(run, until, 1)
    falls = [at for at in (run.guard.fell_at, fall_time(recording, robot)) if at is not None]
    where = f"scenario {prepared.scenario.name!r}: {robot.name}"
    if falls:
        raise ConfigError(f"{where} falls by itself at t = {min(falls):.3f} s")
    single = _single_supports(recording, earliest)
    times, shares = [earliest], [math.nan]
    if moving:
        if not single:
            raise ConfigError(f"{where} is not on one foot for 0.1 s between {earliest:g} s and {until:g} s")
        times = [round(0.5 * sum(single[0]), 3)]
    if moving and phases:
        if len(single) < 2:
            raise ConfigError(f"{where} takes no two steps between {earliest:g} s and {until:g} s")
        begin, period = single[0][0], single[1][0] - single[0][0]
        shares = [(k + 0.5) / phases for k in range(phases)]
        times = [round(begin + share * period, 3) for share in shares]
    found = []
    for at, share in zip(times, shares, strict=True):
        stance = _stance(recording, robot, at)
        if stance is None:
            raise ConfigError(f"{where} is in the air at t = {at:g} s, when it would be pushed; give another --at")
        found.append(Situation(settings, at, bool(moving), stance, share, _stride(recording, robot, at, stance)))
    return tuple(found)


def survives(where: Situation, kind: PushKind, angle: float, impulse: float) -> bool:
    """Return whether the robot is on its feet ``kind.settle`` after a push, under the controller's eyes and in truth.

    Args:
        where: When and how it stands.
        kind: What the push is like.
        angle: Direction, from the heading to the left [rad].
        impulse: Of the push [N.s].

    Raises:
        ControllerError: The controller raised something.
    """
    prepared = _undisturbed(where.settings)
    change = impulse / prepared.robot.mass
    push = Push(
        at=where.at,
        duration=kind.duration,
        impulse_over_mass=(change * math.cos(angle), change * math.sin(angle), 0.0),
        body=kind.body,
        frame=HEADING,
    )
    run = Run(replace(prepared, scenario=replace(prepared.scenario, pushes=(push,))))
    try:
        recording = _recorded(run, where.at + kind.duration + kind.settle, ROW_TICKS)
    except DivergenceError:
        return False
    except Exception as error:
        if not controller_traceback(error):
            raise
        pushed = (
            f"scenario {where.settings.scenario!r}, pushed by {impulse:.4g} N.s at {math.degrees(angle):.0f} degrees"
        )
        raise ControllerError(f"{pushed}: {raised_line(error)}") from error
    return not run.guard.fallen and fall_time(recording, prepared.robot) is None


def _undisturbed(settings: RunConfig) -> Prepared:
    prepared = prepare(settings)
    return replace(prepared, scenario=replace(prepared.scenario, pushes=()))


def _recorded(run: Run, until: float, row_ticks: int) -> Recording:
    """Run to ``until`` [s] or until the controller was found fallen, with a row every ``row_ticks``."""
    sim = run.sim
    ticks = max(round(until / sim.control_dt), 1)
    builder = Recording.Builder(sim.robot, ticks // row_ticks + 2)
    for tick in range(ticks):
        run.control()
        run.step()
        if tick % row_ticks == 0 or run.guard.fallen:
            append(builder, run)
        if run.guard.fallen:
            break
    return builder.build()


def _single_supports(recording: Recording, earliest: float) -> list[tuple[float, float]]:
    """Return begin and end [s] of each time on one foot that begins after ``earliest`` and ends in the recording."""
    loaded = recording.wrench[:, :, 2] > CARRIES * recording.weight
    single = np.concatenate([[False], loaded.sum(axis=1) == 1, [False]])
    edges = np.flatnonzero(np.diff(single.astype(np.int8)))
    found = []
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        # What lasts a few ticks is a foot that bounces.
        if end < len(recording) and recording.t[begin] > earliest and recording.t[end] - recording.t[begin] > 0.1:
            found.append((float(recording.t[begin]), float(recording.t[end])))
    return found


def _row(recording: Recording, at: float) -> int:
    """Return the row of a recording just before the time ``at`` [s]."""
    return max(int(np.searchsorted(recording.t, at - 1e-9)) - 1, 0)


def _configuration(recording: Recording, robot: Robot, row: int) -> Array:
    """Return q (nq,) of a row of a recording."""
    q = robot.q_nominal.copy()
    q[:7] = recording.base_pose[row]
    q[robot.idx_q] = recording.joint_position[row]
    return q


def _turned_back(yaw: float) -> Array:
    """Return the rotation (2, 2) from the world to axes with x along the heading ``yaw`` [rad]."""
    return np.array([[math.cos(yaw), math.sin(yaw)], [-math.sin(yaw), math.cos(yaw)]])


def _corners(robot: Robot, k: int, pose: Array) -> Array:
    """Return the vertices (n, 3) of the sole of foot ``k`` in the world [m]."""
    vertices = robot.soles[k].vertices
    points = np.column_stack([vertices, np.zeros(len(vertices))])
    return pose[:3] + rotate(np.broadcast_to(pose[3:], (len(points), 4)), points)


def _stride(recording: Recording, robot: Robot, at: float, stance: Stance) -> Stride | None:
    """Return what the next steps of the robot of a recording begin with at ``at`` [s], in the axes of ``stance``."""
    row = _row(recording, at)
    if len(robot.soles) != 2 or min(sole.n_vertices for sole in robot.soles) < 3 or row == 0:
        return None
    data = robot.model.createData()
    q = _configuration(recording, robot, row)
    back = _turned_back(heading_of(q))
    poses = recording.sole_poses[row]
    origin = poses[:, :2].mean(axis=0)
    com, before = (
        np.array(pin.centerOfMass(robot.model, data, _configuration(recording, robot, k)))[:2] for k in (row, row - 1)
    )
    velocity = (com - before) / (recording.t[row] - recording.t[row - 1])
    soles, feet = [], []
    for k in (0, 1):
        # Upright, as it stands when it carries.
        corners = (_corners(robot, k, poses[k])[:, :2] - origin) @ back.T
        centre = corners.mean(axis=0)
        soles.append(support_polygon(corners - centre))
        feet.append(centre)
    across = max(float(np.ptp(sole[:, 1])) for sole in soles)
    place = back @ (com - origin)
    load = recording.wrench[row, :, 2] > CARRIES * recording.weight
    return Stride(
        soles=(soles[0], soles[1]),
        feet=np.array(feet),
        carries=(bool(load[0]), bool(load[1])),
        com=place,
        dcm=place + back @ velocity / stance.omega,
        narrow=across,
        away=farthest_foot(robot, stance.com_height),
    )


def farthest_foot(robot: Robot, com_height: float) -> float:
    """Return how far [m] over the ground a foot that bears weight can be from the CoM at ``com_height`` [m].

    As far as a straight leg reaches from the hip, which moves with the CoM, and as far as friction lets the foot push
    towards it. From the hip to the CoM the pelvis may be turned as it helps.
    """
    legs = [leg_of(robot, k) for k in range(len(robot.soles))]
    stands = float(pin.centerOfMass(robot.model, robot.model.createData(), robot.q_nominal)[2])
    reaches = []
    for sole, leg in zip(robot.soles, legs, strict=True):
        hip = leg.hip_height - (stands - leg.ground) + com_height
        straight = math.sqrt(max(leg.straight**2 - hip**2, 0.0)) + leg.beside
        reaches.append(min(straight, sole.friction_static * com_height))
    return min(reaches)


def _stance(recording: Recording, robot: Robot, at: float) -> Stance | None:
    """Return how the robot of a recording stands at the time ``at`` [s], or None in the air."""
    row = _row(recording, at)
    q = _configuration(recording, robot, row)
    com = pin.centerOfMass(robot.model, robot.model.createData(), q)
    feet = [k for k in range(len(robot.soles)) if recording.wrench[row, k, 2] > CARRIES * recording.weight]
    if not feet:
        return None
    ground = np.concatenate([_corners(robot, k, recording.sole_poses[row, k]) for k in feet])
    back = _turned_back(heading_of(q))
    origin = recording.sole_poses[row, :, :2].mean(axis=0)
    return Stance(
        polygon=support_polygon((ground[:, :2] - origin) @ back.T),
        zmp=back @ (recording.cop_world[row, :2] - origin),
        com_height=float(com[2] - ground[:, 2].mean()),
        mass=robot.mass,
        gravity=robot.weight / robot.mass,
        feet=tuple(robot.soles[k].name for k in feet),
    )


def sideways(stance: Stance) -> Callable[[float], str]:
    """Return what names directions: in single support, left and right are outward and inward of the standing foot."""
    names = {0: "forward", 90: "left", 180: "backward", 270: "right"}
    if len(stance.feet) == 1:
        # The origin is midway between the feet, so that the foot that carries is on the side where its polygon is.
        left = float(stance.polygon[:, 1].mean()) > 0.0
        names |= {90: "outward" if left else "inward", 270: "inward" if left else "outward"}
    return lambda angle: names.get(round(math.degrees(angle)) % 360, f"{math.degrees(angle):.0f} deg")
