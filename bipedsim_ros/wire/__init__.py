"""Define the topics (names, types, QoS, frames) and convert messages to and from arrays."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
