"""What a bring-up starts, as data: nodes, their parameters and their order, from one table of arguments.

``launch/sim.launch.py`` and ``bipedsim up`` both read it, so that they cannot differ. Nothing here needs ROS; it only
says what to start.
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

from bipedsim.config import RunConfig, from_mapping, help_of, like, param, read_yaml, without_prefix
from bipedsim.control import find_controller
from bipedsim.errors import ConfigError, UnknownNameError, closest, number_in
from bipedsim.runs import PERIOD_NS, Scenario, controller_params_for, for_run, get_scenario, no_velocity
from bipedsim.sim import read_gantry
from bipedsim.view.page import PageParams, check_page
from bipedsim_ros.interfaces import INTERFACES, get_interface
from bipedsim_ros.loop import SimParams
from bipedsim_ros.wire import NetworkParams, topics

NO_CONTROLLER = "none"
INTERFACE_SET = "--interface-set"
"""Option of ``bipedsim up`` for parameters of an interface's node."""
NODES = ("sim_node", "controller_node", "recorder_node", "commander_node", "teleop_node", "view_node")
STATE_PUBLISHER = "robot_state_publisher"
"""Name of the node that places the links on /tf, of its package and of the argument that asks for it."""
RVIZ = "rviz2"
"""Name of the program, and of its package."""


@dataclass(frozen=True)
class Arguments:
    """Arguments of a bring-up. What is not given keeps the default of the node, or what ``params_file`` says."""

    robot: str = like(RunConfig, "robot")
    posture: str = like(RunConfig, "posture")
    contact_model: str = like(RunConfig, "contact_model")
    ground: str = like(SimParams, "ground")
    hardware: str = like(SimParams, "hardware")
    faults: str = like(SimParams, "faults")
    gantry: str = like(SimParams, "gantry")
    seed: int = like(RunConfig, "seed")
    clock: str = like(SimParams, "clock")
    rate: float = like(RunConfig, "rate")
    real_time_factor: float = like(SimParams, "real_time_factor")
    physics_dt: float = like(SimParams, "physics_dt")
    rate_check: str = like(SimParams, "rate_check")
    start: str = like(SimParams, "start")
    command_timeout: float = like(SimParams, "command_timeout")
    lock_step_timeout: float = like(SimParams, "lock_step_timeout")
    timeout_mode: str = like(SimParams, "timeout_mode")
    controller: str = like(
        RunConfig,
        "controller",
        "posture",
        f"package.module:Class of your own, or {NO_CONTROLLER} to start your own node yourself",
    )
    interface: str = param(
        "",
        "speak a vendor's own topics beside those of ROS, for programs that are made for its machine and take the "
        "place of a controller (docs/unitree.md)",
        choices="bipedsim_ros.interfaces:INTERFACES",
    )
    scenario: str = like(
        RunConfig,
        "scenario",
        "",
        "path of a scenario YAML: who pushes, where to walk, ground and controller if not given; none by default",
    )
    duration: float = like(SimParams, "duration")
    vertex_forces: bool = like(SimParams, "vertex_forces")
    record: str = param(
        "", "folder for the bag, the summary and the picture, such as runs/first; empty records nothing"
    )
    view: bool = param(False, "show the run on a page in the browser, with controls (docs/view.md)")
    browser: bool = like(PageParams, "browser")
    rviz: bool = param(False, "show the run in RViz, where rviz2 is installed (docs/tools.md)")
    priority: int = like(SimParams, "priority")
    network: str = like(NetworkParams, "network")
    namespace: str = param(
        "", "of all nodes and topics, such as r1 for /r1/joint_states: several robots in one ROS graph; none by default"
    )
    params_file: str = param("", "YAML file with ROS parameters of the nodes, such as config/sim.yaml")
    robot_state_publisher: str = param(
        "auto",
        "start robot_state_publisher, which places the links of the robot on /tf: auto starts it where it is installed",
        choices=("auto", "on", "off"),
    )
    log_level: str = param("info", "what the nodes tell at least", choices=("debug", "info", "warn", "error", "fatal"))
    remap: str = param(
        "",
        "other names of topics, FROM:=TO with blanks between several, such as '/imu/data:=/torso_imu/imu'; names "
        "without a leading slash are those in the namespace",
    )


