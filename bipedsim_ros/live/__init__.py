"""Show a running robot from its newest messages, and send requests of the page to the nodes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
