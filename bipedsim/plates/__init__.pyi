from .amplifier import Amplifiers
from .chain import Chain, advance
from .names import PLATES
from .schema import (
    MOST,
    ModelFile,
    PlateConfig,
    as_json,
    check_plates,
    describe_model,
    from_json,
    parse_plates,
    per_channel,
)
from .shares import Foot, add_foot
from .signals import CHANNELS, THRESHOLD, PlateGeometry, PlateSignals
from .surfaces import REACH, Surfaces, add_force, add_point, clear, plate_at

__all__ = [
    "CHANNELS",
    "MOST",
    "PLATES",
    "REACH",
    "THRESHOLD",
    "Amplifiers",
    "Chain",
    "Foot",
    "ModelFile",
    "PlateConfig",
    "PlateGeometry",
    "PlateSignals",
    "Surfaces",
    "add_foot",
    "add_force",
    "add_point",
    "advance",
    "as_json",
    "check_plates",
    "clear",
    "describe_model",
    "from_json",
    "parse_plates",
    "per_channel",
    "plate_at",
]
