"""Force plates of a simulation: the loads of all contacts on each plate, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bipedsim.config import together
from bipedsim.contact import ContactResult, for_kernels
from bipedsim.dynamics import Dynamics, Foothold, Projection
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground
from bipedsim.numerics import Array, box, entry, ready
from bipedsim.plates import (
    REACH,
    Amplifiers,
    Chain,
    Foot,
    PlateConfig,
    add_foot,
    add_point,
    advance,
    check_plates,
    clear,
)
from bipedsim.sim.objects import Objects
from bipedsim.sim.participant import Participant, Simulation
from bipedsim.touch import WORLD, Contacts, Touching


class _PlateLoads(NamedTuple):
    """Store the plates and the contacts of the feet."""

    chain: Chain
    feet: Foothold
    projection: Projection
    result: ContactResult


class _OtherContacts(NamedTuple):
    """Store the plates and all contacts except those of the soles; bodies from index ``bodies`` on are joint limits."""

    chain: Chain
    contacts: Contacts
    bodies: int


@entry
def _add_feet(boxed: Any, landed: float) -> None:
    """Start a step and add the loads of the feet; ``landed`` is the time of impact as a fraction of the step."""
    a = boxed.arrays
    s, p, r = a.chain.surfaces, a.projection, a.result
    clear(s)
    a.chain.when[0] = landed
    for k in range(r.impulse.shape[0]):
        at_once = 0.0
        if r.impulse[k, 2] > 0.0:
            R, hit = p.rotation[k], r.impact[k]
            normal = R[2, 0] * hit[0] + R[2, 1] * hit[1] + R[2, 2] * hit[2]
            at_once = min(max(normal / r.impulse[k, 2], 0.0), 1.0)
        add_foot(
            s,
            Foot(
                a.feet.axes[k],
                a.feet.sole_origin[k],
                p.offsets[k],
                p.n_vertices[k],
                r.clamped[k],
                r.impulse[k],
                r.vertex_forces[k],
                at_once,
            ),
        )


@entry
def _add_others(boxed: Any) -> None:
    """Add the ground contacts of bodies, and of objects that were solved together with the robot."""
    a = boxed.arrays
    c, s = a.contacts, a.chain.surfaces
    for m in range(c.used[0]):
        if c.a[m] >= a.bodies or c.b[m] >= a.bodies or (c.a[m] == WORLD) == (c.b[m] == WORLD):
            continue
        add_point(s, c.point[m], c.axes[m], c.impulse[m], 1.0 if c.b[m] == WORLD else -1.0)


@entry
def _advance(boxed: Any) -> None:
    advance(boxed.arrays.chain)


class ForcePlates(Participant):
    """Simulate the force plates and their amplifiers.

    Args:
        configs: Plates, at least one.
        ground: Ground that contains the plates.
        dynamics: Dynamics of the robot. result: result of its contact model, live.
        touching: All contacts except those of the soles; None if only the soles can be in contact.
        objects: Free bodies; None without any.
        physics_dt, control_dt: Periods of the simulation [s].

    Attributes:
        amplifiers: Amplifiers with the samples of the last tick.
        configs: The plates as given, completed with the values of their models.
        names: Names of the plates.

    Raises:
        ConfigError: A plate is incomplete, a name is given twice, plates overlap, or a plate is not flush with the
            ground; the message lists all faults.
    """

    name = "force_plates"

    def __init__(
        self,
        configs: Sequence[PlateConfig],
        ground: Ground,
        dynamics: Dynamics,
        result: ContactResult,
        touching: Touching | None,
        objects: Objects | None,
        physics_dt: float,
        control_dt: float,
    ) -> None:
        faults = [fault.within(f"force_plates: {c.name!r}") for c in configs for fault in c.problems()]
        complete = [config for config in configs if not list(config.problems())]
        together([*faults, *check_plates(configs), *_not_flush(complete, ground)])
        widest = dynamics.projection.vertices.shape[1]
        self.amplifiers = Amplifiers(configs, physics_dt, control_dt, widest)
        self.configs = self.amplifiers.configs
        self.names = self.amplifiers.names
        chain = self.amplifiers.chain
        self._h = physics_dt
        self._boxed = box(_PlateLoads(chain, dynamics.foothold, dynamics.projection, for_kernels(result)))
        self._others = None
        if touching is not None:
            self._others = box(_OtherContacts(chain, touching.contacts, len(dynamics.bodies.leaf)))
        self._objects = objects
        self._surfaces = box(chain.surfaces)

    def warm_up(self) -> None:
        """Load or compile the kernel for the first body on a plate."""
        if self._others is not None:
            ready(_add_others, self._others)

    def reset(self, sim: Simulation) -> None:
        """Draw the offsets and the noise of a new run."""
        self.amplifiers.reset(sim.seed, sim.draw)

    def begin_tick(self, sim: Simulation) -> None:
        """Discard the samples of the last tick."""
        self.amplifiers.begin()

    def after_step(self, sim: Simulation) -> None:
        """Sample the last physics step."""
        _add_feet(self._boxed, sim.stepper.landed)
        if sim.stepper.touched and self._others is not None:
            _add_others(self._others)
        if self._objects is not None:
            self._objects.press(self._surfaces)
        _advance(self._boxed)

    def state(self) -> dict[str, Any]:
        """Return a copy of the state on which the next samples depend."""
        return self.amplifiers.state()

    def set_state(self, state: dict[str, Any], sim: Simulation) -> None:
        """Restore a state that :meth:`state` returned."""
        self.amplifiers.set_state(state)

    @property
    def loads(self) -> Array:
        """Mean wrench (P + 1, 6) of each plate on the robot and the objects over the last physics step [N], [N.m].

        The wrench of a plate is about its transducer origin, in the axes of the plate. The last row is the floor next
        to the plates, about the world origin, in world axes.
        """
        return np.asarray(self.amplifiers.chain.surfaces.load / self._h)


def _not_flush(configs: Sequence[PlateConfig], ground: Ground) -> list[ConfigError]:
    """Return an error for each plate that is not flush with the ground."""
    faults = []
    for config in configs:
        geometry = config.complete().geometry()
        points = np.vstack([geometry.centre, geometry.centre + (1.0 - 1e-6) * (geometry.corners - geometry.centre)])
        depth = ground.depth(points, REACH)
        off = np.where(np.isfinite(depth), np.abs(depth), np.inf)
        worst = int(np.argmax(off))
        if not off[worst] <= REACH:
            at = np.round(points[worst], 4).tolist()
            far = "no ground is" if not np.isfinite(depth[worst]) else f"the ground is {abs(depth[worst]):.3g} m"
            side = "" if not np.isfinite(depth[worst]) else " above it" if depth[worst] > 0.0 else " below it"
            text = (
                f"not flush with the ground: {far}{side or ' there'}. Move it with `position`, or rotate it with `rpy`"
            )
            faults.append(ConfigError(text, f"force_plates: {config.name!r}: at {at}"))
    return faults
