from . import errors
from .analysis import ForcePlate, force_plate, load_run, low_pass, standing_rows
from .config import RunConfig, param
from .contact import CONTACT_MODELS, ContactResult
from .control import CONTROLLERS, Controller, make_controller
from .errors import BipedSimError, ConfigError, DivergenceError, RecordingError, UnknownNameError
from .ground import GROUNDS, Ground, Patch, get_ground
from .model import (
    PRESETS,
    ROBOTS,
    Robot,
    Sole,
    at_posture,
    com_position,
    foot_poses,
    inverse_kinematics,
    load_robot,
    stability_ratio,
    standing_posture,
)
from .recording import Recording, export_csv
from .runs import SCENARIOS, RunInterruptedError, Scenario, get_scenario, run
from .sim import Command, Observation, Simulator, Snapshot
from .view import plot, show, show_motion
from .view.animation import animate

__version__: str

__all__ = [
    "CONTACT_MODELS",
    "CONTROLLERS",
    "GROUNDS",
    "PRESETS",
    "ROBOTS",
    "SCENARIOS",
    "BipedSimError",
    "Command",
    "ConfigError",
    "ContactResult",
    "Controller",
    "DivergenceError",
    "ForcePlate",
    "Ground",
    "Observation",
    "Patch",
    "Recording",
    "RecordingError",
    "Robot",
    "RunConfig",
    "RunInterruptedError",
    "Scenario",
    "Simulator",
    "Snapshot",
    "Sole",
    "UnknownNameError",
    "__version__",
    "animate",
    "at_posture",
    "com_position",
    "errors",
    "export_csv",
    "foot_poses",
    "force_plate",
    "get_ground",
    "get_scenario",
    "inverse_kinematics",
    "load_robot",
    "load_run",
    "low_pass",
    "make_controller",
    "param",
    "plot",
    "run",
    "show",
    "show_motion",
    "stability_ratio",
    "standing_posture",
    "standing_rows",
]
