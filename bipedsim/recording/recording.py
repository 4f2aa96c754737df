"""A run as a table of arrays: bags and headless runs turn into it, plots, exports and summaries read it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bipedsim.errors import RecordingError
from bipedsim.sim import Observation

if TYPE_CHECKING:
    from bipedsim.contact import ContactResult
    from bipedsim.model import Robot

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

FORMAT = "bipedsim recording 1"
ABSENT_MODE = -1
CONTACT_FIELDS = (
    *("t", "mode", "clamped", "sliding", "cop_margin", "friction_used", "n_vertices"),
    *(f"impact_{component}" for component in ("fx", "fy", "fz", "tx", "ty", "tz")),
)
"""What is published of a foot's :class:`bipedsim.contact.base.ContactResult`, in this order, besides wrench and CoP."""
WALL_CLOCK_NS = 10**18
"""Stamps beyond 30 years are wall clock and not simulated time: what they stamp starts at t = 0."""
READOUTS = "/controller/"
"""What the topics of a controller's readouts begin with."""
_WRENCH = ("fx[N]", "fy[N]", "fz[N]", "tx[N.m]", "ty[N.m]", "tz[N.m]")
_IMPULSE = ("fx[N.s]", "fy[N.s]", "fz[N.s]", "tx[N.m.s]", "ty[N.m.s]", "tz[N.m.s]")
_POSE = ("x[m]", "y[m]", "z[m]", "qx", "qy", "qz", "qw")


class _Column(NamedTuple):
    """A group of columns: once, per joint or per foot; component names carry the unit."""

    per: str
    components: tuple[str, ...]
    kind: type = float


# The order is that of the exported table.
COLUMNS: dict[str, _Column] = {
    "joint_position": _Column("joint", ("[rad]",)),
    "joint_velocity": _Column("joint", ("[rad/s]",)),
    "joint_effort": _Column("joint", ("[N.m]",)),
    "wrench": _Column("foot", _WRENCH),
    "impact": _Column("foot", _IMPULSE),
    "cop": _Column("foot", ("x[m]", "y[m]")),
    "mode": _Column("foot", ("",), int),
    "sliding": _Column("foot", ("",), bool),
    "clamped": _Column("foot", ("",), int),
    "cop_margin": _Column("foot", ("[m]",)),
    "friction_used": _Column("foot", ("",)),
    "n_vertices": _Column("foot", ("",), int),
    "ankle_wrench": _Column("foot", _WRENCH),
    "sole_poses": _Column("foot", _POSE),
    "cop_world": _Column("", ("x[m]", "y[m]", "z[m]")),
    "base_pose": _Column("", _POSE),
    "odometry": _Column("", _POSE),
    "imu_orientation": _Column("", ("qx", "qy", "qz", "qw")),
    "imu_angular_velocity": _Column("", ("x[rad/s]", "y[rad/s]", "z[rad/s]")),
    "imu_linear_acceleration": _Column("", ("x[m/s^2]", "y[m/s^2]", "z[m/s^2]")),
}


