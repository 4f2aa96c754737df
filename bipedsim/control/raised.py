"""What a controller raised, for who wrote it: from its own frames on, without those of who called it."""

from __future__ import annotations

import importlib
import os
import re
import traceback
from collections.abc import Callable, Mapping
from types import CodeType, TracebackType
from typing import Any

from bipedsim.control import controllers, monitor
from bipedsim.control.monitor import Guard
from bipedsim.errors import FailedError

# Where the code of a controller is called, and which controller that is, by what is local there.
_CALLS: dict[CodeType, Callable[[Mapping[str, Any]], str]] = {
    controllers.import_module_of.__code__: lambda local: str(local["name"]),
    controllers.construct.__code__: lambda local: _named(local["cls"]),
    **{
        method.__code__: lambda local: _named(local["self"].controller_class)
        for method in (Guard.update, Guard.reset, Guard.steer)
    },
}
_NOT_ITS_OWN = (monitor.__file__, importlib.__file__, "<frozen importlib")

_LIBRARY = re.compile(r"/(site|dist)-packages/|/lib/python3\.\d+/|^<")


class ControllerError(FailedError):
    """A controller raised what is no error of bipedsim; the message names controller, error, file and line."""


def controller_traceback(error: BaseException) -> str:
    """Return the traceback of what a controller raised, its causes too; empty if it comes from elsewhere."""
    own, _ = _own_frames(error)
    return "" if own is None else "".join(traceback.format_exception(type(error), error, own))


def raising_controller(error: BaseException) -> str:
    """Return which controller raised it, as ``module:Class``; empty if it comes from elsewhere."""
    own, name = _own_frames(error)
    return "" if own is None else name


def _own_frames(error: BaseException) -> tuple[TracebackType | None, str]:
    """Return the frames of a controller, None if it has none among them, and its name."""
    own, name = None, ""
    frame = error.__traceback__
    while frame is not None:
        if name_of := _CALLS.get(frame.tb_frame.f_code):
            own, name = frame.tb_next, name_of(frame.tb_frame.f_locals)
        frame = frame.tb_next
    while own is not None and own.tb_frame.f_code.co_filename.startswith(_NOT_ITS_OWN):
        own = own.tb_next
    return own, name


def _named(cls: Any) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def raised_line(error: BaseException) -> str:
    """Return in a line what was raised and where: ``KeyError: 'a' in mine.py:12 (update)``.

    The place is the innermost one in code that belongs neither to Python nor to an installed package, of a controller's
    own frames if it was a controller that raised it.
    """
    own, name = _own_frames(error)
    frames = traceback.extract_tb(own if own is not None else error.__traceback__)
    inner = [frame for frame in frames if not is_library(frame.filename)] or list(frames)
    said = str(error).strip().partition("\n")[0]
    text = f"{type(error).__name__}{f': {said}' if said else ''}"
    if inner:
        text += f" in {_shortest(inner[-1].filename)}:{inner[-1].lineno} ({inner[-1].name})"
    return f"controller {name}: {text}" if name else text


def is_library(filename: str) -> bool:
    """Return whether a file is one of Python or of an installed package, as far as its path says."""
    return _LIBRARY.search(filename) is not None


def _shortest(path: str) -> str:
    """Return a path from the current folder, if it is below that."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative
