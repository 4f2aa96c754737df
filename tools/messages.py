#!/usr/bin/env python3
"""Write docs/messages.md: the texts that bipedsim makes from values, one example of each.

The test test/docs/test_messages.py compares the page with the code. Run this script after a change of a text.

Usage: python tools/messages.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.analysis.controller_stop import ControllerStop
from bipedsim.analysis.ending import Fall, FallKind, FallReason, outcome_line
from bipedsim.config import from_mapping, together
from bipedsim.config.run import RunConfig
from bipedsim.control import StopKind, StopReason
from bipedsim.errors import BipedSimError, ConfigError, DivergenceError, InvalidCommandError, UnknownNameError

PAGE = Path(__file__).resolve().parent.parent / "docs" / "messages.md"

HEAD = """# Messages

Which texts does bipedsim make from values, and which fields hold these values? For programs that use bipedsim.
`tools/messages.py` writes this page.

## Errors

Every error is a `bipedsim.errors.BipedSimError`. Programs use its class and its fields:

| field | content |
| --- | --- |
| `place` | file and key, argument or object that is wrong |
| `value` | the value there; arrays and tuples as lists |
| `faults` | the errors, if there are several |
| `kind`, `name`, `choices`, `meant` | what was looked up, the unknown name, the valid names, the closest one |

"""
DETAILS = {
    StopKind.NOT_FINITE: "torque of l_knee is nan",
    StopKind.RAISED: "KeyError: 'l_knee'",
    StopKind.RETURNED: "None; it must return Command(tau_joint), shape (14,)",
    StopKind.TILTED: "57",
}


def errors() -> Iterator[BipedSimError]:
    """Yield an error of each form."""
    missing = ConfigError("this key is missing", "robot.yaml: feet.left.frame")
    yield missing
    yield ConfigError("must be three numbers", "robot.yaml: feet.left.placement.xyz", np.zeros(2))
    yield ConfigError("s must be positive", "estimator: dt", 0.0).within("controller 'zmp'")
    yield UnknownNameError("joint", "l_kne", ["l_hip", "l_knee"], "robot.yaml: joints")
    yield UnknownNameError("robot", "xyz", ["biped14", "talos"], otherwise="the path of a robot.yaml")
    yield InvalidCommandError("a stiffness of -1", "it must be at least 0")
    yield DivergenceError("a velocity is not finite", 0.25, np.zeros(2), np.array([0.0, -7.0]))
    for values in ({"rate": 0}, {"duration": "long"}, {"robto": "talos"}, {"seed": -1, "duration": float("nan")}):
        try:
            from_mapping(RunConfig, values, "options")
        except ConfigError as error:
            yield error
    try:
        together([missing] * 60)
    except ConfigError as error:
        yield ConfigError(str(error).splitlines()[0] + " ... " + str(error).splitlines()[-1].strip())


def outcomes() -> Iterator[tuple[str, Any]]:
    """Yield the values that describe the end of a run, and their texts."""
    for kind in StopKind:
        reason = StopReason(kind, DETAILS.get(kind, ""))
        yield str(kind), ControllerStop(1.25, str(reason), kind)
    for fall in FallKind:
        yield str(fall), Fall(2.0, FallReason(fall, "left", 1.5), ("torso",)).text(FallReason(fall, "left", 1.5))
    figures = {"torque_limited": {"l_knee": 0.25, "r_knee": 0.2}, "torque_swings_hz": {"l_knee": 60.0}}
    yield "torques and faults", outcome_line("stood 10.0 s", None, figures, ["imu lost from 2 s on"])


def page() -> str:
    """Return the content of the page."""
    lines = ["| class | message |", "| --- | --- |"]
    lines += [f"| `{type(error).__name__}` | {_cell(error)} |" for error in errors()]
    lines += ["", "## Outcomes", "", "| value | text |", "| --- | --- |"]
    lines += [f"| `{value}` | {_cell(text)} |" for value, text in outcomes()]
    return HEAD + "\n".join(lines) + "\n"


def _cell(text: object) -> str:
    return "<br>".join(f"`{line.strip()}`" for line in str(text).replace("|", "\\|").splitlines())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
