"""Provide a Gymnasium environment for any robot, with joint positions as actions and sensor data as observations.

Importing the module registers ``gymnasium.make("bipedsim/Biped-v0")``;
``gymnasium.make("bipedsim.gym:bipedsim/Biped-v0")`` does both.
"""

import lazy_loader

import bipedsim.gym.registration  # noqa: F401

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
