"""Compare OpenSim's inverse dynamics on exported files with the joint torques of the simulator.

    python benchmarks/opensim_inverse_dynamics.py RUN.npz --opensim /path/to/python

RUN is a run of a robot with a floating base. The program writes its .mot files like `bipedsim export --format mot`, and
builds an OpenSim model with the robot's bodies and joints. OpenSim's InverseDynamicsTool then computes the torques for
the motion and the ground forces. OpenSim (PyPI: `opensim`, Python 3.11) needs its own environment, whose Python is
given by the option.

The comparison uses the torque of the drives without the torque for their reflected inertia, which is not in the model.
It omits the first and last 0.5 s, where OpenSim's splines end. Feet are rigid and impacts take one tick, but splines
have no velocity jumps. Ticks within LANDING of an impact are therefore evaluated separately. The same applies to
ticks within BESIDE of a torque jump of more than JUMP of the largest torque, because splines have no jumps of
acceleration either. Controllers cause such jumps at the start or end of a swing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

LANDING = 0.015
"""Time around an impact in which OpenSim's splines deviate [s]."""
JUMP, BESIDE = 0.025, 0.0035
"""Minimum torque jump from one tick to the next, relative to the largest torque, and time around it in which splines
deviate [s].
"""
Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])


def describe(robot: Any) -> dict[str, Any]:
    """Return the kinematic tree of a robot: for each joint its parent, placement and axis, and its body's inertia."""
    model, bodies = robot.model, []
    for j in range(1, model.njoints):
        placement, inertia = model.jointPlacements[j], model.inertias[j]
        joint = model.joints[j].shortname()
        axis = {"X": [1, 0, 0], "Y": [0, 1, 0], "Z": [0, 0, 1]}.get(joint[-1])
        if j > 1 and axis is None:
            raise SystemExit(f"joint {model.names[j]} is a {joint}: only joints along an axis are built")
        # The base uses axes with y up, so that the angles of the free joint equal OpenSim's coordinates.
        to_y_up = Y_UP if j == 1 else np.eye(3)
        outer = Y_UP if model.parents[j] == 1 else np.eye(3)
        bodies.append(
            {
                "name": model.names[j],
                "parent": int(model.parents[j]),
                "rotation": (outer @ placement.rotation).tolist(),
                "translation": (outer @ placement.translation).tolist(),
                "axis": axis,
                "mass": inertia.mass,
                "com": (to_y_up @ inertia.lever).tolist(),
                "inertia": (to_y_up @ inertia.inertia @ to_y_up.T).tolist(),
            }
        )
    return {"bodies": bodies}


def build(osim: Any, tree: dict[str, Any]) -> Any:
    """Return OpenSim's model of a kinematic tree."""
    from math import asin, atan2

    def euler(R: Any) -> Any:
        R = np.asarray(R)
        return osim.Vec3(atan2(-R[1, 2], R[2, 2]), asin(np.clip(R[0, 2], -1.0, 1.0)), atan2(-R[0, 1], R[0, 0]))

    model = osim.Model()
    model.setName("robot")
    model.setGravity(osim.Vec3(0.0, -9.81, 0.0))
    bodies: list[Any] = []
    for link in tree["bodies"]:
        xx, xy, xz, yy, yz, zz = np.array(link["inertia"])[np.triu_indices(3)]
        inertia = osim.Inertia(xx, yy, zz, xy, xz, yz)
        body = osim.Body(link["name"], link["mass"], osim.Vec3(*link["com"]), inertia)
        model.addBody(body)
        zero = osim.Vec3(0.0)
        if not bodies:
            joint = osim.FreeJoint("base", model.getGround(), zero, zero, body, zero, zero)
            for k, name in enumerate(f"base_{kind}{axis}" for kind in "rt" for axis in "xyz"):
                joint.upd_coordinates(k).setName(name)
        else:
            axis = np.array(link["axis"], dtype=float)
            normal = np.roll(axis, 1)
            rotation_to_axis = np.column_stack([normal, np.cross(axis, normal), axis])  # z along the axis of the joint
            outer = euler(np.array(link["rotation"]) @ rotation_to_axis)
            position = osim.Vec3(*link["translation"])
            parent, name = bodies[link["parent"] - 1], f"joint_{link['name']}"
            joint = osim.PinJoint(name, parent, position, outer, body, zero, euler(rotation_to_axis))
            joint.upd_coordinates(0).setName(link["name"])
        model.addJoint(joint)
        bodies.append(body)
    model.finalizeConnections()
    return model


