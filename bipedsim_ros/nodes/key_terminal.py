"""Read single keys from a terminal. Does not need ROS."""

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
    """Context manager that makes a terminal deliver keys at once and without echo, and then restores it.

    Ctrl-Z restores it too, until the process continues. After SIGKILL it is not restored: `stty sane` fixes that.

    Raises:
        ConfigError: The file is not a terminal.
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
        # TCSANOW does not wait for pending output, because the reader may no longer exist.
        termios.tcsetattr(self._fd, termios.TCSANOW, self._before)
        signal.signal(signal.SIGTSTP, self._suspend_before)

    def _suspend(self, _number: int, _frame: FrameType | None) -> None:
        self.__exit__()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        self.__enter__()

    def read(self, timeout: float) -> str:
        """Return the keys typed within ``timeout`` [s]; an empty text if there are none.

        Raises:
            EOFError: The terminal was closed.
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
