"""Moraud, Hale, Cheng 2008: contact selection, exact and one-step."""

from __future__ import annotations

from bipedsim_studies.reproduce.common import Case, Paper
from bipedsim_studies.reproduce.moraud2008 import bend_and_jump, friction, hip_sway, plates, priority, squats, toe_fall

PAPER = Paper(
    "E. M. Moraud, J. G. Hale, G. Cheng: Constraint-based ground contact handling in humanoid robotics simulation. "
    "ICRA 2008 workshop on contact models for manipulation and locomotion",
    {
        "fig4": Case("priority of the rules", priority.case),
        "fig6": Case("forward fall over the toes, with and without the CoP rule", toe_fall.case),
        "fig8": Case("time per step, exact against one-step, during bend-and-jump", bend_and_jump.case),
        "fig9": Case("hip sway of a full-size humanoid until one foot rests on its edge", hip_sway.case),
        "fig11": Case("two squats of 1.25 s and 1 s, open-loop joint trajectories under PD", squats.case),
        "plates": Case("section V: the sway and the squats as force plates show them", plates.case),
        "friction": Case("section V.C: a foot pulled sideways slips at mu f_z", friction.case),
    },
)
