from .beside import compiling_beside as compiling_beside
from .bits import compare_bits as compare_bits
from .content import run_content as run_content
from .faults import (
    ANKLES as ANKLES,
    FIELDS as FIELDS,
    HEIGHTS as HEIGHTS,
    IMU as IMU,
    IMUS as IMUS,
    JOINTS as JOINTS,
    SWITCHES as SWITCHES,
    Fault as Fault,
    FaultSchedule as FaultSchedule,
    for_run as for_run,
    read_faults as read_faults,
)
from .names import SCENARIO_FILES as SCENARIO_FILES
from .pushes import (
    HEADING as HEADING,
    Push as Push,
    PushSchedule as PushSchedule,
    heading_of as heading_of,
    parse_pushes as parse_pushes,
)
from .replay import (
    Changes as Changes,
    RecordingDifference as RecordingDifference,
    Rerun as Rerun,
    describe_action as describe_action,
    describe_push as describe_push,
    describe_run as describe_run,
    rerun as rerun,
)
from .rollout import Rollout as Rollout, label_of as label_of
from .runner import (
    SETTLE as SETTLE,
    Prepared as Prepared,
    Run as Run,
    RunInterruptedError as RunInterruptedError,
    append as append,
    prepare as prepare,
    run as run,
)
from .saved_step import (
    Replayed as Replayed,
    is_step as is_step,
    replay_step as replay_step,
    watch as watch,
)
from .scenario import SCENARIOS as SCENARIOS, Scenario as Scenario, get_scenario as get_scenario
from .scenario_host import controller_params_for as controller_params_for, no_velocity as no_velocity
from .trial_walks import (
    DISTANCE as DISTANCE,
    WalkTrial as WalkTrial,
    find_walk as find_walk,
    walk_trial as walk_trial,
)
from .velocities import (
    PERIOD_NS as PERIOD_NS,
    PlanarVelocity as PlanarVelocity,
    Velocity as Velocity,
    VelocitySchedule as VelocitySchedule,
    parse_velocities as parse_velocities,
)
from .worker_pool import WorkerPool as WorkerPool, without_interrupts as without_interrupts
