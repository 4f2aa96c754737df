"""Provide Drake's discrete MultibodyPlant with point contact as an engine of the benchmark."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pinocchio as pin
from pydrake.geometry import HalfSpace, Sphere
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import (
    AddMultibodyPlantSceneGraph,
    ContactModel,
    CoulombFriction,
    DiscreteContactApproximation,
)
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim_studies.bench.engines.base import Engine
from bipedsim_studies.bench.urdf_export import ROOT_LINK, link_name, urdf

CONTACT_RADIUS = 1e-3


class DrakeEngine(Engine):
    """Drake with point contact at every sole vertex.

    A box on a plane would have only one contact point. Each vertex is therefore a sphere of 1 mm that is tangent to the
    sole.

    Args:
        robot, dt: See :class:`Engine`.
        approximation: ``"kTamsi"`` or ``"kSap"``.
    """

    def __init__(self, robot: Robot, dt: float, approximation: str) -> None:
        super().__init__(robot, dt)
        builder: Any = DiagramBuilder()
        plant, _ = AddMultibodyPlantSceneGraph(builder, time_step=dt)
        plant.set_contact_model(ContactModel.kPoint)
        plant.set_discrete_contact_approximation(getattr(DiscreteContactApproximation, approximation))
        Parser(plant).AddModelsFromString(urdf(robot, soles=False), "urdf")
        plant.mutable_gravity_field().set_gravity_vector(robot.model.gravity.linear)
        for name, i in zip(self._joints, self._ours_v, strict=True):
            actuator = plant.AddJointActuator(name, plant.GetJointByName(name))
            actuator.set_default_gear_ratio(1.0)
            actuator.set_default_rotor_inertia(float(robot.model.armature[i]))
        mu = max(sole.friction_static for sole in robot.soles)
        # Drake combines two friction coefficients as 2 a b / (a + b), which leaves equal ones unchanged.
        logging.getLogger("drake").setLevel(logging.ERROR)  # it warns that half spaces touch no deformable bodies
        plant.RegisterCollisionGeometry(
            plant.world_body(), RigidTransform(), HalfSpace(), "ground", CoulombFriction(mu, mu)
        )
        for sole in robot.soles:
            up = sole.placement_joint_sole.rotation[:, 2]
            body = plant.GetBodyByName(link_name(robot, sole.joint_id))
            for i, vertex in enumerate(sole.vertices_joint):
                pose = RigidTransform(vertex + CONTACT_RADIUS * up)
                plant.RegisterCollisionGeometry(
                    body, pose, Sphere(CONTACT_RADIUS), f"{sole.name} {i}", CoulombFriction(mu, mu)
                )
        plant.Finalize()
        self._plant = plant
        self._simulator: Any = Simulator(builder.Build())
        self._root = plant.GetBodyByName(ROOT_LINK)
        self._feet = [plant.GetBodyByName(link_name(robot, sole.joint_id)).index() for sole in robot.soles]
        joints = [plant.GetJointByName(name) for name in self._joints]
        self._theirs_q = [joint.position_start() for joint in joints]
        self._theirs_v = [joint.velocity_start() for joint in joints]
        index = {name: joint.velocity_start() for name, joint in zip(self._joints, joints, strict=True)}
        self._actuated = np.array([index[name] for name in robot.joint_names])
        self._force = np.zeros(plant.num_velocities())
        self._contacts = plant.get_contact_results_output_port()
        self.step = self._step

    def reset(self, q: Array, v: Array) -> None:
        simulator, plant = self._simulator, self._plant
        simulator.reset_context(simulator.get_system().CreateDefaultContext())
        self._context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
        position, velocity = np.zeros(plant.num_positions()), np.zeros(plant.num_velocities())
        position[self._theirs_q] = q[self._ours_q]
        velocity[self._theirs_v] = v[self._ours_v]
        plant.SetPositions(self._context, position)
        plant.SetVelocities(self._context, velocity)
        pose = pin.XYZQUATToSE3(q[:7])
        plant.SetFreeBodyPose(
            self._context, self._root, RigidTransform(RotationMatrix(pose.rotation), pose.translation)
        )
        first = self._root.floating_velocities_start_in_v()
        velocity[first : first + 6] = np.concatenate([pose.rotation @ v[3:6], pose.rotation @ v[:3]])
        plant.SetVelocities(self._context, velocity)
        self._force[:] = 0.0
        self._input = plant.get_applied_generalized_force_input_port().FixValue(self._context, self._force)
        simulator.Initialize()
        self._steps = 0

    def push(self, force_world: Array) -> None:
        first = self._root.floating_velocities_start_in_v()
        self._force[first + 3 : first + 6] = force_world

    def _step(self, tau_joint: Array) -> None:
        self._force[self._actuated] = tau_joint
        self._input.GetMutableData().get_mutable_value().SetFromVector(self._force)
        self._steps += 1
        self._simulator.AdvanceTo(self._steps * self.dt)
        self._results = self._contacts.Eval(self._context)

    def state(self) -> tuple[Array, Array]:
        plant, context = self._plant, self._context
        transform = plant.GetFreeBodyPose(context, self._root)
        pose = pin.SE3(transform.rotation().matrix(), transform.translation())
        position, velocity = plant.GetPositions(context)[self._theirs_q], plant.GetVelocities(context)
        first = self._root.floating_velocities_start_in_v()
        angular, linear = velocity[first : first + 3], velocity[first + 3 : first + 6]
        return self._state_of(pose, linear, angular, position, velocity[self._theirs_v])

    def wrenches(self) -> Array:
        contacts = []
        for i in range(self._results.num_point_pair_contacts()):
            info = self._results.point_pair_contact_info(i)
            # Drake reports the force on body B.
            for body, sign in ((info.bodyA_index(), -1.0), (info.bodyB_index(), 1.0)):
                if body in self._feet:
                    force = sign * np.asarray(info.contact_force())
                    contacts.append((self._feet.index(body), info.contact_point(), force))
        return self._wrenches_of(contacts)
