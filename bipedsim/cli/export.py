"""Export recordings to other formats: ``bipedsim export``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bipedsim.cli.options import add_recorded, add_span, output_beside, topic_pairs
from bipedsim.config import Table
from bipedsim.errors import ConfigError
from bipedsim.plates import THRESHOLD

if TYPE_CHECKING:
    from bipedsim.model import Robot
    from bipedsim.recording import Recording
    from bipedsim.recording.lab import LabTrial

TABLES = ("csv", "parquet", "mat")
TRIALS = ("c3d", "mot", "sto", "trc")
RECORDING = "npz"
"""Format that all commands read, with the robot and the notes."""
SUFFIXES = {"columns": ".csv", RECORDING: ".npz", **{name: f".{name}" for name in (*TABLES, *TRIALS)}}
FRAMES = ("world", "plate", "sole")
FORMATS = Table("format of a run", "bipedsim.formats", {})
"""Name, also the suffix of the files, to the function ``write(recording, robot, path)`` of another package. It returns
notes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("recording", type=Path, help="folder of a run or bag, .mcap, .npz or .csv")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="file to write, replaced if it exists and is no .npz. A new name without a suffix gets that of the format "
        "(default: a new file next to the recording)",
    )
    parser.add_argument(
        "--format",
        choices=(*SUFFIXES, *FORMATS),
        help="columns: CSV of all recorded signals; npz: the recording. Tables of wrenches, CoP, CoM and joints: "
        "csv, parquet, mat. "
        "Laboratory formats: c3d, mot, sto, trc (docs/lab_formats.md). Bag with /tf, for Foxglove and PlotJuggler: "
        "mcap (docs/tools.md). Default: the suffix of -o, else columns",
    )
    parser.add_argument(
        "--frame", choices=FRAMES, help="frame of the wrenches in csv, parquet and mat (default: world)"
    )
    parser.add_argument(
        "--filter",
        type=float,
        metavar="HZ",
        help="cut-off of a zero-phase low-pass filter of order 4 for forces and moments (default: none)",
    )
    parser.add_argument(
        "--remap",
        nargs="+",
        action="extend",
        default=[],
        metavar="TOPIC:=OTHER",
        help="behind the recording: rename topics of a bag, such as '/robot1/*:=/*' (docs/other_bag.md)",
    )
    add_recorded(parser, ground=False)
    add_span(parser)


def main(args: argparse.Namespace) -> int:
    """Write the requested format and print the file names."""
    suffixes = SUFFIXES | {name: f".{name}" for name in FORMATS}
    if args.format is None:
        # The suffix .csv stands for the older format `columns`.
        name_of = {suffix: name for name, suffix in suffixes.items() if suffix != SUFFIXES["columns"]}
        suffix = args.output.suffix.lower() if args.output else ""
        if suffix not in ("", SUFFIXES["columns"], *name_of):
            known = ", ".join(sorted({*suffixes.values()}))
            raise ConfigError(f"-o {args.output}: {suffix} is not one of {known}. Use one of them, or pass --format")
        args.format = name_of.get(suffix, "columns")
        if suffix == SUFFIXES["columns"]:
            content = "-o FILE.csv has all recorded columns; --format csv writes wrenches, CoP, CoM and joints"
            print(f"note: {content}. Pass --format columns to omit this note")
    output = output_beside(args.recording, _with_suffix(args.output, suffixes[args.format]), suffixes[args.format])
    if args.output is None and output.exists():
        # The user has not named the file, which may be a log of another program.
        raise ConfigError("exists. Pass -o with the name of the file to write, or delete it", f"output {output}")
    if args.format == RECORDING and output.exists():
        raise ConfigError("exists, and may be the only copy of a run. Pass -o with another name", f"output {output}")
    if args.frame is not None and args.format not in TABLES:
        unchanged = args.format in ("columns", RECORDING, *FORMATS)
        content = "contains the recorded values" if unchanged else "defines its own axes"
        reason = f"--format {args.format} {content}"
        raise ConfigError(f"--frame {args.frame}: {reason}. Only {', '.join(TABLES)} have a choice of frames")
    if args.filter is not None and args.format in ("columns", RECORDING, "trc", *FORMATS):
        raise ConfigError(f"--format {args.format} cannot be filtered. Use a format that contains forces", "--filter")
    present = set(output.parent.glob("*"))
    if args.format in FORMATS:
        files = _export_plugin_format(args, output)
    else:
        write = {"columns": _export_columns, RECORDING: _export_recording}.get(args.format, _export_lab_format)
        files = write(args, output)
    for path in files:
        print(f"{'replaced' if path in present else 'wrote'} {path}")
    return 0


