from .ground import Ground, GroundArrays
from .names import GROUNDS
from .patch import Patch
from .read import get_ground, make_ground
from .support import (
    CARRY,
    UNDERSIDE,
    SupportWork,
    carry_vertices,
    choose_patch,
    make_work,
    patch_friction,
    polygon_capacity,
    same_polygon,
    support_polygon,
    surface,
)
from .tiling import tiles

__all__ = [
    "CARRY",
    "GROUNDS",
    "UNDERSIDE",
    "Ground",
    "GroundArrays",
    "Patch",
    "SupportWork",
    "carry_vertices",
    "choose_patch",
    "get_ground",
    "make_ground",
    "make_work",
    "patch_friction",
    "polygon_capacity",
    "same_polygon",
    "support_polygon",
    "surface",
    "tiles",
]
