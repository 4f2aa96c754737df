from .ground import Ground, GroundArrays
from .names import GROUNDS
from .patch import Patch
from .read import get_ground
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
    "GROUNDS",
    "UNDERSIDE",
    "FootingWork",
    "Ground",
    "GroundArrays",
    "Patch",
    "carry_vertices",
    "choose_patch",
    "get_ground",
    "make_work",
    "patch_friction",
    "polygon_capacity",
    "same_polygon",
    "support_polygon",
    "tiles",
]
