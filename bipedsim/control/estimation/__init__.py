"""Where the base is and how it moves, from what a robot measures (docs/estimation.md)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
