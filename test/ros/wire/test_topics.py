"""The table of topics is the only place that names them, its rows agree, and other packages add rows."""

from __future__ import annotations

import ast
import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from paths import INSTALLED, ROOT
from refusals import refusal
from table_support import topic_table

from bipedsim.config import plugins
from bipedsim.recording.schema import CARRIERS, COLUMNS
from bipedsim_ros.wire.topics import TOPICS, Topic, incompatible

DECLARED = (
    INSTALLED / "bipedsim" / "recording" / "schema.py",
    INSTALLED / "bipedsim_ros" / "wire" / "topics.py",
    INSTALLED / "bipedsim" / "model" / "names.py",
)
SOURCES = sorted(path for top in ("bipedsim", "bipedsim_ros") for path in (INSTALLED / top).rglob("*.py"))


def texts(path: Path) -> list[str]:
    """Return the texts in a file, docstrings aside."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    ours = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    docs = {
        ast.get_docstring(n, clean=False)
        for n in ast.walk(tree)
        if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)
    }
    return [text for text in ours if text not in docs]


def literals(path: Path) -> list[str]:
    """Return the texts in a file that are the name of a topic, of a foot or not."""
    rows = [row for row in TOPICS.values() if not row.is_prefix]
    names = "|".join(re.sub(r"\\{(foot|sensor)\\}", "(.*)", re.escape(row.name)) for row in rows)
    return [text for text in texts(path) if re.fullmatch(names, text)]


@pytest.mark.parametrize("path", [p for p in SOURCES if p not in DECLARED], ids=lambda p: str(p.relative_to(INSTALLED)))
def test_no_other_file_names_a_topic(path: Path) -> None:
    assert literals(path) == []


def test_a_second_name_would_be_found() -> None:
    assert [len(literals(path)) > least for path, least in zip(DECLARED, (5, 5, 2), strict=True)] == [True, True, True]
    found = "|".join(text for path in DECLARED for text in literals(path))
    assert all(row.name in found for row in TOPICS.values() if not row.is_prefix)


def test_the_documentation_shows_the_table() -> None:
    lines = (ROOT / "docs" / "ros_interface.md").read_text(encoding="utf-8").splitlines()
    table = topic_table()
    assert lines[lines.index(table[0]) :][: len(table)] == table


def test_every_column_that_travels_has_a_topic_and_every_subscription_is_served() -> None:
    carried = {column.name for row in TOPICS.values() for column in row.columns}
    assert carried == {column.name for column in COLUMNS.values() if column.topic}
    assert {row.name for row in TOPICS.values()} >= set(CARRIERS)
    for row in TOPICS.values():
        for asked in (row.requested, row.recorder_qos):
            assert asked is None or incompatible(row.offered, asked) == ""
    assert len({row.name for row in TOPICS.values()}) == len(TOPICS)


def test_another_package_adds_a_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_topics.py").write_text(
        "from bipedsim_ros.wire.topics import ROBOT, Topic\n"
        "PAYLOAD = Topic('/payload', 'std_msgs/msg/Float64', ROBOT, 'mass in its hands [kg]')\n"
        "WRONG = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    entries = [EntryPoint(name, f"their_topics:{name.upper()}", "bipedsim.topics") for name in ("payload", "wrong")]
    monkeypatch.setattr(plugins, "_entries", lambda: {"bipedsim.topics": entries[:1]})
    row = TOPICS["payload"]
    assert isinstance(row, Topic)
    assert (row.name, row.recorded, row.columns) == ("/payload", True, ())
    assert topic_table()[-1].startswith("| /payload | std_msgs/Float64 |")
    monkeypatch.setattr(plugins, "_entries", lambda: {"bipedsim.topics": entries})
    with refusal(place="topic 'wrong'", value=3):
        TOPICS["wrong"]
    sys.modules.pop("their_topics")
