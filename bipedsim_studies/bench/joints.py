"""Convert the joints of a pinocchio model to the joint types of other engines."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from bipedsim.numerics import Array
from bipedsim_studies.bench.engines import not_supported


def single_axis(model: pin.Model, joint_id: int) -> tuple[str, Array]:
    """Return ``"revolute"`` or ``"prismatic"``, and the axis (3,) in the joint frame.

    Raises:
        EngineUnavailableError: The joint has another type.
    """
    joint = model.joints[joint_id]
    if joint.nq != 1 or joint.nv != 1:
        raise not_supported(f"{joint.shortname()} has not one angle", f"joint {model.names[joint_id]!r}")
    data = joint.createData()
    joint.calc(data, np.zeros(model.nq), np.zeros(model.nv))
    twist = np.asarray(data.S).reshape(6) if not hasattr(data.S, "matrix") else np.asarray(data.S.matrix()).reshape(6)
    linear, angular = twist[:3], twist[3:]
    if np.linalg.norm(angular) > 0.5:
        return "revolute", angular.copy()
    return "prismatic", linear.copy()
