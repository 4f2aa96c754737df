"""The compiled footing allocates nothing and computes the same as the interpreter."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from footing_support import STAIRS, Foot, region
from numba import njit
from numba.core.runtime import _nrt_python, rtsys

from bipedsim.ground import support as footing
from bipedsim.ground.ground import Ground
from bipedsim.ground.patch import Patch
from bipedsim.ground.support import carry_vertices, choose_patch, same_polygon, support_polygon
from bipedsim.numerics import polygons


@njit
def _many_steps(steps, R, p, vertices, n, ground, work, out, origin):
    total = 0
    for k in range(steps):
        p[0] = 0.01 * k
        patch = choose_patch(R, p, vertices, n, 0.0, k % 5 - 1, ground, work)
        count = support_polygon(R, p, vertices, n, patch, ground, work, out)
        total += same_polygon(vertices, n, out, count)
        carry_vertices(vertices, n, out, count, origin)
    return total


def test_nothing_is_allocated_in_a_step() -> None:
    foot = Foot(STAIRS)
    pose = np.eye(3), np.array([0.0, 0.0, 0.5])
    args = (*pose, foot.vertices, foot.n, foot.ground, foot.work, foot.out, np.zeros(8, dtype=np.int64))
    if hasattr(_nrt_python, "memsys_enable_stats"):
        _nrt_python.memsys_enable_stats()
    assert _many_steps(1, *args) >= 0
    allocated = []
    for steps in (1, 200):
        before = rtsys.get_allocation_stats().alloc
        _many_steps(steps, *args)
        allocated.append(rtsys.get_allocation_stats().alloc - before)
    assert allocated[1] == allocated[0], "each array that Python hands over is wrapped, and that is all"


def test_interpreted_and_compiled_code_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = Foot(Ground((*STAIRS.patches, Patch(np.array([0.0, 0.0, 0.15]), region=region(0.7, 0.75, -0.3, 0.02)))))
    positions = [np.array([x, y, z]) for x in np.linspace(0.3, 1.6, 27) for y in (0.0, 0.03) for z in (0.15, 0.3)]
    R = pin.utils.rotate("y", 0.05)
    ours = [(patch, compiled.support(p, patch, R)) for p in positions for patch in [compiled.patch(p, -1, R)]]
    for module in (polygons, footing):
        for name, function in vars(module).copy().items():
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)
    for p, (patch, support) in zip(positions, ours, strict=True):
        assert compiled.patch(p, -1, R) == patch
        np.testing.assert_allclose(compiled.support(p, patch, R), support, atol=1e-15)
