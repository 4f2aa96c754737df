"""Runs without ROS: scenario, pushes, velocity commands, and the loop around simulator and controller."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
