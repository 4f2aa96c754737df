"""Twenty runs, kept before and after a change that should not change physics, and compared to the bit.

python benchmarks/recorded_runs.py --output runs/before
python benchmarks/recorded_runs.py --output runs/after
python benchmarks/recorded_runs.py --compare runs/before runs/after
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bipedsim.errors import BipedSimError, ConfigError

# Every contact model, robot and kind of ground, drive and walk: what one run does not reach, another does.
RUNS = {
    "squat_one_step": "--robot biped14 --scenario squat --duration 4 --contact-model one_step",
    "squat_exact": "--robot biped14 --scenario squat --duration 4 --contact-model exact",
    "squat_feedback_linearised": "--robot biped14 --scenario squat --duration 4 --contact-model feedback_linearised",
    "squat_nonlinear_damping": "--robot biped14 --scenario squat --duration 4 --contact-model nonlinear_damping",
    "squat_lcp": "--robot biped14 --scenario squat --duration 4 --contact-model lcp",
    "squat_ncp": "--robot biped14 --scenario squat --duration 4 --contact-model ncp",
    "stand_talos": "--robot talos --scenario stand --duration 3",
    "stand_g1": "--robot g1 --scenario stand --duration 3",
    "jump_exact_slope": "--robot biped14 --scenario jump --duration 4 --contact-model exact --ground slope",
    "squat_talos": "--robot talos --scenario squat --duration 4",
    "squat_g1_exact": "--robot g1 --scenario squat --duration 4 --contact-model exact",
    "walk_biped14": "--robot biped14 --scenario walk --duration 6",
    "walk_talos": "--robot talos --scenario walk --duration 6",
    "walk_g1": "--robot g1 --scenario walk --duration 6",
    "walk_realistic": "--robot biped14 --scenario walk --duration 6 --hardware realistic --seed 3",
    "stand_talos_realistic": "--robot talos --scenario stand --duration 3 --hardware realistic --seed 4",
    "stairs_biped14": "--robot biped14 --scenario stairs --duration 6",
    "stairs_talos_lcp": "--robot talos --scenario stairs --duration 4 --contact-model lcp",
    "tiles_ncp": "--robot biped14 --scenario tiles --duration 5 --contact-model ncp",
    "walk_g1_springs": "--robot g1 --scenario walk --duration 4 --hardware realistic --contact-model nonlinear_damping",
}


def record(name: str, folder: Path) -> None:
    """Make the run ``name`` and keep it as ``folder/<name>.npz``.

    Raises:
        BipedSimError: The run failed; holds what `bipedsim run` said.
    """
    command = [str(Path(sys.executable).with_name("bipedsim")), "run", *RUNS[name].split(), "--json"]
    # One thread a run: so many at a time share the cores.
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command += ["--output", str(folder / f"{name}.npz")]
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BipedSimError(f"run {name} failed with code {done.returncode}:\n{done.stderr.strip()}")


def record_all(names: Iterable[str], folder: Path, jobs: int) -> None:
    """Make runs, ``jobs`` at a time, under a progress bar.

    Raises:
        BipedSimError: One failed; those that had not begun are left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        started = [pool.submit(record, name, folder) for name in names]
        try:
            for done in tqdm(as_completed(started), total=len(started), unit="run", disable=not sys.stderr.isatty()):
                done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def read(path: Path) -> dict[str, bytes]:
    """Return the arrays of a run as type, shape and bytes: -0.0 and 0.0 are two things, NaN and NaN one."""
    with np.load(path) as arrays:
        return {key: f"{arrays[key].dtype}{arrays[key].shape}".encode() + arrays[key].tobytes() for key in arrays.files}


def differences(before: Path, after: Path) -> Iterator[str]:
    """Yield a line for every run that is in one folder only, and for every run with arrays that differ.

    Raises:
        ConfigError: There is nothing to compare.
    """
    names = {folder: {path.name for path in folder.glob("*.npz")} for folder in (before, after)}
    for folder, its in names.items():
        if not its:
            raise ConfigError(f"{folder} holds no run; make some with --output {folder}")
    for name in sorted(names[before] | names[after]):
        missing = [str(folder) for folder, its in names.items() if name not in its]
        if missing:
            yield f"{name}: not in {missing[0]}"
            continue
        old, new = read(before / name), read(after / name)
        unlike = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        if unlike:
            yield f"{name}: {', '.join(unlike)}"


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns 1 if something differs, 2 if something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--output", type=Path, metavar="DIR", help="make the runs and keep them here")
    what.add_argument("--compare", type=Path, nargs=2, metavar="DIR", help="name the runs and arrays that differ")
    parser.add_argument("--only", choices=RUNS, nargs="+", default=list(RUNS), metavar="RUN", help="of: %(choices)s")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=cores, help="runs at a time; default: %(default)s, the cores")
    args = parser.parse_args(arguments)
    try:
        if args.output:
            record_all(args.only, args.output, args.jobs)
            return 0
        found = list(differences(*args.compare))
    except BipedSimError as error:
        print(f"recorded_runs: {error}", file=sys.stderr)
        return 2
    print("\n".join(found) or "all runs are the same, to the bit")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
