"""Ground forces at the vertices of the soles, if the contact model computes them."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from bipedsim.numerics import Array
from bipedsim.sim.simulator import Simulator


class VertexForces:
    """Rotate the vertex forces of the contact model into the sole frames.

    Args:
        sim: Simulator with this contact model.

    Attributes:
        lacking: Reason why there are no such forces, with a remedy; empty if there are.
    """

    def __init__(self, sim: Simulator) -> None:
        self._sim = sim
        self._counts = [sole.n_vertices for sole in sim.robot.soles]
        self.lacking = ""
        if not sim.contact.vertex_forces.shape[1]:
            self.lacking = (
                "its contact model finds one wrench for each foot and no forces at its vertices; lcp, ncp and the "
                "compliant models do (docs/contact_models.md)"
            )
        elif not np.allclose(sim.ground.arrays().rotation, np.eye(3)):
            # The contact model gives each force in the axes of the patch below the vertex.
            self.lacking = "patches of its ground are tilted, and vertex forces are available only on level patches"

    def read(self, soles: Array) -> tuple[Array, ...]:
        """Return for each foot the mean forces at its vertices (N, 3) over the last tick, in the sole frame [N].

        Args:
            soles: (K, 7) poses of the soles in the world.
        """
        forces = self._sim.contact.vertex_forces
        turned = [pin.XYZQUATToSE3(pose).rotation for pose in soles]
        return tuple(forces[k, :n] @ turned[k] for k, n in enumerate(self._counts))
