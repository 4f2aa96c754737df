"""Rigid-body dynamics: factorisation, projection on the feet, and one step for every contact model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
