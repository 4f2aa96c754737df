"""Provide vendor bridges: topics of a robot's maker, for the maker's own programs, in addition to the ROS topics."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
