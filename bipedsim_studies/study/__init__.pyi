from .config import Plan, StudyConfig, Trial, digest, make_plan, read_plan
from .limited import LIMIT
from .needs import ChangedError, Needs
from .options import add_options, asked_jobs
from .results import Results, read_about, read_rows, wilson, write_whole
from .run_study import run_study
from .search import Threshold, threshold
from .table import error_lines, same_lines
from .trial import FAILED, check_figures
from .workers import DaskWorkers, Killed, LostWorkersError, Workers, alive, workers

__all__ = [
    "FAILED",
    "LIMIT",
    "ChangedError",
    "DaskWorkers",
    "Killed",
    "LostWorkersError",
    "Needs",
    "Plan",
    "Results",
    "StudyConfig",
    "Threshold",
    "Trial",
    "Workers",
    "add_options",
    "alive",
    "asked_jobs",
    "check_figures",
    "digest",
    "error_lines",
    "make_plan",
    "read_about",
    "read_plan",
    "read_rows",
    "run_study",
    "same_lines",
    "threshold",
    "wilson",
    "workers",
    "write_whole",
]
