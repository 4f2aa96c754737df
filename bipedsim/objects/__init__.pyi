from .bodies import Bodies
from .shapes import Shape, ball, box, cylinder, hull
from .world import FreeBody, World

__all__ = ["Bodies", "FreeBody", "Shape", "World", "ball", "box", "cylinder", "hull"]
