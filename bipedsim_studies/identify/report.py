"""Print and draw an estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bipedsim.analysis import aligned
from bipedsim.errors import some
from bipedsim.numerics import Array, Flags
from bipedsim.view import picture
from bipedsim_studies.gap import COLOURS
from bipedsim_studies.identify.delay import LONGEST
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.judgement import DESCRIBED, IDENTIFIED
from bipedsim_studies.identify.parameters import KINDS, OF_JOINTS, Parameters
from bipedsim_studies.identify.signals import PHASES
from bipedsim_studies.identify.suggest import DURATION, Suggestion

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COUPLED = 0.5
"""Correlation above which two numbers count as coupled."""
WORST = 5
"""Number of joints whose unexplained torques are printed."""
INCOMPLETE = 0.01
"""Unexplained share of a joint's effort above which its model lacks an effect."""
FOREIGN = 0.3
"""Unexplained share above which the recording does not fit the robot: no missing effect is as large."""
LISTED = 12
"""Number of newly identified numbers whose names are printed."""
LINE = 0.19
"""Height of the line of a joint or body in the figure [in]."""
_STYLES: Mapping[bool, Mapping[str, Any]] = {
    True: {"marker": "o", "ms": 4, "color": COLOURS[1], "label": IDENTIFIED},
    False: {"marker": "o", "ms": 3, "color": "0.7", "label": f"not {IDENTIFIED}"},
}
_DESCRIBED: Mapping[str, Any] = {"marker": "x", "ms": 4, "color": COLOURS[0], "label": DESCRIBED}


def held_note(share: float) -> str:
    """Return a note that something carried the robot for a ``share`` of the time."""
    return (
        f"{100 * share:.0f} % of the time, a gantry, a hand or the ground under the trunk carries the robot; the "
        "forces on the trunk are not used there"
    )


def coupled(result: Estimate, i: int) -> str:
    """Return the name of the number that is most strongly coupled with number ``i``; empty if none is.

    A number is not coupled with the one on the other side from which it follows.
    """
    p, deviation = result.parameters, result.deviation
    free = p.free[p.basis[i] == 0.0]
    if not len(free):
        return ""
    correlation = np.abs(result.covariance[i, free]) / (deviation[free] * deviation[i])
    best = int(np.argmax(correlation))
    return p.label(int(free[best])) if correlation[best] > COUPLED else ""


def as_json(result: Estimate, delay: float | None) -> dict[str, Any]:
    """Return all numbers as JSON values."""
    p = result.parameters
    described, values, half = p.in_units(p.start), p.in_units(result.values), half_widths(result)
    low, high = intervals(result)
    drift = result.unknowns.drift
    in_recordings = [result.in_recording(recording) for recording in range(result.unknowns.recordings)]
    rows = [
        {
            "kind": p.kinds[i],
            "of": p.owners[i],
            "component": p.components[i],
            "unit": KINDS[p.kinds[i]].unit,
            "described": float(described[i]),
            "value": float(values[i]),
            "half_width": float(half[i]),
            "interval": [float(low[i]), float(high[i])],
            "drift": float(drift[i]),
            "in_recordings": [float(each[i]) for each in in_recordings] if drift[i] > 0.0 else [],
            "identified": bool(result.identified[i]),
            "estimated": bool(p.estimated[i]),
        }
        for i in range(len(p))
    ]
    return {
        "converged": result.converged,
        "command_delay_s": delay,
        "unexplained_torque": {joint: asdict(each) for joint, each in result.unexplained.items()},
        "parameters": rows,
    }


def half_widths(result: Estimate) -> Array:
    """Return the half widths (p,) of the intervals, in kg for masses."""
    half, mass = result.half_width.copy(), result.parameters.at["mass"][:, 0]
    half[mass] *= result.parameters.in_units(result.values)[mass]
    return half


def intervals(result: Estimate) -> tuple[Array, Array]:
    """Return the ends (p,) of the intervals, in kg for masses."""
    low, high = (result.parameters.in_units(end) for end in result.interval)
    return low, high


def changed(result: Estimate) -> Flags:
    """Return whether the value of the description is outside the interval of each number (p,)."""
    low, high = result.interval
    start = result.parameters.start
    return np.asarray(result.parameters.estimated & ((start < low) | (start > high)))


def as_text(result: Estimate, delay: tuple[float, float] | None) -> str:
    """Return the table of identified numbers, and those that the recordings do not identify."""
    return "\n".join(
        [
            *_identified(result),
            *_unknown(result),
            *_kept(result),
            *drift_notes(result),
            "",
            *unexplained(result),
            "",
            delay_note(delay),
        ]
    )


