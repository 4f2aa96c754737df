"""The scenarios that can be named."""

from __future__ import annotations

from pathlib import Path

from bipedsim.config import Files

SCENARIO_FILES = Files(
    "scenario", "bipedsim.scenarios", Path(__file__).parent / "scenarios", "*.yaml", lambda path: path.stem
)
"""Name to scenario file: a new scenario is a new file."""
