from .ankles import centre_of_pressure, fill_from_ankles, sole_wrench
from .com import ComMotion, com_motion, robot_of
from .configurations import complete_rows, name_of, recorded_configurations
from .controller import controller_figures, estimate_errors
from .fall import OUTCOME, fall_time, has_fallen
from .feet import creep_rate, lifts, settled_rows, sole_depth, sole_drift
from .force_plates import (
    PlateRun,
    PlateSum,
    contact_figures,
    contacts,
    filtered,
    load_plates,
    plate_figures,
    plate_table,
    running_mean,
    sum_of_plates,
)
from .gait import Step, gait_steps
from .load_run import Gathers, completed, gather, load_run
from .loads import CARRIES, PRESSES
from .plate_grid import Grid, expected, grid_lines, grid_test, read_plate
from .plates import (
    ForcePlate,
    force_plate,
    low_pass,
    other_bodies,
    rotate,
    sample_rate,
    standing_rows,
    summary,
    world_wrench,
)
from .run_summary import RunSummary, with_statistics
from .summary_text import in_words, length_text, missed_share, physics_text, silence_text, summary_lines, unit_of
from .verdict import Verdict, with_stop

__all__ = [
    "CARRIES",
    "OUTCOME",
    "PRESSES",
    "ComMotion",
    "ForcePlate",
    "Gathers",
    "Grid",
    "PlateRun",
    "PlateSum",
    "RunSummary",
    "Step",
    "Verdict",
    "centre_of_pressure",
    "com_motion",
    "complete_rows",
    "completed",
    "contact_figures",
    "contacts",
    "controller_figures",
    "creep_rate",
    "estimate_errors",
    "expected",
    "fall_time",
    "fill_from_ankles",
    "filtered",
    "force_plate",
    "gait_steps",
    "gather",
    "grid_lines",
    "grid_test",
    "has_fallen",
    "in_words",
    "length_text",
    "lifts",
    "load_plates",
    "load_run",
    "low_pass",
    "missed_share",
    "name_of",
    "other_bodies",
    "physics_text",
    "plate_figures",
    "plate_table",
    "read_plate",
    "recorded_configurations",
    "robot_of",
    "rotate",
    "running_mean",
    "sample_rate",
    "settled_rows",
    "silence_text",
    "sole_depth",
    "sole_drift",
    "sole_wrench",
    "standing_rows",
    "sum_of_plates",
    "summary",
    "summary_lines",
    "unit_of",
    "with_statistics",
    "with_stop",
    "world_wrench",
]
