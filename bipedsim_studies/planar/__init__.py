"""Walkers in a plane: gaits from virtual constraints, and finite-time tracking of them."""
