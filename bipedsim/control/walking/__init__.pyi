from .swing import height
from .zmp import ZmpController

__all__ = ["ZmpController", "height"]
