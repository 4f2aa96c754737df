"""What a recording shows of its controller: its readouts, its estimate of the base, and whether it was found fallen."""

from __future__ import annotations

from typing import Any

import numpy as np

from bipedsim.recording import Recording


def controller_figures(recording: Recording) -> dict[str, Any]:
    """Return the figures of a run that its controller is responsible for; what does not exist is None.

    * gave_up_at_s: when the joints went to damping because the robot was found fallen;
    * base_position_error_m: farthest that the estimated base was from the true one, both counted from where they were
      in the first row that has both: the estimate's origin is free, its drift is not;
    * base_orientation_error_rad: largest angle between the estimated and the true attitude;
    * readouts: name to its least and largest value.
    """
    position, orientation = odometry_errors(recording)
    return {
        "gave_up_at_s": recording.gave_up_at if np.isfinite(recording.gave_up_at) else None,
        "base_position_error_m": position,
        "base_orientation_error_rad": orientation,
        "readouts": {
            name: {"min": float(np.nanmin(values)), "max": float(np.nanmax(values))}
            for name, values in recording.readouts.items()
            if not np.isnan(values).all()
        },
    }


def odometry_errors(recording: Recording) -> tuple[float | None, float | None]:
    """Return the largest errors of the estimated base: position [m] and orientation [rad], see above."""
    rows = np.isfinite(recording.odometry).all(axis=1) & np.isfinite(recording.base_pose).all(axis=1)
    if not rows.any():
        return None, None
    from scipy.spatial.transform import Rotation

    estimated, true = recording.odometry[rows], recording.base_pose[rows]
    apart = (estimated[:, :3] - estimated[0, :3]) - (true[:, :3] - true[0, :3])
    turned = Rotation.from_quat(true[:, 3:]).inv() * Rotation.from_quat(estimated[:, 3:])
    return float(np.linalg.norm(apart, axis=1).max()), float(turned.magnitude().max())
