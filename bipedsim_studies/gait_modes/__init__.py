"""Gaits as discrete-event systems: what each foot does over a run, and which gait that is (hurmuzlu2001 section 4.2).

What holds a foot's polygon (face, edge, vertex) is another thing: ``bipedsim.contact.modes``.
"""

BOUNCE = 0.1
"""A foot that is off the ground for less has bounced and not stepped [s]: thrown up, it rises 12 mm (g T^2 / 8)."""
PAUSE = 2.0
"""This long without a foot on its way to a landing ends a gait [s]."""
