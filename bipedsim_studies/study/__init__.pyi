from .config import Plan, Trial, read_plan
from .results import Results, wilson
from .run_study import run_study
from .search import Threshold, threshold
from .workers import DaskWorkers, Killed, LostWorkersError, Workers, add_options, alive, asked_jobs, workers

__all__ = [
    "DaskWorkers",
    "Killed",
    "LostWorkersError",
    "Plan",
    "Results",
    "Threshold",
    "Trial",
    "Workers",
    "add_options",
    "alive",
    "asked_jobs",
    "read_plan",
    "run_study",
    "threshold",
    "wilson",
    "workers",
]
