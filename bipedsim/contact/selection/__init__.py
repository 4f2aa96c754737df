"""Contact by constraint selection: which vertices of each foot are held, in one step or by search."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
