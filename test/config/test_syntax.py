"""Syntax errors in files: each error names its file, line and column."""

from __future__ import annotations

import pickle
from contextlib import suppress

import pytest
import yaml
from hypothesis import given, strategies as st

from bipedsim.config import parse_json, parse_xml, yaml_fault, yaml_value
from bipedsim.errors import InvalidSyntaxError


def read_yaml_text(text: str, where: str) -> object:
    try:
        return yaml_value(text)
    except yaml.YAMLError as error:
        raise yaml_fault(error, text, where) from error


READERS = {"yaml": read_yaml_text, "xml": parse_xml, "json": parse_json}


@pytest.mark.parametrize(
    ("language", "text", "line", "column"),
    [
        ("yaml", "robot: talos\n  duration: 3", 2, 11),
        ("yaml", "a: 1\nb: [1, 2\nc: 3", 3, 2),
        ("yaml", "a:\n\tb: 1", 2, 1),
        ("yaml", "a: 1\nb: 2\na: 3", 3, 1),
        ("yaml", "a: 1\nb: \x01", 2, 4),
        ("xml", "<robot>\n<link></robot>", 2, 9),
        ("yaml", "mass: 1.0\nday: 2020-13-45", 2, 6),
        ("xml", "<robot>\n<link name=a/></robot>", 2, 12),
        ("xml", "<robot>\n\0</robot>", 2, 1),
        ("json", '{"a": 1,\n"b"}', 2, 4),
    ],
)
def test_a_fault_has_its_position_and_its_line(language: str, text: str, line: int, column: int) -> None:
    with pytest.raises(InvalidSyntaxError) as raised:
        READERS[language](text, "robots/mine")
    for error in (raised.value, pickle.loads(pickle.dumps(raised.value))):
        assert error.place == "robots/mine"
        assert error.position == (line, column)
        assert error.value == text.splitlines()[line - 1]


@pytest.mark.parametrize("language", READERS)
@given(text=st.text("ab:{}[],-#&*!|>'\"%@`<>/= \n\t\x01\x85\u20281"))
def test_any_text_is_read_or_has_a_fault_with_a_position(language: str, text: str) -> None:
    with suppress(InvalidSyntaxError):
        READERS[language](text, "x")
