"""A run in the form of a laboratory trial: force plates, markers, events, and a table of all signals."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Literal, get_args

import numpy as np
import pinocchio as pin
import scipy

from bipedsim.analysis.configurations import recorded_configurations
from bipedsim.analysis.force_plates import contacts, filtered
from bipedsim.analysis.loads import PRESSES
from bipedsim.analysis.plates import centre_of_pressure, force_plate, low_pass, rotate, sample_rate
from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.plates import PlateGeometry, PlateSignals
from bipedsim.recording import Recording
from bipedsim.recording.lab import Y_UP, Event, LabTable, LabTrial, Markers

Frame = Literal["world", "plate", "sole"]
FRAMES: tuple[str, ...] = get_args(Frame)
REACH = 0.1
"""Margin of an ideal plate around the soles [m]."""
CAMERAS = 250.0
"""Maximum rate of marker frames [Hz]."""
_PARTS = (("Fx", "N"), ("Fy", "N"), ("Fz", "N"), ("Mx", "N.m"), ("My", "N.m"), ("Mz", "N.m"))
_AT = (("CoPx", "m"), ("CoPy", "m"), ("Tz", "N.m"))


def begun(recording: Recording) -> Recording:
    """Copy the wrench and CoP of the second row to the first one, if that is at t = 0 and has none.

    The wrench of a row is the mean over the step before it, so a bag has no ground reaction at t = 0. The first step
    begins at t = 0, and its values therefore also describe the first row.
    """
    r = recording
    if len(r) < 2 or r.t[0] > 0.0 or np.nan_to_num(r.wrench[0]).any() or not np.nan_to_num(r.wrench[1]).any():
        return r
    r = copy(r)
    for name in ("wrench", "cop", "cop_world"):
        values = np.array(getattr(r, name))
        values[0] = values[1]
        setattr(r, name, values)
    return r


def ideal_plates(recording: Recording, height: float = 0.0) -> tuple[PlateSignals, ...]:
    """Return one ideal plate of type 2 per foot: it covers the whole walk and measures its foot alone.

    The axes are those of a commercial plate: x along the world's, z into the floor. The transducers are in the surface.

    Args:
        recording: The run, with sole wrenches and poses; uneven times are resampled by linear interpolation.
        height: Height of the surfaces in the world [m].

    Raises:
        ConfigError: The recording has no sole poses.
    """
    # Without this, every foot on the ground at the start would seem to step onto its plate.
    recording = begun(recording)
    ground = force_plate(recording, height=height)
    places = recording.sole_poses[..., :2].reshape(-1, 2)
    places = places[np.isfinite(places).all(axis=1)]
    size = max((float(np.linalg.norm(v, axis=1).max()) for v in recording.sole_vertices if len(v)), default=0.0)
    low, high = places.min(axis=0) - size - REACH, places.max(axis=0) + size + REACH
    (x0, y0), (x1, y1) = np.floor(10.0 * low) / 10.0, np.ceil(10.0 * high) / 10.0
    corners = np.array([[x1, y0, height], [x0, y0, height], [x0, y1, height], [x1, y1, height]])
    t, rate = even_times(recording.t)
    plates = []
    for k, foot in enumerate(recording.feet):
        geometry = PlateGeometry(foot, corners, 2, rate)
        force = ground.force[:, k]
        moment = ground.moment[:, k] - np.cross(geometry.transducer_origin, force)
        wrench = np.hstack([force @ geometry.rotation, moment @ geometry.rotation])
        if len(t) != len(recording) or not np.array_equal(t, recording.t):
            wrench = np.column_stack([np.interp(t, recording.t, column) for column in wrench.T])
        plates.append(PlateSignals(t, geometry, wrench))
    return tuple(plates)


def even_times(t: Array) -> tuple[Array, float]:
    """Return evenly spaced times (m,) over those of ``t`` (n,), and their rate [Hz]; ``t`` itself if it is even."""
    rate = sample_rate(t)
    if len(t) < 2 or np.abs(np.diff(t) * rate - 1.0).max() < 0.01:
        return t, rate if np.isfinite(rate) else 1.0
    return t[0] + np.arange(int(np.floor((t[-1] - t[0]) * rate + 0.01)) + 1) / rate, rate


def run_markers(recording: Recording, robot: Robot | None) -> Markers:
    """Return the positions of joint centres, CoM, base and corners of the soles, at a rate of at most 250 Hz.

    Args:
        recording: The run.
        robot: The robot of the run; None leaves joint centres and CoM out.

    Raises:
        RecordingError: The recording is of another robot.
    """
    every = max(1, int(np.ceil(sample_rate(recording.t) / CAMERAS - 1e-9))) if len(recording) > 1 else 1
    rows = recording.rows(slice(None, None, every))
    names: list[str] = []
    places: list[Array] = []
    if robot is not None:
        names += [*(f"{joint}_centre" for joint in robot.joint_names), "CoM"]
        places.append(_joints_and_com(rows, robot))
    if np.isfinite(rows.base_pose).any():
        names.append("base")
        places.append(rows.base_pose[:, None, :3])
    for k, (foot, vertices) in enumerate(zip(rows.feet, rows.sole_vertices, strict=True)):
        corners = np.column_stack([vertices, np.zeros(len(vertices))])
        pose = rows.sole_poses[:, None, k]
        names += [f"{foot}_sole_{i}" for i in range(len(corners))]
        places.append(pose[..., :3] + rotate(pose[..., 3:], corners[None]))
    positions = np.concatenate(places, axis=1) if places else np.zeros((len(rows), 0, 3))
    return Markers(rows.t, tuple(names), positions)


def _joints_and_com(rows: Recording, robot: Robot) -> Array:
    """Return the centres of the driven joints, and the CoM (n, nu + 1, 3) [m]."""
    model, data = robot.model, robot.model.createData()
    joints = [model.getJointId(name) for name in robot.joint_names]
    positions = np.full((len(rows), len(joints) + 1, 3), np.nan)
    for i, q in enumerate(recorded_configurations(rows, robot)):
        if np.isfinite(q).all():
            positions[i, -1] = pin.centerOfMass(model, data, q)
            positions[i, :-1] = [data.oMi[joint].translation for joint in joints]
    return positions


def gait_events(plates: Sequence[PlateSignals]) -> tuple[Event, ...]:
    """Return foot strikes and foot offs, from plates of one foot each; the ends of a run are no events."""
    events = []
    for plate in plates:
        name = plate.geometry.name.lower()
        context = "Left" if name.startswith("l") else "Right" if name.startswith("r") else "General"
        for span in contacts(plate):
            if span.start > 0:
                events.append(Event(float(plate.t[span.start]), "Foot Strike", context))
            if span.stop < len(plate):
                events.append(Event(float(plate.t[span.stop]), "Foot Off", context))
    return tuple(sorted(events, key=lambda event: event.t))


def run_trial(recording: Recording, robot: Robot | None, cutoff: float | None = None, order: int = 4) -> LabTrial:
    """Return a run as a trial: force plates (else one ideal plate per foot), markers, and events of the feet.

    Args:
        recording: The run.
        robot: The robot of the run; None leaves joint centres and CoM out.
        cutoff: Cut-off frequency of a zero-phase low-pass of forces and moments [Hz]; filtered plates are of type 2.
        order: Order of one pass of the filter.

    Raises:
        ConfigError: The recording lacks required columns.
        RecordingError: The recording is of another robot.
    """
    recording = begun(recording)
    notes = list(recording.notes)
    ideal = ideal_plates(recording)
    plates = tuple(recording.force_plates.values()) or ideal
    if not recording.force_plates:
        notes.append("the run had no force plates; one ideal plate per foot, as large as the walk, is used instead")
    if len(ideal) and len(ideal[0].t) != len(recording):
        notes.append("rows at uneven times were resampled by linear interpolation")
    if cutoff is not None:
        if any(plate.geometry.kind != 2 for plate in plates):
            notes.append("filtered plates are written as type 2, because the filter acts on forces and moments")
        plates = tuple(filtered(plate, cutoff, order) for plate in plates)
    name = recording.about.get("scenario", "") or recording.robot or "run"
    markers = run_markers(recording, robot)
    return LabTrial(name, plates, markers, gait_events(ideal), tuple(notes), recording.weight)


def filter_text(cutoff: float | None, order: int = 4) -> str:
    """Return the description of a filter for a header."""
    if cutoff is None:
        return "none"
    return f"Butterworth low-pass, {cutoff:g} Hz, order {order}, forwards and backwards, of forces and moments"


def lab_table(
    recording: Recording, robot: Robot | None, frame: Frame = "world", cutoff: float | None = None, order: int = 4
) -> LabTable:
    """Return a table with a row per tick: wrench, CoP and free moment of each foot and plate, CoM, base, joints.

    The frames are:

    * ``world``: moments are about the world's origin. CoPs are on the surface of the plate; for feet it is z = 0.
    * ``plate``: values are along the axes of the plates, and moments about their transducers. For feet these are the
      plates of :func:`ideal_plates`.
    * ``sole``: values of feet are along the axes of their soles, and moments about the sole's origin. Values of plates
      stay in the world.

    Args:
        recording: The run.
        robot: The robot of the run; None leaves the CoM out.
        frame: See above.
        cutoff, order: See :func:`run_trial`.

    Raises:
        ConfigError: The recording lacks required columns, or there is no such frame.
        RecordingError: The recording is of another robot.
    """
    if frame not in FRAMES:
        raise ConfigError(f"frame {frame!r} is none of {', '.join(FRAMES)}")
    r = begun(recording)
    columns: dict[str, Array] = {"t": r.t}
    units = {"t": "s"}

    def put(name: str, unit: str, values: Array) -> None:
        columns[name], units[name] = values, unit

    def put_wrench(name: str, values: Array) -> None:
        for (part, unit), column in zip((*_PARTS, *_AT), values.T, strict=True):
            put(f"{name}_{part}", unit, column)

    for k, foot in enumerate(r.feet):
        put_wrench(foot, _foot_values(r, k, frame, cutoff, order))
    total = force_plate(r, cutoff, order)
    put_wrench(
        "total",
        np.column_stack([total.total_force, total.moment.sum(axis=1), total.total_cop, total.total_free_moment]),
    )
    for name, plate in r.force_plates.items():
        signals = plate if cutoff is None else filtered(plate, cutoff, order)
        values = _plate_values(signals, "plate" if frame == "plate" else "world")
        put_wrench(f"plate_{name}", np.column_stack([np.interp(r.t, signals.t, column) for column in values.T]))
    if robot is not None:
        com = _joints_and_com(r, robot)[:, -1]
        for axis, column in zip("xyz", com.T, strict=True):
            put(f"CoM_{axis}", "m", column)
    if np.isfinite(r.base_pose).any():
        for axis, column in zip(("x", "y", "z", "qx", "qy", "qz", "qw"), r.base_pose.T, strict=True):
            put(f"base_{axis}", "" if "q" in axis else "m", column)
    for k, joint in enumerate(r.joint_names):
        for name, unit in (("position", "rad"), ("velocity", "rad/s"), ("effort", "N.m")):
            put(f"{joint}_{name}", unit, getattr(r, f"joint_{name}")[:, k])
    about = {
        "robot": r.robot,
        "frame": f"{frame}; world: z up; wrenches are those of the ground on the robot",
        "filter": filter_text(cutoff, order),
        "weight[N]": f"{r.weight:.9g}",
    }
    if any(plate.geometry.rate != sample_rate(r.t) for plate in r.force_plates.values()):
        about["plates"] = "of other rates, read off at the times of the rows by straight lines"
    return LabTable(columns, units, about)


def _foot_values(r: Recording, k: int, frame: Frame, cutoff: float | None, order: int) -> Array:
    """Return force, moment, CoP and free moment (n, 9) of a foot."""
    if frame == "sole":
        wrench = np.nan_to_num(r.wrench[:, k])
        wrench = wrench if cutoff is None else low_pass(wrench, sample_rate(r.t), cutoff, order)
        weight = r.weight if np.isfinite(r.weight) else float(np.abs(wrench[:, 2]).max())
        cop, twist = centre_of_pressure(wrench[:, :3], wrench[:, 3:], 0.0, PRESSES * weight)
        return np.column_stack([wrench, cop, twist])
    if frame == "plate":
        plate = ideal_plates(r)[k]
        values = _plate_values(plate if cutoff is None else filtered(plate, cutoff, order), "plate")
        return np.column_stack([np.interp(r.t, plate.t, column) for column in values.T])
    ground = force_plate(r, cutoff, order)
    return np.column_stack([ground.force[:, k], ground.moment[:, k], ground.cop[:, k], ground.free_moment[:, k]])


def _plate_values(plate: PlateSignals, frame: Literal["world", "plate"]) -> Array:
    """Return force, moment, CoP and free moment (n, 9) of a plate; in the world, moments are about the origin."""
    moment = plate.moment("plate") if frame == "plate" else plate.moment_about(np.zeros(3))
    cop = plate.cop(axes=frame)[:, :2]
    return np.column_stack([plate.force(frame), moment, cop, plate.free_moment(axes=frame)])


def coordinates(recording: Recording, robot: Robot | None) -> tuple[list[str], Array]:
    """Return names and values (n, columns) of a run's coordinates for OpenSim, in degrees and metres, time first.

    The base rotates by ``base_rx``, ``base_ry``, ``base_rz`` about its own axes in this order, as OpenSim's FreeJoint
    does. Its axes have y up, for the body as for the ground; at zero the base is level. Joints have their own names.

    Args:
        recording: The run.
        robot: The robot, for its prismatic joints; None if there are none.
    """
    r = recording
    names, blocks = ["time"], [r.t[:, None]]
    if np.isfinite(r.base_pose).all():
        turn = Y_UP @ scipy.spatial.transform.Rotation.from_quat(r.base_pose[:, 3:]).as_matrix() @ Y_UP.T
        angles = scipy.spatial.transform.Rotation.from_matrix(turn).as_euler("XYZ")
        names += [f"base_{kind}{axis}" for kind in "rt" for axis in "xyz"]
        blocks += [np.degrees(np.unwrap(angles, axis=0)), r.base_pose[:, :3] @ Y_UP.T]
    slides = set()
    if robot is not None:
        model = robot.model
        slides = {n for n in r.joint_names if model.joints[model.getJointId(n)].shortname().startswith("JointModelP")}
    scale = np.array([1.0 if name in slides else np.degrees(1.0) for name in r.joint_names])
    return [*names, *r.joint_names], np.hstack([*blocks, r.joint_position * scale])
