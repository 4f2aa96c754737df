"""All papers: every metric is met, every figure is drawn, and the command prints them as text or as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from refusals import refusal
from reproduce_support import outcome

from bipedsim.cli.main import main
from bipedsim.errors import UnknownNameError
from bipedsim_studies.reproduce.common import Check, save_picture, table
from bipedsim_studies.reproduce.moraud2008 import friction
from bipedsim_studies.reproduce.papers import PAPERS, get_paper

# They take minutes; the tests of their papers have shorter ones.
LONG = {("moraud2008", "fig8"), ("rengifo2009", "biped")}
CASES = [(paper, case) for paper in PAPERS for case in get_paper(paper).cases if (paper, case) not in LONG]
# Cheap cases of every paper, which simulate.
IN_CI = [
    ("adubredu", "kick"),
    ("hurmuzlu2001", "foot_strike"),
    ("hurmuzlu2001", "juggler"),
    ("marhefka1996", "loops"),
    ("moraud2008", "fig4"),
    ("rengifo2009", "ball"),
]


@pytest.mark.parametrize(
    ("paper", "case"), [pytest.param(*pair, marks=[pytest.mark.ci] if pair in IN_CI else []) for pair in CASES]
)
def test_figures_are_met(paper: str, case: str) -> None:
    checks = outcome(paper, case).checks
    assert [check for check in checks if not check.ok] == []
    assert any(check.expected for check in checks)


@pytest.mark.parametrize(("paper", "case"), [pair for pair in CASES if pair != ("moraud2008", "fig4")])
def test_pictures_are_drawn(paper: str, case: str, tmp_path: Path) -> None:
    path = tmp_path / "new" / "picture.png"
    assert save_picture(outcome(paper, case), case, path)
    assert path.stat().st_size > 20_000


def test_every_paper_of_the_table_has_cases() -> None:
    for name in PAPERS:
        paper = get_paper(name)
        assert paper.reference
        assert all(case.title for case in paper.cases.values())
        assert list(paper.chosen([])) == list(paper.cases)


def test_the_command_prints_figures_and_writes_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "moraud2008", "fig4", "friction", "-o", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.index("fig4: ") < printed.index("friction: ")
    assert "quantity" in printed
    assert "coefficient by regression" in printed
    assert (tmp_path / "friction.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "fig4.png").exists()


def test_the_command_speaks_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "adubredu", "block", "ball", "--json", "-o", str(tmp_path)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ok"] is True
    assert list(result["cases"]) == ["block", "ball"]
    for case in result["cases"].values():
        assert all(set(figure) == {"quantity", "expected", "measured", "unit", "ok"} for figure in case["figures"])
        assert Path(case["picture"]).read_bytes().startswith(b"\x89PNG")


def test_a_missed_figure_is_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(friction, "PAIRS", {"glass": 0.2})
    monkeypatch.setattr(friction, "LOADS", (0.0, 5.0))
    monkeypatch.setattr(friction, "RAMP", ((0.0, 0.01), (0.0, 1.2)))
    assert main(["reproduce", "moraud2008", "friction", "-o", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "NO" in captured.out
    assert "figures missed in friction" in captured.err


def test_wrong_names_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "moraud2009"]) == 2
    assert "did you mean 'moraud2008'" in capsys.readouterr().err
    assert main(["reproduce", "moraud2008", "fig7"]) == 2
    assert "fig6" in capsys.readouterr().err
    with refusal(UnknownNameError, name="hooke1678"):
        get_paper("hooke1678")


def test_a_check_says_whether_it_is_met() -> None:
    checks = (
        Check.at_most("a", 2.0, 1.0),
        Check.at_least("b", 2.0, 1.0, "N"),
        Check.near("c", 1.1, 1.0, 0.05),
        Check.equal("d", 3, 3),
    )
    assert [check.ok for check in checks] == [False, True, False, True]
    text = table([*checks, Check.shown("e", 1.0)])
    assert text.splitlines()[1].split() == ["a", "<=", "1", "2", "NO"]
    assert text.splitlines()[5].split() == ["e", "1"]
    assert Check("f", "", float("nan")).ok
