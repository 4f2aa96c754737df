from .commands import Commands
from .controller_inputs import ControllerInputs
from .controller_outputs import ControllerOutputs
from .diagnostics import publish_status
from .drops import Drops
from .inbox import Background, HandledByLoop, Inbox
from .own_core import ANY, AUTO, OwnCore, wrong_cores
from .publishers import Publishers, SensorPublishers
from .rate_check import judge, measure
from .realtime import NS_PER_S, Histogram, RateKeeper, StayAwake, run_urgently, sleep_on_time
from .sim_loop import SimLoop
from .sim_params import SimParams, wrong_sign
from .sim_statistics import Statistics, write_json

__all__ = [
    "ANY",
    "AUTO",
    "NS_PER_S",
    "Background",
    "Commands",
    "ControllerInputs",
    "ControllerOutputs",
    "Drops",
    "HandledByLoop",
    "Histogram",
    "Inbox",
    "OwnCore",
    "Publishers",
    "RateKeeper",
    "SensorPublishers",
    "SimLoop",
    "SimParams",
    "Statistics",
    "StayAwake",
    "judge",
    "measure",
    "publish_status",
    "run_urgently",
    "sleep_on_time",
    "write_json",
    "wrong_cores",
    "wrong_sign",
]
