"""The limits that the ZMP supervisor sets on a walk."""

from __future__ import annotations

from bipedsim.control.walking.supervision import SupervisionParams, Supervisor

DT = 1e-3
PARAMS = SupervisionParams()


def watch(supervisor: Supervisor, seconds: float, near: float = 0.0, stands: bool = False) -> float:
    """Let the supervisor watch a commanded walk, with the ZMP too near to the edge for ``near`` [s]; return the limited
    velocity.
    """
    for tick in range(round(seconds / DT)):
        margin = 0.5 * PARAMS.margin_least if tick < round(near / DT) else 2.0 * PARAMS.margin_least
        supervisor.watch(tick * DT, margin, True, stands)
    return supervisor.share


def step(supervisor: Supervisor, near: float) -> float:
    """Take a step with the ZMP too near to the edge for ``near`` [s]; return the fraction of the command for the next
    step.
    """
    watch(supervisor, 0.4, near)
    supervisor.step_begun()
    return supervisor.share


def test_steps_near_the_edge_halve_the_command_and_then_stop_it_and_good_ones_give_it_back() -> None:
    supervisor = Supervisor(PARAMS, DT)
    shares = [step(supervisor, near) for near in (0.14, 0.16, 0.0, 0.0, 0.0, 0.2, 0.2, 0.0)]
    assert shares == [1.0, 0.5, 0.75, 1.0, 1.0, 0.5, 0.0, 0.0]
    supervisor.watch(9.0, 1.0, False, True)
    assert supervisor.share == 1.0


def test_a_robot_that_was_stopped_walks_again_when_it_has_stood_well_for_a_second() -> None:
    """Regression on tilted tiles: the robot stood to the end of the run although it was commanded to walk."""
    supervisor = Supervisor(PARAMS, DT)
    assert [step(supervisor, 0.2), step(supervisor, 0.2)] == [0.5, 0.0]
    assert watch(supervisor, 1.5) == 0.0, "while it comes to a stop"
    assert watch(supervisor, 0.9, stands=True) == 0.0
    assert watch(supervisor, 1.0, near=0.2, stands=True) == 0.0, "a second without a break"
    assert watch(supervisor, 0.3, stands=True) == 0.25
    assert [step(supervisor, near) for near in (0.0, 0.2, 0.0)] == [0.5, 0.25, 0.5], "nothing is left of before"


def test_the_zmp_around_a_touch_down_counts_for_nothing_and_none_does_without_supervision() -> None:
    supervisor = Supervisor(PARAMS, DT)
    supervisor.touched_down(0.35)
    assert step(supervisor, 0.4) == 1.0
    assert step(Supervisor(SupervisionParams(margin_time=0.0), DT), 0.4) == 1.0


def test_after_a_reset_a_supervisor_is_a_new_one() -> None:
    """No time near the edge, bad steps, or earlier touchdown remains."""
    supervisor = Supervisor(PARAMS, DT)
    step(supervisor, 0.2)
    supervisor.touched_down(100.0)
    supervisor.watch(101.0, 0.0, True, False)
    for tick in range(100):
        supervisor.watch(101.0 + tick * DT, 0.0, True, False)
    supervisor.reset()
    assert supervisor.share == 1.0
    assert [step(supervisor, near) for near in (0.1, 0.16)] == [1.0, 0.5]
