from .config import (
    Plan as Plan,
    StudyConfig as StudyConfig,
    Trial as Trial,
    digest as digest,
    make_plan as make_plan,
    read_plan as read_plan,
)
from .limited import LIMIT as LIMIT
from .needs import ChangedError as ChangedError, Needs as Needs
from .options import add_options as add_options, asked_jobs as asked_jobs
from .results import (
    Results as Results,
    read_about as read_about,
    read_rows as read_rows,
    wilson as wilson,
    write_whole as write_whole,
)
from .run_study import run_study as run_study
from .search import Threshold as Threshold, threshold as threshold
from .table import error_lines as error_lines, same_lines as same_lines
from .trial import FAILED as FAILED, check_figures as check_figures
from .workers import (
    DaskWorkers as DaskWorkers,
    Killed as Killed,
    LostWorkersError as LostWorkersError,
    Workers as Workers,
    alive as alive,
    workers as workers,
)
