"""Standing, squatting and slow steps: joint PD on planned postures, with static torques fed forward."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
