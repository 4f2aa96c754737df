from .bodies import Bodies
from .free_body import FreeBody, Link
from .schema import ObjectConfig, check_names, parse_objects
from .shapes import Shape, ball, box, cylinder, hull
from .sides import give_contacts
from .urdf import parts_of, read_body
from .world import World

__all__ = [
    "Bodies",
    "FreeBody",
    "Link",
    "ObjectConfig",
    "Shape",
    "World",
    "ball",
    "box",
    "check_names",
    "cylinder",
    "give_contacts",
    "hull",
    "parse_objects",
    "parts_of",
    "read_body",
]
