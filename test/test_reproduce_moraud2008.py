"""The experiments of Moraud et al. 2008: every figure that the command prints is met, and the pictures are written."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from bipedsim.cli import main
from bipedsim.errors import UnknownNameError
from bipedsim.reproduce import PAPERS, get_paper
from bipedsim.reproduce.common import Check, Outcome, at_least, at_most, equal, near, shown, table
from bipedsim.reproduce.moraud2008 import bend_and_jump, friction, squats, toe_fall
from bipedsim.robot import load_robot
from bipedsim.sole import checked_polygon

PAPER = get_paper("moraud2008")


@lru_cache
def outcome(name: str) -> Outcome:
    return PAPER.cases[name].run(False)


@pytest.mark.parametrize("name", [name for name in PAPER.cases if name != "fig8"])
def test_figures_are_met(name: str) -> None:
    missed = [check for check in outcome(name).checks if not check.ok]
    assert missed == []
    assert any(check.expected for check in outcome(name).checks)


def measured(name: str, start: str) -> float:
    found = [check.measured for check in outcome(name).checks if check.quantity.startswith(start)]
    assert len(found) == 1, start
    return found[0]


def test_the_fall_turns_in_the_step_in_which_the_cop_reaches_the_edge() -> None:
    """Fig. 6, top: with the rule no step passes; bottom: without it the mode lags and the CoP leaves the sole."""
    assert measured("fig6", "revised: steps from the CoP") == 0
    assert measured("fig6", "revised: |CoP to the edge| in that step") < 1e-6
    assert measured("fig6", "revised: state changes") == 2
    assert measured("fig6", "thresholds: steps from the CoP") >= 2
    assert measured("fig6", "thresholds: CoP in front") > 1e-3


def test_the_sway_ends_on_one_foot_and_one_edge() -> None:
    """Fig. 9: forces are those of the CoM's acceleration in every step, and at rest equal and opposite sideways."""
    assert measured("fig9", "|sum f_z") < 0.1
    assert measured("fig9", "|sum f_y") < 0.1
    assert measured("fig9", "|f_y left + f_y right|") < 0.02
    assert measured("fig9", "share of the left foot at rest") > 0.95
    assert measured("fig9", "right foot rests on an edge") == 1


def test_squats_press_on_the_ground_as_their_mass_accelerates() -> None:
    """Fig. 11, filtered as in the paper."""
    assert measured("fig11", "filtered |f_z - m (g + a_com)|") < 0.1
    assert measured("fig11", "the same over the span") < 0.05


def test_planned_squats_last_as_long_as_the_papers() -> None:
    t = np.arange(0.0, squats.DURATION, 1e-3)
    s, ds, dds = np.array([squats.lowering(x) for x in t]).T
    assert s.max() == pytest.approx(squats.DEPTH, rel=1e-4)
    start = squats.BEGIN
    for period in (1.25, 1.0):
        inside = (t > start) & (t < start + period)
        assert s[inside].max() == pytest.approx(squats.DEPTH, rel=1e-4)
        start += period
    assert s[t > start].max() == 0.0
    assert (s[2:] - s[:-2]) / 2e-3 == pytest.approx(ds[1:-1], abs=1e-4)
    assert (ds[2:] - ds[:-2]) / 2e-3 == pytest.approx(dds[1:-1], abs=0.02)


@pytest.mark.parametrize("mu", [0.13, 0.45])
def test_the_foot_slips_at_mu_f_z(mu: float) -> None:
    """Section V.C: 0.1 % of the force, and the coefficient by a regression over the loads."""
    pulls = friction.measure()[mu]
    for pull in pulls:
        assert pull.pull[pull.slip] == pytest.approx(mu * pull.normal[pull.slip], rel=1e-3)
        assert (pull.tangential[pull.slip :] < 0.9 * mu * pull.normal[pull.slip :]).all()
    line = friction.fit(pulls)
    assert line.slope == pytest.approx(mu, rel=1e-3)
    assert line.r_squared == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("n", bend_and_jump.VERTICES)
def test_soles_of_more_vertices_lie_in_the_robots_own(n: int) -> None:
    sole = load_robot(bend_and_jump.ROBOT).soles[0]
    vertices = bend_and_jump.rounded_rectangle(sole.vertices, n)
    assert len(vertices) == n
    assert np.array_equal(checked_polygon(vertices, "sole"), vertices)
    assert all(sole.contains(vertices))
    assert vertices.max(axis=0) == pytest.approx(sole.vertices.max(axis=0))


def test_one_step_costs_few_candidates_and_exact_searches(tmp_path: Path) -> None:
    """Fig. 8 on the smallest and on a larger sole: candidates are counted, times are drawn and not judged."""
    from bipedsim.reproduce.common import save_picture

    costs = bend_and_jump.measure_all(vertices=(4, 32))
    assert [check for check in bend_and_jump.checks(costs) if not check.ok] == []
    for cost in costs.values():
        assert (cost.candidates >= 1).all()
        assert cost.air.any()
    assert costs["exact", 32].candidates.max() > 5
    drawn = Outcome((), lambda figure: bend_and_jump.draw(figure, costs), (13.0, 7.5))
    assert save_picture(drawn, "fig8", tmp_path / "fig8.png")
    assert (tmp_path / "fig8.png").stat().st_size > 20_000


def test_the_command_prints_figures_and_writes_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "moraud2008", "friction", "-o", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "quantity" in printed
    assert "coefficient by regression" in printed
    assert (tmp_path / "friction.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_speaks_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "moraud2008", "fig9", "--json", "-o", str(tmp_path)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ok"] is True
    figures = result["cases"]["fig9"]["figures"]
    assert all(set(figure) == {"quantity", "expected", "measured", "unit", "ok"} for figure in figures)
    assert Path(result["cases"]["fig9"]["picture"]).is_file()


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
    with pytest.raises(UnknownNameError, match="moraud2008"):
        get_paper("hooke1678")


def test_every_paper_of_the_table_has_cases() -> None:
    for name in PAPERS:
        paper = get_paper(name)
        assert paper.reference
        assert all(case.title for case in paper.cases.values())
        assert list(paper.chosen([])) == list(paper.cases)


def test_a_check_says_whether_it_is_met() -> None:
    checks = (at_most("a", 2.0, 1.0), at_least("b", 2.0, 1.0, "N"), near("c", 1.1, 1.0, 0.05), equal("d", 3, 3))
    assert [check.ok for check in checks] == [False, True, False, True]
    text = table([*checks, shown("e", 1.0)])
    assert text.splitlines()[1].split() == ["a", "<=", "1", "2", "NO"]
    assert text.splitlines()[5].split() == ["e", "1"]
    assert Check("f", "", float("nan")).ok


def test_the_window_of_the_fall_ends_before_the_feet_slip() -> None:
    assert not toe_fall.trace("revised").recording.sliding.any()
