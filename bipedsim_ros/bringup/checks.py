"""Check arguments that the nodes of a launch would refuse, before any of the nodes starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bipedsim.config import check_all
from bipedsim.contact import contact_params
from bipedsim.control import controller_params, find_controller
from bipedsim.ground import get_ground
from bipedsim.model import Robot, load_robot, read_hardware, start_configuration
from bipedsim.runs import FaultSchedule, read_faults
from bipedsim_ros.bringup.bringup import BringUp
from bipedsim_ros.interfaces import check_interface, get_interface


def check_names(bringup: BringUp) -> None:
    """Check names and their parameters: robot, ground, hardware, faults, controller and contact model.

    With a parameter file, which may name another robot, only the nodes check them.

    Raises:
        ConfigError: The message lists all errors at once.
    """
    if bringup.arguments.params_file:
        return
    arguments = bringup.arguments
    parameters = {node.executable: node.parameters for node in bringup.nodes}
    sim = parameters.get("sim_node")
    # All other checks need the robot.
    robot = load_robot(arguments.robot)
    checks: list[Callable[[], object]] = []
    if sim is not None:
        model = arguments.contact_model
        contact = _under(sim, f"{model}.")
        checks += [
            lambda: start_configuration(robot, sim.get("posture", "")),
            lambda: get_ground(sim.get("ground", arguments.ground)),
            lambda: read_hardware(sim.get("hardware", arguments.hardware), robot),
            lambda: FaultSchedule(read_faults(sim.get("faults", "")), robot, 1.0 / arguments.rate, 0),
            lambda: contact_params(model, contact) if contact else None,
        ]
    if "controller_node" in parameters:
        checks.append(lambda: _check_controller(parameters["controller_node"], arguments.controller, robot))
    if arguments.interface and (bridge := get_interface(arguments.interface).executable):
        node = parameters[bridge]
        checks.append(lambda: check_interface(arguments.interface, robot, node))
    check_all(checks)


def _check_controller(node: Mapping[str, Any], controller: str, robot: Robot) -> None:
    prefix, _ = find_controller(controller)
    controller_params(controller, robot, _under(node, f"{prefix}."))


def _under(parameters: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the parameters of a node that begin with ``prefix``, without it; ``kp.l_knee`` is an entry of ``kp``."""
    values: dict[str, Any] = {}
    for name, value in parameters.items():
        if not name.startswith(prefix):
            continue
        head, dot, entry = name.removeprefix(prefix).partition(".")
        if dot:
            values[head] = {**values.get(head, {}), entry: value}
        else:
            values[head] = value
    return values
