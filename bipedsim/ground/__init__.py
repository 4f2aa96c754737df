"""What the feet stand on: planes with a region and a friction each, from code or from YAML (docs/ground.md)."""

from __future__ import annotations

from bipedsim.ground.patch import Patch
from bipedsim.ground.reader import get_ground, ground_names
from bipedsim.ground.surface import Ground, GroundArrays

__all__ = ["Ground", "GroundArrays", "Patch", "get_ground", "ground_names"]
