"""Run many simulations defined by one file: sweeps, Monte Carlo, bisection, on one or many machines (docs/study.md)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
