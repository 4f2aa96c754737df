"""Moving pictures of a run: the robot as links, its soles, the ground, the CoM and the contact forces.

:func:`animate` writes them. matplotlib takes a second to import, so that it is imported when
something is drawn.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
