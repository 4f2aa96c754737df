"""Contact models: six ways to compute the ground reaction on the feet, selected by name."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
