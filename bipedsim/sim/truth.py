"""Ground truth of a simulation: quantities that no robot can measure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from bipedsim.numerics import Array
from bipedsim.sim.gantry import Gantry
from bipedsim.sim.participant import Simulation
from bipedsim.sim.reactions import Reactions
from bipedsim.sim.sensor_suite import SensorSuite


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """Store quantities that no robot measures, for plots and tests.

    Attributes:
        pose_world_base: (7,) position [m] and quaternion x y z w of the base in the world; the identity if the root is
            fixed.
        twist_base: (6,) linear [m/s] and angular [rad/s] velocity of the base, in the base frame.
        cop_world: (3,) centre of pressure of all feet [m], NaN in the air.
        pose_world_sole: (K, 7) pose of each sole, as for the base.
        base_contact: (3,) force in the world on the root's body, and on bodies that no drive moves against it [N]. Of
            the forces on soles, it has only those of risers of a height field. NaN while no body is in contact.
        link_contact: (nu, 3) the same on the body that each actuated joint moves.
        stop_torque: (nu,) torque of the joint limit on each actuated joint [N.m]; NaN while no limit is active.
        gantry_force: (3,) force of the gantry on the trunk in the world [N], NaN after release; None without a gantry.
    """

    pose_world_base: Array
    twist_base: Array
    cop_world: Array
    pose_world_sole: Array
    base_contact: Array
    link_contact: Array
    stop_torque: Array
    gantry_force: Array | None = None


def ground_truth(sim: Simulation, sensors: SensorSuite, reactions: Reactions, gantry: Gantry | None) -> GroundTruth:
    """Return the ground truth at the present state of ``sim``; forces are means over the last control tick."""
    poses, cop = sensors.soles(sim)
    base, twist = pin.SE3ToXYZQUAT(pin.SE3.Identity()), np.zeros(6)
    if sim.robot.free_flyer:
        base, twist = sim.q[:7].copy(), sim.v[:6].copy()
    forces = *reactions.contact_forces(), reactions.stop_torques(), None if gantry is None else gantry.force
    return GroundTruth(base, twist, cop, poses, *forces)
