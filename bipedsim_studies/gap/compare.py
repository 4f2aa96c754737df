"""Predict a recording with one or two models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bipedsim.analysis import unused_joints
from bipedsim.errors import RecordingError
from bipedsim.model import Robot
from bipedsim.recording import Recording
from bipedsim_studies.gap.conventions import convention_fault
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
    if fault := convention_fault(robot, run.position, run.orientation, run.accelerometer, run.wrench):
        raise RecordingError(fault)
    made = [make_model(spec, robot, run, label) for label, spec in models.items()]
    gaps = [measure_gap(run, model, progress) for model in made]
    forces = [f"{what}; the predictions contain no such force" for what in external_forces(recording)]
    return gaps, [*recording.notes, *unused_joints(recording, robot), *run.notes, *ground_notes(recording), *forces]


def on_common_windows(first: Gap, second: Gap) -> tuple[Gap, Gap]:
    """Return the errors of two models where both have a prediction, so that none gains from windows that it lacks."""
    _, i, j = np.intersect1d(first.starts, second.starts, return_indices=True)
    both = {name: np.isfinite(first.errors[name][i]) & np.isfinite(second.errors[name][j]) for name in first.errors}
    chosen = []
    for gap, rows in ((first, i), (second, j)):
        chosen.append(
            replace(
                gap,
                starts=gap.starts[rows],
                times=gap.times[rows],
                measured={name: values[rows] for name, values in gap.measured.items()},
                errors={name: np.where(both[name], values[rows], np.nan) for name, values in gap.errors.items()},
                trivial={
                    rule: {name: values[rows] for name, values in errors.items()}
                    for rule, errors in gap.trivial.items()
                },
            )
        )
    return chosen[0], chosen[1]
