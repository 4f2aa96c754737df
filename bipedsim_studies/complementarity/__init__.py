"""Contacts as linear complementarity problems: the LCP itself, normal forces, Coulomb friction, time stepping."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
