"""Collect the settings of runs as texts, and those that differ between runs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from bipedsim.config import RunConfig
from bipedsim.recording import Recording

ABSENT = "-"
"""Text for a setting that a run does not have."""
_UNITS = {info.name: info.metadata.get("unit", "") for info in dataclasses.fields(RunConfig)} | {"m_g": "N"}


def settings_of(recording: Recording) -> dict[str, str]:
    """Return the settings of a run as texts with units; each parameter of a controller or contact model is one."""
    settings: dict[str, Any] = {"robot": recording.robot, **recording.about, **(recording.run.get("settings") or {})}
    if math.isfinite(recording.weight):
        settings["m_g"] = round(recording.weight, 1)
    texts = {}
    for name, value in settings.items():
        parts = {f"{name}: {key}": part for key, part in value.items()} if isinstance(value, Mapping) else {name: value}
        for key, part in parts.items():
            if part not in (None, "", {}, []):
                number = f"{part:g} {_UNITS.get(key, '')}".rstrip() if isinstance(part, float) else f"{part}"
                texts[key.replace("_", " ")] = number
    return texts


def differing_settings(runs: Mapping[str, Recording]) -> dict[str, tuple[str, ...]]:
    """Return the settings that are not equal in all runs: name to the text of each run."""
    settings = [settings_of(run) for run in runs.values()]
    names = dict.fromkeys(name for values in settings for name in values)
    rows = {name: tuple(values.get(name, ABSENT) for values in settings) for name in names}
    return {name: row for name, row in rows.items() if len(set(row)) > 1}
