from . import schema
from .csv import CsvColumns, CsvTable, export_csv
from .load import load_recording, read_blocks
from .plan import PLANNED, Plan, plan_of, without_plan
from .recording import Recording, between, checksum, joined, nothing_between
from .schema import (
    ABSENT_MODE,
    COLUMNS,
    CONTACT_FIELDS,
    OBJECT_COMPONENTS,
    READOUTS,
    WALL_CLOCK_NS,
    Column,
    columns_on,
)

__all__ = [
    "ABSENT_MODE",
    "COLUMNS",
    "CONTACT_FIELDS",
    "OBJECT_COMPONENTS",
    "PLANNED",
    "READOUTS",
    "WALL_CLOCK_NS",
    "Column",
    "CsvColumns",
    "CsvTable",
    "Plan",
    "Recording",
    "between",
    "checksum",
    "columns_on",
    "export_csv",
    "joined",
    "load_recording",
    "nothing_between",
    "plan_of",
    "read_blocks",
    "schema",
    "without_plan",
]
