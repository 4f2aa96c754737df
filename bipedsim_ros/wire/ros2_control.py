"""Write the ``<ros2_control>`` element of a robot, from which a controller manager knows its joints."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim.model import Robot, located
from bipedsim_ros.wire import topics

PLUGIN = "joint_state_topic_hardware_interface/JointStateTopicSystem"
INTERFACES = ("position", "velocity", "effort")


def controlled_urdf(robot: Robot) -> str:
    """Return the URDF of a robot with a ``<ros2_control>`` element: its own, or :func:`control_block`."""
    text = located(robot.urdf_xml, robot.urdf_path)
    if "<ros2_control" in text:
        return text
    begin, end, rest = text.rpartition("</robot>")
    if not end:
        raise ConfigError("cannot take a <ros2_control> element: it has no </robot>", "robot", robot.urdf_path)
    return f"{begin}{control_block(robot)}{end}{rest}"


def control_block(robot: Robot) -> str:
    """Return the element ``<ros2_control>`` of a robot: its joints with interfaces, limits and initial positions.

    All joints have the same interfaces, because the hardware interface sends values without the name of their joint.
    """
    lines = [
        f'  <ros2_control name={quoteattr(robot.name)} type="system">',
        "    <hardware>",
        f"      <plugin>{PLUGIN}</plugin>",
        f'      <param name="joint_commands_topic">{topics.JOINT_COMMANDS.name}</param>',
        f'      <param name="joint_states_topic">{topics.ROBOT_JOINT_STATES}</param>',
        "    </hardware>",
    ]
    limits = (
        (robot.position_lower, robot.position_upper),
        (-robot.velocity_limit, robot.velocity_limit),
        (-robot.effort_limit, robot.effort_limit),
    )
    for j, name in enumerate(robot.joint_names):
        lines.append(f"    <joint name={quoteattr(name)}>")
        for interface, (low, high) in zip(INTERFACES, limits, strict=True):
            bounds = [("min", low[j]), ("max", high[j])]
            lines += _interface("command", interface, [(key, value) for key, value in bounds if np.isfinite(value)])
        for interface in INTERFACES:
            # Commands begin at this value. Without it, topic_based_ros2_control would command 0 rad at the start.
            initial = [("initial_value", robot.posture[j])] if interface == "position" else []
            lines += _interface("state", interface, initial)
        lines.append("    </joint>")
    return "\n".join([*lines, "  </ros2_control>"]) + "\n"


def _interface(kind: str, name: str, params: list[tuple[str, float]]) -> Iterator[str]:
    """Yield the lines of a command or state interface."""
    if not params:
        yield f'      <{kind}_interface name="{name}"/>'
        return
    yield f'      <{kind}_interface name="{name}">'
    for key, value in params:
        yield f'        <param name="{key}">{round(float(value), 12)!r}</param>'
    yield f"      </{kind}_interface>"
