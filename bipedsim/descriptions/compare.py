"""In what two descriptions of one robot disagree, such as its URDF and its MJCF."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pinocchio as pin

from bipedsim.descriptions.description import Description
from bipedsim.errors import some
from bipedsim.model import read_urdf

SAME = 0.01
"""Relative difference of masses, limits and inertias that counts as rounding."""
SAME_AXIS = 0.01
"""Difference of axes, and of places [m]."""


def compare(one: Description, other: Description) -> Iterator[str]:
    """Yield in what two descriptions differ: joints, limits, axes and places of joints, masses and inertias.

    Their URDFs are files.
    """
    names = one.source.name, other.source.name
    joints = [{e.get("name", ""): e for e in d.urdf.findall("joint") if e.get("type") != "fixed"} for d in (one, other)]
    for k in (0, 1):
        missing = [name for name in joints[k] if name not in joints[1 - k]]
        if missing:
            yield f"joints of {names[k]} alone: {some(missing)}"
    both = [name for name in joints[0] if name in joints[1]]
    for key in ("lower", "upper", "effort", "velocity"):
        said = []
        for name in both:
            limits = [e[name].find("limit") for e in joints]
            texts = [None if limit is None else limit.get(key) for limit in limits]
            if None in texts:
                continue
            values = [float(text or 0.0) for text in texts]
            # No limit is not another one.
            if 0.0 in values and key in ("effort", "velocity"):
                continue
            if abs(values[0] - values[1]) > SAME * max(map(abs, values)) + 1e-6:
                said.append(f"{name} {values[0]:.4g} and {values[1]:.4g}")
        if said:
            yield f"limit {key}: {some(said)}"
    models = [_model(d) for d in (one, other)]
    masses = [float(sum(body.mass for body in model.inertias)) for model in models]
    if abs(masses[0] - masses[1]) > SAME * max(masses):
        yield f"mass: {masses[0]:.3f} and {masses[1]:.3f} kg"
    datas = [model.createData() for model in models]
    for model, data in zip(models, datas, strict=True):
        pin.computeJointJacobians(model, data, pin.neutral(model))
    turned, moved, heavier, other_inertia = [], [], [], []
    for name in both:
        if not all(model.existJointName(name) for model in models):
            continue
        ids = [model.getJointId(name) for model in models]
        axes = [
            pin.getJointJacobian(model, data, i, pin.WORLD)[3:, model.joints[i].idx_v]
            for model, data, i in zip(models, datas, ids, strict=True)
        ]
        places = [data.oMi[i].translation for data, i in zip(datas, ids, strict=True)]
        if np.abs(axes[0] - axes[1]).max() > SAME_AXIS:
            turned.append(name)
        if np.abs(places[0] - places[1]).max() > SAME_AXIS:
            moved.append(f"{name} by {np.abs(places[0] - places[1]).max():.3g} m")
        bodies = [model.inertias[i] for model, i in zip(models, ids, strict=True)]
        if abs(bodies[0].mass - bodies[1].mass) > SAME * max(b.mass for b in bodies):
            heavier.append(f"{name} {bodies[0].mass:.4g} and {bodies[1].mass:.4g} kg")
            continue
        moments = [np.linalg.eigvalsh(body.inertia) for body in bodies]
        if np.abs(moments[0] - moments[1]).max() > 5 * SAME * max(m.max() for m in moments):
            other_inertia.append(name)
    for said, what in (
        (turned, "axes with all joints at 0"),
        (moved, "places with all joints at 0"),
        (heavier, "masses of bodies"),
        (other_inertia, "inertias of bodies"),
    ):
        if said:
            yield f"{what}: {some(said)}"


def _model(description: Description) -> pin.Model:
    covers = dict.fromkeys(("effort_limit", "velocity_limit", "position_limit"), lambda joint: True)
    return read_urdf(description.path, True, covers, mend=True)[0]
