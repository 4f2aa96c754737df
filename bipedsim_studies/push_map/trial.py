"""Simulate one situation of a push map, without and with a push."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from bipedsim.analysis import CARRIES, fall_time, rotate
from bipedsim.config import RunConfig, param
from bipedsim.control import ControllerError, controller_traceback, raised_line
from bipedsim.errors import ConfigError, DivergenceError
from bipedsim.model import Robot
from bipedsim.numerics import Array, true_runs
from bipedsim.recording import Recording
from bipedsim.runs import HEADING, Prepared, Push, Run, append, heading_of, prepare
from bipedsim_studies.push_map.capture import PushStance, leg_of, support_polygon
from bipedsim_studies.push_map.steps import PrePushState

ROW_TICKS = 10
"""Number of ticks per row of a trial's recording."""


@dataclass(frozen=True)
class PushKind:
    """Common properties of the pushes of a map."""

    duration: float = param(0.1, "duration of a push", unit="s", low=1e-6)
    body: str = param("", "frame at whose origin the push acts; empty for the root link")
    settle: float = param(3.0, "time after the push during which the robot must not fall", unit="s", low=1e-6)


@dataclass(frozen=True, eq=False)
class Situation:
    """Time of a push in a scenario, and the state of the robot at that time.

    Attributes:
        settings: Settings of the run.
        at: Start time of the push [s].
        walking: Whether the robot is walking.
        stance: Stance of the robot.
        phase: Fraction of the step since the lift-off of a foot; NaN without phases.
        stride: State for the computation of steps; None unless the robot has two feet.
    """

    settings: RunConfig
    at: float
    walking: bool
    stance: PushStance
    phase: float = math.nan
    stride: PrePushState | None = None


def situation(settings: RunConfig, at: float | None) -> Situation:
    """Return the only situation of :func:`situations` without phases."""
    return situations(settings, at)[0]


def situations(settings: RunConfig, at: float | None, phases: int = 0) -> tuple[Situation, ...]:
    """Run the scenario without a push, and return the times and states for pushes.

    Args:
        settings: Settings of the run. Its duration and the pushes of its scenario are not used.
        at: Time of the push [s]. A walking robot is pushed in the middle of the first single support that starts
            later. The default is 2 s after the start, or 3 s after the first velocity command.
        phases: Number of equal parts of a walking robot's step. The step is from that single support to the next one,
            and a push starts in the middle of each part. 0 means a single push as described for ``at``.

    Raises:
        ConfigError: The robot falls without a push, a walking robot has no single support, or a setting is invalid.
    """
    prepared = _undisturbed(settings)
    robot, steps = prepared.robot, prepared.scenario.velocity
    moving = sorted(step.at for step in steps if (step.vx, step.vy, step.wz) != (0.0, 0.0, 0.0))
    earliest = at if at is not None else (moving[0] + 3.0 if moving else 2.0)
    until = earliest + (3.0 if moving else 0.0)
    run = Run(prepared)
    recording = _recorded(run, until, 1)
    falls = [at for at in (run.guard.fell_at, fall_time(recording, robot)) if at is not None]
    description = f"scenario {prepared.scenario.name!r}: {robot.name}{_with(settings)}"
    if falls:
        raise ConfigError(
            f"falls without a push at t = {min(falls):.3f} s; take another scenario or controller", description
        )
    single = _single_supports(recording, earliest)
    times, step_phases = [earliest], [math.nan]
    if moving:
        if not single:
            raise ConfigError(
                f"no single support of 0.1 s between {earliest:g} s and {until:g} s; change --at", description
            )
        times = [round(0.5 * sum(single[0]), 3)]
    if moving and phases:
        if len(single) < 2:
            raise ConfigError(f"fewer than two steps between {earliest:g} s and {until:g} s; change --at", description)
        begin, period = single[0][0], single[1][0] - single[0][0]
        step_phases = [(k + 0.5) / phases for k in range(phases)]
        times = [round(begin + phase * period, 3) for phase in step_phases]
    # Hardware may change the masses, and the theory is that of the simulated robot.
    plant = run.sim.plant
    result = []
    for at, phase in zip(times, step_phases, strict=True):
        stance = _stance(recording, plant, at)
        if stance is None:
            raise ConfigError("airborne at the time of the push; change --at", f"{description}: t = {at:g} s")
        result.append(Situation(settings, at, bool(moving), stance, phase, _stride(recording, plant, at, stance)))
    return tuple(result)


