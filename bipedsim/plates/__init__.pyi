from .amplifier import Amplifiers as Amplifiers
from .chain import Chain as Chain, advance as advance
from .names import PLATES as PLATES
from .schema import (
    MOST as MOST,
    ModelFile as ModelFile,
    PlateConfig as PlateConfig,
    as_json as as_json,
    check_plates as check_plates,
    describe_model as describe_model,
    from_json as from_json,
    parse_plates as parse_plates,
    per_channel as per_channel,
)
from .shares import Foot as Foot, add_foot as add_foot
from .signals import (
    CHANNELS as CHANNELS,
    THRESHOLD as THRESHOLD,
    PlateGeometry as PlateGeometry,
    PlateSignals as PlateSignals,
)
from .surfaces import (
    NO_MOMENT as NO_MOMENT,
    REACH as REACH,
    Surfaces as Surfaces,
    add_force as add_force,
    add_point as add_point,
    clear as clear,
    plate_at as plate_at,
)
