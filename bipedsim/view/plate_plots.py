"""Plot force plates: forces, path of the CoP on the surface, free moment, and butterfly diagram of force vectors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bipedsim.analysis import PlateSum, running_mean, sum_of_plates
from bipedsim.errors import RecordingError
from bipedsim.numerics import Array
from bipedsim.plates import THRESHOLD, PlateSignals
from bipedsim.recording import Recording
from bipedsim.view.palette import FOOT_COLOURS, TOTAL_COLOUR, foot_colour
from bipedsim.view.plot_contact import outlines
from bipedsim.view.sheet import PAGE, picture
from bipedsim.view.time_axes import time_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 2.6
"""Height of the row of a plate [in]."""
VECTORS = 120
"""Maximum number of force vectors in a butterfly diagram."""
AROUND = 0.1
"""Margin around the surfaces, as a fraction of their size."""
_AXES = (("Fx", FOOT_COLOURS[2]), ("Fy", FOOT_COLOURS[1]), ("Fz", FOOT_COLOURS[0]))


def plot_plates(
    plates: Mapping[str, PlateSignals],
    path: Path | str,
    recording: Recording | None = None,
    threshold: float = THRESHOLD,
    title: str = "",
) -> None:
    """Plot force plates: one row for each plate, and one for the sum of several plates.

    Args:
        plates: Name to samples.
        path: .png, .pdf, .svg or .html.
        recording: Run whose soles are drawn on the plates.
        threshold: Normal force up to which the CoP is undefined [N].
        title: Title of the plot.

    Raises:
        RecordingError: There is nothing to draw, or the plot cannot be written.
    """
    if not plates or not any(len(plate) for plate in plates.values()):
        raise RecordingError("the force plates have no samples: there is nothing to draw")
    rows = len(plates) + (len(plates) > 1)
    along = _direction(plates, threshold)
    with picture(Path(path), (PAGE, ROW * rows + 0.6), title or "force plates") as figure:
        axes = figure.subplots(rows, 4, squeeze=False, width_ratios=[2.0, 1.4, 1.3, 1.6])
        for (name, plate), row in zip(plates.items(), axes, strict=False):
            _draw_forces(row[0], plate.t, plate.force(), _name(name, plate))
            _draw_surface(row[1], {name: plate}, recording, threshold)
            _draw_free_moment(row[2], plate.t, plate.free_moment(threshold))
            _draw_butterfly(row[3], plate.cop(threshold), plate.force(), along)
        if len(plates) > 1:
            total = sum_of_plates(list(plates.values()), threshold)
            row = axes[-1]
            _draw_forces(row[0], total.t, total.force, "sum of all plates")
            _draw_surface(row[1], plates, recording, threshold, total)
            _draw_free_moment(row[2], total.t, total.free_moment)
            _draw_butterfly(row[3], total.cop, total.force, along)
        for column in (axes[:, 0], axes[:, 2]):
            time_axis(*column)


def _name(name: str, plate: PlateSignals) -> str:
    clipped = f", {plate.clipped} values clipped" if plate.clipped else ""
    return f"{name} (type {plate.geometry.kind}, {plate.geometry.rate:g} Hz{clipped})"


def _direction(plates: Mapping[str, PlateSignals], threshold: float) -> int:
    """Return the world axis along which the CoP has the larger range; 0 for x."""
    points = np.vstack([plate.cop(threshold)[:, :2] for plate in plates.values()])
    points = points[np.isfinite(points).all(axis=1)]
    return int(np.argmax(np.ptp(points, axis=0))) if len(points) else 0


def _draw_forces(ax: Axes, t: Array, force: Array, name: str) -> None:
    """Draw the reaction force over time, and the mean of the vertical force over 20 ms."""
    for a, (label, colour) in enumerate(_AXES):
        ax.plot(t, force[:, a], color=colour, label=label, linewidth=0.9)
    if len(t) > 1:
        rate = (len(t) - 1) / (t[-1] - t[0])
        ax.plot(t, running_mean(force[:, 2], rate), color=TOTAL_COLOUR, linewidth=0.7, label="Fz, 20 ms")
    ax.set(title=f"{name}: reaction [N]")
    ax.legend(ncols=2, fontsize=7)


def _draw_surface(
    ax: Axes,
    plates: Mapping[str, PlateSignals],
    recording: Recording | None,
    threshold: float,
    total: PlateSum | None = None,
) -> None:
    """Draw surfaces, soles and CoP from above."""
    for k, (name, plate) in enumerate(plates.items()):
        corners = plate.geometry.corners
        ax.fill(corners[:, 0], corners[:, 1], facecolor="#EEEEEE", edgecolor="#777777", linewidth=0.9, zorder=0.5)
        colour = TOTAL_COLOUR if total is None else FOOT_COLOURS[k % len(FOOT_COLOURS)]
        ax.plot(*plate.cop(threshold)[:, :2].T, color=colour, linewidth=0.9, label=name)
    if total is not None:
        ax.plot(*total.cop.T, color=TOTAL_COLOUR, linewidth=0.7, label="sum")
    low = np.min([plate.geometry.corners[:, :2].min(axis=0) for plate in plates.values()], axis=0)
    high = np.max([plate.geometry.corners[:, :2].max(axis=0) for plate in plates.values()], axis=0)
    if recording is not None and np.isfinite(recording.sole_poses).any():
        for k in range(len(recording.feet)):
            for outline in outlines(recording, k):
                if (outline.max(axis=0) > low).all() and (outline.min(axis=0) < high).all():
                    closed = np.vstack([outline, outline[:1]])
                    ax.plot(*closed.T, color=foot_colour(k), linewidth=0.8, alpha=0.8)
    # The CoP of a vibrating plate may be anywhere, so the axes are limited to the surfaces.
    around = AROUND * (high - low).max()
    x, y = zip(low - around, high + around, strict=True)
    ax.set(title="CoP from above [m]", xlim=x, ylim=y)
    ax.set_aspect("equal", adjustable="box")
    ax.locator_params(nbins=5)


def _draw_free_moment(ax: Axes, t: Array, moment: Array) -> None:
    ax.plot(t, moment, color=FOOT_COLOURS[3], linewidth=0.9)
    ax.set(title="free moment Tz [N.m]")


def _draw_butterfly(ax: Axes, cop: Array, force: Array, along: int) -> None:
    """Draw force vectors from the CoP in the plane of progression (Pedotti 1977), coloured by time."""
    from matplotlib.collections import LineCollection

    known = np.flatnonzero(np.isfinite(cop[:, along]))
    chosen = known[:: max(1, len(known) // VECTORS)]
    origin = np.column_stack([cop[chosen, along], np.zeros(len(chosen))])
    vector = force[chosen][:, (along, 2)]
    # Both axes have the same scale, so that the angles of the vectors are correct.
    span = max(float(np.ptp(origin[:, 0])), 0.1) if len(chosen) else 0.1
    largest = max(float(np.abs(vector[:, 1]).max()), 1e-9) if len(chosen) else 1.0
    scale = 0.6 * span / largest
    lines = LineCollection(
        [np.array([o, o + scale * v]) for o, v in zip(origin, vector, strict=True)],
        cmap="viridis",
        linewidths=0.7,
        array=np.arange(len(chosen)),
    )
    ax.add_collection(lines)
    ax.autoscale_view()
    ax.set_aspect("equal", adjustable="datalim")
    ax.set(title=f"butterfly: {'xy'[along]} [m], {largest:.0f} N is {scale * largest:.2g} m")
    ax.locator_params(nbins=5)
