from . import schema as schema
from .csv import (
    CsvColumns as CsvColumns,
    CsvTable as CsvTable,
    export_csv as export_csv,
    has_columns_of_a_run as has_columns_of_a_run,
)
from .files import write_text as write_text, writing as writing
from .load import load_recording as load_recording, read_blocks as read_blocks
from .plan import PLANNED as PLANNED, Plan as Plan, plan_of as plan_of, without_plan as without_plan
from .recording import (
    Recording as Recording,
    between as between,
    checksum as checksum,
    joined as joined,
    nothing_between as nothing_between,
)
from .schema import (
    ABSENT_MODE as ABSENT_MODE,
    COLUMNS as COLUMNS,
    CONTACT_FIELDS as CONTACT_FIELDS,
    OBJECT_COMPONENTS as OBJECT_COMPONENTS,
    READOUTS as READOUTS,
    WALL_CLOCK_NS as WALL_CLOCK_NS,
    Column as Column,
    columns_on as columns_on,
)
