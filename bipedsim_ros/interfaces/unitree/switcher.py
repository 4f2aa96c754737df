"""The machine's motion switcher: who has the motors, a controller of the vendor's or a program of the user's.

Programs that send rt/lowcmd ask it first, and release what it names. Here it names ``ai`` until then, as the machine
does after it has started, and motors follow rt/lowcmd all the same.
"""

from __future__ import annotations

import json

CHECK_MODE, SELECT_MODE, RELEASE_MODE = 1001, 1002, 1003
_OK, _UNKNOWN, _PARAMETER = 0, 3203, 3204
"""Codes of the vendor's services: done, no such call, and a parameter that cannot be read."""


class Switcher:
    """The state of the motion switcher.

    Attributes:
        mode: Name of the vendor's controller that has the motors; empty if it has been released.
    """

    def __init__(self) -> None:
        self.mode = "ai"

    def answer(self, api: int, parameter: str) -> tuple[int, str]:
        """Return the code and the data that answer a call.

        Args:
            api: Number of the call.
            parameter: JSON.
        """
        if api == CHECK_MODE:
            return _OK, json.dumps({"form": "0", "name": self.mode})
        if api == RELEASE_MODE:
            self.mode = ""
            return _OK, ""
        if api == SELECT_MODE:
            try:
                self.mode = str(json.loads(parameter)["name"])
            except (ValueError, KeyError, TypeError):
                return _PARAMETER, ""
            return _OK, ""
        return _UNKNOWN, ""
