"""The models of force plates that can be named."""

from __future__ import annotations

from pathlib import Path

from bipedsim.config import Files

PLATES = Files(
    "force plate", "bipedsim.force_plates", Path(__file__).parent / "models", "*.yaml", lambda path: path.stem
)
"""Name to file of a model: a new one is a new file."""
