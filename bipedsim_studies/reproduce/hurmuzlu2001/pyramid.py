"""Compare friction pyramids of k sides with the friction cone, in sticking and in sliding (text after eq. 38)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bipedsim.config import ProgressBar
from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, TOTAL_COLOUR
from bipedsim_studies.complementarity import (
    CoulombContacts,
    assemble_step,
    coulomb_lcp,
    pyramid_radius,
    solve_coulomb,
    solve_step,
)
from bipedsim_studies.reproduce.common import Check, Figure, body, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import Z, mechanics, of_soles

SIDES = (4, 8, 16)
MU = 0.5
SPEED = 1.0
"""Speed of the sliding point [m/s]."""
STEP = 1e-3
DIRECTIONS = np.linspace(0.0, 2.0 * np.pi, 97)
"""Directions in steps of pi/48, which include the corners and side centres of all pyramids of ``SIDES``."""
BISECTIONS = 40
MOVES = 1e-11
"""Acceleration of the point over g above which it counts as moving."""
LIMIT = 1e-9


class PointFoot:
    """The robot ``rod``, upright on its point foot, which is pulled at the foot or slides."""

    def __init__(self) -> None:
        robot = body("rod")
        still = np.zeros(robot.model.nv)
        self._state = mechanics(robot, robot.q_nominal, still, of_soles(robot))
        self.weight = robot.weight
        self._g = robot.weight / robot.mass
        self._contacts = CoulombContacts(self._state.rows[:, Z], self._state.rows[:, :2], np.array(MU))

    def held(self, angle: float, pull: float, sides: int) -> bool:
        """Return whether the foot sticks under a ``pull`` [N] along ``angle`` [rad], at acceleration level."""
        tangent = self._contacts.tangent[0]
        load = pull * (np.array([np.cos(angle), np.sin(angle)]) @ tangent)
        h, zeros = load - self._state.nle, np.zeros((1, 2))
        lcp = coulomb_lcp(self._state.M, h, self._contacts, zeros, [0.0], zeros, sides=sides)
        # One solution is sufficient, because the acceleration of the foot is unique; Lemke's method is fast.
        return float(np.abs(tangent @ solve_coulomb(lcp, largest=0).answer.acceleration).max()) <= MOVES * self._g

    def most_held(self, angle: float, sides: int) -> float:
        """Return the largest pull along ``angle`` at which the foot sticks, over mu times the weight, by bisection."""
        low, high = 0.0, 2.0
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.held(angle, middle * MU * self.weight, sides) else (low, middle)
        return 0.5 * (low + high)

    def sliding(self, angle: float) -> Array:
        """Return friction (2,) over mu f_n of a foot that slides along ``angle``, at acceleration level."""
        slip = SPEED * np.array([[np.cos(angle), np.sin(angle)]])
        lcp = coulomb_lcp(self._state.M, -self._state.nle, self._contacts, slip, [0.0], np.zeros((1, 2)))
        answer = solve_coulomb(lcp).answer
        direction: Array = answer.tangential[0] / (MU * answer.normal[0])
        return direction

    def stepped(self, angle: float, sides: int) -> Array:
        """Return friction (2,) over mu f_n of a foot that slides along ``angle``, for one time step ``STEP``."""
        v = np.zeros(len(self._state.M))
        v[:2] = SPEED * np.array([np.cos(angle), np.sin(angle)])
        step = assemble_step(self._state.M, -self._state.nle, v, self._contacts, [0.0], STEP, sides=sides)
        result = solve_step(step)
        direction: Array = result.tangential[0] / (MU * result.normal[0])
        return direction


def nearest_corner(angle: Array, sides: int) -> Array:
    """Return the angle [rad] from ``angle`` to the nearest corner of the pyramid."""
    side = 2.0 * np.pi / sides
    return np.abs(np.mod(angle + 0.5 * side, side) - 0.5 * side)


def along(angle: Array) -> Array:
    """Return unit vectors (n, 2) along ``angle`` (n,) [rad]."""
    return np.column_stack([np.cos(angle), np.sin(angle)])


@dataclass(frozen=True, eq=False)
class PyramidResult:
    """Friction over mu f_n along ``DIRECTIONS``.

    Attributes:
        held: By number of sides: the largest pull at which the foot sticks (n,).
        sliding: (n, 2) friction of a sliding foot at acceleration level.
        stepped: By number of sides: (n, 2) friction of a sliding foot at velocity level.
    """

    held: dict[int, Array]
    sliding: Array
    stepped: dict[int, Array]


def measure(progress: bool = False) -> PyramidResult:
    """Pull the foot and let it slide in all directions."""
    foot = PointFoot()
    held = {}
    for sides in SIDES:
        angles = ProgressBar(DIRECTIONS, desc=f"pyramid of {sides} sides", unit="angle", disable=not progress)
        held[sides] = np.array([foot.most_held(float(angle), sides) for angle in angles])
    stepped = {sides: np.array([foot.stepped(float(angle), sides) for angle in DIRECTIONS]) for sides in SIDES}
    return PyramidResult(held, np.array([foot.sliding(float(angle)) for angle in DIRECTIONS]), stepped)


def checks(result: PyramidResult) -> Iterator[Check]:
    """Yield the checks of each pyramid's anisotropy."""
    directions = along(DIRECTIONS)
    for sides in SIDES:
        deficit = 1.0 - np.cos(np.pi / sides)
        held, stepped = result.held[sides], result.stepped[sides]
        brake = -np.einsum("ij,ij->i", stepped, directions)
        # Midway between two corners both have the same braking effect, and so does any mean of the two.
        clear = nearest_corner(DIRECTIONS, sides) < (1.0 - 1e-6) * np.pi / sides
        full = np.linalg.norm(stepped[clear], axis=1)
        yield Check.at_most(
            f"k = {sides}: |pull held - polygon|", np.abs(held - pyramid_radius(DIRECTIONS, sides)).max(), LIMIT
        )
        yield Check.near("... largest deficit of the pull held, 1 - cos(pi/k)", 1.0 - held.min(), deficit, LIMIT)
        yield Check.near("... most that is held, at a corner", float(held.max()), 1.0, LIMIT)
        yield Check.at_most(
            "... |brake along the slip - cos of the nearest corner|, velocity level",
            np.abs(brake - np.cos(nearest_corner(DIRECTIONS, sides))).max(),
            LIMIT,
        )
        yield Check.near("... largest deficit of the brake, 1 - cos(pi/k)", 1.0 - brake.min(), deficit, LIMIT)
        yield Check.at_most(
            "... ||friction| - 1| except ties of two corners, velocity level", np.abs(full - 1.0).max(), LIMIT
        )
    exact = np.abs(result.sliding + directions).max()
    yield Check.at_most("sliding at acceleration level, any k: |friction + direction of the slip|", exact, LIMIT)


