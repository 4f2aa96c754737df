"""Physics of two-legged robots whose feet truly stick, with every contact model of the literature behind one switch.

The names in this module are the Python interface (docs/python.md). Each name loads its module when it is used.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
