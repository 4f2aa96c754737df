"""Animate a run: the robot as lines, its soles, the ground, the CoM and the contact forces.

:func:`animate` writes the animation. Import of matplotlib takes a second, so the functions import it when they draw.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
