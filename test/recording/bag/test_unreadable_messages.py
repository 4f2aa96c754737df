"""Bags with invalid messages on every topic that a reader uses: the rest is read."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from recording_support import NS, STORE, header, joint_state, labelled, serialise, write_bag

from bipedsim.errors import IncompleteWarning
from bipedsim.plates import PlateGeometry, as_json
from bipedsim.recording import COLUMNS, Recording, columns_on, load_recording, schema
from bipedsim.recording.schema import vertex_labels

N = 40
JOINTS = ["l_knee", "r_knee"]
MULTI, TEXT = "std_msgs/msg/Float64MultiArray", "std_msgs/msg/String"
CORNERS = np.array([[0.3, 0.2, 0.0], [-0.3, 0.2, 0.0], [-0.3, -0.2, 0.0], [0.3, -0.2, 0.0]])
PLATE = PlateGeometry("one", CORNERS)
RUN = {"control_dt": 1e-3, "contact_model": "one_step", schema.ABOUT: {"scenario": "stand"}}
Message = tuple[str, str, bytes]


def text(value: str) -> bytes:
    return serialise(TEXT, data=value)


def tick(i: int) -> list[Message]:
    """Return the messages of simulator and controller in a tick, on every topic that is read."""
    t = i * NS // 1000
    switch = serialise("std_msgs/msg/Bool", data=bool(i % 2))
    result = [(schema.SWITCH.format(sensor="shank"), "std_msgs/msg/Bool", switch)]
    result.append((schema.JOINT_STATES, "sensor_msgs/msg/JointState", joint_state(t, JOINTS, [i, -i], [0, 1], [2, 3])))
    result.append((schema.APPLIED, "sensor_msgs/msg/JointState", joint_state(t, JOINTS, [], [], [i, i])))
    kinds = {
        "geometry_msgs/msg/WrenchStamped": (schema.ANKLE_WRENCH, schema.SOLE_WRENCH),
        "geometry_msgs/msg/PointStamped": (schema.SOLE_COP, schema.COP),
        "nav_msgs/msg/Odometry": (schema.GROUND_TRUTH, schema.ODOMETRY, schema.OBJECTS + "ball"),
        "sensor_msgs/msg/Imu": (schema.IMU, schema.ADDITIONAL_IMU.format(sensor="shank")),
    }
    for kind, names in kinds.items():
        more = {"child_frame_id": "base_link"} if kind.endswith("Odometry") else {}
        result += [(name.format(foot="left"), kind, serialise(kind, header=header(t), **more)) for name in names]
    for name in schema.LABELLED_TOPICS:
        labels = dict.fromkeys(
            label
            for column in columns_on(name)
            for owner in ([(joint,) for joint in JOINTS] if column.per == "joint" else [()])
            for label in column.labels_of(owner)
        )
        labels = ["t", *(label for label in labels if label != "t")]
        result.append((name.format(foot="left"), MULTI, labelled(labels, [1e-3 * i] + [1.0] * (len(labels) - 1))))
    numbers = {
        schema.VERTEX_FORCES.format(foot="left"): (vertex_labels(4), 12),
        schema.PLAN: (("t", "plan_zmp_x"), 1),
        schema.PLATE_SIGNALS.format(plate="one"): (("t", *PLATE.channel_names, schema.CLIPPED), 7),
    }
    result += [(name, MULTI, labelled(labels, [1e-3 * i] + [2.0] * n)) for name, (labels, n) in numbers.items()]
    result.append((schema.READOUTS + "margin", "std_msgs/msg/Float64", serialise("std_msgs/msg/Float64", data=0.5)))
    result.append((schema.FALLEN, "std_msgs/msg/Bool", serialise("std_msgs/msg/Bool", data=False)))
    return result


BEGIN: list[Message] = [
    (schema.RUN, TEXT, text(json.dumps(RUN))),
    (schema.PLATE_GEOMETRY.format(plate="one"), TEXT, text(json.dumps(as_json(PLATE)))),
    (schema.ROBOT_DESCRIPTION, TEXT, text("<robot name='biped14'/>")),
]
TICKS = [message for i in range(N) for message in tick(i)]
DIAGNOSTICS = "diagnostic_msgs/msg/DiagnosticArray"
KINDS = {name: kind for name, kind, _ in (*BEGIN, *TICKS)} | {schema.DIAGNOSTICS: DIAGNOSTICS}
FIRST = {name: data for name, _, data in reversed((*BEGIN, *TICKS))}


def read(messages: list[Message]) -> Recording:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteWarning)
        write_bag(Path(folder, "bag"), messages, {"feet": "left"}).close()
        return load_recording(Path(folder, "bag"))


@pytest.fixture(scope="module")
def whole() -> Recording:
    return read([*BEGIN, *TICKS])


def test_the_bag_has_something_on_every_topic_that_is_read(whole: Recording) -> None:
    """Without which nothing below would show anything."""
    assert {
        column.topic.format(foot="left", sensor="shank") for column in COLUMNS.values() if column.topic
    } <= KINDS.keys()
    assert not whole.notes
    assert (whole.vertex_forces.keys(), whole.force_plates.keys()) == ({"left"}, {"one"})
    assert whole.readouts.keys() == {"margin", "plan_zmp_x"}
    assert whole.objects.keys() == {"ball"}
    assert (whole.imu_names, whole.switch_names) == (("shank",), ("shank",))
    assert whole.contact_switches[:, 0].tolist() == [i % 2 for i in range(N)]
    assert whole.run["control_dt"] == 1e-3


NUMBERS = st.floats(width=64) | st.sampled_from([0.0, 1e-3, 1e300, -1e300, np.nan, np.inf, 5e9])
VALUES = st.lists(NUMBERS, max_size=30)
KEYS = ["control_dt", "contact_model", schema.ABOUT, schema.STATISTICS, "push", "duration_s", "channel_names", "name"]
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)
MESSAGES = {name: STORE.types[f"diagnostic_msgs/msg/{name}"] for name in ("KeyValue", "DiagnosticStatus")}


def diagnostics(pairs: list[tuple[str, str]]) -> bytes:
    """Return a message as a controller node has it that was stopped."""
    values = [MESSAGES["KeyValue"](key=key, value=value) for key, value in pairs]
    status = MESSAGES["DiagnosticStatus"](level=2, name="controller", message="", hardware_id="", values=values)
    return serialise(DIAGNOSTICS, header=header(0), status=[status])


CLIPPED = labelled(("t", *PLATE.channel_names, schema.CLIPPED), [0.005, *range(6), np.nan])


def spoilt(name: str) -> st.SearchStrategy[bytes]:
    """Return messages on a topic: random bytes, our messages with changed bytes or cut short, and valid but unusual
    messages.
    """
    ours = FIRST.get(name, diagnostics([(schema.STOPPED[0], "1"), (schema.STOPPED[1], "")]))
    changed = st.tuples(st.integers(0, len(ours) - 1), st.binary(min_size=1, max_size=8)).map(
        lambda change: (ours[: change[0]] + change[1] + ours[change[0] + len(change[1]) :])[: len(ours)]
    )
    found = st.binary(max_size=60) | changed | st.integers(0, len(ours)).map(lambda n: ours[:n])
    if KINDS[name] == MULTI:
        labels = st.lists(st.text("tv0_fxyzc,é", max_size=5), max_size=14)
        return found | st.tuples(labels, VALUES).map(lambda given: labelled(*given))
    if KINDS[name] == TEXT:
        return found | JSON.map(lambda value: text(json.dumps(value))) | st.just(text("[" * 100_000))
    if KINDS[name] == DIAGNOSTICS:
        pairs = st.tuples(st.sampled_from(schema.STOPPED), NUMBERS.map(str) | st.text(max_size=4))
        return found | st.lists(pairs, max_size=3).map(diagnostics)
    return found


@st.composite
def spoilt_bags(draw: st.DrawFn) -> tuple[str, list[Message]]:
    name = draw(st.sampled_from(sorted(KINDS.keys() - {schema.JOINT_STATES})))
    added = draw(st.lists(spoilt(name), min_size=1, max_size=4))
    # Behind the first tick, or in its place, as where a topic had only been published by others.
    alone = draw(st.booleans())
    at = draw(st.lists(st.integers(len(BEGIN) + len(tick(0)), len(BEGIN) + len(TICKS)), min_size=4, max_size=4))
    messages = [(None if alone and one[0] == name else one) for one in (*BEGIN, *TICKS)]
    for place, data in sorted(zip(at, added, strict=False), key=lambda one: -one[0]):
        messages.insert(place, (name, KINDS[name], data))
    return name, [one for one in messages if one is not None]


def of_topics(run: Recording) -> dict[str, Any]:
    """Return all that a recording got from a bag, by its topic."""
    found: dict[str, Any] = {}
    for column in COLUMNS.values():
        if column.topic:
            found.setdefault(column.topic.format(foot="left", sensor="shank"), []).append(getattr(run, column.name))
    found[schema.VERTEX_FORCES.format(foot="left")] = list(run.vertex_forces.values())
    found[schema.OBJECTS + "ball"] = list(run.objects.values())
    found[schema.READOUTS + "margin"] = [run.readouts.get("margin")]
    found[schema.PLAN] = [run.readouts.get("plan_zmp_x")]
    plate = run.force_plates.get("one")
    found["/force_plates/one"] = [] if plate is None else [plate.t, plate.channels]
    return found


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(spoilt_bags())
def test_what_others_publish_spoils_nothing_else(whole: Recording, bag: tuple[str, list[Message]]) -> None:
    name, messages = bag
    run = read(messages)
    np.testing.assert_array_equal(run.t, whole.t)
    for topic, arrays in of_topics(whole).items():
        if not name.startswith(topic):
            for ours, found in zip(arrays, of_topics(run)[topic], strict=True):
                np.testing.assert_array_equal(found, ours, err_msg=f"{topic}, after messages on {name}")


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(st.lists(spoilt(schema.JOINT_STATES).filter(lambda raw: raw[:4] != FIRST[schema.JOINT_STATES][:4]), max_size=3))
def test_joint_states_that_are_none_leave_those_that_are(whole: Recording, added: list[bytes]) -> None:
    """The invalid messages are, for example, text. A message that can be read as a joint state counts as one."""
    kind = KINDS[schema.JOINT_STATES]
    run = read([*BEGIN, *((schema.JOINT_STATES, kind, raw) for raw in added), *TICKS])
    np.testing.assert_array_equal(run.joint_position, whole.joint_position)
    assert any(schema.JOINT_STATES in note for note in run.notes) == bool(added)


NAME = schema.VERTEX_FORCES.format(foot="left")
FOREIGN = labelled(("time", "0_fx", "0_fy", "0_fz"), [0.005, 1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("name", "data", "unread"),
    [
        (NAME, FOREIGN, 1),
        (NAME, labelled(vertex_labels(1), [7.7, 1.0, 2.0, 3.0]), 0),  # of no row
        (NAME, FOREIGN[: len(FOREIGN) // 2], 1),
        (schema.PLAN, labelled(("t", "plan_x"), [7.7, 1.0]), 0),
        (
            schema.PLATE_SIGNALS.format(plate="one"),
            labelled(("t", *PLATE.channel_names, schema.CLIPPED), [0.005, 1.0]),
            1,
        ),
        (schema.PLATE_SIGNALS.format(plate="one"), CLIPPED, 1),
        (schema.CONTACT.format(foot="left"), labelled(schema.CONTACT_FIELDS, [0.005, 1e300] + [np.nan] * 11), 1),
        (schema.RUN, text('{"control_dt": "a"}'), 1),
        (schema.RUN, text("[" * 100_000), 1),
        (schema.ROBOT_DESCRIPTION, text("no robot"), 0),
        (schema.PLATE_GEOMETRY.format(plate="one"), text("3"), 1),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_what_cannot_be_used_is_counted_by_its_topic(
    whole: Recording, name: str, data: bytes, unread: int, alone: bool
) -> None:
    rest = [one for one in (*BEGIN, *TICKS) if not (alone and one[0] == name)]
    run = read([*rest, (name, KINDS[name], data)])
    np.testing.assert_array_equal(run.joint_position, whole.joint_position)
    told = [note for note in run.notes if name in note]
    assert len(told) >= unread
    if not alone:
        np.testing.assert_array_equal(run.vertex_forces["left"], whole.vertex_forces["left"])
        assert whole.force_plates["one"].channels.tolist() == run.force_plates["one"].channels.tolist()


def test_all_messages_that_are_left_out_are_counted() -> None:
    """Also those that have one time, or that of no row."""
    rest = [one for one in (*BEGIN, *TICKS) if one[0] != NAME]
    run = read([*rest, *[(NAME, MULTI, FOREIGN)] * 3])
    assert not run.vertex_forces
    assert any(f"{NAME}: 3 of 3 messages" in note for note in run.notes)


def test_a_foreign_message_before_all_others_does_not_decide_what_the_rest_is(whole: Recording) -> None:
    run = read([*BEGIN, (NAME, MULTI, FOREIGN), *TICKS])
    np.testing.assert_array_equal(run.vertex_forces["left"], whole.vertex_forces["left"])
    assert any(f"{NAME}: 1 of {N + 1} messages" in note for note in run.notes)
