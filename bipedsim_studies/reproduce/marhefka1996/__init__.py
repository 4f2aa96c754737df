"""Marhefka, Orin 1996: contact with nonlinear damping, after Hunt and Crossley."""

from __future__ import annotations

from bipedsim_studies.reproduce.common import Case, Paper
from bipedsim_studies.reproduce.marhefka1996 import foot, linear, loops, phase, restitution, two_alphas

PAPER = Paper(
    "D. W. Marhefka, D. E. Orin: Simulation of contact using a nonlinear damping model. "
    "IEEE International Conference on Robotics and Automation (ICRA) 1996",
    {
        "linear": Case("the linear spring and damper that the paper argues against, Fig. 1", linear.case),
        "phase": Case("penetration and velocity of an impact, eq. 19 and Fig. 2", phase.case),
        "restitution": Case("the coefficient of restitution over the velocity, Fig. 3", restitution.case),
        "loops": Case("force over depth and time, energy lost, Fig. 4 to 7", loops.case),
        "foot": Case("placement, weight bearing and lifting of a foot, Fig. 8", foot.case),
        "two_alphas": Case("another damping for restitution than for compression, section 6", two_alphas.case),
    },
)
