"""Find grounds by name."""

from __future__ import annotations

from pathlib import Path

from bipedsim.config import Files

GROUNDS = Files("ground", "bipedsim.grounds", Path(__file__).parent, "*.yaml", lambda path: path.stem)
"""Name to ground file; every YAML file in the folder is a ground."""
