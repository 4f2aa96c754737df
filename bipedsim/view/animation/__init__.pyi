from .camera import ARROW, LONGEST
from .film import about_run, animate, animate_run, check_output, ground_of
from .motion import bottom
from .scene import FORCE_COLOUR, OBJECT_COLOUR, SOIL_COLOUR, SURFACE_COLOUR
from .skeleton import Skeleton

__all__ = [
    "ARROW",
    "FORCE_COLOUR",
    "LONGEST",
    "OBJECT_COLOUR",
    "SOIL_COLOUR",
    "SURFACE_COLOUR",
    "Skeleton",
    "about_run",
    "animate",
    "animate_run",
    "bottom",
    "check_output",
    "ground_of",
]
