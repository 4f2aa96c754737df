from .commands import Commands as Commands
from .controller_inputs import ControllerInputs as ControllerInputs
from .controller_outputs import ControllerOutputs as ControllerOutputs
from .diagnostics import publish_status as publish_status
from .drive_params import DriveParams as DriveParams
from .drops import Drops as Drops
from .inbox import (
    Background as Background,
    Inbox as Inbox,
    subscribe_raw as subscribe_raw,
    take_raw as take_raw,
)
from .operations import (
    REQUESTS as REQUESTS,
    carry_out as carry_out,
    in_own_axes as in_own_axes,
    read_request as read_request,
)
from .own_core import ANY as ANY, AUTO as AUTO, OwnCore as OwnCore, wrong_cores as wrong_cores
from .publishers import Publishers as Publishers, SensorPublishers as SensorPublishers
from .rate_check import judge as judge, measure as measure
from .realtime import (
    LONGEST_WAIT_NS as LONGEST_WAIT_NS,
    Histogram as Histogram,
    RateKeeper as RateKeeper,
    StayAwake as StayAwake,
    may_run_urgently as may_run_urgently,
    real_time_priority as real_time_priority,
    run_urgently as run_urgently,
    sleep_on_time as sleep_on_time,
)
from .sim_loop import SimLoop as SimLoop
from .sim_params import SimParams as SimParams, wrong_sign as wrong_sign
from .sim_statistics import Statistics as Statistics, write_json as write_json
from .tracking import ErrorCode as ErrorCode, Tracking as Tracking
