from .config import (
    StudyConfig as StudyConfig,
    StudyPlan as StudyPlan,
    StudyTrial as StudyTrial,
    digest as digest,
    make_plan as make_plan,
    read_plan as read_plan,
)
from .limited import LIMIT as LIMIT, time_limit as time_limit
from .needs import ChangedError as ChangedError, Needs as Needs
from .options import (
    ONE_PROCESS as ONE_PROCESS,
    Parallel as Parallel,
    add_output as add_output,
    add_parallel as add_parallel,
    add_settings as add_settings,
    in_settings as in_settings,
    output as output,
    parallel as parallel,
    read_settings as read_settings,
    shows_progress as shows_progress,
)
from .processes import (
    DaskWorkers as DaskWorkers,
    Killed as Killed,
    LostWorkersError as LostWorkersError,
    alive as alive,
    workers as workers,
)
from .results import (
    Results as Results,
    read_about as read_about,
    read_rows as read_rows,
    wilson as wilson,
)
from .search import Threshold as Threshold, threshold as threshold
from .study_run import run_study as run_study, run_with_options as run_with_options
from .table import error_lines as error_lines, same_lines as same_lines
from .trial import FAILED as FAILED, STOOD as STOOD, check_figures as check_figures, meets as meets
