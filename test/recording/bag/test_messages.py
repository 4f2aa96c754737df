"""ROS messages decoded into columns: every layout, either endianness, and named damage."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, strategies as st
from recording_support import NS, STORE, header, joint_state, serialise, wrench
from refusals import refusal

from bipedsim.errors import RecordingError
from bipedsim.recording.bag.messages import columns

WRENCH, JOINTS = "geometry_msgs/msg/WrenchStamped", "sensor_msgs/msg/JointState"
MS = 1_000_000
numbers = st.floats(allow_nan=False, width=64)


@given(
    st.lists(st.tuples(st.text("ab_é", max_size=9), numbers), max_size=5), st.booleans(), st.text("xyz/", max_size=9)
)
def test_joint_states_decode_whatever_the_names_do_to_the_alignment(
    joints: list[tuple[str, float]], with_velocity: bool, frame: str
) -> None:
    names, position = [n for n, _ in joints], [v for _, v in joints]
    velocity = [2 * v for v in position] if with_velocity else []
    arrays = {"position": position, "velocity": velocity, "effort": []}
    values: dict[str, Any] = {k: np.asarray(v, dtype=np.float64) for k, v in arrays.items()}
    messages = [serialise(JOINTS, header=header(i * MS, frame), name=names, **values) for i in range(3)]
    table = columns(messages, JOINTS)
    assert table.labels == tuple(names)
    np.testing.assert_array_equal(table.stamp, [0, MS, 2 * MS])
    np.testing.assert_array_equal(table.values["position"], [position] * 3)
    np.testing.assert_array_equal(table.values["velocity"], [velocity] * 3)
    assert table.values["effort"].shape == (3, 0)


@given(
    st.lists(
        st.tuples(st.sampled_from(["l_sole", "r_foot", "a_longer_frame"]), numbers, st.integers(0, 2**31 - 1)),
        min_size=1,
    )
)
def test_messages_of_different_layout_keep_their_places(rows: list[tuple[str, float, int]]) -> None:
    table = columns([wrench(t * NS + t % NS, [v, 1, 2, 3, 4, 5], frame) for frame, v, t in rows], WRENCH)
    np.testing.assert_array_equal(table.values["wrench"][:, 0], [v for _, v, _ in rows])
    np.testing.assert_array_equal(table.values["wrench"][:, 5], 5.0)
    np.testing.assert_array_equal(table.stamp, [t * NS + t % NS for _, _, t in rows])


def test_numbers_of_other_joints_stand_under_no_wrong_name() -> None:
    rows = [
        joint_state(0, ["a", "b", "c"], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0], []),
        joint_state(MS, ["c", "a", "b"], [3.0, 1.0, 2.0], [6.0, 4.0, 5.0], []),
        joint_state(2 * MS, ["a", "b", "d"], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0], []),
    ]
    table = columns(rows, JOINTS)
    np.testing.assert_array_equal(table.values["position"], [[1, 2, 3], [1, 2, 3], [np.nan] * 3])
    np.testing.assert_array_equal(table.values["velocity"], [[4, 5, 6], [4, 5, 6], [np.nan] * 3])


def test_equal_sizes_do_not_hide_different_layouts() -> None:
    # One value each, but the second is of another field.
    rows = [joint_state(i * MS, ["a"], [i + 1.0], [], []) for i in range(3)]
    rows[1] = joint_state(MS, ["a"], [], [], [2.0])
    assert len({len(row) for row in rows}) == 1
    table = columns(rows, JOINTS)
    np.testing.assert_array_equal(table.values["position"][:, 0], [1, np.nan, 3])
    np.testing.assert_array_equal(table.stamp, [0, MS, 2 * MS])


def test_odometry_and_imu_decode_as_rosbags_wrote_them() -> None:
    position = {"x": 1.0, "y": 2.0, "z": 3.0}
    turn = {"x": 0.1, "y": 0.2, "z": 0.3, "w": 0.9}
    pose = {"pose": {"position": position, "orientation": turn}}
    twist = {"twist": {"linear": position, "angular": {"x": 4.0, "y": 5.0, "z": 6.0}}}
    kind = "nav_msgs/msg/Odometry"
    raw = serialise(kind, header=header(7), child_frame_id="base_link", pose=pose, twist=twist)
    odometry = columns([raw], kind)
    np.testing.assert_array_equal(odometry.values["pose"], [[1, 2, 3, 0.1, 0.2, 0.3, 0.9]])
    np.testing.assert_array_equal(odometry.values["twist"], [[1, 2, 3, 4, 5, 6]])
    kind = "sensor_msgs/msg/Imu"
    raw = serialise(
        kind,
        header=header(7),
        orientation=turn,
        angular_velocity=position,
        linear_acceleration={"x": 0.0, "y": 0.0, "z": 9.81},
    )
    imu = columns([raw], kind)
    np.testing.assert_array_equal(imu.values["orientation"], [[0.1, 0.2, 0.3, 0.9]])
    np.testing.assert_array_equal(imu.values["angular_velocity"], [[1, 2, 3]])
    np.testing.assert_array_equal(imu.values["linear_acceleration"], [[0, 0, 9.81]])


def test_big_endian_messages_decode_too() -> None:
    raw = wrench(5 * NS + 7, [1, 2, 3, 4, 5, 6])
    message = STORE.deserialize_cdr(raw, WRENCH)
    turned = bytes(STORE.serialize_cdr(message, WRENCH, little_endian=False))
    assert turned != raw
    table = columns([raw, turned], WRENCH)
    np.testing.assert_array_equal(table.values["wrench"], [[1, 2, 3, 4, 5, 6]] * 2)
    np.testing.assert_array_equal(table.stamp, [5 * NS + 7] * 2)


def test_undecodable_messages_are_named() -> None:
    with refusal(RecordingError, place="messages of type std_msgs/msg/Header"):
        columns([b""], "std_msgs/msg/Header")
    raw = wrench(0, [1, 2, 3, 4, 5, 6])
    with refusal(RecordingError, place=WRENCH):
        columns([b"\x00\x03" + raw[2:]], WRENCH)
    with refusal(RecordingError, place=WRENCH):
        columns([raw + bytes(8)], WRENCH)
    for size in range(4, len(raw), 5):
        with refusal(RecordingError, place=WRENCH):
            columns([raw[:size]], WRENCH)


def test_room_for_the_alignment_of_empty_sequences_is_no_damage() -> None:
    """As rclpy serialises joint states that hold names and efforts alone."""
    raw = joint_state(MS, ["a", "b", "c"], [], [], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(columns([raw + bytes(8), raw + bytes(8)], JOINTS).values["effort"], [[1, 2, 3]] * 2)
    with refusal(RecordingError, place=JOINTS):
        columns([raw + bytes(24)], JOINTS)


def test_the_store_of_the_tests_is_jazzy() -> None:
    assert STORE.hash_rihs01(JOINTS) == "RIHS01_a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e"
