"""OpenSim's inverse dynamics on exported files, against the joint torques of the simulator.

    python benchmarks/opensim_inverse_dynamics.py RUN.npz --opensim /path/to/python

RUN is a run of a robot with a free base. Its .mot files are written as `bipedsim export --format mot` does, a model of
OpenSim with the robot's bodies and joints is built, and OpenSim's InverseDynamicsTool says which torques the motion and
the ground forces need. OpenSim (PyPI: `opensim`, Python 3.11) has its own environment, whose Python is named.

What is compared: torque of the drives, less what their reflected inertia takes, which is no body of the model; from
0.5 s after the begin to 0.5 s before the end, where OpenSim's splines end. Feet are rigid and land within a tick, and
splines have no jumps of velocity: what is within LANDING of an impact is counted by itself. So is what is within BESIDE
of a tick in which a torque jumps by JUMP of the largest, as a controller's does where a swing begins or ends: a
spline has no jumps of acceleration, either.
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
"""How far from an impact splines of OpenSim bend [s]."""
JUMP, BESIDE = 0.025, 0.0035
"""Change of a torque from one tick to the next that is a jump, as a share of the largest torque; and how far from one
splines bend [s].
"""
Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])


def describe(robot: Any) -> dict[str, Any]:
    """Return the tree of a robot: per joint parent, place, axis, and mass, centre and inertia of its body."""
    model, bodies = robot.model, []
    for j in range(1, model.njoints):
        place, inertia = model.jointPlacements[j], model.inertias[j]
        joint = model.joints[j].shortname()
        axis = {"X": [1, 0, 0], "Y": [0, 1, 0], "Z": [0, 0, 1]}.get(joint[-1])
        if j > 1 and axis is None:
            raise SystemExit(f"joint {model.names[j]} is a {joint}: only joints along an axis are built")
        # The base looks ahead in axes with y up, so that the free joint's angles are those of the coordinates.
        own = Y_UP if j == 1 else np.eye(3)
        outer = Y_UP if model.parents[j] == 1 else np.eye(3)
        bodies.append(
            {
                "name": model.names[j],
                "parent": int(model.parents[j]),
                "rotation": (outer @ place.rotation).tolist(),
                "translation": (outer @ place.translation).tolist(),
                "axis": axis,
                "mass": inertia.mass,
                "com": (own @ inertia.lever).tolist(),
                "inertia": (own @ inertia.inertia @ own.T).tolist(),
            }
        )
    return {"bodies": bodies}


def build(osim: Any, tree: dict[str, Any]) -> Any:
    """Return OpenSim's model of a tree."""
    from math import asin, atan2

    def euler(R: Any) -> Any:
        R = np.asarray(R)
        return osim.Vec3(atan2(-R[1, 2], R[2, 2]), asin(np.clip(R[0, 2], -1.0, 1.0)), atan2(-R[0, 1], R[0, 0]))

    model = osim.Model()
    model.setName("robot")
    model.setGravity(osim.Vec3(0.0, -9.81, 0.0))
    made: list[Any] = []
    for one in tree["bodies"]:
        xx, xy, xz, yy, yz, zz = np.array(one["inertia"])[np.triu_indices(3)]
        inertia = osim.Inertia(xx, yy, zz, xy, xz, yz)
        body = osim.Body(one["name"], one["mass"], osim.Vec3(*one["com"]), inertia)
        model.addBody(body)
        zero = osim.Vec3(0.0)
        if not made:
            joint = osim.FreeJoint("base", model.getGround(), zero, zero, body, zero, zero)
            for k, name in enumerate(f"base_{kind}{axis}" for kind in "rt" for axis in "xyz"):
                joint.upd_coordinates(k).setName(name)
        else:
            axis = np.array(one["axis"], dtype=float)
            other = np.roll(axis, 1)
            turn = np.column_stack([other, np.cross(axis, other), axis])  # z along the axis of the joint
            outer = euler(np.array(one["rotation"]) @ turn)
            place = osim.Vec3(*one["translation"])
            parent, name = made[one["parent"] - 1], f"joint_{one['name']}"
            joint = osim.PinJoint(name, parent, place, outer, body, zero, euler(turn))
            joint.upd_coordinates(0).setName(one["name"])
        model.addJoint(joint)
        made.append(body)
    model.finalizeConnections()
    return model


def inverse_dynamics(folder: Path) -> None:
    """Run OpenSim's tool on the files in ``folder``; in OpenSim's own Python."""
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
    """Return which of the times ``t`` (n,) are within ``span`` of one of ``events`` (k,) [s]."""
    return np.abs(t[:, None] - events).min(axis=1, initial=np.inf) < span


def main() -> None:
    """Export, run OpenSim, compare."""
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
    inside = (table.t > run.t[0] + 0.5) & (table.t < run.t[-1] - 0.5)
    t = table.t[inside]
    hit = run.t[np.nan_to_num(run.impact).any(axis=(1, 2))]
    largest = float(np.abs(run.joint_effort).max())
    jumped = run.t[1:][np.abs(np.diff(run.joint_effort, axis=0)).max(axis=1) > JUMP * largest]
    jumping = _within(t, hit, LANDING)
    jumped = jumped[~_within(jumped, hit, LANDING)]
    jumping |= _within(t, jumped, BESIDE)
    print(f"{'joint':<16} {'largest':>10} {'rms error':>10} {'worst':>10} {'at jumps':>10}   [N.m]")
    worst, worst_jumping = [], [0.0]
    for k, joint in enumerate(run.joint_names):
        acceleration = np.gradient(run.joint_velocity[:, k], run.t)
        torque = run.joint_effort[:, k] - robot.model.armature[robot.idx_v[k]] * acceleration
        error = table.column(f"{joint}_moment")[inside] - np.interp(t, run.t, torque)
        worst.append(float(np.abs(error[~jumping]).max()))
        worst_jumping.append(float(np.abs(error[jumping]).max(initial=0.0)))
        size, rms = float(np.abs(torque).max()), np.sqrt((error[~jumping] ** 2).mean())
        print(f"{joint:<16} {size:>10.4f} {rms:>10.5f} {worst[-1]:>10.5f} {worst_jumping[-1]:>10.5f}")
    kinds = {"r": "moment", "t": "force"}
    base = [table.column(f"base_{k}{axis}_{kind}")[inside][~jumping] for k, kind in kinds.items() for axis in "xyz"]
    print(f"worst over all joints: {100.0 * max(worst) / largest:.3f} % of the largest torque, {largest:.2f} N.m")
    beside = f"beside {len(hit)} impacts and {len(jumped)} jumps of a torque"
    print(f"in {100.0 * jumping.mean():.1f} % of the ticks, {beside}: up to {max(worst_jumping):.2f} N.m")
    print(f"residual at the base: {np.abs(base[:3]).max():.4f} N.m, {np.abs(base[3:]).max():.4f} N")


if __name__ == "__main__":
    main()
