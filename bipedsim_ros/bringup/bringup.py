"""Define the nodes of a launch, their parameters and their order as data, from one table of arguments.

``launch/sim.launch.py`` and ``bipedsim up`` both use this module, so that they start the same nodes. It does not need
ROS.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_type_hints

import yaml

from bipedsim.config import RunConfig, flow_text, from_mapping, help_of, like, param, read_yaml, without_prefix
from bipedsim.control import find_controller
from bipedsim.errors import ConfigError, UnknownNameError, closest, number_in
from bipedsim.runs import PERIOD_NS, Scenario, controller_params_for, get_scenario, no_velocity
from bipedsim.sim import read_gantry
from bipedsim.view.page import check_page
from bipedsim_ros.interfaces import INTERFACES, get_interface
from bipedsim_ros.loop import SimParams
from bipedsim_ros.nodes import RECORDING
from bipedsim_ros.wire import topics

NO_CONTROLLER = "none"
DEMO: Mapping[str, Any] = {"controller": "posture", "duration": 12.0, "record": "runs/demo"}
DEMO_CONTROLLER: Mapping[str, Any] = {"mode": "squat", "squat_delay": 3.0}
"""Arguments and controller parameters of ``bipedsim up --demo``, unless the user gives others."""
NODES = ("sim_node", "controller_node", "recorder_node", "commander_node", "teleop_node", "view_node")
STATE_PUBLISHER = "robot_state_publisher"
"""Name of the node that publishes the links on /tf, of its package, and of the argument that requests it."""
RVIZ = "rviz2"
"""Name of the program and of its package."""


@dataclass(frozen=True)
class Arguments:
    """Arguments of a launch. An argument that is not set keeps the default of the node or of ``params_file``."""

    robot: str = like(RunConfig, "robot")
    contact_model: str = like(RunConfig, "contact_model")
    ground: str = like(SimParams, "ground")
    hardware: str = like(SimParams, "hardware")
    seed: int = like(RunConfig, "seed")
    clock: str = like(SimParams, "clock")
    rate: float = like(RunConfig, "rate")
    real_time_factor: float = like(SimParams, "real_time_factor")
    physics_dt: float = like(SimParams, "physics_dt")
    controller: str = like(
        RunConfig,
        "controller",
        "posture",
        f"package.module:Class of your own, {NO_CONTROLLER} for a node that you start yourself, topic_based for the "
        "controller manager of ros2_control (docs/ros2_control.md), or unitree, the vendor bridge for programs written "
        "for the vendor's robot (docs/unitree.md)",
    )
    scenario: str = like(
        RunConfig,
        "scenario",
        "",
        "name or path of a scenario: pushes, velocity commands, ground and controller if not given; none by default",
    )
    duration: float = like(SimParams, "duration")
    record: str = param("", "folder for the bag, the summary and the plot, such as runs/first; empty records nothing")
    view: bool = param(False, "show the run in the browser, with controls (docs/view.md)")
    rviz: bool = param(False, "show the run in RViz, where rviz2 is installed (docs/tools.md)")
    namespace: str = param("", "namespace of all nodes and topics, such as r1 for /r1/joint_states; none by default")
    params_file: str = param("", "YAML file with ROS parameters of the nodes, such as config/sim.yaml")
    robot_state_publisher: str = param(
        "auto",
        "start robot_state_publisher, which publishes the robot's links on /tf; auto starts it if it is installed",
        choices=("auto", "on", "off"),
    )
    log_level: str = param(
        "info", "minimum severity of logged messages", choices=("debug", "info", "warn", "error", "fatal")
    )
    remap: str = param(
        "",
        "other names of topics, FROM:=TO, separated by blanks, such as '/imu/data:=/torso_imu/imu'; names without a "
        "leading slash are relative to the namespace",
    )

    @property
    def interface(self) -> str:
        """Interface through which third-party programs control the robot; empty if there is none."""
        return self.controller if self.controller in INTERFACES else ""

    @property
    def controlled(self) -> bool:
        """Whether the launch contains controller_node."""
        return self.controller != NO_CONTROLLER and not self.interface


# A recorder may be late, but the loop may not. With few cores and no real-time priority, the recorder must not preempt
# the controller. SCHED_IDLE would help the loop more, but loses messages as soon as another program runs.
_LOW_PRIORITY = ("nice", "-n", "10")
_END_S = 5.0
"""Time that the recorder waits for the end of an interrupted simulator [s]; the simulator drains within 3 s."""
_SIM = tuple(info.name for info in dataclasses.fields(SimParams) if info.name in Arguments.__dataclass_fields__)
_CONTROLLER = ("robot", "rate", "controller")


@dataclass(frozen=True)
class NodeProcess:
    """One node of a launch.

    Attributes:
        executable: Name of the node's executable, such as ``"sim_node"``.
        parameters: ROS parameters, which override ``params_files``.
        params_files: YAML files with ROS parameters.
        ready: Beginning of the output line that reports that the node is ready; empty if no other node waits for it.
        prefix: Command in front of the node's own.
        namespace: Namespace of the node, with a leading slash; empty for none.
        optional: Whether the other nodes continue when this one ends.
        package: Package of the executable.
        remappings: Pairs of topic names: in the code, and in the graph.
        log_level: Minimum severity of logged messages; empty for the default of ROS.
        arguments: Arguments of the executable, before those of ROS.
    """

    executable: str
    parameters: dict[str, Any] = field(default_factory=dict)
    params_files: tuple[Path, ...] = ()
    ready: str = ""
    prefix: tuple[str, ...] = ()
    namespace: str = ""
    optional: bool = False
    package: str = "bipedsim"
    remappings: tuple[tuple[str, str], ...] = ()
    log_level: str = ""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class BringUp:
    """A launch: checked arguments and the resulting nodes, in the order in which they start.

    Attributes:
        arguments: All arguments, defaults included.
        nodes: The nodes; each must be ready before the next one starts.
        run_folder: Folder of the recording; None without a recording.
    """

    arguments: Arguments
    nodes: tuple[NodeProcess, ...]
    run_folder: Path | None


STOP_FILE = "controller.json"
"""File with time and reason of the controller's stop, which controller_node writes next to sim_node's statistics."""


@dataclass(frozen=True)
class _LaunchInputs:
    """Checked inputs from which the nodes of a launch are derived.

    Attributes:
        user_arguments: Arguments set by the user, the vendor bridge or the scenario.
        arguments: All arguments, defaults included.
        scenario: The scenario, if any.
        namespace: Namespace of the nodes, with a leading slash; empty for none.
        files: YAML files with ROS parameters.
        run_folder: Folder of the recording, if any.
        stats_file: File for the statistics of sim_node, if any.
        controller_params, contact_params, interface_params: Parameters by their own names.
    """

    user_arguments: Mapping[str, Any]
    arguments: Arguments
    scenario: Scenario | None
    namespace: str
    files: tuple[Path, ...]
    run_folder: Path | None
    stats_file: Path | None
    controller_params: Mapping[str, Any]
    contact_params: Mapping[str, Any]
    interface_params: Mapping[str, Any]

    def chosen(self, names: Iterable[str]) -> dict[str, Any]:
        """Return those of the named arguments that are set."""
        return {name: self.user_arguments[name] for name in names if name in self.user_arguments}

    @property
    def walks(self) -> bool:
        """Whether the scenario contains velocity commands."""
        return self.scenario is not None and bool(self.scenario.velocity)


def plan(
    user_arguments: Mapping[str, Any],
    controller_params: Mapping[str, Any] | None = None,
    contact_params: Mapping[str, Any] | None = None,
    stats_file: Path | None = None,
    overwrite: bool = False,
    interface_params: Mapping[str, Any] | None = None,
) -> BringUp:
    """Return the nodes to start and their parameters.

    Args:
        user_arguments: Arguments that the user has set; the others keep their defaults.
        controller_params: Parameters of the controller by their own names.
        contact_params: Parameters of the contact model by their own names.
        stats_file: File for the statistics of sim_node; controller_node writes ``controller.json`` next to it.
        overwrite: Whether the caller removes an earlier recording first.
        interface_params: Parameters of the vendor bridge's node by their own names.

    Raises:
        ConfigError: An argument is invalid, or the folder of the recording already contains a bag.
    """
    from_mapping(Arguments, user_arguments, "bring-up")
    scenario = get_scenario(user_arguments["scenario"]) if user_arguments.get("scenario") else None
    if scenario is not None:
        user_arguments = {**_defaults(scenario), **user_arguments}
    arguments = from_mapping(Arguments, user_arguments, "bring-up")
    if arguments.interface:
        _check_interface(arguments)
    _refuse_unused("an interface", interface_params, "no interface", arguments.interface)
    _refuse_unused("the controller", controller_params, f"controller = {arguments.controller}", arguments.controlled)
    changes = {} if scenario is None else {change.name: change.value for change in scenario.changes}
    _refuse_unused("the scenario's changes", changes, f"controller = {arguments.controller}", arguments.controlled)
    if arguments.controlled and ":" not in arguments.controller:
        find_controller(arguments.controller, (NO_CONTROLLER, *INTERFACES))
    namespace = namespace_of(arguments.namespace)
    inputs = _LaunchInputs(
        user_arguments,
        arguments,
        scenario,
        namespace,
        _params_files(arguments, namespace),
        _run_folder(arguments, overwrite),
        stats_file,
        controller_params or {},
        contact_params or {},
        interface_params or {},
    )
    makers = (
        (inputs.run_folder is not None, _recorder),
        (True, _simulator),
        (arguments.controlled, _controller),
        (arguments.interface and get_interface(arguments.interface).executable, _vendor_bridge),
        (inputs.walks, _commander),
        (arguments.view, _viewer),
        (arguments.rviz, _rviz),
        (_wants_state_publisher(arguments), _state_publisher),
    )
    nodes = [make(inputs) for wanted, make in makers if wanted]
    remap = get_interface(arguments.interface).remap if arguments.interface else ""
    remappings = _remappings(f"{remap} {arguments.remap}", namespace)
    log_level = str(user_arguments.get("log_level", ""))
    named = (
        replace(node, namespace=namespace, remappings=(*remappings, *node.remappings), log_level=log_level)
        for node in nodes
    )
    return BringUp(arguments, tuple(named), inputs.run_folder)


def _refuse_unused(owner: str, params: Mapping[str, Any] | None, missing: str, used: object) -> None:
    """Refuse parameters of a node that the launch does not contain."""
    if params and not used:
        raise ConfigError(f"they were given, but {missing}", f"parameters of {owner}: {', '.join(params)}")


def _params_files(arguments: Arguments, namespace: str) -> tuple[Path, ...]:
    """Return the file with ROS parameters, if any.

    Raises:
        ConfigError: The file does not exist, names an unknown node, or is for another namespace.
    """
    if not arguments.params_file:
        return ()
    file = Path(arguments.params_file)
    if not file.is_file():
        raise ConfigError("does not exist", "params_file", arguments.params_file)
    keys = [str(key).rpartition("/") for key in read_yaml(file)]
    refuse_misspelt("node", (name for _, _, name in keys), node_names(), str(file))
    for prefix, slash, name in keys:
        if namespace and name in node_names() and prefix not in (namespace, "/**"):
            raise ConfigError(
                f"outside namespace {namespace}; it applies to no node. Use '{namespace}/{name}', or '/**/{name}' for "
                "every namespace",
                f"{file}: {prefix}{slash}{name}",
            )
    return (file,)


def _run_folder(arguments: Arguments, overwrite: bool) -> Path | None:
    """Return the folder of the recording, if any.

    Raises:
        ConfigError: It already contains a bag that must not be overwritten.
    """
    if not arguments.record:
        return None
    folder = Path(arguments.record)
    if (folder / "bag").exists() and not overwrite:
        raise ConfigError(
            "already contains a bag. Choose another folder, or add --overwrite (bipedsim up, bipedsim control)",
            "record",
            arguments.record,
        )
    return folder


def _recorder(inputs: _LaunchInputs) -> NodeProcess:
    """Return recorder_node, which every other node must wait for."""
    assert inputs.run_folder is not None
    arguments = inputs.arguments
    parameters: dict[str, Any] = {"output": str(inputs.run_folder / "bag"), "robot": arguments.robot}
    parameters |= _ft_sign(inputs.files)
    if arguments.controlled:
        parameters["controller"] = arguments.controller
    # `ros2 launch` interrupts all nodes at the same time.
    parameters["await_end"] = _END_S
    if arguments.clock == "real_time":
        # The recorder precedes all other programs, because a full queue loses messages, but not the loop.
        parameters["priority"] = _priority(inputs) // 2
    return NodeProcess("recorder_node", parameters, inputs.files, ready=RECORDING, prefix=_LOW_PRIORITY)


def _simulator(inputs: _LaunchInputs) -> NodeProcess:
    """Return sim_node."""
    arguments, scenario = inputs.arguments, inputs.scenario
    parameters = inputs.chosen(_SIM)
    if arguments.interface and not inputs.files:
        # The drives hold the last command when a program stops sending, as on a machine without a command timeout.
        parameters["timeout_mode"] = "hold"
    if arguments.interface:
        theirs = get_interface(arguments.interface).simulator
        parameters |= {name: value for name, value in theirs.items() if _value_in_files(inputs.files, name) is None}
    contact_params = without_prefix(inputs.contact_params, arguments.contact_model)
    parameters |= {f"{arguments.contact_model}.{name}": value for name, value in contact_params.items()}
    if scenario is not None:
        parameters = {"title": arguments.scenario, **_start_and_pushes(scenario, arguments.robot), **parameters}
        if scenario.faults:
            parameters["faults"] = f"[{', '.join(fault.text() for fault in scenario.faults)}]"
    if inputs.run_folder is not None:
        # Discovery takes about a second. Without this parameter, the run could begin before the bag.
        parameters["wait_for_recorder"] = True
    if inputs.stats_file is not None:
        parameters["stats_file"] = str(inputs.stats_file)
    return NodeProcess("sim_node", parameters, inputs.files)


def _controller(inputs: _LaunchInputs) -> NodeProcess:
    """Return controller_node.

    Raises:
        ConfigError: The scenario contains velocity commands, and the controller accepts none.
    """
    arguments, scenario = inputs.arguments, inputs.scenario
    parameters = inputs.chosen(_CONTROLLER)
    own = without_prefix(inputs.controller_params, arguments.controller)
    if scenario is not None:
        own = {**controller_params_for(scenario, arguments.controller, arguments.scenario), **own}
        if scenario.changes:
            parameters["changes"] = [change.text() for change in scenario.changes]
    if inputs.walks:
        _check_velocity(arguments.scenario, arguments.controller)
        # Discovery takes a second or more. Without this parameter, the run could begin before the schedule.
        parameters["wait_for_velocity"] = True
        if arguments.clock == "lock_step":
            parameters["cmd_vel_period"] = 1e-9 * PERIOD_NS
    if arguments.clock != "real_time":
        parameters["priority"] = 0
    if arguments.clock == "lock_step":
        parameters["lock_step"] = True
    if inputs.stats_file is not None:
        parameters["stats_file"] = str(inputs.stats_file.with_name(STOP_FILE))
    if inputs.run_folder is not None:
        parameters["wait_for_listeners"] = 2
    prefix = arguments.controller.rpartition(":")[2]
    parameters |= {f"{prefix}.{name}": value for name, value in own.items()}
    return NodeProcess("controller_node", parameters, inputs.files)


def _vendor_bridge(inputs: _LaunchInputs) -> NodeProcess:
    """Return the node of a vendor bridge, which gets the gantry of sim_node."""
    arguments = inputs.arguments
    parameters = inputs.chosen(("robot",))
    if gantry := _simulator(inputs).parameters.get("gantry"):
        parameters["gantry"] = gantry
    parameters["priority"] = _priority(inputs) if arguments.clock == "real_time" else 0
    parameters |= without_prefix(inputs.interface_params, arguments.interface)
    return NodeProcess(get_interface(arguments.interface).executable, parameters, inputs.files)


def _commander(inputs: _LaunchInputs) -> NodeProcess:
    """Return commander_node, which publishes the velocity commands of the scenario."""
    assert inputs.scenario is not None
    parameters: dict[str, Any] = {"schedule": [step.text() for step in inputs.scenario.velocity]}
    if inputs.run_folder is not None:
        parameters["wait_for_listeners"] = 2
    return NodeProcess("commander_node", parameters, inputs.files)


def _viewer(inputs: _LaunchInputs) -> NodeProcess:
    """Return view_node, which shows the run in the browser."""
    check_page()
    return NodeProcess("view_node", opens_browser(inputs.files), inputs.files, optional=True)


def executable_of(package: str, name: str) -> Path | None:
    """Return an executable of a ROS package as `ros2 run` finds it; None if it is not installed."""
    for prefix in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        path = Path(prefix, "lib", package, name)
        known = Path(prefix, "share", "ament_index", "resource_index", "packages", package).is_file()
        if known and os.access(path, os.X_OK):
            return path
    return None


def _wants_state_publisher(arguments: Arguments) -> bool:
    """Return whether to start robot_state_publisher.

    Raises:
        ConfigError: It is requested but not installed.
    """
    if arguments.robot_state_publisher == "off":
        return False
    installed = executable_of(STATE_PUBLISHER, STATE_PUBLISHER) is not None
    if arguments.robot_state_publisher == "on" and not installed:
        raise ConfigError(
            "needs its package. Run: apt install ros-$ROS_DISTRO-robot-state-publisher", STATE_PUBLISHER, "on"
        )
    return installed


def _state_publisher(inputs: _LaunchInputs) -> NodeProcess:
    """Return robot_state_publisher in simulated time, with low priority.

    sim_node publishes the description and odom -> base_link, and this node the joints, so no transform has two
    publishers. Its topic names are absolute. Remappings move them into the namespace of each robot.
    """
    from bipedsim.model import load_robot, located

    robot = inputs.user_arguments.get("robot") or _value_in_files(inputs.files, "robot") or inputs.arguments.robot
    loaded = load_robot(robot)
    urdf = located(loaded.urdf_xml, loaded.urdf_path)
    parameters = {"robot_description": urdf, "use_sim_time": True, "publish_frequency": 50.0}
    relative_names = ((row.name, row.name.removeprefix("/")) for row in (topics.TF, topics.TF_STATIC, topics.CLOCK))
    description = topics.ROBOT_DESCRIPTION.name.removeprefix("/")
    own = (description, f"~/{description}")
    return NodeProcess(
        STATE_PUBLISHER,
        parameters,
        prefix=_LOW_PRIORITY,
        package=STATE_PUBLISHER,
        remappings=(*relative_names, own),
    )


def _rviz(inputs: _LaunchInputs) -> NodeProcess:
    """Return RViz with this project's configuration, for the topics in the namespace.

    Raises:
        ConfigError: RViz or the configuration is not installed.
    """
    if executable_of(RVIZ, RVIZ) is None:
        raise ConfigError(
            "needs rviz2. Run: apt install ros-$ROS_DISTRO-rviz2. Or use view = true, for a view in the browser",
            "rviz",
            True,
        )
    prefixes = (*os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep), sys.prefix)
    shares = [Path(prefix, "share", "bipedsim") for prefix in prefixes if prefix]
    # An editable install has no files in the prefix; then the repository contains the configuration.
    candidates = [folder / "config" / "bipedsim.rviz" for folder in (*shares, Path(__file__).parents[2])]
    config = next((candidate for candidate in candidates if candidate.is_file()), None)
    if config is None:
        raise ConfigError(f"none of {', '.join(map(str, candidates))} exists. Install bipedsim again", "rviz")
    # Topic names in an RViz configuration are absolute.
    configured = dict.fromkeys(re.findall(r"Value: (/\S+)", config.read_text(encoding="utf-8")))
    names = [*configured, topics.TF.name, topics.TF_STATIC.name, topics.CLOCK.name] if inputs.namespace else []
    remappings = tuple((name, f"{inputs.namespace}{name}") for name in names)
    parameters = {"use_sim_time": True}
    arguments = ("-d", str(config))
    return NodeProcess(
        RVIZ,
        parameters,
        prefix=_LOW_PRIORITY,
        package=RVIZ,
        optional=True,
        remappings=remappings,
        arguments=arguments,
    )


def _remappings(text: str, namespace: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs of names in a text FROM:=TO FROM:=TO.

    Raises:
        ConfigError: A part is not a pair, or names a topic outside the namespace, which ROS would silently ignore.
    """
    pairs = [part.partition(":=") for part in text.replace(",", " ").split()]
    invalid = ["".join(pair) for pair in pairs if not all(pair)]
    if invalid:
        raise ConfigError(
            "must be FROM:=TO, such as /imu/data:=/torso_imu/imu. Separate several by blanks",
            "remap",
            " ".join(invalid),
        )
    for old, _, _ in pairs:
        if namespace and old.startswith("/") and not old.startswith(f"{namespace}/"):
            raise ConfigError(
                f"is outside namespace {namespace} and matches nothing. Use {old[1:]!r} or '{namespace}{old}'",
                "remap",
                old,
            )
    return tuple((old, new) for old, _, new in pairs)


