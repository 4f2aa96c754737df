"""The commands that the studies add to ``bipedsim``."""

from bipedsim.cli import CliCommand

REPRODUCE = CliCommand(
    "repeat the experiments of a paper, and check the results",
    "Repeat the experiments of a paper and print measured and required values. Returns 1 if a check fails. See "
    "docs/reproduce.md.",
    "bipedsim_studies.reproduce.command",
)

COMPARE = CliCommand(
    "compare the contact models in one scenario",
    "Run one robot, controller and scenario under several contact models. Print forces, CoP, penetration, creep, "
    "energies and step times. Returns 1 if a run fails. See docs/compare.md.",
    "bipedsim_studies.compare.command",
)

PUSH_MAP = CliCommand(
    "find the largest push that a robot recovers from, standing and walking",
    "Bisect the largest impulse that the robot recovers from, in several directions, and compare it with theory. The "
    "default controller is zmp. See docs/push_map.md.",
    "bipedsim_studies.push_map.command",
)

SCORE = CliCommand(
    "score a controller with a fixed set of trials: speeds, pushes, ground, robustness",
    "Run all trials of a battery with a controller. Print success rates with their confidence intervals, and write a "
    "page, a figure and a table of the trials. See docs/score.md.",
    "bipedsim_studies.score.command",
)

STUDY = CliCommand(
    "run many trials from one file: sweeps, Monte Carlo, bisection, on all cores or a cluster",
    "Run the trials of a study file in parallel and write a table with one row per trial. An interrupted study "
    "continues. Returns 1 if a trial had an error; a fall is a result. See docs/study.md.",
    "bipedsim_studies.study.command",
)

MARGINS = CliCommand(
    "compute how close each foot of a run was to slipping, tipping and lifting off",
    "Compute the margins of the contacts of a recorded run, and predict its touchdowns. Compare both with the run. See "
    "docs/stability.md.",
    "bipedsim_studies.feasibility.command",
)

GAP = CliCommand(
    "measure how well a model predicts a robot: errors over 10 to 1000 ms",
    "Predict the measurements of a recorded run from its commands. Print the errors next to the noise of the sensors "
    "and the errors of simple rules. Compare two models. See docs/gap.md.",
    "bipedsim_studies.gap.command",
)

MODES = CliCommand(
    "classify the gait of a recording: walking, hopping, running",
    "Print the contact states of the feet, the transitions between them, the gait, its cycle, and the invariant sets. "
    "See docs/stability.md.",
    "bipedsim_studies.gait_modes.command",
)

POINCARE = CliCommand(
    "find the gait of a walker, its stability, its basin of attraction and its range of slopes",
    "Find the fixed point of the return map of a step, its multipliers, the basin of attraction, and the gaits over "
    "slopes with their period doublings. See docs/stability.md.",
    "bipedsim_studies.stability.command",
)

BENCH = CliCommand(
    "compare step time, creep and rest forces with other engines",
    "Measure step time, stiction and accuracy of the contact models and of other installed engines on one core. See "
    "docs/benchmarks.md.",
    "bipedsim_studies.bench.command",
)

IDENTIFY = CliCommand(
    "estimate masses, friction, armature and offsets of a robot from its recordings",
    "Estimate the parameters of a robot from recordings in which it stands, squats, sways and walks, with 95 % "
    "intervals. Write them as hardware for other commands. See docs/identify.md.",
    "bipedsim_studies.identify.command",
)
