"""What touches beside the feet: the robot's bodies, and whatever else a finder adds, coupled with any contact model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