def namespace_of(text: str) -> str:
    """Return a namespace with its leading slash, or an empty text for none.

    Raises:
        ConfigError: The name is not a valid namespace.
    """
    bare = text.strip("/")
    if bare and not re.fullmatch(r"[A-Za-z_]\w*(/[A-Za-z_]\w*)*", bare, re.ASCII):
        raise ConfigError(
            "must consist of letters, digits and _, and must not begin with a digit; / separates several names: r1, "
            "or lab/r1",
            "namespace",
            text,
        )
    return f"/{bare}" if bare else ""


def _check_interface(arguments: Arguments) -> None:
    """Refuse lock step with a vendor bridge, and a bridge that needs software that is not installed."""
    interface = get_interface(arguments.interface)
    if interface.executable and arguments.clock == "lock_step":
        raise ConfigError(
            "is not possible with a vendor bridge, whose programs use their own clock and do not answer every state. "
            "Omit clock",
            "clock",
            "lock_step",
        )


def node_names() -> tuple[str, ...]:
    """Return the names of all nodes that a launch may contain, including vendor bridges."""
    return (*NODES, *(row.executable for row in map(INTERFACES.__getitem__, INTERFACES) if row.executable))


def _ft_sign(files: Sequence[Path]) -> dict[str, Any]:
    """Return the sign of the ankle wrenches in parameter files, as a parameter of the recorder."""
    sign = _value_in_files(files, "ft_sign")
    return {"ft_sign": float(sign)} if isinstance(sign, (int, float)) else {}


