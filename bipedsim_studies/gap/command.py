"""Implement the command ``bipedsim gap``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bipedsim.cli import add_option, add_recorded, add_span
from bipedsim.config import RunConfig
from bipedsim_studies.study import add_output, output, shows_progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("recording", type=Path, help="bag folder, .mcap, .npz or .csv of a robot or of a simulated run")
    add_recorded(parser, ground=False)
    add_option(parser, RunConfig, "hardware", default="ideal")
    parser.add_argument(
        "--against", metavar="MODEL", help="hardware to compare with, as in --hardware, or a contact model"
    )
    add_span(parser)
    add_output(parser)


MODEL, AGAINST = "model", "against"
"""Labels of the two models."""


def main(args: argparse.Namespace) -> int:
    """Measure the prediction errors of one or two models and print them."""
    from bipedsim.analysis import robot_of
    from bipedsim.errors import RecordingError
    from bipedsim.model import IDEAL, load_robot
    from bipedsim.recording import load_recording
    from bipedsim_studies.gap.compare import predict_recording
    from bipedsim_studies.gap.report import as_json, as_text, plot

    recording = load_recording(args.recording, start=args.start, stop=args.stop)
    robot = load_robot(args.robot) if args.robot else robot_of(recording)
    models = {MODEL: args.hardware or IDEAL, **({AGAINST: args.against} if args.against else {})}
    try:
        gaps, notes = predict_recording(recording, robot, models, shows_progress(args))
    except RecordingError as error:
        raise error.within(args.recording) from None
    names = "; ".join(f"{label}: {spec}" for label, spec in models.items())
    title = f"{robot.name}, errors of predictions from {gaps[0].source.value} ({names})"
    output(
        args,
        lambda: as_json(gaps, notes),
        lambda: as_text(gaps, notes, title),
        lambda path: plot(gaps, title, path),
    )
    return 0
