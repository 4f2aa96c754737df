from .straight_legs import StraightLegs, Stride, Torque

__all__ = ["StraightLegs", "Stride", "Torque"]
