"""Define the processes of a launch and their parameters, run them and report the result."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