def opens_browser(files: Sequence[Path]) -> dict[str, Any]:
    """Return the parameter of view_node that opens a browser, unless parameter files contain it."""
    return {"browser": True} if _value_in_files(files, "browser") is None else {}


def _priority(inputs: _LaunchInputs) -> int:
    """Return the real-time priority of the simulator, from which that of other nodes follows."""
    value = _value_in_files(inputs.files, "priority")
    return value if isinstance(value, int) else int(SimParams.priority)


def _value_in_files(files: Sequence[Path], name: str) -> Any:
    """Return the last value of a parameter in the files, for any node; None if they do not contain it."""
    last = None
    for path in files:
        for node in read_yaml(path).values():
            parameters = node.get("ros__parameters") if isinstance(node, Mapping) else None
            if isinstance(parameters, Mapping):
                last = parameters.get(name, last)
    return last


class _Quoting(yaml.SafeDumper):
    """YAML dumper that quotes every text, because ROS reads more texts as numbers or booleans than PyYAML (y)."""


_Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def parameters_text(node: NodeProcess) -> str:
    """Return the parameters of a node as the text of a file for ``--params-file``."""
    values = {"/**": {"ros__parameters": node.parameters}}
    return str(yaml.dump(values, Dumper=_Quoting, sort_keys=False, width=math.inf))


