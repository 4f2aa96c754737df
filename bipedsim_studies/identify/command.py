"""Implement the command ``bipedsim identify``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from bipedsim.cli import add_recorded, add_span
from bipedsim_studies.study import add_output, output, shows_progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "recordings", type=Path, nargs="+", metavar="RUN", help="bag folders, .mcap, .npz or .csv of one robot"
    )
    add_recorded(parser, ground=False)
    add_span(parser)
    parser.add_argument(
        "--assume",
        type=comma_separated,
        default=(),
        metavar="WHAT,...",
        help="symmetric: left and right are mirror images; KIND or KIND:NAME: these numbers are as described, "
        "such as strain,torque_gain:.*_ankle_.*",
    )
    parser.add_argument(
        "--check",
        type=Path,
        metavar="RUN",
        help="another recording, of which all rows are predicted with and without the estimate",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="YAML", help="write the hardware, for the option --hardware"
    )
    parser.add_argument(
        "--samples",
        type=int,
        default=0,
        metavar="N",
        help="write N robots that the recordings allow into the folder NAME_samples, for bipedsim score --hardware",
    )
    parser.add_argument(
        "--suggest",
        type=Path,
        metavar="YAML",
        help="simulate further motions with the identified robot, and write the scenario that identifies the most",
    )
    add_output(parser, page=True)


def comma_separated(text: str) -> tuple[str, ...]:
    """Return the parts of a text that are separated by commas."""
    return tuple(part for part in map(str.strip, text.split(",")) if part)


def main(args: argparse.Namespace) -> int:
    """Estimate the parameters of a robot and print them.

    Raises:
        ConfigError, RecordingError: A recording cannot be used; the message says why.
    """
    # BLAS reads this when numpy is loaded. Threads cost more than they gain here, and change the last bits.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from bipedsim.errors import EXIT_INCOMPLETE, EXIT_OK, ConfigError
    from bipedsim.view import PAGES
    from bipedsim_studies.identify.identification import Identification, Inputs
    from bipedsim_studies.identify.overlay import samples, samples_folder
    from bipedsim_studies.identify.suggest import write_suggestion

    if args.samples < 0 or (args.samples and not args.output):
        raise ConfigError("needs a number of at least 0, and --output", "--samples", args.samples)
    folder = samples_folder(args.output) if args.samples else None
    inputs = Inputs.read(args.recordings, args.robot, args.assume, (args.start, args.stop), args.check)
    predict = bool(args.check or (args.plot and args.plot.suffix in PAGES))
    found = Identification.of(inputs, bool(args.suggest), predict, shows_progress(args))
    result = found.result
    of_robot = f"--robot {args.robot or inputs.recordings[0].robot_source}"
    # Before the figure, so that a path that cannot be written does not cost the estimate, which takes minutes.
    lines: list[str] = []
    if args.output:
        drawn = list(samples(inputs.robot, result, found.measured, args.samples))
        lines += _written(args.output, found.hardware, folder, drawn, f"{args.recordings[0]} {of_robot}", of_robot)
    if args.suggest:
        lines.append(write_suggestion(args.suggest, found.suggestions[0], of_robot))
    output(args, found.as_json, found.text, found.draw)
    if not result.identified.any():
        lines.append("nothing is identified: record more motion of the joints (docs/identify.md)")
    if not result.converged:
        lines.append("the estimate has not converged: use more or longer recordings with more motion")
    if found.missing:
        lines.append("parts of the result are missing: see the notes above")
    if lines and not args.json:
        print("\n".join(lines))
    return EXIT_OK if result.converged and not found.missing else EXIT_INCOMPLETE


def _written(
    path: Path, text: str, folder: Path | None, drawn: Sequence[str], recording: str, robot: str
) -> Iterator[str]:
    """Write the hardware and the robots that were drawn; yield lines that say how to use them.

    Args:
        path: File of the hardware.
        text: The hardware.
        folder: Folder of the robots; None for none.
        drawn: The robots.
        recording: Recording and robot, as the arguments of ``bipedsim gap``.
        robot: Option with the robot.

    Raises:
        RecordingError: A file cannot be written.
    """
    from bipedsim.recording import write_text

    write_text(path, text)
    yield f"wrote {path}; see the effect with: bipedsim gap {recording} --hardware {path} --against ideal"
    if folder is not None:
        for k, sample in enumerate(drawn, 1):
            write_text(folder / f"{k:02}.yaml", sample)
        yield f"wrote {folder}; use them with: bipedsim score zmp {robot} --hardware {folder}/*.yaml"
