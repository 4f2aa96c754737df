"""Errors that a controller raised, reported to its author: only its own frames, without those of its callers."""

from __future__ import annotations

import importlib
import os
import re
import traceback
from collections.abc import Callable, Mapping
from types import CodeType, TracebackType
from typing import Any

from bipedsim.config import import_own_module
from bipedsim.control import controllers, monitor
from bipedsim.control.monitor import Guard
from bipedsim.errors import FailedError

# Code objects that call into a controller, each with a function that names the controller from the local variables.
_CALLS: dict[CodeType, Callable[[Mapping[str, Any]], str]] = {
    import_own_module.__code__: lambda local: str(local["name"]),
    controllers.construct.__code__: lambda local: _class_name(local["cls"]),
    **{
        method.__code__: lambda local: _class_name(local["self"].controller_class)
        for method in (Guard.update, Guard.reset, Guard.steer)
    },
}
_HOST_FILES = (monitor.__file__, importlib.__file__, "<frozen importlib")

_LIBRARY = re.compile(r"/(site|dist)-packages/|/lib/python3\.\d+/|^<")


class ControllerError(FailedError):
    """Report an error that is no error of bipedsim; the message names controller, error, file and line."""


def controller_traceback(error: BaseException) -> str:
    """Return the traceback of an error in a controller with its causes; empty if another module raised it."""
    controller_frames, _ = _own_frames(error)
    return (
        "" if controller_frames is None else "".join(traceback.format_exception(type(error), error, controller_frames))
    )


def raising_controller(error: BaseException) -> str:
    """Return the controller that raised an error, as ``module:Class``; empty if another module raised it."""
    controller_frames, name = _own_frames(error)
    return "" if controller_frames is None else name


def _own_frames(error: BaseException) -> tuple[TracebackType | None, str]:
    """Return the frames of the controller in a traceback, or None if there are none, and its name."""
    controller_frames, name = None, ""
    frame = error.__traceback__
    while frame is not None:
        if name_of := _CALLS.get(frame.tb_frame.f_code):
            controller_frames, name = frame.tb_next, name_of(frame.tb_frame.f_locals)
        frame = frame.tb_next
    while controller_frames is not None and controller_frames.tb_frame.f_code.co_filename.startswith(_HOST_FILES):
        controller_frames = controller_frames.tb_next
    return controller_frames, name


def _class_name(cls: Any) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def raised_line(error: BaseException) -> str:
    """Return one line with the error and its location: ``KeyError: 'a' in mine.py:12 (update)``.

    The location is the innermost frame outside Python and installed packages. If a controller raised the error, only
    its own frames count.
    """
    controller_frames, name = _own_frames(error)
    frames = traceback.extract_tb(controller_frames if controller_frames is not None else error.__traceback__)
    inner = [frame for frame in frames if not is_library(frame.filename)] or list(frames)
    message = str(error).strip().partition("\n")[0]
    text = f"{type(error).__name__}{f': {message}' if message else ''}"
    if inner:
        text += f" in {_shortest(inner[-1].filename)}:{inner[-1].lineno} ({inner[-1].name})"
    return f"controller {name}: {text}" if name else text


def is_library(filename: str) -> bool:
    """Return whether a file belongs to Python or to an installed package, judging by its path."""
    return _LIBRARY.search(filename) is not None


def _shortest(path: str) -> str:
    """Return a path relative to the current folder if it is below that folder."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative
