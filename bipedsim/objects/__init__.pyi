from .bodies import Bodies
from .free_body import FreeBody
from .schema import ObjectConfig, check_names, parse_objects
from .shapes import Shape, ball, box, cylinder, hull
from .world import World

__all__ = [
    "Bodies",
    "FreeBody",
    "ObjectConfig",
    "Shape",
    "World",
    "ball",
    "box",
    "check_names",
    "cylinder",
    "hull",
    "parse_objects",
]
