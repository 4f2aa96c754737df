"""Write the identified parameters as a file for the option ``--hardware``."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from bipedsim.config import yaml_value
from bipedsim.errors import ConfigError
from bipedsim.model import Robot, body_links
from bipedsim.numerics import Array, Indices
from bipedsim_studies.identify.bodies import body
from bipedsim_studies.identify.contact import Contact
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.parameters import AGES, KINDS, OF_JOINTS


@dataclass(frozen=True, eq=False)
class Measured:
    """Store further results from the recordings of a robot.

    Attributes:
        sources: The recordings.
        delay: Delay from command to measured effort [s]; None if unknown.
        noise: Hardware parameter to the standard deviation of the noise of a sensor.
        contact: Contact of feet and ground, for a comment, because it is not hardware.
    """

    sources: Sequence[Path]
    delay: float | None
    noise: Mapping[str, float]
    contact: Contact | None = None


def overlay(robot: Robot, result: Estimate, measured: Measured) -> str:
    """Return the YAML text of the hardware that the estimate describes.

    All numbers are written, because they fit the data together. The ages of sensors are comments, because hardware has
    no parameters for them.
    """
    parts = (_head(robot, result, measured), _joints(result), _bodies(robot, result), _sensors(result, measured))
    return "".join(f"{line}\n" for part in parts for line in part)


def samples(robot: Robot, result: Estimate, measured: Measured, n: int) -> Iterator[str]:
    """Yield the YAML texts of ``n`` robots, drawn from the distribution of the estimate; always the same ones."""
    rng = np.random.default_rng(0)
    for k in range(n):
        values = yaml_value(overlay(robot, result.drawn(rng), measured))
        text = yaml.safe_dump(values, sort_keys=False, default_flow_style=None, width=120)
        yield f"# Robot {k + 1} that the recordings of {robot.name} allow; see docs/identify.md.\n{text}"


def samples_folder(path: Path) -> Path:
    """Return the folder NAME_samples next to the overlay ``path``.

    Raises:
        ConfigError: The folder exists, and files of two estimates would be mixed.
    """
    folder = path.with_name(f"{path.stem}_samples")
    if folder.exists():
        raise ConfigError("exists already; remove it, or choose another --output", folder)
    return folder


def _head(robot: Robot, result: Estimate, measured: Measured) -> Iterator[str]:
    today = datetime.date.today().isoformat()
    yield f"# Hardware of {robot.name}, identified on {today} from {', '.join(map(str, measured.sources))}."
    yield "# Comments: 95 % interval, and whether the recordings identify the number."
    if not result.converged:
        yield "# The estimate has not converged."
    if measured.contact is not None:
        yield from (f"# {line.strip()}" for line in measured.contact.text())


def _note(result: Estimate, i: int) -> str:
    if not result.parameters.estimated[i]:
        return "# as described"
    low, high = (float(end[i]) for end in result.interval)
    return f"# {low:.4g} to {high:.4g}, {_told(result, i)}"


def _told(result: Estimate, i: int) -> str:
    return "identified" if result.identified[i] else "not identified"


def _joints(result: Estimate) -> Iterator[str]:
    for kind in OF_JOINTS:
        yield f"{kind}:  # {KINDS[kind].unit}".rstrip("# ")
        for i in result.parameters.at[kind][:, 0]:
            yield f"  {result.parameters.owners[i]}: {_number(result.values[i])}  {_note(result, i)}"


def _bodies(robot: Robot, result: Estimate) -> Iterator[str]:
    links = body_links(robot.model)
    yield "bodies:"
    for joint, columns in zip(result.parameters.bodies, result.parameters.of_body, strict=True):
        inertia = body(robot.model.inertias[joint], result.values[columns])
        ratio = np.exp(result.half_width[columns[0]])
        yield f"  {links[joint]}:"
        estimated = result.parameters.estimated[columns]
        interval = f"{inertia.mass / ratio:.4g} to {inertia.mass * ratio:.4g} kg, {_told(result, columns[0])}"
        yield f"    mass: {_number(inertia.mass)}  # {interval if estimated[0] else 'as described'}"
        half, axes = result.half_width[columns[1:4]], result.identified[columns[1:4]]
        known = ", ".join(axis for axis, yes in zip("xyz", axes, strict=True) if yes)
        errors = f"+-{1e3 * half.max():.2g} mm at most; identified: {known or 'none'}"
        yield f"    com: {_list(inertia.lever)}  # {errors if estimated[1] else 'as described'}"
        i = inertia.inertia
        names = {"ixx": i[0, 0], "iyy": i[1, 1], "izz": i[2, 2], "ixy": i[0, 1], "ixz": i[0, 2], "iyz": i[1, 2]}
        yield f"    inertia: {{{', '.join(f'{name}: {_number(x)}' for name, x in names.items())}}}"


def _sensors(result: Estimate, measured: Measured) -> Iterator[str]:
    parameters, at = result.parameters, result.parameters.at
    for kind in ("accelerometer_offset", "imu_rotation"):
        numbers = at[kind][0]
        yield f"{kind}: {_list(result.values[numbers])}  # {_most(result, numbers, KINDS[kind].unit)}"
    yield "foot_wrench_offset:"
    for force, moment in zip(at["force_offset"], at["moment_offset"], strict=True):
        values = result.values[np.concatenate([force, moment])]
        known = "; ".join(_most(result, part, unit) for part, unit in ((force, "N"), (moment, "N.m")))
        yield f"  {parameters.owners[force[0]]}: {_list(values)}  # {known}"
    yield from (f"{name}: {_number(value)}" for name, value in measured.noise.items())
    for kind in AGES:
        (i,) = at[kind][0]
        known = f"+-{1e3 * result.half_width[i]:.2g} ms" if parameters.estimated[i] else "as described"
        yield f"# {kind}: {1e3 * result.values[i]:.2g} ms, {known}: {KINDS[kind].doc}"
    if measured.delay is not None:
        yield f"command_delay: {measured.delay:.4g}  # s, from the command to the measured effort"


def _most(result: Estimate, numbers: Indices, unit: str) -> str:
    """Return the largest error of some numbers in words, and by how much the sensor drifts."""
    if not result.parameters.estimated[numbers].any():
        return "as described"
    drift = result.unknowns.drift[numbers].max()
    drifts = f", drifts by {drift:.2g} {unit}" if drift else ""
    return f"+-{result.half_width[numbers].max():.2g} {unit} at most{drifts}"


def _number(value: float) -> str:
    return f"{value:.6g}"


def _list(values: Array) -> str:
    return f"[{', '.join(map(_number, values))}]"
