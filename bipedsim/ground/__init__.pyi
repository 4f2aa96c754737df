from .bridge import bridge, face_axes, may_bridge, still_lies_on
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
    is_beside,
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
    "bridge",
    "carry_vertices",
    "choose_patch",
    "face_axes",
    "get_ground",
    "is_beside",
    "make_ground",
    "make_work",
    "may_bridge",
    "patch_friction",
    "polygon_capacity",
    "same_polygon",
    "still_lies_on",
    "support_polygon",
    "surface",
    "tiles",
]