def draw(figure: Figure, result: PyramidResult) -> None:
    """Draw the sticking pull and the braking force over the direction, and the deficits over the number of sides."""
    axes: list[Any] = [figure.add_subplot(1, 3, k + 1, projection="polar" if k < 2 else None) for k in range(3)]
    directions = along(DIRECTIONS)
    fine = np.linspace(0.0, 2.0 * np.pi, 721)
    titles = ("largest pull that a foot at rest holds", "brake along the slip, velocity level")
    for ax, title in zip(axes, titles, strict=False):
        ax.plot(fine, np.ones_like(fine), color=TOTAL_COLOUR, linewidth=0.9, linestyle="--", label="cone")
        ax.set_title(title, loc="center", pad=8)
        ax.set_rlabel_position(67.5)
        ax.set_rticks([0.25, 0.5, 0.75, 1.0])
    for k, sides in enumerate(SIDES):
        look: dict[str, Any] = {"color": FOOT_COLOURS[k]}
        dots: dict[str, Any] = {"linestyle": "none", "marker": ".", "markersize": 3.5, **look}
        axes[0].plot(fine, pyramid_radius(fine, sides), linewidth=0.9, **look)
        axes[0].plot(DIRECTIONS, result.held[sides], label=f"k = {sides}", **dots)
        brake = -np.einsum("ij,ij->i", result.stepped[sides], directions)
        axes[1].plot(fine, np.cos(nearest_corner(fine, sides)), linewidth=0.9, **look)
        axes[1].plot(DIRECTIONS, brake, label=f"k = {sides}", **dots)
    size = np.linalg.norm(result.sliding, axis=1)
    axes[1].plot(DIRECTIONS, size, "x", color="#777777", markersize=3.5, label="acceleration level, any k")
    ax = axes[2]
    for k, sides in enumerate(SIDES):
        inside = np.abs(DIRECTIONS - 0.25 * np.pi) <= 0.25 * np.pi + 1e-9
        degrees = np.degrees(DIRECTIONS[inside])
        quarter = np.linspace(0.0, 0.5 * np.pi, 400)
        ax.plot(np.degrees(quarter), 1.0 - pyramid_radius(quarter, sides), color=FOOT_COLOURS[k], linewidth=0.9)
        ax.plot(degrees, 1.0 - result.held[sides][inside], ".", color=FOOT_COLOURS[k], markersize=4)
        worst = 1.0 - np.cos(np.pi / sides)
        ax.annotate(
            f"{100.0 * worst:.1f} %", (180.0 / sides, worst), xytext=(0, 4), textcoords="offset points", ha="center"
        )
    label(ax, "deficit of the pull held", x="direction [deg]", y="1 - pull / (mu f_n)", ylim=(-0.01, 0.33))
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5)


case = study(measure, checks, draw, (13.5, 5.2))
