"""``bipedsim replay``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from bipedsim.cli.options import OF_CONTACT, add_run_option, key_values

_MOST = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "recording",
        type=Path,
        help="folder of a run or bag, .mcap or .npz; or the .npz of a step that a monitor of the physics has kept",
    )
    for name in (*OF_CONTACT, "hardware", "ground"):
        add_run_option(parser, name, said="as recorded", default="")
    parser.add_argument("-o", "--output", type=Path, metavar="NPZ", help="write the repetition as a run")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw both over each other")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON only")


def main(args: argparse.Namespace) -> int:
    """Simulate again and print what differs.

    Raises:
        BipedSimError: The file holds neither a run with its commands nor a step.
    """
    from bipedsim.runs import is_step

    return _step(args) if is_step(args.recording) else _run(args)


def _run(args: argparse.Namespace) -> int:
    from bipedsim.analysis import completed
    from bipedsim.config import to_json
    from bipedsim.errors import EXIT_FAILED, EXIT_INCOMPLETE, EXIT_OK
    from bipedsim.recording import load_recording
    from bipedsim.runs import Changes, rerun

    changes = Changes(
        contact_model=args.contact_model or None,
        contact_params=key_values(args.contact_set, "--contact-set") or None,
        hardware=args.hardware or None,
        ground=args.ground or None,
    )
    recording = load_recording(args.recording)
    if not recording.run:
        # A simulated run is compared as it was recorded: what damage left out of it stays out.
        recording = completed(recording)
    done = rerun(recording, changes)
    what_if = changes != Changes() or not recording.run
    ticks = len(done.simulated)
    short = f"{ticks} of {done.ticks} ticks were repeated" if ticks < done.ticks else ""
    if args.output:
        done.simulated.save(args.output)
    if args.plot:
        from bipedsim.view import plot_rerun

        plot_rerun(done, args.plot)
    code = EXIT_FAILED if not what_if and done.first is not None else EXIT_INCOMPLETE if short else EXIT_OK
    if args.json:
        first = None if done.first is None else vars(done.first)
        figures = {"ticks": ticks, "of_ticks": done.ticks, "first_difference": first}
        print(to_json({**figures, "errors": done.errors, "notes": done.notes}))
        return code
    for note in done.notes:
        print(f"note: {note}")
    if done.first is None:
        begin = f"{short}: " if short else f"{ticks} ticks simulated again: "
        print(f"{begin}every bit of {len(done.compared)} columns is the same")
        return code
    print(f"{ticks} ticks simulated again; first difference at {done.first}")
    print(f"\n{'largest differences':44} {'max':>12} {'rms':>12}")
    ranked = sorted(done.errors.items(), key=lambda item: -item[1]["rms"])
    for name, error in [(name, error) for name, error in ranked if error["max"] > 0.0][:_MOST]:
        print(f"{name:44} {error['max']:12.4g} {error['rms']:12.4g}")
    if short:
        print(short)
    return code


def _step(args: argparse.Namespace) -> int:
    import numpy as np

    from bipedsim.config import to_json
    from bipedsim.runs import replay_step

    done: Any = replay_step(args.recording)
    if args.json:
        more = ("fastest", "modes", *(("objects",) if done[0].objects else ()))
        print(to_json({one.model: {**one.figures, **{name: getattr(one, name) for name in more}} for one in done}))
        return 0
    print(f"{'':20} {'contact work':>14} {'largest |v|':>12} {'normal force':>13}  modes")
    if done[0].without:
        print(f"note: taken again without the free objects of the run ({', '.join(done[0].without)})")
    for one in done:
        work = one.figures["contact_work_J"]["worst"]
        modes = " + ".join(one.modes) + (" (unresolved)" if one.unresolved else "")
        modes += "".join(f", {name} {np.linalg.norm(twist[:3]):.4g} m/s" for name, twist in one.objects.items())
        modes += f", other bodies {one.bodies[2]:.4g} N" if one.bodies.any() else ""
        print(f"{one.model:20} {work:12.4g} J {one.fastest:12.4g} {one.force.sum():11.4g} N  {modes}")
        for said in one.violated:
            print(f"    {said}")
    return 0
