"""What a controller raised, for who wrote it: from its own frames on, without those of who called it."""

from __future__ import annotations

import importlib
import traceback

from bipedsim.control import controllers, monitor
from bipedsim.control.monitor import Guard

# Where the code of a controller is called.
_CALLS = {
    function.__code__
    for function in (Guard.update, Guard.reset, Guard.steer, controllers.construct, controllers.import_module_of)
}
_NOT_ITS_OWN = (monitor.__file__, importlib.__file__, "<frozen importlib")


def controller_traceback(error: BaseException) -> str:
    """Return the traceback of what a controller raised, its causes too; empty if it comes from elsewhere."""
    own = frame = error.__traceback__
    called = False
    while frame is not None:
        if frame.tb_frame.f_code in _CALLS:
            own, called = frame.tb_next, True
        frame = frame.tb_next
    while own is not None and own.tb_frame.f_code.co_filename.startswith(_NOT_ITS_OWN):
        own = own.tb_next
    return "".join(traceback.format_exception(type(error), error, own)) if called and own is not None else ""
