"""Linear complementarity problems: Lemke's method, and a judge of its answers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
