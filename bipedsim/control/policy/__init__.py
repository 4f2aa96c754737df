"""Learned policies: networks from files, run as their deployment files specify."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
