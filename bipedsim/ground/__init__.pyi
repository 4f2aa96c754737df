from .ground import Ground, GroundArrays
from .patch import Patch
from .read import get_ground, ground_names
from .support import (
    CARRY,
    UNDERSIDE,
    FootingWork,
    carry_vertices,
    choose_patch,
    make_work,
    patch_friction,
    polygon_capacity,
    same_polygon,
    support_polygon,
)
from .tiling import tiles

__all__ = [
    "CARRY",
    "UNDERSIDE",
    "FootingWork",
    "Ground",
    "GroundArrays",
    "Patch",
    "carry_vertices",
    "choose_patch",
    "get_ground",
    "ground_names",
    "make_work",
    "patch_friction",
    "polygon_capacity",
    "same_polygon",
    "support_polygon",
    "tiles",
]
