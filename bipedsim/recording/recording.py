"""Store a run as a table of arrays. Bags and headless runs produce it; plots, exports and summaries read it."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import ParameterChange, facts
from bipedsim.errors import DamagedError, RecordingError, some, warn_incomplete
from bipedsim.numerics import Array, Flags, copy_rows, ready
from bipedsim.plates import PlateSignals
from bipedsim.recording.files import writing
from bipedsim.recording.force_plates import ARRAY, PlateRows, from_arrays, joined_signals, samples_of_rows, to_arrays
from bipedsim.recording.plan import without_plan
from bipedsim.recording.schema import COLUMNS, OBJECT_COMPONENTS, RecordedColumns

if TYPE_CHECKING:
    from bipedsim.contact import ContactResult
    from bipedsim.model import Robot
    from bipedsim.sim import Asked, ForcePlates, GroundTruth, Objects, Observation


FORMAT = "bipedsim recording 1"
_SOLE, _READOUT, _OBJECT, _VERTEX_FORCES = "sole_vertices_", "readout_", "object_", "vertex_forces_"
"""Prefixes of the array names in a file."""
_SOURCES = ("observation", "contact", "truth", "command")
_OTHER_ARRAYS = 3
"""Number of new arrays after which a column is assumed to have a new array in every row."""


@dataclass(eq=False, kw_only=True)
class Recording(RecordedColumns):
    """One run with one row per tick: n ticks, nu joints, K feet. The schema defines its columns.

    Attributes:
        robot: Name of the robot; empty when unknown.
        joint_names: Names of the nu joints.
        feet: Names of the K feet.
        imu_names, switch_names: Names of the additional IMUs and of the contact switches.
        sole_vertices: (N, 2) polygon of each foot in its sole frame [m]; (0, 2) when unknown.
        effort_limit: (nu,) [N.m], NaN when unknown.
        weight: m g [N], NaN when unknown.
        readouts: Name to the debug signal (n,) that the controller computed from the measurements of each row. From a
            bag also the numbers of the user's own topics; their names begin with "/".
        objects: Name of a free object to its pose in the world and its velocities in its own axes (n, 13), see
            ``OBJECT_COMPONENTS``.
        vertex_forces: Name of a foot to the ground forces at its vertices (n, N, 3) in the sole frame [N]. Empty unless
            the run was configured to record them.
        force_plates: Name of a force plate to its samples, at the plate's own rate.
        gave_up_at: Time at which the controller was stopped after a fall or a failure [s]; NaN if it was not stopped.
        gave_up_why: Reason for the stop. Empty if the controller was not stopped or the reason is unknown, as in a bag
            without /diagnostics.
        gave_up_kind: Kind of this reason, a value of :class:`bipedsim.control.StopKind`; None if it is unknown.
        pushes: Begin and end of every planned push [s]; empty if unknown, as in a bag.
        changes: New values of parameters of controller and drives during the run, with the time of each.
        notes: Remarks for the reader, for example that a bag is truncated and how much was recovered.
        about: Known labels of the run: ``scenario``, ``controller``, ``contact_model``, ``ground``. For a bag also
            ``robot``, the name or file that its recorder received.
        statistics: Counters of the simulator over all physics steps, with the keys of summary.json. None if a bag
            should contain them and does not.
        run: Everything needed to simulate the run again (:func:`bipedsim.runs.describe_run`); empty if unknown.
    """

    robot: str
    joint_names: tuple[str, ...]
    feet: tuple[str, ...]
    sole_vertices: tuple[Array, ...]
    effort_limit: Array
    weight: float
    imu_names: tuple[str, ...] = ()
    switch_names: tuple[str, ...] = ()
    readouts: dict[str, Array] = field(default_factory=dict)
    objects: dict[str, Array] = field(default_factory=dict)
    vertex_forces: dict[str, Array] = field(default_factory=dict)
    force_plates: dict[str, PlateSignals] = field(default_factory=dict)
    gave_up_at: float = float("nan")
    gave_up_why: str = ""
    gave_up_kind: str | None = None
    pushes: tuple[tuple[float, float], ...] = ()
    changes: tuple[ParameterChange, ...] = ()
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    statistics: Mapping[str, Any] | None = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.t)

    def _repr_html_(self) -> str:
        """Return the HTML table that notebooks display."""
        labels = (self.about.get(key, "") for key in ("scenario", "controller", "contact_model"))
        rows = {
            "what": ", ".join(filter(None, labels)),
            "rows": f"{len(self)}, {self.t[0]:g} to {self.t[-1]:g} s" if len(self) else "none",
            "joints": f"{len(self.joint_names)}: {', '.join(self.joint_names)}",
            "feet": ", ".join(self.feet),
            "columns": ", ".join(name for name in COLUMNS if not _is_empty(getattr(self, name))),
            "readouts": ", ".join(without_plan(self.readouts)),
            "objects": ", ".join(self.objects),
            "force plates": ", ".join(self.force_plates),
            "fell": f"{self.gave_up_at:.3f} s: {self.gave_up_why}" if np.isfinite(self.gave_up_at) else "",
            "notes": "; ".join(self.notes),
        }
        return facts(f"run of {self.robot or 'an unnamed robot'}", rows)

    @property
    def owners(self) -> Mapping[str, tuple[str, ...]]:
        """Value of :attr:`Column.per` to the names of these joints, feet or sensors."""
        return _owners(self.joint_names, self.feet, self.imu_names, self.switch_names)

    @property
    def duration(self) -> float:
        """Time from the first to the last row [s]."""
        return float(self.t[-1] - self.t[0]) if len(self.t) else 0.0

    @property
    def robot_source(self) -> str:
        """Name or robot.yaml of the robot, as :func:`bipedsim.load_robot` accepts it; empty when unknown."""
        return str(self.run.get("robot") or self.about.get("robot") or self.robot)

    @classmethod
    def empty(
        cls,
        n: int,
        joint_names: Sequence[str],
        feet: Sequence[str],
        robot: str = "",
        columns: Collection[str] = tuple(COLUMNS),
        imu_names: Sequence[str] = (),
        switch_names: Sequence[str] = (),
    ) -> Recording:
        """Return a recording of ``n`` empty rows.

        Only ``columns`` can be written; the other columns take no memory.
        """
        owners = _owners(joint_names, feet, imu_names, switch_names)
        arrays: dict[str, Any] = {
            name: column.empty(n, owners) if name in columns else _repeated(column.empty(1, owners)[0], n)
            for name, column in COLUMNS.items()
        }
        return cls(
            robot=robot,
            joint_names=tuple(joint_names),
            feet=tuple(feet),
            sole_vertices=tuple(np.zeros((0, 2)) for _ in feet),
            effort_limit=np.full(len(joint_names), np.nan),
            weight=float("nan"),
            imu_names=tuple(imu_names),
            switch_names=tuple(switch_names),
            **arrays,
        )

    def describe_robot(self, robot: Robot, source: str = "") -> None:
        """Copy name, soles, effort limits and weight from a robot, for feet and joints with the same names.

        Args:
            robot: The robot.
            source: Name or path from which it was loaded, for :attr:`robot_source`; empty to keep the recorded one.
        """
        self.robot = robot.name
        if source:
            self.about = {**self.about, "robot": os.path.abspath(source) if os.path.exists(source) else source}
        self.weight = robot.weight
        soles = {sole.name: np.asarray(sole.vertices) for sole in robot.soles}
        self.sole_vertices = tuple(soles.get(foot, np.zeros((0, 2))) for foot in self.feet)
        limits = dict(zip(robot.joint_names, robot.effort_limit, strict=True))
        self.effort_limit = np.array([limits.get(name, np.nan) for name in self.joint_names])

    def rows(self, selection: slice | NDArray[Any]) -> Recording:
        """Return a recording of the selected rows; with a slice, its arrays are views.

        It also contains the force-plate samples from the first to the last selected row.
        """
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["t"] = self.t[selection]
        n = len(values["t"])
        for name in COLUMNS:
            column = values[name]
            if name != "t":
                values[name] = _repeated(column[0], n) if _is_repeated(column) else column[selection]
        values["readouts"] = {name: column[selection] for name, column in self.readouts.items()}
        values["objects"] = {name: states[selection] for name, states in self.objects.items()}
        values["vertex_forces"] = {foot: forces[selection] for foot, forces in self.vertex_forces.items()}
        values["force_plates"] = samples_of_rows(self.force_plates, self.t, selection)
        return Recording(**values)

    def in_order(self, joint_names: Sequence[str]) -> Recording:
        """Return the recording with only these joints, in this order.

        Raises:
            RecordingError: A joint is missing from the recording.
        """
        if tuple(joint_names) == self.joint_names:
            return self
        absent = [name for name in joint_names if name not in self.joint_names]
        if absent:
            has = f"it has {', '.join(self.joint_names)}"
            if len(absent) == len(joint_names):
                raise RecordingError(f"has no joint of this robot ({some(absent)}); {has}. Pass another --robot")
            raise RecordingError(f"the recording lacks them; {has}", f"joints {', '.join(absent)}")
        order = [self.joint_names.index(name) for name in joint_names]
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["effort_limit"] = self.effort_limit[order]
        for column in COLUMNS.values():
            if column.per == "joint":
                values[column.name] = values[column.name][:, order]
        return Recording(**{**values, "joint_names": tuple(joint_names)})

    def save(self, path: Path | str) -> None:
        """Write the recording to ``path`` (.npz), without pickles.

        Raises:
            RecordingError: The file cannot be written.
        """
        path = Path(path)
        plates, samples = to_arrays(self.force_plates)
        arrays = {name: getattr(self, name) for name in ("effort_limit", *COLUMNS)}
        arrays |= {f"{_SOLE}{i}": vertices for i, vertices in enumerate(self.sole_vertices)}
        arrays |= {f"{_READOUT}{name}": values for name, values in self.readouts.items()}
        arrays |= {f"{_OBJECT}{name}": states for name, states in self.objects.items()}
        arrays |= {f"{_VERTEX_FORCES}{foot}": forces for foot, forces in self.vertex_forces.items()}
        arrays |= samples
        with writing(path):
            # A temporary file keeps an earlier run of this name intact if the disk is full.
            temporary = path.with_name(f".{path.name}.{os.getpid()}")
            try:
                with temporary.open("wb") as file:
                    text = json.dumps(_header_of(self, plates))
                    np.savez_compressed(file, header=np.array(text), header_crc=checksum(text), **arrays)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)

    class Builder:
        """Collect a headless run row by row into arrays that double when they are full.

        Args:
            robot: Robot that is simulated.
            capacity: Number of rows to allocate first.
        """

        def __init__(self, robot: Robot, capacity: int = 10_000) -> None:
            feet = [sole.name for sole in robot.soles]
            self._unallocated = {column.name for column in COLUMNS.values() if column.rare}
            columns = COLUMNS.keys() - self._unallocated
            imus, switches = ([each.name for each in group] for group in (robot.imus, robot.contact_switches))
            self._recording = Recording.empty(
                max(1, capacity), robot.joint_names, feet, columns=columns, imu_names=imus, switch_names=switches
            )
            self._recording.describe_robot(robot)
            columns_by_source = [
                [
                    column
                    for column in COLUMNS.values()
                    if column.source.startswith(f"{source}.") and (robot.free_flyer or not column.free_base)
                ]
                for source in _SOURCES
            ]
            self._names = [column.name for source_columns in columns_by_source for column in source_columns]
            self._readers = [
                _reader(column.source.partition(".")[2] for column in source_columns)
                for source_columns in columns_by_source
            ]
            # Most sources are the same arrays in every row. One call copies all of them; a call for each takes three
            # times as long.
            self._sources: list[Any] = [None] * len(self._names)
            self._changes = [0] * len(self._names)
            self._row_targets: list[Array | None] = [None] * len(self._names)
            self._pointers = np.zeros((len(self._names), 3), dtype=np.int64)
            self._targets = self._bind_targets()
            self._copy_rows = ready(copy_rows, self._pointers, 0)
            self._n = 0
            self._plates: PlateRows | None = None

        def append(
            self,
            t: float,
            observation: Observation,
            contact: ContactResult,
            truth: GroundTruth,
            command: Asked,
            objects: Objects | None = None,
            force_plates: ForcePlates | None = None,
            vertex_forces: Sequence[Array] = (),
        ) -> None:
            """Copy one tick.

            Args:
                t: Time of the measurements [s].
                observation: Measurements of the sensors.
                contact: Forces and states of the foot contacts.
                truth: True state of the robot.
                command: Torques and setpoints requested from the drives.
                objects: States of the free objects.
                force_plates: The force plates of the simulation; the same object in every call.
                vertex_forces: Forces at the vertices of each foot (N, 3) in the sole frame [N].

            Raises:
                ValueError: A quantity has a different size than its column; no row is added.
            """
            i, r = self._n, self._recording
            if i == len(r.t):
                r = self._grow()
            r.t[i] = t
            of_observation, of_contact, of_truth, of_command = self._readers
            values = (*of_observation(observation), *of_contact(contact), *of_truth(truth), *of_command(command))
            sources, row_targets = self._sources, self._row_targets
            for at, value in enumerate(values):
                if value is not sources[at]:
                    if (target := row_targets[at]) is None or value is None:
                        self._copy_changed(at, value, i)
                    else:
                        target[i] = self._checked(at, value, target)
            self._copy_rows(self._pointers, i)
            if objects is not None:
                for name, state in zip(objects.names, objects.states(), strict=True):
                    if name not in r.objects:
                        r.objects[name] = _no_states(len(r.t))
                    r.objects[name][i] = state
            for foot, forces in zip(r.feet, vertex_forces, strict=False):
                if foot not in r.vertex_forces:
                    r.vertex_forces[foot] = np.full((len(r.t), *forces.shape), np.nan)
                r.vertex_forces[foot][i] = forces
            if force_plates is not None:
                if self._plates is None:
                    self._plates = PlateRows(force_plates)
                self._plates.append()
            self._n = i + 1

        def note(self, readouts: Mapping[str, float], **columns: Array | None) -> None:
            """Add the controller's debug signals to the last row; do nothing before the first row.

            Args:
                readouts: Name to number.
                columns: Name of a column to its values in this row; None leaves the column empty.

            Raises:
                ValueError: A readout is not a number, or a column has a different size; nothing is added.
                AttributeError: A column does not exist; nothing is added.
            """
            if self._n == 0:
                return
            i, r = self._n - 1, self._recording
            numbers = np.array([*readouts.values()], dtype=np.float64)
            if numbers.ndim != 1:
                raise ValueError(f"readouts {', '.join(readouts)} must be one number each")
            new_values = [(getattr(r, name), values) for name, values in columns.items() if values is not None]
            for target, values in new_values:
                if np.shape(values) != target.shape[1:]:
                    raise ValueError(f"a column takes {target.shape[1:]} numbers per row, not {np.shape(values)}")
            for name, value in zip(readouts, numbers, strict=True):
                column = r.readouts.get(name)
                if column is None:
                    column = r.readouts[name] = np.full(len(r.t), np.nan)
                column[i] = value
            for target, values in new_values:
                target[i] = values

        def _copy_changed(self, at: int, value: Any, row: int) -> None:
            """Copy a value from a new array object, and register this object for later rows."""
            self._sources[at], self._pointers[at, 0] = None, 0
            if value is None:
                return
            target = self._targets[at]
            target = self._allocate(at) if target is None else target
            target[row] = self._checked(at, value, target)
            self._changes[at] += 1
            matches = isinstance(value, np.ndarray) and (value.dtype, value.shape) == (target.dtype, target.shape[1:])
            contiguous = matches and value.flags.c_contiguous and target.flags.c_contiguous
            if contiguous and self._changes[at] <= _OTHER_ARRAYS:
                self._sources[at], self._pointers[at, 0] = value, value.ctypes.data
            else:
                self._row_targets[at] = target

        def _checked(self, at: int, value: Any, target: Array) -> Any:
            """Return ``value``; raise ValueError unless it has the size of a row (numpy would broadcast a scalar)."""
            if np.shape(value) != target.shape[1:]:
                name = self._names[at]
                raise ValueError(f"{name}: a row has {target.shape[1:]} numbers, and not {np.shape(value)}")
            return value

        def _bind_targets(self) -> list[Array | None]:
            """Return the array that each column is written to; None for columns without memory."""
            targets = [None if name in self._unallocated else getattr(self._recording, name) for name in self._names]
            for at, target in enumerate(targets):
                if target is not None:
                    self._pointers[at, 1:] = target.ctypes.data, target.strides[0]
                    self._row_targets[at] = None if self._row_targets[at] is None else target
            return targets

        def _allocate(self, at: int) -> Array:
            """Allocate the array of a rare column when its first value arrives."""
            name, r = self._names[at], self._recording
            self._unallocated.remove(name)
            setattr(r, name, np.array(getattr(r, name)))
            self._targets = self._bind_targets()
            return getattr(r, name)

        def _grow(self) -> Recording:
            old = self._recording
            columns = COLUMNS.keys() - self._unallocated
            sensors = {name: getattr(old, name) for name in ("imu_names", "switch_names")}
            new = Recording.empty(2 * len(old), old.joint_names, old.feet, old.robot, columns, **sensors)
            for name in columns:
                getattr(new, name)[: len(old)] = getattr(old, name)
            for name, values in old.readouts.items():
                new.readouts[name] = np.concatenate([values, np.full(len(old), np.nan)])
            for name, states in old.objects.items():
                new.objects[name] = np.concatenate([states, _no_states(len(old))])
            for foot, forces in old.vertex_forces.items():
                new.vertex_forces[foot] = np.concatenate([forces, np.full_like(forces, np.nan)])
            for name in ("sole_vertices", "effort_limit", "weight"):
                setattr(new, name, getattr(old, name))
            self._recording = new
            self._targets = self._bind_targets()
            return new

        def __len__(self) -> int:
            return self._n

        def build(self) -> Recording:
            """Return all rows appended so far; the arrays are views of the builder's."""
            built = self._recording.rows(slice(0, self._n))
            if self._plates is not None:
                built.force_plates = self._plates.signals()
            return built


