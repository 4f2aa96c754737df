"""Draw multipliers in the complex plane, the starts of a basin, and orbits over the slope."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR, picture
from bipedsim_studies.stability.basin import HOME, LOST, UNDECIDED, Basin
from bipedsim_studies.stability.continuation import Branch
from bipedsim_studies.stability.newton import Stability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 5.0, 4.2
"""Size of a panel [in]."""


def plot(
    path: Path,
    title: str,
    names: Sequence[str],
    stability: Stability,
    basin: Basin | None = None,
    branches: Sequence[Branch] = (),
) -> None:
    """Write a figure as .png, .pdf or .svg: multipliers, and also basin and branches if given.

    Raises:
        RecordingError: The figure cannot be written.
    """
    panels = 1 + (basin is not None) + 2 * bool(branches)
    columns = 2 if panels == 4 else panels
    rows = panels // columns
    with picture(path, (WIDTH * columns, HEIGHT * rows), title) as figure:
        axes = list(figure.subplots(rows, columns, squeeze=False).flat)
        _multipliers(axes.pop(0), stability)
        if basin is not None:
            _basin(axes.pop(0), basin, names)
        if branches:
            _branches(axes.pop(0), branches, names, 0)
            _moduli(axes.pop(0), branches)


def _multipliers(ax: Axes, stability: Stability) -> None:
    turn = np.linspace(0.0, 2.0 * np.pi, 361)
    ax.plot(np.cos(turn), np.sin(turn), color=LIMIT_COLOUR, linestyle="--", linewidth=0.8)
    values = stability.multipliers
    ax.plot(values.real, values.imag, "o", color=FOOT_COLOURS[0], markersize=5)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set(xlabel="real part", ylabel="imaginary part")
    ax.set_title(f"multipliers: {stability.verdict}, largest modulus {stability.radius:.4g}")


def _basin(ax: Axes, basin: Basin, names: Sequence[str]) -> None:
    """Draw the starts over the two coordinates with the largest influence on the outcome."""
    first, second = _deciding(basin)
    looks = ((HOME, "comes home", FOOT_COLOURS[2], "o"), (LOST, "falls", LIMIT_COLOUR, "x"))
    for outcome, label, colour, mark in (*looks, (UNDECIDED, "neither", TOTAL_COLOUR, "+")):
        chosen = basin.outcome == outcome
        if chosen.any():
            points = basin.starts[chosen]
            ax.plot(points[:, first], points[:, second], mark, color=colour, markersize=4, label=label, alpha=0.8)
    ax.plot(basin.centre[first], basin.centre[second], "*", color=TOTAL_COLOUR, markersize=10)
    ax.set(xlabel=_axis(names[first]), ylabel=_axis(names[second]))
    ax.set_title(f"{len(basin.starts)} starts, {basin.share:.0%} come home")
    ax.legend()


def _deciding(basin: Basin) -> tuple[int, int]:
    """Return the two coordinates in which the mean of the converged starts differs most from that of the others."""
    home = basin.outcome == HOME
    n = len(basin.centre)
    if n == 1 or home.all() or not home.any():
        return 0, min(1, n - 1)
    shares = (basin.starts - basin.centre) / basin.widths
    separation = np.abs(shares[home].mean(axis=0) - shares[~home].mean(axis=0))
    first, second = np.argsort(-separation, kind="stable")[:2]
    return int(first), int(second)


def _axis(name: str) -> str:
    return f"{name} [rad/s]" if name.endswith("'") else f"{name} [rad]"


def _branches(ax: Axes, branches: Sequence[Branch], names: Sequence[str], coordinate: int) -> None:
    for k, branch in enumerate(branches):
        values = np.array([orbit.value for orbit in branch.orbits])
        stable = np.array([orbit.stability.verdict == "stable" for orbit in branch.orbits])
        for stride in range(branch.period):
            rows = np.array([orbit.states[stride, coordinate] for orbit in branch.orbits])
            look = {"color": FOOT_COLOURS[k % len(FOOT_COLOURS)], "markersize": 3.5}
            ax.plot(values, rows, "-", linewidth=0.6, color=look["color"])
            label = f"{branch.period} {'step' if branch.period == 1 else 'steps'}" if stride == 0 else None
            ax.plot(values[stable], rows[stable], "o", label=label, **look)  # type: ignore[arg-type]
            ax.plot(values[~stable], rows[~stable], "o", markerfacecolor="white", **look)  # type: ignore[arg-type]
    _doublings(ax, branches)
    ax.set(xlabel="slope [rad]", ylabel=_axis(names[coordinate]), title="orbits over the slope (open: unstable)")
    ax.legend(title="period")


def _moduli(ax: Axes, branches: Sequence[Branch]) -> None:
    for k, branch in enumerate(branches):
        values = [orbit.value for orbit in branch.orbits]
        radii = [orbit.stability.radius for orbit in branch.orbits]
        ax.plot(values, radii, "o-", color=FOOT_COLOURS[k % len(FOOT_COLOURS)], markersize=3.5, linewidth=0.6)
    ax.axhline(1.0, color=LIMIT_COLOUR, linestyle="--", linewidth=0.8)
    _doublings(ax, branches)
    ax.set(xlabel="slope [rad]", ylabel="largest modulus of a multiplier", title="stability over the slope")


def _doublings(ax: Axes, branches: Sequence[Branch]) -> None:
    for branch in branches:
        for where in branch.doublings:
            ax.axvline(where, color=LIMIT_COLOUR, linestyle=":", linewidth=0.8)
