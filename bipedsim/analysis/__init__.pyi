from .ankles import centre_of_pressure, fill_from_ankles, sole_wrench
from .com import ComMotion, com_motion, robot_of
from .configurations import complete_rows, name_of, recorded_configurations
from .controller import controller_figures, estimate_errors
from .fall import OUTCOME, fall_time, has_fallen
from .feet import creep_rate, lifts, settled_rows, sole_depth, sole_drift
from .gait import Step, gait_steps
from .load_run import Gathers, completed, gather, load_run
from .loads import CARRIES, PRESSES
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
    "RunSummary",
    "Step",
    "Verdict",
    "centre_of_pressure",
    "com_motion",
    "complete_rows",
    "completed",
    "controller_figures",
    "creep_rate",
    "estimate_errors",
    "fall_time",
    "fill_from_ankles",
    "force_plate",
    "gait_steps",
    "gather",
    "has_fallen",
    "in_words",
    "length_text",
    "lifts",
    "load_run",
    "low_pass",
    "missed_share",
    "name_of",
    "other_bodies",
    "physics_text",
    "recorded_configurations",
    "robot_of",
    "rotate",
    "sample_rate",
    "settled_rows",
    "silence_text",
    "sole_depth",
    "sole_drift",
    "sole_wrench",
    "standing_rows",
    "summary",
    "summary_lines",
    "unit_of",
    "with_statistics",
    "with_stop",
    "world_wrench",
]
