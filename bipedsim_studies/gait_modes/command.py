"""Implement the command ``bipedsim modes``: the discrete states and gaits of a recording."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bipedsim.cli import add_span
from bipedsim_studies.gait_modes.times import BOUNCE, PAUSE
from bipedsim_studies.study import add_output, output

if TYPE_CHECKING:
    from bipedsim_studies.gait_modes.gait import ClassifiedSegment, GaitReport
    from bipedsim_studies.gait_modes.sequence import Entry, ModeSequence


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("recording", type=Path, metavar="RUN", help="bag folder, .mcap, .npz or .csv")
    parser.add_argument(
        "--bounce",
        type=float,
        default=BOUNCE,
        metavar="S",
        help="ignore shorter flights of a foot (default: %(default)s)",
    )
    parser.add_argument(
        "--pause",
        type=float,
        default=PAUSE,
        metavar="S",
        help="a gait ends after this time without a step (default: %(default)s)",
    )
    add_span(parser)
    add_output(parser)


def main(args: argparse.Namespace) -> int:
    """Read a recording, classify its gaits, and print and draw the results."""
    from bipedsim.analysis import load_run
    from bipedsim.errors import ConfigError
    from bipedsim_studies.gait_modes.gait import report_recording

    for name in ("bounce", "pause"):
        if not 0.0 <= getattr(args, name) < float("inf"):
            raise ConfigError(f"--{name} {getattr(args, name)} must be a time in seconds, 0 or more")
    if args.plot and args.plot.suffix not in (".png", ".pdf", ".svg"):
        raise ConfigError(f"--plot {args.plot}: a figure is a .png, .pdf or .svg")
    recording = load_run(args.recording, start=args.start, stop=args.stop)
    modes, report = report_recording(recording, args.bounce, args.pause)

    def draw(path: Path) -> None:
        from bipedsim_studies.gait_modes.picture import plot

        plot(modes, report, path, recording.robot)

    output(args, lambda: as_json(modes, report), lambda: "\n".join(_lines(modes, report)), draw)
    return 0


def as_json(modes: ModeSequence, report: GaitReport) -> dict[str, Any]:
    """Return the report as JSON values: one word per foot state, times in seconds."""
    from bipedsim_studies.gait_modes.sequence import transitions
    from bipedsim_studies.gait_modes.states import state_symbol

    def rows(entries: list[Entry]) -> list[dict[str, Any]]:
        return [
            {
                "t": round(entry.t, 9),
                "duration": round(entry.duration, 9),
                "state": state_symbol(entry.state, modes.feet),
                "feet": [foot.words for foot in entry.state],
            }
            for entry in entries
        ]

    def cycle(segment: ClassifiedSegment) -> dict[str, Any] | None:
        segment_cycle = segment.cycle
        if segment_cycle is None:
            return None
        return {
            "states": [state_symbol(state, modes.feet) for state in segment_cycle.states],
            "turns": segment_cycle.turns,
            "t": segment_cycle.t,
            "period": segment_cycle.period,
            "spread": segment_cycle.spread,
        }

    return {
        "feet": list(modes.feet),
        "notes": list(modes.notes),
        "gait": report.verdict,
        "sliding": list(report.sliding),
        "stretches": [
            {
                "t": stretch.t,
                "duration": stretch.duration,
                "gaits": list(stretch.gaits),
                "steps": stretch.steps,
                "flights": stretch.flights,
                "sets": stretch.sets,
                "feet_sets": list(stretch.feet_sets),
                "cycle": cycle(stretch),
            }
            for stretch in report.stretches
        ],
        "transitions": [
            [state_symbol(a, modes.feet), state_symbol(b, modes.feet), count]
            for (a, b), count in transitions(report.entries).items()
        ],
        "states": rows(report.entries),
        "all_states": rows(modes.entries),
    }


def _lines(modes: ModeSequence, report: GaitReport) -> Iterator[str]:
    from bipedsim.analysis import aligned
    from bipedsim_studies.gait_modes.gait import MEANINGS
    from bipedsim_studies.gait_modes.sequence import transitions
    from bipedsim_studies.gait_modes.states import count_states, state_symbol

    for note in modes.notes:
        yield f"note: {note}"
    rows = [["t [s]", "duration [s]", "state", *modes.feet]]
    for entry in report.entries:
        symbol, words = state_symbol(entry.state, modes.feet), [foot.words for foot in entry.state]
        rows.append([f"{entry.t:.3f}", f"{entry.duration:.3f}", symbol, *words])
    yield from aligned(rows)
    yield ""
    seen = {entry.state for entry in report.entries}
    listed = f"{len(report.entries)} {'entry' if len(report.entries) == 1 else 'entries'}"
    yield f"{listed}, {len(seen)} of {count_states(len(modes.feet))} states seen; transitions:"
    for (a, b), count in transitions(report.entries).items():
        yield f"  {state_symbol(a, modes.feet)} -> {state_symbol(b, modes.feet)}: {count}"
    yield ""
    for stretch in report.stretches:
        counts = [f"{name}: {n}" for name, n in (("steps", stretch.steps), ("flights", stretch.flights)) if n]
        event_counts = f" ({', '.join(counts)})" if counts else ""
        feet_sets = ", ".join(f"{foot} {sets}" for foot, sets in zip(modes.feet, stretch.feet_sets, strict=True))
        end = stretch.t + stretch.duration
        yield f"{stretch.t:.3f} to {end:.3f} s: {', '.join(stretch.gaits)}{event_counts}; {stretch.sets} ({feet_sets})"
        if stretch.cycle:
            cycle = stretch.cycle
            turn = " ".join(state_symbol(state, modes.feet) for state in cycle.states)
            yield (
                f"  cycle: {turn}; {cycle.turns} turns from t = {cycle.t:.3f} s, period {cycle.period:.4f} s, standard "
                f"deviation {cycle.spread:.2g} s"
            )
    named = {sets for stretch in report.stretches for sets in (stretch.sets, *stretch.feet_sets)}
    meanings = "; ".join(f"{sets}, {meaning}" for sets, meaning in MEANINGS.items() if sets in named)
    if meanings:
        yield f"sets, of each foot in brackets: {meanings}"
    shares = ", ".join(f"{foot} {share:.1%}" for foot, share in zip(modes.feet, report.sliding, strict=True))
    yield f"share of the time on the ground that feet slide: {shares}"
    yield f"gait: {report.verdict}"
