"""Damaged recordings and wrong input files: never a traceback, never silent nonsense, never a hang."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import damaged
import mutated
import numpy as np
from attempt import SECONDS, attempt
from report import header, keep, table
from tqdm import tqdm

from bipedsim.cli.main import main as bipedsim
from bipedsim.model import load_robot
from bipedsim.recording import load_recording
from bipedsim.runs.saved_step import save_step
from bipedsim.sim import Simulator

ROBOT, OTHER = "biped14", "g1"
QUICK = {"bags": 40, "inputs": 60}
_state: dict[str, Any] = {}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the part."""
    parser.add_argument("--bags", type=int, default=500, metavar="N", help="damaged recordings (default: %(default)s)")
    parser.add_argument("--inputs", type=int, default=1000, metavar="N", help="wrong inputs (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=40, metavar="N", help="of both, again as processes")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=1e9, metavar="M", help="begin nothing new after this time")
    parser.add_argument("--whole", type=Path, metavar="DIR", help="where whole recordings are kept")
    parser.add_argument(
        "--duration", type=float, default=0.5, metavar="S", help="of the recordings (default: %(default)s)"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="kinds whose name holds this")


def recordings(folder: Path, domain: int, duration: float) -> None:
    """Record the files to be damaged, unless they exist: bags of two robots, a run and a captured step."""
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    command = [sys.executable, "-m", "bipedsim.cli.main"]
    once = ("--controller", "zmp", "--hardware", "realistic", "--duration", str(duration))
    for robot, name in ((ROBOT, "whole"), (OTHER, "other")):
        if not (folder / name / "bag").is_dir():
            line = [*command, "up", "--clock", "lock_step", "--robot", robot, *once, "--record", str(folder / name)]
            subprocess.run(line, env=environment, check=True, stdout=subprocess.DEVNULL)
    whole = folder / "whole"
    if not (whole / "run.npz").exists():
        run = [*command, "run", "--robot", ROBOT, *once, "--output", str(whole / "run.npz")]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    if not (whole / "step.npz").exists():
        sim = Simulator(load_robot(ROBOT))
        nothing = np.zeros(sim.robot.nu)
        begun = {"q": sim.q, "v": sim.v, "torque": nothing, "push": 0 * sim.v, "damping": sim.plant.joint_damping}
        save_step(whole / "step.npz", sim, begun)


def called(line: list[str], folder: Path) -> None:
    """Call a command in this process, so that all forks have its imports and kernels."""
    here = os.getcwd()
    os.chdir(folder)
    try:
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            bipedsim(line)
    finally:
        os.chdir(here)


def prepare(folder: Path) -> None:
    """Read each undamaged file once in this process, and store the output of every reader."""
    whole, good, warm = folder / "whole", {}, set()
    for what in ("bag", "npz", "step"):
        for number in range(damaged.PICTURES * len(damaged.PANELS)):
            for reader, line in damaged.readers(what, number, ROBOT).items():
                key = (what, reader, tuple(line))
                if key in good:
                    continue
                if (what == "step", reader) not in warm:
                    called(line, whole)
                    warm.add((what == "step", reader))
                with tempfile.TemporaryDirectory() as scratch:
                    for name in ("bag", "run.npz", "step.npz"):
                        (Path(scratch) / name).symlink_to(whole / name)
                    done = attempt(line, Path(scratch))
                    file = Path(scratch) / damaged.PRODUCTS.get(reader, ".")
                    good[key] = (done, file.read_bytes() if file.is_file() else b"")
    read = {"bag": load_recording(whole / "bag"), "npz": load_recording(whole / "run.npz")}
    _state["good"] = {"answers": good, "recordings": read}


def one_recording(case: damaged.Case) -> list[dict[str, Any]]:
    """Try a damaged recording."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, seed = _state["folder"], _state["seed"]
        return damaged.try_all(
            folder / "whole", case, Path(scratch), seed, folder / "other" / "bag", ROBOT, _state["good"]
        )


def one_input(case: mutated.Case) -> list[dict[str, Any]]:
    """Try a wrong input."""
    with tempfile.TemporaryDirectory() as scratch:
        return [mutated.try_one(case, Path(scratch), _state["seed"], _state["folder"])]


def again(case: Any, row: dict[str, Any], folder: Path, seed: int) -> str:
    """Repeat a case of both kinds in a separate process; return the differences from the fork."""
    with tempfile.TemporaryDirectory() as scratch:
        if isinstance(case, damaged.Case):
            damaged.place(folder / "whole", case, Path(scratch), seed, folder / "other" / "bag")
            line = damaged.readers(case.what, case.number, ROBOT)[row["reader"]]
        else:
            line = mutated.place(case, Path(scratch), seed, folder)
        command = [sys.executable, "-m", "bipedsim.cli.main", *line]
        try:
            done = subprocess.run(command, cwd=scratch, capture_output=True, timeout=6 * SECONDS, errors="replace")
        except subprocess.TimeoutExpired:
            return "does not end"
        except ValueError:
            return ""
        if "Traceback" in done.stderr:
            return done.stderr.strip().splitlines()[-1][:200]
        return "" if done.returncode == row["code"] else f"exit code {done.returncode}, in a fork {row['code']}"


def judged(
    jobs: int, function: Callable[[Any], list[dict[str, Any]]], cases: Sequence[Any], unit: str
) -> Iterator[dict[str, Any]]:
    """Yield the rows of all cases as they come, as long as there is time."""
    # Forks have all imports and kernels of this process. A command may have its own processes.
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
        begun = [pool.submit(function, case) for case in cases]
        for done in tqdm(as_completed(begun), total=len(cases), unit=unit, mininterval=10.0):
            yield from done.result()
            for row in done.result():
                if row["wrong"]:
                    tqdm.write(f"{row}", file=sys.stderr)
            if time.monotonic() > _state["end"]:
                pool.shutdown(cancel_futures=True)
                return


def counted(rows: Sequence[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """Return how often each kind of row ended how."""
    kinds: dict[tuple[Any, ...], Counter[str]] = {}
    for row in rows:
        found = kinds.setdefault(tuple(row[key] for key in keys), Counter())
        found["tried"] += 1
        found["defect" if row["wrong"] else f"exit {row['code']}"] += 1
    columns = ("tried", "exit 0", "exit 1", "exit 2", "exit 3", "defect")
    return [
        dict(zip(keys, kind, strict=True)) | {column: found[column] for column in columns}
        for kind, found in sorted(kinds.items(), key=str)
    ]


def main(args: argparse.Namespace) -> int:
    """Try everything; return 0, or 1 if something was not as it should be."""
    os.environ["MPLBACKEND"] = "Agg"
    tqdm.monitor_interval = 0
    if args.quick:
        args.bags, args.inputs = min(args.bags, QUICK["bags"]), min(args.inputs, QUICK["inputs"])
        args.processes = min(args.processes, 4)
    with tempfile.TemporaryDirectory() as scratch:
        folder = (args.whole or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        recordings(folder, 60 + os.getpid() % 40, args.duration)
        bags = [c for c in damaged.cases(args.bags) if args.only in f"{c.what} {c.target} {c.damage}"]
        inputs = [c for c in mutated.cases(args.inputs) if args.only in f"{c.what} {c.mutation}"]
        _state.update(folder=folder, seed=args.seed, end=time.monotonic() + 60.0 * args.minutes)
        if bags:
            prepare(folder)
        called(["run", "--duration", "0.05", "--hardware", "realistic"], folder)
        of_bags = list(judged(args.jobs, one_recording, bags, "recording"))
        of_inputs = list(judged(args.jobs, one_input, inputs, "input"))
        rng = np.random.default_rng(args.seed)
        rows = [row for row in (*of_bags, *of_inputs) if row.get("reader") != "python" and not row["wrong"]]
        chosen = [rows[i] for i in rng.permutation(len(rows))[: args.processes]]
        by_number = {("damage", c.number): c for c in bags} | {("mutation", c.number): c for c in inputs}
        processes = 0
        for row in tqdm(chosen, unit="process", mininterval=2.0):
            case = by_number["damage" if "damage" in row else "mutation", row["case"]]
            row["wrong"] = again(case, row, folder, args.seed)
            processes += 1
    bags, inputs = ({row["case"] for row in tried} for tried in (of_bags, of_inputs))
    defects = [row for row in (*of_bags, *of_inputs) if row["wrong"]]
    figures = {
        **header(args),
        "recordings": len(bags),
        "readings": len(of_bags),
        "inputs": len(inputs),
        "processes": processes,
        "defects": defects,
        "by_reader": counted(of_bags, "what", "reader"),
        "by_damage": counted(of_bags, "target", "damage"),
        "by_input": counted(of_inputs, "what"),
        "by_mutation": counted(of_inputs, "mutation"),
        "said": sorted({row["said"][:200] for row in (*of_bags, *of_inputs)}),
    }
    shown = ("case", "what", "damage", "mutation", "reader", "code", "wrong")
    rows = [{key: row.get(key) for key in shown} for row in defects]
    text = (
        f"# Damaged recordings and wrong inputs\n\n{len(bags)} damaged recordings, read {len(of_bags)} times; "
        f"{len(inputs)} wrong inputs; {processes} of both again by processes of their own. "
        f"Defects: {len(defects)}.\n\n## Recordings\n\n{table(figures['by_reader'])}\n{table(figures['by_damage'])}\n"
        f"## Inputs\n\n{table(figures['by_input'])}\n{table(figures['by_mutation'])}\n## Defects\n\n{table(rows)}"
    )
    keep(args.output, figures, text)
    return int(bool(defects))
