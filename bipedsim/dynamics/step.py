"""One projection of the dynamics per step, the contact model on it, and the way back to joint space."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import pinocchio as pin
from numba import float64, int64
from numpy.typing import NDArray

from bipedsim.dynamics import tree as kernels
from bipedsim.dynamics.flight import Flight, Momentum, look_ahead, slide
from bipedsim.dynamics.landing import SLOW, Landing, arrives, lift, touch
from bipedsim.dynamics.projection import Projection, edge_lines
from bipedsim.dynamics.support import Foothold
from bipedsim.dynamics.tree import Tree
from bipedsim.dynamics.views import live_motions, live_poses
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.numerics import Array, Box, Integers, announced, box, entry, kernel, zeros_of

_WORLD = pin.Convention.WORLD


class Contact(Protocol):
    """What a step asks of a contact model.

    A model whose solve is compiled also has an attribute ``compiled``, a :class:`CompiledContact`: it is then one call
    together with the dynamics, 1.3 times as fast.

    Attributes:
        late: None, or (K, 6) for forces that act within the step: their impulse weighted by the share of the step that
            was left when it acted.
    """

    @property
    def late(self) -> Array | None: ...

    def solve(self, projection: Projection) -> Any:
        """Return what has an attribute ``impulse``, (K, 6) on the feet at the sole origins in ground axes [N.s]."""
        ...


class CompiledContact(NamedTuple):
    """A contact model on the compiled side.

    Attributes:
        solve: Kernel ``solve(projection, arrays)``, a function of a module; it fills ``impulse`` and ``late``.
        arrays: What it reads and writes beside the projection, a named tuple.
        impulse, late: (K, 6) as in :class:`Contact`; ``late`` is used only where the model has one.
    """

    solve: Any
    arrays: Any
    impulse: Array
    late: Array


class _Projected(NamedTuple):
    tree: Tree
    foothold: Foothold
    projection: Projection
    landing: Landing
    flight: Flight


class _Step(NamedTuple):
    tree: Tree
    foothold: Foothold
    projection: Projection
    landing: Landing
    flight: Flight
    contact: CompiledContact


WHOLE, WITHIN, UNSPLIT, IMPACT, REST = range(5)
"""Parts of a step that are solved: all of it (also for forces that act within it, and without looking for landings),
and after a landing the impact alone and what is left; these two fill the change of v and leave v as it is."""

REFUSED, LANDS = -1.0, -2.0
"""What a step returns that was not taken, as the torques are not finite, or as a vertex lands in it."""


@kernel
def _begin(a: Any, v: Array, tau_joint: Array, part: int) -> bool:
    """Fill the projection of ``a`` for a part of the step; False for bad torques."""
    if not kernels.project(a.tree, a.foothold, a.projection, v, tau_joint, 0.0 if part == IMPACT else 1.0):
        return False
    if part == WITHIN:
        kernels.fill_bias(a.tree, a.foothold, a.projection)
    elif part == WHOLE:
        lift(a.projection, a.landing, a.tree.h)
    elif part == IMPACT:
        touch(a.projection, a.landing)
    else:
        a.projection.lifted[:, :] = 0.0
    return True


@kernel
def _end(a: Any, v: Array, impulse: Array, late: Array, part: int) -> float:
    """Bring the impulses of a part of the step back to joint space."""
    aloft = part != UNSPLIT
    for k in range(impulse.shape[0]):
        aloft = aloft and impulse[k, 2] == 0.0
    a.flight.aloft[0] = aloft
    if part == WITHIN:
        if aloft:
            look_ahead(a.flight, a.tree, v)
        return kernels.advance_within(a.tree, impulse, late, v)
    if part == WHOLE and a.landing.lifted[0] > 0 and arrives(a.projection, a.landing, a.tree.h, impulse):
        fastest = kernels.change(a.tree, impulse, 1.0, v)
        return LANDS if fastest < kernels.SPEED_LIMIT else fastest
    if part in (IMPACT, REST):
        return kernels.change(a.tree, impulse, 1.0, v)
    if aloft:
        look_ahead(a.flight, a.tree, v)
    fastest = kernels.advance(a.tree, impulse, v)
    if aloft:
        slide(a.flight, a.tree)
    return fastest


@entry
def _project(step: Any, v: Array, tau_joint: Array, part: int) -> bool:
    return _begin(step.arrays, v, tau_joint, part)


@entry
def _advance(step: Any, v: Array, impulse: Array, late: Array, part: int) -> float:
    return _end(step.arrays, v, impulse, late, part)


# A step is compiled for the type of its box, which holds the kernel of the contact model.
@entry
def _step(step: Any, v: Array, tau_joint: Array, part: int) -> float:
    """Take a step from (M, nle, J, state) to v+, wrenches and modes in one compiled call."""
    a = step.arrays
    c = a.contact
    if not _begin(a, v, tau_joint, part):
        return REFUSED
    c.solve(a.projection, c.arrays)
    return _end(a, v, c.impulse, c.late, part)


class Dynamics:
    """Projects the dynamics of one robot on its feet, and brings contact impulses back to joint space.

    pinocchio's data matrices are live views: they are handed to the kernels once and refilled in place by every call.

    Args:
        robot: The robot; its model carries the reflected inertia.
        ground: What the feet meet.
        physics_dt: Step h [s].

    Attributes:
        tree, foothold: The joint side of a step, and where the feet stand; refilled by every step.
        projection: What the contact model sees; refilled by every step.
        push: (nv,) generalised force besides the joint torques; written by whoever pushes.
        acceleration: (nv,) mean acceleration over the last step, (v+ - v) / h.
        change: (nv,) by which the last part of a step changes v.
        landing: When a vertex lands in the last step.
        displacement: (nv,) way of the last step: h v+, or the course of the velocity for forces that act within it.
        com: (3,) centre of mass in the world at the beginning of the last step [m].
        sole_origins: (K, 3) the same of the soles [m].
        ground_axes: (K, 3, 3) axes (t1, t2, n) of the ground under each foot in the last step, as columns.

    Raises:
        ConfigError: The robot has no feet, or one that nothing moves.
    """

    def __init__(self, robot: Robot, ground: Ground, physics_dt: float) -> None:
        self._model = robot.model
        self._data = robot.model.createData()
        soles = robot.soles
        if not soles:
            raise ConfigError(f"{robot.source}: the robot has no feet; give at least one under `feet`")
        for sole in soles:
            if sole.joint_id == 0:
                raise ConfigError(
                    f"{robot.source}: foot {sole.name!r} is on frame {sole.frame!r}, which is fixed to the world; "
                    "give a frame that a joint moves, or `root: free_flyer`"
                )
        pin.crba(self._model, self._data, pin.neutral(self._model), pin.Convention.WORLD)
        self.foothold = Foothold.of_soles(soles, ground.arrays())
        self.projection = Projection.of_soles(soles, len(self.foothold.spare))
        self.tree = _tree(robot, self._data, physics_dt)
        self.push = self.tree.push
        self.acceleration = self.tree.acceleration
        self.displacement = self.tree.step
        self.change = self.tree.x
        slow = SLOW * physics_dt * float(np.linalg.norm(self.tree.gravity))
        feet, widest = self.projection.lifted.shape
        self.landing = zeros_of(Landing, {"K": feet, "N": widest}, slow=slow)
        self.com = np.asarray(self._data.com[0])
        self.sole_origins = self.foothold.sole_origin
        self.ground_axes = self.foothold.axes
        self._momentum = Momentum(robot, self.tree, self.com)
        self.flight = self._momentum.flight
        self._contact: Contact | None = None
        self._step: Any = None

    @cached_property
    def _projected(self) -> Box:
        """For steps that are not fused."""
        return box(_Projected(self.tree, self.foothold, self.projection, self.landing, self.flight))

    def project(self, q: Array, v: Array, tau_joint: Array) -> Projection:
        """Return the projection of the step from (q, v) under the torques ``tau_joint`` (nu,); reused by the next.

        Raises:
            ValueError: A size is wrong; the kernels do not look.
        """
        sizes = len(q), len(v), len(tau_joint)
        needed = self._model.nq, self._model.nv, len(self.tree.actuated)
        if sizes != needed:
            raise ValueError(f"q, v and tau_joint have {sizes} entries instead of {needed}")
        self._fill(q, v)
        _project(self._projected, v, tau_joint, WITHIN)
        return self.projection

    def advance(self, v: Array, impulse: Array, late: Array | None = None) -> float:
        """Move ``v`` (nv,) in place to v+ under the contact ``impulse`` (K, 6) [N.s], and return the largest magnitude.

        Where an entry would not be finite (NaN is returned) or reaches ``SPEED_LIMIT``, ``v`` stays as it is.

        Args:
            v: (nv,).
            impulse: (K, 6) [N.s, N.m.s].
            late: As :class:`Contact` has it; the displacement then follows the course of the
                velocity within the step.
        """
        within = late is not None
        return float(_advance(self._projected, v, impulse, late if within else impulse, WITHIN if within else UNSPLIT))

    def step(self, q: Array, v: Array, tau_joint: Array, contact: Contact, split: bool = True) -> float:
        """Project, let the contact model act, and :meth:`advance`; in one compiled call where the model is compiled.

        Args:
            q, v, tau_joint, contact: (nq,), (nv,), (nu,) [N.m], and the model.
            split: Whether to look for vertices that land, and to keep the momentum in flight.

        Returns:
            As :meth:`advance`, and ``REFUSED`` for torques that are not finite, or ``LANDS``; ``v`` then stays as it
            is, too. What landing there is, ``landing`` says, and ``change`` how the step would change v without it.
        """
        self._fill(q, v)
        if contact is not self._contact:
            self._take(contact)
        part = WITHIN if contact.late is not None else WHOLE if split else UNSPLIT
        fastest = self._part(v, tau_joint, contact, part)
        if not split:
            self.flight.aloft[0] = False
        return fastest

    def move(self, q: Array, v: Array) -> Array:
        """Return the configuration at the end of the last step, which takes the way ``displacement`` from ``q`` (nq,).

        Where no foot carried, it is such that momentum is kept, and ``v`` (nv,) is changed in place to that effect.
        """
        after: Array = pin.integrate(self._model, q, self.displacement)
        if self.flight.aloft[0]:
            self.correct(after, v)
        return after

    def correct(self, q: Array, v: Array) -> None:
        """Keep momentum where the last step, in flight, has ended: at (q, v), (nq,), (nv,), changed in place."""
        if self.flight.free:
            self._momentum.correct(q, v)

    def impact(self, q: Array, v: Array, tau_joint: Array, contact: Contact) -> float:
        """Let the contact model stop at once what arrives at ``q``; fill ``change``, and leave ``v``.

        Returns:
            As :meth:`step`.
        """
        pin.crba(self._model, self._data, q, _WORLD)
        return self._part(v, tau_joint, contact, IMPACT)

    def rest(self, q: Array, v: Array, tau_joint: Array, contact: Contact) -> float:
        """Take a step from where an :meth:`impact` was; fill ``change``, and leave ``v``.

        Returns:
            As :meth:`step`.
        """
        pin.nonLinearEffects(self._model, self._data, q, v)
        return self._part(v, tau_joint, contact, REST)

    def _part(self, v: Array, tau_joint: Array, contact: Contact, part: int) -> float:
        if self._step is not None:
            return _step(self._step, v, tau_joint, part)
        if not _project(self._projected, v, tau_joint, part):
            return REFUSED
        impulse, late = contact.solve(self.projection).impulse, contact.late
        return _advance(self._projected, v, impulse, impulse if late is None else late, part)

    def _take(self, contact: Contact) -> None:
        """Load the step of ``contact``, compiled if that was never done."""
        compiled: CompiledContact | None = getattr(contact, "compiled", None)
        self._contact, self._step = contact, None
        if compiled is not None:
            self._step = box(_Step(self.tree, self.foothold, self.projection, self.landing, self.flight, compiled))
            with announced(f"contact model {compiled.solve.__name__}", 30):
                _step.compile((self._step.type, float64[::1], float64[::1], int64))

    def compile_contact(self, contact: Contact) -> None:
        """Compile what the kernel of ``contact`` brings into a step, and not the step."""
        compiled: CompiledContact | None = getattr(contact, "compiled", None)
        if compiled is not None:
            compiled.solve.compile((box(self.projection).type.arrays, box(compiled.arrays).type.arrays))

    def reset(self) -> None:
        """Forget what the feet stand on."""
        feet = self.foothold
        feet.patch[:] = -1
        feet.passing[:] = False
        p = self.projection
        p.n_vertices[:] = feet.n_soles
        p.vertices[:, : feet.soles.shape[1]] = feet.soles
        p.changed[:] = 0
        for k, n in enumerate(feet.n_soles):
            p.edges[k, :n] = edge_lines(feet.soles[k, :n])

    def state(self) -> dict[str, NDArray[Any]]:
        """Return a copy of what the next step depends on besides q, v and the contact model."""
        return {name: array.copy() for name, array in self._kept().items()}

    def set_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore what :meth:`state` returned."""
        for name, array in self._kept().items():
            array[...] = state[name]

    def _kept(self) -> dict[str, NDArray[Any]]:
        f, p = self.foothold, self.projection
        return {
            "patch": f.patch,
            "passing": f.passing,
            "axes": f.axes,
            "origin": f.origin,
            "vertices": p.vertices,
            "n_vertices": p.n_vertices,
            "edges": p.edges,
            "mu_static": p.mu_static,
            "mu_dynamic": p.mu_dynamic,
        }

    def _fill(self, q: Array, v: Array) -> None:
        pin.crba(self._model, self._data, q, _WORLD)
        pin.nonLinearEffects(self._model, self._data, q, v)


