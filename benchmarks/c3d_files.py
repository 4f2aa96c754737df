"""Read random C3D files with bipedsim and two other readers, and compare: `python benchmarks/c3d_files.py`.

The files come from the tests' own writer (test/support/c3d_writer.py), which follows the guide of c3d.org. Each file
mixes rates, samples per frame, processors (Intel, DEC, SGI), integers and floats, SCALE, OFFSET, FORMAT, GEN_SCALE,
units, first frames and plates of types 1 to 4. For each file, bipedsim must find the true force, CoP and free moment to
the resolution of the file, or refuse the file with the correct reason. The packages `ezc3d` and `c3d` read the same
channels. The table shows how often each reader finds the written values.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "test" / "support"))

from c3d_writer import Case, bounds, random_case

from bipedsim.errors import RecordingError
from bipedsim.recording.lab import read_trial
from bipedsim.recording.lab.c3d_format import read_content

LOADED = 100.0
"""Normal force above which CoP and free moment are compared [N]."""
PATIENCE = 60.0
"""Time limit of another reader per file [s]."""


def ezc3d_channels(path: str) -> Any:
    """Return the analog samples (n, c) that ezc3d reads."""
    import ezc3d

    return ezc3d.c3d(path)["data"]["analogs"][0].T


def c3d_channels(path: str) -> Any:
    """Return the analog samples (n, c) that the package c3d reads."""
    import c3d

    with open(path, "rb") as file:
        return np.hstack([analog for _, _, analog in c3d.Reader(file).read_frames()]).T


OTHERS: dict[str, Callable[[str], Any]] = {"ezc3d": ezc3d_channels, "c3d": c3d_channels}


def compare_with_truth(path: Path, case: Case) -> tuple[str, float]:
    """Return the outcome of bipedsim ("right", "refused", "wrong"), and its largest error relative to the bound."""
    try:
        trial = read_trial(path)
    except RecordingError as error:
        return ("refused" if any(fault.value in case.refused for fault in error.faults or (error,)) else "wrong"), 0.0
    if case.refused or len(trial.plates) != len(case.plates):
        return "wrong", np.inf
    error_ratios = [0.0]
    for measured_plate, plate, error in zip(trial.plates, case.plates, case.errors, strict=True):
        if len(measured_plate) != len(plate.force) or abs(measured_plate.geometry.rate / case.rate - 1.0) > 1e-6:
            return "wrong", np.inf
        force, cop, twist = bounds(plate, error)
        loaded = plate.force[:, 2] > LOADED
        error_ratios.append(float((np.abs(measured_plate.force() - plate.force) / force).max()))
        cop_error = np.linalg.norm(measured_plate.cop(0.0)[:, :2] - plate.cop, axis=1)
        error_ratios.append(float((cop_error / cop)[loaded].max()))
        error_ratios.append(float((np.abs(measured_plate.free_moment(0.0) - plate.twist) / twist)[loaded].max()))
    return ("right" if max(error_ratios) <= 1.0 else "wrong"), max(error_ratios)


def groups_of(about: dict[str, Any]) -> list[str]:
    """Return the categories of a file for the table."""
    rate, ratio = about["rate"], about["ratio"]
    quotient = float(np.float32(rate * ratio)) / float(np.float32(rate))
    return [
        "all",
        f"{about['processor']}, {about['numbers']}",
        *(["quotient of rates in floats below the samples per frame"] if int(quotient) < ratio else []),
        *(["UNSIGNED, integers"] if about["format"] == "UNSIGNED" and about["numbers"] == "integers" else []),
        *(["UNSIGNED, floats"] if about["format"] == "UNSIGNED" and about["numbers"] == "floats" else []),
        *(["OFFSET below 0, SIGNED"] if about["below_zero"] else []),
        *(["POINT:RATE is 0"] if about["no_rate"] else []),
    ]


class OtherReaders:
    """Other readers in their own process, which a file can crash."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(1)

    def read(self, name: str, path: Path) -> Any:
        """Return the channels that a reader finds, or an error message."""
        try:
            return self._pool.submit(OTHERS[name], str(path)).result(PATIENCE)
        except BrokenProcessPool:
            self._pool = ProcessPoolExecutor(1)
            return "the process ended"
        except Exception as error:
            # Other packages can raise any exception.
            return f"{type(error).__name__}: {error}"


