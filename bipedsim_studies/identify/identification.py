"""Identify a robot with all that the command reports: the estimate, the contact, suggestions and predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.analysis import load_run, robot_of, unused_joints
from bipedsim.config import ProgressBar, yaml_value
from bipedsim.errors import BipedSimError, ConfigError, some
from bipedsim.model import Robot, load_robot
from bipedsim.recording import Recording
from bipedsim.view import PAGES
from bipedsim_studies.gap import robot_run
from bipedsim_studies.identify.contact import Contact
from bipedsim_studies.identify.delay import command_delay
from bipedsim_studies.identify.estimation import ITERATIONS, Estimate, estimate
from bipedsim_studies.identify.judgement import Judgement
from bipedsim_studies.identify.lacking import Lacking, undetermined
from bipedsim_studies.identify.noise import SENSORS, sensor_noise
from bipedsim_studies.identify.overlay import Measured, overlay
from bipedsim_studies.identify.page import write_estimate
from bipedsim_studies.identify.parameters import Parameters, parameters_of
from bipedsim_studies.identify.report import (
    as_json,
    as_text,
    delay_note,
    drift_notes,
    held_note,
    plot,
    suggested_json,
    suggested_text,
)
from bipedsim_studies.identify.selection import SYMMETRIC, select, without_data
from bipedsim_studies.identify.signals import RATE, Signals, measured_rows, signals_of
from bipedsim_studies.identify.suggest import MOTIONS, Suggestion, suggestions


@dataclass(frozen=True)
class Inputs:
    """Data from which a robot is identified.

    Attributes:
        sources: Files of the recordings.
        recordings: The recordings, from the first to the last measurement of all sensors.
        left_out: Notes on the rows of each recording before and after that.
        robot: The robot as described.
        parameters: Its parameters, as far as the recordings have the signals for them.
        signals: Signals of each recording.
        lacking: Signals that all recordings lack.
        checked: File and recording that are only predicted; None without.
    """

    sources: tuple[Path, ...]
    recordings: tuple[Recording, ...]
    left_out: tuple[tuple[str, ...], ...]
    robot: Robot
    parameters: Parameters
    signals: tuple[Signals, ...]
    lacking: Lacking
    checked: tuple[Path, Recording] | None

    @classmethod
    def read(
        cls,
        sources: Sequence[Path],
        robot: str | None,
        assumed: Sequence[str],
        span: tuple[float | None, float | None],
        check: Path | None,
    ) -> Inputs:
        """Read recordings, and report everything that is wrong with them before the estimate, which takes minutes.

        Args:
            sources: Files of the recordings.
            robot: Name or file of the robot; None for that of the first recording.
            assumed: Assumptions, as behind ``--assume``.
            span: First and last time [s].
            check: File of a recording to predict.

        Raises:
            ConfigError, RecordingError: A recording cannot be used, or an assumption is unknown.
        """
        loaded = [load_run(path, start=span[0], stop=span[1]) for path in sources]
        model = load_robot(robot) if robot else robot_of(loaded[0])
        rows = [measured_rows(each, model, str(path)) for path, each in zip(sources, loaded, strict=True)]
        recordings, left_out = zip(*rows, strict=True)
        described = [each for each in assumed if each != SYMMETRIC]
        parameters = select(model, parameters_of(model), described, SYMMETRIC in assumed)
        checked = (check, load_run(check)) if check else None
        _all_different([*zip(sources, loaded, strict=True), *([checked] if checked else [])])
        if checked is not None:
            robot_run(checked[1], model)
        signals = [signals_of(each, model, str(path)) for path, each in zip(sources, recordings, strict=True)]
        lacking = [each.lacking for each in signals]
        parameters = without_data(parameters, undetermined(parameters, lacking))
        return cls(
            tuple(sources),
            recordings,
            left_out,
            model,
            parameters,
            tuple(signals),
            Lacking.common(lacking),
            checked,
        )

    @property
    def held(self) -> float:
        """Share of the time in which something else than the ground under the soles carries the robot."""
        return float(np.mean(np.concatenate([each.held for each in self.signals])))

    def lacks(self) -> list[str]:
        """Return what the recordings lack."""
        pairs = zip(self.sources, self.signals, strict=True)
        return [f"{path} {text}" for path, each in pairs for text in each.lacking.notes(self.robot)]

    def notes(self) -> list[str]:
        """Return how the recordings were read, and what carried the robot."""
        notes = [
            f"{path}: {text}"
            for path, each, rows in zip(self.sources, self.recordings, self.left_out, strict=True)
            for text in (*each.notes, *unused_joints(each, self.robot), *rows)
        ]
        notes += _same_noise(self.sources, self.recordings)
        return [*notes, held_note(self.held)] if self.held > 0.0 else notes


def _all_different(pairs: Sequence[tuple[Path, Recording]]) -> None:
    """Raise a ConfigError if two files have the same measurements, which would count twice."""
    for (path, one), (other, two) in combinations(pairs, 2):
        times, first, second = np.intersect1d(one.t, two.t, return_indices=True)
        if len(times) and np.array_equal(one.joint_position[first], two.joint_position[second]):
            raise ConfigError(f"has the measurements of {path}; name recordings of different motions", str(other))


def _same_noise(sources: Sequence[Path], recordings: Sequence[Recording]) -> Iterator[str]:
    """Yield notes on simulated recordings with the same noise, since the intervals suppose that each has its own."""
    drawn: dict[tuple[int, int], list[str]] = {}
    for path, each in zip(sources, recordings, strict=True):
        if any(each.run.get("hardware", {}).get(name) for name in SENSORS):
            drawn.setdefault((each.run["seed"], each.run["draw"]), []).append(str(path))
    for (seed, _), paths in drawn.items():
        if len(paths) > 1:
            yield (
                f"{some(paths)}: simulated with the same noise, because the seed is {seed} in each. The intervals are "
                "too narrow; give each run a --seed of its own"
            )


@dataclass(frozen=True)
class Identification:
    """An identified robot.

    Attributes:
        inputs: The data.
        result: The estimate.
        delay: Delay of the commands [s] and the share of the error that it explains; None if it is unknown.
        contact: Friction of the ground, and soles; None if they cannot be estimated.
        measured: What the hardware file says of the recordings.
        hardware: Text of the hardware file.
        suggestions: Motions to record next, the best one first; empty if none were asked for.
        predictions: Predictions before and after; empty if none were asked for.
        missing: Notes on results that are missing.
    """

    inputs: Inputs
    result: Estimate
    delay: tuple[float, float] | None
    contact: Contact | None
    measured: Measured
    hardware: str
    suggestions: tuple[Suggestion, ...]
    predictions: tuple[Judgement, ...]
    missing: tuple[str, ...]

    @classmethod
    def of(cls, inputs: Inputs, suggest: bool, predict: bool, progress: bool) -> Identification:
        """Identify a robot.

        Args:
            inputs: The data.
            suggest: Whether to look for the motion to record next.
            predict: Whether to predict the recording to check, or else the last one.
            progress: Whether to show progress bars.
        """
        robot, signals = inputs.robot, list(inputs.signals)
        with ProgressBar(total=ITERATIONS, desc="identify", unit="iteration", disable=not progress) as bar:
            result = estimate(robot, signals, bar.update, inputs.parameters)
        delays = filter(None, map(command_delay, inputs.recordings))
        delay = max(delays, key=lambda found: found[1], default=None)
        contact, notes_of_contact = Contact.tried(robot, result, signals, list(map(str, inputs.sources)))
        measured = Measured(
            list(inputs.sources),
            None if delay is None else delay[0],
            sensor_noise(inputs.recordings, robot),
            contact,
        )
        text = overlay(robot, result, measured)
        tried: list[Suggestion] = []
        if suggest:
            with ProgressBar(total=len(MOTIONS), desc="suggest", unit="motion", disable=not progress) as bar:
                tried = suggestions(robot, result, yaml_value(text), inputs.lacking, bar.update)
        missing, predictions = [*inputs.lacks(), *notes_of_contact], []
        if suggest and tried[0].result is None:
            missing.append("no suggestion: no motion succeeds in simulation")
        if predict:
            held_out = inputs.checked is not None
            source, recording = inputs.checked or (inputs.sources[-1], inputs.recordings[-1])
            try:
                predictions = [Judgement.of(source, recording, robot, yaml_value(text), held_out, progress)]
            except BipedSimError as error:
                missing.append(f"no predictions of {source}: {error}")
        return cls(inputs, result, delay, contact, measured, text, tuple(tried), tuple(predictions), tuple(missing))

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        values = as_json(self.result, None if self.delay is None else self.delay[0]) | {
            "contact": self.contact and self.contact.as_json(),
            "held": self.inputs.held,
            "notes": [*self.inputs.notes(), *self.missing],
        }
        if self.suggestions:
            values["suggestions"] = suggested_json(self.suggestions, self.result)
        if self.predictions:
            values["predictions"] = [each.as_json() for each in self.predictions]
        return values

    def text(self) -> str:
        """Return everything as text."""
        notes = [f"note: {text}" for text in (*self.inputs.notes(), *self.missing)]
        lines = [*notes, as_text(self.result, self.delay), ""]
        if self.contact is not None:
            lines += self.contact.text()
        if self.suggestions:
            lines += suggested_text(self.suggestions, self.result)
        lines += [line for each in self.predictions for line in each.text()]
        return "\n".join(lines)

    def draw(self, path: Path) -> None:
        """Write a page or a figure, as the suffix of ``path`` says.

        Raises:
            RecordingError: The file cannot be written.
        """
        duration = sum(len(each) for each in self.inputs.signals) / RATE
        title = f"{self.inputs.robot.name}: parameters from {duration:.0f} s"
        if path.suffix in PAGES:
            informed = [*self.inputs.notes(), *drift_notes(self.result), delay_note(self.delay)]
            write_estimate(path, title, self.result, list(self.predictions), list(self.missing), informed, self.contact)
        else:
            plot(self.result, title, path)
