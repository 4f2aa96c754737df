"""Print and draw an estimate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bipedsim.analysis import aligned
from bipedsim.errors import some
from bipedsim.numerics import Array
from bipedsim.view import picture
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.parameters import KINDS, OF_JOINTS
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
LISTED = 12
"""Number of newly identified numbers whose names are printed."""
DRAWN = (*OF_JOINTS, "mass", "com")
"""Kinds in the figure, one panel each."""


def held_note(share: float) -> str:
    """Return a note that something carried the robot for a ``share`` of the time."""
    return (
        f"note: {100 * share:.0f} % of the time, a gantry, a hand or the ground under the trunk carries the robot; the "
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
    rows = [
        {
            "kind": p.kinds[i],
            "of": p.owners[i],
            "component": p.components[i],
            "unit": KINDS[p.kinds[i]].unit,
            "described": float(described[i]),
            "value": float(values[i]),
            "half_width": float(half[i]),
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


def as_text(result: Estimate, delay: tuple[float, float] | None) -> str:
    """Return the table of identified numbers, and those that the recordings do not identify."""
    return "\n".join(
        [*_identified(result), *_unknown(result), *_kept(result), "", *unexplained(result), "", delay_note(delay)]
    )


def _identified(result: Estimate) -> Iterator[str]:
    p = result.parameters
    described, values, half = p.in_units(p.start), p.in_units(result.values), half_widths(result)
    yield f"{int(result.identified.sum())} of {int(p.estimated.sum())} numbers are identified (95 % intervals):"
    for kind, indices in p.at.items():
        of_kind = KINDS[kind]
        told = [i for i in indices.ravel() if result.identified[i]]
        if not told:
            continue
        yield f"\n{kind}: {of_kind.doc}{f' [{of_kind.unit}]' if of_kind.unit else ''}; {len(told)} of {indices.size}"
        for i in told:
            name = f"{p.owners[i]} {p.components[i]}".strip() or "all"
            yield f"  {name:28} {values[i]:10.4g} +- {half[i]:<9.2g} described {described[i]:.4g}"


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
    """Yield the numbers that were not to be estimated, and how many follow from the other side."""
    p = result.parameters
    kept = {kind: [p.owners[i] for i in indices[:, 0] if not p.estimated[i]] for kind, indices in p.at.items()}
    words = [
        kind if len(owners) == len(p.at[kind]) else f"{kind} of {some(owners)}"
        for kind, owners in kept.items()
        if owners
    ]
    if words:
        yield f"\nas described, by --assume: {', '.join(words)}"
    follows = int(p.estimated.sum()) - len(p.free)
    if follows:
        yield f"\n{follows} numbers follow from those of the other side, by --assume symmetric"


def unexplained(result: Estimate) -> Iterator[str]:
    """Yield the table of torques that the model does not explain, and the joints where it lacks an effect."""
    if not result.unexplained:
        yield "no joint moved enough to compare its torque with the model"
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
        if each.share > INCOMPLETE:
            where = max(each.by_phase, key=lambda phase: each.by_phase[phase])
            yield (
                f"the model lacks an effect in {joint}, most of all with {where}: such as backlash, elasticity or "
                "another form of friction. The intervals of this joint may be too narrow"
            )


def delay_note(delay: tuple[float, float] | None) -> str:
    """Return a line about the delay [s] from command to effort, and the share of the changes that it explains."""
    if delay is None:
        return "command delay: unknown; no recording has torque commands for 0.1 s that the efforts follow"
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
    """Draw described and identified numbers with their intervals.

    Raises:
        RecordingError: The figure cannot be written.
    """
    with picture(path, (12.0, 14.0), title) as figure:
        for axes, kind in zip(figure.subplots(4, 2).flat, DRAWN, strict=True):
            _panel(axes, result, kind)


def _panel(axes: Axes, result: Estimate, kind: str) -> None:
    p, indices = result.parameters, result.parameters.at[kind].ravel()
    at = np.arange(len(indices))
    for told, colour, label in ((True, "C0", "identified"), (False, "0.7", "not identified")):
        chosen = (result.identified[indices] == told) & p.estimated[indices]
        if chosen.any():
            i = indices[chosen]
            axes.errorbar(
                at[chosen], result.values[i], result.half_width[i], fmt="o", ms=3, lw=1.2, color=colour, label=label
            )
    shown = indices[result.identified[indices]]
    if len(shown):
        # The wide intervals of the others would hide these.
        ends = np.concatenate([result.values[shown] + sign * result.half_width[shown] for sign in (-1.0, 1.0)])
        low, high = min(ends.min(), p.start[indices].min()), max(ends.max(), p.start[indices].max())
        axes.set_ylim(low - 0.3 * (high - low), high + 0.3 * (high - low))
    axes.plot(at, p.start[indices], "x", color="k", ms=4, label="described")
    unit = {"mass": "logarithm of the ratio", "com": "shift [m]"}.get(
        kind, f"[{KINDS[kind].unit}]" if KINDS[kind].unit else ""
    )
    axes.set_title(f"{kind} {unit}".strip(), fontsize=9)
    labels = [f"{p.owners[i]} {p.components[i]}".strip() for i in indices]
    axes.set_xticks(at, labels, rotation=90, fontsize=6 if len(labels) < 20 else 4)
    axes.legend(fontsize=7)
