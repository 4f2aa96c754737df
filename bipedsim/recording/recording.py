"""A run as a table of arrays: bags and headless runs turn into it, plots, exports and summaries read it."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import facts
from bipedsim.errors import DamagedError, RecordingError, warn_incomplete
from bipedsim.numerics import Array, Flags, copy_rows, ready
from bipedsim.plates import PlateSignals
from bipedsim.recording.force_plates import ARRAY, PlateRows, from_arrays, joined_signals, samples_of_rows, to_arrays
from bipedsim.recording.plan import without_plan
from bipedsim.recording.schema import COLUMNS, OBJECT_COMPONENTS, RecordedColumns

if TYPE_CHECKING:
    from bipedsim.contact import ContactResult
    from bipedsim.model import Robot
    from bipedsim.sim import Asked, ForcePlates, GroundTruth, Objects, Observation


FORMAT = "bipedsim recording 1"
_SOURCES = ("observation", "contact", "truth", "command")
_OTHER_ARRAYS = 3
"""So many arrays of one column in turn, and it is taken to have a new one in every row."""


@dataclass(eq=False, kw_only=True)
class Recording(RecordedColumns):
    """One run, a row per tick: n ticks, nu joints, K feet. Its columns are those of the schema.

    Attributes:
        robot: Name of the robot; empty when unknown.
        joint_names: Names of the nu joints.
        feet: Names of the K feet.
        sole_vertices: (N, 2) polygon of each foot in its sole frame [m]; (0, 2) when unknown.
        effort_limit: (nu,) [N.m], NaN when unknown.
        weight: m g [N], NaN when unknown.
        readouts: Name to what the controller showed in answer to the measurements of each row (n,).
        objects: Name of a free object to its pose in the world and its velocities in its own axes (n, 13), see
            ``OBJECT_COMPONENTS``.
        vertex_forces: Name of a foot to the forces of the ground at its vertices (n, N, 3) in the sole frame [N]; empty
            unless the run was asked for them.
        force_plates: Name of a force plate to its samples, at its own rate.
        gave_up_at: When the controller was stopped, because it had fallen or failed [s]; NaN if it never was.
        gave_up_why: Why; empty if it never was, or where that is not known, as in a bag without /diagnostics.
        pushes: Begin and end of every push that was planned [s]; empty where that is not known, as in a bag.
        notes: What a reader should know, such as that a bag was cut short and how much was recovered.
        about: What was run, as far as it is known: ``scenario``, ``controller``, ``contact_model``, ``ground``; of a
            bag ``robot``, the name or file that its recorder was given.
        statistics: What the simulator counted on every physics step, keys as in summary.json; None where that of a bag
            left nothing though it should have.
        run: All that it takes to simulate it again (:func:`bipedsim.runs.describe_run`); empty where that is unknown.
    """

    robot: str
    joint_names: tuple[str, ...]
    feet: tuple[str, ...]
    sole_vertices: tuple[Array, ...]
    effort_limit: Array
    weight: float
    readouts: dict[str, Array] = field(default_factory=dict)
    objects: dict[str, Array] = field(default_factory=dict)
    vertex_forces: dict[str, Array] = field(default_factory=dict)
    force_plates: dict[str, PlateSignals] = field(default_factory=dict)
    gave_up_at: float = float("nan")
    gave_up_why: str = ""
    pushes: tuple[tuple[float, float], ...] = ()
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    statistics: Mapping[str, Any] | None = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.t)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        said = (self.about.get(key, "") for key in ("scenario", "controller", "contact_model"))
        rows = {
            "what": ", ".join(filter(None, said)),
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
    def duration(self) -> float:
        """Time from the first to the last row [s]."""
        return float(self.t[-1] - self.t[0]) if len(self.t) else 0.0

    @property
    def robot_source(self) -> str:
        """Name or robot.yaml of what ran, as :func:`bipedsim.load_robot` takes it; empty when unknown."""
        return str(self.run.get("robot") or self.about.get("robot") or self.robot)

    @classmethod
    def empty(
        cls,
        n: int,
        joint_names: Sequence[str],
        feet: Sequence[str],
        robot: str = "",
        columns: Collection[str] = tuple(COLUMNS),
    ) -> Recording:
        """Return a recording of ``n`` rows in which nothing has been recorded yet.

        Only ``columns`` can be written; the others take no memory.
        """
        shape = len(joint_names), len(feet)
        arrays: dict[str, Any] = {
            name: column.empty(n, *shape) if name in columns else _repeated(column.empty(1, *shape)[0], n)
            for name, column in COLUMNS.items()
        }
        return cls(
            robot=robot,
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
        """Return the recording with only the selected rows; with a slice, arrays are views.

        Samples of force plates go with them, from the first row to the last one.
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
        """Return the recording with the columns of these joints, in this order.

        Raises:
            RecordingError: It lacks one of them.
        """
        if tuple(joint_names) == self.joint_names:
            return self
        if not set(joint_names) <= set(self.joint_names):
            raise RecordingError(
                f"the run of {self.robot or 'an unnamed robot'} has the joints {', '.join(self.joint_names)}, and not "
                f"all of {', '.join(joint_names)}"
            )
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
        header = {
            "format": FORMAT,
            "robot": self.robot,
            "joint_names": self.joint_names,
            "feet": self.feet,
            "weight": self.weight if np.isfinite(self.weight) else None,
            "readouts": list(self.readouts),
            **({"objects": list(self.objects)} if self.objects else {}),
            **({"vertex_forces": list(self.vertex_forces)} if self.vertex_forces else {}),
            **({"force_plates": plates} if plates else {}),
            "gave_up_at": self.gave_up_at if np.isfinite(self.gave_up_at) else None,
            "gave_up_why": self.gave_up_why,
            "pushes": self.pushes,
            "notes": self.notes,
            "about": dict(self.about),
            "run": dict(self.run),
            "statistics": dict(self.statistics or {}),
            "columns": list(COLUMNS),
            "sole_vertices": [len(vertices) for vertices in self.sole_vertices],
        }
        arrays = {name: getattr(self, name) for name in ("effort_limit", *COLUMNS)}
        arrays |= {f"sole_vertices_{i}": vertices for i, vertices in enumerate(self.sole_vertices)}
        arrays |= {f"readout_{name}": values for name, values in self.readouts.items()}
        arrays |= {f"object_{name}": states for name, states in self.objects.items()}
        arrays |= {f"vertex_forces_{foot}": forces for foot, forces in self.vertex_forces.items()}
        arrays |= samples
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # A full disk must not cost the earlier run of this name.
            temporary = path.with_name(f".{path.name}.{os.getpid()}")
            try:
                with temporary.open("wb") as file:
                    text = json.dumps(header)
                    np.savez_compressed(file, header=np.array(text), header_crc=checksum(text), **arrays)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
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
            self._late = {column.name for column in COLUMNS.values() if column.rare}
            columns = COLUMNS.keys() - self._late
            self._recording = Recording.empty(max(1, capacity), robot.joint_names, feet, columns=columns)
            self._recording.describe_robot(robot)
            wanted = [
                [
                    column
                    for column in COLUMNS.values()
                    if column.source.startswith(f"{source}.") and (robot.free_flyer or not column.free_base)
                ]
                for source in _SOURCES
            ]
            self._names = [column.name for columns_of_one in wanted for column in columns_of_one]
            self._readers = [_reader(column.source.partition(".")[2] for column in one) for one in wanted]
            # Most sources are the same arrays in every row, copied by one call: a call for each costs three times that.
            self._sources: list[Any] = [None] * len(self._names)
            self._changes = [0] * len(self._names)
            self._others: list[Array | None] = [None] * len(self._names)
            self._where = np.zeros((len(self._names), 3), dtype=np.int64)
            self._targets = self._aimed()
            self._copy_rows = ready(copy_rows, self._where, 0)
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
                observation: What the sensors measured.
                contact: What the ground did.
                truth: Where the robot was.
                command: What the drives were asked for.
                objects: Where the free objects were.
                force_plates: What they measured; always the same.
                vertex_forces: Of each foot those at its vertices (N, 3) in the sole frame [N].

            Raises:
                ValueError: A quantity has another size than its column; nothing is added.
            """
            i, r = self._n, self._recording
            if i == len(r.t):
                r = self._grow()
            r.t[i] = t
            of_observation, of_contact, of_truth, of_command = self._readers
            values = (*of_observation(observation), *of_contact(contact), *of_truth(truth), *of_command(command))
            sources, others = self._sources, self._others
            for at, value in enumerate(values):
                if value is not sources[at]:
                    if (target := others[at]) is None or value is None:
                        self._copy_other(at, value, i)
                    else:
                        target[i] = self._checked(at, value, target)
            self._copy_rows(self._where, i)
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
            """Add to the last row what the controller showed in answer to it; before the first row do nothing.

            Args:
                readouts: The numbers.
                columns: What else it has, by name of the column; None leaves it empty.

            Raises:
                ValueError: A readout is no number, or a column has another size; nothing is added.
                AttributeError: There is no such column; nothing is added.
            """
            if self._n == 0:
                return
            i, r = self._n - 1, self._recording
            numbers = np.array([*readouts.values()], dtype=np.float64)
            if numbers.ndim != 1:
                raise ValueError(f"readouts {', '.join(readouts)} must be one number each")
            given = [(getattr(r, name), values) for name, values in columns.items() if values is not None]
            for target, values in given:
                if np.shape(values) != target.shape[1:]:
                    raise ValueError(f"a column takes {target.shape[1:]} numbers in a row, and not {np.shape(values)}")
            for name, value in zip(readouts, numbers, strict=True):
                column = r.readouts.get(name)
                if column is None:
                    column = r.readouts[name] = np.full(len(r.t), np.nan)
                column[i] = value
            for target, values in given:
                target[i] = values

        def _copy_other(self, at: int, value: Any, row: int) -> None:
            """Copy what a column has in the place of the array of the row before; take it for what later rows have."""
            self._sources[at], self._where[at, 0] = None, 0
            if value is None:
                return
            target = self._targets[at]
            target = self._begin(at) if target is None else target
            target[row] = self._checked(at, value, target)
            self._changes[at] += 1
            same = isinstance(value, np.ndarray) and (value.dtype, value.shape) == (target.dtype, target.shape[1:])
            whole = same and value.flags.c_contiguous and target.flags.c_contiguous
            if whole and self._changes[at] <= _OTHER_ARRAYS:
                self._sources[at], self._where[at, 0] = value, value.ctypes.data
            else:
                self._others[at] = target

        def _checked(self, at: int, value: Any, target: Array) -> Any:
            """Return ``value``; raise ValueError unless it has the size of a row: numpy would repeat one number."""
            if np.shape(value) != target.shape[1:]:
                name = self._names[at]
                raise ValueError(f"{name}: a row has {target.shape[1:]} numbers, and not {np.shape(value)}")
            return value

        def _aimed(self) -> list[Array | None]:
            """Return the arrays that a row goes to; None for those that nothing was written to yet."""
            targets = [None if name in self._late else getattr(self._recording, name) for name in self._names]
            for at, target in enumerate(targets):
                if target is not None:
                    self._where[at, 1:] = target.ctypes.data, target.strides[0]
                    self._others[at] = None if self._others[at] is None else target
            return targets

        def _begin(self, at: int) -> Array:
            """Make the array of a column that hardly any run has, at its first value."""
            name, r = self._names[at], self._recording
            self._late.remove(name)
            setattr(r, name, np.array(getattr(r, name)))
            self._targets = self._aimed()
            return getattr(r, name)

        def _grow(self) -> Recording:
            old = self._recording
            columns = COLUMNS.keys() - self._late
            new = Recording.empty(2 * len(old), old.joint_names, old.feet, old.robot, columns)
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
            self._targets = self._aimed()
            return new

        def __len__(self) -> int:
            return self._n

        def build(self) -> Recording:
            """Return what was appended so far; its arrays are views of the builder's."""
            built = self._recording.rows(slice(0, self._n))
            if self._plates is not None:
                built.force_plates = self._plates.signals()
            return built


