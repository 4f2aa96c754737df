"""What a running robot looks like, from the newest of its topics, and what a page asks of it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
