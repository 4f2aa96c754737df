"""The tables of docs/reproduce.md are complete, and their references exist."""

from __future__ import annotations

import re
import shlex

import pytest
from paths import ROOT

from bipedsim.cli.commands import COMMANDS
from bipedsim_studies.reproduce.papers import PAPERS, get_paper

TEXT = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
NUMBERED = {
    "moraud2008": {"Fig.": 11, "table": 1, "eq.": 0},
    "rengifo2009": {"Fig.": 14, "table": 0, "eq.": 20},
    "marhefka1996": {"Fig.": 8, "table": 0, "eq.": 24},
    "adubredu": {"Fig.": 2, "table": 1, "eq.": 15},
    "hurmuzlu2001": {"Fig.": 13, "table": 0, "eq.": 90},
}
"""How many the papers have."""


def section(heading: str) -> str:
    """Return the text under a heading of the page."""
    return TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


ROWS = re.findall(
    r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*) \|$", section("Every figure, table and equation"), re.MULTILINE
)


def numbers(text: str, kind: str) -> list[int]:
    """Return the numbers that a row such as "Fig. 1, 3 to 5; eq. 2" has of a kind."""
    found: list[int] = []
    for part in text.split(";"):
        if part.strip().startswith(kind):
            for first, last in re.findall(r"(\d+)(?: to (\d+))?", part):
                found += range(int(first), int(last or first) + 1)
    return found


@pytest.mark.parametrize("paper", PAPERS)
def test_everything_that_a_paper_numbers_is_there_once(paper: str) -> None:
    for kind, count in NUMBERED[paper].items():
        found = [number for name, what, _, _ in ROWS if name == paper for number in numbers(what, kind)]
        assert sorted(found) == list(range(1, count + 1)), kind


def test_what_the_rows_name_exists() -> None:
    assert {works for _, _, works, _ in ROWS} <= {"yes", "in part", "no"}
    for name, _, works, where in ROWS:
        named = re.findall(r"`(bipedsim [^`]+)`", where)
        for command in named:
            words = shlex.split(command)
            assert words[1] in COMMANDS, command
            if words[1] == "reproduce":
                assert words[2] == name, command
                assert set(words[3:]) <= set(get_paper(name).cases), command
        for page in re.findall(r"\]\(([\w/]+\.md)\)", where):
            assert (ROOT / "docs" / page).is_file(), page
        for path in re.findall(r"`(bipedsim\w*/[\w/]+\.py)`", where):
            assert (ROOT / path).is_file(), path
        assert works == "no" or named or "](" in where or "`bipedsim" in where, (name, where)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_case_is_in_all_tables(paper: str) -> None:
    cases = set(get_paper(paper).cases)
    reproduced = {
        case for name, _, _, where in ROWS for case in re.findall(rf"reproduce {name} (\w+)", where) if name == paper
    }
    assert reproduced == cases
    overview = next(line for line in TEXT.splitlines() if line.startswith(f"| [`{paper}`]"))
    assert set(re.findall(r"`(\w+)`", overview.split("|")[3])) == cases
    assert set(re.findall(r"^\| `(\w+)` \|", section(paper), re.MULTILINE)) == cases
