"""docs/public_api.txt records the public Python interface, so that every change is deliberate."""

from __future__ import annotations

import difflib
import importlib
from pathlib import Path

import public_api
import pytest

import bipedsim


def test_signatures_are_the_recorded_ones() -> None:
    recorded, present = public_api.FILE.read_text(encoding="utf-8"), public_api.signatures()
    changes = "\n".join(difflib.unified_diff(recorded.splitlines(), present.splitlines(), "recorded", "present", n=0))
    assert recorded == present, f"{changes}\nIs this on purpose? See docs/versioning.md, then {public_api.COMMAND}"


def test_all_public_names_are_recorded() -> None:
    recorded = public_api.FILE.read_text(encoding="utf-8")
    for name in {*bipedsim.__all__} - {"errors", "__version__"}:
        assert f"bipedsim.{name}" in recorded
    for name in public_api.EXTENSIONS:
        module, _, attribute = name.rpartition(".")
        if module != "bipedsim_ros.wire":  # needs ROS
            assert hasattr(importlib.import_module(module), attribute)
        assert f"class {name}(" in recorded


MODULE = '''
from dataclasses import dataclass

LIMIT: float = 1.0


@dataclass
class Thing(Base):
    """Not part of the signature."""

    size: float
    speed: float = param(2.0, "speed", unit="m/s")
    _hidden: int = 0

    @property
    def area(self) -> float:
        return self.size

    def grow(self, by: float = 0.5, *, often: int = 1) -> "Thing":
        return self


def make(size):
    return Thing(size)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "thing.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "__init__.pyi").write_text("from .thing import LIMIT as LIMIT, Thing as Thing, make as make\n")
    return tmp_path


def test_a_signature_has_fields_defaults_and_public_methods(folder: Path) -> None:
    assert list(public_api.lines("Thing", public_api.definition(folder, "Thing"))) == [
        "class Thing(Base)",
        "Thing.size: float",
        "Thing.speed: float = 2.0",
        "@property Thing.area(self) -> float",
        "Thing.grow(self, by: float=0.5, *, often: int=1) -> 'Thing'",
    ]
    assert list(public_api.lines("make", public_api.definition(folder, "make"))) == ["make(size)"]
    assert list(public_api.lines("LIMIT", public_api.definition(folder, "LIMIT"))) == ["LIMIT: float = 1.0"]


def test_a_name_without_a_definition_is_an_error(folder: Path) -> None:
    with pytest.raises(public_api.NotFoundError):
        public_api.definition(folder / "thing", "gone")
