"""View a recording in the browser: ``bipedsim view``."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import sys
import webbrowser
from pathlib import Path

from bipedsim.cli.options import add_option, add_recorded, add_span, chosen
from bipedsim.cli.waiting import waiting
from bipedsim.config import Table
from bipedsim.errors import ConfigError
from bipedsim.view.page import PageParams

LIVE = Table("live view", "bipedsim.live", {})
"""Name to the :class:`Command` of another package that shows the running robot. Its module has further options, and
refuses them for a recorded run (``refuse_recorded(args)``)."""

INSTEAD = {"--output": "--html FILE writes the page"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "recording",
        type=Path,
        metavar="RUN",
        nargs="?",
        help="bag folder, .mcap, folder of a run, .npz or .csv; default: the robot that runs in the ROS graph",
    )
    add_span(parser)
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write one file that plays without a server, and exit"
    )
    add_recorded(parser)
    for info in dataclasses.fields(PageParams):
        add_option(parser, PageParams, info.name)
    for name in LIVE:
        importlib.import_module(LIVE[name].module).add_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Show a run until Ctrl-C, or write it to a file; without a run, show the running robot."""
    if args.recording is None:
        return _show_live(args)
    from bipedsim.ground import get_ground
    from bipedsim.model import load_robot
    from bipedsim.view.page import open_replay, read_shown, write_html

    for name in LIVE:
        importlib.import_module(LIVE[name].module).refuse_recorded(args)
    if args.html is not None and args.html.suffix not in (".html", ".htm"):
        raise ConfigError(f"--html {args.html}: use a name that ends in .html")
    with waiting(f"reading {args.recording}"):
        shown = read_shown(
            args.recording,
            robot=load_robot(args.robot) if args.robot else None,
            ground=get_ground(args.ground) if args.ground else None,
            start=args.start,
            stop=args.stop,
            progress=True,
        )
    for note in shown.frames.notes:
        print(f"note: {note}", file=sys.stderr)
    if args.html is not None:
        with waiting(f"writing {args.html}"):
            outcome = write_html(shown, args.html, progress=True)
        print(f"wrote {args.html}: {outcome}")
        return 0
    with waiting("opening the page"):
        page, replay = open_replay(shown, **chosen(args, PageParams))
    for missing in page.scene.missing:
        print(f"note: shown differently from the robot description: {missing}", file=sys.stderr)
    try:
        print(f"{shown.title}: {page.address} (waits for a browser, then plays; Ctrl-C ends)", flush=True)
        webbrowser.open(page.address)
        replay.play_when_seen()
        replay.run()
    except KeyboardInterrupt:
        print()
    finally:
        page.close()
    return 0


def _show_live(args: argparse.Namespace) -> int:
    """Run the first live view that a package provides."""
    if args.html is not None:
        raise ConfigError("--html needs a recorded run. Name it, as in bipedsim view runs/first --html first.html")
    if args.start is not None or args.stop is not None:
        raise ConfigError("--from and --to need a recorded run. Name it, as in bipedsim view runs/first")
    for name in LIVE:
        return int(importlib.import_module(LIVE[name].module).main(args))
    raise ConfigError("no package with a live view is installed. Name a recorded run, as in bipedsim view runs/first")
