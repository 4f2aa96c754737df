"""Provide one interface to bipedsim's contact models and to other engines."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
