"""Rengifo, Aoustin, Chevallereau, Plestan 2009: contact forces by input-output feedback linearisation."""

from __future__ import annotations

from bipedsim_studies.reproduce.common import Case, Paper
from bipedsim_studies.reproduce.rengifo2009 import ball, biped, brick

PAPER = Paper(
    "C. Rengifo, Y. Aoustin, C. Chevallereau, F. Plestan: A penalty-based approach for contact forces computation in "
    "bipedal robots. Humanoids 2009",
    {
        "ball": Case("a ball falls on the ground: height and force (Fig. 4, 5)", ball.case),
        "brick": Case("a brick slides down a ramp until friction holds it (eq. 5 to 9)", brick.case),
        "biped": Case("five steps of the biped: vertices, their forces, false impacts (Fig. 11 to 14)", biped.case),
    },
)
