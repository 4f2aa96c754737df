"""The same launches in lock_step again and again: bags are complete, equal to the bit, and repeat exactly."""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from report import header, keep, table
from tqdm import tqdm

from bipedsim.errors import BipedSimError, IncompleteWarning
from bipedsim.recording import COLUMNS, load_recording
from bipedsim.recording.bag import Bag
from bipedsim.runs import rerun

ROBOTS = ("biped14", "talos", "g1")
CONTROLLERS = ("posture", "zmp")
RATE = 1000
SECONDS = 600
"""Wall time after which a launch counts as hanging [s]."""
FOOT = ("wrench", "cop", "contact")
OF_SIMULATOR = ("/joint_states", "/imu/data", "/cop", "/ground_truth/odom", "/sim_node/command")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the part."""
    parser.add_argument("--runs", type=int, default=50, metavar="N", help="bring-ups (default: %(default)s)")
    parser.add_argument(
        "--duration", type=float, default=1.0, metavar="S", help="simulated time (default: %(default)s)"
    )
    parser.add_argument("--minutes", type=float, default=1e9, metavar="M", help="begin nothing new after this time")
    parser.add_argument("--domain", type=int, default=60 + os.getpid() % 40, metavar="ID", help="ROS_DOMAIN_ID")


def bring_up(robot: str, controller: str, seed: int, duration: float, folder: Path, domain: int) -> dict[str, Any]:
    """Start nodes, wait for their end, and return how they ended."""
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    command = [sys.executable, "-m", "bipedsim.cli.main", "up", "--clock", "lock_step", "--hardware", "realistic"]
    command += ["--robot", robot, "--controller", controller, "--seed", str(seed), "--duration", str(duration)]
    begin = time.monotonic()
    try:
        done = subprocess.run(
            [*command, "--record", str(folder)],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return {"code": None, "wrong": ["did not end"], "seconds": time.monotonic() - begin}
    wrong = [f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"] if done.returncode else []
    if "Traceback" in done.stderr:
        wrong.append(done.stderr.strip().splitlines()[-1])
    return {"code": done.returncode, "wrong": wrong, "seconds": time.monotonic() - begin}


def look(bag: Path, duration: float) -> tuple[list[str], dict[str, str]]:
    """Return the errors of a bag, and the hash of every column of it."""
    wrong: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = load_recording(bag)
    wrong += [str(one.message) for one in caught if issubclass(one.category, IncompleteWarning)]
    ticks = round(duration * RATE)
    if not np.array_equal(np.rint(run.t * RATE), np.arange(ticks + 1)):
        missing = sorted({*range(ticks + 1)} - {*np.rint(run.t * RATE).astype(int).tolist()})
        wrong.append(f"{len(run)} rows and not {ticks + 1}; missing {missing[:5]}")
    whole = Bag(bag)
    topics = [*OF_SIMULATOR, *(f"/{foot}_foot/{what}" for foot in run.feet for what in FOOT)]
    topics += [f"/{foot}_foot_ft/wrench" for foot in run.feet]
    # The state at t = 0 is repeated until every topic has a subscriber, so the bag may contain it more than once. Then
    # the simulator waits until no answer to it arrives any more.
    last, first = (message.log_time for message in whole.messages["/joint_states"][-ticks - 1 : -ticks + 1])
    begun = (last + first) // 2
    for topic in topics:
        times = [message.log_time for message in whole.messages.get(topic, [])]
        after = sum(time > begun for time in times)
        if after != ticks or len(times) == after:
            wrong.append(f"{topic} has {after} messages of {ticks} ticks, {len(times) - after} of t = 0")
    said = whole.custom_data
    # The recorder may miss the state at t = 0, which is repeated until every topic has a subscriber.
    for key in ("lost", "dropped"):
        if said.get(key, "0") != "0":
            wrong.append(f"the recorder counted {key} = {said[key]}")
    hashes = {name: hashlib.sha256(getattr(run, name).tobytes()).hexdigest() for name in COLUMNS}
    shown = {name: values[np.isfinite(values)].tobytes() for name, values in sorted(run.readouts.items())}
    hashes |= {f"readout {name}": hashlib.sha256(values).hexdigest() for name, values in shown.items()}
    try:
        done = rerun(run)
    except BipedSimError as error:
        return [*wrong, f"cannot be repeated: {error}"], hashes
    if done.first is not None:
        wrong.append(f"repeated, it differs: {done.first}")
    if len(done.simulated) != ticks:
        wrong.append(f"{len(done.simulated)} of {ticks} ticks can be repeated: {'; '.join(done.notes)}")
    return wrong, hashes


def main(args: argparse.Namespace) -> int:
    """Run them all; return 0, or 1 if one was not as the others."""
    if args.quick:
        args.runs = min(args.runs, 4)
    kinds = [(robot, controller) for controller in CONTROLLERS for robot in ROBOTS]
    first: dict[tuple[str, str], dict[str, str]] = {}
    rows = []
    begin = time.monotonic()
    for number in tqdm(range(args.runs), unit="run", mininterval=10.0):
        if time.monotonic() > begin + 60.0 * args.minutes:
            break
        # Even with a few runs, one kind is repeated.
        robot, controller = kinds[number % min(len(kinds), max(1, args.runs // 2))]
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "run"
            row = bring_up(robot, controller, args.seed, args.duration, folder, args.domain)
            wrong = row.pop("wrong")
            if not wrong:
                wrong, hashes = look(folder / "bag", args.duration)
                reference = first.setdefault((robot, controller), hashes)
                other = [name for name in {*reference, *hashes} if reference.get(name) != hashes.get(name)]
                wrong += [f"not the bits of the first run: {', '.join(sorted(other))}"] if other else []
        rows.append({"run": number, "robot": robot, "controller": controller, **row, "wrong": "; ".join(wrong)})
    defects = [row for row in rows if row["wrong"]]
    figures = {**header(args), "runs": rows, "defects": len(defects)}
    of_kind = [
        {
            "robot": robot,
            "controller": controller,
            "runs": len(mine),
            "defects": sum(bool(row["wrong"]) for row in mine),
            "wall_s": float(np.median([row["seconds"] for row in mine])),
        }
        for robot, controller in kinds
        if (mine := [row for row in rows if (row["robot"], row["controller"]) == (robot, controller)])
    ]
    text = (
        f"# Bring-ups in lock_step\n\n{len(rows)} bring-ups of {args.duration:g} s simulated with realistic hardware, "
        "one seed. Each bag must hold every tick on every topic of the simulator, have the bits of the first one of "
        f"its kind, and be repeated to the bit by `bipedsim replay`. Defects: {len(defects)}.\n\n{table(of_kind)}\n"
    )
    keep(args.output, figures, f"{text}## Defects\n\n{table(defects)}" if defects else text)
    return int(bool(defects))
