from .names import SCENARIO_FILES
from .pushes import HEADING, Push, PushSchedule, heading_of, parse_pushes
from .runner import SETTLE, Prepared, Run, RunInterruptedError, append, prepare, run
from .scenario import SCENARIOS, Scenario, get_scenario
from .scenario_host import controller_params_for, no_velocity
from .velocities import PERIOD_NS, PlanarVelocity, Velocity, VelocitySchedule, parse_velocities
from .worker_pool import WorkerPool

__all__ = [
    "HEADING",
    "PERIOD_NS",
    "SCENARIOS",
    "SCENARIO_FILES",
    "SETTLE",
    "PlanarVelocity",
    "Prepared",
    "Push",
    "PushSchedule",
    "Run",
    "RunInterruptedError",
    "Scenario",
    "Velocity",
    "VelocitySchedule",
    "WorkerPool",
    "append",
    "controller_params_for",
    "get_scenario",
    "heading_of",
    "no_velocity",
    "parse_pushes",
    "parse_velocities",
    "prepare",
    "run",
]
