from .bridging import (
    PlacedSole as PlacedSole,
    bridge as bridge,
    complete_axes as complete_axes,
    face_axes as face_axes,
    may_bridge as may_bridge,
    still_lies_on as still_lies_on,
)
from .field import HeightField as HeightField, highest_near as highest_near, triangle_at as triangle_at
from .ground import Ground as Ground, GroundArrays as GroundArrays
from .names import GROUNDS as GROUNDS
from .patch import Patch as Patch
from .read import get_ground as get_ground, ground_values as ground_values, make_ground as make_ground
from .support import (
    CARRY as CARRY,
    UNDERSIDE as UNDERSIDE,
    SupportWork as SupportWork,
    carry_vertices as carry_vertices,
    choose_patch as choose_patch,
    is_beside as is_beside,
    make_work as make_work,
    patch_friction as patch_friction,
    polygon_capacity as polygon_capacity,
    same_polygon as same_polygon,
    support_polygon as support_polygon,
    surface as surface,
)
from .tiling import tiles as tiles
from .under_field import (
    height_above as height_above,
    is_riser as is_riser,
    may_have_risers as may_have_risers,
)
