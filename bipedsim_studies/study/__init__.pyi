from .config import Plan, StudyConfig, Trial, make_plan, read_plan
from .results import Results, read_rows, wilson
from .run_study import run_study
from .search import Threshold, threshold
from .workers import DaskWorkers, Killed, LostWorkersError, Workers, add_options, alive, asked_jobs, workers

__all__ = [
    "DaskWorkers",
    "Killed",
    "LostWorkersError",
    "Plan",
    "Results",
    "StudyConfig",
    "Threshold",
    "Trial",
    "Workers",
    "add_options",
    "alive",
    "asked_jobs",
    "make_plan",
    "read_plan",
    "read_rows",
    "run_study",
    "threshold",
    "wilson",
    "workers",
]
