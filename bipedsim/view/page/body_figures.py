"""Define the data shown for a clicked body, as rows of text with numbers, for the live page and for the static file.

The texts are created once. Each :class:`Value` refers to one of the :class:`Signals` of an instant, so a static
file contains only the numbers of each frame and no texts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.model import Robot, drivers
from bipedsim.numerics import Array
from bipedsim.view.page.signals import Signals


@dataclass(frozen=True)
class Value:
    """A number in a text.

    Attributes:
        at: Index of the signal.
        digits: Number of decimals.
        factor: Factor by which the reading is multiplied.
        unsigned: Whether to show the absolute value.
    """

    at: int
    digits: int
    factor: float = 1.0
    unsigned: bool = False

    def text(self, values: Array) -> str:
        """Format the number."""
        value = self.factor * float(values[self.at])
        rounded = round(abs(value) if self.unsigned else value, self.digits)
        # Adding 0 removes the sign of a negative zero.
        return f"{rounded + 0.0:.{self.digits}f}"


@dataclass(frozen=True)
class Row:
    """A name and the text after it; the row is omitted if one of its values is unknown."""

    name: str
    parts: tuple[str | Value, ...]

    def text(self, values: Array) -> str:
        """Return the text; empty if a value is unknown."""
        known = all(np.isfinite(values[part.at]) for part in self.parts if isinstance(part, Value))
        return "".join(p if isinstance(p, str) else p.text(values) for p in self.parts) if known else ""


def body_rows(robot: Robot, link: str, joint: int) -> tuple[Row, ...]:
    """Return the rows for a click on the body of ``joint``."""
    model, offsets = robot.model, Signals(robot)
    made = [
        Row("link", (link,)),
        Row("joint", (model.names[joint],)),
        Row("mass", (f"{model.inertias[joint].mass:.3g} kg",)),
    ]
    if model.names[joint] in robot.joint_names:
        made += _of_joint(robot, joint, robot.joint_names.index(model.names[joint]))
    made.append(Row("centre of mass", _three(offsets.centres + 3 * joint, 3, " m")))
    for k, sole in enumerate(robot.soles):
        if sole.joint_id == joint:
            made.append(Row("force on the sole", _three(offsets.wrenches + 6 * k, 1, " N")))
            made.append(Row("torque", _three(offsets.wrenches + 6 * k + 3, 1, " N.m")))
    body = int(drivers(model, robot.joint_names)[joint])
    made.append(Row("other contact", _three(offsets.forces + 3 * body, 1, " N")))
    return tuple(made)


def _of_joint(robot: Robot, joint: int, i: int) -> list[Row]:
    """Return the rows of joint ``i`` of the robot, which is ``joint`` of the pinocchio model."""
    turns = robot.model.joints[joint].shortname().startswith("JointModelR")
    low, high, fastest = robot.position_lower[i], robot.position_upper[i], robot.velocity_limit[i]
    angle, rate, effort, command = (i + robot.nu * n for n in range(4))
    if turns:
        degree = float(np.rad2deg(1.0))
        between = f" deg ({degree * low:.0f} to {degree * high:.0f})"
        position: tuple[str | Value, ...] = (Value(angle, 1, degree), between)
        velocity: tuple[str | Value, ...] = (Value(rate, 2), f" rad/s (at most {fastest:.1f})")
    else:
        position = Value(angle, 3), f" m ({low:.3g} to {high:.3g})"
        velocity = Value(rate, 2), f" m/s (at most {fastest:.2g})"
    unit, limit = "N.m" if turns else "N", robot.effort_limit[i]
    torques = [
        Row(name, (Value(at, 1), f" {unit}, ", Value(at, 0, 100.0 / limit, unsigned=True), f"% of {limit:.0f}"))
        for name, at in (("effort", effort), ("asked for", command))
    ]
    return [Row("position", position), Row("velocity", velocity), *torques]


def _three(at: int, digits: int, unit: str) -> tuple[str | Value, ...]:
    return (Value(at, digits), ", ", Value(at + 1, digits), ", ", Value(at + 2, digits), unit)
