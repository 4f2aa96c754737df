"""A run on a page during the simulation: the same bits, at the requested pace."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refusal

pytest.importorskip("viser", reason="viser is not installed")

from bipedsim.config import RunConfig
from bipedsim.recording import COLUMNS
from bipedsim.runs import run
from bipedsim.view.page import Instant, Page, RunView, run_view

SETTINGS = RunConfig(scenario="push", duration=0.3)


class Clock:
    """The clock of a page: each reading takes a millisecond, at any load of the machine."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1e-3
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(run_view, "time", made)
    return made


def test_a_run_that_is_looked_at_has_the_same_bits() -> None:
    unseen, _ = run(SETTINGS)
    view = RunView(0.0, port=18_080, patience=0.0)
    seen, _ = run(SETTINGS, observer=view)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(seen, name), getattr(unseen, name), err_msg=name)
    assert seen.run["pushes"] == unseen.run["pushes"]
    view.replay(seen)
    view.close()


def test_the_plan_and_the_readouts_of_the_controller_are_shown_as_they_are_recorded(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    instants: list[Instant] = []
    show = Page.show
    monkeypatch.setattr(Page, "show", lambda page, instant: [instants.append(instant), show(page, instant)][1])
    view = RunView(0.0, port=18_085, patience=0.0)
    seen, _ = run(RunConfig(scenario="walk", duration=1.5), observer=view)
    simulated = len(instants)
    view.replay(seen)
    view.close()
    assert instants[-1].t == seen.t[-1]
    assert instants[-1].readouts["zmp_margin"] == seen.readouts["zmp_margin"][-2], "the last row has no answer"
    del instants[simulated:]
    assert (instants[0].plan, instants[0].readouts) == (None, {}), "nobody has planned yet"
    # A row contains the signals of the controller at its time, before the step. The start has no row.
    rows = [int(np.searchsorted(seen.t, instant.t - 1e-9)) - 1 for instant in instants]
    known = [(row, instant) for row, instant in zip(rows, instants, strict=True) if row >= 0]
    assert len(known) > 40
    for row, instant in known:
        assert instant.readouts.keys() == {"zmp_margin", "dcm_error", "command_share"}
        for name, value in instant.readouts.items():
            np.testing.assert_array_equal(value, seen.readouts[name][row], err_msg=name)
        assert instant.plan is not None
        np.testing.assert_array_equal(instant.plan.com, [seen.readouts[f"plan_com_{axis}"][row] for axis in "xyz"])


def test_a_run_keeps_the_pace_of_the_wall_clock(clock: Clock) -> None:
    opened: list[Page] = []
    begun: list[float] = []

    def on_open(page: Page) -> None:
        opened.append(page)
        begun.append(clock.now)

    view = RunView(0.5, port=18_090, patience=0.0, opened=on_open)
    run(SETTINGS, observer=view)
    assert clock.now - begun[0] == pytest.approx(0.3 / 0.5, abs=run_view.AHEAD + 5e-3)
    assert opened == [view.page]
    view.close()


@pytest.mark.parametrize("factor", [-1.0, np.nan, np.inf])
def test_a_pace_that_is_none_is_refused(factor: float) -> None:
    with refusal(place="factor", value=factor):
        RunView(factor)
