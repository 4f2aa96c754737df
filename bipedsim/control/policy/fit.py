"""Check a deployment file against a robot and a network, and report all mismatches at once, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bipedsim.config import numbers_per_joint, together
from bipedsim.control.policy.config import PerJoint, PolicyConfig, TermConfig
from bipedsim.control.policy.network import Network, trial
from bipedsim.control.policy.terms import ALIASES, CONSTANTS, TERMS, UNMEASURED, Term, TermJoints, size_of
from bipedsim.errors import BipedSimError, ConfigError, UnknownNameError
from bipedsim.model import Robot
from bipedsim.numerics import Array, Indices


@dataclass(frozen=True, eq=False)
class ResolvedTerm:
    """One term of the observation, resolved for a robot.

    Attributes:
        values: See :class:`Term`.
        joints: Joints of the term.
        size: Number of values per update.
        history: Number of updates in the observation.
        scale: Scale of all values, or of each (size,).
        clip: Minimum and maximum of the values before scaling; None for no limits.
    """

    values: Callable[..., Array]
    joints: TermJoints
    size: int
    history: int
    scale: Array
    clip: tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class ResolvedPolicy:
    """A policy resolved for a robot; arrays of joints are in the robot's order, those of actions in the network's.

    Attributes:
        terms: Terms of the observation.
        frame: Number of values of all terms together; the input of the network is ``frames`` of these.
        moved: (n,) indices of the joints that the policy moves.
        action_scale, action_offset: (n,) from network outputs to targets [rad].
        least, most: (n,) limits of the targets [rad].
        default: (nu,) targets of joints that the policy does not move [rad].
        stiffness, damping: (nu,) gains of the drives [N.m/rad], [N.m.s/rad].
        decimation: Ticks between two updates.
    """

    terms: tuple[ResolvedTerm, ...]
    frame: int
    moved: Indices
    action_scale: Array
    action_offset: Array
    least: Array
    most: Array
    default: Array
    stiffness: Array
    damping: Array
    decimation: int


def fit(config: PolicyConfig, where: str, robot: Robot, dt: float, network: Callable[[], Network]) -> ResolvedPolicy:
    """Resolve a policy for a robot.

    Args:
        config: The deployment file.
        where: Name of the file, for messages.
        robot: The robot.
        dt: Control period [s].
        network: Function that opens the network.

    Raises:
        ConfigError: The file does not fit; the message lists all mismatches.
    """
    fitter = _Fitter(config, where, robot)
    fitted = fitter.resolve(dt, network)
    together(fitter.faults)
    assert fitted is not None
    return fitted


@dataclass
class _Fitter:
    config: PolicyConfig
    where: str
    robot: Robot
    faults: list[ConfigError] = field(default_factory=list)

    def _fault(self, key: str, text: str) -> None:
        self.faults.append(ConfigError(text, f"{self.where}: {key}"))

    def resolve(self, dt: float, network: Callable[[], Network]) -> ResolvedPolicy | None:
        config, robot = self.config, self.robot
        joints = tuple(config.joints)
        self._check_joints(joints)
        action_joints = joints if config.action.joints is None else tuple(config.action.joints)
        self._check_part(action_joints, joints, "action.joints")
        default = self._numbers(config.default, joints, "default", 0.0)
        stiffness = self._numbers(config.stiffness, joints, "stiffness", 0.0, low=0.0)
        damping = self._numbers(config.damping, joints, "damping", 0.0, low=0.0)
        of_default = dict(zip(joints, default, strict=True))
        scale = self._numbers(config.action.scale, action_joints, "action.scale", 1.0)
        offset = [of_default.get(name, 0.0) for name in action_joints]
        if config.action.offset is not None:
            offset = self._numbers(config.action.offset, action_joints, "action.offset", 0.0)
        lower, upper = self._limits(len(action_joints))
        self._check_default(of_default)
        decimation = self._decimation(dt)
        terms = [
            self._term(i, term, joints, of_default, len(action_joints)) for i, term in enumerate(config.observations)
        ]
        resolved = [term for term in terms if term is not None]
        frame = sum(term.size * term.history for term in resolved)
        self._check_network(network, resolved if len(resolved) == len(terms) else None, frame, len(action_joints))
        if self.faults:
            return None
        order = np.array([joints.index(name) for name in robot.joint_names])
        return ResolvedPolicy(
            tuple(resolved),
            frame,
            self._index(action_joints),
            np.array(scale),
            np.array(offset),
            lower,
            upper,
            np.array(default)[order],
            np.array(stiffness)[order],
            np.array(damping)[order],
            decimation,
        )

    def _check_joints(self, joints: Sequence[str]) -> None:
        """Report joints of the robot that are missing or named twice, and unknown joints."""
        for name in dict.fromkeys(joints):
            if name not in self.robot.joint_names:
                self.faults.append(UnknownNameError("joint", name, self.robot.joint_names, f"{self.where}: joints"))
            if joints.count(name) > 1:
                self._fault("joints", f"{name} is named {joints.count(name)} times")
        missing = [name for name in self.robot.joint_names if name not in joints]
        if missing:
            self._fault(
                "joints",
                f"{', '.join(missing)} of {self.robot.name!r} are not driven; name them in `joints`, with a "
                "`default` to be held at and gains, and those that the network moves in `action.joints`",
            )

    def _check_part(self, part: Sequence[str], joints: Sequence[str], key: str) -> None:
        """Report joints of a key that are not in the list of driven joints."""
        for name in part:
            if name not in joints:
                self.faults.append(UnknownNameError("joint", name, joints, f"{self.where}: {key}"))

    def _numbers(
        self, values: PerJoint | None, joints: Sequence[str], key: str, otherwise: float, low: float = -np.inf
    ) -> list[float]:
        """Return one number per joint; ``otherwise`` for joints missing from a mapping."""
        if isinstance(values, list):
            if len(values) != len(joints):
                self._fault(key, f"{len(values)} numbers for {len(joints)} joints ({', '.join(joints)})")
                return [otherwise] * len(joints)
            wrong = [f"{name} = {value:g}" for name, value in zip(joints, values, strict=True) if value < low]
            if wrong:
                self._fault(key, f"{', '.join(wrong)} must be at least {low:g}")
            return values
        try:
            numbers = numbers_per_joint(values, joints, f"{self.where}: {key}", low)
        except ConfigError as error:
            self.faults.append(error)
            numbers = {}
        return [numbers.get(name, otherwise) for name in joints]

    def _limits(self, count: int) -> tuple[Array, Array]:
        limits = self.config.action.limits
        if limits is None:
            return np.full(count, -np.inf), np.full(count, np.inf)
        pairs = limits * count if len(limits) == 1 else limits
        if len(pairs) != count:
            self._fault("action.limits", f"{len(pairs)} pairs for {count} joints")
            return np.zeros(count), np.zeros(count)
        if any(low > high for low, high in pairs):
            self._fault("action.limits", "a minimum is above its maximum")
        return np.array([low for low, _ in pairs]), np.array([high for _, high in pairs])

    def _check_default(self, default: Mapping[str, float]) -> None:
        robot = self.robot
        for name, low, high in zip(robot.joint_names, robot.position_lower, robot.position_upper, strict=True):
            if name in default and not low <= default[name] <= high:
                self._fault("default", f"{name} = {default[name]:g} rad is beyond its limits [{low:g}, {high:g}]")

    def _decimation(self, dt: float) -> int:
        """Return the number of ticks per update of the policy."""
        ticks = self.config.period / dt
        if ticks < 0.999 or abs(ticks - round(ticks)) > 1e-6 * ticks:
            self._fault("period", f"{self.config.period:g} s is no whole number of control ticks of {dt:g} s (--rate)")
            return 1
        return round(ticks)

    def _index(self, joints: Sequence[str]) -> Indices:
        """Return the indices of joints among the robot's; joints that it does not have were reported before."""
        joint_names = self.robot.joint_names
        return np.array([joint_names.index(name) for name in joints if name in joint_names], dtype=np.int64)

    def _term(
        self, i: int, config: TermConfig, joints: Sequence[str], default: Mapping[str, float], actions: int
    ) -> ResolvedTerm | None:
        """Resolve a term of the observation; None if it does not exist."""
        key = f"observations[{i}]"
        name = ALIASES.get(config.term, config.term)
        if name in UNMEASURED:
            self._fault(
                key,
                f"{config.term!r} is {UNMEASURED[name]}: this policy needs more than a robot measures; train one that "
                "does not see it",
            )
            return None
        if name not in TERMS:
            term_names = [*TERMS, *ALIASES]
            self.faults.append(UnknownNameError("term", config.term, term_names, f"{self.where}: {key}"))
            return None
        term: Term = TERMS[name]
        of_term = tuple(joints if config.joints is None else config.joints)
        self._check_part(of_term, joints, f"{key}.joints")
        constants = np.array(config.values or (), dtype=np.float64)
        if (term.size == CONSTANTS) is not bool(len(constants)):
            kind = "needs its numbers as `values`" if term.size == CONSTANTS else "has no `values` of its own"
            self._fault(key, f"{config.term} {kind}")
        size = size_of(term, len(of_term), actions, len(self.robot.soles), len(constants))
        scale = np.array(config.scale, dtype=np.float64)
        if scale.ndim and len(scale) != size:
            self._fault(key, f"{len(scale)} scales for the {size} values of {config.term}")
        index = TermJoints(self._index(of_term), np.array([default.get(name, 0.0) for name in of_term]), constants)
        return ResolvedTerm(term.values, index, size, config.history, scale, config.clip)

    def _check_network(
        self, network: Callable[[], Network], terms: Sequence[ResolvedTerm] | None, frame: int, actions: int
    ) -> None:
        """Run the network once on an input of the expected size, and check the size of its output."""
        try:
            opened = network()
        except BipedSimError as error:
            self.faults.append(error if isinstance(error, ConfigError) else ConfigError(str(error)))
            return
        if terms is None:
            return
        frames = self.config.frames.count
        pairs = zip(self.config.observations, terms, strict=True)
        parts = [f"{config.term} {f'{seen.history} x ' * (seen.history > 1)}{seen.size}" for config, seen in pairs]
        description = f"{f'{frames} frames of ' * (frames > 1)}{frame} values ({', '.join(parts)})"
        size = frames * frame
        if opened.input_size is not None and opened.input_size != size:
            self._fault("observations", f"{description}, and the network takes {opened.input_size}")
            return
        try:
            outputs = trial(opened, size)
        except ConfigError as error:
            self._fault("observations", f"{description}: {error}")
            return
        if outputs != actions:
            self._fault("action", f"the network gives {outputs} values, and moves {actions} joints")
