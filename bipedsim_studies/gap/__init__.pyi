from .compare import on_common_windows as on_common_windows, predict_recording as predict_recording
from .conventions import convention_fault as convention_fault
from .external import acting as acting, external_forces as external_forces
from .floor import noise as noise, rows_per_value as rows_per_value, unshaken_noise as unshaken_noise
from .models import GapModel as GapModel, make_model as make_model
from .paired import NO_INTERVAL as NO_INTERVAL, DifferenceInterval as DifferenceInterval, difference as difference
from .predict import HORIZONS as HORIZONS, Gap as Gap, measure_gap as measure_gap
from .recorded import RobotRun as RobotRun, robot_run as robot_run
from .report import (
    COLOURS as COLOURS,
    as_json as as_json,
    compared as compared,
    no_better_than_held as no_better_than_held,
    plot as plot,
    rms_errors as rms_errors,
    windows as windows,
)
from .signals import QUANTITIES as QUANTITIES
from .starts import StartStates as StartStates, estimate_starts as estimate_starts