def _header_of(recording: Recording, plates: Any) -> dict[str, Any]:
    """Return the header of a file: everything except arrays; ``plates`` describes the force plates."""
    return {
        "format": FORMAT,
        "robot": recording.robot,
        "joint_names": recording.joint_names,
        "feet": recording.feet,
        **({"imu_names": recording.imu_names} if recording.imu_names else {}),
        **({"switch_names": recording.switch_names} if recording.switch_names else {}),
        "weight": recording.weight if np.isfinite(recording.weight) else None,
        "readouts": list(recording.readouts),
        **({"objects": list(recording.objects)} if recording.objects else {}),
        **({"vertex_forces": list(recording.vertex_forces)} if recording.vertex_forces else {}),
        **({"force_plates": plates} if plates else {}),
        "gave_up_at": recording.gave_up_at if np.isfinite(recording.gave_up_at) else None,
        "gave_up_why": recording.gave_up_why,
        "gave_up_kind": recording.gave_up_kind,
        "pushes": recording.pushes,
        **({"changes": [asdict(change) for change in recording.changes]} if recording.changes else {}),
        "notes": recording.notes,
        "about": dict(recording.about),
        "run": dict(recording.run),
        "statistics": dict(recording.statistics or {}),
        "columns": list(COLUMNS),
        "sole_vertices": [len(vertices) for vertices in recording.sole_vertices],
    }


