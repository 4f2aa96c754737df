"""Simulate a fall over the toes with and without the rule of the centre of pressure (Fig. 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bipedsim.contact import clamped_range
from bipedsim.control import make_controller
from bipedsim.model import load_robot
from bipedsim.numerics import Array, Integers
from bipedsim.runs import get_scenario
from bipedsim.sim import Simulator
from bipedsim.view import LIMIT_COLOUR
from bipedsim_studies.reproduce.common import (
    MARK_COLOUR,
    Check,
    Figure,
    Trace,
    draw_modes,
    foot_looks,
    label,
    simulate,
    study,
)

ROBOT = "talos"
DURATION = 2.9
RULES = {
    "revised": "with the CoP rule, as bipedsim has it",
    "published": "with the CoP rule, as printed",
    "thresholds": "without the CoP rule",
}
"""Rule sets of one-step selection with their descriptions; the paper shows the last two."""
JUDGED: dict[str, tuple[Callable[..., Check], ...]] = {
    "revised": (partial(Check.equal, expected=0), partial(Check.at_most, limit=1e-6), partial(Check.equal, expected=2)),
    "published": (Check.shown, Check.shown, Check.shown),
    "thresholds": (
        partial(Check.at_least, limit=2),
        partial(Check.at_least, limit=1e-3),
        partial(Check.at_least, limit=3),
    ),
}
"""Checks of each rule set: delay of the edge mode [steps], CoP in front of the sole [m], and state changes."""


def trace(rules: str, progress: bool = False) -> Trace:
    """Simulate the fall under one rule set, until the feet have rotated by a few degrees."""
    robot = load_robot(ROBOT)
    sim = Simulator(robot, contact_params={"rules": rules})
    params = get_scenario("toe_fall").controller_params
    return simulate(sim, make_controller("posture", robot, params, sim.control_dt), DURATION, f"fig6 {rules}", progress)


def outside(run: Trace) -> Array:
    """Return the distance of each foot's CoP in front of its sole (n, K) [m]; negative behind, NaN while airborne."""
    fronts = np.array([vertices[:, 0].max() for vertices in run.recording.sole_vertices])
    return np.asarray(run.recording.cop[:, :, 0] - fronts)


def established(run: Trace) -> Integers:
    """Return the row from which each foot stays on its front edge (K,); n if it never does."""
    recording = run.recording
    rows = []
    for k, vertices in enumerate(recording.sole_vertices):
        front = set(np.flatnonzero(vertices[:, 0] > vertices[:, 0].max() - 1e-9).tolist())
        away = [clamped(int(mode), len(vertices)) != front for mode in recording.mode[:, k]]
        rows.append(int(np.flatnonzero(away)[-1]) + 1)
    return np.array(rows)


def clamped(mode: int, n: int) -> set[int]:
    """Return the vertices that ``mode`` clamps on a foot of ``n`` vertices."""
    first, count = clamped_range(mode, n)
    return {(first + j) % n for j in range(count)}


def arrived(run: Trace) -> Integers:
    """Return the first row in which each foot's CoP is on or in front of the front edge (K,)."""
    return np.asarray(np.argmax(outside(run) > -1e-9, axis=0))


def checks(runs: dict[str, Trace]) -> Iterator[Check]:
    """Yield the checks of Fig. 6."""
    for rules, run in runs.items():
        late, beyond, changes = JUDGED[rules]
        row = established(run)
        lag = float((row - arrived(run)).max())
        yield late(f"{rules}: steps from the CoP at the edge to the last change to edge mode", lag)
        if rules == "revised":
            feet = range(len(run.recording.feet))
            at_edge = max(abs(outside(run)[row[k], k]) for k in feet)
            before = max(-outside(run)[row[k] - 1, k] for k in feet)
            yield Check.at_most(f"{rules}: |CoP to the edge| in that step", at_edge, 1e-6, "m")
            yield Check.at_most(f"{rules}: CoP to the edge one step before", before, 1e-3, "m")
        yield beyond(f"{rules}: CoP in front of the sole, at most", float(np.nanmax(outside(run))), unit="m")
        yield changes(f"{rules}: state changes", run.summary["state_changes"])


def draw(figure: Figure, runs: dict[str, Trace]) -> None:
    """Draw CoP, vertical force and mode of both feet around their rotation, with one column per rule set."""
    axes = figure.subplots(4, len(runs), sharex=True, sharey="row", squeeze=False, height_ratios=[1.4, 0.8, 1.0, 0.8])
    middle = float(np.mean([run.recording.t[arrived(run)].min() for run in runs.values()]))
    looks = foot_looks(0.9)
    modes = np.unique(np.concatenate([run.recording.mode[run.recording.t > middle - 0.5] for run in runs.values()]))
    for column, (rules, run) in zip(axes.T, runs.items(), strict=True):
        recording = run.recording
        t = recording.t
        shown = t > middle - 0.5
        vertices = 1e3 * recording.sole_vertices[0]
        front = vertices[:, 0].max()
        for k, foot in enumerate(recording.feet):
            column[0].plot(t, 1e3 * recording.cop[:, k, 0], label=f"{foot} foot", **looks[k])
            column[1].plot(t, 1e3 * recording.cop[:, k, 1], **looks[k])
            column[2].plot(t, recording.wrench[:, k, 2], **looks[k])
        column[0].axhline(front, color=LIMIT_COLOUR, linewidth=0.9, linestyle="--", label="front edge")
        for side in (vertices[:, 1].min(), vertices[:, 1].max()):
            column[1].axhline(side, color=LIMIT_COLOUR, linewidth=0.9, linestyle="--")
        draw_modes(column[3], t[shown], recording.mode[shown], len(vertices), looks, modes.tolist())
        at_edge, turned_time = t[arrived(run)].min(), t[np.minimum(established(run), len(t) - 1)].max()
        for ax in column:
            ax.axvspan(at_edge, turned_time, color=LIMIT_COLOUR, alpha=0.12, linewidth=0)
            ax.axvline(at_edge, color=MARK_COLOUR, linewidth=0.8)
        never = established(run).max() >= len(t)
        turned = "never stayed in edge mode" if never else f"turned {1e3 * (turned_time - at_edge):.0f} ms later"
        note: dict[str, Any] = {"xytext": (-6, -34), "textcoords": "offset points", "ha": "right", "fontsize": 8.5}
        column[0].annotate(f"CoP at the edge,\n{turned}", (at_edge, front), **note)
        label(column[0], f"{rules}: {RULES[rules]}")
        label(column[3], time="time [s]", xlim=(middle - 0.5, DURATION))
    top = 1e3 * max(vertices[:, 0].max() for vertices in recording.sole_vertices)
    label(axes[0, 0], y="CoP forwards x [mm]", legend="lower right", ylim=(top - 60.0, top + 40.0))
    label(axes[1, 0], y="CoP sideways y [mm]")
    label(axes[2, 0], y="f_z [N]", ylim=(0.0, 0.8 * recording.weight))
    label(axes[3, 0], y="mode")


def measure(progress: bool = False) -> dict[str, Trace]:
    """Simulate the fall under each rule set."""
    return {rules: trace(rules, progress) for rules in RULES}


case = study(measure, checks, draw, (13.0, 8.5))
