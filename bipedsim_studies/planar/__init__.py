"""Walkers in a plane: gaits from virtual constraints, and finite-time tracking of them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
