"""Contacts other than those of the feet (robot bodies, joint limits, objects), coupled with any contact model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
