"""Identify a hanging leg with bipedsim and with the sysid toolbox of MuJoCo: `python benchmarks/sysid.py --help`.

MuJoCo simulates the left leg of biped14 with its trunk fixed and its foot in the air. Rotor inertia, viscous and dry
friction of seven joints and three masses differ from the description. Both programs get the same noisy measurements.
The toolbox needs the packages of `mujoco[sysid]`.
"""

from __future__ import annotations

import argparse
import json
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
from mujoco import sysid
from scipy.signal import savgol_filter

from bipedsim.analysis import aligned
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.recording import Recording
from bipedsim_studies.identify import KINDS, estimate, parameters_of, signals_of
from bipedsim_studies.identify.lacking import undetermined
from bipedsim_studies.identify.parameters import Parameters
from bipedsim_studies.identify.selection import select, without_data

DT = 1e-3
"""Time step and period of the measurements [s]."""
SIDE, OTHER = "l_", "r_"
BODIES = ("l_thigh", "l_shank", "l_foot")
"""Bodies with hidden masses."""
OF_JOINTS = {"armature": "armature", "viscous_friction": "damping", "coulomb_friction": "frictionloss"}
"""Kind of bipedsim to the attribute of a joint of MuJoCo. Here its name precedes the joint's or body's in a label."""
POSITION_NOISE, VELOCITY_NOISE, FORCE_NOISE, TORQUE_NOISE = 1e-4, 0.01, 0.5, 0.02
"""Standard deviations of the measurements [rad], [rad/s], [N], [N.m]."""
STIFFNESS, DAMPING = 300.0, 15.0
"""Gains of the controller that moves the leg [N.m/rad], [N.m.s/rad]."""
SMOOTHED = 21
"""Samples of the filter for the initial velocities of the rollouts."""
LIMITS = {"armature": (1e-3, 1.0), "damping": (0.0, 10.0), "frictionloss": (0.0, 20.0), "mass": (0.1, 20.0)}
"""Bounds of the toolbox."""


@dataclass(frozen=True)
class Answer:
    """Result of a program.

    Attributes:
        values: Label of a number to value and half width of its 95 % interval.
        wall, cpu: Times [s].
        converged: Whether the program reports that its iteration has converged; True if it reports nothing.
    """

    values: Mapping[str, tuple[float, float]]
    wall: float
    cpu: float
    converged: bool = True


