"""Controllers: what they see and command, the table of them, and what watches over them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
