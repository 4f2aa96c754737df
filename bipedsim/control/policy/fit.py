"""Check a deployment file against a robot and a network, and report all mismatches at once, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bipedsim.config import numbers_per_joint, together
from bipedsim.control.policy.config import (
    EncoderConfig,
    FramesConfig,
    PerJoint,
    PolicyConfig,
    Range,
    TermConfig,
)
from bipedsim.control.policy.network import Network, open_network, trial
from bipedsim.control.policy.terms import (
    ALIASES,
    CALLED,
    CONSTANTS,
    OWN_TERMS,
    POINTS,
    TERMS,
    TRUE_VELOCITY,
    UNMEASURED,
    Term,
    TermInputs,
    TermJoints,
    call_term,
    encoder_term,
    own_term,
    size_of,
)
from bipedsim.errors import BipedSimError, ConfigError, UnknownNameError
from bipedsim.model import Robot
from bipedsim.numerics import Array, Indices
from bipedsim.sim import scan_grid


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
class ResolvedInput:
    """A network and its terms, resolved for a robot.

    Attributes:
        network: The network.
        terms: Terms of its input.
        frame: Number of values of all terms together.
        frames: The input consists of the terms of this number of updates.
    """

    network: Network
    terms: tuple[ResolvedTerm, ...]
    frame: int
    frames: FramesConfig


@dataclass(frozen=True, eq=False)
class ResolvedPolicy:
    """A policy resolved for a robot; arrays of joints are in the robot's order, those of actions in the network's.

    Attributes:
        policy: Network and terms.
        encoders: Networks and terms of the encoders, by name.
        moved: (n,) indices of the joints that the policy moves.
        clip: (2, n) minimum and maximum of the network outputs.
        action_scale, action_offset: (n,) from network outputs to targets [rad].
        limits: (2, n) minimum and maximum of the targets [rad].
        default: (nu,) targets of joints that the policy does not move [rad].
        stiffness, damping: (nu,) gains of the drives [N.m/rad], [N.m.s/rad].
        decimation: Ticks between two updates.
        height_points: (S, 2) points of all height scans in the heading frame of the base [m]; None without any.
    """

    policy: ResolvedInput
    encoders: Mapping[str, ResolvedInput]
    moved: Indices
    clip: Array
    action_scale: Array
    action_offset: Array
    limits: Array
    default: Array
    stiffness: Array
    damping: Array
    decimation: int
    height_points: Array | None

    def sees(self, term: Term) -> bool:
        """Return whether the policy or an encoder has a term."""
        inputs = (self.policy, *self.encoders.values())
        return any(own.values is term.values for part in inputs for own in part.terms)


NEEDS = {
    **{key: {"joints"} for key in ("default", "stiffness", "damping", "action")},
    "encoders": {"joints", "action"},
    "observations": {"joints", "action", "encoders"},
}
"""Key of a deployment file to the keys without which its values cannot be checked."""
_OF_NETWORK = {"network", "input", "output", "states"}
_SIZES = {"observations", "action"}
"""Places of errors that compare a network with the terms or joints of the file."""


def fit(
    config: PolicyConfig,
    where: str,
    robot: Robot,
    dt: float,
    unread: frozenset[str] = frozenset(),
    faults: Sequence[ConfigError] = (),
) -> ResolvedPolicy:
    """Resolve a policy for a robot.

    Args:
        config: The deployment file.
        where: Name of the file, for messages.
        robot: The robot.
        dt: Control period [s].
        unread: Keys of the file that are wrong or missing; values that depend on them are not checked.
        faults: Their errors.

    Raises:
        ConfigError: The file does not fit, or there are ``faults``; the message lists all of them.
    """
    fitter = _Fitter(config, where, robot)
    fitted = fitter.resolve(dt)
    found = (one for fault in fitter.faults for one in fault.faults or (fault,))
    together([*faults, *(fault for fault in found if not unread & _needed(fault, where))])
    assert fitted is not None
    return fitted


def _needed(fault: BipedSimError, where: str) -> set[str]:
    """Return the keys on which an error depends; errors of networks have the place of the network's file."""
    place = str(fault.place)
    inside = place.removeprefix(f"{where}: ")
    if inside == place:
        return _OF_NETWORK
    key = re.split(r"[.\[]", inside)[0]
    of_size = _OF_NETWORK | {"frames"} if inside in _SIZES else set()
    return {key} | NEEDS.get(key, set()) | of_size


