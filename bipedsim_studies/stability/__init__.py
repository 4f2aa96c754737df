"""Compute the stability of gaits with Poincare maps of robot, controller and ground (docs/stability.md).

The modules, from low level to high level:

- :mod:`planes`, :mod:`mirror`: positions of the feet relative to the ground, and the exchange of left and right;
- :mod:`loop`: the closed loop of robot, controller and ground;
- :mod:`section`: the event that ends a stride;
- :mod:`chart`: coordinates of the states on the section;
- :mod:`return_map`: one stride as a function of these coordinates;
- :mod:`newton`: fixed points, multipliers, the verdict, and the limit of small physics steps;
- :mod:`continuation`, :mod:`basin`: the same over a range of slopes, and over random starts;
- :mod:`straight_legs`: an event-based integrator of simple walkers, as a reference.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
