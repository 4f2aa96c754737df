from .coulomb import (
    CoulombContacts as CoulombContacts,
    CoulombOutcome as CoulombOutcome,
    coulomb_lcp as coulomb_lcp,
    planar_coulomb_lcp as planar_coulomb_lcp,
    pyramid_radius as pyramid_radius,
    solve_coulomb as solve_coulomb,
)
from .enumeration import all_solutions as all_solutions
from .events import (
    Impact as Impact,
    Motion as Motion,
    Rebound as Rebound,
    System as System,
    Terms as Terms,
    motion as motion,
)
from .lcp import ComplementarityError as ComplementarityError
from .normal_force_problem import (
    NormalForces as NormalForces,
    gauss_principle as gauss_principle,
    normal_force_lcp as normal_force_lcp,
    normal_forces as normal_forces,
)
from .time_stepping import assemble_step as assemble_step, solve_step as solve_step
