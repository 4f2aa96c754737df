from .base import Engine, EngineUnavailableError, Soles, not_supported, sole_box
from .table import ENGINES, REFERENCE, engine_version, make_engine

__all__ = [
    "ENGINES",
    "REFERENCE",
    "Engine",
    "EngineUnavailableError",
    "Soles",
    "engine_version",
    "make_engine",
    "not_supported",
    "sole_box",
]
