"""Time-stepping contact by complementarity: friction pyramids (lcp) and exact friction cones (ncp)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