def refuse_misspelt(kind: str, names: Iterable[str], known: Collection[str], where: str) -> None:
    """Refuse names that resemble one of the ``known`` names; other unknown names may be meant for other programs.

    Raises:
        UnknownNameError: A name is misspelt.
    """
    for name in names:
        if name not in known and closest(name, known):
            raise UnknownNameError(kind, name, known, where)


def _defaults(scenario: Scenario) -> dict[str, Any]:
    """Return the arguments that a scenario sets, except for those that equal the defaults."""
    defaults = {info.name: info.default for info in dataclasses.fields(Arguments)}
    values = {name: _text(getattr(scenario, name)) for name in ("controller", "ground", "hardware")}
    return {name: value for name, value in values.items() if value != defaults[name]}


def _text(value: str | Mapping[str, Any]) -> str:
    """Return a value in a form that a node's parameter can contain."""
    return value if isinstance(value, str) else flow_text(value)


def _start_and_pushes(scenario: Scenario, robot: str) -> dict[str, Any]:
    """Return sim_node's parameters for the start of a scenario, its pushes, objects and force plates."""
    parameters: dict[str, Any] = {}
    if scenario.drop_height:
        parameters["drop_height"] = scenario.drop_height
    if scenario.posture:
        parameters["posture"] = scenario.posture
    if scenario.gantry:
        gantry = read_gantry(scenario.gantry)
        parameters["gantry"] = "" if gantry is None else gantry.text()
    if scenario.objects:
        parameters["objects"] = [body.text() for body in scenario.objects]
    if scenario.force_plates:
        parameters["force_plates"] = [plate.text() for plate in scenario.force_plates]
    if scenario.pushes:
        from bipedsim.model import load_robot

        model = load_robot(robot)
        parameters["pushes"] = [push.for_robot(model, scenario.objects).text() for push in scenario.pushes]
    return parameters


