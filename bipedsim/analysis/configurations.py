"""The configurations of a recorded run: base pose and driven joints are recorded, passive joints are computed."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from bipedsim.config import ProgressBar
from bipedsim.errors import RecordingError
from bipedsim.model import Chains, LoopEquations, Robot
from bipedsim.numerics import Array, Flags
from bipedsim.recording import Recording

PLACED = 1e-7
"""Change of passive joints [rad, m] below which Newton's method ends; the error is then of the order of its square."""
STEPS = 20
"""Maximum number of Newton iterations; two are enough from one row to the next."""


def complete_rows(recording: Recording, robot: Robot) -> Flags:
    """Return which rows (n,) have all values that a configuration of ``robot`` needs."""
    complete = np.isfinite(recording.joint_position).all(axis=1)
    if robot.free_flyer:
        complete &= np.isfinite(recording.base_pose).all(axis=1)
    if _determined_by_soles(recording, robot):
        complete &= np.isfinite(recording.sole_poses).all(axis=(1, 2))
    return np.asarray(complete)


def recorded_configurations(recording: Recording, robot: Robot, progress: bool = False) -> Array:
    """Return the configurations (n, nq) of a run, NaN where a row is incomplete.

    Passive joints come from the recording if it has them, else from closed kinematic chains. Other passive joints, such
    as the coordinates of a planar base, come from the recorded poses of the soles.

    Args:
        recording: The run.
        robot: The robot of the run.
        progress: Show a progress bar on stderr.

    Raises:
        RecordingError: The recording is of another robot, or no row has a configuration; the message says what is
            missing.
    """
    model = robot.model
    run_name = name_of(recording)
    named, recorded = recording.joint_names, recording.joint_position
    passive = _determined_by_soles(recording, robot)
    recording = recording.in_order(robot.joint_names)
    if [sole.name for sole in robot.soles] != list(recording.feet):
        raise RecordingError(f"{', '.join(recording.feet)} are not those of {robot.name}", f"{run_name}: feet")
    q = np.full((len(recording), model.nq), np.nan)
    if robot.free_flyer:
        q[:, :7] = recording.base_pose
    q[:, robot.idx_q] = recording.joint_position
    for joint in _without_drives(robot):
        if model.names[joint] in named:
            q[:, model.idx_qs[joint]] = recorded[:, named.index(model.names[joint])]
        elif joint not in passive:
            _fill_from_chains(q, robot)
            break
    if passive:
        _fill_from_soles(passive, q, recording, robot, run_name, progress)
    if not np.isfinite(q).all(axis=1).any():
        missing = "positions of the joints"
        if robot.free_flyer and not np.isfinite(recording.base_pose).any():
            missing = "the pose of the base"
        elif passive and not np.isfinite(recording.sole_poses).any():
            names = ", ".join(model.names[joint] for joint in passive)
            missing = f"the poses of the soles, from which the joints without drives ({names}) follow"
        raise RecordingError(
            "not recorded, so the full state is unknown. Runs of `bipedsim run --output` contain it. So do bags with "
            "/ground_truth/odom if the base is free. A real robot does not measure its position",
            f"{run_name}: {missing}",
        )
    return q


def name_of(recording: Recording) -> str:
    """Return the name of a run for messages."""
    return f"the run of {recording.robot or 'an unnamed robot'}"


def _without_drives(robot: Robot) -> list[int]:
    """Return the passive pinocchio joints, except a free-flyer root."""
    first = 2 if robot.free_flyer else 1
    return [joint for joint in range(first, robot.model.njoints) if robot.model.idx_vs[joint] not in robot.idx_v]


def _determined_by_soles(recording: Recording, robot: Robot) -> list[int]:
    """Return the passive joints that neither the recording nor closed kinematic chains determine."""
    joints = [joint for joint in _without_drives(robot) if robot.model.names[joint] not in recording.joint_names]
    return [] if joints and robot.loops and Chains(robot).determined else joints


def _fill_from_chains(q: Array, robot: Robot) -> None:
    """Fill the columns of passive joints in ``q`` (n, nq) from closed kinematic chains."""
    chains, still = Chains(robot), np.zeros(robot.model.nv)
    for row in q:
        chains.follow(row[robot.idx_q], still[robot.idx_v])
        chains.fill(row, still)


def _fill_from_soles(
    joints: list[int], q: Array, recording: Recording, robot: Robot, run_name: str, progress: bool
) -> None:
    """Fill the columns of ``joints`` in ``q`` (n, nq) such that the soles are closest to their recorded poses.

    Raises:
        RecordingError: The soles do not determine these joints.
    """
    model, data = robot.model, robot.model.createData()
    positions = np.concatenate([model.idx_qs[j] + np.arange(model.nqs[j]) for j in joints])
    columns = np.concatenate([model.idx_vs[j] + np.arange(model.nvs[j]) for j in joints])
    known = np.setdiff1d(np.arange(model.nq), positions)
    rows = np.flatnonzero(np.isfinite(q[:, known]).all(axis=1) & np.isfinite(recording.sole_poses).all(axis=(1, 2)))
    # The solution of each row starts from that of the row before.
    current, change = robot.q_nominal.copy(), np.zeros(model.nv)
    loops = LoopEquations(model, robot.loops) if robot.loops else None
    for i in ProgressBar(rows, desc="states", unit="row", disable=not progress):
        current[known] = q[i, known]
        for _ in range(STEPS):
            error, J = _sole_errors(robot, data, current, recording.sole_poses[i])
            if loops is not None:
                open_by, rows_of_loops = loops.at(current)
                error, J = np.append(error, -open_by), np.vstack([J, rows_of_loops])
            moved, _, rank, _ = np.linalg.lstsq(J[:, columns], error, rcond=None)
            if rank < len(columns):
                names = ", ".join(model.names[joint] for joint in joints)
                raise RecordingError(
                    "their position does not follow from the soles. Use SupportReader on states of a Simulator",
                    f"{run_name}: joints without drives ({names})",
                )
            change[columns] = moved
            current = pin.integrate(model, current, change)
            if np.abs(moved).max() < PLACED:
                break
        q[i, positions] = current[positions]


def _sole_errors(robot: Robot, data: pin.Data, q: Array, poses: Array) -> tuple[Array, Array]:
    """Return the twists (6K,) from the soles at ``q`` to ``poses`` (K, 7), in their frames, and the Jacobian there."""
    pin.computeJointJacobians(robot.model, data, q)
    errors, rows = [np.zeros(0)], [np.zeros((0, robot.model.nv))]
    for sole, pose in zip(robot.soles, poses, strict=True):
        joint, placement = sole.joint_id, sole.placement_joint_sole
        errors.append(pin.log6((data.oMi[joint] * placement).actInv(pin.XYZQUATToSE3(pose))).vector)
        rows.append(pin.getFrameJacobian(robot.model, data, joint, placement, pin.ReferenceFrame.LOCAL))
    return np.concatenate(errors), np.vstack(rows)
