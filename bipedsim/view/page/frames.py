"""Convert a recorded run to instants for the page, thinned to the frame rate of a screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.analysis import ControllerStop, complete_rows, gather, recorded_configurations
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.objects import ObjectConfig, parse_objects
from bipedsim.recording import Recording, joined, plan_of, without_plan
from bipedsim.view.page.instant import Instant, Pushed

RATE = 30.0
"""Frames per second on the page."""
SAME = 2e-3
"""Maximum difference of two times that count as equal [s]."""
LONGEST_STEP = 0.2
"""Maximum time between two rows with a velocity between them [s]."""


class ThinnedFrames:
    """Collects the first row of every frame block by block, so that a run of any length can be processed.

    Args:
        rate: Frames per second of simulated time.
    """

    def __init__(self, rate: float = RATE) -> None:
        self._rate = rate
        self._parts: list[Recording] = []
        self._last: int | None = None
        self._last_readouts: tuple[dict[str, float], ...] = ()
        self._end = np.nan

    def add(self, rows: Recording) -> None:
        """Process the next rows."""
        number = np.floor(rows.t * self._rate + 1e-6).astype(np.int64)
        before = np.append(number[:1] - 1 if self._last is None else self._last, number[:-1])
        if len(number):
            self._last = int(number[-1])
            self._end = float(rows.t[-1])
            latest = (_readouts_of(rows, i) for i in range(max(0, len(rows) - 2), len(rows)))
            self._last_readouts = (*self._last_readouts, *latest)[-2:]
        # A block without a selected row is appended too, because the last block contains data about the whole run.
        self._parts.append(rows.rows(np.flatnonzero(number != before)))

    @property
    def recording(self) -> Recording:
        """All selected rows so far.

        The controller does not answer the last row of a run. If this row is selected, it gets the telemetry of the row
        before.
        """
        recording = joined(self._parts)
        if len(recording) == 0 or recording.t[-1] != self._end:
            return recording
        before, last = self._last_readouts[0], self._last_readouts[-1]
        # A bag repeats the plan until the next one, so only the other signals show that the row was not answered.
        if not np.isfinite(list(without_plan(last).values())).any():
            for name in (name for name in before if np.isnan(recording.readouts[name][-1])):
                recording.readouts[name][-1] = before[name]
        return recording


def _readouts_of(rows: Recording, i: int) -> dict[str, float]:
    """Return the controller's telemetry in a row."""
    return {name: float(values[i]) for name, values in rows.readouts.items()}


def read_thinned(
    path: Path | str, rate: float = RATE, start: float | None = None, stop: float | None = None
) -> Recording:
    """Read ``rate`` rows per second of a run, see :func:`bipedsim.load_run`.

    Raises:
        RecordingError: The path contains no readable run, or no row in this interval.
    """
    return gather(path, lambda: ThinnedFrames(rate), start=start, stop=stop).recording


@dataclass(frozen=True, eq=False)
class Frames:
    """F instants of a run.

    Attributes:
        recording: Rows of the instants, with joints in the order of the robot.
        model: Model of pinocchio.
        q, v: (F, nq), (F, nv) configurations, and velocities from the neighbours of each frame.
        estimated: Whether the base pose is the controller's estimate.
        objects: Free objects with known shapes.
        notes: Notes on the whole run for the user.
    """

    recording: Recording
    model: pin.Model
    q: Array
    v: Array
    estimated: bool
    objects: Sequence[ObjectConfig]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.q)

    @property
    def t(self) -> Array:
        """Times of the frames (F,) [s]."""
        return self.recording.t

    def nearest(self, t: float) -> int:
        """Return the index of the frame nearest to time ``t`` [s]."""
        i = int(np.clip(np.searchsorted(self.t, t), 1, max(1, len(self) - 1)))
        return i - 1 if i == len(self) or t - self.t[i - 1] < self.t[i] - t else i

    def instant(self, i: int, t: float | None = None) -> Instant:
        """Return the instant of frame ``i``; a time ``t`` [s] between two frames interpolates the configuration."""
        r = self.recording
        t = float(r.t[i]) if t is None else t
        forces = np.vstack([r.base_contact[i], r.link_contact[i]])
        readouts = {name: float(values[i]) for name, values in r.readouts.items()}
        known = len(r.vertex_forces) == len(r.feet) > 0
        stop = ControllerStop.recorded(r)
        return Instant(
            t=t,
            q=self._between(i, t),
            v=self.v[i],
            wrench=r.wrench[i],
            cop=r.cop[i],
            mode=r.mode[i],
            clamped=r.clamped[i],
            sliding=r.sliding[i],
            cop_margin=r.cop_margin[i],
            friction_used=r.friction_used[i],
            n_vertices=r.n_vertices[i],
            vertex_forces=tuple(r.vertex_forces[foot][i] for foot in r.feet) if known else None,
            joint_position=r.joint_position[i],
            joint_velocity=r.joint_velocity[i],
            joint_effort=r.joint_effort[i],
            joint_command=r.joint_command[i],
            body_forces=forces if np.isfinite(forces).any() else None,
            objects={name: states[i, :7] for name, states in r.objects.items()},
            push=pushes_at(r.run, float(r.t[i])),
            plan=plan_of(readouts),
            readouts=readouts,
            estimated=self.estimated,
            notes=(str(stop),) if stop is not None and r.t[i] >= stop.at else (),
        )

    def _between(self, i: int, t: float) -> Array:
        """Interpolate the configuration (nq,) at ``t`` between frame ``i`` and its neighbour."""
        offset = t - float(self.t[i])
        j = i + (1 if offset > 0.0 else -1)
        if abs(offset) < SAME or not 0 <= j < len(self) or abs(self.t[j] - self.t[i]) > LONGEST_STEP:
            return np.asarray(self.q[i])
        return np.asarray(pin.interpolate(self.model, self.q[i], self.q[j], offset / (self.t[j] - self.t[i])))


