"""Record twenty runs before and after a change that must not affect the physics, and compare them bit by bit.

python benchmarks/recorded_runs.py --output runs/before
python benchmarks/recorded_runs.py --output runs/after
python benchmarks/recorded_runs.py --compare runs/before runs/after
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bipedsim.config import OWN
from bipedsim.errors import BipedSimError, ConfigError

# The runs cover every contact model, robot, kind of ground, drive and walk.
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
    """Simulate the run ``name`` and write it to ``folder/<name>.npz``.

    Raises:
        BipedSimError: The run failed. The message contains the output of `bipedsim run`.
    """
    command = [str(Path(sys.executable).with_name("bipedsim")), "run", *RUNS[name].split(), "--json"]
    # Each run uses one thread, because several runs share the cores.
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command += ["--output", str(folder / f"{name}.npz")]
    process = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if process.returncode:
        raise BipedSimError(f"run {name} failed with code {process.returncode}:\n{process.stderr.strip()}")


def record_all(names: Iterable[str], folder: Path, jobs: int) -> None:
    """Simulate several runs, ``jobs`` at a time, with a progress bar.

    Raises:
        BipedSimError: A run failed. Runs that had not started are omitted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        started = [pool.submit(record, name, folder) for name in names]
        try:
            for run in tqdm(as_completed(started), total=len(started), unit="run", disable=not sys.stderr.isatty()):
                run.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def read(path: Path) -> dict[str, bytes]:
    """Return the arrays of a run as type, shape and bytes. -0.0 and 0.0 differ, and equal NaN are identical.

    The header is without the digest of bipedsim's code, which differs after every change of the code.
    """
    with np.load(path) as arrays:
        run = {key: f"{arrays[key].dtype}{arrays[key].shape}".encode() + arrays[key].tobytes() for key in arrays.files}
        if "header" in run:
            header = json.loads(str(arrays["header"]))
            header["run"].pop("code", None)
            header["run"].get("content", {}).pop(OWN, None)
            run["header"] = json.dumps(header, sort_keys=True).encode()
            run.pop("header_crc", None)
    return run


def differences(before: Path, after: Path) -> Iterator[str]:
    """Yield a line for every run that exists in one folder only, and for every run with different arrays.

    Raises:
        ConfigError: A folder has no runs.
    """
    names = {folder: {path.name for path in folder.glob("*.npz")} for folder in (before, after)}
    for folder, runs_in_folder in names.items():
        if not runs_in_folder:
            raise ConfigError(f"{folder} holds no run; make some with --output {folder}")
    for name in sorted(names[before] | names[after]):
        missing = [str(folder) for folder, runs_in_folder in names.items() if name not in runs_in_folder]
        if missing:
            yield f"{name}: not in {missing[0]}"
            continue
        first, second = read(before / name), read(after / name)
        differing = sorted(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))
        if differing:
            yield f"{name}: {', '.join(differing)}"


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Return 1 if runs differ, 2 after an error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--output", type=Path, metavar="DIR", help="make the runs and keep them here")
    mode.add_argument("--compare", type=Path, nargs=2, metavar="DIR", help="name the runs and arrays that differ")
    parser.add_argument("--only", choices=RUNS, nargs="+", default=list(RUNS), metavar="RUN", help="of: %(choices)s")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=cores, help="runs at a time; default: %(default)s, the cores")
    args = parser.parse_args(arguments)
    try:
        if args.output:
            record_all(args.only, args.output, args.jobs)
            return 0
        lines = list(differences(*args.compare))
    except BipedSimError as error:
        print(f"recorded_runs: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines) or "all runs are the same, to the bit")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
