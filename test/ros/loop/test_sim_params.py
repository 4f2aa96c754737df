"""Values that no node parameter may have."""

from __future__ import annotations

from typing import Any

import pytest
from refusals import refusal

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from bipedsim.config import from_mapping
from bipedsim_ros.bringup.external_node import ExternalNodeParams
from bipedsim_ros.live.view_params import ViewParams
from bipedsim_ros.loop import SimParams
from bipedsim_ros.nodes.controller_node import ControllerNodeParams
from bipedsim_ros.nodes.recorder_node import RecorderParams


@pytest.mark.parametrize("cls", [SimParams, ControllerNodeParams, RecorderParams, ViewParams, ExternalNodeParams])
def test_whoever_takes_the_sign_of_wrenches_takes_no_factor(cls: type[Any]) -> None:
    required = {"command": "true"} if cls is ExternalNodeParams else {}
    for sign in (1.0, -1.0):
        assert from_mapping(cls, {**required, "ft_sign": sign}, "here").ft_sign == sign
    with refusal(place="here: ft_sign", value=0.5):
        from_mapping(cls, {**required, "ft_sign": 0.5}, "here")
