"""Reproduce the experiments of papers (docs/reproduce.md): one folder per paper, and an entry in ``PAPERS``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