def _tree(robot: Robot, data: pin.Data, physics_dt: float) -> Tree:
    """Return the joint side of a step, with live views of ``data``."""
    model, soles = robot.model, robot.soles
    nv, feet = model.nv, len(soles)
    ancestors, depth = _ancestors(list(data.parents_fromRow))
    joints = [model.joints[sole.joint_id] for sole in soles]
    leaf = np.array([joint.idx_v + joint.nv - 1 for joint in joints], dtype=np.int64)
    chains = [set(ancestors[i, : depth[i]].tolist()) for i in leaf]
    common = np.array([[len(a & b) for b in chains] for a in chains], dtype=np.int64)
    return zeros_of(
        Tree,
        {"v": nv, "D": ancestors.shape[1], "K": feet},
        M_rows=np.asarray(data.M).reshape(nv, nv, order="F").T,
        nle=np.asarray(data.nle),
        J_rows=np.asarray(data.J).reshape(6, nv, order="F").T,
        poses=live_poses(data, model.njoints),
        twists=live_motions(data.v, model.njoints),
        accelerations=live_motions(data.a_gf, model.njoints),
        gravity=np.array(model.gravity.linear),
        ancestors=ancestors,
        depth=depth,
        damping=np.ascontiguousarray(robot.joint_damping),
        actuated=np.ascontiguousarray(robot.idx_v, dtype=np.int64),
        h=physics_dt,
        foot_joint=np.array([sole.joint_id for sole in soles], dtype=np.int64),
        leaf=leaf,
        common=common,
        placement_R=np.array([sole.placement_joint_sole.rotation for sole in soles]),
        placement_p=np.array([sole.placement_joint_sole.translation for sole in soles]),
    )


def _ancestors(parents: list[int]) -> tuple[Integers, Integers]:
    """Return for each velocity its ancestors from the root to itself, (nv, D) padded with 0, and how many, (nv,)."""
    chains: list[list[int]] = []
    for i, parent in enumerate(parents):
        chains.append([*(chains[parent] if parent >= 0 else []), i])
    depth = np.array([len(chain) for chain in chains], dtype=np.int64)
    ancestors = np.zeros((len(chains), int(depth.max(initial=1))), dtype=np.int64)
    for i, chain in enumerate(chains):
        ancestors[i, : depth[i]] = chain
    return ancestors, depth
