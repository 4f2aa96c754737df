"""Descriptions of robots by others, read into a robot.yaml; and what a robot is like, in words."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
