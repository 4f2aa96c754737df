"""Identify the parameters of a robot from recordings in which it stands, squats and walks."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
