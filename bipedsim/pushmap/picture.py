"""A push map as a picture: impulses over directions, the robot seen from above and looking up the page."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from bipedsim.errors import RecordingError
from bipedsim.plotting import FOOT_COLOURS, STYLE, TOTAL_COLOUR
from bipedsim.pushmap.push_map import PushMap

LABEL_AWAY = 22.0
"""From a point to its label [pt]."""


def plot(found: PushMap, path: Path) -> None:
    """Draw a push map into a .png, .pdf or .svg.

    Raises:
        RecordingError: The picture cannot be written.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**STYLE, "axes.spines.top": True, "axes.spines.right": True}):
        figure = Figure(figsize=(7.5, 7.5), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot(projection="polar")
        axes.set_theta_zero_location("N")  # type: ignore[attr-defined]
        for i, where in enumerate(found.situations):
            colour = FOOT_COLOURS[i % len(FOOT_COLOURS)]
            if not where.walking:
                turn = np.linspace(0.0, 2.0 * math.pi, 721)
                bound = [where.stance.bound(angle) for angle in turn]
                label = "m ω d, d from the ZMP to the edge of the support"
                axes.plot(turn, bound, color=TOTAL_COLOUR, linestyle="--", label=label)
            entries = found.directions[i]
            angles = [entry.angle for entry in entries]
            impulses = [entry.found.survived for entry in entries]
            at = f"{where.settings.scenario}, t = {where.at:g} s, on {' and '.join(where.stance.feet)}"
            axes.fill([*angles, angles[0]], [*impulses, impulses[0]], color=colour, alpha=0.12)
            axes.plot([*angles, angles[0]], [*impulses, impulses[0]], color=colour, marker="o", label=at)
            # Every second situation is labelled inside its curve, where the first one is not.
            away = LABEL_AWAY if i % 2 == 0 else -LABEL_AWAY
            for entry in entries:
                axes.annotate(
                    f"{entry.name}\n{entry.found.survived:.1f}",
                    (entry.angle, entry.found.survived),
                    (-away * math.sin(entry.angle), away * math.cos(entry.angle)),
                    textcoords="offset points",
                    color=colour,
                    fontsize=8,
                    ha="center",
                    va="center",
                )
        axes.set_ylim(bottom=0.0)
        first, kind = found.situations[0], found.kind
        figure.suptitle(
            f"{Path(first.settings.robot).stem}: largest push that it recovers from [N.s]\n"
            f"{kind.duration:g} s at {kind.body or 'the root link'}, m = {first.stance.mass:.1f} kg, up is ahead",
            fontsize=11.5,
            x=0.01,
            ha="left",
        )
        figure.legend(loc="outside lower left")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=120)
        except (OSError, ValueError) as error:
            raise RecordingError(f"{path}: the picture cannot be written ({error})") from error
