from .names import SCENARIO_FILES
from .pushes import HEADING, PushSchedule, heading_of, parse_pushes
from .runner import SETTLE, Prepared, Run, RunInterruptedError, RunSettings, append, prepare, run_headless
from .scenario import Push, Scenario
from .scenario_file import SCENARIOS, get_scenario
from .scenario_host import no_velocity, told
from .velocities import PERIOD_NS, Velocity, VelocitySchedule, parse_velocities
from .worker_pool import WorkerPool

__all__ = [
    "HEADING",
    "PERIOD_NS",
    "SCENARIOS",
    "SCENARIO_FILES",
    "SETTLE",
    "Prepared",
    "Push",
    "PushSchedule",
    "Run",
    "RunInterruptedError",
    "RunSettings",
    "Scenario",
    "Velocity",
    "VelocitySchedule",
    "WorkerPool",
    "append",
    "get_scenario",
    "heading_of",
    "no_velocity",
    "parse_pushes",
    "parse_velocities",
    "prepare",
    "run_headless",
    "told",
]
