from .csv import export_csv
from .recording import ABSENT_MODE, CONTACT_FIELDS, READOUTS, WALL_CLOCK_NS, Recording

__all__ = ["ABSENT_MODE", "CONTACT_FIELDS", "READOUTS", "WALL_CLOCK_NS", "Recording", "export_csv"]
