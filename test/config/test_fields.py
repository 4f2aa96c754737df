"""Parameters: declared once, checked everywhere, with messages that name what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bipedsim.config.fields import param
from bipedsim.config.read import from_mapping, read_yaml
from bipedsim.errors import ConfigError, UnknownNameError


@dataclass(frozen=True)
class Example:
    """Parameters of nothing."""

    gain: float = param(1.0, "a gain", unit="N/m", low=0.0, high=10.0)
    count: int = param(3, "a count", low=1)
    kind: str = param("soft", "a kind", choices=("soft", "hard"))
    on: bool = param(False, "a switch")
    per_joint: dict[str, float] = param({}, "per joint")


@given(gain=st.floats(0.0, 10.0), count=st.integers(1, 1000), on=st.booleans())
def test_valid_values_arrive(gain: float, count: int, on: bool) -> None:
    values = from_mapping(Example, {"gain": gain, "count": count, "on": on, "kind": "hard"}, "here")
    assert (values.gain, values.count, values.on, values.kind) == (gain, count, on, "hard")


def test_missing_values_keep_their_defaults_and_share_nothing() -> None:
    first, second = from_mapping(Example, None, "here"), from_mapping(Example, {}, "here")
    assert first == second == Example()
    assert first.per_joint is not second.per_joint
    assert isinstance(from_mapping(Example, {"gain": 2}, "here").gain, float)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gain": -1.0}, r"file.yaml: gain = -1.0 N/m is below its minimum 0.0 N/m"),
        ({"gain": 11}, r"gain = 11.0 N/m is above its maximum 10.0 N/m"),
        ({"gain": float("nan")}, r"gain = nan must be a finite number"),
        ({"gain": "2"}, r"gain = '2' must be a finite number"),
        ({"gain": True}, r"gain = True must be a finite number"),
        ({"count": 1.5}, r"count = 1.5 must be a whole number"),
        ({"count": True}, r"count = True must be a whole number"),
        ({"kind": "sift"}, r"unknown kind 'sift'; did you mean 'soft'\? Choices: soft, hard"),
        ({"gian": 1.0}, r"unknown parameter 'gian'; did you mean 'gain'\? Choices: gain, count, kind"),
        ([1], r"expected a mapping of Example parameters"),
    ],
)
def test_wrong_values_are_named(values: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_mapping(Example, values, "file.yaml")


def test_names_far_from_all_choices_get_the_list_alone() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown robot 'xyz'\. Choices: biped14, talos$"):
        raise UnknownNameError("robot", "xyz", ["biped14", "talos"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a: [1, 2", r"robot.yaml: not valid YAML"),
        (b"- 1\n- 2\n", r"robot.yaml: expected a mapping at top level, got list"),
        (b"a: 1\nb: {c: 1, c: 2}\n", r"the key 'c' is given twice(.|\n)*line 2"),
        (b"a: \xff\n", r"robot.yaml: not text in UTF-8 \(byte 3\)"),
    ],
)
def test_broken_yaml_is_named(text: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "robot.yaml"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match=message):
        read_yaml(path)


def test_missing_yaml_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none.yaml: cannot be read \(No such file or directory\)"):
        read_yaml(tmp_path / "none.yaml")
