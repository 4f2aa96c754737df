"""Implement the command ``bipedsim gap``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bipedsim.cli import add_option, add_recorded, add_span
from bipedsim.config import RunConfig
from bipedsim_studies.study import add_output, output, shows_progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("recording", type=Path, help="bag folder, .mcap or .npz of a robot or of a simulated run")
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
    from bipedsim.model import IDEAL, load_robot
    from bipedsim.recording import load_recording
    from bipedsim_studies.gap.external import external_forces
    from bipedsim_studies.gap.models import make_model
    from bipedsim_studies.gap.predict import measure_gap
    from bipedsim_studies.gap.recorded import robot_run
    from bipedsim_studies.gap.report import as_json, as_text, ground_notes, plot

    recording = load_recording(args.recording, start=args.start, stop=args.stop)
    robot = load_robot(args.robot) if args.robot else robot_of(recording)
    run = robot_run(recording, robot)
    specs = [args.hardware or IDEAL, *([args.against] if args.against else [])]
    models = [make_model(spec, robot, run, label) for label, spec in zip((MODEL, AGAINST), specs, strict=False)]
    gaps = [measure_gap(run, model, shows_progress(args)) for model in models]
    forces = [f"{what}; the predictions contain no such force" for what in external_forces(recording)]
    notes = [*recording.notes, *run.notes, *ground_notes(recording), *forces]
    names = "; ".join(f"{model.label}: {spec}" for model, spec in zip(models, specs, strict=True))
    title = f"{robot.name}, errors of predictions from {run.source.value} ({names})"
    output(
        args,
        lambda: as_json(gaps, notes),
        lambda: as_text(gaps, notes, title),
        lambda path: plot(gaps, title, path),
    )
    return 0
