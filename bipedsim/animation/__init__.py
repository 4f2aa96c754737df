"""Moving pictures of a run: the robot as links, its soles, the ground, the CoM and the contact forces.

    from bipedsim.animation import animate
    animate(Recording.load("walk.npz"), Path("walk.gif"), view="both")

matplotlib takes a second to import, so that it is imported when something is drawn.
"""

from __future__ import annotations

from bipedsim.animation.animate import animate, animate_run, check_output

__all__ = ["animate", "animate_run", "check_output"]
