"""Classify gaits as discrete-event systems: the state of each foot over a run, and the gait (hurmuzlu2001 section 4.2).

Do not confuse these states with the contact modes of a polygon (face, edge, vertex) in ``bipedsim.contact.modes``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
