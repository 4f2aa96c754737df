from .signals import CHANNELS, THRESHOLD, PlateGeometry, PlateSignals

__all__ = ["CHANNELS", "THRESHOLD", "PlateGeometry", "PlateSignals"]
