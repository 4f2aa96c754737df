"""Find the signals that a recording lacks, and the numbers that nothing in it determines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bipedsim.errors import RecordingError, some
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags
from bipedsim.recording import Recording
from bipedsim_studies.identify.parameters import OF_JOINTS, Parameters

WRENCH = ("fx", "fy", "fz", "tx", "ty", "tz")
"""Names of the components of a wrench."""
OF_EFFORTS = tuple(kind for kind in OF_JOINTS if kind != "encoder_offset")
"""Kinds per joint that only the effort of the joint shows."""
OFFSETS = ("force_offset", "moment_offset")
"""Kinds per foot that only its wrench shows."""
NEGLIGIBLE = 1e-3
"""Share of a sensor's component in a component of the wrench on the sole [1], [m], up to which it is not needed. In
some descriptions, the axes of sensor and sole differ by rounding."""


@dataclass(frozen=True, eq=False)
class Lacking:
    """Describe the signals that no row of a recording contains, for nu joints and K feet.

    Attributes:
        efforts: (nu,) whether the effort of each joint is missing.
        wrenches: (K, 6) whether each component of the ankle wrenches is missing.
    """

    efforts: Flags
    wrenches: Flags

    @classmethod
    def of(cls, recording: Recording, robot: Robot) -> Lacking:
        """Return the missing signals of a recording in the order of the robot.

        A signal that is exactly 0 in all rows is missing: messages have zeros for what a sensor does not measure. A
        load cell whose foot stays in the air is an exception.
        """
        efforts, wrenches = _never(recording.joint_effort), _never(recording.ankle_wrench)
        cells = np.array([sole.load_cell for sole in robot.soles])
        in_air = wrenches.all(axis=1) & np.isfinite(recording.ankle_wrench).any(axis=(0, 2))
        wrenches[cells & in_air] = False
        return cls(efforts, wrenches)

    @classmethod
    def common(cls, each: Sequence[Lacking]) -> Lacking:
        """Return the signals that all of some recordings lack."""
        return cls(*(np.all([getattr(one, name) for one in each], axis=0) for name in ("efforts", "wrenches")))

    def filled(self, recording: Recording) -> Recording:
        """Return the recording with zeros instead of the missing signals."""
        return self._with(recording, 0.0)

    def removed(self, recording: Recording) -> Recording:
        """Return the recording, in the order of the robot, without these signals."""
        return self._with(recording, np.nan)

    def _with(self, recording: Recording, value: float) -> Recording:
        return replace(
            recording,
            joint_effort=np.where(self.efforts, value, recording.joint_effort),
            ankle_wrench=np.where(self.wrenches, value, recording.ankle_wrench),
        )

    def notes(self, robot: Robot) -> Iterator[str]:
        """Yield a text for each kind of missing signals, with the numbers that stay as described."""
        if self.efforts.any():
            joints = [name for name, missing in zip(robot.joint_names, self.efforts, strict=True) if missing]
            which = "all joints" if self.efforts.all() else some(joints)
            yield f"lacks joint_effort of {which}; nothing there determines their {', '.join(OF_EFFORTS)}"
        if self.wrenches.any():
            parts = [
                f"{sole.name} ({', '.join(name for name, lost in zip(WRENCH, missing, strict=True) if lost)})"
                for sole, missing in zip(robot.soles, self.wrenches, strict=True)
                if missing.any()
            ]
            yield (
                f"lacks ankle_wrench of {some(parts)}; these forces are unknowns of every row, so that fewer equations "
                "remain for masses and CoM, and nothing determines their offsets"
            )


def ankles_to_soles(robot: Robot) -> Array:
    """Return the matrices (K, 6, 6) from wrenches of the ankle sensors to wrenches in the frames of the soles."""
    feet = zip(robot.soles, robot.placement_joint_ankle, strict=True)
    return np.array([(sole.placement_joint_sole.inverse() * ankle).toDualActionMatrix() for sole, ankle in feet])


def measured_in_soles(robot: Robot, missing: Flags) -> Flags:
    """Return which components (K, 6) of the wrenches in the frames of the soles the ankle sensors measure.

    Args:
        robot: The robot.
        missing: (K, 6) components that the sensors do not measure, in their own frames.
    """
    needed = np.abs(ankles_to_soles(robot)) > NEGLIGIBLE
    return np.asarray(~(needed & missing[:, None, :]).any(axis=-1))


def _never(values: Array) -> Flags:
    """Return which signals have no value but 0 in any row; the first axis is that of the rows."""
    return np.asarray(~(np.isfinite(values) & (values != 0.0)).any(axis=0))


def in_order(recording: Recording, robot: Robot, source: str) -> Recording:
    """Return the recording with joints and ankle wrenches in the order of the robot; missing wrenches are NaN.

    Raises:
        RecordingError: A joint is missing, or the recording has other feet.
    """
    try:
        ordered = recording.in_order(robot.joint_names)
    except RecordingError as error:
        raise error.within(source) from None
    return _with_all_feet(ordered, robot, source)


def _with_all_feet(recording: Recording, robot: Robot, source: str) -> Recording:
    """Return the recording with the ankle wrenches of all feet in the order of the robot; NaN for missing feet.

    Raises:
        RecordingError: The recording has feet with other names.
    """
    names = [sole.name for sole in robot.soles]
    if others := [name for name in recording.feet if name not in names]:
        message = f"has the feet {some(others)}, and {robot.name} the feet {some(names)}; rename them"
        raise RecordingError(message, source)
    wrench = np.full((len(recording), len(names), len(WRENCH)), np.nan)
    for k, name in enumerate(recording.feet):
        wrench[:, names.index(name)] = recording.ankle_wrench[:, k]
    return replace(recording, ankle_wrench=wrench)


def undetermined(parameters: Parameters, lacking: Sequence[Lacking]) -> Flags:
    """Return which numbers (p,) none of the recordings shows, because the signals are missing in all of them."""
    common = Lacking.common(lacking)
    efforts, wrenches = common.efforts, common.wrenches
    result = np.zeros(len(parameters), dtype=np.bool_)
    for kind in OF_EFFORTS:
        result[parameters.at[kind][:, 0]] = efforts
    for kind, part in zip(OFFSETS, (wrenches[:, :3], wrenches[:, 3:]), strict=True):
        result[parameters.at[kind]] = part
    result[parameters.at["effort_delay"]] = efforts.all()
    result[parameters.at["wrench_delay"]] = wrenches.all()
    return result
