"""Predict a recording with one or two models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bipedsim.model import Robot
from bipedsim.recording import Recording
from bipedsim_studies.gap.external import external_forces
from bipedsim_studies.gap.models import make_model
from bipedsim_studies.gap.predict import Gap, measure_gap
from bipedsim_studies.gap.recorded import robot_run
from bipedsim_studies.gap.report import ground_notes


def predict_recording(
    recording: Recording, robot: Robot, models: Mapping[str, str | Mapping[str, Any]], progress: bool = False
) -> tuple[list[Gap], list[str]]:
    """Return the errors of each model, and notes for the reader.

    Args:
        recording: The recording of the robot.
        robot: The robot.
        models: Label to model; see :func:`bipedsim_studies.gap.models.make_model`.
        progress: Whether to show progress bars on stderr.

    Raises:
        BipedSimError: The recording cannot be used, or a model is wrong.
    """
    run = robot_run(recording, robot)
    made = [make_model(spec, robot, run, label) for label, spec in models.items()]
    gaps = [measure_gap(run, model, progress) for model in made]
    forces = [f"{what}; the predictions contain no such force" for what in external_forces(recording)]
    return gaps, [*recording.notes, *run.notes, *ground_notes(recording), *forces]
