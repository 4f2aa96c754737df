"""Contacts as linear complementarity problems: the LCP itself, normal forces, Coulomb friction, time stepping."""
