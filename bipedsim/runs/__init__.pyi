from .beside import compiling_beside
from .content import run_content
from .faults import ANKLES, FIELDS, IMU, JOINTS, Fault, FaultSchedule, for_run, read_faults
from .names import SCENARIO_FILES
from .pushes import HEADING, Push, PushSchedule, heading_of, parse_pushes
from .replay import Replayed, is_step, patches_of, replay_step, watch
from .rerun import Changes, Difference, Rerun, describe_action, describe_push, describe_run, rerun
from .runner import SETTLE, Prepared, Run, RunInterruptedError, append, prepare, run
from .scenario import SCENARIOS, Scenario, get_scenario
from .scenario_host import controller_params_for, no_velocity
from .velocities import PERIOD_NS, PlanarVelocity, Velocity, VelocitySchedule, parse_velocities
from .worker_pool import WorkerPool, without_interrupts

__all__ = [
    "ANKLES",
    "FIELDS",
    "HEADING",
    "IMU",
    "JOINTS",
    "PERIOD_NS",
    "SCENARIOS",
    "SCENARIO_FILES",
    "SETTLE",
    "Changes",
    "Difference",
    "Fault",
    "FaultSchedule",
    "PlanarVelocity",
    "Prepared",
    "Push",
    "PushSchedule",
    "Replayed",
    "Rerun",
    "Run",
    "RunInterruptedError",
    "Scenario",
    "Velocity",
    "VelocitySchedule",
    "WorkerPool",
    "append",
    "compiling_beside",
    "controller_params_for",
    "describe_action",
    "describe_push",
    "describe_run",
    "for_run",
    "get_scenario",
    "heading_of",
    "is_step",
    "no_velocity",
    "parse_pushes",
    "parse_velocities",
    "patches_of",
    "prepare",
    "read_faults",
    "replay_step",
    "rerun",
    "run",
    "run_content",
    "watch",
    "without_interrupts",
]