@dataclass(frozen=True)
class Demo:
    """Arguments and controller parameters of ``bipedsim up --demo``."""

    arguments: Mapping[str, Any]
    controller_params: Mapping[str, Any]


DEMO = Demo({"controller": "posture", "duration": 12.0, "record": "runs/demo"}, {"mode": "squat", "squat_delay": 3.0})

# A recorder may be late, the loop may not: where cores are few and nobody has a real-time priority, it must not push
# the controller aside. SCHED_IDLE would help the loop more, but loses messages as soon as anything else runs.
_POLITE = ("nice", "-n", "10")
_END_S = 5.0
"""How long the recorder waits for the end of a simulator that was interrupted with it [s]: drained in 3 s at most."""
_SIM = tuple(info.name for info in dataclasses.fields(SimParams) if info.name in Arguments.__dataclass_fields__)
_CONTROLLER = ("robot", "rate", "controller", "priority")


@dataclass(frozen=True)
class NodeProcess:
    """One node of a bring-up.

    Attributes:
        executable: Name of the node's executable, such as ``"sim_node"``.
        parameters: ROS parameters, which win over ``params_files``.
        params_files: YAML files with ROS parameters.
        ready: Beginning of the line of output that says that the node does its work; empty if nobody waits for it.
        prefix: Command in front of the node's own.
        namespace: Of the node, with a leading slash; empty for none.
        optional: Whether the others go on when it ends.
        package: Whose executable it is.
        remappings: Names of topics in the code and those that they get.
        log_level: Least severity of what it logs; empty for that of ROS.
        arguments: Of the executable, before those of ROS.
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
    """A bring-up: checked arguments and the nodes that follow from them, in the order in which they start.

    Attributes:
        arguments: All arguments, defaults included.
        nodes: The nodes; the first ones must be ready before the next ones start.
        run_folder: Where the run is recorded; None if it is not.
    """

    arguments: Arguments
    nodes: tuple[NodeProcess, ...]
    run_folder: Path | None


STOP_FILE = "controller.json"
"""Where controller_node leaves when and why the controller was stopped, beside the statistics of sim_node."""


def plan(
    given: Mapping[str, Any],
    controller_params: Mapping[str, Any] | None = None,
    contact_params: Mapping[str, Any] | None = None,
    stats_file: Path | None = None,
    overwrite: bool = False,
    interface_params: Mapping[str, Any] | None = None,
) -> BringUp:
    """Return what to start.

    Args:
        given: Arguments that were given; the rest keeps its default.
        controller_params: Parameters of the controller by their own name.
        contact_params: Parameters of the contact model by their own name.
        stats_file: Where sim_node leaves its statistics; controller_node has ``controller.json`` beside it.
        overwrite: Whether whoever starts it makes room for the recording first.
        interface_params: Parameters of the interface's node by their own name.

    Raises:
        ConfigError: An argument is wrong, or the folder of the recording already holds a bag.
    """
    from_mapping(Arguments, given, "bring-up")
    scenario = get_scenario(given["scenario"]) if given.get("scenario") else None
    if given.get("interface"):
        given = _with_interface(given)
    elif interface_params:
        raise ConfigError(f"parameters of an interface were given ({', '.join(interface_params)}), but no interface")
    if scenario is not None:
        given = {**_defaults(scenario), **given}
    arguments = from_mapping(Arguments, given, "bring-up")
    if arguments.controller != NO_CONTROLLER and ":" not in arguments.controller:
        find_controller(arguments.controller, (NO_CONTROLLER,))
    namespace = namespace_of(arguments.namespace)
    run_folder = Path(arguments.record) if arguments.record else None
    if run_folder is not None and (run_folder / "bag").exists() and not overwrite:
        raise ConfigError(
            f"record = {arguments.record!r}: it already holds a bag; choose another folder, or add --overwrite "
            "(bipedsim up, bipedsim control)"
        )
    files: tuple[Path, ...] = ()
    if arguments.params_file:
        files = (Path(arguments.params_file),)
        if not files[0].is_file():
            raise ConfigError(f"params_file = {arguments.params_file!r}: there is no such file")
        keys = (str(key).rpartition("/")[2] for key in read_yaml(files[0]))
        refuse_misspelt("node", keys, node_names(), str(files[0]))
        _check_reaches(files[0], namespace)
    nodes = []
    if run_folder is not None:
        recording: dict[str, Any] = {"output": str(run_folder / "bag"), "robot": arguments.robot, **_ft_sign(files)}
        if arguments.controller != NO_CONTROLLER:
            recording["controller"] = arguments.controller
        # `ros2 launch` interrupts all nodes together.
        recording["await_end"] = _END_S
        if arguments.clock == "real_time":
            # After the loop, which may be late for nobody, but before everything else: what waits too long is lost.
            recording["priority"] = arguments.priority // 2
        nodes.append(NodeProcess("recorder_node", recording, files, ready="recording", prefix=_POLITE))
    read_gantry(arguments.gantry)
    sim = {name: given[name] for name in _SIM if name in given}
    contact_params = without_prefix(contact_params or {}, arguments.contact_model)
    sim |= {f"{arguments.contact_model}.{name}": value for name, value in contact_params.items()}
    if scenario is not None:
        sim = {"title": arguments.scenario, **_start_and_pushes(scenario, arguments.robot), **sim}
        if scenario.faults:
            sim["faults"] = f"[{', '.join(fault.text() for fault in for_run(scenario.faults, arguments.faults))}]"
    if run_folder is not None:
        # Nodes find each other in a second or so: without this the bag could begin after the run has.
        sim["wait_for_recorder"] = True
    if stats_file is not None:
        sim["stats_file"] = str(stats_file)
    nodes.append(NodeProcess("sim_node", sim, files))
    if arguments.controller != NO_CONTROLLER:
        prefix = arguments.controller.rpartition(":")[2]
        controller = {name: given[name] for name in _CONTROLLER if name in given}
        words = without_prefix(controller_params or {}, arguments.controller)
        if scenario is not None:
            words = {**controller_params_for(scenario, arguments.controller, arguments.scenario), **words}
        own = {f"{prefix}.{name}": value for name, value in words.items()}
        if scenario is not None and scenario.velocity:
            _check_velocity(arguments.scenario, arguments.controller)
            # Nodes find each other in a second or more: without this time could begin before the schedule does.
            controller["wait_for_velocity"] = True
            if arguments.clock == "lock_step":
                controller["cmd_vel_period"] = 1e-9 * PERIOD_NS
        if arguments.clock != "real_time":
            controller["priority"] = 0
        if arguments.clock == "lock_step":
            controller["lock_step"] = True
        if stats_file is not None:
            controller["stats_file"] = str(stats_file.with_name(STOP_FILE))
        if run_folder is not None:
            controller["wait_for_listeners"] = 2
        nodes.append(NodeProcess("controller_node", {**controller, **own}, files))
    elif controller_params:
        raise ConfigError(
            f"parameters of the controller were given ({', '.join(controller_params)}), but controller = none"
        )
    if arguments.interface:
        own = {name: given[name] for name in ("robot", "network") if name in given}
        priority = arguments.priority if arguments.clock == "real_time" else 0
        hung = {"gantry": sim["gantry"]} if sim.get("gantry") else {}
        speaks = {**own, **hung, "priority": priority, **(interface_params or {})}
        nodes.append(NodeProcess(get_interface(arguments.interface).executable, speaks, files))
    if scenario is not None and scenario.velocity:
        schedule = [step.text() for step in scenario.velocity]
        commander: dict[str, Any] = {"schedule": schedule}
        if run_folder is not None:
            commander["wait_for_listeners"] = 2
        nodes.append(NodeProcess("commander_node", commander, files))
    if arguments.view:
        check_page()
        nodes.append(NodeProcess("view_node", {"browser": arguments.browser}, files, optional=True))
    if arguments.rviz:
        nodes.append(_rviz(namespace))
    if _wants_state_publisher(arguments):
        nodes.append(_state_publisher(given.get("robot") or _said(files, "robot") or arguments.robot))
    moved = _remappings(arguments.remap, namespace)
    log_level = str(given.get("log_level", ""))
    named = (
        replace(node, namespace=namespace, remappings=(*moved, *node.remappings), log_level=log_level) for node in nodes
    )
    return BringUp(arguments, tuple(named), run_folder)


def executable_of(package: str, name: str) -> Path | None:
    """Return an executable of a ROS package where `ros2 run` finds it; None if it is not installed."""
    for prefix in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        path = Path(prefix, "lib", package, name)
        known = Path(prefix, "share", "ament_index", "resource_index", "packages", package).is_file()
        if known and os.access(path, os.X_OK):
            return path
    return None


def _wants_state_publisher(arguments: Arguments) -> bool:
    """Return whether to start robot_state_publisher.

    Raises:
        ConfigError: It is asked for, and not installed.
    """
    if arguments.robot_state_publisher == "off":
        return False
    installed = executable_of(STATE_PUBLISHER, STATE_PUBLISHER) is not None
    if arguments.robot_state_publisher == "on" and not installed:
        raise ConfigError(
            f"{STATE_PUBLISHER} = on: it is not installed: apt install ros-$ROS_DISTRO-robot-state-publisher"
        )
    return installed


def _state_publisher(robot: str) -> NodeProcess:
    """Return robot_state_publisher as others start it, in simulated time, behind the loop.

    sim_node publishes the description and odom -> base_link, this node the joints: nothing comes twice. Its names are
    absolute, so that each robot's go into its namespace by remapping.
    """
    from bipedsim.model import load_robot, located

    loaded = load_robot(robot)
    urdf = located(loaded.urdf_xml, loaded.urdf_path)
    parameters = {"robot_description": urdf, "use_sim_time": True, "publish_frequency": 50.0}
    moved = ((row.name, row.name.removeprefix("/")) for row in (topics.TF, topics.TF_STATIC, topics.CLOCK))
    description = topics.ROBOT_DESCRIPTION.name.removeprefix("/")
    own = (description, f"~/{description}")
    return NodeProcess(STATE_PUBLISHER, parameters, prefix=_POLITE, package=STATE_PUBLISHER, remappings=(*moved, own))


def _rviz(namespace: str) -> NodeProcess:
    """Return RViz with our configuration, whose topics it takes from the namespace.

    Raises:
        ConfigError: It, or the configuration, is not installed.
    """
    if executable_of(RVIZ, RVIZ) is None:
        raise ConfigError(
            "rviz = true: rviz2 is not installed (apt install ros-$ROS_DISTRO-rviz2); view = true shows the run in the "
            "browser instead"
        )
    prefixes = (*os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep), sys.prefix)
    shares = [Path(prefix, "share", "bipedsim") for prefix in prefixes if prefix]
    # Of an editable install nothing is in the prefix: there the repository has it, beside the packages.
    places = [folder / "config" / "bipedsim.rviz" for folder in (*shares, Path(__file__).parents[2])]
    config = next((place for place in places if place.is_file()), None)
    if config is None:
        raise ConfigError(f"rviz = true: none of {', '.join(map(str, places))} is there: install bipedsim again")
    # Names in the configuration are absolute, as everywhere in RViz.
    found = dict.fromkeys(re.findall(r"Value: (/\S+)", config.read_text(encoding="utf-8")))
    names = [*found, topics.TF.name, topics.TF_STATIC.name, topics.CLOCK.name] if namespace else []
    moved = tuple((name, f"{namespace}{name}") for name in names)
    parameters = {"use_sim_time": True}
    arguments = ("-d", str(config))
    return NodeProcess(
        RVIZ, parameters, prefix=_POLITE, package=RVIZ, optional=True, remappings=moved, arguments=arguments
    )


def _remappings(text: str, namespace: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a text FROM:=TO FROM:=TO.

    Raises:
        ConfigError: A part of it is none, or names what no node in the namespace has: ROS says nothing of that.
    """
    pairs = [part.partition(":=") for part in text.replace(",", " ").split()]
    wrong = ["".join(pair) for pair in pairs if not all(pair)]
    if wrong:
        raise ConfigError(
            f"remap: {', '.join(map(repr, wrong))} must be FROM:=TO, such as /imu/data:=/torso_imu/imu, with blanks "
            "between several"
        )
    for old, _, _ in pairs:
        if namespace and old.startswith("/") and not old.startswith(f"{namespace}/"):
            raise ConfigError(
                f"remap: {old!r} is not in the namespace {namespace}, so that nothing would follow: call it {old[1:]} "
                f"or {namespace}{old}"
            )
    return tuple((old, new) for old, _, new in pairs)


