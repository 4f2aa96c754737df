from .csv import export_csv
from .load import load_recording
from .recording import ABSENT_MODE, CONTACT_FIELDS, READOUTS, WALL_CLOCK_NS, Recording

__all__ = [
    "ABSENT_MODE",
    "CONTACT_FIELDS",
    "READOUTS",
    "WALL_CLOCK_NS",
    "Recording",
    "export_csv",
    "load_recording",
]
