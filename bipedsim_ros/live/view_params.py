"""Define the parameters of view_node. This module does not need ROS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bipedsim.config import RunConfig, like, param
from bipedsim.errors import ConfigError
from bipedsim.view.page import PageParams
from bipedsim_ros.live.steering import TeleopParams
from bipedsim_ros.loop import SimParams, wrong_sign


@dataclass(frozen=True)
class ViewParams(TeleopParams):
    """Parameters of view_node, with steps and limits of the velocities from its page."""

    robot: str = like(RunConfig, "robot", "", "path of a robot.yaml; empty: what the simulator or the controller says")
    ground: str = like(SimParams, "ground", doc="what a robot stands on; a simulator says its own")
    ft_sign: float = like(SimParams, "ft_sign")
    host: str = like(PageParams, "host")
    port: int = like(PageParams, "port")
    frame_rate: float = param(30.0, "how often the page shows what is new", unit="Hz", low=1.0, high=120.0)
    browser: bool = param(False, "open a browser on the page; the address is always printed")

    def problems(self) -> Iterator[ConfigError]:
        """Yield an error message for each invalid field."""
        yield from wrong_sign(self.ft_sign)
