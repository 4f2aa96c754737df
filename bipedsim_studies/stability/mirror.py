"""Mirror robot states: a step with the left foot is the mirror image of a step with the right foot."""

from __future__ import annotations

import re

import numpy as np
import pinocchio as pin

from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array

TOLERANCE = 1e-8
"""Maximum distance of a body from the mirror image of its partner [m, rad, m/s, rad/s]."""
ITERATIONS = 30
_SIDE = re.compile(r"(?:^|(?<=_))(left|right|l|r)(?=_|$)")
_PARTNER = {"left": "right", "right": "left", "l": "r", "r": "l"}
_LOCAL = pin.ReferenceFrame.LOCAL
# Reflection in the world's xz plane: of vectors, and of twists (linear, angular).
_E = np.diag([1.0, -1.0, 1.0])
_TWIST = np.diag([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])


def partner(name: str) -> str:
    """Return the name with left and right (or l and r) exchanged."""
    return _SIDE.sub(lambda side: _PARTNER[side[1]], name)


class Mirror:
    """Compute the mirror image of a state in the world's xz plane.

    Bodies are partners by name, such as ``left_leg`` and ``right_leg``. Every other body is its own partner. For a
    planar robot, the reflection only exchanges the legs.

    Args:
        robot: The robot.

    Raises:
        ConfigError: A body has no partner.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._data = robot.model.createData()
        frames = [f for f in robot.model.frames if f.type == pin.FrameType.BODY and f.parentJoint > 0]
        ids = {frame.name: robot.model.getFrameId(frame.name) for frame in frames}
        missing = [partner(name) for name in ids if partner(name) not in ids]
        if missing:
            raise ConfigError(f"no mirror image: {robot.name} lacks the body", f"{', '.join(missing)}")
        self._pairs = [(ids[name], ids[partner(name)]) for name in ids]

    def __call__(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Return the mirror image of the state (nq,), (nv,).

        Raises:
            ConfigError: The robot cannot reach the mirror image.
        """
        model, data = self._robot.model, self._data
        pin.forwardKinematics(model, data, q, v)
        pin.updateFramePlacements(model, data)
        poses, twists = [], []
        for _, partner_frame in self._pairs:
            pose = data.oMf[partner_frame]
            poses.append(pin.SE3(_E @ pose.rotation @ _E, _E @ pose.translation))
            twists.append(_TWIST @ pin.getFrameVelocity(model, data, partner_frame, _LOCAL).vector)
        image = q.copy()
        for _ in range(ITERATIONS):
            error, jacobian = self._errors(image, poses)
            image = pin.integrate(model, image, np.linalg.lstsq(jacobian, error, rcond=None)[0])
            if np.abs(error).max() < 1e-13:
                break
        error, jacobian = self._errors(image, poses)
        rate = np.linalg.lstsq(jacobian, np.concatenate(twists), rcond=None)[0]
        worst = max(np.abs(error).max(), np.abs(jacobian @ rate - np.concatenate(twists)).max())
        if worst > TOLERANCE:
            raise ConfigError(
                f"no mirror image: left and right differ by {worst:.2g} (m, rad, or per s); take whole strides, from "
                "one touch-down of a named foot to its next",
                self._robot.name,
            )
        return image, rate

    def _errors(self, q: Array, poses: list[pin.SE3]) -> tuple[Array, Array]:
        model, data = self._robot.model, self._data
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        errors, rows = [], []
        for (frame, _), pose in zip(self._pairs, poses, strict=True):
            errors.append(pin.log6(data.oMf[frame].inverse() * pose).vector)
            rows.append(pin.getFrameJacobian(model, data, frame, _LOCAL))
        return np.concatenate(errors), np.vstack(rows)
