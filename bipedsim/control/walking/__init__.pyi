from .swing import TOP, height
from .zmp import ZmpController

__all__ = ["TOP", "ZmpController", "height"]
