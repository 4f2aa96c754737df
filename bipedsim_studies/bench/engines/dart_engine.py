"""Provide DART (dartpy) as an engine of the benchmark."""

from __future__ import annotations

from typing import Any

import dartpy as dart
import numpy as np
import pinocchio as pin

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim_studies.bench.engines.base import Engine
from bipedsim_studies.bench.urdf_export import ROOT_LINK, link_name, urdf


class DartEngine(Engine):
    """DART with box soles on a box as ground, its own collision detector and its default constraint solver.

    DART has no reflected inertia, so it is added to the links; see :func:`urdf`.

    Args:
        robot, dt: See :class:`Engine`.
    """

    def __init__(self, robot: Robot, dt: float) -> None:
        super().__init__(robot, dt)
        text = urdf(robot, soles=True, reflected_inertia=True)
        self._robot: Any = dart.utils.DartLoader().parseSkeletonString(text, dart.common.Uri())
        mu = max(sole.friction_static for sole in robot.soles)
        self._world: Any = dart.simulation.World()
        world = self._world
        world.setTimeStep(dt)
        world.setGravity(robot.model.gravity.linear)
        world.addSkeleton(_ground(mu))
        world.addSkeleton(self._robot)
        world.getConstraintSolver().setCollisionDetector(dart.collision.DARTCollisionDetector())
        # Deactivation is off, because a sleeping body would be timed without any computation.
        options = world.getDeactivationOptions()
        options.mEnabled = False
        world.setDeactivationOptions(options)
        self._root = self._robot.getBodyNode(ROOT_LINK)
        self._feet = [link_name(robot, sole.joint_id) for sole in robot.soles]
        for name in self._feet:
            _set_friction(self._robot.getBodyNode(name), mu)
        index = {name: self._robot.getJoint(name).getIndexInSkeleton(0) for name in self._joints}
        self._theirs = list(index.values())
        self._actuated = [index[name] for name in robot.joint_names]
        self._forces = np.zeros(self._robot.getNumDofs())
        self.step = self._step

    def reset(self, q: Array, v: Array) -> None:
        skeleton = self._robot
        pose = pin.XYZQUATToSE3(q[:7])
        position = np.zeros(skeleton.getNumDofs())
        position[:6] = dart.dynamics.FreeJoint.convertToPositions(_isometry(pose))
        position[self._theirs] = q[self._ours_q]
        velocity = np.zeros_like(position)
        velocity[self._theirs] = v[self._ours_v]
        self._world.reset()
        skeleton.resetPositions()
        skeleton.clearConstraintImpulses()
        skeleton.setPositions(position)
        skeleton.setVelocities(velocity)
        root = skeleton.getRootJoint()
        root.setLinearVelocity(pose.rotation @ v[:3])
        root.setAngularVelocity(pose.rotation @ v[3:6])
        self._push[:] = 0.0

    def _step(self, tau_joint: Array) -> None:
        self._forces[self._actuated] = tau_joint
        self._robot.setForces(self._forces)
        if self._push.any():
            # DART applies an external force for one step only.
            self._root.addExtForce(self._push, np.zeros(3), False, True)
        self._world.step()
        self._contacts = [(c.point, c.force, c.collisionObject1, c.collisionObject2) for c in self._last_contacts()]

    def _last_contacts(self) -> Any:
        return self._world.getLastCollisionResult().getContacts()

    def state(self) -> tuple[Array, Array]:
        root, transform = self._root, self._root.getWorldTransform()
        pose = pin.SE3(transform.rotation(), transform.translation())
        position, rate = self._robot.getPositions()[self._theirs], self._robot.getVelocities()[self._theirs]
        return self._state_of(pose, root.getLinearVelocity(), root.getAngularVelocity(), position, rate)

    def wrenches(self) -> Array:
        contacts = []
        for point, force, first, second in self._contacts:
            # DART reports the force on the first body.
            for body, sign in ((first, 1.0), (second, -1.0)):
                name = body.getShapeFrame().asShapeNode().getBodyNodePtr().getName()
                if name in self._feet:
                    contacts.append((self._feet.index(name), point, sign * np.asarray(force)))
        return self._wrenches_of(contacts)


def _isometry(pose: pin.SE3) -> Any:
    result = dart.math.Isometry3()
    result.set_rotation(pose.rotation)
    result.set_translation(pose.translation)
    return result


def _set_friction(body: Any, mu: float) -> None:
    for i in range(body.getNumShapeNodes()):
        aspect = body.getShapeNode(i).getDynamicsAspect()
        if aspect is not None:
            aspect.setFrictionCoeff(mu)


def _ground(mu: float) -> Any:
    """Return a skeleton with a box of 20 m x 20 m and its upper face at z = 0."""
    skeleton = dart.dynamics.Skeleton("ground")
    _, body = skeleton.createWeldJointAndBodyNodePair()
    shape = body.createShapeNode(dart.dynamics.BoxShape([20.0, 20.0, 1.0]))
    shape.createVisualAspect()
    shape.createCollisionAspect()
    shape.createDynamicsAspect()
    shape.setRelativeTranslation([0.0, 0.0, -0.5])
    _set_friction(body, mu)
    return skeleton
