"""Compare two descriptions of one robot, such as its URDF and its MJCF file."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence

import numpy as np
import pinocchio as pin

from bipedsim.descriptions.description import Description
from bipedsim.errors import some
from bipedsim.model import read_urdf

SAME = 0.01
"""Relative difference of masses, limits and inertias that counts as rounding."""
SAME_AXIS = 0.01
"""Difference of axes, and of positions [m], that counts as rounding."""


def compare(first: Description, second: Description) -> Iterator[str]:
    """Yield differences between two descriptions: joints, limits, axes and positions of joints, masses and inertias.

    The URDFs of both must exist as files.
    """
    pair = (first, second)
    joints = [{e.get("name", ""): e for e in d.urdf.findall("joint") if e.get("type") != "fixed"} for d in pair]
    for k in (0, 1):
        missing = [name for name in joints[k] if name not in joints[1 - k]]
        if missing:
            yield f"only {pair[k].source.name} has the joints {some(missing)}"
    common = [name for name in joints[0] if name in joints[1]]
    for key in ("lower", "upper", "effort", "velocity"):
        different = list(_different_limits(key, [[e[name].find("limit") for e in joints] for name in common], common))
        if different:
            yield f"limit {key}: {some(different)}"
    models = [_model(d) for d in pair]
    masses = [float(sum(body.mass for body in model.inertias)) for model in models]
    if abs(masses[0] - masses[1]) > SAME * max(masses):
        yield f"mass: {masses[0]:.3f} and {masses[1]:.3f} kg"
    yield from _different_bodies(models, [name for name in common if all(m.existJointName(name) for m in models)])


def _different_limits(
    key: str, limits: Sequence[Sequence[ElementTree.Element | None]], joints: Sequence[str]
) -> Iterator[str]:
    """Yield joints for which two limits differ; ``limits`` has the pair of <limit> elements of each joint."""
    for name, pair in zip(joints, limits, strict=True):
        texts = [None if limit is None else limit.get(key) for limit in pair]
        if None in texts:
            continue
        values = [float(text or 0.0) for text in texts]
        # Effort or velocity 0 means that the limit is unknown.
        if 0.0 in values and key in ("effort", "velocity"):
            continue
        if abs(values[0] - values[1]) > SAME * max(map(abs, values)) + 1e-6:
            yield f"{name} {values[0]:.4g} and {values[1]:.4g}"


def _different_bodies(models: Sequence[pin.Model], joints: Sequence[str]) -> Iterator[str]:
    """Yield differences between two models in axes and positions of joints and in their bodies."""
    datas = [model.createData() for model in models]
    for model, data in zip(models, datas, strict=True):
        pin.computeJointJacobians(model, data, pin.neutral(model))
    different: dict[str, list[str]] = {
        "axes with all joints at 0": [],
        "places with all joints at 0": [],
        "masses of bodies": [],
        "inertias of bodies": [],
    }
    axes_differ, positions_differ, masses_differ, inertias_differ = different.values()
    for name in joints:
        ids = [model.getJointId(name) for model in models]
        axes = [
            pin.getJointJacobian(model, data, i, pin.WORLD)[3:, model.joints[i].idx_v]
            for model, data, i in zip(models, datas, ids, strict=True)
        ]
        positions = [data.oMi[i].translation for data, i in zip(datas, ids, strict=True)]
        if np.abs(axes[0] - axes[1]).max() > SAME_AXIS:
            axes_differ.append(name)
        if np.abs(positions[0] - positions[1]).max() > SAME_AXIS:
            positions_differ.append(f"{name} by {np.abs(positions[0] - positions[1]).max():.3g} m")
        bodies = [model.inertias[i] for model, i in zip(models, ids, strict=True)]
        if abs(bodies[0].mass - bodies[1].mass) > SAME * max(b.mass for b in bodies):
            masses_differ.append(f"{name} {bodies[0].mass:.4g} and {bodies[1].mass:.4g} kg")
            continue
        moments = [np.linalg.eigvalsh(body.inertia) for body in bodies]
        if np.abs(moments[0] - moments[1]).max() > 5 * SAME * max(m.max() for m in moments):
            inertias_differ.append(name)
    for property_name, names in different.items():
        if names:
            yield f"{property_name}: {some(names)}"


def _model(description: Description) -> pin.Model:
    covers = dict.fromkeys(("effort_limit", "velocity_limit", "position_limit"), lambda joint: True)
    return read_urdf(description.path, True, covers, mend=True)[0]
