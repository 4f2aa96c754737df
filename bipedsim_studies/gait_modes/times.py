"""Define the default time limits for bounces and pauses."""

BOUNCE = 0.1
"""Lift-offs shorter than this are bounces and not steps [s]. A foot thrown up this long rises 12 mm (g T^2 / 8)."""
PAUSE = 2.0
"""A gait ends if no foot is moving towards a touch-down for this long [s]."""