def _is_empty(column: NDArray[Any]) -> bool:
    """Return whether the column contains no recorded value."""
    return bool(np.isnan(column).all() if column.dtype.kind == "f" else _is_repeated(column))


def joined(parts: Sequence[Recording]) -> Recording:
    """Concatenate recordings of one run; properties of the run are taken from the last one."""
    values: dict[str, Any] = {f.name: getattr(parts[-1], f.name) for f in fields(Recording)}
    if len(parts) > 1:
        for name in COLUMNS:
            columns = [getattr(part, name) for part in parts]
            repeated = all(map(_is_repeated, columns))
            values[name] = _repeated(columns[0][0], sum(map(len, parts))) if repeated else np.concatenate(columns)
        values["readouts"] = {
            name: np.concatenate([part.readouts.get(name, np.full(len(part), np.nan)) for part in parts])
            for name in sorted({name for part in parts for name in part.readouts})
        }
        values["objects"] = {
            name: np.concatenate([part.objects.get(name, _no_states(len(part))) for part in parts])
            for name in sorted({name for part in parts for name in part.objects})
        }
        feet = [foot for foot in parts[-1].vertex_forces if all(foot in part.vertex_forces for part in parts)]
        values["vertex_forces"] = {foot: np.concatenate([part.vertex_forces[foot] for part in parts]) for foot in feet}
        values["changes"] = tuple(dict.fromkeys(change for part in parts for change in part.changes))
        values["force_plates"] = joined_signals([part.force_plates for part in parts])
        stopped = next((part for part in parts if np.isfinite(part.gave_up_at)), parts[-1])
        values |= {name: getattr(stopped, name) for name in ("gave_up_at", "gave_up_why", "gave_up_kind")}
    return Recording(**values)


