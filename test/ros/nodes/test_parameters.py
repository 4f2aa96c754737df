"""ROS parameters from dataclass fields, on a real node in this process without connections."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from paths import ROOT
from refusals import refusal

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

import rclpy
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from bipedsim.config.fields import param
from bipedsim.contact.models import CONTACT_MODELS
from bipedsim.errors import UnknownNameError
from bipedsim_ros.bringup.bringup import NodeProcess, parameters_text
from bipedsim_ros.loop.sim_params import SimParams
from bipedsim_ros.nodes.controller_node import ControllerNodeParams
from bipedsim_ros.nodes.parameters import ParameterNode, Parameters, _to_python

pytestmark = pytest.mark.ros
ACCEPTED = SetParametersResult(successful=True)


@dataclass(frozen=True)
class Example:
    """One field of each kind."""

    speed: float = param(1.0, "how fast", unit="m/s", low=0.0, high=10.0, live=True)
    count: int = param(3, "how many", low=1)
    name: str = param("left", "which one", choices=("left", "right"), live=True)
    on: bool = param(True, "whether")
    gains: dict[str, float] = param({}, "per joint", unit="N.m/rad", live=True)
    order: tuple[str, ...] = param((), "in which order")


@pytest.fixture
def make(ros_env: dict[str, str]) -> Iterator[Any]:
    """Return a function that makes a node with these parameters given from outside."""
    context = rclpy.Context()
    context.init()
    nodes: list[Node] = []

    def make_node(**given: Any) -> tuple[Node, Parameters]:
        overrides = [Parameter(name.replace("__", "."), value=value) for name, value in given.items()]
        node = Node(
            "example",
            context=context,
            parameter_overrides=overrides,
            automatically_declare_parameters_from_overrides=True,
            start_parameter_services=False,
            enable_rosout=False,
        )
        nodes.append(node)
        return node, Parameters(node, "parameters of example")

    yield make_node
    for node in nodes:
        node.destroy_node()
    context.try_shutdown()


def test_defaults_and_given_values(make: Any) -> None:
    node, parameters = make(speed=2.0, name="right")
    assert parameters.declare(Example) == Example(speed=2.0, name="right")
    parameters.refuse_unknown()
    assert node.get_parameter("speed").value == 2.0
    assert node.get_parameter("count").value == 3
    assert node.get_parameter("on").value is True


def test_defaults_of_a_robot_come_between(make: Any) -> None:
    _, parameters = make(speed=2.0, gains__knee=5.0)
    example = parameters.declare(Example, defaults={"speed": 3.0, "count": 7, "gains": {"hip": 1.0, "knee": 2.0}})
    assert (example.speed, example.count) == (2.0, 7)
    assert example.gains == {"hip": 1.0, "knee": 5.0}


def test_prefix_and_mapping(make: Any) -> None:
    node, parameters = make(walk__gains__hip=4.0, walk__order=["a", "b"])
    example = parameters.declare(Example, prefix="walk.")
    parameters.refuse_unknown()
    assert example.gains == {"hip": 4.0}
    assert list(example.order) == ["a", "b"]
    assert node.get_parameter("walk.gains.hip").value == 4.0


def test_descriptor_says_unit_range_and_choices(make: Any) -> None:
    node, parameters = make()
    parameters.declare(Example, listener=print)
    speed, count, name = (node.describe_parameter(n) for n in ("speed", "count", "name"))
    assert speed.description == "how fast [m/s]"
    assert (speed.floating_point_range[0].from_value, speed.floating_point_range[0].to_value) == (0.0, 10.0)
    assert count.integer_range[0].from_value == 1
    assert name.additional_constraints == "one of: left, right"
    assert not speed.read_only
    assert count.read_only


def test_without_a_listener_nothing_can_change(make: Any) -> None:
    node, parameters = make()
    parameters.declare(Example)
    assert node.describe_parameter("speed").read_only
    assert not node.set_parameters([Parameter("speed", value=2.0)])[0].successful


@pytest.mark.parametrize(
    ("given", "key", "value"),
    [
        ({"speed": 11.0}, "speed", 11.0),
        ({"speed": float("nan")}, "speed", float("nan")),
        ({"speed": "fast"}, "speed", "fast"),
        ({"count": 0}, "count", 0),
        ({"count": 2.5}, "count", 2.5),
        ({"on": 1}, "on", 1),
        ({"order": "hip"}, "order", "hip"),
        ({"order": [2.0]}, "order[0]", 2.0),
        ({"name": "rihgt"}, "", "rihgt"),
    ],
)
def test_bad_values_are_refused(make: Any, given: dict[str, Any], key: str, value: Any) -> None:
    _, parameters = make(**given)
    with refusal(place=f"parameters of example: {key}" if key else "parameters of example") as caught:
        parameters.declare(Example)
    assert repr(getattr(caught.value, "name", caught.value.value)) == repr(value)


TEXTS = ("y", "n", "off", "True", "1e3", "0x1F", "null", "~", "a: b", "'\"", "")


def test_texts_of_a_bring_up_arrive_as_texts(ros_env: dict[str, str], tmp_path: Path) -> None:
    """ROS parses more texts as numbers and truth values than the YAML of Python.

    This includes values that a user types.
    """
    given = {"list": list(TEXTS), "number": 1e-5, "flag": True, **{f"text{i}": text for i, text in enumerate(TEXTS)}}
    path = tmp_path / "parameters.yaml"
    path.write_text(parameters_text(NodeProcess("sim_node", given)))
    context = rclpy.Context()
    context.init()
    arguments = ["--ros-args", "--params-file", str(path), "-p", "rate_check:=off"]
    node = Node(
        "read",
        context=context,
        cli_args=arguments,
        automatically_declare_parameters_from_overrides=True,
        start_parameter_services=False,
        enable_rosout=False,
    )
    try:
        assert {name: _to_python(node.get_parameter(name).value) for name in given} == given
        assert Parameters(node, "here").declare(SimParams).rate_check == "off"
    finally:
        node.destroy_node()
        context.try_shutdown()


@pytest.mark.parametrize("name", ["sped", "walk__speed", "gains", "speed__x"])
def test_what_nobody_declared_is_refused(make: Any, name: str) -> None:
    _, parameters = make(**{name: 1.0})
    parameters.declare(Example)
    with refusal(UnknownNameError, kind="parameter"):
        parameters.refuse_unknown()


def test_ros_own_parameters_are_left_alone(make: Any) -> None:
    node, parameters = make(use_sim_time=True)
    parameters.declare(Example)
    parameters.refuse_unknown()
    assert node.get_parameter("use_sim_time").value is True


def test_live_changes_are_checked_and_told(make: Any) -> None:
    node, parameters = make(gains__hip=4.0, gains__knee=5.0)
    told: list[Example] = []
    parameters.declare(Example, listener=told.append)

    def put(name: str, value: Any) -> Any:
        return node.set_parameters([Parameter(name, value=value)])[0]

    assert put("speed", 4.0).successful
    assert told[-1].speed == 4.0
    assert put("name", "right").successful
    assert told[-1] == Example(speed=4.0, name="right", gains={"hip": 4.0, "knee": 5.0})
    assert put("gains.knee", 6.0).successful
    assert told[-1].gains == {"hip": 4.0, "knee": 6.0}
    refused = put("name", "up")
    assert not refused.successful
    assert "unknown name 'up'" in refused.reason
    assert not put("speed", 99.0).successful
    assert not put("count", 4).successful
    assert len(told) == 3
    assert node.get_parameter("speed").value == 4.0


def test_the_range_of_a_mapping_is_that_of_its_entries(make: Any) -> None:
    @dataclass(frozen=True)
    class Springs:
        stiffness: dict[str, float] = param({"hip": 1.0}, "per joint", low=0.0, high=10.0, live=True)

    node, parameters = make()
    parameters.declare(Springs)
    (bounds,) = node.describe_parameter("stiffness.hip").floating_point_range
    assert (bounds.from_value, bounds.to_value) == (0.0, 10.0)


def test_a_refusal_names_what_needs_a_restart_and_what_does_not(ros_env: dict[str, str]) -> None:
    context = rclpy.Context()
    context.init()
    node = ParameterNode("example", context=context)
    told: list[Example] = []
    Parameters(node, "parameters of example").declare(Example, listener=told.append, defaults={"gains": {"hip": 4.0}})
    try:
        wanted = [Parameter(name, value=value) for name, value in (("speed", 4.0), ("count", 4), ("on", False))]
        refused = node.set_parameters_atomically(wanted)
        assert not refused.successful
        fixed, _, live = refused.reason.partition(". ")
        assert fixed.startswith("count, on: ")
        assert all(name in live for name in ("speed", "name", "gains.hip"))
        assert not any(name in live for name in ("count", "order"))
        assert told == []
        assert node.set_parameters_atomically(wanted[:1]).successful
        assert told == [Example(speed=4.0, gains={"hip": 4.0})]
    finally:
        node.destroy_node()
        context.try_shutdown()


def test_what_others_refuse_is_not_applied(make: Any) -> None:
    """Any callback of a node may reject a value, including the last one. Then all values stay unchanged."""
    node, _ = make()
    refused = SetParametersResult(successful=False, reason="not now")

    def judge(changes: list[Parameter]) -> SetParametersResult:
        return refused if changes[0].name == "speed" and node.has_parameter("speed") else ACCEPTED

    node.add_on_set_parameters_callback(judge)
    # The callback that was added last is asked first.
    parameters = Parameters(node, "parameters of example")
    told: list[Example] = []
    parameters.declare(Example, listener=told.append, defaults={"speed": 2.0})
    both = [Parameter(name, value=value) for name, value in (("speed", 4.0), ("name", "right"))]
    assert not node.set_parameters_atomically(both).successful
    assert told == []
    assert node.set_parameters([both[1]])[0].successful
    assert told == [Example(speed=2.0, name="right")]


@pytest.mark.parametrize(("name", "cls"), [("sim_node", SimParams), ("controller_node", ControllerNodeParams)])
def test_the_configuration_file_holds_the_defaults(name: str, cls: type) -> None:
    text = (ROOT / "config" / "sim.yaml").read_text(encoding="utf-8")
    written = yaml.safe_load(text)[name]["ros__parameters"]
    if cls is SimParams:
        for model, kind in CONTACT_MODELS.items():
            assert written.pop(model) == vars(kind.Params()), model
    for field, default in vars(cls()).items():
        if default == ():
            assert f"# {field}: []" in text
        else:
            assert written.pop(field) == (list(default) if isinstance(default, tuple) else default)
    assert written == {}


def test_unknown_names_list_the_choices(make: Any) -> None:
    _, parameters = make(sped=1.0)
    parameters.declare(Example)
    with refusal(UnknownNameError, meant="speed") as caught:
        parameters.refuse_unknown()
    assert "count" in caught.value.choices


@pytest.mark.parametrize("name", CONTACT_MODELS)
def test_wrong_parameters_of_a_contact_model_list_the_right_ones(make: Any, name: str) -> None:
    kind = CONTACT_MODELS[name].Params
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    known = next(key for key, default in fields.items() if isinstance(default, float))
    _, parameters = make(**{f"{name}__{known}x": 1.0})
    parameters.declare(kind, prefix=f"{name}.")
    with refusal(UnknownNameError, meant=f"{name}.{known}") as caught:
        parameters.refuse_unknown()
    assert set(caught.value.choices) == {f"{name}.{key}" for key in fields}
    _, parameters = make(**{f"{name}__{known}": -1.0})
    with refusal(place=known, value=-1.0):
        parameters.declare(kind, prefix=f"{name}.")
