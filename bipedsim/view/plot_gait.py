"""Plot several walks together: forces in body weights, and the path of the CoP during stance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bipedsim.analysis import PlateGait
from bipedsim.view.palette import foot_colour
from bipedsim.view.sheet import PAGE, picture

_PANELS = (
    (2, "vertical force [BW]"),
    (0, "force ahead [BW]: brakes, then pushes"),
    (1, "force towards the other foot [BW]"),
)


def plot_gaits(gaits: Sequence[PlateGait], path: Path | str, title: str = "") -> None:
    """Plot the stances of walks: each as a thin line, their mean as a thick line.

    Args:
        gaits: Walks to compare.
        path: .png, .pdf, .svg or .html.
        title: Title of the plot.

    Raises:
        RecordingError: The plot cannot be written.
    """
    percent = np.linspace(0.0, 100.0, 101)
    with picture(Path(path), (PAGE, 7.0), title or "walks over force plates") as figure:
        axes = figure.subplots(2, 2).ravel()
        for (part, label), ax in zip(_PANELS, axes, strict=False):
            for k, gait in enumerate(gaits):
                curves = np.array([stance.force[:, part] for stance in gait.stances])
                ax.plot(percent, curves.T, color=foot_colour(k), linewidth=0.5, alpha=0.4)
                summary = f"{gait.name}: {len(curves)} stances, {gait.weight:.0f} N"
                ax.plot(percent, curves.mean(axis=0), color=foot_colour(k), linewidth=2.0, label=summary)
            ax.set_title(label)
            ax.set_xlabel("stance [%]")
        axes[0].legend()
        ax = axes[3]
        for k, gait in enumerate(gaits):
            for stance in gait.stances:
                ax.plot(*(1e3 * stance.cop.T), color=foot_colour(k), linewidth=0.8, alpha=0.6)
                ax.plot(*(1e3 * stance.cop[np.isfinite(stance.cop[:, 0])][-1:].T), ".", color=foot_colour(k))
        ax.set_title("centre of pressure relative to the touchdown [mm]")
        ax.set_xlabel("ahead [mm]")
        ax.set_ylabel("towards the other foot [mm]")
        ax.set_aspect("equal", adjustable="datalim")
