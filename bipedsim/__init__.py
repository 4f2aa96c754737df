"""Physics of two-legged robots whose feet truly stick, with every contact model of the literature behind one switch."""

__version__ = "0.1.0"