def _identified(result: Estimate) -> Iterator[str]:
    p = result.parameters
    described, values, half = p.in_units(p.start), p.in_units(result.values), half_widths(result)
    low, high = result.interval
    yield f"{int(result.identified.sum())} of {int(p.estimated.sum())} numbers are identified (95 % intervals):"
    for kind, indices in p.at.items():
        of_kind = KINDS[kind]
        told = [i for i in indices.ravel() if result.identified[i]]
        if not told:
            continue
        yield f"\n{kind}: {of_kind.doc}{f' [{of_kind.unit}]' if of_kind.unit else ''}; {len(told)} of {indices.size}"
        for i in told:
            name = f"{p.owners[i]} {p.components[i]}".strip() or "all"
            width = f"+- {half[i]:.2g}"
            if p.positive[i] and low[i] == 0.0:
                width = f"at most {high[i]:.2g}"
            yield f"  {name:28} {values[i]:10.4g} {width:12} described {described[i]:.4g}"


def _unknown(result: Estimate) -> Iterator[str]:
    p, half = result.parameters, half_widths(result)
    yield "\nnot identified: the interval is too wide, or no narrower than what was expected before the data"
    for kind, indices in p.at.items():
        unknown = [i for i in indices.ravel() if p.estimated[i] and not result.identified[i]]
        if not unknown:
            continue
        partners = [name for name in (coupled(result, int(i)) for i in unknown) if name]
        most = max(dict.fromkeys(partners), key=partners.count) if partners else ""
        widest = max(half[unknown])
        yield (
            f"  {kind:20} {len(unknown)} of {indices.size}, up to +-{widest:.2g} {KINDS[kind].unit}".rstrip()
            + (f"; most often coupled with {most}" if most else "")
        )


def _kept(result: Estimate) -> Iterator[str]:
    """Yield the numbers that stay as described with the reason, and how many follow from the other side."""
    p = result.parameters
    for reason, kept in (("by --assume", ~p.estimated & ~p.unseen), ("because no recording shows them", p.unseen)):
        if kept.any():
            yield f"\nas described, {reason}: {', '.join(_words(p, kept))}"
    follows = int(p.estimated.sum()) - len(p.free)
    if follows:
        yield f"\n{follows} numbers follow from those of the other side, by --assume symmetric"


def _words(p: Parameters, chosen: Flags) -> Iterator[str]:
    """Yield the ``chosen`` numbers (p,): a kind, or the joints, bodies or feet and the components of it."""
    for kind, indices in p.at.items():
        of_kind = chosen[indices]
        if of_kind.all():
            yield kind
        elif of_kind.any():
            parts = [
                p.owners[row[0]] + ("" if flags.all() else f" ({', '.join(p.components[i] for i in row[flags])})")
                for row, flags in zip(indices, of_kind, strict=True)
                if flags.any()
            ]
            yield f"{kind} of {some(parts)}"


def drift_notes(result: Estimate) -> Iterator[str]:
    """Yield how much the offsets of sensors differ between recordings, if there are several."""
    p, drift = result.parameters, result.unknowns.drift
    largest = {kind: float(drift[indices].max()) for kind, indices in p.at.items() if indices.size}
    drifts = [f"{kind} {size:.2g} {KINDS[kind].unit}" for kind, size in largest.items() if size > 0.0]
    if drifts:
        yield f"drift of sensors from one recording to the next, standard deviation: {', '.join(drifts)}"


def unexplained(result: Estimate) -> Iterator[str]:
    """Yield the table of torques that the model does not explain, and the joints where it lacks an effect."""
    if not result.unexplained:
        yield "no torque to compare with the model: no joint with a measured effort moved enough"
        return
    worst = sorted(result.unexplained.items(), key=lambda item: -item[1].share)[:WORST]
    yield (
        "torque that neither the model nor the noise of the sensors explain, rms [N.m]; "
        f"the {len(worst)} joints with the largest shares of their efforts"
    )
    rows: list[tuple[str, ...]] = [("joint", "all", "share", *PHASES)]
    for joint, each in worst:
        phases = [f"{each.by_phase[name]:.2g}" if name in each.by_phase else "" for name in PHASES]
        rows.append((joint, f"{each.rms:.2g}", f"{each.share:.1%}", *phases))
    yield from aligned(rows)
    for joint, each in worst:
        if each.share > FOREIGN:
            yield (
                f"the motion and the forces explain hardly anything of the effort of {joint}: check whether feet or "
                "joints are exchanged, and the signs and units of the recording (docs/other_bag.md)"
            )
        elif each.share > INCOMPLETE:
            phase = max(each.by_phase, key=lambda name: each.by_phase[name], default="")
            where = f", most of all with {phase}" if phase else ""
            yield (
                f"the model lacks an effect in {joint}{where}: such as backlash, elasticity or another form of "
                "friction. The intervals of this joint may be too narrow"
            )


