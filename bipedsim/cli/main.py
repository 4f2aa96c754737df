"""Entry point of the command ``bipedsim``; errors and Ctrl-C become one line and an exit code.

The module imports only modules that Python loads anyway before :func:`main` runs. Ctrl-C therefore also works during
the other imports.
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

# The process frees the memory of a command at its end. A garbage collection before would take 0.3 s.
atexit.register(gc.freeze)

REPEAT = 0.5
"""Time after which an unanswered interrupt is raised again [s]."""
SAME_WISH = 1.0
"""Time within which further signals count as the same interrupt [s]; ``timeout -s INT`` sends two signals."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code, which :mod:`bipedsim.errors` defines."""
    interrupts = 0
    latest = 0.0

    def interrupt(number: int, _frame: object) -> None:
        nonlocal interrupts, latest
        # Callbacks of compiled code swallow exceptions, so the interrupt is raised again until it gets through.
        signal.setitimer(signal.ITIMER_REAL, REPEAT)
        # A handler that is already running is not interrupted again, unless the user repeats the interrupt.
        answered, exception = 0, sys.exc_info()[1]
        while exception is not None:
            # Subclasses such as RunInterruptedError are part of the handling and do not count.
            answered += type(exception) is KeyboardInterrupt
            exception = exception.__context__
        now = time.monotonic()
        # A repeated Ctrl-C counts as a new interrupt only if the previous one is already being handled.
        if number != signal.SIGALRM and answered >= interrupts and (not interrupts or now - latest > SAME_WISH):
            interrupts, latest = interrupts + 1, now
        if answered < interrupts:
            raise KeyboardInterrupt

    usual_hook = sys.unraisablehook

    def unless_interrupted(unraisable: Any) -> None:
        # An interrupt in a destructor or callback is not printed, because the timer raises it again.
        if unraisable.exc_type is not KeyboardInterrupt:
            usual_hook(unraisable)

    try:
        import signal

        sys.unraisablehook = unless_interrupted
        # SIGTERM of a batch system or of `timeout` saves as much data as Ctrl-C.
        signals = signal.SIGINT, signal.SIGTERM, signal.SIGALRM
        previous_handlers = {number: signal.signal(number, interrupt) for number in signals}
        try:
            return _run_command(argv)
        finally:
            sys.unraisablehook = usual_hook
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            for number, handler in previous_handlers.items():
                signal.signal(number, handler)
    except BrokenPipeError:
        from bipedsim.errors import EXIT_OK

        sys.stderr.close()
        return EXIT_OK
    except (KeyboardInterrupt, Exception) as error:
        # Extension modules convert an interrupt during their import to an ImportError.
        if not (interrupts or isinstance(error, KeyboardInterrupt)):
            raise
        from bipedsim.errors import EXIT_INTERRUPTED

        print("bipedsim: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


def _run_command(argv: Sequence[str] | None) -> int:
    import warnings

    from bipedsim.cli.commands import make_parser
    from bipedsim.cli.waiting import give_bars_room
    from bipedsim.errors import (
        EXIT_FAILED,
        EXIT_INCOMPLETE,
        EXIT_USAGE,
        BipedSimError,
        BipedSimWarning,
        DamagedError,
        FailedError,
        IncompleteWarning,
    )

    command = "bipedsim"
    reported: set[str] = set()
    incomplete: list[str] = []

    def report_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, BipedSimWarning):
            usual_showwarning(message, category, *where, **more)
        elif str(message) not in reported:
            reported.add(str(message))
            incomplete.extend([str(message)] * issubclass(category, IncompleteWarning))
            print(f"{command}: {message}", file=sys.stderr)

    try:
        with warnings.catch_warnings():
            usual_showwarning = warnings.showwarning
            warnings.simplefilter("always", BipedSimWarning)
            warnings.showwarning = report_warning
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
        code = _report_foreign_error(error, command)
        if code is None:
            raise
        return code


def _report_foreign_error(error: Exception, command: str) -> int | None:
    """Report an error that bipedsim has not caused; return the exit code, or None if bipedsim may be the cause."""
    from bipedsim.control import controller_traceback, raising_controller
    from bipedsim.errors import EXIT_FAILED, EXIT_USAGE, shown

    if raised := controller_traceback(error):
        name = raising_controller(error)
        print(
            f"{command}: the controller {name} raised an exception in its own code:\n{raised}", file=sys.stderr, end=""
        )
        return EXIT_FAILED
    # Any command can meet a file that was named and cannot be used.
    if isinstance(error, OSError) and error.filename is not None and not isinstance(error, BrokenPipeError):
        print(f"{command}: error: {shown(str(error.filename))[1:-1]}: {error.strerror}", file=sys.stderr)
        return EXIT_USAGE
    return None


if __name__ == "__main__":
    sys.exit(main())
