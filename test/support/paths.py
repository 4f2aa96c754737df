"""Where things are, for tests at any depth of the tree."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BODIES = ROOT / "bipedsim_studies" / "bodies"
ROBOTS = ROOT / "bipedsim" / "robots"
