"""Parts of the walking controller: footsteps, DCM plan, swing foot, whole-body accelerations, wrenches of the feet."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
