"""Run the loops between topics and simulator or controller, in real time or in lock step."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
