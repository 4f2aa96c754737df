"""Gaits as discrete-event systems: what each foot does over a run, and which gait that is (hurmuzlu2001 section 4.2).

What holds a foot's polygon (face, edge, vertex) is another thing: ``bipedsim.contact.modes``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
