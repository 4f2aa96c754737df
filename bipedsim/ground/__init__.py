"""What the feet stand on: planes with a region and a friction each, from code or from YAML (docs/ground.md)."""

from __future__ import annotations

from bipedsim.ground.ground import Ground, GroundArrays
from bipedsim.ground.patch import Patch
from bipedsim.ground.read import get_ground, ground_names

__all__ = ["Ground", "GroundArrays", "Patch", "get_ground", "ground_names"]
