"""Simulate a run: ``bipedsim run``."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bipedsim.cli.options import (
    IN_SCENARIO,
    add_fail_on_fall,
    add_run_options,
    code_of,
    fell_or_stopped,
    program,
    run_config,
)
from bipedsim.cli.waiting import waiting
from bipedsim.config import to_json
from bipedsim.errors import BipedSimError, ConfigError, RecordingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bipedsim.config import RunConfig
    from bipedsim.recording import Recording
    from bipedsim.view.page import RunView

_SUMMARY = "the summary"
INSTEAD = IN_SCENARIO | {"--animate": "--output FILE writes the run, and `bipedsim animate FILE` animates it"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    output = add_run_options(parser)["output"]
    output.add_argument(
        "--output",
        "--record",
        type=Path,
        metavar="FILE",
        help="write the run to this .npz, for `bipedsim plot`, `view` and `export`",
    )
    output.add_argument(
        "--vertex-forces",
        action="store_true",
        help="also record the forces at the sole vertices, for `bipedsim view`; needs level ground and a contact model "
        "with vertex forces",
    )
    output.add_argument("--plot", type=Path, metavar="PNG", help="write a plot of the forces")
    output.add_argument(
        "--view", action="store_true", help="show the run on a page in the browser while it is simulated, until Ctrl-C"
    )
    output.add_argument("--json", action="store_true", help="print only the summary, as JSON")
    add_fail_on_fall(output)


def main(args: argparse.Namespace) -> int:
    """Run, write and print. The data up to an interrupt or a controller error are also written.

    Raises:
        BipedSimError: An argument is wrong, or the simulation diverged.
        Exception: Any exception of the controller.
    """
    settings = run_config(args)
    loading = f"loading {settings.robot}"
    with waiting(loading, not args.json):
        from bipedsim.runs import RunInterruptedError, run

    if args.output and args.output.suffix != ".npz":
        raise ConfigError(
            f"--output {args.output}: the name must end in .npz, as in {args.output.with_suffix('.npz')}. "
            "`bipedsim export` converts a run to a table, and `bipedsim up --record FOLDER` records a bag"
        )
    view = _open_view() if args.view else None

    unwritten: list[str] = []

    def begin_to_write() -> None:
        unwritten[:] = [_SUMMARY, *(str(path) for path in (args.output, args.plot) if path)]

    def write_partial(recording: Recording, summary: dict[str, Any]) -> None:
        begin_to_write()
        try:
            _write_run(args, settings, recording, summary, unwritten)
        except BipedSimError as error:
            # The command ends with the error that ended the run, not with this one.
            print(f"bipedsim run: error: {error}", file=sys.stderr)
        why = f"the simulation ended with an error at t = {recording.t[-1]:.3f} s"
        print(f"bipedsim run: {why}. Summary and files cover the time until then", file=sys.stderr)

    def interrupted(t: float) -> None:
        begin_to_write()
        # Summary and figures take seconds, so the user gets an immediate answer to Ctrl-C.
        announcement = f"writing {_listed(unwritten)} for the time until then"
        print(f"bipedsim run: interrupted at t = {t:.3f} s; {announcement}", file=sys.stderr, flush=True)

    try:
        try:
            # The progress bar of the run replaces this message, on a terminal only.
            with waiting(loading, not args.json and sys.stderr.isatty()):
                recording, summary = run(
                    settings,
                    progress=not args.json,
                    observer=view,
                    log=lambda message: print(f"bipedsim run: {message}", file=sys.stderr),
                    step_file=args.output and args.output.with_name(f"{args.output.stem}_step.npz"),
                    partial=write_partial,
                    vertex_forces=args.vertex_forces,
                    interrupted=interrupted,
                )
        except RunInterruptedError as stopped:
            _write_run(args, settings, stopped.recording, stopped.summary, unwritten)
            raise
        begin_to_write()
        _write_run(args, settings, recording, summary, unwritten)
    except KeyboardInterrupt:
        if unwritten:
            is_missing = f"{_listed(unwritten)} {'are' if unwritten[1:] else 'is'} missing"
            print(f"bipedsim run: interrupted before all was written: {is_missing}", file=sys.stderr, flush=True)
        raise
    if view is not None:
        view.replay(recording)
        print("The run has ended. The page plays it until you press Ctrl-C", file=sys.stderr, flush=True)
        view.wait()
    return code_of(summary, args.fail_on_fall)


def _open_view() -> RunView:
    """Return the live view of the run, which opens once the robot is loaded."""
    import webbrowser

    from bipedsim.view.page import PATIENCE, Page, RunView

    def opened(page: Page) -> None:
        waits = f"the run begins when a browser connects, or after {PATIENCE:g} s"
        print(f"the page is at {page.address}; {waits}", file=sys.stderr, flush=True)
        webbrowser.open(page.address)

    return RunView(opened=opened)


def _listed(items: Sequence[str]) -> str:
    """Return items as a list for a sentence."""
    *others, last = items
    return f"{', '.join(others)} and {last}" if others else last


def _write_run(
    args: argparse.Namespace, settings: RunConfig, recording: Recording, summary: dict[str, Any], unwritten: list[str]
) -> None:
    """Print the summary of a run and write the requested files; finished items are removed from ``unwritten``."""
    from bipedsim.analysis import lifts, summary_lines
    from bipedsim.runs import SETTLE

    save_error: RecordingError | None = None
    if args.output:
        try:
            recording.save(args.output)
        except RecordingError as error:
            save_error = error
        unwritten.remove(str(args.output))
    # The summary is printed before the figures, whose drawing may be interrupted.
    if args.json:
        print(to_json(summary, indent=None), flush=True)
    else:
        # The drift of the feet is meaningless for a robot that makes steps.
        steps = lifts(recording, SETTLE)
        print("\n".join(summary_lines(summary, hidden=("foot_drift_m",) if steps else ())), flush=True)
        if args.output and save_error is None:
            print(f"wrote {args.output}", flush=True)
    unwritten.remove(_SUMMARY)
    if args.plot:
        with waiting(f"drawing {args.plot}", not args.json):
            from bipedsim.view import plot

            plot(recording, args.plot)
        unwritten.remove(str(args.plot))
        if not args.json:
            print(f"wrote {args.plot}", flush=True)
    if save_error is not None:
        lost = "The summary is above, but the run is not saved. Free disk space or use another folder, and repeat"
        raise RecordingError(f"{save_error}. {lost}") from save_error
    if fell_or_stopped(summary) and not (args.json or args.view):
        prefix = "" if args.output else "repeat with --output run.npz, then "
        print(f"to watch it: {prefix}{program()} view {shlex.quote(str(args.output or 'run.npz'))}", flush=True)
