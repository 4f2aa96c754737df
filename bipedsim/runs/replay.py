"""Simulate a recorded run again from its commands, pushes and seed, and compare the result with the recording.

Without changes, the same machine gives the same bits, and the first difference is reported. With another contact
model, hardware or ground, the result shows their effect. The measured torques of a real robot can also serve as
commands.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from bipedsim.analysis import robot_of, unused_joints
from bipedsim.config import OWN, own_content, without_prefix
from bipedsim.errors import DivergenceError, RecordingError, some
from bipedsim.ground import Ground, get_ground
from bipedsim.model import IDEAL, Chains, Robot, joint_values
from bipedsim.numerics import Array, Flags, Indices
from bipedsim.objects import parse_objects
from bipedsim.plates import parse_plates
from bipedsim.recording import ABSENT_MODE, COLUMNS, OBJECT_COMPONENTS, Recording
from bipedsim.runs.faults import FIELDS, Fault
from bipedsim.runs.saved_step import settings_of
from bipedsim.sim import Simulator, placed, read_gantry

FORMAT = "bipedsim run 1"
_PACKAGES = ("bipedsim", "numpy", "numba", "pin")
# These columns follow from others, or come from the controller, or are inputs.
_NOT_COMPARED = ("t", "sole_poses", "odometry", "joint_command")
_OF_PUSH = ("t", "wrench", "body", "duration", "after")
"""Keys that every recorded push has."""
_TORN = 5
_OBJECT = "object_"
"""Prefix of the columns of objects, as in tables."""
_PLATE = "force_plate_"
"""Prefix of the columns of force plates."""
_PARTS = {"position": slice(0, 3), "orientation": slice(3, 7), "velocity": slice(7, 10), "spin": slice(10, 13)}
"""Parts of the state of an object."""
_MEASURED = tuple(name for names in FIELDS.values() for name in names)


def describe_run(sim: Simulator, faults: Sequence[Fault] = ()) -> dict[str, Any]:
    """Return everything that is needed to simulate a run again that begins now, in a form that JSON stores exactly.

    Args:
        sim: Simulator in the initial state of the run, at t = 0.
        faults: Injected faults.
    """
    q, v = sim.start
    return {
        "format": FORMAT,
        "versions": {name: version(name) for name in _PACKAGES} | {"machine": platform.machine()},
        **settings_of(sim),
        "control_dt": sim.control_dt,
        "events": sim.config.events,
        "seed": sim.seed,
        "draw": sim.draw,
        # These are the values as given, since normalised rotations and closed loops may differ by a bit.
        "q": q.tolist(),
        "v": v.tolist(),
        "ground": {name: array.tolist() for name, array in sim.ground.saved().items()},
        "faults": [str(fault) for fault in faults],
        **({} if sim.objects is None else {"objects": [one.text() for one in sim.objects.configs]}),
        **({} if sim.gantry is None else {"gantry": sim.gantry.config.text()}),
        **({} if sim.force_plates is None else {"force_plates": [one.text() for one in sim.force_plates.configs]}),
        **({} if sim.sensors.height_points is None else {"height_scan": sim.sensors.height_points.tolist()}),
    }


def describe_push(
    t: float,
    wrench: Array,
    body: str,
    duration: float,
    after: float,
    point: Array | None = None,
    ramp: float = 0.0,
) -> dict[str, Any]:
    """Return the entry of ``pushes`` for a push requested at ``t`` [s]; see :meth:`bipedsim.sim.Simulator.push`."""
    push = {"t": t, "wrench": wrench.tolist(), "body": body, "duration": min(duration, 1e300), "after": after}
    return {**push, **({} if point is None else {"point": point.tolist()}), **({"ramp": ramp} if ramp else {})}


def describe_move(t: float, states: Mapping[str, Array]) -> dict[str, Any]:
    """Return the entry of ``moves`` for objects moved at ``t`` [s]; see :meth:`bipedsim.sim.Objects.move`."""
    return {"t": t, "states": {name: np.asarray(state).tolist() for name, state in states.items()}}


def describe_action(t: float, action: str) -> dict[str, Any]:
    """Return the entry of ``gantry_actions`` for an action of the gantry requested at ``t`` [s]."""
    return {"t": t, "action": action}


@dataclass(frozen=True)
class Changes:
    """Describe the changes to a recorded run.

    None keeps the recorded value. For a recording of a real robot, None selects the default.
    """

    contact_model: str | None = None
    contact_params: Mapping[str, Any] | None = None
    hardware: str | Mapping[str, Any] | None = None
    ground: str | Mapping[str, Any] | None = None


AS_RECORDED = Changes()


@dataclass(frozen=True, eq=False)
class RecordingDifference:
    """Store the first difference between a run and its repetition.

    Attributes:
        t: Time [s].
        column: Name of the column.
        which: Name of joint or foot, and of the component; empty if the column has only one value.
        recorded, simulated: The two values.
    """

    t: float
    column: str
    which: str
    recorded: float
    simulated: float

    def __str__(self) -> str:
        which = f" ({self.which})" if self.which else ""
        return f"t = {self.t:.6f} s, {self.column}{which}: recorded {self.recorded!r}, simulated {self.simulated!r}"


@dataclass(frozen=True, eq=False)
class Rerun:
    """Store the result of a repeated run.

    Attributes:
        recorded, simulated: Both runs, with corresponding rows.
        compared: Columns that were compared bit by bit, including ``object_NAME`` of each object and
            ``force_plate_NAME`` of each force plate.
        ticks: Number of ticks from the beginning of the recording to its end; larger than the number of simulated ticks
            if some are missing.
        first: The first difference; None if all bits are the same.
        errors: (n columns) largest and root mean square difference of each column. Joint columns have one entry per
            joint, and objects one for position [m], orientation, velocity [m/s] and spin [rad/s].
        notes: Notes for the reader about missing data, assumptions and omissions.
    """

    recorded: Recording
    simulated: Recording
    compared: tuple[str, ...]
    ticks: int
    first: RecordingDifference | None
    errors: dict[str, dict[str, float]]
    notes: tuple[str, ...]


def rerun(recording: Recording, changes: Changes = AS_RECORDED) -> Rerun:
    """Simulate a recorded run again from its commands.

    Args:
        recording: Recording of a simulated run, or of a real robot. For a robot, the measured torques are the commands,
            from its first valid row on. The base starts as recorded, or else standing on flat ground.
        changes: Changes to the recorded run.

    Raises:
        RecordingError: The recording contains no commands, or not its robot.
        BipedSimError: The robot, or something in the changes, does not exist.
    """
    notes: list[str] = []
    try:
        sim, rows, total, commands, pushes = _begin(recording, changes, notes)
        actions = [(entry["t"], entry["action"]) for entry in recording.run.get("gantry_actions", ())]
        moves = [(entry["t"], entry["states"]) for entry in recording.run.get("moves", ())]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"damaged, or from another version of bipedsim ({type(error).__name__}: {error})"
        raise RecordingError(message, "description of the run") from error
    # The drives of a real robot differ from the simulator's, so its measured torques are used and no setpoints.
    setpoints = np.full((len(recording), 1), np.nan)
    if recording.run:
        setpoints = recording.in_order(sim.robot.joint_names).setpoint
    builder = Recording.Builder(sim.robot, max(1, len(rows)))
    waiting = list(pushes)
    for row in rows:
        while actions and actions[0][0] <= sim.t + 0.5 * sim.physics_dt:
            sim.hang(actions.pop(0)[1])
        while waiting and waiting[0]["t"] <= sim.t + 0.5 * sim.physics_dt:
            push = waiting.pop(0)
            sim.push(
                np.array(push["wrench"]),
                push["body"],
                push["duration"],
                push["after"],
                push.get("point"),
                push.get("ramp", 0.0),
            )
        while moves and moves[0][0] <= sim.t + 0.5 * sim.physics_dt:
            assert sim.objects is not None
            sim.objects.move(sim, {name: np.array(state) for name, state in moves.pop(0)[1].items()})
        try:
            closed = not np.isnan(setpoints[row]).any()
            observation = sim.step(setpoints[row].T if closed else commands[row])
        except DivergenceError as error:
            notes.append(f"the simulation ends at t = {error.t:.6f} s: {error}")
            break
        extras = sim.objects, sim.force_plates
        builder.append(sim.t, observation, sim.contact, sim.ground_truth(), sim.command, *extras)
    simulated = builder.build()
    joints = [name for name in recording.joint_names if name in simulated.joint_names]
    recorded = recording.rows(rows[: len(simulated)]).in_order(joints)
    compared = _comparable(recorded, simulated, notes)
    plates = tuple(name for name in recorded.force_plates if name in simulated.force_plates)
    firsts = [_first_difference(recorded, simulated, compared)]
    firsts += [_plate_differs(recorded, simulated, name) for name in plates]
    return Rerun(
        recorded,
        simulated,
        (*compared, *(f"{_PLATE}{name}" for name in plates)),
        total,
        min((entry for entry in firsts if entry is not None), key=lambda entry: entry.t, default=None),
        {name: statistics for name in compared for name, statistics in _errors(recorded, simulated, name)},
        tuple(notes),
    )


def _comparable(recorded: Recording, simulated: Recording, notes: list[str]) -> tuple[str, ...]:
    """Return the names of the recorded columns that the simulation has too, and add notes on the others."""
    injected = recorded.run.get("faults", ())
    if injected:
        notes.append(f"sensors are not compared, because of injected faults: {'; '.join(injected)}")
    others = {per: [one for one in recorded.owners[per] if one not in simulated.owners[per]] for per in recorded.owners}
    for per, names in others.items():
        if names:
            notes.append(f"columns per {per} are not compared, because the robot does not have {some(names)}")
    columns = [
        name
        for name, column in COLUMNS.items()
        if not (name in _NOT_COMPARED or (injected and name in _MEASURED) or others.get(column.per))
    ]
    columns += [f"{_OBJECT}{name}" for name in recorded.objects]
    return tuple(name for name in columns if _was_recorded(recorded, name))


def _begin(
    recording: Recording, changes: Changes, notes: list[str]
) -> tuple[Simulator, Indices, int, Array, Sequence[Mapping[str, Any]]]:
    """Return the simulator at the beginning of the run and the inputs of the run.

    Returns:
        Simulator, rows to repeat, number of ticks of the run, commands (n, nu) for all rows, and pushes.
    """
    run = recording.run
    robot = robot_of(recording)
    order = [recording.joint_names.index(name) for name in robot.joint_names if name in recording.joint_names]
    if len(order) < robot.nu:
        absent = sorted({*robot.joint_names} - {*recording.joint_names})
        raise RecordingError(f"the recording lacks them, which {robot.name} has", f"joints {', '.join(absent)}")
    notes += unused_joints(recording, robot)
    commands = recording.joint_command[:, order]
    if not run:
        return _begin_robot(recording, robot, order, changes, notes)
    model = changes.contact_model or run["contact_model"]
    if changes.contact_params is not None:
        params = without_prefix(changes.contact_params, model)
    else:
        params = run["contact_params"] if model == run["contact_model"] else {}
    sim = Simulator(
        robot,
        _ground(changes, run),
        contact=model,
        physics_dt=run["physics_dt"],
        control_dt=run["control_dt"],
        contact_params=params,
        hardware=changes.hardware or run["hardware"],
        seed=run["seed"],
        events=run.get("events", True),
        objects=parse_objects(run.get("objects", ())),
        gantry=read_gantry(run.get("gantry", "")),
        force_plates=parse_plates(() if changes.ground else run.get("force_plates", ())),
        height_scan=run.get("height_scan"),
    )
    if changes.ground and run.get("force_plates"):
        notes.append("the force plates of the run are left out, because they belong to its ground")
    q, v = np.array(run["q"]), np.array(run["v"])
    if len(q) != len(sim.q):
        raise RecordingError("the robot has other joints than in the recording", robot.name)
    sim.reset(q, v, seed=run["seed"])
    for _ in range(run["draw"]):
        sim.reset(q, v)
    # A run begins with the measurement at t = 0. It is in no row, or repeated in several rows, so these are skipped.
    stepped = np.flatnonzero(recording.t > 0.5 * sim.control_dt)
    ticks = np.rint(recording.t[stepped] / sim.control_dt).astype(np.int64)
    whole = (ticks == np.arange(1, len(ticks) + 1)) & np.isfinite(commands[stepped]).all(axis=1)
    n, total = int(np.argmin(np.append(whole, False))), int(ticks[-1]) if len(ticks) else 0
    if n < total:
        missing = f"the command of t = {(n + 1) * sim.control_dt:.6f} s was not recorded"
        notes.append(f"{missing}: {n} of {total} ticks are repeated")
    if n == 0:
        raise RecordingError("the recording has none from its start; an older bipedsim may have made it", "commands")
    current = {name: version(name) for name in _PACKAGES} | {"machine": platform.machine()}
    mismatches = [
        f"{name} {was} (here {current.get(name)})" for name, was in run["versions"].items() if current.get(name) != was
    ]
    if mismatches:
        notes.append(f"the run was recorded with {', '.join(mismatches)}: bits may differ")
    elif run.get("code", own_content()[OWN]) != own_content()[OWN]:
        notes.append("the code of bipedsim has changed since the recording, so results may differ in the last bits")
    pushes = [{**push, **{name: push[name] for name in _OF_PUSH}} for push in run["pushes"]]
    return sim, stepped[:n], total, commands, pushes


def _ground(changes: Changes, run: Mapping[str, Any]) -> Ground:
    """Return the ground of the changes, or else that of the run, both without force plates."""
    ground = get_ground(changes.ground) if changes.ground else Ground.of_saved(run["ground"])
    return replace(ground, source="", force_plates=())


def _begin_robot(
    recording: Recording, robot: Robot, order: Sequence[int], changes: Changes, notes: list[str]
) -> tuple[Simulator, Indices, int, Array, Sequence[Mapping[str, Any]]]:
    """Return the values of :func:`_begin` for the recording of a real robot."""
    efforts = recording.joint_effort[:, order]
    measured = np.hstack([efforts, recording.joint_position[:, order]])
    sound: Flags = np.asarray(np.isfinite(measured).all(axis=1))
    if not sound.any():
        raise RecordingError("the recording has neither them nor measured torques of all joints", "commands")
    first = int(np.argmax(sound))
    dt = float(np.median(np.diff(recording.t))) if len(recording) > 1 else 1e-3
    dt = round(dt, 6)
    model = changes.contact_model or "one_step"
    sim = Simulator(
        robot,
        get_ground(changes.ground) if changes.ground else None,
        contact=model,
        physics_dt=dt / max(1, round(dt / 1e-3)),
        control_dt=dt,
        contact_params=without_prefix(changes.contact_params or {}, model),
        hardware=changes.hardware or IDEAL,
    )
    q, v = sim.q.copy(), np.zeros(robot.model.nv)
    q[robot.idx_q] = recording.joint_position[first, order] - joint_values(robot, sim.hardware.encoder_offset)
    v[robot.idx_v] = np.nan_to_num(recording.joint_velocity[first, order])
    if robot.loops:
        chains = Chains(robot)
        chains.follow(q[robot.idx_q], v[robot.idx_v])
        chains.fill(q, v)
        q = robot.closed(q)
    if robot.free_flyer:
        posed = bool(np.isfinite(recording.base_pose[first]).all())
        q[:7] = recording.base_pose[first] if posed else q[:7]
        q = q if posed else placed(sim, q)
        notes.append(f"the base begins {'as recorded' if posed else 'standing on the ground'}, at rest")
    sim.reset(q, v)
    rest = np.arange(first + 1, len(recording))
    n = int(np.argmin(np.append(sound[rest], False)))
    notes.append(f"measured torques are the commands, from t = {recording.t[first]:.3f} s on, every {dt:g} s")
    if n < len(rest):
        notes.append(f"a measurement is missing at t = {recording.t[rest[n]]:.3f} s: {n} of {len(rest)} ticks")
    return sim, rest[:n], len(rest), efforts, ()


def _values(recording: Recording, name: str) -> Any:
    """Return a column, or the states of an object."""
    if name in COLUMNS:
        return getattr(recording, name)
    return recording.objects.get(name.removeprefix(_OBJECT), np.full((len(recording), len(OBJECT_COMPONENTS)), np.nan))


def _was_recorded(recording: Recording, name: str) -> bool:
    values = _values(recording, name)
    kind = COLUMNS[name].dtype if name in COLUMNS else np.float64
    if not len(values) or kind is np.bool_:
        return bool(len(values))
    return not (np.isnan(values) if kind is np.float64 else values == ABSENT_MODE).all()


def _first_difference(recorded: Recording, simulated: Recording, names: Sequence[str]) -> RecordingDifference | None:
    """Return the first bit difference between two recordings with the same rows; values missing in both are equal.

    At a lost message, messages of the ticks before may be lost as well. Missing values in the last rows are therefore
    not compared.
    """
    first: tuple[int, str, tuple[int, ...]] | None = None
    for name in names:
        a, b = _values(recorded, name), _matched(recorded, simulated, name)
        differ: Any = np.asarray((a != b) & ~((a != a) & (b != b)))
        known = name in COLUMNS
        empty = COLUMNS[name].empty(len(a), recorded.owners) if known else np.nan * a
        differ[-_TORN:] &= ~((a == empty) | ((a != a) & (empty != empty)))[-_TORN:]
        rows = np.flatnonzero(differ.reshape(len(a), -1).any(axis=1))
        if len(rows) and (first is None or rows[0] < first[0]):
            inner = np.argwhere(np.atleast_1d(differ[rows[0]]))[0]
            first = int(rows[0]), name, tuple(inner.tolist())
    if first is None:
        return None
    row, name, inner = first
    if name in COLUMNS:
        column = COLUMNS[name]
        owners = recorded.owners.get(column.per, ())
        parts = [owners[inner[0]]] if owners else []
        if column.width > 1:
            parts.append(column.components[inner[-1]])
    else:
        parts = [OBJECT_COMPONENTS[inner[0]]]
    pair = _values(recorded, name), _matched(recorded, simulated, name)
    was, now = (np.atleast_1d(values[row])[inner].item() for values in pair)
    return RecordingDifference(float(recorded.t[row]), name, " ".join(parts), was, now)


def _plate_differs(recorded: Recording, simulated: Recording, name: str) -> RecordingDifference | None:
    """Return the first bit difference between two recordings of a force plate, over the samples that both have."""
    was, now = recorded.force_plates[name], simulated.force_plates[name]
    # The time stamps of a bag are rounded to whole nanoseconds.
    first = max(was.t[:1].tolist() + now.t[:1].tolist(), default=0.0) - 1e-9
    i, j = (int(np.searchsorted(plate.t, first)) for plate in (was, now))
    n = min(len(was) - i, len(now) - j)
    differ = np.argwhere(was.channels[i : i + n] != now.channels[j : j + n])
    if not len(differ):
        return None
    row, channel = differ[0].tolist()
    pair = was.channels[i + row, channel].item(), now.channels[j + row, channel].item()
    return RecordingDifference(float(was.t[i + row]), f"{_PLATE}{name}", was.geometry.channel_names[channel], *pair)


def _matched(recorded: Recording, simulated: Recording, name: str) -> Any:
    """Return a column of the simulated run with joints, feet and sensors in the order of the recorded one."""
    values = _values(simulated, name)
    per = COLUMNS[name].per if name in COLUMNS else ""
    if not per:
        return values
    return values[:, [simulated.owners[per].index(entry) for entry in recorded.owners[per]]]


def _errors(recorded: Recording, simulated: Recording, name: str) -> list[tuple[str, dict[str, float]]]:
    """Return the largest and the root mean square difference of a column, for each joint or part if it has these."""
    column = COLUMNS.get(name)
    if column is not None and column.dtype is not np.float64:
        return []
    was, now = _values(recorded, name), _matched(recorded, simulated, name)
    # Equal values are not subtracted, because a missing torque limit is infinite in both runs.
    difference = np.abs(np.subtract(was, now, out=np.zeros_like(was), where=was != now))
    parts = {name: difference}
    if column is None:
        parts = {f"{name} {part}": difference[:, which] for part, which in _PARTS.items()}
    elif column.per == "joint":
        parts = {f"{name} {joint}": difference[:, j] for j, joint in enumerate(recorded.joint_names)}
    errors = []
    for label, values in parts.items():
        known = values[np.isfinite(values)]
        if len(known):
            errors.append((label, {"max": float(known.max()), "rms": float(np.sqrt(np.mean(known**2)))}))
    return errors
