"""Deployment files of policies, by whoever wrote them, as one kind of configuration."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
