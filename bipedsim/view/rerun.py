"""Plot a recorded run together with its repetition."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bipedsim.runs import Rerun
from bipedsim.view.sheet import PAGE, picture
from bipedsim.view.time_axes import time_axis

JOINTS = 4
"""Number of plotted joints: those with the largest position differences."""


def plot_rerun(done: Rerun, path: Path | str) -> None:
    """Plot total normal force, base height and the joints that differ most, as recorded and as simulated.

    Raises:
        RecordingError: The plot cannot be written.
    """
    recorded, simulated = done.recorded, done.simulated
    rms = {name: done.errors.get(f"joint_position {name}", {"rms": 0.0})["rms"] for name in recorded.joint_names}
    worst = sorted(recorded.joint_names, key=lambda name: -rms[name])[:JOINTS]
    rows = [("f_z [N]", *(run.wrench[:, :, 2].sum(axis=1) for run in (recorded, simulated)))]
    if not np.isnan(recorded.base_pose).all():
        rows.append(("base z [m]", recorded.base_pose[:, 2], simulated.base_pose[:, 2]))
    for name in worst:
        pair = (run.joint_position[:, run.joint_names.index(name)] for run in (recorded, simulated))
        rows.append((f"{name} [rad]", *pair))
    result = "the same to the bit" if done.first is None else f"first difference at t = {done.first.t:.3f} s"
    with picture(Path(path), (PAGE, 1.4 * len(rows) + 0.7), f"{recorded.robot}, simulated again: {result}") as figure:
        axes = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
        for axis, (label, old, new) in zip(axes, rows, strict=True):
            axis.plot(recorded.t, old, color="0.6", linewidth=2.0, label="recorded")
            axis.plot(recorded.t, new, color="C3", linewidth=0.8, label="simulated")
            axis.set_ylabel(label)
        axes[0].legend(loc="upper right", ncol=2)
        time_axis(*axes, text="t [s]")