def main() -> int:
    """Write, read and compare the files. Return 1 if bipedsim reads a file wrongly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=200, metavar="N")
    parser.add_argument("--seed", type=int, default=0, help="of the first file (default: %(default)s)")
    parser.add_argument("--output", type=Path, help="keep the figures here, as JSON and as a table beside it")
    args = parser.parse_args()
    counts_of: Counter[tuple[str, str, str]] = Counter()
    messages: Counter[tuple[str, str]] = Counter()
    channel_differences = dict.fromkeys(OTHERS, 0.0)
    worst, wrong = 0.0, []
    other_readers = OtherReaders()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trial.c3d"
        for seed in range(args.seed, args.seed + args.files):
            case = random_case(seed, path)
            kinds = groups_of(case.about)
            outcome, error_ratio = compare_with_truth(path, case)
            worst = max(worst, error_ratio)
            if outcome == "wrong":
                wrong.append(seed)
            counts_of.update((kind, "bipedsim", outcome) for kind in kinds)
            for name in OTHERS:
                values = other_readers.read(name, path)
                if isinstance(values, str):
                    messages[name, re.sub(r"[-\d.e+]*\d[-\d.e+]*", "#", values)[:110]] += 1
                    counts_of.update((kind, name, "refused") for kind in kinds)
                    continue
                same = values.shape == case.analogs.shape
                right = same and bool((np.abs(values - case.analogs) <= case.resolution).all())
                counts_of.update((kind, name, "right" if right else "wrong") for kind in kinds)
                if right:
                    ours = read_content(path).analogs
                    channel_differences[name] = max(
                        channel_differences[name], float((np.abs(values - ours) / np.abs(ours).max()).max())
                    )
    table = as_table(counts_of)
    lines = [
        f"{args.files} files, seeds from {args.seed}; ezc3d {version('ezc3d')}, c3d {version('c3d')}",
        "",
        *table,
        "",
        f"Largest error of bipedsim as a share of its bound: {worst:.4f}.",
        *(
            f"Where {name} reads a file right, its channels and ours differ by {value:.1e} of the largest at most."
            for name, value in channel_differences.items()
        ),
        *(f"{name}, {count} files: {text}" for (name, text), count in messages.most_common()),
        *([f"Wrong: seeds {wrong}"] if wrong else []),
    ]
    print("\n".join(lines))
    if args.output:
        figures = {"files": args.files, "seed": args.seed, "worst": worst, "apart": channel_differences, "wrong": wrong}
        counts = [{"kind": k, "reader": r, "outcome": o, "files": n} for (k, r, o), n in sorted(counts_of.items())]
        args.output.write_text(json.dumps(figures | {"counts": counts}, indent=1) + "\n", encoding="utf-8")
        args.output.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if wrong else 0


def as_table(counts_of: Counter[tuple[str, str, str]]) -> list[str]:
    """Return the numbers of right, refused and wrong files of each reader, one row per category."""
    readers = ["bipedsim", *OTHERS]
    rows = ["| files | number | " + " | ".join(f"{reader}: right, refused, wrong" for reader in readers) + " |"]
    rows.append("| --- | --- |" + " --- |" * len(readers))
    kinds = sorted({kind for kind, _, _ in counts_of}, key=lambda kind: (kind != "all", kind))
    for kind in kinds:
        cells = [
            ", ".join(str(counts_of[kind, reader, o]) for o in ("right", "refused", "wrong")) for reader in readers
        ]
        number = sum(counts_of[kind, "bipedsim", o] for o in ("right", "refused", "wrong"))
        rows.append(f"| {kind} | {number} | " + " | ".join(cells) + " |")
    return rows


if __name__ == "__main__":
    sys.exit(main())
