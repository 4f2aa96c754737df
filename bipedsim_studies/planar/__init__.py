"""Control planar walkers: adaptive computed torque, and finite-time tracking of virtual constraints."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
