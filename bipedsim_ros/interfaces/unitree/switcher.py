"""Simulate the machine's motion switcher, which assigns the motors to a vendor's controller or to a user's program.

Programs that send rt/lowcmd query it first, and release the controller that it reports. Here it reports ``ai`` at
first, as the machine does after its start. The motors follow rt/lowcmd in any case.
"""

from __future__ import annotations

import json

CHECK_MODE, SELECT_MODE, RELEASE_MODE = 1001, 1002, 1003
_OK, _UNKNOWN, _PARAMETER = 0, 3203, 3204
"""Codes of the vendor's services: success, unknown request, and invalid parameter."""


class Switcher:
    """State of the motion switcher.

    Attributes:
        mode: Name of the vendor's controller that is assigned to the motors; empty after its release.
    """

    def __init__(self) -> None:
        self.mode = "ai"

    def answer(self, api: int, parameter: str) -> tuple[int, str]:
        """Return the code and the data that answer a request.

        Args:
            api: Number of the request.
            parameter: Parameter as JSON.
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
