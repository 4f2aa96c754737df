from .ground import Ground, GroundArrays
from .patch import Patch
from .read import get_ground, ground_names
from .support import (
    UNDERSIDE,
    FootingWork,
    carry_mode,
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
    "UNDERSIDE",
    "FootingWork",
    "Ground",
    "GroundArrays",
    "Patch",
    "carry_mode",
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
