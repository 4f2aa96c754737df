"""How long is a bounce, and how long is a pause."""

BOUNCE = 0.1
"""A foot that is off the ground for less has bounced and not stepped [s]: thrown up, it rises 12 mm (g T^2 / 8)."""
PAUSE = 2.0
"""This long without a foot on its way to a landing ends a gait [s]."""
