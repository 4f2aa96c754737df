"""Whether a gait is stable: Poincare maps of robots with their controllers and their ground (docs/stability.md).

From the bottom up: :mod:`planes` and :mod:`mirror` the feet, and left for right; :mod:`loop` robot, controller and
ground; :mod:`section` when a stride ends; :mod:`chart` coordinates of the states in which it can; :mod:`return_map` one
stride as a function; :mod:`fixed_point` Newton, multipliers, verdict, and the limit of small steps; :mod:`continuation`
and :mod:`basin` over slopes and over starts; :mod:`straight_legs` walkers by events, as a reference.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
