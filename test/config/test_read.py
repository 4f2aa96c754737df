"""Reading configuration: types define the format, paths are relative to their file, and all errors of a file are
reported at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from refusals import check_fields, faults_of, refusal

from bipedsim.config.fields import Vector, param
from bipedsim.config.read import check, from_file, from_mapping, read_yaml, yaml_value
from bipedsim.errors import ConfigError, InvalidSyntaxError, UnknownNameError


@dataclass(frozen=True)
class Part:
    """A part."""

    at: Vector = param((0.0, 0.0, 0.0), "where", unit="m", low=-1.0, high=1.0)
    kind: str = param("soft", "what", choices=("soft", "hard"))
    mass: float = param(0.0, "how heavy", unit="kg", required=True)


@dataclass(frozen=True)
class Whole:
    """Has one field of each shape."""

    parts: tuple[Part, ...] = param((), "in a list")
    named: Mapping[str, Part] = param({}, "by name")
    main: Part = param(Part(), "one")
    gains: float | Mapping[str, float] = param(1.0, "one number, or per joint", low=0.0)
    words: list[str] = param([], "some")
    maybe: float | None = param(None, "or none")
    file: str = param("name", "a name or a path", path=True)
    axis: str = param("x", "a name that YAML may take for a truth value", choices=("x", "y", "off"))

    def problems(self) -> Iterator[str]:
        """Yield the errors that involve several fields."""
        if self.words and self.maybe is not None:
            yield "give words or maybe"


def test_shapes_arrive(tmp_path: Path) -> None:
    path = tmp_path / "whole.yaml"
    path.write_text(
        "parts: [{at: [0, 1, 0.5], mass: 1e-3}]\nnamed: {left: {mass: 2}}\ngains: {knee: 3}\nwords:\nfile: sub/x.yaml\n"
    )
    whole = from_file(Whole, path)
    assert whole.parts == (Part((0.0, 1.0, 0.5), mass=1e-3),)
    assert whole.named == {"left": Part(mass=2.0)}
    assert whole.gains == {"knee": 3.0}
    assert whole.words == [], "a key with nothing behind it is not given"
    assert whole.file == str(tmp_path / "sub" / "x.yaml")
    assert from_mapping(Whole, {"file": "sub/x.yaml"}, "here").file == "sub/x.yaml"
    assert from_mapping(Whole, {"gains": 2, "maybe": None}, "here") == Whole(gains=2.0)


def test_a_truth_value_is_the_name_that_was_meant() -> None:
    """ROS reads ``axis:=y`` as true, and YAML 1.1 ``axis: off`` as false."""
    assert [from_mapping(Whole, {"axis": value}, "here").axis for value in (True, False, "x")] == ["y", "off", "x"]


NONSENSE = [
    None,
    True,
    -1,
    float("nan"),
    "",
    "x",
    [],
    [None],
    [[1]],
    {},
    {"": None},
    {1: [2]},
    [{"at": {}}],
    {"a": {"b": []}},
]


@pytest.mark.parametrize("key", [field.name for field in dataclasses.fields(Whole)])
def test_nothing_but_a_message_comes_of_nonsense(key: str) -> None:
    for value in NONSENSE:
        with contextlib.suppress(ConfigError):
            assert isinstance(from_mapping(Whole, {key: value}, "here"), Whole)


@pytest.mark.parametrize(
    ("values", "place", "value"),
    [
        ({"parts": [{"mass": 1}, {"mass": "x"}]}, "f: parts[1].mass", "x"),
        ({"parts": [{"mass": 1, "at": [0, 0, 2]}]}, "f: parts[0].at[2]", 2.0),
        ({"parts": [{"mass": 1, "at": [0, 0]}]}, "f: parts[0].at", [0, 0]),
        ({"parts": {"mass": 1}}, "f: parts", {"mass": 1}),
        ({"main": {}}, "f: main.mass", None),
        ({"main": 3}, "f: main", 3),
        ({"gains": {"knee": -1}}, "f: gains.knee", -1.0),
        ({"gains": "x"}, "f: gains", "x"),
        ({"words": ["a", 1]}, "f: words[1]", 1),
        ({"file": True}, "f: file", True),
        ({"words": [False]}, "f: words[0]", False),
        ({"words": ["a"], "maybe": 1.0}, "f", None),
    ],
)
def test_a_fault_is_told_with_its_place(values: dict[str, Any], place: str, value: Any) -> None:
    with refusal(place=place, value=value) as caught:
        from_mapping(Whole, values, "f")
    assert caught.value.place == place


@pytest.mark.parametrize(("key", "name", "meant"), [("kind", "sft", "soft"), ("mss", "mss", "mass")])
def test_a_name_is_told_with_its_place(key: str, name: str, meant: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_mapping(Whole, {"named": {"left": {key: name}}}, "f")
    unknown, missing = caught.value.faults
    check_fields(unknown, place="f: named.left", name=name, meant=meant)
    check_fields(missing, place="f: named.left.mass")


def test_all_faults_are_told_at_once() -> None:
    values = {"gians": 1, "maybe": "x", "parts": [{"mass": -1, "at": 3}, {"mas": 2}]}
    with pytest.raises(ConfigError) as caught:
        from_mapping(Whole, values, "f")
    assert faults_of(caught.value) == {
        ("f", "'gians'"),
        ("maybe", "'x'"),
        ("parts[0].at", "3"),
        ("parts[1]", "'mas'"),
        ("parts[1].mass", "None"),
    }
    assert len(str(caught.value).splitlines()) == 6
    assert not isinstance(caught.value, UnknownNameError)


def test_what_a_caller_has_filled_is_checked_likewise() -> None:
    check(Whole(maybe=1.0, main=Part(mass=1.0)), "here")
    with refusal(place="here: gains", value=-1.0):
        check(Whole(gains=-1.0, main=Part(mass=1.0)), "here")


def test_reading_needs_no_physics() -> None:
    """Help texts use these declarations, so pinocchio and numba must not be imported."""
    code = (
        "import argparse, sys; from bipedsim.cli.options import add_run_options; p = argparse.ArgumentParser(); "
        "add_run_options(p); p.format_help(); print(*({'pinocchio', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in itertools.pairwise("abcdefghi")
)


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 3000,
        "a: 2020-13-45",
        "a: " + "9" * 5000,
        "a: 0x" + "f" * 5000,
        "a: 1" + "0" * 400,
        "a: &a\n  b: *a",
        LAUGHS,
    ],
)
def test_what_no_message_could_show_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(text)
    with refusal(place=file, cause=yaml.YAMLError) as caught:
        read_yaml(file)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("name", ["/dev/zero", "pipe.yaml", "", ".", "circle.yaml", "x\0.yaml", 300 * "x" + ".yaml"])
def test_what_is_no_file_is_said_at_once(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "circle.yaml").symlink_to("circle.yaml")
    with pytest.raises(ConfigError) as caught:
        read_yaml(tmp_path / name)
    assert caught.value.place.startswith(str(tmp_path / name)[:50].partition("\0")[0])


def test_a_pipe_with_a_writer_is_a_file() -> None:
    here, there = os.pipe()
    os.write(there, b"a: 1\n")
    os.close(there)
    assert read_yaml(Path(f"/dev/fd/{here}")) == {"a": 1}
    os.close(here)


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(ConfigError) as caught:
        from_mapping(Whole, {"maybe": "x" * 100_000}, "here")
    assert len(str(caught.value)) < 1000
    with refusal(place="here: maybe") as caught:
        from_mapping(Whole, {"maybe": 10**5000}, "here")
    assert len(str(caught.value)) < 1000


def test_of_very_many_faults_the_first_are_told() -> None:
    with pytest.raises(ConfigError) as caught:
        from_mapping(Whole, {"words": list(range(500))}, "here")
    assert (len(caught.value.faults), len(str(caught.value).splitlines())) == (500, 52)


@pytest.mark.parametrize("text", ["010", "-007", "08", "1:30", "1:30.5", "190:20:30"])
def test_numbers_of_other_bases_are_texts(text: str) -> None:
    assert yaml_value(f"[{text}]") == [text]
    with refusal(place="main.mass", value=text):
        from_mapping(Whole, {"main": {"mass": yaml_value(text)}}, "file.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[0, -0, 10, +10, 1_000, 0x1F, 0b11]", [0, 0, 10, 10, 1000, 31, 3]),
        ("[1e-3, 5E-2, .5, -1., 010.5, 1.5e3, .inf]", [1e-3, 0.05, 0.5, -1.0, 10.5, 1500.0, math.inf]),
        ("[1.2.3, 1-2, e5, 2020-13]", ["1.2.3", "1-2", "e5", "2020-13"]),
    ],
)
def test_numbers_are_decimal(text: str, value: list[Any]) -> None:
    read = yaml_value(text)
    assert read == value
    assert list(map(type, read)) == list(map(type, value))


def test_merge_keys_are_resolved() -> None:
    text = "a: &a {x: 1, y: 2}\nz: {deep: {b: &b {<<: *a, x: 3}}}\nc: {<<: *b}\nd: {<<: [*b, *a], y: 4}\n"
    value = yaml_value(text)
    assert value["z"]["deep"]["b"] == value["c"] == {"x": 3, "y": 2}
    assert value["d"] == {"x": 3, "y": 4}


@pytest.mark.parametrize("text", ["a: &a {x: 1}\nb: {<<: *a, y: 1, y: 2}\n", "a: &a {x: 1}\nb: {<<: *a, <<: *a}\n"])
def test_a_mapping_with_merge_keys_has_no_key_twice(text: str, tmp_path: Path) -> None:
    (tmp_path / "twice.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSyntaxError) as caught:
        read_yaml(tmp_path / "twice.yaml")
    assert caught.value.position[0] == 2
