"""The force plates of a simulation: what its contacts do to each of them, step by step."""

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


class _Plates(NamedTuple):
    """Plates, and the feet that they feel."""

    chain: Chain
    feet: Foothold
    projection: Projection
    result: ContactResult


class _Others(NamedTuple):
    """All contacts but those of the soles; of the robot's sides, those from ``bodies`` on are stops of joints."""

    chain: Chain
    contacts: Contacts
    bodies: int


@entry
def _add_feet(boxed: Any, landed: float) -> None:
    """Begin a step, and add what the ground does to the feet in it; they land after the share ``landed`` of it."""
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
    """Add what the ground does to bodies, and to objects that were solved for with the robot."""
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
    """The force plates of a simulation.

    Args:
        configs: At least one.
        ground: In which they lie.
        dynamics: Of the robot. result: What its contact model fills.
        touching: All contacts but those of the soles; None where only these touch.
        objects: Free bodies; None without any.
        physics_dt, control_dt: Of the simulation [s].

    Attributes:
        amplifiers: What they have sampled.
        configs: As they were given, with all that their models say.
        names: Of the plates.

    Raises:
        ConfigError: A plate lacks what it needs, a name is given twice, plates lie over each other, or a plate is not
            flush with the ground; all faults at once.
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
        faults = [f"force_plates: {one.name!r}: {fault}" for one in configs for fault in one.problems()]
        whole = [one for one in configs if not list(one.problems())]
        together([ConfigError(fault) for fault in (*faults, *check_plates(configs), *_not_flush(whole, ground))])
        widest = dynamics.projection.vertices.shape[1]
        self.amplifiers = Amplifiers(configs, physics_dt, control_dt, widest)
        self.configs = self.amplifiers.configs
        self.names = self.amplifiers.names
        chain = self.amplifiers.chain
        self._h = physics_dt
        self._boxed = box(_Plates(chain, dynamics.foothold, dynamics.projection, for_kernels(result)))
        self._others = None
        if touching is not None:
            self._others = box(_Others(chain, touching.contacts, len(dynamics.bodies.leaf)))
        self._objects = objects
        self._surfaces = box(chain.surfaces)

    def warm_up(self) -> None:
        """Load or compile what the first body on a plate needs."""
        if self._others is not None:
            ready(_add_others, self._others)

    def reset(self, sim: Simulation) -> None:
        """Draw offsets and noise of a new run."""
        self.amplifiers.reset(sim.seed, sim.draw)

    def begin_tick(self, sim: Simulation) -> None:
        """Forget the samples of the last tick."""
        self.amplifiers.begin()

    def after_step(self, sim: Simulation) -> None:
        """Sample the physics step that was made last."""
        _add_feet(self._boxed, sim.stepper.landed)
        if sim.stepper.touched and self._others is not None:
            _add_others(self._others)
        if self._objects is not None:
            self._objects.press(self._surfaces)
        _advance(self._boxed)

    def state(self) -> dict[str, Any]:
        """Return a copy of what the next samples depend on."""
        return self.amplifiers.state()

    def set_state(self, state: dict[str, Any], sim: Simulation) -> None:
        """Restore what :meth:`state` returned."""
        self.amplifiers.set_state(state)

    @property
    def loads(self) -> Array:
        """Mean wrench (P + 1, 6) over the last physics step of the plates on who stands there [N], [N.m].

        About the transducers' origin in each plate's axes, and, last, of the floor beside them, about the world's
        origin in its axes.
        """
        return np.asarray(self.amplifiers.chain.surfaces.load / self._h)


def _not_flush(configs: Sequence[PlateConfig], ground: Ground) -> list[str]:
    """Return what is to be said of plates whose surface is not that of the ground."""
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
            faults.append(
                f"force_plates: {config.name!r} is not flush with the ground: at {at} {far}{side or ' there'}; move it "
                "by `position`, or turn it by `rpy`"
            )
    return faults
