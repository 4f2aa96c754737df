"""Choose the numbers of a robot that are estimated, and those that left and right have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin

from bipedsim.config import together
from bipedsim.descriptions import mirrors
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags, Indices
from bipedsim_studies.identify.parameters import KINDS, Parameters

OF_DRIVES = ("armature", "viscous_friction", "coulomb_friction")
"""Kinds per joint that belong to the design of a drive. Gains and offsets are those of a single sensor."""
SYMMETRIC = "symmetric"
"""Assumption that left and right are mirror images."""
_ROUNDING = 1e-9
"""Size of a factor that only rounding makes different from zero."""
_MIRROR = np.diag([1.0, -1.0, 1.0])
_STRAIN = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Indices of the components of a strain."""


def select(robot: Robot, parameters: Parameters, without: Sequence[str] = (), symmetric: bool = False) -> Parameters:
    """Return the parameters of which only some are estimated.

    Args:
        robot: The robot.
        parameters: Its parameters.
        without: Numbers that stay as described: a kind, or KIND:NAME with the name or a regular expression for the
            names of joints, bodies or feet.
        symmetric: Whether the drives and bodies of the right side differ from their description as the mirror image of
            the left side does. Gains and offsets remain separate.

    Raises:
        ConfigError: An entry of ``without`` matches nothing, or no number is left.
    """
    basis = np.eye(len(parameters))
    if symmetric:
        ties = list(_ties(robot, parameters))
        if not ties:
            raise ConfigError("finds no joint with a mirror image at zero angles", "--assume", SYMMETRIC)
        for rows, columns, factors in ties:
            basis[rows] = 0.0
            basis[np.ix_(rows, columns)] = factors
    kept = _kept(parameters, without)
    basis[kept] = 0.0
    basis[:, kept] = 0.0
    free = np.flatnonzero(np.diag(basis) == 1.0)
    if not len(free):
        raise ConfigError("leaves no number to estimate", "--assume", ", ".join(without))
    return replace(parameters, free=free, basis=basis[:, free])


def without_data(parameters: Parameters, undetermined: Flags) -> Parameters:
    """Return the parameters without the free numbers from which only undetermined numbers follow.

    Args:
        parameters: The parameters, tied or not.
        undetermined: (p,) numbers that no recording shows.

    Raises:
        ConfigError: No number is left.
    """
    follows = parameters.basis != 0.0
    shown = np.array([not undetermined[follows[:, k]].all() for k in range(follows.shape[1])], dtype=np.bool_)
    if not shown.any():
        raise ConfigError("leaves no number that the recordings can show", "--assume")
    left = replace(parameters, free=parameters.free[shown], basis=parameters.basis[:, shown])
    return replace(left, unseen=parameters.estimated & ~left.estimated)


def _kept(parameters: Parameters, without: Sequence[str]) -> Flags:
    """Return whether each number (p,) stays as described."""
    kept = np.zeros(len(parameters), dtype=np.bool_)
    faults: list[ConfigError] = []
    for entry in without:
        kind, _, name = entry.partition(":")
        if kind not in KINDS:
            faults.append(UnknownNameError("assumption", kind, (SYMMETRIC, *KINDS), "--assume"))
            continue
        indices = parameters.at[kind].ravel()
        try:
            matching = [i for i in indices if not name or re.fullmatch(name, parameters.owners[i])]
        except re.error as error:
            faults.append(ConfigError(f"is no regular expression: {error}", f"--assume {kind}", name))
            continue
        if not matching:
            owners = ", ".join(dict.fromkeys(parameters.owners[i] for i in indices))
            faults.append(ConfigError(f"matches none of {owners or 'the robot'}", f"--assume {kind}", name))
        kept[matching] = True
    together(faults)
    return kept


def _ties(robot: Robot, parameters: Parameters) -> Iterator[tuple[Indices, Indices, Array]]:
    """Yield the numbers of one side, those of the other side, and the factors of the latter in the former."""
    model, zero = robot.model, pin.neutral(robot.model)
    found = {name: other for name, (other, _) in mirrors(robot, zero).items()}
    order = {name: i for i, name in enumerate(model.names)}
    pairs = [(a, b) for a, b in found.items() if found.get(b) == a and order[a] < order[b]]
    for name, other in pairs:
        for kind in OF_DRIVES if {name, other} <= set(robot.joint_names) else ():
            at = parameters.at[kind][:, 0]
            rows, columns = (at[[robot.joint_names.index(joint)]] for joint in (other, name))
            yield rows, columns, np.eye(1)
    data = model.createData()
    pin.forwardKinematics(model, data, zero)
    bodies = {model.names[joint]: row for joint, row in zip(parameters.bodies, parameters.of_body, strict=True)}
    for name, other in pairs:
        if name in bodies and other in bodies:
            axes = [data.oMi[model.getJointId(joint)].rotation for joint in (name, other)]
            yield bodies[other], bodies[name], _of_bodies(axes[1].T @ _MIRROR @ axes[0])


def _of_bodies(reflection: Array) -> Array:
    """Return the factors (10, 10) of the numbers of a body in those of its mirror image.

    Args:
        reflection: (3, 3) vectors in the axes of the body to their mirror images in the axes of the mirrored body.
    """
    factors = np.zeros((10, 10))
    factors[0, 0] = 1.0
    factors[1:4, 1:4] = reflection
    for k, (i, j) in enumerate(_STRAIN):
        strain = np.zeros((3, 3))
        strain[i, j] = strain[j, i] = 1.0
        mirrored = reflection @ strain @ reflection.T
        factors[4:, 4 + k] = [mirrored[place] for place in _STRAIN]
    return np.where(np.abs(factors) > _ROUNDING, factors, 0.0)
