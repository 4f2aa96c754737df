"""The content of a policy's deployment file, in any format: see docs/controllers/policy.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bipedsim.config import param

PerJoint = float | list[float] | Mapping[str, float]
"""One number for all joints, one per joint in their order, or a mapping from joint name or regular expression."""
Range = tuple[float, float]


@dataclass(frozen=True)
class TermConfig:
    """One entry of ``observations``."""

    term: str = param("", "name of the observation term", required=True)
    scale: float | list[float] = param(1.0, "scale factor; a list has one number per value")
    clip: Range | None = param(None, "[minimum, maximum] of each value, before the scale")
    history: int = param(1, "number of past values in the observation, one per update, oldest first", low=1, high=1000)
    joints: list[str] | None = param(None, "of a term of joints, in their order; default all of `joints`")
    values: list[float] | None = param(None, "for the term `constant`: its values at every update")
    size: tuple[float, float] = param(
        (1.6, 1.0), "of a height scan: edges of the grid ahead and to the left, around the base", unit="m", low=0.0
    )
    resolution: float = param(0.1, "of a height scan: distance of its points", unit="m", low=1e-3)
    points: list[tuple[float, float]] | None = param(
        None, "of a height scan, instead of a grid: [x, y] in the heading frame of the base", unit="m"
    )
    offset: float = param(0.5, "of a height scan: height of the base that counts as 0", unit="m")
    ground_truth: bool = param(False, "of `base_lin_vel`: the simulator's velocity; refused outside of `bipedsim run`")
    phase: float = param(0.0, "of a clock term: added to its phase, 0.5 for the other foot", low=-1.0, high=1.0)


@dataclass(frozen=True)
class ActionConfig:
    """The key ``action``: targets of the drives [rad] = offset + scale (output of the network)."""

    joints: list[str] | None = param(
        None,
        "joints that the network moves, in the order of its output; default: all of `joints`; others hold their pose",
    )
    scale: PerJoint = param(1.0, "one number, one each in the order of the action's joints, or by name", unit="rad")
    offset: PerJoint | None = param(None, "the same; default the default pose", unit="rad")
    clip: list[float | Range] | None = param(
        None, "[minimum, maximum] of the network output for all joints, or a list of one each"
    )
    clip_last: bool = param(True, "whether `last_action` is the clipped output")
    limits: list[Range] | None = param(
        None, "[[minimum, maximum], ...] of the targets, one for all or one each", unit="rad"
    )


@dataclass(frozen=True)
class ClockConfig:
    """The key ``clock`` of policies with a fixed rhythm: the terms ``clock...``, of phase (t + start) / period."""

    period: float = param(0.8, "of a stride", unit="s", low=1e-3, high=100.0)
    start: float = param(0.0, "phase at the first update", unit="s", low=0.0, high=100.0)
    still_below: float = param(
        0.0, "norm of the velocity command, m/s and rad/s alike, below which it is at rest", low=0.0, high=10.0
    )
    still: tuple[float, float] = param((0.0, 0.0), "sine and cosine at rest", low=-1.0, high=1.0)


@dataclass(frozen=True)
class FramesConfig:
    """The key ``frames`` of policies that see all terms of several updates."""

    count: int = param(1, "how many", low=1, high=1000)
    newest_first: bool = param(False, "whether the newest one comes first")


@dataclass(frozen=True)
class EncoderConfig:
    """One entry of ``encoders``: a network whose output is a term, under the name of the entry."""

    network: str = param("", "file of the network", required=True)
    observations: list[TermConfig] = param([], "its terms, in this order", required=True)
    frames: FramesConfig = param(FramesConfig(), "all its terms of several updates")
    input: str = param("", "as for the policy")
    output: str = param("", "as for the policy")
    states: Mapping[str, str] = param({}, "as for the policy")


@dataclass(frozen=True)
class CommandConfig:
    """The key ``command``: limits to which a velocity command is clipped for the policy."""

    low: tuple[float, float, float] = param((-10.0, -10.0, -10.0), "vx, vy [m/s], wz [rad/s]")
    high: tuple[float, float, float] = param((10.0, 10.0, 10.0), "the same")


@dataclass(frozen=True)
class PolicyConfig:
    """A deployment file of bipedsim; :mod:`bipedsim.control.policy.readers` translates other formats to it."""

    extends: str = param("", "deployment file of any kind; its keys are the defaults of this file")
    network: str = param("", "file of the network next to this file: .onnx, or TorchScript .pt", required=True)
    period: float = param(0.02, "between two updates", unit="s", low=1e-4, high=10.0)
    joints: list[str] = param([], "all driven joints, in the order of lists", required=True)
    default: PerJoint = param(0.0, "pose of the joints that `joint_pos_rel` and actions count from", unit="rad")
    stiffness: PerJoint | None = param(None, "kp of the drives", unit="N.m/rad", required=True)
    damping: PerJoint | None = param(None, "kd of the drives", unit="N.m.s/rad", required=True)
    action: ActionConfig = param(ActionConfig(), "meaning of the network output")
    observations: list[TermConfig] = param([], "observation terms, in this order", required=True)
    encoders: Mapping[str, EncoderConfig] = param({}, "networks whose outputs are terms, by the name of the term")
    clip: Range | None = param(None, "[minimum, maximum] of all observations, after the scales")
    frames: FramesConfig = param(FramesConfig(), "all terms of several updates")
    history_start: str = param(
        "first",
        "past values at the first update: copies of the first observation, or zeros",
        choices=("first", "zeros"),
    )
    command: CommandConfig = param(CommandConfig(), "limits of the velocity command")
    clock: ClockConfig = param(ClockConfig(), "gait clock of policies that need a phase")
    input: str = param("", "name of the network's input; default its only one, or `obs`")
    output: str = param("", "name of its output; default the first one")
    states: Mapping[str, str] = param(
        {}, "inputs to the outputs that they are at the next update; default NAME_in to NAME_out, zeros at first"
    )


MINIMAL = """
    network: policy.onnx
    period: 0.02
    joints: [left_hip, left_knee, right_hip, right_knee]
    default: [-0.2, 0.4, -0.2, 0.4]
    stiffness: 100
    damping: 4
    action: {scale: 0.25}
    observations: [{term: base_ang_vel}, {term: projected_gravity}, {term: velocity_commands},
                   {term: joint_pos_rel}, {term: joint_vel}, {term: last_action}]
"""
"""A short deployment file, for messages."""
