"""Layouts for Foxglove, PlotJuggler and RViz: they parse, and all that they name is on a topic of the table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
import yaml
from paths import ROOT
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_typestore

from bipedsim.control import make_controller
from bipedsim.model import load_robot
from bipedsim.recording.bag import Qos
from bipedsim.runs import get_scenario
from bipedsim_ros.wire.topics import (
    PLATE_COP,
    READOUTS,
    SOLE_COP,
    SOLE_WRENCH,
    TOPICS,
    WORLD_FRAME,
    Topic,
    incompatible,
)

CONFIG = ROOT / "config"
STORE = get_typestore(Stores.ROS2_JAZZY)
ROBOT = load_robot("biped14")
PANELS = {
    *("3D", "DiagnosticSummary", "GlobalVariableSliderPanel", "Plot", "RawMessages"),
    *("StateTransitions", "Tab", "Teleop"),
}
"""Of Foxglove."""
DISPLAYS = {
    "Odometry": "nav_msgs/msg/Odometry",
    "Path": "nav_msgs/msg/Path",
    "PointStamped": "geometry_msgs/msg/PointStamped",
    "RobotModel": "std_msgs/msg/String",
    "WrenchStamped": "geometry_msgs/msg/WrenchStamped",
}
"""Those of RViz that take a topic, and its type."""
RPY = {"roll", "pitch", "yaw"}
"""Curves that PlotJuggler derives from every quaternion."""


class Named(NamedTuple):
    """A reference in a layout: topic, fields below it, and their stated type."""

    topic: str
    fields: tuple[str, ...]
    label: str = ""
    msgtype: str = ""


@cache
def plates() -> tuple[str, ...]:
    """Return the force plates of the scenario that has some."""
    return tuple(plate.name for plate in get_scenario("walk_on_plates").force_plates)


@cache
def readouts() -> frozenset[str]:
    """Return the debug signals of the walking controller."""
    return frozenset(make_controller("zmp", ROBOT).readouts)


def row_of(name: str, rows: list[Topic]) -> Topic | None:
    """Return the entry of the topic ``name`` in a launch of biped14 under zmp, or None."""
    for row in rows:
        if row.name == READOUTS.name:
            found = name.removeprefix(row.name) in readouts() and name.startswith(row.name)
        elif "{plate}" in row.name:
            found = name in [row.of("", plate) for plate in plates()]
        else:
            found = name in row.names([sole.name for sole in ROBOT.soles])
        if found:
            return row
    return None


def lacks(named: Named, rows: list[Topic], joints_by_name: bool = False) -> str:
    """Return the error of a reference in a layout; empty if there is none."""
    row = row_of(named.topic, rows)
    if row is None:
        return f"no topic {named.topic}"
    if named.msgtype and row.msgtype != named.msgtype:
        return f"{named.topic} is {row.msgtype}, not {named.msgtype}"
    fields = list(named.fields)
    if joints_by_name and row.msgtype == "sensor_msgs/msg/JointState":
        if len(fields) != 2 or fields[0] not in ROBOT.joint_names:
            return f"{named.topic} has no joint {fields[0]}"
        fields = [f"{fields[1]}[0]"]
    kind = row.msgtype
    for i, field in enumerate(fields):
        name, _, index = field.partition("[")
        if joints_by_name and kind == "geometry_msgs/msg/Quaternion" and name in RPY:
            return ""
        known = dict(STORE.get_msgdef(kind).fields)
        if name not in known:
            return f"{named.topic}: {kind} has no field {name}"
        node, details = known[name]
        if (node in (Nodetype.ARRAY, Nodetype.SEQUENCE)) != bool(index):
            return f"{named.topic}: {name} is {'a list' if not index else 'no list'}"
        if index:
            (node, details), _ = details
            if row.columns and kind == "std_msgs/msg/Float64MultiArray":
                labels = ("t", *(label for column in row.columns for label in column.labels))
                if labels[int(index[:-1])] not in named.label:
                    return f"{named.topic}: data[{index} is {labels[int(index[:-1])]}, not {named.label}"
        if node == Nodetype.NAME:
            kind = details
        elif i < len(fields) - 1:
            return f"{named.topic}: there is nothing below {name}"
    return ""


def foxglove() -> Iterator[Named]:
    """Yield the references of the layout of Foxglove."""
    layout = json.loads((CONFIG / "foxglove.json").read_text(encoding="utf-8"))
    for panel, config in layout["configById"].items():
        for path in config.get("paths", ()):
            topic, *fields = path["value"].split(".")
            yield Named(topic, tuple(fields), path["label"])
        for key in ("topicPath", "topicToRender", "topic"):
            if config.get(key):
                topic, *fields = config[key].split(".")
                teleop = "geometry_msgs/msg/Twist" if panel.startswith("Teleop") else ""
                yield Named(topic, tuple(fields), "", teleop)
        for topic in config.get("topics", ()):
            yield Named(topic, ())


def plotjuggler() -> Iterator[Named]:
    """Yield the references of the layout of PlotJuggler."""
    names = sorted((name for row in TOPICS.values() for name in row.names(("left", "right"))), key=len)
    for area in ElementTree.parse(CONFIG / "plotjuggler.xml").iter("DockArea"):
        for curve in area.iter("curve"):
            path = curve.attrib["name"]
            found = re.match(r"/controller/[^/]+|/force_plates/[^/]+/[^/]+", path)
            topic = found[0] if found else next((n for n in reversed(names) if path.startswith(f"{n}/")), path)
            yield Named(topic, tuple(path.removeprefix(topic).strip("/").split("/")), area.attrib["name"])


def displays() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the displays of RViz that have a topic: class, and the properties of the topic."""
    manager = yaml.safe_load((CONFIG / "bipedsim.rviz").read_text(encoding="utf-8"))["Visualization Manager"]
    assert manager["Global Options"]["Fixed Frame"] == WORLD_FRAME
    for display in manager["Displays"]:
        package, _, kind = display["Class"].partition("/")
        assert package == "rviz_default_plugins", "no plugin of others"
        topic = display.get("Description Topic") or display.get("Topic")
        assert (topic is not None) == (kind not in ("Grid", "TF")), display["Name"]
        if topic is not None:
            yield kind, topic


