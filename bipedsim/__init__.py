"""Physics of two-legged robots whose feet truly stick, with every contact model of the literature behind one switch.

What is named here is the Python interface (docs/python.md); each name loads what it needs when it is used.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
