"""Thresholds for the contact of a foot in the analysis of runs.

Loads are shares of the robot's weight. Controllers have their own thresholds.
"""

from __future__ import annotations

PRESSES = 1e-3
"""Vertical force below which the exact wrench of a simulator has no centre of pressure, because it would be noise."""
CARRIES = 0.02
"""Vertical force below which a foot is in the air, and a measured force has no centre of pressure.

It is about the drift of the sensors."""
SHORTEST_SWING = 0.1
"""Minimum time of a swing [s]; a foot that was off the ground for less time has bounced."""
