"""What the papers' systems did, done again (docs/reproduce.md): one folder per paper and a line in ``PAPERS``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
