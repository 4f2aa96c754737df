"""Import robot descriptions into a robot.yaml, and describe robots in words."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