def rviz() -> Iterator[Named]:
    """Yield the references of the configuration of RViz."""
    for kind, topic in displays():
        yield Named(topic["Value"], (), "", DISPLAYS[kind])


LAYOUTS: dict[str, Callable[[], Iterator[Named]]] = {"foxglove": foxglove, "plotjuggler": plotjuggler, "rviz": rviz}


@pytest.mark.parametrize("name", LAYOUTS)
def test_all_that_a_layout_names_is_published_with_that_type(name: str) -> None:
    named = list(LAYOUTS[name]())
    assert len(named) >= 10
    found = [lacks(one, list(TOPICS.values()), name == "plotjuggler") for one in named]
    assert list(filter(None, found)) == []


@pytest.mark.long
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_topic_that_is_renamed_or_of_another_type_is_missed(name: str) -> None:
    """Each that the layout shows, one at a time."""
    rows = list(TOPICS.values())
    shown = {row.name for row in rows for one in LAYOUTS[name]() if row_of(one.topic, [row])}
    assert len(shown) >= 7
    for row in rows:
        if row.name not in shown:
            continue
        others = [one for one in rows if one is not row]
        for changed in (replace(row, name=f"/new{row.name}"), replace(row, msgtype="rosgraph_msgs/msg/Clock")):
            found = [lacks(one, [*others, changed], name == "plotjuggler") for one in LAYOUTS[name]()]
            # A panel that shows a whole message accepts any type.
            whole = all(not one.fields and not one.msgtype for one in LAYOUTS[name]() if row_of(one.topic, [row]))
            assert any(found) or (whole and changed.name == row.name), changed


def test_the_layouts_show_what_there_is_to_see() -> None:
    everywhere = [row for row in TOPICS.values() if row in (SOLE_WRENCH, SOLE_COP, PLATE_COP)]
    for row in everywhere:
        for name, layout in LAYOUTS.items():
            assert any(row_of(one.topic, [row]) for one in layout()), (name, row.name)
    for wanted in ("/joint_states", "/sim_node/command", "/cmd_vel"):
        for layout in (foxglove, plotjuggler):
            assert wanted in {one.topic for one in layout()}
    assert {"/robot_description", "/diagnostics", "/plan/footsteps"} <= {one.topic for one in foxglove()}


def test_every_panel_of_foxglove_is_configured_and_every_configuration_is_shown() -> None:
    layout = json.loads((CONFIG / "foxglove.json").read_text(encoding="utf-8"))
    configured = layout["configById"]

    def leaves(node: Any) -> Iterator[str]:
        if isinstance(node, str):
            yield node
            for tab in configured[node].get("tabs", ()):
                yield from leaves(tab["layout"])
            return
        assert node["direction"] in ("row", "column")
        assert 0.0 < node["splitPercentage"] < 100.0
        yield from leaves(node["first"])
        yield from leaves(node["second"])

    shown = list(leaves(layout["layout"]))
    assert sorted(shown) == sorted(configured)
    assert {panel.partition("!")[0] for panel in shown} == PANELS
    assert all(f"${name}" in json.dumps(configured) for name in layout["globalVariables"])


def test_every_tab_of_plotjuggler_holds_as_many_plots_as_it_says() -> None:
    root = ElementTree.parse(CONFIG / "plotjuggler.xml").getroot()
    assert root.tag == "root"
    for splitter in root.iter("DockSplitter"):
        areas = splitter.findall("DockArea")
        assert len(areas) == int(splitter.attrib["count"]) == len(splitter.attrib["sizes"].split(";"))
        assert all(area.find("plot/curve") is not None for area in areas)


def test_rviz_asks_for_no_more_than_is_offered_and_is_taken_for_no_recorder() -> None:
    for _, topic in displays():
        asked = Qos(
            reliability=topic["Reliability Policy"].lower().replace(" ", "_"),
            durability=topic["Durability Policy"].lower().replace(" ", "_"),
        )
        row = row_of(topic["Value"], list(TOPICS.values()))
        assert row is not None
        assert incompatible(row.offered, asked) == ""
        assert asked.durability == row.offered.durability
        assert (asked.reliability == "best_effort") == (row.offered.durability == "volatile")
