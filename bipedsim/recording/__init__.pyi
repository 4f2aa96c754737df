from . import schema
from .csv import export_csv
from .load import load_recording, read_blocks
from .recording import Recording, joined
from .schema import ABSENT_MODE, COLUMNS, CONTACT_FIELDS, READOUTS, WALL_CLOCK_NS, Column, columns_on

__all__ = [
    "ABSENT_MODE",
    "COLUMNS",
    "CONTACT_FIELDS",
    "READOUTS",
    "WALL_CLOCK_NS",
    "Column",
    "Recording",
    "columns_on",
    "export_csv",
    "joined",
    "load_recording",
    "read_blocks",
    "schema",
]