def _check_velocity(scenario: str, controller: str) -> None:
    """Refuse velocity commands for a controller that does not accept them."""
    if not hasattr(find_controller(controller)[1], "set_velocity"):
        raise no_velocity(scenario, controller)


_TRUTHS = {"true": True, "false": False}


def argument_help(name: str, with_default: bool = True) -> str:
    """Return the help text of an argument: meaning, unit, choices and default."""
    info = Arguments.__dataclass_fields__[name]
    return help_of(info, None if with_default and info.default not in ("", 0.0) else "")


def argument_default(name: str) -> str:
    """Return the default of an argument as a text."""
    text = str(Arguments.__dataclass_fields__[name].default)
    return {str(value): word for word, value in _TRUTHS.items()}.get(text, text)


def argument_names() -> tuple[str, ...]:
    """Return the names of all arguments."""
    return tuple(info.name for info in dataclasses.fields(Arguments))


def from_text(texts: Mapping[str, str]) -> dict[str, Any]:
    """Convert launch arguments from text to the types of their fields; an empty text counts as not set.

    Raises:
        UnknownNameError: An argument does not exist.
        ConfigError: A text is not a number.
    """
    hints = get_type_hints(Arguments)
    values: dict[str, Any] = {}
    for name, text in texts.items():
        if name not in hints:
            raise UnknownNameError("argument", name, hints, "bring-up")
        if text == "":
            continue
        if hints[name] is bool:
            if text.lower() not in _TRUTHS:
                raise ConfigError("must be true or false", f"bring-up: {name}", text)
            values[name] = _TRUTHS[text.lower()]
            continue
        try:
            values[name] = hints[name](text)
        except ValueError as error:
            hint = f"without a unit, for example {number_in(text)}"
            raise ConfigError(f"must be a number, {hint}", f"bring-up: {name}", text) from error
    return values