def _owners(
    joint_names: Sequence[str], feet: Sequence[str], imus: Sequence[str], switches: Sequence[str]
) -> Mapping[str, tuple[str, ...]]:
    """Return value of :attr:`Column.per` to the names of these joints, feet or sensors."""
    return {"joint": tuple(joint_names), "foot": tuple(feet), "imu": tuple(imus), "switch": tuple(switches)}


def _reader(attributes: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads ``attributes`` from an object, as a tuple even for a single attribute."""
    names = tuple(attributes)
    return attrgetter(*names) if len(names) > 1 else lambda values: tuple(getattr(values, name) for name in names)


def _no_states(n: int) -> Array:
    """Return the states (n, 13) of an object that is absent."""
    return np.full((n, len(OBJECT_COMPONENTS)), np.nan)


def between(t: Array, start: float | None, stop: float | None) -> Flags:
    """Return which times (n,) [s] are from ``start`` to ``stop``, to the nanosecond; None means no limit."""
    first, last = -np.inf if start is None else start, np.inf if stop is None else stop
    return np.asarray((t > first - 1e-9) & (t < last + 1e-9))


def nothing_between(start: float | None, stop: float | None, name: str, begin: float, end: float) -> RecordingError:
    """Return the error for a run from ``begin`` to ``end`` that has no rows from ``start`` to ``stop`` [s]."""
    limits = [f"{word} {t:g} s" for word, t in (("from", start), ("to", stop)) if t is not None]
    return RecordingError(f"no rows: the run lasts from {begin:g} to {end:g} s", f"{name}: {' '.join(limits)}")


def _repeated(row: NDArray[Any], n: int) -> NDArray[Any]:
    """Repeat one row ``n`` times as a read-only view that takes no memory."""
    return np.broadcast_to(row, (n, *np.shape(row)))


def _is_repeated(column: NDArray[Any]) -> bool:
    return len(column) > 0 and column.strides[0] == 0


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def checksum(text: str) -> NDArray[np.uint32]:
    """Return the checksum of the header text, which detects edits; the zip file's own checksum does not."""
    return np.array(zlib.crc32(text.encode()), dtype=np.uint32)


def load_npz(path: Path) -> Recording:
    """Read a run. Damaged columns stay empty; ``notes`` and a warning list them.

    Raises:
        RecordingError: The file is not a run, or cannot be opened.
        DamagedError: The file is so damaged that nothing can be read.

    Warns:
        IncompleteWarning: Columns are damaged.
    """
    lost: dict[str, str] = {}
    try:
        # np.load does not close a file of unknown format, so the file is opened here.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            if "header" not in data and not set(COLUMNS) & set(data.files):
                raise RecordingError(f"not a run of bipedsim: {', '.join(data.files) or 'nothing'} in it", path)
            text = str(data["header"])
            header = json.loads(text)
            # Older runs have no checksum.
            if "header_crc" in data.files and not np.array_equal(data["header_crc"], checksum(text)):
                lost["header"] = "a valid header, because it was changed"
            if header.get("format") != FORMAT:
                raise RecordingError(f"its format is {header.get('format')!r}, expected {FORMAT!r}", path)
            sensors = {name: header.get(name, ()) for name in ("imu_names", "switch_names")}
            run = Recording.empty(len(data["t"]), header["joint_names"], header["feet"], header["robot"], **sensors)
            _fill(run, header, _read_arrays(data, header, run, lost))
    except RecordingError:
        raise
    except OSError as error:
        raise RecordingError(f"cannot be read ({error.strerror or error})", path) from error
    except Exception as error:
        raise DamagedError(
            f"not a run of bipedsim, or damaged and unreadable ({type(error).__name__}: {error}); if you have an "
            "intact copy, read that",
            path,
        ) from error
    if lost:
        note = (
            f"{path.name} is damaged: {len(run)} rows were read, without {', '.join(lost.values())}; these stay empty: "
            "if there is a whole copy of the run, read that"
        )
        run.notes = (*run.notes, note)
        warn_incomplete(f"{path}: {note}")
    return run


def _array_names(header: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return prefix to the names of the arrays with this prefix that the header announces."""
    return {
        _SOLE: [f"{_SOLE}{i}" for i in range(len(header["feet"]))],
        _READOUT: [f"{_READOUT}{name}" for name in header.get("readouts", ())],
        _OBJECT: [f"{_OBJECT}{name}" for name in header.get("objects", ())],
        _VERTEX_FORCES: [f"{_VERTEX_FORCES}{foot}" for foot in header.get("vertex_forces", ())],
        ARRAY: [f"{ARRAY}{plate['geometry']['name']}" for plate in header.get("force_plates", ())],
    }


def _read_arrays(data: Any, header: Mapping[str, Any], run: Recording, lost: dict[str, str]) -> dict[str, Array]:
    """Copy columns into the run and return all undamaged arrays by name; ``lost`` gets the damaged ones."""
    names = _array_names(header)
    prefix_of = {name: prefix for prefix, group in names.items() for name in group}
    vertex_counts = dict(zip(names[_SOLE], header.get("sole_vertices", ()), strict=False))
    # Older runs do not list their columns. Columns that they lack stay empty.
    columns = header.get("columns", [name for name in COLUMNS if name in data])
    unlisted = set(data.files) - {"header", "header_crc"}
    arrays: dict[str, Array] = {}
    for name in ("effort_limit", *columns, *prefix_of, *unlisted):
        if name in arrays or name in lost:
            continue
        try:
            array = data[name]
            if hasattr(run, name):
                target = getattr(run, name)
                # NumPy would broadcast a single row to all rows.
                _require_shape(array, target.shape)
                target[...] = array
            elif name in prefix_of:
                _check_array(array, prefix_of[name], len(run), vertex_counts.get(name))
            else:
                raise ValueError("nothing has this name")
            arrays[name] = array
        except Exception as error:
            # Damaged bytes raise exceptions of any type, depending on the decoder.
            lost[name] = f"{name} ({type(error).__name__}: {error})"
    return arrays


def _check_array(array: Array, prefix: str, n: int, vertex_count: int | None) -> None:
    """Raise ValueError unless an array with this prefix fits a run of ``n`` rows."""
    if prefix == _SOLE and vertex_count is not None and len(array) != vertex_count:
        raise ValueError(f"{len(array)} and not {vertex_count} vertices")
    if prefix == _READOUT:
        _require_shape(array, (n,))
    if prefix == _OBJECT:
        _require_shape(array, (n, len(OBJECT_COMPONENTS)))
    if prefix == _VERTEX_FORCES and (array.ndim != 3 or len(array) != n or array.shape[2] != 3):
        raise ValueError(f"shape {array.shape}")
    if prefix == ARRAY and array.ndim != 2:
        raise ValueError(f"shape {array.shape}")


def _require_shape(array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(f"shape {array.shape} and not {shape}")


def _fill(run: Recording, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Set the attributes of a run that are not columns, from the header and the arrays of its file."""
    names = _array_names(header)

    def undamaged(prefix: str) -> dict[str, Array]:
        return {name.removeprefix(prefix): arrays[name] for name in names[prefix] if name in arrays}

    run.sole_vertices = tuple(arrays.get(name, np.zeros((0, 2))) for name in names[_SOLE])
    run.weight = _or_nan(header["weight"])
    run.readouts, run.objects, run.vertex_forces = map(undamaged, (_READOUT, _OBJECT, _VERTEX_FORCES))
    run.force_plates = from_arrays(header.get("force_plates", ()), arrays)
    run.gave_up_at = _or_nan(header.get("gave_up_at"))
    run.gave_up_why = str(header.get("gave_up_why", ""))
    # Older runs do not contain the kind.
    run.gave_up_kind = header.get("gave_up_kind")
    run.notes = tuple(header["notes"])
    # Older runs have no pushes in the header.
    run.pushes = tuple((float(start), float(end)) for start, end in header.get("pushes", ()))
    run.changes = tuple(ParameterChange(**change) for change in header.get("changes", ()))
    run.run = header.get("run", {})
    run.statistics = header.get("statistics", {})
    run.about = {str(key): str(value) for key, value in header.get("about", {}).items()}
