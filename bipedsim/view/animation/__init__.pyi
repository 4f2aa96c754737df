from .camera import ARROW as ARROW, LONGEST as LONGEST
from .film import (
    about_run as about_run,
    animate as animate,
    check_output as check_output,
    ground_of as ground_of,
)
from .motion import bottom as bottom
from .skeleton import Skeleton as Skeleton
