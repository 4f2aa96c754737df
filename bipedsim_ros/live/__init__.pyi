from .panel import Panel
from .presence import Found, Presence
from .readings import Readings
from .remote import CONTROLLER, SIM, Answer, Remote
from .steering import HELP, Steering, TeleopParams
from .view_params import ViewParams

__all__ = [
    "CONTROLLER",
    "HELP",
    "SIM",
    "Answer",
    "Found",
    "Panel",
    "Presence",
    "Readings",
    "Remote",
    "Steering",
    "TeleopParams",
    "ViewParams",
]
