"""Many runs from one file: sweeps, Monte Carlo, bisection, on the cores of one machine or of many (docs/study.md)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
