"""When a foot of a recording counts as loaded: shares of the robot's weight, one for each question.

Controllers have limits of their own, which decide what they do and not what is said of a run.
"""

from __future__ import annotations

PRESSES = 1e-3
"""Vertical force below which the exact wrench of a simulator has no centre of pressure: a quotient of noise."""
CARRIES = 0.02
"""Vertical force below which a foot is in the air, and has no centre of pressure where a sensor measured it: sensors
drift by as much."""
