"""Hurmuzlu, Génot, Brogliato 2001: complementarity and impact laws (section 3), and walking (section 5.2)."""

from __future__ import annotations

from bipedsim_studies.reproduce.common import Case, Paper
from bipedsim_studies.reproduce.hurmuzlu2001 import (
    adaptive,
    adaptive_walk,
    chair,
    controlled_mass,
    coulomb,
    energy,
    foot_strike,
    impact_dampers,
    juggler,
    kane,
    optimal_step,
    optimal_support,
    phase_plane,
    planar_gait,
    pyramid,
    springs,
    three_balls,
    three_links,
    wall,
    zero_dynamics,
)

PAPER = Paper(
    "Y. Hurmuzlu, F. Génot, B. Brogliato: Modeling, stability and control of biped robots: a general framework. "
    "INRIA research report 4290, 2001",
    {
        "impact_dampers": Case(
            "Fig. 1b, 1c: a pendulum and a mass, damped by a ball between walls", impact_dampers.case
        ),
        "juggler": Case("Fig. 1d and eq. 7: an object that only impacts move, to heights on order", juggler.case),
        "wall": Case("Fig. 1e and eq. 43: a manipulator at a wall, free, impacting, constrained", wall.case),
        "three_links": Case("Fig. 2 to 4: kinds of motion of a mass and of a biped on a spring", three_links.case),
        "phase_plane": Case("Fig. 4: a walker of two links without a spring, return map", phase_plane.case),
        "chair": Case("eq. 13 to 16: a chair on four legs, forces and acceleration", chair.case),
        "three_balls": Case("Fig. 10: every impact law on three balls in a row", three_balls.case),
        "energy": Case("section 3.2.2: energy after impacts without friction, every law", energy.case),
        "springs": Case("Fig. 6 and section 3.2.2: three balls with springs between them", springs.case),
        "coulomb": Case("eq. 30 to 37: a sliding rod with one, no or several accelerations", coulomb.case),
        "pyramid": Case("after eq. 38: pyramids of k sides against the friction cone", pyramid.case),
        "kane": Case("section 3.3.2: a double pendulum that gains energy by friction", kane.case),
        "foot_strike": Case("Fig. 5 and eq. 6: a planar biped's foot lands, three points at once", foot_strike.case),
        "controlled_mass": Case(
            "Fig. 11, 13 and eq. 41: a mass that follows a sine through a wall", controlled_mass.case
        ),
        "planar_gait": Case("Fig. 5 and section 5.2.1: a planar biped walks under computed torque", planar_gait.case),
        "optimal_step": Case("eq. 58: the step of three links that needs the least torques", optimal_step.case),
        "optimal_support": Case("section 5.2.1: a planar biped's step, less torque or energy", optimal_support.case),
        "adaptive": Case("section 5.2.1: an arm learns its masses while it follows a path", adaptive.case),
        "adaptive_walk": Case("section 5.2.1: a biped learns its masses while it walks", adaptive_walk.case),
        "zero_dynamics": Case("sections 4.3, 5.2: the return map on a virtual constraint", zero_dynamics.case),
    },
)
