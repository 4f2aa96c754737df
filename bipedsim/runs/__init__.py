"""Runs: scenarios, pushes, velocity commands, faults, and the loop around simulator and controller without ROS."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
