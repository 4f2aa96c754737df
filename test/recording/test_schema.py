"""The schema is the only list of columns, and all that is derived from it agrees."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from paths import INSTALLED, ROOT
from table_support import column_table

from bipedsim.contact.base import ContactResult
from bipedsim.recording.recording import Recording
from bipedsim.recording.schema import COLUMNS, CONTACT_FIELDS
from bipedsim.sim.io import Observation
from bipedsim.sim.simulator import GroundTruth

SOURCES = {"observation": Observation, "contact": ContactResult, "truth": GroundTruth}
BAG = [f"bag/{name}.py" for name in ("align", "decoding", "segments")]
TRAVEL = [INSTALLED / "bipedsim" / "recording" / name for name in ("recording.py", "csv.py", *BAG)]
TRAVEL += [INSTALLED / "bipedsim_ros" / name for name in ("wire/conversions.py", "loop/publishers.py")]


def test_every_source_is_an_attribute_of_what_a_run_hands_over() -> None:
    for column in COLUMNS.values():
        source, _, attribute = column.source.partition(".")
        if source in SOURCES:
            assert attribute in SOURCES[source].__dataclass_fields__, column.name


def test_the_message_of_contacts_keeps_its_order() -> None:
    """Bags of before there were labels are read by it."""
    head = ("t", "mode", "clamped", "sliding", "cop_margin", "friction_used", "n_vertices")
    assert (*head, *(f"impact_{name}" for name in ("fx", "fy", "fz", "tx", "ty", "tz"))) == CONTACT_FIELDS


def test_names_of_a_table_are_all_different_and_as_many_as_numbers() -> None:
    joints, feet = ("a", "b", "c"), ("left", "right")
    run = Recording.empty(4, joints, feet, imu_names=("shank_imu", "sole_imu"), switch_names=("switch",))
    names = [name for column in COLUMNS.values() for name in column.headers(run.owners)]
    assert len(set(names)) == len(names)
    assert len(names) == sum(int(np.prod(getattr(run, name).shape[1:])) for name in COLUMNS)


@pytest.mark.parametrize("path", TRAVEL, ids=lambda path: path.name)
def test_no_other_file_lists_columns(path: Path) -> None:
    """A file that passes columns on names none of them in a text, and only a few by attribute."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    # The wrench field of a message has the name of a column by coincidence.
    assert texts & set(COLUMNS) <= {"t", "wrench"}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & set(COLUMNS)
    assert len(attributes - {"t"}) <= 8, attributes


def test_the_documentation_shows_the_schema() -> None:
    lines = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8").splitlines()
    table = column_table()
    assert lines[lines.index(table[0]) :][: len(table)] == table
