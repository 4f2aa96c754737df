"""Compare step time, stiction and accuracy of bipedsim's contact models and of other engines on the same robots."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
