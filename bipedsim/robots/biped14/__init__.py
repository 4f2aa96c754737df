"""The 14-joint adult-sized biped: URDF, configuration and the anthropometric data that the URDF is made from."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
