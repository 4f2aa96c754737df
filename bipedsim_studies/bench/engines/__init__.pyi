from .base import (
    Engine as Engine,
    EngineUnavailableError as EngineUnavailableError,
    Soles as Soles,
    not_supported as not_supported,
    sole_box as sole_box,
)
from .scene import BodyShape as BodyShape, Scene as Scene, body_shapes as body_shapes, box_heap as box_heap
from .table import (
    ENGINES as ENGINES,
    REFERENCE as REFERENCE,
    engine_version as engine_version,
    make_engine as make_engine,
)