def _with_suffix(output: Path | None, suffix: str) -> Path | None:
    """Return the path with a suffix if it has none; folders, and files that exist, such as /dev/stdout, stay."""
    if output is None or output.suffix or not output.name or output.name.endswith(".") or output.exists():
        return output
    return output.with_suffix(suffix)


def _export_columns(args: argparse.Namespace, output: Path) -> list[Path]:
    """Export all columns. The first pass finds non-empty columns; both passes read the recording in parts."""
    from bipedsim.analysis import gather
    from bipedsim.recording import CsvColumns, CsvTable

    selected = _selected(args)
    columns = gather(args.recording, CsvColumns, **selected)
    gather(args.recording, lambda: CsvTable(output, columns), **selected)
    for note in columns.notes:
        print(f"note: {note}")
    return [output]


def _export_recording(args: argparse.Namespace, output: Path) -> list[Path]:
    """Export the whole recording, with the robot of ``--robot``."""
    from bipedsim.analysis import load_run, robot_of, unused_joints

    recording = load_run(args.recording, **_selected(args))
    notes = recording.notes
    if args.robot:
        robot = robot_of(recording)
        # A missing joint is an error here rather than in the next command.
        recording.in_order(robot.joint_names)
        notes += unused_joints(recording, robot)
    recording.save(output)
    for note in notes:
        print(f"note: {note}")
    return [output]


def _selected(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of the readers for times, topics and robot."""
    remap = topic_pairs(args.remap, "'/robot1/*:=/*'")
    return {"start": args.start, "stop": args.stop, "remap": remap, "robot": args.robot or ""}


def _export_plugin_format(args: argparse.Namespace, output: Path) -> list[Path]:
    """Export to a format of another package."""
    from bipedsim.analysis import load_run

    recording = load_run(args.recording, **_selected(args))
    for note in FORMATS[args.format](recording, _robot(args, recording), output):
        print(f"note: {note}")
    return [output]


def _export_lab_format(args: argparse.Namespace, output: Path) -> list[Path]:
    """Export to a laboratory format."""
    from bipedsim.analysis import filter_text, lab_table, load_run, run_trial
    from bipedsim.recording.lab import write_c3d, write_csv, write_mat, write_parquet, write_trc

    recording = load_run(args.recording, **_selected(args))
    robot = _robot(args, recording)
    if args.format in TABLES:
        write = {"csv": write_csv, "parquet": write_parquet, "mat": write_mat}[args.format]
        write(lab_table(recording, robot, args.frame or "world", args.filter), output)
        return [output]
    trial = run_trial(recording, robot, args.filter)
    notes = [note for note in trial.notes if note not in recording.notes]
    files = [output]
    about = {"robot": recording.robot, "filter": filter_text(args.filter)}
    if args.format == "c3d":
        notes += write_c3d(trial, output, about)
    elif args.format == "trc":
        write_trc(trial.markers, output)
        notes = []
    else:
        files += _opensim(output, trial, recording, robot, about)
    for note in notes:
        print(f"note: {note}")
    return files


def _opensim(
    output: Path, trial: LabTrial, recording: Recording, robot: Robot | None, about: dict[str, str]
) -> list[Path]:
    """Write ground forces, coordinates and, if known, external loads."""
    from bipedsim.analysis import coordinates
    from bipedsim.recording import write_text
    from bipedsim.recording.lab import loads_xml, one_clock, write_forces, write_storage

    plates, notes = one_clock(trial.plates)
    lines = [f"{key}: {text}" for key, text in about.items() if text]
    write_forces(plates, output, THRESHOLD, lines)
    names, values = coordinates(recording, robot)
    motion = output.with_name(f"{output.stem}_coordinates{output.suffix}")
    write_storage(motion, names, values, True, lines[:1])
    for note in notes:
        print(f"note: {note}")
    if robot is None or recording.force_plates:
        return [motion]
    # The foot on a real plate is unknown; an ideal plate belongs to a foot.
    loads = output.with_name(f"{output.stem}_loads.xml")
    bodies = {sole.name: robot.model.names[sole.joint_id] for sole in robot.soles}
    write_text(loads, loads_xml(output, bodies))
    return [motion, loads]


def _robot(args: argparse.Namespace, recording: Recording) -> Robot | None:
    """Return the recorded robot; print a note and return None if it is unknown."""
    from bipedsim.analysis import robot_of
    from bipedsim.model import load_robot

    if args.robot:
        return load_robot(args.robot)
    try:
        return robot_of(recording) if recording.robot_source else None
    except ConfigError as error:
        print(f"note: the file lacks joint centres and CoM: {error}")
        return None
