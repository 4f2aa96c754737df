"""Write robot.yaml and report.md in a readable format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import yaml

from bipedsim.descriptions.description import Description
from bipedsim.descriptions.notes import DIFFERS, DOUBTS, DROPPED, FOUND, GUESSED, MENDED, TITLES, Notes
from bipedsim.model import Robot

_COMMENTS = {
    "inertia": "nearest possible values, because those of the description are impossible for a rigid body",
    "locked": "welded: see report.md",
    "feet": "report.md states the source of the soles",
    "armature": "reflected rotor inertia; report.md lists the estimates",
    "joint_damping": "estimates",
    "hardware": "for the preset `realistic`; report.md lists the estimates",
    "effort_limit": "estimates, because the description has no usable value",
    "velocity_limit": "estimates, because the description has no usable value",
    "position_limit": "estimates, because the description has no usable value",
    "posture": "standing posture: flat soles, CoM above them",
    "controllers": "scaled from robots on which zmp walks; report.md states the trial walk",
}


class _Dumper(yaml.SafeDumper):
    """Writes lists, and mappings of lists such as placements, on one line; other mappings with one line per key."""

    def ignore_aliases(self, data: Any) -> bool:
        """Repeat equal values instead of using YAML aliases."""
        return True


def _sequence(dumper: yaml.SafeDumper, data: Any) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)


def _mapping(dumper: yaml.SafeDumper, data: Any) -> yaml.Node:
    flow = set(data) in ({"xyz", "rpy"}, {"frame"})
    return dumper.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=flow)


_Dumper.add_representer(list, _sequence)
_Dumper.add_representer(dict, _mapping)


def yaml_text(config: Mapping[str, Any], description: Description | None) -> str:
    """Return the text of robot.yaml.

    Args:
        config: Keys of robot.yaml.
        description: The imported description, for the first line.
    """
    lines = (
        [f"# Written by `bipedsim import {description.source}`; docs/robots.md explains the keys."]
        if description
        else []
    )
    for key, value in config.items():
        if key in _COMMENTS:
            lines.append(f"# {_COMMENTS[key]}")
        text = yaml.dump({key: _grouped(value)}, Dumper=_Dumper, sort_keys=False, width=116, allow_unicode=True)
        lines.append(text.rstrip("\n"))
    return "\n".join(lines) + "\n"


def _grouped(value: Any) -> Any:
    """Merge joints with equal values into one entry: a pattern for both sides."""
    if not isinstance(value, Mapping):
        return value
    if len(value) < 2 or not all(isinstance(v, float) for v in value.values()):
        return {key: _grouped(v) for key, v in value.items()}
    grouped: dict[str, float] = {}
    for key, number in value.items():
        mirrored = _SIDE.sub(lambda side: "right" if side[0] == "left" else "left", key, count=1)
        pattern = _SIDE.sub("(left|right)", key, count=1)
        # Other names are no pattern that matches themselves.
        if mirrored != key and value.get(mirrored) == number and _NAME.fullmatch(key):
            grouped[pattern] = number
        else:
            grouped[key] = number
    return grouped


_SIDE = re.compile("left|right")
_NAME = re.compile(r"[\w-]+")


def figures_text(robot: Robot) -> str:
    """Return a sentence with mass, joints, feet and height of a robot."""
    text = f"{robot.mass:.2f} kg, {robot.nu} driven joints, {len(robot.soles)} feet"
    if robot.soles and robot.free_flyer and np.isfinite(robot.com_height):
        text += f"; CoM height {robot.com_height:.3f} m"
    return f"{text}."


@dataclass
class ValueOrigin:
    """Values of one property in robot.yaml, by their origin.

    Attributes:
        name, unit: The property.
        taken, inferred: Joint or foot to its value, from the description or from a rule of the import.
    """

    name: str
    unit: str
    taken: dict[str, float] = field(default_factory=dict)
    inferred: dict[str, float] = field(default_factory=dict)


def value_table(origins: Sequence[ValueOrigin]) -> list[str]:
    """Return the lines of a Markdown table of the values and their origin, with the range over joints or feet."""
    rows = [("value", "unit", "from the description", "inferred")]
    rows += [(each.name, each.unit, _span(each.taken), _span(each.inferred)) for each in origins]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |" for row in rows]
    return [lines[0], "| " + " | ".join("-" * width for width in widths) + " |", *lines[1:]]


def _span(values: Mapping[str, float]) -> str:
    if not values:
        return ""
    low, high = min(values.values()), max(values.values())
    return f"{len(values)} x {low:.3g}" + (f" to {high:.3g}" if f"{high:.3g}" != f"{low:.3g}" else "")


def short_text(notes: Notes, robot: Robot | None, table: Sequence[str]) -> str:
    """Return the summary of an import: all deviations from the description, and the table of values."""
    lines = [figures_text(robot)] if robot is not None else []
    for kind in (DOUBTS, MENDED, DROPPED, DIFFERS, GUESSED):
        texts = notes.said[kind]
        if texts:
            lines += [f"{TITLES[kind]}:", *(f"- {text}" for text in texts)]
    if notes.said[FOUND]:
        lines.append(f"report.md lists {len(notes.said[FOUND])} more properties from the description, and tables")
    lines += table
    return "\n".join(lines).strip() + "\n"


def report_text(description: Description, robot: Robot | None, tables: list[str]) -> str:
    """Return the report of an import.

    Args:
        description: The description.
        robot: The loaded robot, or None.
        tables: Markdown lines to append.
    """
    lines = [f"# Import of {description.name}", "", f"From {description.source}.", ""]
    if robot is not None:
        lines += [figures_text(robot), ""]
    for kind, title in TITLES.items():
        texts = description.notes.said[kind]
        if texts:
            lines += [f"## {title}", "", *(f"- {text}" for text in texts), ""]
    return "\n".join([*lines, *tables]).rstrip("\n") + "\n"
