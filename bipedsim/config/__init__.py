"""Declare parameters once as dataclass fields; read them from YAML, the command line and ROS."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
