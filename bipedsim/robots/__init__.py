"""One folder per robot, and the table of them: a new robot is a folder with ``robot.yaml`` and one line here."""

from __future__ import annotations

ROBOTS = ("biped14", "talos", "talos_legs", "g1", "icub")
"""Robots that stand."""
WALKERS = ("compass", "three_masses", "planar_biped")
"""Robots in a plane that have a name: without a controller they fall."""
