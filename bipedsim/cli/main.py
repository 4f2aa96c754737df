"""The entry of the command ``bipedsim``: errors and Ctrl-C become one line and an exit code.

Nothing but what is part of Python's program is imported before :func:`main` is on the way, so that Ctrl-C has an answer
during the imports, too.
"""

from __future__ import annotations

import atexit
import gc
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

# What a command holds at its end goes with the process; to look through it for garbage takes 0.3 s.
atexit.register(gc.freeze)

REPEAT = 0.5
"""Time [s] after which an interrupt that nobody answered is raised again."""
SAME_WISH = 1.0
"""Time [s] within which further interrupts are the same wish: ``timeout -s INT`` sends two, fingers do, too."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code, one of those in :mod:`bipedsim.errors`."""
    wishes = 0
    latest = 0.0

    def interrupt(number: int, _frame: object) -> None:
        nonlocal wishes, latest
        # Callbacks of compiled code swallow exceptions: it is raised again until it gets through.
        signal.setitimer(signal.ITIMER_REAL, REPEAT)
        # Who answers it is left alone, with errors that are met and handled meanwhile, unless the user asks again.
        answered, handled = 0, sys.exc_info()[1]
        while handled is not None:
            # Its descendants, such as RunInterruptedError, are part of an answer.
            answered += type(handled) is KeyboardInterrupt
            handled = handled.__context__
        now = time.monotonic()
        # Who asks again because nothing has happened yet wishes nothing new.
        if number != signal.SIGALRM and answered >= wishes and (not wishes or now - latest > SAME_WISH):
            wishes, latest = wishes + 1, now
        if answered < wishes:
            raise KeyboardInterrupt

    usual = sys.unraisablehook

    def unless_interrupted(unraisable: Any) -> None:
        # Raised in a destructor or callback, as many modules have while they load: it is raised again.
        if unraisable.exc_type is not KeyboardInterrupt:
            usual(unraisable)

    try:
        import signal

        sys.unraisablehook = unless_interrupted
        # What ends a job of a batch system, or a command under `timeout`, keeps as much as Ctrl-C does.
        heard = signal.SIGINT, signal.SIGTERM, signal.SIGALRM
        before = {number: signal.signal(number, interrupt) for number in heard}
        try:
            return _answer(argv)
        finally:
            sys.unraisablehook = usual
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            for number, handler in before.items():
                signal.signal(number, handler)
    except BrokenPipeError:
        from bipedsim.errors import EXIT_OK

        sys.stderr.close()
        return EXIT_OK
    except (KeyboardInterrupt, Exception) as error:
        # Extension modules make an ImportError of an interrupt while they load.
        if not (wishes or isinstance(error, KeyboardInterrupt)):
            raise
        from bipedsim.errors import EXIT_INTERRUPTED

        print("bipedsim: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


def _answer(argv: Sequence[str] | None) -> int:
    import warnings

    from bipedsim.cli.commands import make_parser
    from bipedsim.cli.waiting import give_bars_room
    from bipedsim.errors import (
        EXIT_FAILED,
        EXIT_INCOMPLETE,
        EXIT_USAGE,
        BipedSimError,
        ChangedWarning,
        DamagedError,
        FailedError,
        IncompleteWarning,
    )

    command = "bipedsim"
    told: set[str] = set()
    incomplete: list[str] = []

    def tell(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, (IncompleteWarning, ChangedWarning)):
            usual(message, category, *where, **more)
        elif str(message) not in told:
            told.add(str(message))
            incomplete.extend([str(message)] * issubclass(category, IncompleteWarning))
            print(f"{command}: {message}", file=sys.stderr)

    try:
        with warnings.catch_warnings():
            usual = warnings.showwarning
            warnings.simplefilter("always", IncompleteWarning)
            warnings.simplefilter("always", ChangedWarning)
            warnings.showwarning = tell
            args = make_parser().parse_args(argv)
            give_bars_room()
            command = f"bipedsim {args.command}"
            return int(args.function(args)) or (EXIT_INCOMPLETE if incomplete else 0)
    except BipedSimError as error:
        print(f"{command}: error: {error}", file=sys.stderr)
        if isinstance(error, FailedError):
            return EXIT_FAILED
        return EXIT_INCOMPLETE if incomplete or isinstance(error, DamagedError) else EXIT_USAGE
    except Exception as error:
        code = _told(error, command)
        if code is None:
            raise
        return code


def _told(error: Exception, command: str) -> int | None:
    """Tell of an error that is no fault of bipedsim; return the exit code, or None if it may be one."""
    from bipedsim.control import controller_traceback, raising_controller
    from bipedsim.errors import EXIT_FAILED, EXIT_USAGE, shown

    if raised := controller_traceback(error):
        who = raising_controller(error)
        print(f"{command}: what the controller {who} raised, from its own code on:\n{raised}", file=sys.stderr, end="")
        return EXIT_FAILED
    # A file that was named and cannot be used, whoever met it.
    if isinstance(error, OSError) and error.filename is not None and not isinstance(error, BrokenPipeError):
        print(f"{command}: error: {shown(str(error.filename))[1:-1]}: {error.strerror}", file=sys.stderr)
        return EXIT_USAGE
    return None


if __name__ == "__main__":
    sys.exit(main())
