"""Forces of the ground at single vertices of the soles, as far as the contact model finds them."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from bipedsim.numerics import Array
from bipedsim.sim.simulator import Simulator


class VertexForces:
    """Turns what the contact model says of vertices into the frames of the soles.

    Args:
        sim: Whose they are.

    Attributes:
        lacking: Why there are none, with the way out; empty if there are.
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
            # They are in the axes of whatever patch is below the vertex.
            self.lacking = "patches of its ground are tilted; they are known on level ones"

    def read(self, soles: Array) -> tuple[Array, ...]:
        """Return of each foot the mean forces at its vertices (N, 3) over the last tick, in the sole frame [N].

        Args:
            soles: (K, 7) poses of the soles in the world.
        """
        forces = self._sim.contact.vertex_forces
        turned = [pin.XYZQUATToSE3(pose).rotation for pose in soles]
        return tuple(forces[k, :n] @ turned[k] for k, n in enumerate(self._counts))
