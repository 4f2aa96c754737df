from . import errors as errors
from .analysis import (
    ForcePlate as ForcePlate,
    force_plate as force_plate,
    load_run as load_run,
    low_pass as low_pass,
    standing_rows as standing_rows,
)
from .config import RunConfig as RunConfig, param as param
from .contact import CONTACT_MODELS as CONTACT_MODELS, ContactResult as ContactResult
from .control import CONTROLLERS as CONTROLLERS, Controller as Controller, make_controller as make_controller
from .errors import (
    BipedSimError as BipedSimError,
    ConfigError as ConfigError,
    DivergenceError as DivergenceError,
    RecordingError as RecordingError,
    UnknownNameError as UnknownNameError,
)
from .ground import (
    GROUNDS as GROUNDS,
    Ground as Ground,
    HeightField as HeightField,
    Patch as Patch,
    get_ground as get_ground,
)
from .model import (
    PRESETS as PRESETS,
    ROBOTS as ROBOTS,
    Robot as Robot,
    Sole as Sole,
    at_posture as at_posture,
    com_position as com_position,
    foot_poses as foot_poses,
    inverse_kinematics as inverse_kinematics,
    load_robot as load_robot,
    stability_ratio as stability_ratio,
    standing_posture as standing_posture,
)
from .recording import Recording as Recording, export_csv as export_csv
from .runs import (
    SCENARIOS as SCENARIOS,
    RunInterruptedError as RunInterruptedError,
    Scenario as Scenario,
    get_scenario as get_scenario,
    run as run,
)
from .sim import Command as Command, Observation as Observation, Simulator as Simulator, Snapshot as Snapshot
from .view import plot as plot, show as show, show_motion as show_motion
from .view.animation import animate as animate

__version__: str
