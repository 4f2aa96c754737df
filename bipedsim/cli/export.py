"""``bipedsim export``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from bipedsim.cli.options import add_recorded, add_span, output_beside
from bipedsim.config import Table
from bipedsim.errors import ConfigError
from bipedsim.plates import THRESHOLD

if TYPE_CHECKING:
    from bipedsim.model import Robot
    from bipedsim.recording import Recording
    from bipedsim.recording.lab import LabTrial

TABLES = ("csv", "parquet", "mat")
TRIALS = ("c3d", "mot", "sto", "trc")
SUFFIXES = {"columns": ".csv", **{name: f".{name}" for name in (*TABLES, *TRIALS)}}
FRAMES = ("world", "plate", "sole")
FORMATS = Table("format of a run", "bipedsim.formats", {})
"""Name, which is the suffix of its files, to ``write(recording, robot, path)`` of another package; it returns notes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("recording", type=Path, help="folder of a run or bag, .mcap or .npz")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="what to write (default: beside RUN)")
    parser.add_argument(
        "--format",
        choices=(*SUFFIXES, *FORMATS),
        help="columns: CSV of all that was recorded, as it was; csv, parquet, mat: wrench, CoP and free moment of each "
        "foot and plate, CoM, base, joints; c3d: plates, markers, events; mot, sto: ground forces and coordinates for "
        "OpenSim; trc: markers (docs/lab_formats.md); mcap: a bag with /tf, for Foxglove and PlotJuggler "
        "(docs/tools.md; default: by the suffix of -o, else columns)",
    )
    parser.add_argument("--frame", choices=FRAMES, help="of the wrenches of csv, parquet and mat (default: world)")
    parser.add_argument(
        "--filter", type=float, metavar="HZ", help="low-pass of forces and moments, without delay (default: none)"
    )
    parser.add_argument(
        "--filter-order", type=int, default=4, metavar="N", help="of one of its two passes (default: %(default)s)"
    )
    add_recorded(parser, ground=False)
    add_span(parser)


def main(args: argparse.Namespace) -> int:
    """Write what was asked for, and say which files."""
    suffixes = SUFFIXES | {name: f".{name}" for name in FORMATS}
    if args.format is None:
        # The table of columns was there first: a .csv is one.
        named = {suffix: name for name, suffix in suffixes.items() if suffix != SUFFIXES["columns"]}
        suffix = args.output.suffix.lower() if args.output else ""
        # Of a recording more is said below.
        if suffix not in ("", ".npz", SUFFIXES["columns"], *named):
            known = ", ".join(sorted({*suffixes.values()}))
            raise ConfigError(f"-o {args.output}: {suffix} is none of {known}; name one of them, or give a --format")
        args.format = named.get(suffix, "columns")
    output = output_beside(args.recording, args.output, suffixes[args.format])
    if args.frame is not None and args.format not in TABLES:
        as_it_was = args.format in ("columns", *FORMATS)
        own = "holds what was recorded, as it was" if as_it_was else "has axes of its own"
        raise ConfigError(f"--frame {args.frame}: --format {args.format} {own}; frames are for {', '.join(TABLES)}")
    if args.filter is not None and args.format in ("columns", "trc", *FORMATS):
        raise ConfigError(f"--filter: --format {args.format} is not filtered; filters are for forces")
    if args.format in FORMATS:
        written = _other(args, output)
    else:
        written = _columns(args, output) if args.format == "columns" else _lab(args, output)
    for path in written:
        print(f"wrote {path}")
    return 0


def _columns(args: argparse.Namespace, output: Path) -> list[Path]:
    """Read twice, as what there is must be known before the first row is written, and hold a part of it at a time."""
    from bipedsim.analysis import gather
    from bipedsim.recording import CsvColumns, CsvTable

    span = {"start": args.start, "stop": args.stop}
    columns = gather(args.recording, CsvColumns, **span)
    gather(args.recording, lambda: CsvTable(output, columns), **span)
    return [output]


def _other(args: argparse.Namespace, output: Path) -> list[Path]:
    """Write a format of another package."""
    from bipedsim.analysis import load_run

    recording = load_run(args.recording, -1, args.start, args.stop)
    for note in FORMATS[args.format](recording, _robot(args, recording), output):
        print(f"note: {note}")
    return [output]


def _lab(args: argparse.Namespace, output: Path) -> list[Path]:
    """Write a format of laboratories."""
    from bipedsim.analysis import filter_text, lab_table, load_run, run_trial
    from bipedsim.recording.lab import write_c3d, write_csv, write_mat, write_parquet, write_trc

    recording = load_run(args.recording, -1, args.start, args.stop)
    robot = _robot(args, recording)
    if args.format in TABLES:
        write = {"csv": write_csv, "parquet": write_parquet, "mat": write_mat}[args.format]
        write(lab_table(recording, robot, args.frame or "world", args.filter, args.filter_order), output)
        return [output]
    trial = run_trial(recording, robot, args.filter, args.filter_order)
    notes = [note for note in trial.notes if note not in recording.notes]
    written = [output]
    about = {"robot": recording.robot, "filter": filter_text(args.filter, args.filter_order)}
    if args.format == "c3d":
        notes += write_c3d(trial, output, about)
    elif args.format == "trc":
        write_trc(trial.markers, output)
        notes = []
    else:
        written += _opensim(output, trial, recording, robot, about)
    for note in notes:
        print(f"note: {note}")
    return written


def _opensim(
    output: Path, trial: LabTrial, recording: Recording, robot: Robot | None, about: dict[str, str]
) -> list[Path]:
    """Write ground forces, and beside them coordinates and external loads where they are known."""
    from bipedsim.analysis import coordinates
    from bipedsim.recording.lab import loads_xml, one_clock, write_forces, write_storage, write_text

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
    # Whose foot was on a real plate nobody knows; ideal ones are a foot's.
    loads = output.with_name(f"{output.stem}_loads.xml")
    bodies = {sole.name: robot.model.names[sole.joint_id] for sole in robot.soles}
    write_text(loads, loads_xml(output, bodies))
    return [motion, loads]


def _robot(args: argparse.Namespace, recording: Recording) -> Robot | None:
    """Return what ran; None, which a line says, where it is not known here."""
    from bipedsim.analysis import robot_of
    from bipedsim.model import load_robot

    if args.robot:
        return load_robot(args.robot)
    try:
        return robot_of(recording) if recording.robot_source else None
    except ConfigError as error:
        print(f"note: joint centres and CoM are left out: {error}")
        return None
