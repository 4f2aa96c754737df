"""One situation of a push map: its run without a push, and runs with one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from bipedsim.analysis import CARRIES, fall_time, rotate
from bipedsim.config import RunConfig
from bipedsim.errors import ConfigError, DivergenceError
from bipedsim.model import Robot
from bipedsim.recording import Recording
from bipedsim.runs import HEADING, Prepared, Push, Run, append, heading_of, prepare
from bipedsim_studies.push_map.capture import Stance, support_polygon

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
    """

    settings: RunConfig
    at: float
    walking: bool
    stance: Stance


def situation(settings: RunConfig, at: float | None) -> Situation:
    """Run the scenario of ``settings`` without a push and return when and how it is to be pushed.

    Args:
        settings: The run; its duration and the pushes of its scenario are not used.
        at: When to push [s]. A walking robot is pushed in the middle of the first single support that begins after
            that. By default 2 s after the start, or 3 s after the first velocity command.

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
    at = _single_support(recording, earliest) if moving else earliest
    if at is None:
        raise ConfigError(f"{where} is not on one foot for 0.1 s between {earliest:g} s and {until:g} s")
    stance = _stance(recording, robot, at)
    if stance is None:
        raise ConfigError(f"{where} is in the air at t = {at:g} s, when it would be pushed; give another --at")
    return Situation(settings, at, bool(moving), stance)


def survives(where: Situation, kind: PushKind, angle: float, impulse: float) -> bool:
    """Return whether the robot is on its feet ``kind.settle`` after a push, under the controller's eyes and in truth.

    Args:
        where: When and how it stands.
        kind: What the push is like.
        angle: Direction, from the heading to the left [rad].
        impulse: Of the push [N.s].
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


def _single_support(recording: Recording, earliest: float) -> float | None:
    """Return the middle of the first time on one foot that begins after ``earliest`` [s] and ends in the recording."""
    loaded = recording.wrench[:, :, 2] > CARRIES * recording.weight
    single = np.concatenate([[False], loaded.sum(axis=1) == 1, [False]])
    edges = np.flatnonzero(np.diff(single.astype(np.int8)))
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        # What lasts a few ticks is a foot that bounces.
        if end < len(recording) and recording.t[begin] > earliest and recording.t[end] - recording.t[begin] > 0.1:
            return round(0.5 * float(recording.t[begin] + recording.t[end]), 3)
    return None


def _stance(recording: Recording, robot: Robot, at: float) -> Stance | None:
    """Return how the robot of a recording stands at the time ``at`` [s], or None in the air."""
    row = max(int(np.searchsorted(recording.t, at - 1e-9)) - 1, 0)
    q = robot.q_nominal.copy()
    q[:7] = recording.base_pose[row]
    q[robot.idx_q] = recording.joint_position[row]
    com = pin.centerOfMass(robot.model, robot.model.createData(), q)
    feet = [k for k in range(len(robot.soles)) if recording.wrench[row, k, 2] > CARRIES * recording.weight]
    if not feet:
        return None
    corners = []
    for k in feet:
        pose, vertices = recording.sole_poses[row, k], robot.soles[k].vertices
        points = np.column_stack([vertices, np.zeros(len(vertices))])
        corners.append(pose[:3] + rotate(np.broadcast_to(pose[3:], (len(points), 4)), points))
    ground = np.concatenate(corners)
    yaw = heading_of(q)
    back = np.array([[math.cos(yaw), math.sin(yaw)], [-math.sin(yaw), math.cos(yaw)]])
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