def survives(situation: Situation, kind: PushKind, angle: float, impulse: float) -> bool:
    """Return whether the robot has not fallen ``kind.settle`` after a push, by the controller's and the true state.

    Args:
        situation: Time and state of the robot.
        kind: Common properties of the push.
        angle: Direction, from the heading to the left [rad].
        impulse: Impulse of the push [N.s].

    Raises:
        ControllerError: The controller raised an exception.
    """
    prepared = _undisturbed(situation.settings)
    change = impulse / prepared.robot.mass
    push = Push(
        at=situation.at,
        duration=kind.duration,
        impulse_over_mass=(change * math.cos(angle), change * math.sin(angle), 0.0),
        body=kind.body,
        frame=HEADING,
    )
    run = Run(replace(prepared, scenario=replace(prepared.scenario, pushes=(push,))))
    try:
        recording = _recorded(run, situation.at + kind.duration + kind.settle, ROW_TICKS)
    except DivergenceError:
        return False
    except Exception as error:
        if not controller_traceback(error):
            raise
        scenario = situation.settings.scenario
        of_push = f"pushed by {impulse:.4g} N.s at {math.degrees(angle):.0f} degrees"
        push_description = f"scenario {scenario!r}{_with(situation.settings)}, {of_push}"
        raise ControllerError(f"{push_description}: {raised_line(error)}") from error
    return not run.guard.fallen and fall_time(recording, prepared.robot) is None


def _with(settings: RunConfig) -> str:
    """Return the hardware of a run for messages; empty for the default."""
    return f" with {settings.hardware}" if settings.hardware else ""


def _undisturbed(settings: RunConfig) -> Prepared:
    prepared = prepare(settings)
    return replace(prepared, scenario=replace(prepared.scenario, pushes=()))


def _recorded(run: Run, until: float, row_ticks: int) -> Recording:
    """Run until ``until`` [s], or until the controller detects a fall, with a row every ``row_ticks`` ticks."""
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
    """Return start and end [s] of each single support that starts after ``earliest`` and ends in the recording."""
    loaded = recording.wrench[:, :, 2] > CARRIES * recording.weight
    supports = []
    for begin, end in true_runs(loaded.sum(axis=1) == 1):
        # A contact of a few ticks is a bounce and not a single support.
        if end < len(recording) and recording.t[begin] > earliest and recording.t[end] - recording.t[begin] > 0.1:
            supports.append((float(recording.t[begin]), float(recording.t[end])))
    return supports


def _row(recording: Recording, at: float) -> int:
    """Return the last row of a recording before the time ``at`` [s]."""
    return max(int(np.searchsorted(recording.t, at - 1e-9)) - 1, 0)


def _configuration(recording: Recording, robot: Robot, row: int) -> Array:
    """Return the configuration q (nq,) in a row of a recording."""
    q = robot.q_nominal.copy()
    q[:7] = recording.base_pose[row]
    q[robot.idx_q] = recording.joint_position[row]
    return q


def _world_to_heading(yaw: float) -> Array:
    """Return the rotation (2, 2) from the world to a frame with x along the heading ``yaw`` [rad]."""
    return np.array([[math.cos(yaw), math.sin(yaw)], [-math.sin(yaw), math.cos(yaw)]])


def _corners(robot: Robot, k: int, pose: Array) -> Array:
    """Return the vertices (n, 3) of the sole of foot ``k`` in the world [m]."""
    vertices = robot.soles[k].vertices
    points = np.column_stack([vertices, np.zeros(len(vertices))])
    return pose[:3] + rotate(np.broadcast_to(pose[3:], (len(points), 4)), points)


