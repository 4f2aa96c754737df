"""Contact by forces within the step: springs, bristles, input-output linearisation."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
