"""Read and write files of movement laboratories: C3D, OpenSim's .mot, .sto and .trc, and force-plate tables."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
