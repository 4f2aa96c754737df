"""Metrics computed from recordings and robot models: force plates, feet, falls, controllers and summaries."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
