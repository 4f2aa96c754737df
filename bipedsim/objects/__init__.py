"""Free rigid bodies beside the robot: what they are, how they move, and what touches what."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
