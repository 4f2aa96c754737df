"""A Gymnasium environment of any robot: positions of the joints in, what a robot measures out.

Importing it makes ``gymnasium.make("bipedsim/Biped-v0")`` known; ``gymnasium.make("bipedsim.gym:bipedsim/Biped-v0")``
does both.
"""

import lazy_loader

import bipedsim.gym.registration  # noqa: F401

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
