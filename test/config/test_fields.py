"""Parameters have one declaration and are checked everywhere; messages name the error."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st
from refusals import refusal

from bipedsim.config.fields import param
from bipedsim.config.read import from_mapping, read_yaml
from bipedsim.errors import UnknownNameError


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
    ("values", "fields"),
    [
        ({"gain": -1.0}, {"place": "file.yaml: gain", "value": -1.0}),
        ({"gain": 11}, {"place": "file.yaml: gain", "value": 11.0}),
        ({"gain": float("nan")}, {"place": "file.yaml: gain", "value": float("nan")}),
        ({"gain": "2"}, {"place": "file.yaml: gain", "value": "2"}),
        ({"gain": True}, {"place": "file.yaml: gain", "value": True}),
        ({"count": 1.5}, {"place": "file.yaml: count", "value": 1.5}),
        ({"count": True}, {"place": "file.yaml: count", "value": True}),
        ({"kind": "sift"}, {"kind": "kind", "name": "sift", "meant": "soft", "choices": ("soft", "hard")}),
        (
            {"gian": 1.0},
            {
                "kind": "parameter",
                "name": "gian",
                "meant": "gain",
                "choices": ("gain", "count", "kind", "on", "per_joint"),
            },
        ),
        ([1], {"place": "file.yaml", "value": [1]}),
    ],
)
def test_wrong_values_are_named(values: Any, fields: dict[str, Any]) -> None:
    with refusal(**fields):
        from_mapping(Example, values, "file.yaml")


def test_names_far_from_all_choices_get_the_list_alone() -> None:
    assert UnknownNameError("robot", "xyz", ["biped14", "talos"]).meant == ""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (b"a: [1, 2", yaml.parser.ParserError),
        (b"- 1\n- 2\n", type(None)),
        (b"a: 1\nb: {c: 1, c: 2}\n", yaml.MarkedYAMLError),
        (b"a: \xff\n", UnicodeDecodeError),
    ],
)
def test_broken_yaml_is_named(text: bytes, cause: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "robot.yaml"
    path.write_bytes(text)
    with refusal(place=path, cause=cause):
        read_yaml(path)


def test_missing_yaml_is_named(tmp_path: Path) -> None:
    with refusal(place=tmp_path / "none.yaml", cause=FileNotFoundError):
        read_yaml(tmp_path / "none.yaml")
