"""robot.yaml and report.md as texts that people read and go on with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import yaml

from bipedsim.descriptions.description import Description
from bipedsim.descriptions.notes import DIFFERS, DOUBTS, DROPPED, FOUND, GUESSED, MENDED, TITLES, Notes
from bipedsim.model import Robot

_COMMENTS = {
    "inertia": "no rigid body can have those of the description: the nearest possible ones",
    "locked": "welded: see report.md",
    "feet": "see report.md for where the soles come from",
    "armature": "reflected rotor inertia; report.md says which are estimates",
    "joint_damping": "estimates",
    "hardware": "of the preset `realistic`; report.md says which are estimates",
    "effort_limit": "estimates: the description has none",
    "velocity_limit": "estimates: the description has none",
    "position_limit": "estimates: the description has none",
    "posture": "standing: soles flat, CoM over them",
    "controllers": "by similarity from robots on which zmp walks",
}


class _Dumper(yaml.SafeDumper):
    """Lists, and mappings of lists such as placements, on one line; other mappings with a line for each key."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write what is the same twice."""
        return True


def _sequence(dumper: yaml.SafeDumper, data: Any) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)


def _mapping(dumper: yaml.SafeDumper, data: Any) -> yaml.Node:
    flow = set(data) in ({"xyz", "rpy"}, {"frame"})
    return dumper.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=flow)


_Dumper.add_representer(list, _sequence)
_Dumper.add_representer(dict, _mapping)


def yaml_text(config: Mapping[str, Any], found: Description | None) -> str:
    """Return robot.yaml.

    Args:
        config: Its keys.
        found: The description that they are from, for the first line.
    """
    lines = [f"# Written by `bipedsim import {found.source}`; docs/robots.md says what the keys mean."] if found else []
    for key, value in config.items():
        if key in _COMMENTS:
            lines.append(f"# {_COMMENTS[key]}")
        text = yaml.dump({key: _grouped(value)}, Dumper=_Dumper, sort_keys=False, width=116, allow_unicode=True)
        lines.append(text.rstrip("\n"))
    return "\n".join(lines) + "\n"


def _grouped(value: Any) -> Any:
    """Return one entry in place of several joints with the same value: of both sides, or of all."""
    if not isinstance(value, Mapping):
        return value
    if len(value) < 2 or not all(isinstance(v, float) for v in value.values()):
        return {key: _grouped(v) for key, v in value.items()}
    grouped: dict[str, float] = {}
    for key, number in value.items():
        other = _SIDE.sub(lambda side: "right" if side[0] == "left" else "left", key, count=1)
        both = _SIDE.sub("(left|right)", key, count=1)
        if other != key and value.get(other) == number:
            grouped[both] = number
        else:
            grouped[key] = number
    return grouped


_SIDE = re.compile("left|right")


def figures_text(robot: Robot) -> str:
    """Return mass, joints, feet and height of a robot in a sentence."""
    text = f"{robot.mass:.2f} kg, {robot.nu} driven joints, {len(robot.soles)} feet"
    if robot.soles and robot.free_flyer and np.isfinite(robot.com_height):
        text += f"; the CoM stands {robot.com_height:.3f} m above the soles"
    return f"{text}."


def short_text(notes: Notes, robot: Robot | None) -> str:
    """Return what a reader must know of an import at once: all that is not as the description has it."""
    lines = [figures_text(robot)] if robot is not None else []
    for kind in (DOUBTS, MENDED, DROPPED, DIFFERS, GUESSED):
        said = notes.said[kind]
        if said:
            lines += [f"{TITLES[kind]}:", *(f"- {text}" for text in said)]
    if notes.said[FOUND]:
        lines.append(f"{len(notes.said[FOUND])} found, in addition to tables: see report.md")
    return "\n".join(lines).strip() + "\n"


def report_text(found: Description, robot: Robot | None, tables: list[str]) -> str:
    """Return the report of an import.

    Args:
        found: The description.
        robot: As it was read back, if it was.
        tables: Lines of Markdown to put behind it.
    """
    lines = [f"# Import of {found.name}", "", f"From {found.source}.", ""]
    if robot is not None:
        lines += [figures_text(robot), ""]
    for kind, title in TITLES.items():
        said = found.notes.said[kind]
        if said:
            lines += [f"## {title}", "", *(f"- {text}" for text in said), ""]
    return "\n".join([*lines, *tables]).rstrip("\n") + "\n"
