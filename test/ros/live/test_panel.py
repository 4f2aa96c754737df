"""The command of the next run, as a shell reads it."""

from __future__ import annotations

import shlex

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
pytest.importorskip("viser", reason="viser, the extra `view`, is not installed")

from hypothesis import given
from hypothesis import strategies as st

from bipedsim_ros.live.panel import command_of

WORDS = st.dictionaries(st.sampled_from(["robot", "controller", "scenario", "ground", "record"]), st.text(max_size=12))


@given(WORDS)
def test_a_shell_reads_back_what_was_meant(words: dict[str, str]) -> None:
    line = shlex.split(command_of(words))
    assert line[:3] == ["bipedsim", "up", "--view"]
    assert dict(zip(line[3::2], line[4::2], strict=True)) == {f"--{name}": word for name, word in words.items() if word}
