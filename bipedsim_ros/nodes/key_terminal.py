"""How a terminal hands over keys; nothing here needs ROS."""

from __future__ import annotations

import os
import select
import signal
import termios
import tty
from types import FrameType
from typing import Any

from bipedsim.errors import ConfigError


class KeyTerminal:
    """A terminal that hands over keys at once and does not echo them, within ``with``; as it was afterwards.

    Ctrl-Z gives it back, too, until the process goes on. Only a SIGKILL leaves it as it is: `stty sane` mends that.

    Raises:
        ConfigError: The file is no terminal.
    """

    def __init__(self, fd: int) -> None:
        if not os.isatty(fd):
            raise ConfigError("the keyboard steers: standard input must be a terminal")
        self._fd = fd
        self._before: Any = None
        self._suspend_before: Any = None

    def __enter__(self) -> KeyTerminal:
        self._before = termios.tcgetattr(self._fd)
        self._suspend_before = signal.signal(signal.SIGTSTP, self._suspend)
        tty.setcbreak(self._fd)
        return self

    def __exit__(self, *_error: object) -> None:
        # Not after what is still to be printed: nobody may read it any more.
        termios.tcsetattr(self._fd, termios.TCSANOW, self._before)
        signal.signal(signal.SIGTSTP, self._suspend_before)

    def _suspend(self, _number: int, _frame: FrameType | None) -> None:
        self.__exit__()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        self.__enter__()

    def read(self, timeout: float) -> str:
        """Return what was typed within ``timeout`` [s]; an empty text if nothing was.

        Raises:
            EOFError: The terminal has gone.
        """
        if not select.select([self._fd], [], [], max(timeout, 0.0))[0]:
            return ""
        try:
            data = os.read(self._fd, 1024)
        except OSError as error:
            raise EOFError from error
        if not data:
            raise EOFError
        return data.decode(errors="ignore")