@dataclass
class _Fitter:
    config: PolicyConfig
    where: str
    robot: Robot
    faults: list[ConfigError] = field(default_factory=list)
    points: list[Array] = field(default_factory=list)
    encoded: dict[str, int] = field(default_factory=dict)
    """Number of outputs of each encoder; 0 if it is wrong."""

    def _fault(self, key: str, text: str) -> None:
        self.faults.append(ConfigError(text, f"{self.where}: {key}"))

    def resolve(self, dt: float) -> ResolvedPolicy | None:
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
        clip = self._limits(config.action.clip, len(action_joints), "action.clip")
        limits = self._limits(config.action.limits, len(action_joints), "action.limits")
        self._check_default(of_default)
        decimation = self._decimation(dt)
        encoders: dict[str, ResolvedInput | None] = {}
        for name, encoder in config.encoders.items():
            if name in (*TERMS, *ALIASES, *UNMEASURED):
                self._fault(f"encoders.{name}", "a term has this name; choose another")
            encoders[name] = self._input(encoder, f"encoders.{name}.", joints, of_default, len(action_joints), None)
        policy = self._input(config, "", joints, of_default, len(action_joints), len(action_joints))
        if self.faults or policy is None:
            return None
        order = np.array([joints.index(name) for name in robot.joint_names])
        return ResolvedPolicy(
            policy,
            {name: encoder for name, encoder in encoders.items() if encoder is not None},
            self._index(action_joints),
            clip,
            np.array(scale),
            np.array(offset),
            limits,
            np.array(default)[order],
            np.array(stiffness)[order],
            np.array(damping)[order],
            decimation,
            np.concatenate(self.points) if self.points else None,
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
        """Return one number per joint; ``otherwise`` for joints missing from a mapping, and without values."""
        if values is None:
            return [otherwise] * len(joints)
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

    def _limits(self, limits: Sequence[float | Range] | None, count: int, key: str) -> Array:
        """Return minima and maxima (2, count) of one pair for all joints, or of one each."""
        unlimited = np.tile([[-np.inf], [np.inf]], count)
        if limits is None:
            return unlimited
        pairs = [pair for pair in limits if isinstance(pair, tuple)]
        if not pairs and len(limits) == 2:
            pairs = [(float(limits[0]), float(limits[1]))]  # type: ignore[arg-type]
        elif len(pairs) != len(limits) or len(pairs) not in (1, count):
            self._fault(key, f"{len(pairs)} pairs [minimum, maximum] for {count} joints; give one, or one each")
            return unlimited
        if any(low > high for low, high in pairs):
            self._fault(key, "a minimum is above its maximum")
        return np.array(pairs * (count // len(pairs))).T.reshape(2, count)

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

    def _input(
        self,
        config: PolicyConfig | EncoderConfig,
        key: str,
        joints: Sequence[str],
        default: Mapping[str, float],
        actions: int,
        outputs: int | None,
    ) -> ResolvedInput | None:
        """Resolve a network and its terms; None if one of them is wrong.

        Args:
            config: The policy or an encoder.
            key: Beginning of the keys in messages.
            joints: Driven joints.
            default: Their default pose [rad].
            actions: Number of joints that the policy moves.
            outputs: Number of outputs of the network; None for an encoder, whose number is stored in ``encoded``.
        """
        before = len(self.faults)
        terms = [
            self._term(f"{key}observations[{i}]", t, joints, default, actions)
            for i, t in enumerate(config.observations)
        ]
        try:
            network = open_network(Path(config.network), config.input, config.output, config.states)
        except BipedSimError as error:
            self.faults.append(error if isinstance(error, ConfigError) else ConfigError(str(error)))
            network = None
        resolved = [term for term in terms if term is not None]
        found = 0
        if network is not None and len(resolved) == len(terms):
            found = self._outputs(network, config, key, resolved)
            if found and outputs is not None and found != outputs:
                several = f"; the key `output` chooses one of {', '.join(network.outputs)}"
                way_out = several if len(network.outputs) > 1 else ""
                self._fault("action", f"the network gives {found} values, and moves {outputs} joints{way_out}")
        if outputs is None:
            self.encoded[key.split(".")[1]] = found
        if network is None or len(self.faults) > before:
            return None
        frame = sum(term.size * term.history for term in resolved)
        return ResolvedInput(network, tuple(resolved), frame, config.frames)

    def _term(
        self, key: str, config: TermConfig, joints: Sequence[str], default: Mapping[str, float], actions: int
    ) -> ResolvedTerm | None:
        """Resolve a term of the observation; None if it does not exist."""
        term = self._find_term(key, config.term)
        if term is None:
            return None
        if config.ground_truth:
            if term is not TERMS["base_lin_vel"]:
                self._fault(f"{key}.ground_truth", f"{config.term} has no true value; only base_lin_vel has one")
            term = TRUE_VELOCITY
        of_term = tuple(joints if config.joints is None else config.joints)
        self._check_part(of_term, joints, f"{key}.joints")
        constants = np.array(config.values or (), dtype=np.float64)
        takes_values = term.size in (CONSTANTS, CALLED)
        if (term.size == CONSTANTS and not len(constants)) or (len(constants) and not takes_values):
            kind = "needs its numbers as `values`" if term.size == CONSTANTS else "has no `values` of its own"
            self._fault(key, f"{config.term} {kind}")
        places = self._index(of_term)
        if term.size == POINTS:
            given, x_first = config.points, ALIASES.get(config.term, config.term) == "height_scan"
            points = scan_grid(config.size, config.resolution, x_first) if given is None else given
            begin = sum(map(len, self.points))
            places, constants = np.arange(begin, begin + len(points)), np.array([config.offset])
            self.points.append(np.reshape(points, (-1, 2)))
        of_joints = np.array([default.get(name, 0.0) for name in of_term])
        index = TermJoints(places, of_joints, constants, config.phase)
        own = len(places) if term.size == POINTS else len(constants)
        size = size_of(term, len(of_term), actions, len(self.robot.soles), own)
        if term.size == CALLED:
            try:
                size = call_term(term, TermInputs.at_rest(self.robot, actions), index)
            except ConfigError as error:
                self.faults.append(error.within(f"{self.where}: {key}"))
                return None
        scale = np.array(config.scale, dtype=np.float64)
        if scale.ndim and len(scale) != size:
            self._fault(key, f"{len(scale)} scales for the {size} values of {config.term}")
        return ResolvedTerm(term.values, index, size, config.history, scale, config.clip)

    def _find_term(self, key: str, name: str) -> Term | None:
        """Return the term of a name, or None after a report."""
        if name in self.encoded:
            return encoder_term(name, self.encoded[name]) if self.encoded[name] else None
        name = ALIASES.get(name, name)
        if name in TERMS:
            return TERMS[name]
        try:
            if ":" in name or name in OWN_TERMS:
                return own_term(name)
        except ConfigError as error:
            self.faults.append(error.within(f"{self.where}: {key}"))
            return None
        if name in UNMEASURED:
            self._fault(
                key,
                f"{name!r} is {UNMEASURED[name]}: this policy needs more than a robot measures; train one that "
                "does not see it",
            )
        else:
            names = [*TERMS, *ALIASES, *OWN_TERMS, *self.encoded]
            self.faults.append(
                UnknownNameError("term", name, names, f"{self.where}: {key}", otherwise="module:function of your own")
            )
        return None

    def _outputs(
        self, network: Network, config: PolicyConfig | EncoderConfig, key: str, terms: Sequence[ResolvedTerm]
    ) -> int:
        """Run the network once on an input of the expected size; return the number of its outputs, or 0 if it fails."""
        frames = config.frames.count
        pairs = zip(config.observations, terms, strict=True)
        parts = [f"{term.term} {f'{seen.history} x ' * (seen.history > 1)}{seen.size}" for term, seen in pairs]
        frame = sum(term.size * term.history for term in terms)
        description = f"{f'{frames} frames of ' * (frames > 1)}{frame} values ({', '.join(parts)})"
        size = frames * frame
        if network.input_size is not None and network.input_size != size:
            self._fault(f"{key}observations", f"{description}, and the network takes {network.input_size}")
            return 0
        try:
            return trial(network, size)
        except ConfigError as error:
            self._fault(f"{key}observations", f"{description}: {error}")
            return 0
