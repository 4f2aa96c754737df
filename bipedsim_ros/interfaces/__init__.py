"""Interfaces of vendors: a robot that speaks what its maker's own programs expect, beside its ROS topics."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
