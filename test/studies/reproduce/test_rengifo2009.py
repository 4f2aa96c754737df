"""Ball and brick of Rengifo et al. 2009: the closed forms solve the equations of the paper."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st
from scipy.integrate import solve_ivp

from bipedsim_studies.reproduce.rengifo2009 import ball, brick


@settings(max_examples=20)
@given(k_p=st.floats(0.5, 1e4))
def test_closed_form_of_the_ball_solves_its_equation(k_p: float) -> None:
    """Eq. 3 by an integrator without phases."""
    exact = ball.BallSolution.of(k_p)
    t = np.linspace(0.0, 0.9 * exact.back, 50)
    found = solve_ivp(
        lambda _, y: [y[1], -k_p * y[0] - ball.K_V * min(0.0, y[1])],
        (0.0, t[-1]),
        [0.0, -ball.SPEED],
        t_eval=t,
        method="Radau",
        rtol=1e-9,
        atol=1e-13,
    )
    np.testing.assert_allclose(exact.height(t), found.y[0], atol=1e-3 * abs(exact.lowest))


@settings(max_examples=20)
@given(k_v=st.floats(5.0, 500.0))
def test_closed_form_of_the_brick_solves_its_equation(k_v: float) -> None:
    """Eq. 5 with eq. 8, the saturation, instead of the cases of eq. 9."""
    mu = 0.6
    exact = brick.BrickSolution.of(k_v, mu)
    limit = mu * brick.G * np.cos(brick.ANGLE)
    pull = brick.G * np.sin(brick.ANGLE)
    t = np.linspace(0.0, 1.0, 50)
    found = solve_ivp(
        lambda _, y: [y[1], pull - np.clip(pull + k_v * y[1], -limit, limit)],
        (0.0, 1.0),
        [0.0, brick.SPEED],
        t_eval=t,
        max_step=1e-3,
        rtol=1e-9,
        atol=1e-12,
    )
    np.testing.assert_allclose(exact.velocity(t), found.y[1], atol=1e-6)
    np.testing.assert_allclose(exact.way(t), found.y[0], atol=1e-6)
