"""Simulate a recorded run again: ``bipedsim replay``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from bipedsim.cli.options import add_option, add_set, split_params
from bipedsim.config import RunConfig

_MOST = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "recording",
        type=Path,
        help="folder of a run or bag, .mcap or .npz; or the .npz of a step that a physics monitor saved",
    )
    for name in ("contact_model", "hardware", "ground"):
        add_option(parser, RunConfig, name, default="as recorded")
    add_set(parser, "parameter of the contact model, such as one_step.gamma=0.2")
    parser.add_argument("-o", "--output", type=Path, metavar="NPZ", help="write the repetition as a run")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="plot both runs in the same axes")
    parser.add_argument("--json", action="store_true", help="print only the differences, as JSON")


def main(args: argparse.Namespace) -> int:
    """Simulate a run or a step again and print the differences.

    Raises:
        BipedSimError: The file contains neither a run with its commands nor a step.
    """
    from bipedsim.runs import is_step

    return _step(args) if is_step(args.recording) else _run(args)


def _run(args: argparse.Namespace) -> int:
    from bipedsim.analysis import completed
    from bipedsim.config import to_json
    from bipedsim.contact import CONTACT_MODELS
    from bipedsim.errors import EXIT_FAILED, EXIT_INCOMPLETE, EXIT_OK, ConfigError
    from bipedsim.recording import load_recording
    from bipedsim.runs import Changes, rerun

    controller_params, contact_params = split_params(args.set, CONTACT_MODELS)
    if controller_params:
        raise ConfigError(
            "a replay has no controller; expected MODEL.NAME=VALUE", "--set", ", ".join(controller_params)
        )
    changes = Changes(args.contact_model, contact_params or None, args.hardware, args.ground)
    recording = load_recording(args.recording)
    if not recording.run:
        # Data that damage removed from a simulated run are not restored, so that only recorded data are compared.
        recording = completed(recording)
    repetition = rerun(recording, changes)
    changed = changes != Changes() or not recording.run
    ticks = len(repetition.simulated)
    incomplete = f"{ticks} of {repetition.ticks} ticks simulated again" if ticks < repetition.ticks else ""
    if args.output:
        repetition.simulated.save(args.output)
    if args.plot:
        from bipedsim.view import plot_rerun

        plot_rerun(repetition, args.plot)
    code = EXIT_FAILED if not changed and repetition.first is not None else EXIT_INCOMPLETE if incomplete else EXIT_OK
    if args.json:
        first = None if repetition.first is None else vars(repetition.first)
        figures = {"ticks": ticks, "of_ticks": repetition.ticks, "first_difference": first}
        print(to_json({**figures, "errors": repetition.errors, "notes": repetition.notes}))
        return code
    for note in repetition.notes:
        print(f"note: {note}")
    if repetition.first is None:
        begin = f"{incomplete}: " if incomplete else f"{ticks} ticks simulated again: "
        print(f"{begin}all {len(repetition.compared)} columns are equal to the bit")
        return code
    print(f"{ticks} ticks simulated again; first difference at {repetition.first}")
    print(f"\n{'largest differences':44} {'max':>12} {'rms':>12}")
    ranked = sorted(repetition.errors.items(), key=lambda item: -item[1]["rms"])
    for name, error in [(name, error) for name, error in ranked if error["max"] > 0.0][:_MOST]:
        print(f"{name:44} {error['max']:12.4g} {error['rms']:12.4g}")
    if incomplete:
        print(incomplete)
    return code


def _step(args: argparse.Namespace) -> int:
    import numpy as np

    from bipedsim.config import to_json
    from bipedsim.runs import replay_step

    steps: Any = replay_step(args.recording)
    if args.json:
        extra_keys = ("fastest", "modes", *(("objects",) if steps[0].objects else ()))
        print(
            to_json(
                {step.model: {**step.figures, **{name: getattr(step, name) for name in extra_keys}} for step in steps}
            )
        )
        return 0
    print(f"{'':20} {'contact work':>14} {'largest |v|':>12} {'normal force':>13}  modes")
    if steps[0].without:
        print(f"note: the step is repeated without the free objects of the run ({', '.join(steps[0].without)})")
    for step in steps:
        work = step.figures["contact_work_J"]["worst"]
        modes = " + ".join(step.modes) + (" (unresolved)" if step.unresolved else "")
        modes += "".join(f", {name} {np.linalg.norm(twist[:3]):.4g} m/s" for name, twist in step.objects.items())
        modes += f", other bodies {step.bodies[2]:.4g} N" if step.bodies.any() else ""
        print(f"{step.model:20} {work:12.4g} J {step.fastest:12.4g} {step.force.sum():11.4g} N  {modes}")
        for violation in step.violated:
            print(f"    {violation}")
    return 0
