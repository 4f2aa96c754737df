from .bodies import Bodies as Bodies
from .free_body import FreeBody as FreeBody, Link as Link
from .schema import ObjectConfig as ObjectConfig, check_names as check_names, parse_objects as parse_objects
from .shapes import ObjectShape as ObjectShape, ball as ball, box as box, cylinder as cylinder, hull as hull
from .sides import give_contacts as give_contacts
from .urdf import parts_of as parts_of, read_body as read_body
from .world import World as World
