"""The English checker finds its targets, and ignores code and names."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from paths import ROOT

spec = importlib.util.spec_from_file_location("style", ROOT / "tools" / "style.py")
assert spec is not None
assert spec.loader is not None
style = importlib.util.module_from_spec(spec)
sys.modules["style"] = style
spec.loader.exec_module(style)

LONG = "word " * 36


def found(tmp_path: Path, name: str, text: str) -> list[str]:
    """Return the findings in a file as "line: word"."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    words = style.Vocabulary.of(style.GLOSSARY.read_text(encoding="utf-8"))
    return [f"{line}: {text.partition(' -> ')[0]}" for line, text in style.findings(path, words)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('raise E(f"{path}: the file was mended, {n} times")\n', ["1: mended"]),
        ('"""Return a model.\n\nIt is there for want\nof another.\n"""\n', ["3: for want of"]),
        ("x = 1\n# The robot stands\n# beside the wall.\n", ["3: beside"]),
        (f'print("{LONG}")\n', ["1: 36 words in a sentence"]),
        ('"""What the robot does is here."""\n', ["1: 'What the robot does is here.'"]),
        ('"""Kept for the next step."""\n', ["1: Kept for"]),
        ('"""Passed by value, a tuple takes long."""\n', []),
        ('check = "mend"\n"""Use `mend` or --mend or x.mend_it."""\n', []),
        (f'"""Return a model.\n\nArgs:\n    x: {LONG}\n"""\n', []),
    ],
)
def test_python(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert found(tmp_path, "file.py", text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Title\n\nFirst line,\nwho was told.\n", ["4: told"]),
        ("```bash\nmend the robot here\n```\n\n    mend the robot here\n", []),
        (f"| a | b |\n| --- | --- |\n| {LONG} | mend the robot |\n", ["3: mend"]),
        ("- Who is there?\n- Who comes late is not there.\n", ["2: 'Who comes late is not there.'"]),
    ],
)
def test_markdown(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert found(tmp_path, "file.md", text) == expected


def test_in_tests_strings_are_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "ROOT", tmp_path)
    text = '"""A robot was mended."""\nx = f"a robot was mended {n} times"\ny = "a robot was told"  # It was told so.\n'
    for folder, expected in (("test", ["1: mended", "3: told"]), ("bipedsim", ["1: mended", "2: mended", "3: told"])):
        (tmp_path / folder).mkdir()
        assert sorted(set(found(tmp_path / folder, "file.py", text))) == expected


def test_the_exit_code_is_1_for_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.md"
    path.write_text("A robot is here.\n")
    assert style.main([str(path)]) == 0
    path.write_text("A robot is here and was mended.\n")
    assert style.main([str(path)]) == 1
    assert capsys.readouterr().out.startswith(f"{path}:1: mended -> ")
