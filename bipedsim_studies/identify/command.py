"""Implement the command ``bipedsim identify``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from bipedsim.cli import add_recorded, add_span
from bipedsim_studies.study import add_output, output, shows_progress

PAGES = (".html", ".htm")
"""Suffixes of ``--plot`` for a page."""


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
    add_output(parser)


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
    import numpy as np

    from bipedsim.analysis import load_run, robot_of, unused_joints
    from bipedsim.config import ProgressBar, yaml_value
    from bipedsim.errors import EXIT_INCOMPLETE, EXIT_OK, BipedSimError, ConfigError
    from bipedsim.model import load_robot
    from bipedsim_studies.gap import robot_run
    from bipedsim_studies.identify.contact import Contact
    from bipedsim_studies.identify.delay import command_delay
    from bipedsim_studies.identify.estimation import ITERATIONS, estimate
    from bipedsim_studies.identify.judgement import Judgement
    from bipedsim_studies.identify.lacking import Lacking, undetermined
    from bipedsim_studies.identify.overlay import Measured, overlay, samples, samples_folder
    from bipedsim_studies.identify.page import write_estimate
    from bipedsim_studies.identify.parameters import parameters_of
    from bipedsim_studies.identify.report import (
        as_json,
        as_text,
        delay_note,
        held_note,
        plot,
        suggested_json,
        suggested_text,
    )
    from bipedsim_studies.identify.selection import SYMMETRIC, select, without_data
    from bipedsim_studies.identify.signals import measured_rows, sensor_noise, signals_of
    from bipedsim_studies.identify.suggest import MOTIONS, Suggestion, suggestions, write_suggestion

    if args.samples < 0 or (args.samples and not args.output):
        raise ConfigError("needs a number of at least 0, and --output", "--samples", args.samples)
    folder = samples_folder(args.output) if args.samples else None
    loaded = [load_run(path, start=args.start, stop=args.stop) for path in args.recordings]
    robot = load_robot(args.robot) if args.robot else robot_of(loaded[0])
    recordings, left_out = zip(*(measured_rows(each, robot) for each in loaded), strict=True)
    described = [each for each in args.assume if each != SYMMETRIC]
    parameters = select(robot, parameters_of(robot), described, SYMMETRIC in args.assume)
    page = bool(args.plot) and args.plot.suffix in PAGES
    if args.check and args.check.resolve() in [path.resolve() for path in args.recordings]:
        raise ConfigError("is used for the estimate; name another recording", "--check", args.check)
    checked = load_run(args.check) if args.check else None
    if checked is not None:
        # Faults of the recording are reported before the estimate, which takes minutes.
        robot_run(checked, robot)
    signals = [signals_of(each, robot, str(path)) for path, each in zip(args.recordings, recordings, strict=True)]
    parameters = without_data(parameters, undetermined(parameters, [each.lacking for each in signals]))
    lacking = Lacking.common([each.lacking for each in signals])
    with ProgressBar(total=ITERATIONS, desc="identify", unit="iteration", disable=not shows_progress(args)) as bar:
        result = estimate(robot, signals, bar.update, parameters)
    delay = max(filter(None, map(command_delay, recordings)), key=lambda found: found[1], default=None)
    seconds = None if delay is None else delay[0]
    contact, notes_of_contact = Contact.tried(robot, result, signals, list(map(str, args.recordings)))
    measured = Measured(args.recordings, seconds, sensor_noise(recordings, robot), contact)
    text = overlay(robot, result, measured)
    tried: list[Suggestion] = []
    if args.suggest:
        with ProgressBar(total=len(MOTIONS), desc="suggest", unit="motion", disable=not shows_progress(args)) as bar:
            tried = suggestions(robot, result, yaml_value(text), lacking, bar.update)
    judgements, without = [], [*notes_of_contact]
    if checked is not None or page:
        source, recording = (args.recordings[-1], recordings[-1]) if checked is None else (args.check, checked)
        hardware = yaml_value(text)
        try:
            judgements = [Judgement.of(source, recording, robot, hardware, checked is not None, shows_progress(args))]
        except BipedSimError as error:
            without.append(f"no predictions of {source}: {error}")
    held = float(np.mean(np.concatenate([each.held for each in signals])))
    lacks = [
        f"note: {path} {text}"
        for path, each in zip(args.recordings, signals, strict=True)
        for text in each.lacking.notes(robot)
    ]
    without = [*lacks, *without]
    informed = [
        f"note: {path}: {note}"
        for path, each, rows in zip(args.recordings, recordings, left_out, strict=True)
        for note in (*each.notes, *unused_joints(each, robot), *rows)
    ]
    informed += [held_note(held)] if held > 0.0 else []
    notes = [*informed, *without]
    title = f"{robot.name}: parameters from {sum(len(each) for each in signals) / 50:.0f} s"
    output(
        args,
        lambda: (
            as_json(result, seconds)
            | {"contact": contact and contact.as_json(), "held": held, "notes": notes}
            | ({"suggestions": suggested_json(tried, result)} if tried else {})
            | ({"predictions": [each.as_json() for each in judgements]} if judgements else {})
        ),
        lambda: "\n".join(
            [
                *notes,
                as_text(result, delay),
                "",
                *(() if contact is None else contact.text()),
                *(suggested_text(tried, result) if tried else ()),
                *(line for each in judgements for line in each.text()),
            ]
        ),
        lambda path: (
            write_estimate(path, title, result, judgements, without, [*informed, delay_note(delay)], contact)
            if page
            else plot(result, title, path)
        ),
    )
    of_robot = f"--robot {args.robot or recordings[0].robot_source}"
    lines = [write_suggestion(args.suggest, tried[0], of_robot)] if args.suggest else []
    if args.output:
        drawn = list(samples(robot, result, measured, args.samples))
        lines += _written(args.output, text, folder, drawn, f"{args.recordings[0]} {of_robot}", of_robot)
    if not result.identified.any():
        lines.append("nothing is identified: record more motion of the joints (docs/identify.md)")
    if not result.converged:
        lines.append("the estimate has not converged: use more or longer recordings with more motion")
    if lines and not args.json:
        print("\n".join(lines))
    return EXIT_OK if result.converged and not without else EXIT_INCOMPLETE


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
