from .panel import Panel as Panel
from .presence import Presence as Presence, RunningRobot as RunningRobot
from .readings import Readings as Readings
from .remote import CONTROLLER as CONTROLLER, SIM as SIM, Answer as Answer, Remote as Remote
from .steering import HELP as HELP, Steering as Steering, TeleopParams as TeleopParams
from .view_params import ViewParams as ViewParams
