"""What a supervisor of the ZMP lets a walk obey."""

from __future__ import annotations

from bipedsim.control.walking.supervision import SupervisionParams, Supervisor

DT = 1e-3
PARAMS = SupervisionParams()


def step(supervisor: Supervisor, near: float, t: float = 0.0) -> float:
    """Take a step whose ZMP is too near to the edge for ``near`` [s]; return the share that is obeyed next."""
    for tick in range(400):
        margin = 0.5 * PARAMS.margin_least if tick < round(near / DT) else 2.0 * PARAMS.margin_least
        supervisor.watch(t + tick * DT, margin, True)
    supervisor.step_begun()
    return supervisor.share


def test_steps_near_the_edge_halve_the_command_and_then_stop_it_and_good_ones_give_it_back() -> None:
    supervisor = Supervisor(PARAMS, DT)
    shares = [step(supervisor, near) for near in (0.14, 0.16, 0.0, 0.0, 0.0, 0.2, 0.2, 0.0)]
    assert shares == [1.0, 0.5, 0.75, 1.0, 1.0, 0.5, 0.0, 0.0]
    supervisor.watch(9.0, 1.0, False)
    assert supervisor.share == 1.0


def test_after_a_reset_a_supervisor_is_a_new_one() -> None:
    """Nothing is left of time near the edge, of bad steps, or of a touch-down of before."""
    supervisor = Supervisor(PARAMS, DT)
    step(supervisor, 0.2)
    supervisor.touched_down(100.0)
    supervisor.watch(101.0, 0.0, True)
    for tick in range(100):
        supervisor.watch(101.0 + tick * DT, 0.0, True)
    supervisor.reset()
    assert supervisor.share == 1.0
    assert [step(supervisor, near) for near in (0.1, 0.16)] == [1.0, 0.5]
