"""Readers of policy deployment files from several frameworks, which return one kind of configuration."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
