"""Find models of force plates by name."""

from __future__ import annotations

from pathlib import Path

from bipedsim.config import Files

PLATES = Files(
    "force plate", "bipedsim.force_plates", Path(__file__).parent / "models", "*.yaml", lambda path: path.stem
)
"""Name to model file; every YAML file in the folder is a model."""
