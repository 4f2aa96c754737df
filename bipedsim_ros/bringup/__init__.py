"""Which processes a bring-up starts, with what parameters, and what it says at the end."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
