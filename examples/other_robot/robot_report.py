"""Report the fate of the robot from the plant's ground truth: fall, position, and a figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco_plant import Plant

TILT = np.deg2rad(60.0)
"""Tilt of the root link from its standing attitude above which the robot has fallen [rad]."""
HEIGHT = 0.5
"""One that is lower than this share of its height at the start, too."""


class Report:
    """Keeps a row of the plant's truth at 100 Hz."""

    def __init__(self, plant: Plant, rate: float) -> None:
        self._plant = plant
        self._every = max(1, round(rate / 100.0))
        self._tick = 0
        self._rows: list[list[float]] = []
        position, rotation = plant.base_pose()
        self._height = position[2]
        self._up = rotation[2].copy()
        self.fell_at: float | None = None
        self.tilt_max = 0.0

    def after(self) -> None:
        """Take note of the tick that has just ended."""
        position, rotation = self._plant.base_pose()
        # Direction that was vertical in the standing robot, in world axes.
        tilt = float(np.arccos(np.clip((rotation @ self._up)[2], -1.0, 1.0)))
        self.tilt_max = max(self.tilt_max, tilt)
        if self.fell_at is None and (tilt > TILT or position[2] < HEIGHT * self._height):
            self.fell_at = self._plant.t
        self._tick += 1
        if self._tick % self._every == 0:
            vertical, cop = self._plant.ground_forces()
            yaw = float(np.arctan2(rotation[1, 0], rotation[0, 0]))
            self._rows.append([self._plant.t, *position, yaw, *cop, *vertical])

    def summary(self) -> dict[str, Any]:
        """Return figures for JSON: base position [m] and heading [rad] at the end, extremes, forces over the weight."""
        rows, plant = np.array(self._rows), self._plant
        position, rotation = plant.base_pose()
        result: dict[str, Any] = {
            "robot": plant.robot.name,
            "engine": f"MuJoCo {mujoco.__version__}",
            "duration_s": plant.t,
            "fell_at_s": self.fell_at,
            "tilt_max_deg": float(np.rad2deg(self.tilt_max)),
            "base_position_m": position.tolist(),
            "heading_rad": float(np.arctan2(rotation[1, 0], rotation[0, 0])),
            "base_height_start_m": self._height,
        }
        if len(rows):
            vertical = rows[:, 7:].sum(axis=1)
            result |= {
                "base_height_min_m": float(rows[:, 3].min()),
                "base_height_max_m": float(rows[:, 3].max()),
                "vertical_force_mean_over_weight": float(vertical.mean() / plant.robot.weight),
                "vertical_force_max_over_weight": float(vertical.max() / plant.robot.weight),
            }
        return result

    def plot(self, path: Path) -> None:
        """Draw height, way, vertical forces and CoP over time."""
        from matplotlib.figure import Figure

        rows = np.array(self._rows)
        figure = Figure(figsize=(9, 8), layout="constrained")
        axes = figure.subplots(4, 1, sharex=True)
        t = rows[:, 0]
        axes[0].plot(t, rows[:, 3])
        axes[0].set_ylabel("base height [m]")
        for column, name in ((1, "x"), (2, "y")):
            axes[1].plot(t, rows[:, column], label=f"base {name}")
            axes[1].plot(t, rows[:, 4 + column], label=f"CoP {name}", linewidth=0.8)
        axes[1].set_ylabel("in the world [m]")
        axes[1].legend(ncols=4, fontsize="small")
        for k, sole in enumerate(self._plant.robot.soles):
            axes[2].plot(t, rows[:, 7 + k], label=sole.name)
        axes[2].axhline(self._plant.robot.weight, color="0.7", linewidth=0.8, label="weight")
        axes[2].set_ylabel("vertical force [N]")
        axes[2].legend(ncols=3, fontsize="small")
        axes[3].plot(t, np.rad2deg(rows[:, 4]))
        axes[3].set_ylabel("heading [deg]")
        axes[3].set_xlabel("time [s]")
        for ax in axes:
            ax.grid(alpha=0.3)
            if self.fell_at is not None:
                ax.axvline(self.fell_at, color="tab:red", linestyle="--")
        fell = "" if self.fell_at is None else f", fell at {self.fell_at:.2f} s"
        figure.suptitle(f"{self._plant.robot.name} on MuJoCo {mujoco.__version__}{fell}")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write the report."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
