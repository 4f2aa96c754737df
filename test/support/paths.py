"""Where things are, for tests at any depth of the tree."""

from __future__ import annotations

from pathlib import Path

import bipedsim

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = Path(bipedsim.__file__).resolve().parents[1]
"""Folder of the packages under test: the checkout, or where a wheel was installed."""
BODIES = INSTALLED / "bipedsim_studies" / "bodies"
ROBOTS = INSTALLED / "bipedsim" / "robots"
LOCK_STEP = ("--clock", "lock_step", "--params-file", str(ROOT / "config" / "lock_step.yaml"))
"""Arguments of a launch whose simulator waits for each answer without limit: machines may be busy."""
STANDING = tuple(
    sorted(
        path.parent.name
        for path in ROBOTS.glob("*/robot.yaml")
        if "root: fixed" not in path.read_text(encoding="utf-8")
    )
)
"""Robots of the simulator that stand; the others hang on a fixed root."""
