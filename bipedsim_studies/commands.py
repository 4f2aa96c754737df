"""The commands that the studies add to ``bipedsim``."""

from bipedsim.cli import Command

REPRODUCE = Command(
    "repeat the experiments of a paper: figures it must meet, and pictures",
    "Repeat the experiments of a paper and print what was measured beside what it must be. Returns 1 if a figure is "
    "missed. docs/reproduce.md says what each case shows.",
    "bipedsim_studies.reproduce.command",
)

COMPARE = Command(
    "run the same under all contact models, figures side by side",
    "Run the same robot, controller and scenario under several contact models and print forces, CoP, penetration, "
    "creep, energies and step times side by side. Returns 1 if a model fails; the others go on. docs/compare.md "
    "defines every figure.",
    "bipedsim_studies.compare.command",
)

PUSH_MAP = Command(
    "find the largest push that a robot recovers from, standing and walking",
    "Bisect headless runs for the largest impulse after which the robot stays on its feet, in several directions, and "
    "draw it beside what the support allows in theory. docs/push_map.md says how.",
    "bipedsim_studies.push_map.command",
)

SCORE = Command(
    "try a controller with the same battery as all others: speeds, pushes, ground, robustness",
    "Run the battery on a controller: a class, a policy, or one that can be named. Prints shares of success with their "
    "intervals, and writes a page, a picture and a table with a row for each trial; --against compares with another "
    "controller's results on the same seeds. docs/score.md says what is tried.",
    "bipedsim_studies.score.command",
)

STUDY = Command(
    "run many trials from one file: sweeps, Monte Carlo, bisection, on all cores or a cluster",
    "Run the trials of a study's file on the cores of this machine, or on the workers of a dask scheduler, and write a "
    "table with a row for each. A study that was interrupted goes on where it was. Returns 1 if a trial had an error; "
    "robots that fall are results. docs/study.md says what the file may hold.",
    "bipedsim_studies.study.command",
)

MARGINS = Command(
    "how close each foot of a run was to slipping, tipping and lifting",
    "Find the conditions on torques for the contacts of a run to stay as they are, and those on the velocity before "
    "every touch-down, and compare with what happened. docs/stability.md explains every figure.",
    "bipedsim_studies.feasibility.command",
)

MODES = Command(
    "what each foot did in a bag or a run, and which gait that is: walking, hopping, running",
    "Print the discrete states of a run (each foot sticks, slides, is detached, or meets the ground), the transitions "
    "between them, the gait, its cycle, and the invariant sets that the run was in. docs/stability.md says how they "
    "are defined.",
    "bipedsim_studies.gait_modes.command",
)

POINCARE = Command(
    "find the gait of a walker, whether it is stable, from where it is reached, and over which slopes",
    "Take one step as a map: its fixed point by Newton, its multipliers by differences, random starts around it, and "
    "the gait over slopes with its period doublings. docs/stability.md says how.",
    "bipedsim_studies.stability.command",
)

BENCH = Command(
    "compare step time, creep and rest forces with other engines",
    "Measure step time, stiction and accuracy of our contact models and of the other engines that are installed, "
    "alternately, on one core.",
    "bipedsim_studies.bench.command",
)