@dataclass(eq=False)
class Recording:
    """One run, a row per tick: n ticks, nu joints, K feet. What was not recorded is NaN (modes: -1).

    Attributes:
        robot: Name of the robot; empty when unknown.
        t: (n,) time of the measurements [s], rising.
        joint_names: Names of the nu joints.
        joint_position, joint_velocity, joint_effort: (n, nu) [rad], [rad/s], [N.m].
        feet: Names of the K feet.
        wrench: (n, K, 6) force [N], torque [N.m] of the ground on each foot at the sole origin, in the sole frame.
        impact: (n, K, 6) the part of it that was the impulse of an impact [N.s, N.m.s].
        cop: (n, K, 2) centre of pressure in the sole frame [m], NaN in the air.
        cop_world: (n, 3) centre of pressure of all feet in the world [m], NaN in the air.
        mode, sliding, clamped, cop_margin, friction_used, n_vertices: (n, K), as in
            :class:`bipedsim.contact.base.ContactResult`.
        ankle_wrench: (n, K, 6) what the force-torque sensors measured, in their frames.
        base_pose: (n, 7) true pose of the base in the world: position [m], quaternion x y z w.
        odometry: (n, 7) the same as the controller estimated it from the measurements of the row, in axes of its own.
        sole_poses: (n, K, 7) the same of each sole frame.
        imu_orientation, imu_angular_velocity, imu_linear_acceleration: (n, 4), (n, 3) [rad/s], (n, 3) [m/s^2].
        sole_vertices: (N, 2) polygon of each foot in its sole frame [m]; (0, 2) when unknown.
        effort_limit: (nu,) [N.m], NaN when unknown.
        weight: m g [N], NaN when unknown.
        readouts: Name to what the controller showed in answer to the measurements of each row (n,).
        gave_up_at: When the controller was found fallen, and the joints went to damping [s]; NaN if it never was.
        pushes: Begin and end of every push that was planned [s]; empty where that is not known, as in a bag.
        notes: What a reader should know, such as that a bag was cut short and how much was recovered.
        about: What was run, as far as it is known: ``scenario``, ``controller``, ``contact_model``, ``ground``.
    """

    robot: str
    t: Array
    joint_names: tuple[str, ...]
    joint_position: Array
    joint_velocity: Array
    joint_effort: Array
    feet: tuple[str, ...]
    wrench: Array
    impact: Array
    cop: Array
    cop_world: Array
    mode: Integers
    sliding: NDArray[np.bool_]
    clamped: Integers
    cop_margin: Array
    friction_used: Array
    n_vertices: Integers
    ankle_wrench: Array
    base_pose: Array
    odometry: Array
    sole_poses: Array
    imu_orientation: Array
    imu_angular_velocity: Array
    imu_linear_acceleration: Array
    sole_vertices: tuple[Array, ...]
    effort_limit: Array
    weight: float
    readouts: dict[str, Array] = field(default_factory=dict)
    gave_up_at: float = float("nan")
    pushes: tuple[tuple[float, float], ...] = ()
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.t)

    @property
    def duration(self) -> float:
        """Time from the first to the last row [s]."""
        return float(self.t[-1] - self.t[0]) if len(self.t) else 0.0

    @classmethod
    def empty(cls, n: int, joint_names: Sequence[str], feet: Sequence[str], robot: str = "") -> Recording:
        """Return a recording of ``n`` rows in which nothing has been recorded yet."""
        sizes = {"": (), "joint": (len(joint_names),), "foot": (len(feet),)}
        arrays: dict[str, Any] = {}
        for name, column in COLUMNS.items():
            inner = (len(column.components),) if len(column.components) > 1 else ()
            shape = (n, *sizes[column.per], *inner)
            absent: Any = {float: np.nan, int: ABSENT_MODE, bool: False}[column.kind]
            arrays[name] = np.full(shape, absent, dtype={float: np.float64, int: np.int64, bool: np.bool_}[column.kind])
        return cls(
            robot=robot,
            t=np.full(n, np.nan),
            joint_names=tuple(joint_names),
            feet=tuple(feet),
            sole_vertices=tuple(np.zeros((0, 2)) for _ in feet),
            effort_limit=np.full(len(joint_names), np.nan),
            weight=float("nan"),
            **arrays,
        )

    def describe_robot(self, robot: Robot) -> None:
        """Take the robot's name, soles, effort limits and weight, for feet and joints that have the same names."""
        self.robot = robot.name
        self.weight = robot.weight
        soles = {sole.name: np.asarray(sole.vertices) for sole in robot.soles}
        self.sole_vertices = tuple(soles.get(foot, np.zeros((0, 2))) for foot in self.feet)
        limits = dict(zip(robot.joint_names, robot.effort_limit, strict=True))
        self.effort_limit = np.array([limits.get(name, np.nan) for name in self.joint_names])

    def rows(self, selection: slice | NDArray[Any]) -> Recording:
        """Return the recording with only the selected rows; with a slice, arrays are views."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values |= {name: values[name][selection] for name in ("t", *COLUMNS)}
        values["readouts"] = {name: column[selection] for name, column in self.readouts.items()}
        return Recording(**values)

    def save(self, path: Path) -> None:
        """Write the recording to ``path`` (.npz), without pickles.

        Raises:
            RecordingError: The file cannot be written.
        """
        header = {
            "format": FORMAT,
            "robot": self.robot,
            "joint_names": self.joint_names,
            "feet": self.feet,
            "weight": self.weight if np.isfinite(self.weight) else None,
            "readouts": list(self.readouts),
            "gave_up_at": self.gave_up_at if np.isfinite(self.gave_up_at) else None,
            "pushes": self.pushes,
            "notes": self.notes,
            "about": dict(self.about),
        }
        arrays = {name: getattr(self, name) for name in ("t", "effort_limit", *COLUMNS)}
        arrays |= {f"sole_vertices_{i}": vertices for i, vertices in enumerate(self.sole_vertices)}
        arrays |= {f"readout_{name}": values for name, values in self.readouts.items()}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                np.savez_compressed(file, header=np.array(json.dumps(header)), **arrays)
        except OSError as error:
            raise RecordingError(f"{path}: cannot be written ({error.strerror})") from error

    class Builder:
        """Collect a headless run row by row into arrays that double when they are full.

        Args:
            robot: Whose run it is.
            capacity: Rows to make room for at once.
        """

        def __init__(self, robot: Robot, capacity: int = 10_000) -> None:
            feet = [sole.name for sole in robot.soles]
            self._recording = Recording.empty(max(1, capacity), robot.joint_names, feet)
            self._recording.describe_robot(robot)
            self._free_flyer = robot.free_flyer
            self._n = 0

        def append(
            self,
            t: float,
            observation: Observation,
            contact_result: ContactResult,
            q: Array,
            cop_world: ArrayLike,
            sole_poses: ArrayLike,
        ) -> None:
            """Copy one tick.

            Args:
                t: Time of the measurements [s].
                observation: What the sensors measured.
                contact_result: What the ground did.
                q: (nq,) true configuration.
                cop_world: (3,) overall CoP in the world [m].
                sole_poses: (K, 7) pose of each sole in the world.
            """
            i, r = self._n, self._recording
            if i == len(r.t):
                r = self._grow()
            r.t[i] = t
            r.joint_position[i] = observation.joint_position
            r.joint_velocity[i] = observation.joint_velocity
            r.joint_effort[i] = observation.joint_effort
            r.imu_orientation[i] = observation.imu_orientation
            r.imu_angular_velocity[i] = observation.imu_angular_velocity
            r.imu_linear_acceleration[i] = observation.imu_linear_acceleration
            r.ankle_wrench[i] = observation.foot_wrench
            r.wrench[i] = contact_result.wrench
            r.impact[i] = contact_result.impact
            r.cop[i] = contact_result.cop
            r.mode[i] = contact_result.mode
            r.sliding[i] = contact_result.sliding
            r.clamped[i] = contact_result.clamped
            r.cop_margin[i] = contact_result.cop_margin
            r.friction_used[i] = contact_result.friction_used
            r.n_vertices[i] = contact_result.n_vertices
            r.cop_world[i] = cop_world
            r.sole_poses[i] = sole_poses
            if self._free_flyer:
                r.base_pose[i] = q[:7]
            self._n = i + 1

        def note(self, readouts: Mapping[str, float], odometry: Array | None) -> None:
            """Add to the last row what the controller showed in answer to it; before the first row do nothing.

            Args:
                readouts: The numbers.
                odometry: (7,) estimated pose of the base, or None.
            """
            if self._n == 0:
                return
            i, r = self._n - 1, self._recording
            for name, value in readouts.items():
                if name not in r.readouts:
                    r.readouts[name] = np.full(len(r.t), np.nan)
                r.readouts[name][i] = value
            if odometry is not None:
                r.odometry[i] = odometry

        def _grow(self) -> Recording:
            old = self._recording
            new = Recording.empty(2 * len(old), old.joint_names, old.feet, old.robot)
            for name in ("t", *COLUMNS):
                getattr(new, name)[: len(old)] = getattr(old, name)
            for name, values in old.readouts.items():
                new.readouts[name] = np.concatenate([values, np.full(len(old), np.nan)])
            for name in ("sole_vertices", "effort_limit", "weight"):
                setattr(new, name, getattr(old, name))
            self._recording = new
            return new

        def __len__(self) -> int:
            return self._n

        def build(self) -> Recording:
            """Return what was appended so far; its arrays are views of the builder's."""
            return self._recording.rows(slice(0, self._n))


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def load_npz(path: Path) -> Recording:
    try:
        # Opened here, because np.load leaves a file that it does not understand open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            if "header" not in data:
                raise RecordingError(f"{path}: no run of bipedsim: it holds {', '.join(data.files) or 'nothing'}")
            header = json.loads(str(data["header"]))
            if header.get("format") != FORMAT:
                raise RecordingError(f"{path}: its format is {header.get('format')!r}, expected {FORMAT!r}")
            run = Recording.empty(len(data["t"]), header["joint_names"], header["feet"], header["robot"])
            # An older run lacks the columns that came later: they stay empty.
            for name in ("t", "effort_limit", *(name for name in COLUMNS if name in data)):
                getattr(run, name)[...] = data[name]
            run.sole_vertices = tuple(data[f"sole_vertices_{i}"] for i in range(len(run.feet)))
            run.weight = _or_nan(header["weight"])
            run.readouts = {name: data[f"readout_{name}"] for name in header.get("readouts", ())}
            run.gave_up_at = _or_nan(header.get("gave_up_at"))
            run.notes = tuple(header["notes"])
            # Older runs do not say.
            run.pushes = tuple((float(start), float(end)) for start, end in header.get("pushes", ()))
            run.about = {str(key): str(value) for key, value in header.get("about", {}).items()}
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise RecordingError(f"{path}: not a run of bipedsim, or damaged ({error})") from error
    return run