def delay_note(delay: tuple[float, float] | None) -> str:
    """Return a line about the delay [s] from command to effort, and the share of the changes that it explains."""
    if delay is None:
        return (
            "command delay: unknown; no recording has torque commands for 0.1 s that the efforts follow within "
            f"{1e3 * LONGEST:g} ms"
        )
    explained = f"({delay[1]:.1%} of the changes explained)"
    return f"command delay: {1e3 * delay[0]:.2f} ms from command to measured effort {explained}"


def suggested_text(suggestions: Sequence[Suggestion], result: Estimate) -> Iterator[str]:
    """Yield the table of motions that were tried in simulation, and the gain of the best one."""
    before = int(result.identified.sum())
    yield f"\nmotions of {DURATION:g} s, simulated with these numbers, and the effect of a recording of each"
    rows: list[tuple[str, ...]] = [("motion", "identified", "intervals", "")]
    for each in suggestions:
        if each.result is None:
            rows.append((each.name, "", "", each.why))
        else:
            now = int(each.result.identified.sum())
            rows.append((each.name, f"{now} ({now - before:+d})", f"times {each.shrinks:.2f}", ""))
    yield from aligned(rows)
    best = suggestions[0]
    if best.result is not None:
        new = np.flatnonzero(best.result.identified & ~result.identified)
        names = [result.parameters.label(int(i)) for i in new[:LISTED]]
        more = f" and {len(new) - LISTED} more" if len(new) > LISTED else ""
        yield f"{best.name} would identify: {', '.join(names) or 'nothing new'}{more}"


def suggested_json(suggestions: Sequence[Suggestion], result: Estimate) -> list[dict[str, Any]]:
    """Return the motions as JSON values, the best one first."""
    return [
        {
            "motion": each.name,
            "scenario": each.scenario,
            "fails": each.why or None,
            "identified": None if each.result is None else int(each.result.identified.sum()),
            "intervals_shrink_to": None if each.result is None else each.shrinks,
            "new": []
            if each.result is None
            else [result.parameters.label(int(i)) for i in np.flatnonzero(each.result.identified & ~result.identified)],
        }
        for each in suggestions
    ]


def plot(result: Estimate, title: str, path: Path) -> None:
    """Draw described and identified numbers with their intervals: a line for each joint and for each body.

    Raises:
        RecordingError: The figure cannot be written.
    """
    p = result.parameters
    joints, bodies = len(p.at[OF_JOINTS[0]]), len(p.bodies)
    columns = [[(kind, 0) for kind in OF_JOINTS], [("mass", 0), ("com", 0), ("com", 1), ("com", 2)]]
    with picture(path, (13.0, 2.4 + LINE * (joints + bodies)), title) as figure:
        parts = figure.subfigures(2, 1, squeeze=False, height_ratios=(joints + 4, bodies + 4)).ravel()
        for part, shown in zip(parts, columns, strict=True):
            for axes, (kind, component) in zip(part.subplots(1, len(shown), sharey=True), shown, strict=True):
                _panel(axes, result, kind, component)
            owners = [p.owners[i] for i in p.at[shown[0][0]][:, 0]]
            first = part.axes[0]
            first.set_yticks(range(len(owners)), owners, fontsize=8)
            first.set_ylim(len(owners) - 0.5, -0.5)
        figure.legend(*parts[0].axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)


def _panel(axes: Axes, result: Estimate, kind: str, component: int) -> None:
    """Draw one number of each joint or body from top to bottom."""
    p, indices = result.parameters, result.parameters.at[kind][:, component]
    at = np.arange(len(indices))
    # The masses of trunk and ankle differ a hundredfold, so that each is divided by its described one.
    scale = np.where(np.array(p.kinds) == "mass", p.in_units(p.start), 1.0)
    low, high, values, described = (
        each / scale for each in (*intervals(result), p.in_units(result.values), p.in_units(p.start))
    )
    for told, style in _STYLES.items():
        chosen = (result.identified[indices] == told) & p.estimated[indices]
        i = indices[chosen]
        errors = np.stack([values[i] - low[i], high[i] - values[i]])
        axes.errorbar(values[i], at[chosen], xerr=errors, ls="none", lw=1.2, **style)
    axes.plot(described[indices], at, ls="none", **_DESCRIBED)
    shown = indices[result.identified[indices] | changed(result)[indices]]
    if len(shown):
        # The wide intervals of the others would hide these.
        begin, end = min(low[shown].min(), described[indices].min()), max(high[shown].max(), described[indices].max())
        axes.set_xlim(begin - 0.3 * (end - begin), end + 0.3 * (end - begin))
    named = {"mass": "over described", "com": "shift [m]"}
    unit = named.get(kind, f"[{KINDS[kind].unit}]" if KINDS[kind].unit else "")
    name = f"{kind} {KINDS[kind].components[component]}".strip()
    axes.set_title(f"{name}\n{unit}", fontsize=9)
    axes.tick_params(axis="x", labelsize=7)
    axes.locator_params(axis="x", nbins=4)
    axes.grid(axis="y", lw=0.4)