def leg(robot: Robot) -> Any:
    """Return MuJoCo's model of the robot with a fixed trunk and without joints of the other leg."""
    root = ET.fromstring(robot.urdf_xml)
    for link in root.iter("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(shape)
    ET.SubElement(ET.SubElement(root, "mujoco"), "compiler", fusestatic="false", inertiafromgeom="false")
    spec = mujoco.MjSpec.from_string(ET.tostring(root, encoding="unicode"))
    spec.option.timestep = DT
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for joint in list(spec.joints):
        if joint.name.startswith(OTHER):
            spec.delete(joint)
    for name, i in zip(robot.joint_names, robot.idx_v, strict=True):
        if name.startswith(SIDE):
            joint = spec.joint(name)
            joint.armature, joint.range = robot.model.armature[i], [0.0, 0.0]
            joint.limited = mujoco.mjtLimited.mjLIMITED_FALSE
            # The default of a motor in a new specification has the gain 1 and no limits.
            motor = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            motor.gainprm[0] = 1.0
            for kind, text in ((mujoco.mjtSensor.mjSENS_JOINTPOS, "pos"), (mujoco.mjtSensor.mjSENS_JOINTVEL, "vel")):
                spec.add_sensor(name=f"{name}_{text}", type=kind, objtype=mujoco.mjtObj.mjOBJ_JOINT, objname=name)
    return spec


def with_ankles(spec: Any, robot: Robot) -> Any:
    """Return the model with the ankle sensors of both feet, which bipedsim uses."""
    spec = spec.copy()
    for k, sole in enumerate(robot.soles):
        placement = robot.placement_joint_ankle[k]
        x, y, z, w = pin.Quaternion(placement.rotation).coeffs()
        body = spec.body(f"{SIDE if k == 0 else OTHER}foot")
        body.add_site(name=sole.name, pos=placement.translation, quat=[w, x, y, z])
        for kind in (mujoco.mjtSensor.mjSENS_FORCE, mujoco.mjtSensor.mjSENS_TORQUE):
            spec.add_sensor(
                name=f"{sole.name} {kind.name}", type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=sole.name
            )
    return spec


def numbers(joints: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (label, attribute of MuJoCo, name of the joint or body) of each hidden number."""
    of_joints = [(f"{kind} {joint}", attribute, joint) for kind, attribute in OF_JOINTS.items() for joint in joints]
    return of_joints + [(f"mass {body}", "mass", body) for body in BODIES]


def setter(attribute: str, name: str, described: Any) -> Callable[[Any, Any], None]:
    """Return the modifier that sets a number of MuJoCo's model; the inertia of a body follows its mass."""

    def of_joint(spec: Any, parameter: Any) -> None:
        value = spec.joint(name).damping.copy() if attribute == "damping" else None
        if value is None or np.ndim(value) == 0:
            setattr(spec.joint(name), attribute, float(parameter.value[0]))
        else:
            value[:] = 0.0
            value[0] = parameter.value[0]
            spec.joint(name).damping = value

    def of_body(spec: Any, parameter: Any) -> None:
        body, before = spec.body(name), described.body(name)
        ratio = float(parameter.value[0]) / before.mass
        body.mass, body.inertia = before.mass * ratio, before.inertia * ratio
        if np.isfinite(before.fullinertia).all():
            body.fullinertia = before.fullinertia * ratio

    return of_body if attribute == "mass" else of_joint


def hidden(robot: Robot, spec: Any, joints: Sequence[str], rng: np.random.Generator) -> dict[str, float]:
    """Return a true value for each number."""
    result = {}
    for label, attribute, name in numbers(joints):
        if attribute == "mass":
            result[label] = float(spec.body(name).mass * rng.uniform(0.9, 1.1))
        elif attribute == "armature":
            result[label] = float(spec.joint(name).armature * rng.uniform(0.7, 1.3))
        else:
            result[label] = float(rng.uniform(0.0, 1.0) if attribute == "damping" else rng.uniform(0.5, 1.5))
    return result


class _Value:
    """Number in the form in which the modifiers get the toolbox's."""

    def __init__(self, value: float) -> None:
        self.value = np.array([value])


def record(robot: Robot, spec: Any, joints: Sequence[str], seconds: float, rng: np.random.Generator) -> Recording:
    """Return the measurements of the leg while sums of sines move it."""
    model = spec.compile()
    data = mujoco.MjData(model)
    dofs = [int(model.joint(name).dofadr[0]) for name in joints]
    columns = [robot.joint_names.index(name) for name in joints]
    rest = robot.q_nominal[robot.idx_q[columns]]
    amplitudes = rng.uniform(0.05, 0.15, (3, len(joints)))
    frequencies = rng.uniform([[0.2], [0.6], [1.2]], [[0.5], [1.1], [2.2]], (3, len(joints)))
    phases = rng.uniform(0.0, 2.0 * np.pi, (3, len(joints)))
    feet = [sole.name for sole in robot.soles]
    n = round(seconds / DT)
    run = Recording.empty(n, robot.joint_names, feet, robot.name)
    run.joint_position[:] = run.joint_velocity[:] = 0.0
    run.imu_angular_velocity[:] = 0.0
    run.imu_linear_acceleration[:] = [0.0, 0.0, -model.opt.gravity[2]]
    data.qpos[dofs] = rest
    mujoco.mj_step1(model, data)
    for k in range(n):
        angles = 2.0 * np.pi * frequencies * (k * DT) + phases
        wanted = rest + np.sum(amplitudes * (np.sin(angles) - np.sin(phases)), axis=0)
        speed = np.sum(amplitudes * 2.0 * np.pi * frequencies * np.cos(angles), axis=0)
        torque = STIFFNESS * (wanted - data.qpos[dofs]) + DAMPING * (speed - data.qvel[dofs])
        data.ctrl[:] = torque
        mujoco.mj_step2(model, data)
        mujoco.mj_step1(model, data)
        run.t[k] = (k + 1) * DT
        run.joint_position[k, columns] = data.qpos[dofs] + POSITION_NOISE * rng.normal(size=len(joints))
        run.joint_velocity[k, columns] = data.qvel[dofs] + VELOCITY_NOISE * rng.normal(size=len(joints))
        run.joint_effort[k, columns] = torque
        for foot, name in enumerate(feet):
            # MuJoCo's sensors give the force of the leg on the foot.
            force, moment = (
                -data.sensor(f"{name} {kind.name}").data
                for kind in (mujoco.mjtSensor.mjSENS_FORCE, mujoco.mjtSensor.mjSENS_TORQUE)
            )
            run.ankle_wrench[k, foot, :3] = force + FORCE_NOISE * rng.normal(size=3)
            run.ankle_wrench[k, foot, 3:] = moment + TORQUE_NOISE * rng.normal(size=3)
    return run


def by_sysid(robot: Robot, spec: Any, run: Recording, joints: Sequence[str], window: float) -> Answer:
    """Identify with the toolbox: least squares over rollouts of ``window`` [s] from the measured states."""
    begin = time.perf_counter(), time.process_time()
    model = spec.compile()
    columns = [robot.joint_names.index(name) for name in joints]
    q, v = run.joint_position[:, columns], run.joint_velocity[:, columns]
    smooth = savgol_filter(v, SMOOTHED, 2, axis=0)
    order = [int(model.joint(name).dofadr[0]) for name in joints]
    assert order == list(range(len(joints)))
    length = round(window / DT)
    starts = range(SMOOTHED, len(run) - length, length)
    described = spec.copy()
    params = sysid.ParameterDict()
    for label, attribute, name in numbers(joints):
        element = spec.body(name) if attribute == "mass" else spec.joint(name)
        start = max(float(np.ravel(getattr(element, attribute))[0]), 0.05)
        low, high = LIMITS[attribute]
        params.add(
            sysid.Parameter(
                label, nominal=start, min_value=low, max_value=high, modifier=setter(attribute, name, described)
            )
        )
    sequences = sysid.ModelSequences(
        "leg",
        spec,
        [f"window {k}" for k in range(len(starts))],
        [sysid.create_initial_state(model, q[k], smooth[k], np.zeros(0)) for k in starts],
        [sysid.TimeSeries(np.arange(length) * DT, run.joint_effort[k + 1 : k + 1 + length, columns]) for k in starts],
        [
            sysid.TimeSeries.from_names(
                np.arange(length) * DT,
                np.stack([q[k : k + length], v[k : k + length]], axis=2).reshape(length, -1),
                model,
            )
            for k in starts
        ],
    )
    residual = sysid.build_residual_fn(models_sequences=[sequences])
    found, result = sysid.optimize(initial_params=params, residual_fn=residual, optimizer="mujoco", verbose=False)
    residuals, _, _ = residual(result.x, found.copy())
    _, half = sysid.calculate_intervals(residuals, result.jac)
    values = {
        label: (float(found[label].value[0]), float(width))
        for (label, _, _), width in zip(numbers(joints), np.ravel(half), strict=True)
    }
    return Answer(values, time.perf_counter() - begin[0], time.process_time() - begin[1])


def by_identify(robot: Robot, joints: Sequence[str], run: Recording, only: bool) -> Answer:
    """Identify with bipedsim: all numbers, or ``only`` those that are hidden."""
    begin = time.perf_counter(), time.process_time()
    signals = signals_of(run, robot)
    parameters = parameters_of(robot)
    without = [kind for kind in KINDS if kind not in (*OF_JOINTS, "mass")]
    without += [f"mass:(?!({'|'.join(BODIES)})$).*"]
    parameters = select(robot, parameters, without) if only else parameters
    parameters = without_data(parameters, undetermined(parameters, [signals.lacking]))
    found = estimate(robot, [signals], None, parameters)
    labels = {f"{kind} {name}": i for i, (kind, name) in enumerate(zip(*_owners(found.parameters), strict=True))}
    values, half = found.parameters.in_units(found.values), found.half_width
    result = {}
    for label, attribute, _ in numbers(joints):
        i = labels[label]
        width = half[i] * (values[i] if attribute == "mass" else 1.0)
        result[label] = (float(values[i]), float(width))
    return Answer(result, time.perf_counter() - begin[0], time.process_time() - begin[1], found.converged)


def _owners(parameters: Parameters) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return parameters.kinds, parameters.owners


def statistics(trials: Sequence[tuple[Mapping[str, float], Answer]]) -> dict[str, Any]:
    """Return relative errors and the share of intervals that contain the truth, by kind, and the mean times."""
    kinds: dict[str, list[tuple[float, float, bool]]] = {}
    for truth, answer in trials:
        for label, true in truth.items():
            value, half = answer.values[label]
            entry = (abs(value - true) / true, half / true, abs(value - true) <= half)
            kinds.setdefault(label.split()[0], []).append(entry)
    table = {}
    for kind, entries in kinds.items():
        errors, halves, inside = map(np.array, zip(*entries, strict=True))
        table[kind] = {
            "median_error": float(np.median(errors)),
            "largest_error": float(errors.max()),
            "median_half_width": float(np.median(halves)),
            "covered": float(inside.mean()),
        }
    times = {name: float(np.mean([getattr(answer, name) for _, answer in trials])) for name in ("wall", "cpu")}
    return {"kinds": table, "converged": float(np.mean([answer.converged for _, answer in trials])), **times}


def report(results: Mapping[str, Any], seconds: float, seeds: int) -> str:
    """Return the tables of the report."""
    lines = [
        "# A hanging leg: bipedsim identify and mujoco.sysid",
        "",
        f"`python benchmarks/sysid.py --seconds {seconds:g} --seeds {seeds}`, MuJoCo {mujoco.__version__}.",
        f"Means over {seeds} legs with 24 hidden numbers each, {seconds:g} s of measurements per leg.",
        "",
        "| program | kind | median error | largest error | median half width | intervals that contain the truth |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for program, result in results.items():
        lines += [
            f"| {program} | {kind} | {100 * x['median_error']:.2g} % | {100 * x['largest_error']:.2g} % | "
            f"{100 * x['median_half_width']:.2g} % | {100 * x['covered']:.0f} % |"
            for kind, x in result["kinds"].items()
        ]
    lines += ["", "| program | wall time [s] | CPU time [s] | converged |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {program} | {x['wall']:.1f} | {x['cpu']:.1f} | {100 * x['converged']:.0f} % |"
        for program, x in results.items()
    ]
    return "\n".join(lines)


def main() -> None:
    """Identify some legs with both programs and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="length of the measurements (default: %(default)g)")
    parser.add_argument("--seeds", type=int, default=3, help="number of legs (default: %(default)s)")
    parser.add_argument(
        "--windows",
        type=float,
        nargs="+",
        default=(1.0,),
        help="lengths of the rollouts of the toolbox, from measured states (default: 1 s)",
    )
    parser.add_argument("--output", type=Path, help="report (.md); a .json with all values is next to it")
    args = parser.parse_args()
    robot = load_robot("biped14")
    joints = [name for name in robot.joint_names if name.startswith(SIDE)]
    programs: dict[str, Callable[[Any, Recording], Answer]] = {
        **{
            f"mujoco.sysid, rollouts of {window:g} s": partial(by_sysid, robot, joints=joints, window=window)
            for window in args.windows
        },
        "identify, the hidden numbers": lambda spec, run: by_identify(robot, joints, run, True),
        "identify, all numbers": lambda spec, run: by_identify(robot, joints, run, False),
    }
    trials: dict[str, list[tuple[Mapping[str, float], Answer]]] = {program: [] for program in programs}
    rows: list[Array | list[Any]] = []
    for seed in range(args.seeds):
        rng = np.random.default_rng(seed)
        described = leg(robot)
        truth = hidden(robot, described, joints, rng)
        true = described.copy()
        for label, attribute, name in numbers(joints):
            setter(attribute, name, described)(true, _Value(truth[label]))
        run = record(robot, with_ankles(true, robot), joints, args.seconds, rng)
        for program, identify in programs.items():
            answer = identify(leg(robot), run)
            trials[program].append((truth, answer))
            print(f"seed {seed}, {program}: {answer.wall:.1f} s wall, {answer.cpu:.1f} s CPU", flush=True)
            for label, value in truth.items():
                rows.append([seed, program, label, value, *answer.values[label]])
    results = {program: statistics(each) for program, each in trials.items()}
    heads = ["leg", "program", "number", "true", "value", "half width"]
    texts = [[str(x) if isinstance(x, int | str) else f"{x:.4g}" for x in row] for row in rows]
    print("\n".join(aligned([heads, *texts])))
    text = report(results, args.seconds, args.seeds)
    print(text)
    if args.output:
        args.output.write_text(text + "\n", encoding="utf-8")
        content = {"statistics": results, "heads": heads, "rows": rows}
        args.output.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