def namespace_of(given: str) -> str:
    """Return a namespace with its leading slash, or an empty text for none.

    Raises:
        ConfigError: No node can have it.
    """
    bare = given.strip("/")
    if bare and not re.fullmatch(r"[A-Za-z_]\w*(/[A-Za-z_]\w*)*", bare, re.ASCII):
        raise ConfigError(
            f"namespace = {given!r} must be names of letters, digits and _, which begin with no digit, with / between "
            "them: r1, or lab/r1"
        )
    return f"/{bare}" if bare else ""


def _check_reaches(path: Path, namespace: str) -> None:
    """Refuse a file whose parameters no node in the namespace would take: ROS leaves them out without a word.

    Raises:
        ConfigError: A key names a node elsewhere.
    """
    for key in map(str, read_yaml(path)):
        if namespace and key.rpartition("/")[2] in node_names() and key.rpartition("/")[0] not in (namespace, "/**"):
            name = key.rpartition("/")[2]
            raise ConfigError(
                f"{path}: {key!r} is not in the namespace {namespace}, so that its parameters would reach nobody; call "
                f"it '{namespace}/{name}', or '/**/{name}' for every namespace"
            )


def _with_interface(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with what an interface decides: its programs control the robot, and no controller of ours.

    Drives go on with the last command where a program falls silent, as they do when it is the only one they know.

    Raises:
        ConfigError: A controller or lock step was asked for, or the interface needs what is not installed.
    """
    get_interface(given["interface"])
    if given.get("controller", NO_CONTROLLER) != NO_CONTROLLER:
        raise ConfigError(
            f"interface = {given['interface']!r} has its programs control the robot, and controller = "
            f"{given['controller']!r} would, too: leave one of them out"
        )
    if given.get("clock") == "lock_step":
        raise ConfigError(
            f"interface = {given['interface']!r}: its programs go by a clock of their own, and do not answer each "
            "state as clock = 'lock_step' asks for: leave it out"
        )
    kept = {} if given.get("params_file") else {"timeout_mode": "hold"}
    return {**kept, **given, "controller": NO_CONTROLLER}


def node_names() -> tuple[str, ...]:
    """Return the names of all nodes that a bring-up may have, those of interfaces too."""
    return (*NODES, *(INTERFACES[name].executable for name in INTERFACES))


def _ft_sign(files: Sequence[Path]) -> dict[str, Any]:
    """Return the sign of the ankle wrenches that parameter files give to a node, as a parameter of the recorder."""
    found = _said(files, "ft_sign")
    return {"ft_sign": float(found)} if isinstance(found, (int, float)) else {}


def _said(files: Sequence[Path], name: str) -> Any:
    """Return what parameter files say last of a parameter, to whichever node; None if they do not."""
    found = None
    for path in files:
        for node in read_yaml(path).values():
            parameters = node.get("ros__parameters") if isinstance(node, Mapping) else None
            if isinstance(parameters, Mapping):
                found = parameters.get(name, found)
    return found


class _Quoting(yaml.SafeDumper):
    """Quotes every text: ROS takes more of them for numbers and truth values than PyYAML knows, such as y."""


_Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def parameters_text(node: NodeProcess) -> str:
    """Return the parameters of a node as a file for ``--params-file``."""
    values = {"/**": {"ros__parameters": node.parameters}}
    return str(yaml.dump(values, Dumper=_Quoting, sort_keys=False, width=math.inf))


def refuse_misspelt(kind: str, given: Iterable[str], known: Collection[str], where: str) -> None:
    """Refuse what is nearly one of the ``known`` names; what is far from all of them may be meant for somebody else.

    Raises:
        UnknownNameError: A name is misspelt.
    """
    for name in given:
        if name not in known and closest(name, known):
            raise UnknownNameError(kind, name, known, where)


def _defaults(scenario: Scenario) -> dict[str, Any]:
    """Return the arguments that a scenario decides where they are not given, less what the nodes do by themselves."""
    usual = {info.name: info.default for info in dataclasses.fields(Arguments)}
    values = {name: getattr(scenario, name) for name in ("controller", "ground")}
    values["hardware"] = _text(scenario.hardware)
    return {name: value for name, value in values.items() if value != usual[name]}


def _text(hardware: str | Mapping[str, Any]) -> str:
    """Return hardware as a parameter of a node can hold it."""
    if isinstance(hardware, str):
        return hardware
    return str(yaml.safe_dump(dict(hardware), default_flow_style=True, width=math.inf, sort_keys=False)).strip()


def _start_and_pushes(scenario: Scenario, robot: str) -> dict[str, Any]:
    """Return the parameters of sim_node that say how a scenario starts, who pushes, and what lies about."""
    parameters: dict[str, Any] = {}
    if scenario.drop_height:
        parameters["drop_height"] = scenario.drop_height
    if scenario.gantry:
        gantry = read_gantry(scenario.gantry)
        parameters["gantry"] = "" if gantry is None else gantry.text()
    if scenario.objects:
        parameters["objects"] = [one.text() for one in scenario.objects]
    if scenario.force_plates:
        parameters["force_plates"] = [one.text() for one in scenario.force_plates]
    if scenario.pushes:
        from bipedsim.model import load_robot

        model = load_robot(robot)
        parameters["pushes"] = [push.for_robot(model, scenario.objects).text() for push in scenario.pushes]
    return parameters


def _check_velocity(scenario: str, controller: str) -> None:
    """Refuse a walk under a controller that takes no velocity."""
    if not hasattr(find_controller(controller)[1], "set_velocity"):
        raise ConfigError(no_velocity(scenario, controller))


_TRUTHS = {"true": True, "false": False}


def argument_help(name: str, with_default: bool = True) -> str:
    """Return the help text of one argument: meaning, unit, choices and default."""
    info = Arguments.__dataclass_fields__[name]
    return help_of(info, None if with_default and info.default not in ("", 0.0) else "")


def argument_default(name: str) -> str:
    """Return the default of one argument as a text."""
    text = str(Arguments.__dataclass_fields__[name].default)
    return {str(value): word for word, value in _TRUTHS.items()}.get(text, text)


def argument_metavar(name: str) -> str:
    """Return what stands for the value of one argument: its unit, N of a whole number, FOLDER or FILE, or NAME."""
    info = Arguments.__dataclass_fields__[name]
    kinds = {"record": "FOLDER", "params_file": "FILE", "faults": "FAULTS", "remap": "FROM:=TO"}
    whole = get_type_hints(Arguments)[name] is int
    return info.metadata["unit"].upper() or kinds.get(name, "N" if whole else "NAME")


def is_switch(name: str) -> bool:
    """Return whether an argument is true or false."""
    return get_type_hints(Arguments)[name] is bool


def argument_names() -> tuple[str, ...]:
    """Return the names of all arguments."""
    return tuple(info.name for info in dataclasses.fields(Arguments))


def from_text(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return launch arguments, which are text, with the type of their field; empty text counts as not given.

    Raises:
        UnknownNameError: No such argument.
        ConfigError: A number is none.
    """
    hints = get_type_hints(Arguments)
    given: dict[str, Any] = {}
    for name, text in texts.items():
        if name not in hints:
            raise UnknownNameError("argument", name, hints, "bring-up")
        if text == "":
            continue
        if hints[name] is bool:
            if text.lower() not in _TRUTHS:
                raise ConfigError(f"bring-up: {name} = {text!r} must be true or false")
            given[name] = _TRUTHS[text.lower()]
            continue
        try:
            given[name] = hints[name](text)
        except ValueError as error:
            hint = f"without a unit, for example {number_in(text)}"
            raise ConfigError(f"bring-up: {name} = {text!r} must be a number, {hint}") from error
    return given
