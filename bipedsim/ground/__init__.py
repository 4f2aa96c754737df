"""Define the ground: planes with a region and friction each, from code or from YAML (docs/ground.md)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
