"""Estimation of pose and velocity of the base from the measurements of a robot (docs/estimation.md)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
