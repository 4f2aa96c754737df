"""Standing, squatting and slow steps: joint PD on planned postures, with the torques that statics ask for."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
