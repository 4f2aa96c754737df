"""Table of the scenarios that have a name."""

from __future__ import annotations

from pathlib import Path

from bipedsim.config import Files

SCENARIO_FILES = Files(
    "scenario", "bipedsim.scenarios", Path(__file__).parent / "scenarios", "*.yaml", lambda path: path.stem
)
"""Name to scenario file: a new scenario is a new file."""