def inverse_dynamics(folder: Path) -> None:
    """Run OpenSim's tool on the files in ``folder``. This function runs in OpenSim's own Python."""
    import opensim as osim

    model = build(osim, json.loads((folder / "tree.json").read_text()))
    model.initSystem()
    tool = osim.InverseDynamicsTool()
    tool.setModel(model)
    tool.setCoordinatesFileName(str(folder / "run_coordinates.mot"))
    tool.setExternalLoadsFileName(str(folder / "run_loads.xml"))
    tool.setLowpassCutoffFrequency(-1.0)
    times = osim.TimeSeriesTable(str(folder / "run_coordinates.mot")).getIndependentColumn()
    tool.setStartTime(times[0])
    tool.setEndTime(times[-1])
    tool.setResultsDir(str(folder))
    tool.setOutputGenForceFileName("torques.sto")
    tool.run()


def _within(t: Any, events: Any, span: float) -> Any:
    """Return a mask (n,) of the times ``t`` that are within ``span`` of one of ``events`` (k,) [s]."""
    return np.abs(t[:, None] - events).min(axis=1, initial=np.inf) < span


def main() -> None:
    """Export the run, run OpenSim, and compare the torques."""
    if sys.argv[1:2] == ["--inside"]:
        inverse_dynamics(Path(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--opensim", required=True, help="a Python that has OpenSim")
    parser.add_argument("--folder", type=Path, help="keep the files here")
    args = parser.parse_args()

    from bipedsim import load_run
    from bipedsim.cli.main import main as command
    from bipedsim.model import load_robot
    from bipedsim.recording.lab import read_storage

    folder = args.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    command(["export", str(args.run), "--format", "mot", "-o", str(folder / "run.mot")])
    run = load_run(args.run)
    robot = load_robot(run.robot)
    (folder / "tree.json").write_text(json.dumps(describe(robot)))
    subprocess.run([args.opensim, __file__, "--inside", str(folder)], check=True, stdout=subprocess.DEVNULL)
    table = read_storage(folder / "torques.sto")
    evaluated = (table.t > run.t[0] + 0.5) & (table.t < run.t[-1] - 0.5)
    t = table.t[evaluated]
    impact_times = run.t[np.nan_to_num(run.impact).any(axis=(1, 2))]
    largest = float(np.abs(run.joint_effort).max())
    jump_times = run.t[1:][np.abs(np.diff(run.joint_effort, axis=0)).max(axis=1) > JUMP * largest]
    near_jumps = _within(t, impact_times, LANDING)
    jump_times = jump_times[~_within(jump_times, impact_times, LANDING)]
    near_jumps |= _within(t, jump_times, BESIDE)
    print(f"{'joint':<16} {'largest':>10} {'rms error':>10} {'worst':>10} {'at jumps':>10}   [N.m]")
    worst, worst_jumping = [], [0.0]
    for k, joint in enumerate(run.joint_names):
        acceleration = np.gradient(run.joint_velocity[:, k], run.t)
        torque = run.joint_effort[:, k] - robot.model.armature[robot.idx_v[k]] * acceleration
        error = table.column(f"{joint}_moment")[evaluated] - np.interp(t, run.t, torque)
        worst.append(float(np.abs(error[~near_jumps]).max()))
        worst_jumping.append(float(np.abs(error[near_jumps]).max(initial=0.0)))
        largest_of_joint, rms = float(np.abs(torque).max()), np.sqrt((error[~near_jumps] ** 2).mean())
        print(f"{joint:<16} {largest_of_joint:>10.4f} {rms:>10.5f} {worst[-1]:>10.5f} {worst_jumping[-1]:>10.5f}")
    kinds = {"r": "moment", "t": "force"}
    base = [
        table.column(f"base_{k}{axis}_{kind}")[evaluated][~near_jumps] for k, kind in kinds.items() for axis in "xyz"
    ]
    print(f"worst over all joints: {100.0 * max(worst) / largest:.3f} % of the largest torque, {largest:.2f} N.m")
    counts = f"beside {len(impact_times)} impacts and {len(jump_times)} jumps of a torque"
    print(f"in {100.0 * near_jumps.mean():.1f} % of the ticks, {counts}: up to {max(worst_jumping):.2f} N.m")
    print(f"residual at the base: {np.abs(base[:3]).max():.4f} N.m, {np.abs(base[3:]).max():.4f} N")


if __name__ == "__main__":
    main()
