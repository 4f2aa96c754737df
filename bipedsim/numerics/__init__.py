"""Mathematics without a robot: compiled kernels, spatial algebra, polygons, small linear systems."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