def _stride(recording: Recording, robot: Robot, at: float, stance: PushStance) -> PrePushState | None:
    """Return the robot's state for the computation of steps at ``at`` [s], in the frame of ``stance``."""
    row = _row(recording, at)
    if len(robot.soles) != 2 or min(sole.n_vertices for sole in robot.soles) < 3 or row == 0:
        return None
    data = robot.model.createData()
    q = _configuration(recording, robot, row)
    world_to_heading = _world_to_heading(heading_of(q))
    poses = recording.sole_poses[row]
    origin = poses[:, :2].mean(axis=0)
    com, before = (
        np.array(pin.centerOfMass(robot.model, data, _configuration(recording, robot, k)))[:2] for k in (row, row - 1)
    )
    velocity = (com - before) / (recording.t[row] - recording.t[row - 1])
    soles, feet = [], []
    for k in (0, 1):
        # The horizontal projection of the sole approximates its outline in stance.
        corners = (_corners(robot, k, poses[k])[:, :2] - origin) @ world_to_heading.T
        centre = corners.mean(axis=0)
        soles.append(support_polygon(corners - centre))
        feet.append(centre)
    sole_width = max(float(np.ptp(sole[:, 1])) for sole in soles)
    com_heading = world_to_heading @ (com - origin)
    loaded = recording.wrench[row, :, 2] > CARRIES * recording.weight
    return PrePushState(
        soles=(soles[0], soles[1]),
        feet=np.array(feet),
        carries=(bool(loaded[0]), bool(loaded[1])),
        com=com_heading,
        dcm=com_heading + world_to_heading @ velocity / stance.omega,
        narrow=sole_width,
        away=farthest_foot(robot, stance.com_height),
    )


def farthest_foot(robot: Robot, com_height: float) -> float:
    """Return the maximum horizontal distance [m] of a loaded foot from the CoM at ``com_height`` [m].

    The distance is limited by the straight leg from the hip, which moves with the CoM, and by friction, because the
    foot pushes towards the CoM. The pelvis may have any yaw angle.
    """
    legs = [leg_of(robot, k) for k in range(len(robot.soles))]
    nominal_com_height = float(pin.centerOfMass(robot.model, robot.model.createData(), robot.q_nominal)[2])
    reaches = []
    for sole, leg in zip(robot.soles, legs, strict=True):
        hip = leg.hip_height - (nominal_com_height - leg.ground) + com_height
        reach = math.sqrt(max(leg.straight**2 - hip**2, 0.0)) + leg.beside
        reaches.append(min(reach, sole.friction_static * com_height))
    return min(reaches)


def _stance(recording: Recording, robot: Robot, at: float) -> PushStance | None:
    """Return the stance of the robot at the time ``at`` [s], or None if it is airborne."""
    row = _row(recording, at)
    q = _configuration(recording, robot, row)
    com = pin.centerOfMass(robot.model, robot.model.createData(), q)
    feet = [k for k in range(len(robot.soles)) if recording.wrench[row, k, 2] > CARRIES * recording.weight]
    if not feet:
        return None
    ground = np.concatenate([_corners(robot, k, recording.sole_poses[row, k]) for k in feet])
    world_to_heading = _world_to_heading(heading_of(q))
    origin = recording.sole_poses[row, :, :2].mean(axis=0)
    return PushStance(
        polygon=support_polygon((ground[:, :2] - origin) @ world_to_heading.T),
        zmp=world_to_heading @ (recording.cop_world[row, :2] - origin),
        com_height=float(com[2] - ground[:, 2].mean()),
        mass=robot.mass,
        gravity=robot.weight / robot.mass,
        feet=tuple(robot.soles[k].name for k in feet),
    )


def direction_names(stance: PushStance) -> Callable[[float], str]:
    """Return a function that names directions. In single support, left and right become outward and inward."""
    names = {0: "forward", 90: "left", 180: "backward", 270: "right"}
    if len(stance.feet) == 1:
        # The origin is between the feet, so the polygon's mean y coordinate shows the side of the stance foot.
        left = float(stance.polygon[:, 1].mean()) > 0.0
        names |= {90: "outward" if left else "inward", 270: "inward" if left else "outward"}
    return lambda angle: names.get(round(math.degrees(angle)) % 360, f"{math.degrees(angle):.0f} deg")
