"""Optimal control of a step: a cost over its time, dynamics, and ends that are tied (hurmuzlu2001 eq. 58)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