def _is_empty(column: NDArray[Any]) -> bool:
    """Whether nothing was recorded."""
    return bool(np.isnan(column).all() if column.dtype.kind == "f" else _is_repeated(column))


def joined(parts: Sequence[Recording]) -> Recording:
    """Return the rows of recordings of one run, one behind the other; what they say of the run is that of the last."""
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
        values["force_plates"] = joined_signals([part.force_plates for part in parts])
        found = [(part.gave_up_at, part.gave_up_why) for part in parts if np.isfinite(part.gave_up_at)]
        values["gave_up_at"], values["gave_up_why"] = found[0] if found else (float("nan"), "")
    return Recording(**values)


def _reader(attributes: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what reads ``attributes`` off an object, a tuple also where there is but one."""
    names = tuple(attributes)
    return attrgetter(*names) if len(names) > 1 else lambda values: tuple(getattr(values, name) for name in names)


def _no_states(n: int) -> Array:
    """Return the states (n, 13) of an object that was not there."""
    return np.full((n, len(OBJECT_COMPONENTS)), np.nan)


def between(t: Array, start: float | None, stop: float | None) -> Flags:
    """Return which times (n,) [s] are from ``start`` to ``stop``, to the nanosecond of stamps; None is no limit."""
    first, last = -np.inf if start is None else start, np.inf if stop is None else stop
    return np.asarray((t > first - 1e-9) & (t < last + 1e-9))


def nothing_between(start: float | None, stop: float | None, name: str, begin: float, end: float) -> RecordingError:
    """Return what to say where a run from ``begin`` to ``end`` has no rows from ``start`` to ``stop`` [s]."""
    asked = [f"{word} {t:g} s" for word, t in (("from", start), ("to", stop)) if t is not None]
    return RecordingError(f"{name}: no rows {' '.join(asked)}: the run lasts from {begin:g} to {end:g} s")


def _repeated(row: NDArray[Any], n: int) -> NDArray[Any]:
    """Return ``n`` times the same row, which takes no memory and cannot be written."""
    return np.broadcast_to(row, (n, *np.shape(row)))


def _is_repeated(column: NDArray[Any]) -> bool:
    return len(column) > 0 and column.strides[0] == 0


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def checksum(text: str) -> NDArray[np.uint32]:
    """Return the checksum of a text: that of the zip file is its own after somebody has written the text anew."""
    return np.array(zlib.crc32(text.encode()), dtype=np.uint32)


def load_npz(path: Path) -> Recording:
    """Read a run; columns that are damaged stay empty, which ``notes`` and a warning say.

    Raises:
        RecordingError: It is no run, or cannot be opened.
        DamagedError: It is damaged, and nothing can be read of it.

    Warns:
        IncompleteWarning: Columns are damaged.
    """
    lost: dict[str, str] = {}
    try:
        # Opened here, because np.load leaves a file that it does not understand open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            if "header" not in data and not set(COLUMNS) & set(data.files):
                raise RecordingError(f"{path}: no run of bipedsim: it holds {', '.join(data.files) or 'nothing'}")
            text = str(data["header"])
            header = json.loads(text)
            # Older runs lack it.
            if "header_crc" in data.files and not np.array_equal(data["header_crc"], checksum(text)):
                lost["header"] = "trust in its header, which was changed"
            if header.get("format") != FORMAT:
                raise RecordingError(f"{path}: its format is {header.get('format')!r}, expected {FORMAT!r}")
            run = Recording.empty(len(data["t"]), header["joint_names"], header["feet"], header["robot"])
            soles = [f"sole_vertices_{i}" for i in range(len(run.feet))]
            readouts = [f"readout_{name}" for name in header.get("readouts", ())]
            objects = [f"object_{name}" for name in header.get("objects", ())]
            vertices = [f"vertex_forces_{foot}" for foot in header.get("vertex_forces", ())]
            plates = [f"{ARRAY}{one['geometry']['name']}" for one in header.get("force_plates", ())]
            # An older run lacks the columns that came later: they stay empty.
            columns = header.get("columns", [name for name in COLUMNS if name in data])
            sizes = dict(zip(soles, header.get("sole_vertices", ()), strict=False))
            arrays: dict[str, Array] = {}
            others = set(data.files) - {"header", "header_crc"}
            for name in ("effort_limit", *columns, *soles, *readouts, *objects, *vertices, *plates, *others):
                if name in arrays or name in lost:
                    continue
                try:
                    array = data[name]
                    target = getattr(run, name) if hasattr(run, name) else run.t if name in readouts else array
                    if name in sizes and len(array) != sizes[name]:
                        raise ValueError(f"{len(array)} and not {sizes[name]} vertices")
                    if name in objects:
                        target = _no_states(len(run.t))
                    if name in vertices and (array.ndim != 3 or len(array) != len(run.t) or array.shape[2] != 3):
                        raise ValueError(f"shape {array.shape}")
                    if name in plates and array.ndim != 2:
                        raise ValueError(f"shape {array.shape}")
                    # NumPy would repeat one row for all.
                    if array.shape != target.shape:
                        raise ValueError(f"shape {array.shape} and not {target.shape}")
                    if hasattr(run, name):
                        target[...] = array
                    elif name not in (*soles, *readouts, *objects, *vertices, *plates):
                        raise ValueError("nothing has this name")
                    arrays[name] = array
                except Exception as error:
                    # Damaged bytes raise whatever the decoder at work raises.
                    lost[name] = f"{name} ({type(error).__name__}: {error})"
            run.sole_vertices = tuple(arrays.get(name, np.zeros((0, 2))) for name in soles)
            run.weight = _or_nan(header["weight"])
            run.readouts = {name.removeprefix("readout_"): arrays[name] for name in readouts if name in arrays}
            run.objects = {name.removeprefix("object_"): arrays[name] for name in objects if name in arrays}
            found = {name.removeprefix("vertex_forces_"): arrays[name] for name in vertices if name in arrays}
            run.vertex_forces = found
            run.force_plates = from_arrays(header.get("force_plates", ()), arrays)
            run.gave_up_at = _or_nan(header.get("gave_up_at"))
            run.gave_up_why = str(header.get("gave_up_why", ""))
            run.notes = tuple(header["notes"])
            # Older runs do not say.
            run.pushes = tuple((float(start), float(end)) for start, end in header.get("pushes", ()))
            run.run = header.get("run", {})
            run.statistics = header.get("statistics", {})
            run.about = {str(key): str(value) for key, value in header.get("about", {}).items()}
    except RecordingError:
        raise
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read ({error.strerror or error})") from error
    except Exception as error:
        raise DamagedError(
            f"{path}: not a run of bipedsim, or damaged beyond reading ({type(error).__name__}: {error}); "
            "if there is a whole copy of it, read that"
        ) from error
    if lost:
        note = (
            f"{path.name} is damaged: {len(run)} rows were read, without {', '.join(lost.values())}; these stay empty: "
            "if there is a whole copy of the run, read that"
        )
        run.notes = (*run.notes, note)
        warn_incomplete(f"{path}: {note}")
    return run
