from .coulomb import Contacts, Outcome, coulomb_lcp, planar_coulomb_lcp, pyramid_radius, solve_coulomb
from .enumeration import all_solutions
from .events import Impact, Motion, System, Terms, motion
from .lcp import ComplementarityError
from .normal_force_lcp import NormalForces, gauss_principle, normal_force_lcp, normal_forces
from .time_stepping import assemble_step, solve_step

__all__ = [
    "ComplementarityError",
    "Contacts",
    "Impact",
    "Motion",
    "NormalForces",
    "Outcome",
    "System",
    "Terms",
    "all_solutions",
    "assemble_step",
    "coulomb_lcp",
    "gauss_principle",
    "motion",
    "normal_force_lcp",
    "normal_forces",
    "planar_coulomb_lcp",
    "pyramid_radius",
    "solve_coulomb",
    "solve_step",
]