def frames_of(recording: Recording, robot: Robot, progress: bool = False) -> Frames:
    """Return the instants of the rows of ``recording`` with a complete configuration.

    Args:
        recording: The run, already thinned.
        robot: Robot of the run.
        progress: Whether to show a progress bar on stderr if it takes long.

    Raises:
        RecordingError: The recording belongs to another robot or lacks data for a configuration.
    """
    notes = list(recording.notes)
    estimated = robot.free_flyer and not np.isfinite(recording.base_pose).any()
    if estimated:
        if np.isfinite(recording.odometry).any():
            recording = replace(recording, base_pose=recording.odometry)
        else:
            recording = replace(recording, base_pose=_fixed_base_poses(recording, robot))
            notes.append("where the base was is not recorded: it stays where the robot stands, turned as its IMU says")
    recording = recording.in_order(robot.joint_names)
    known = np.flatnonzero(complete_rows(recording, robot))
    if len(known):
        recording = recording.rows(known)
    q = recorded_configurations(recording, robot, progress)
    configured = parse_objects(recording.run.get("objects", ()))
    objects = [config for config in configured if config.name in recording.objects]
    unknown = sorted(set(recording.objects) - {config.name for config in objects})
    if unknown:
        notes.append(f"without {', '.join(unknown)}: their shapes were not recorded")
    return Frames(recording, robot.model, q, _velocities(recording.t, q, robot.model), estimated, objects, tuple(notes))


def _fixed_base_poses(recording: Recording, robot: Robot) -> Array:
    """Return poses (n, 7) of a base at its standing position, with the attitude of the IMU if it is on the base."""
    poses = np.tile(robot.q_nominal[:7], (len(recording), 1))
    known = np.isfinite(recording.imu_orientation).all(axis=1) & (robot.imu_joint_id == 1)
    of_imu = robot.placement_joint_imu.rotation
    for i in np.flatnonzero(known):
        x, y, z, w = recording.imu_orientation[i]
        R = pin.Quaternion(w, x, y, z).normalized().toRotationMatrix() @ of_imu.T
        poses[i, 3:] = pin.Quaternion(R).coeffs()
    return poses


def _velocities(t: Array, q: Array, model: pin.Model) -> Array:
    """Return the velocities (F, nv) between the frames before and after each frame, NaN across gaps.

    The velocity of a step between two rows is its mean. The error is of second order in the time between them; a
    velocity jump is smeared over this time.
    """
    v = np.full((len(q), model.nv), np.nan)
    for i in range(len(q)):
        a, b = max(0, i - 1), min(len(q) - 1, i + 1)
        if b > a and t[b] - t[a] < LONGEST_STEP:
            v[i] = pin.difference(model, q[a], q[b]) / (t[b] - t[a])
    return v


def pushes_at(run: Mapping[str, Any], t: float) -> tuple[Pushed, ...]:
    """Return the active pushes at time ``t`` [s]; ``run`` is :attr:`bipedsim.recording.Recording.run`."""
    active = None
    for push in run.get("pushes", ()):
        begin = push["t"] + push["after"]
        # A push ends when the next one begins.
        if begin <= t:
            active = push if t < begin + push["duration"] else None
    if active is None:
        return ()
    return (Pushed(np.array(active["wrench"][:3], dtype=np.float64), frame=active["body"] or ""),)
