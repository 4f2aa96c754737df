"""Optimise the control of a step: a cost over its time, dynamics, and coupled boundary conditions (eq. 58)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
