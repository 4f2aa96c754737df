"""Laboratory files: only the stated differences and refusals pass."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import pytest
import yaml
from benchmark_modules import benchmark


@pytest.fixture(scope="module")
def lab_files() -> ModuleType:
    """Return the benchmark."""
    return benchmark("lab_files")


@pytest.mark.parametrize(
    ("found", "stated", "good"),
    [
        ({"force_N": 1e-9, "samples": 0.0}, {}, True),
        ({"force_N": 1.0, "samples": 0.0}, {}, False),
        ({"plates": math.inf}, {}, False),
        ({"force_N": 0.281, "cop_mm": 1e-9}, {"why": "corners", "force_N": 0.28}, True),
        ({"force_N": 0.35, "cop_mm": 1e-9}, {"why": "corners", "force_N": 0.28}, False),
        ({"force_N": 0.281, "cop_mm": 1.0}, {"why": "corners", "force_N": 0.28}, False),
        ({"force_N": 0.0, "cop_mm": 0.0}, {"why": "corners", "force_N": 0.28}, False),
        ({"samples": 0.0}, {"why": "corners", "force_N": 0.28}, False),
        ({"samples": math.inf}, {"why": "no parameters", "samples": math.inf}, True),
        ("corners", {}, False),
        ("corners", {"why": "corners", "refused": "corners"}, True),
        ("rate", {"why": "corners", "refused": "corners"}, False),
        ("corners", {"why": "corners", "force_N": 0.28}, False),
        ({"samples": 0.0}, {"why": "corners", "refused": "corners"}, False),
    ],
)
def test_only_what_is_stated_passes(
    lab_files: ModuleType, found: dict[str, float] | str, stated: dict[str, Any], good: bool
) -> None:
    assert lab_files.is_as_stated(found, stated) == good


def test_each_stated_difference_can_be_compared(lab_files: ModuleType) -> None:
    entries = yaml.safe_load(lab_files.LIST.read_text(encoding="utf-8"))
    stated = [entry["differs"] for entry in entries if "differs" in entry]
    assert stated
    for each in stated:
        numbers = {name: value for name, value in each.items() if name in lab_files.TOLERANCES}
        assert set(each) == {"why", *(numbers or ["refused"])}
        assert all(value > lab_files.TOLERANCES[name] for name, value in numbers.items())
