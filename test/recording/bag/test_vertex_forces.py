"""Forces at vertices in a bag: those of each foot, in the rows of their stamps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from recording_support import NS, joint_state, labelled, write_bag

from bipedsim.recording import load_recording
from bipedsim.recording.schema import JOINT_STATES, VERTEX_FORCES


def test_a_bag_gives_the_forces_at_vertices_back(tmp_path: Path) -> None:
    """Of feet with other numbers of corners, and NaN in a row without."""
    messages, corners = [], {"left": 4, "right": 1}
    for i in range(30):
        data = joint_state(i * NS // 1000, ["a"], [0.0], [0.0], [0.0])
        messages.append((JOINT_STATES, "sensor_msgs/msg/JointState", data))
        for foot, n in corners.items():
            if (foot, i) == ("right", 7):
                continue
            labels = ["t", *(f"v{k}_f{axis}" for k in range(n) for axis in "xyz")]
            numbers = [1e-3 * i, *(100.0 * i + np.arange(3 * n))]
            data = labelled(labels, numbers)
            messages.append((VERTEX_FORCES.format(foot=foot), "std_msgs/msg/Float64MultiArray", data))
    custom = {"feet": "left,right"}
    write_bag(tmp_path / "bag", messages, custom).close()
    recording = load_recording(tmp_path / "bag")
    left, right = recording.vertex_forces["left"], recording.vertex_forces["right"]
    assert (left.shape, right.shape) == ((30, 4, 3), (30, 1, 3))
    np.testing.assert_array_equal(left, 100.0 * np.arange(30)[:, None, None] + np.arange(12).reshape(4, 3))
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(right).any(axis=(1, 2))), [7])
    np.testing.assert_array_equal(right[8], [[800.0, 801.0, 802.0]])
